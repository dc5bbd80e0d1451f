"""Machines to run workloads on: how many cores, what buffer, and what balance of arithmetic and bandwidth.

A published part has its own clock; ours have that they were built for. So what a preset takes from a part is its
balance, FLOP for each byte of DRAM traffic, and not its bandwidth: a machine that computes half as fast as the part
has half of its bandwidth, and GEMMs are bound by cores and DRAM as they are there.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MACHINES", "Preset"]


@dataclass(frozen=True)
class Preset:
    """A machine without its cores.

    Parameters
    ----------
    cores
        How many.
    buffer_mib
        Operand buffer, in MiB.
    dram
        Bandwidth in GB/s (1e9 bytes), or the FLOP, two of each multiply-accumulate, for each byte of DRAM traffic.
    balanced
        Whether it is the latter.
    source
        Where these are from.
    """

    cores: int
    buffer_mib: float
    dram: float
    balanced: bool
    source: str

    def dram_gb(self, flops: float) -> float:
        """Bandwidth in GB/s of a machine that has this many FLOP/s."""
        return flops / self.dram * 1e-9 if self.balanced else self.dram


MACHINES = {
    "small": Preset(64, 8, 819.2, False, "one stack of HBM3, 1024 pins of 6.4 Gbit/s (JEDEC JESD238)"),
    "gb10-class": Preset(
        64,
        24,
        500 / 0.273,
        True,
        "NVIDIA GB10 (DGX Spark): 1 PFLOP/s of sparse FP4, half of it dense, 273 GB/s (data sheet); L2 of 24 MB"
        " (Hot Chips 2025)",
    ),
    "b200-class": Preset(
        592,
        126,
        9000 / 8,
        True,
        "NVIDIA B200: 9 PFLOP/s of dense FP4, 8 TB/s (Blackwell data sheet, HGX B200); 148 multiprocessors of four"
        " tensor cores; L2 of 126 MB (Blackwell Tuning Guide)",
    ),
}
"""Presets by name; the first is the default."""
