"""File lists, and a makefile that runs the testbench."""

from __future__ import annotations

from hwgen.package.layout import RTL_LIST, SIM_LIST, WAIVERS, Layout
from hwgen.package.template import filled

__all__ = ["makefile", "rtl_list", "sim_list"]


def rtl_list(layout: Layout) -> str:
    """File list of the core, for synthesis and lint; paths are relative to the folder that it lies in."""
    return f"../{layout.verilog}\n"


def sim_list(layout: Layout) -> str:
    """File list of core and testbench."""
    return f"{rtl_list(layout)}{layout.testbench}\n"


def makefile(layout: Layout) -> str:
    """Makefile with the targets ``icarus``, ``verilator``, ``lint`` and ``clean``.

    The testbench must run in the folder, where its vectors are; ``make -C`` goes there.
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
    )
