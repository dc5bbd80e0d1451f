"""Energy of GEMMs on a grid of cores, and what one design costs over another, with its interval.

Energy has eight parts, and a ninth where GEMMs are at half the rate. Those of the cores are counts times figures that
were measured on netlists, with intervals. Those of the memory are counts times figures that are given. That of the
quantiser is one or the other:

=====================  ======================  =============================
part                   count                   figure
=====================  ======================  =============================
``active``             steps of all cores      dynamic energy of a step
``active, half rate``  those at half the rate  dynamic energy of such a step
``clock``              cycles without a step   clock pins
``clock tree``         cycles without a step   estimated buffers of the tree
``leakage``            seconds of all cores    leakage power
``quantiser``          elements                energy of an element
``buffer``             bytes read and written  `EnergyCosts`
``buffer leakage``     seconds                 `EnergyCosts`
``DRAM``               bytes read and written  `EnergyCosts`
=====================  ======================  =============================

Steps at half the rate are not among the others.

A core without a step holds its operands, and its clock runs on: nothing else switches (the netlists simulated at rest
say so, too). A step costs the same whatever it holds; padded rows and empty steps thus cost as much as full ones. A
core without any output to work on is *idle*: its clock is off while the others step, or it steps like the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.stats import Estimate, Ratio

if TYPE_CHECKING:  # its arithmetic is compiled, and what compiles takes half a second to import
    from hwgen.cost.grid import GridRun

__all__ = [
    "CORE_PARTS",
    "DRAM_PJ_PER_BYTE",
    "HALF_RATE_PART",
    "PARTS",
    "QUANTISER_AREA",
    "QUANTISER_PART",
    "SRAM_MM2_PER_MIB",
    "SRAM_PJ_PER_BYTE",
    "CoreCost",
    "EnergyCosts",
    "Ratio",
    "core_parts",
    "energy",
    "overhead",
    "throughput_per_area",
]

CORE_PARTS = ("active", "clock", "clock tree", "leakage")
HALF_RATE_PART = "active, half rate"
"""Part of the cores that there is only where some GEMM is at half the rate; such steps are not in ``active``."""
QUANTISER_PART = "quantiser"
QUANTISER_AREA = "quantiser area"
"""Key of the ratio of the areas of two quantisers."""
PARTS = (*CORE_PARTS, QUANTISER_PART, "buffer", "buffer leakage", "DRAM")
"""Parts of the energy, see above."""

SRAM_PJ_PER_BYTE = 14 / 8
"""pJ per byte of an SRAM of 1 MB at 7 nm, 14 pJ for 64 bits: Jouppi et al., Ten Lessons From Three Generations Shaped
Google's TPUv4i, ISCA 2021, table 2."""

SRAM_MM2_PER_MIB = 41 / 64
"""mm2 of a MiB of SRAM at 7 nm, a whole die of 41 mm2 with 64 MB of cache: Wuu et al., 3D V-Cache, ISSCC 2022."""

DRAM_PJ_PER_BYTE = 8 * 3.92
"""pJ per byte of HBM2, 3.92 pJ per bit: O'Connor et al., Fine-Grained DRAM, MICRO 2017."""


@dataclass(frozen=True)
class EnergyCosts:
    """What memory and quantiser cost.

    Parameters
    ----------
    buffer_pj_per_byte, dram_pj_per_byte
        Of a byte read or written, in pJ; at least 0.
    buffer_mw_per_mib
        Leakage of the buffer, in mW per MiB; None leaves it out.
    quantiser_fj
        Of an element quantised, in fJ, by name of the design; a design that is not there has none.

    Raises
    ------
    InputError
        A figure is negative or not a number.
    """

    buffer_pj_per_byte: float = SRAM_PJ_PER_BYTE
    dram_pj_per_byte: float = DRAM_PJ_PER_BYTE
    buffer_mw_per_mib: float | None = None
    quantiser_fj: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("buffer_pj_per_byte", "dram_pj_per_byte", "buffer_mw_per_mib")}
        given |= {f"quantiser_fj of {name}": value for name, value in self.quantiser_fj.items()}
        for name, value in given.items():
            if value is not None and not 0 <= value < math.inf:
                raise InputError(f"{name} = {value}: must be a number of at least 0")


@dataclass(frozen=True)
class CoreCost:
    """What was measured of one core.

    Parameters
    ----------
    config
        Its configuration.
    area_um2
        Its area.
    critical_path_ns
        Its longest path.
    active_fj
        Dynamic energy of a step.
    clock_fj, clock_tree_fj
        Energy of the clock pins, and of the buffers of the clock tree, in a cycle without a step.
    leakage_mw
        Leakage power.
    half_rate_fj
        Dynamic energy of a step at half the rate; None where it was not measured.
    """

    config: TensorCoreConfig
    area_um2: float
    critical_path_ns: float
    active_fj: float
    clock_fj: float
    clock_tree_fj: float
    leakage_mw: float
    half_rate_fj: float | None = None


