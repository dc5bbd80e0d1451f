"""File lists, and a makefile that runs the testbench."""

from __future__ import annotations

from hwgen.package.layout import AXIS_LIST, AXIS_SIM_LIST, RTL_LIST, SIM_LIST, WAIVERS, Layout
from hwgen.package.template import filled

__all__ = ["axis_list", "axis_sim_list", "makefile", "rtl_list", "sim_list"]


def rtl_list(layout: Layout) -> str:
    """File list of the core, for synthesis and lint; paths are relative to the folder that it lies in."""
    return f"../{layout.verilog}\n"


def sim_list(layout: Layout) -> str:
    """File list of core and testbench."""
    return f"{rtl_list(layout)}{layout.testbench}\n"


def axis_list(layout: Layout) -> str:
    """File list of the core with both wrappers, types first."""
    return rtl_list(layout) + "".join(f"{stem}.sv\n" for stem in layout.wrappers)


def axis_sim_list(layout: Layout) -> str:
    """The same with the testbench of the AXI4-Stream wrapper."""
    return f"{axis_list(layout)}{layout.axis_testbench_top}.sv\n"


def makefile(layout: Layout) -> str:
    """Makefile with the targets ``icarus``, ``verilator``, ``lint`` and ``clean``.

    ``axis-icarus`` and ``axis-verilator`` are the first two for the AXI4-Stream wrapper.

    The testbenches must run in the folder, where its vectors are; ``make -C`` goes there.
    """
    return filled(
        "Makefile",
        name=layout.config.name,
        top=layout.config.identifier,
        verilog=layout.verilog,
        testbench=layout.testbench,
        testbench_top=layout.testbench_top,
        rtl_list=RTL_LIST,
        sim_list=SIM_LIST,
        waivers=WAIVERS,
        axis=layout.axis,
        axis_testbench_top=layout.axis_testbench_top,
        axis_list=AXIS_LIST,
        axis_sim_list=AXIS_SIM_LIST,
    )
