"""Where the files of a package lie, relative to the directory that it is written to."""

from __future__ import annotations

from dataclasses import dataclass

from hwgen.config import TensorCoreConfig

__all__ = [
    "ADDENDS",
    "AXIS_LIST",
    "AXIS_SIM_LIST",
    "CONSTRAINTS",
    "DATAPATH",
    "DIAGRAM",
    "MAKEFILE",
    "OPENROAD",
    "RESULTS",
    "RTL_LIST",
    "SIM_LIST",
    "STEPS",
    "WAIVERS",
    "Layout",
]

MAKEFILE, RTL_LIST, SIM_LIST = "Makefile", "rtl.f", "sim.f"
AXIS_LIST, AXIS_SIM_LIST = "axis.f", "axis_sim.f"
DIAGRAM, DATAPATH = "core.svg", "datapath.svg"
CONSTRAINTS, OPENROAD, WAIVERS = "constraint.sdc", "config.mk", "lint.vlt"
STEPS, ADDENDS, RESULTS = "steps.hex", "addends.hex", "results.hex"
"""Files of every core's folder; those whose names depend on the core are properties of `Layout`."""


@dataclass(frozen=True)
class Layout:
    """Names of the files of one core.

    Verilog, manifest and FuseSoC's core file lie side by side, for FuseSoC wants all files below its own; the rest has
    a folder for each core.

    Parameters
    ----------
    config
        Tensor core configuration.
    """

    config: TensorCoreConfig

    @property
    def verilog(self) -> str:
        """The core, beside its manifest."""
        return f"{self.config.name}.v"

    @property
    def manifest(self) -> str:
        """What a testbench has to know of the core."""
        return f"{self.config.name}.json"

    @property
    def core_file(self) -> str:
        """FuseSoC's description."""
        return f"{self.config.name}.core"

    @property
    def testbench_top(self) -> str:
        """Module of the testbench, and the stem of its file."""
        return f"{self.config.identifier}_tb"

    @property
    def testbench(self) -> str:
        """The testbench's file, within the folder."""
        return f"{self.testbench_top}.sv"

    @property
    def types(self) -> str:
        """SystemVerilog package of the payloads' types, and the stem of its file."""
        return f"{self.config.identifier}_pkg"

    @property
    def structs(self) -> str:
        """Module with structures as ports, and the stem of its file."""
        return f"{self.config.identifier}_structs"

    @property
    def axis(self) -> str:
        """Module with AXI4-Stream ports, and the stem of its file."""
        return f"{self.config.identifier}_axis"

    @property
    def axis_slice(self) -> str:
        """Module of the registers of its streams, and the stem of its file."""
        return f"{self.config.identifier}_axis_slice"

    @property
    def wrappers(self) -> tuple[str, ...]:
        """Stems of the files of both wrappers, in the order in which a tool must read them."""
        return self.types, self.structs, self.axis_slice, self.axis

    @property
    def axis_testbench_top(self) -> str:
        """Module of its testbench, and the stem of its file."""
        return f"{self.config.identifier}_axis_tb"

    def inside(self, name: str) -> str:
        """A file of the folder, seen from outside."""
        return f"{self.config.name}/{name}"