def energy(
    run: GridRun,
    core: CoreCost,
    clock_ns: float,
    costs: EnergyCosts,
    buffer_bytes: float = 0,
    idle_gated: bool = True,
) -> dict[str, NDArray[Any]]:
    """Joules of each GEMM by part of `PARTS`, (L,) each.

    Parameters
    ----------
    run
        The GEMMs on a grid.
    core
        Each of its cores.
    clock_ns
        Clock period.
    costs
        Of the memory and the quantiser.
    buffer_bytes
        Capacity of the buffer, which leaks.
    idle_gated
        Whether the clock of a core without an output is off while the others step; otherwise it steps with them.

    Returns
    -------
    dict
        The parts of `PARTS`; with a GEMM at half the rate `HALF_RATE_PART`, too.

    Raises
    ------
    InputError
        A GEMM is at half the rate, and what such a step takes was not measured.
    """
    cores = run.arrangement.cores
    worked = run.steps * cores * (run.busy if idle_gated else 1)
    rested = (run.cycles - run.steps) * cores
    seconds = run.cycles * clock_ns * 1e-9
    moved = run.dram_read_bytes + run.dram_write_bytes
    leaking_mw = (costs.buffer_mw_per_mib or 0) * buffer_bytes / (1 << 20)
    halved = {}
    if run.half.any():
        if core.half_rate_fj is None:
            raise InputError(f"{core.config.name}: what a step at half the rate takes is not in the report")
        halved = {HALF_RATE_PART: worked * run.half * core.half_rate_fj * 1e-15}
    return {
        "active": worked * ~run.half * core.active_fj * 1e-15,
        **halved,
        "clock": rested * core.clock_fj * 1e-15,
        "clock tree": rested * core.clock_tree_fj * 1e-15,
        "leakage": seconds * cores * core.leakage_mw * 1e-3,
        QUANTISER_PART: run.quantised * costs.quantiser_fj.get(core.config.name, 0) * 1e-15,
        "buffer": run.buffer_bytes * costs.buffer_pj_per_byte * 1e-12,
        "buffer leakage": seconds * leaking_mw * 1e-3,
        "DRAM": moved * costs.dram_pj_per_byte * 1e-12,
    }


def core_parts(parts: Mapping[str, Any]) -> list[str]:
    """Those that the cores spend: of `CORE_PARTS` all, and `HALF_RATE_PART` where it is there."""
    return [*CORE_PARTS, *([HALF_RATE_PART] if HALF_RATE_PART in parts else [])]


def overhead(baseline: Mapping[str, float], candidate: Mapping[str, float], ratios: Mapping[str, Ratio]) -> Estimate:
    """Overhead in energy with the interval of what was measured.

    The candidate's parts are the baseline's times counts and ratios. Each ratio of a measured figure has an interval;
    the bounds of the whole are those with all ratios at their lower, or all at their upper bounds. That is the
    interval itself where one part dominates or all vary together; where spreads are about normal and vary in
    another way, it is wider. What the memory costs has no spread.

    Parameters
    ----------
    baseline, candidate
        Joules by part, of one GEMM or many; all parts of `PARTS` or some.
    ratios
        Candidate over baseline, by part of `CORE_PARTS`, which the energies must have. With `QUANTISER_PART` where
        that was measured, too; else it has no spread.
    """
    spread = core_parts(candidate) + [part for part in (QUANTISER_PART,) if part in candidate and part in ratios]
    whole = sum(baseline.values())
    bounds: list[float | None] = []
    for bound in ("low", "high"):
        change = 0.0
        for part in spread:
            ratio = ratios[part]
            end = getattr(ratio, bound)
            if end is None:
                bounds.append(None)
                break
            change += candidate[part] * (end / ratio.value - 1)
        else:
            bounds.append((sum(candidate.values()) + change) / whole - 1)
    return Estimate(sum(candidate.values()) / whole - 1, *bounds)


def throughput_per_area(seconds: tuple[float, float], area: Ratio) -> Estimate:
    """Overhead in throughput for each area of cores, with the interval of the area.

    Parameters
    ----------
    seconds
        Of the same work on as many cores, baseline first.
    area
        Candidate over baseline.
    """
    return area.inverse.times(seconds[0] / seconds[1]).overhead
