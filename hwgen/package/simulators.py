"""File lists, and a makefile that runs the testbench."""

from __future__ import annotations

from hwgen.package.layout import Layout

__all__ = ["makefile", "rtl_list", "sim_list"]


def rtl_list(layout: Layout) -> str:
    """File list of the core, for synthesis and lint; paths are relative to the folder that it lies in."""
    return f"../{layout.verilog}\n"


def sim_list(layout: Layout) -> str:
    """File list of core and testbench."""
    return f"{rtl_list(layout)}{layout.testbench}\n"


def makefile(layout: Layout) -> str:
    """Makefile with the targets ``icarus``, ``verilator``, ``lint`` and ``clean``.

    The testbench wants to be run where its vectors lie: in the folder, which ``make -C`` goes to.
    """
    top = layout.testbench_top
    return f"""\
# {layout.config.name}: make icarus | verilator | lint | clean
# ARGS=+steps=8 runs the first eight steps only. Verilator has to be 5.006 or newer, with a C++20 compiler.

IVERILOG ?= iverilog
VVP ?= vvp
VERILATOR ?= verilator
ARGS ?=

.DELETE_ON_ERROR:
.PHONY: icarus verilator lint clean

icarus: build/{top}.vvp
	$(VVP) -n $< $(ARGS)

verilator: build/verilator/V{top}
	./$< $(ARGS)

lint:
	$(VERILATOR) --lint-only -Wall lint.vlt -f rtl.f --top-module {layout.config.identifier}
	$(VERILATOR) --lint-only --timing -Wall lint.vlt -f sim.f --top-module {top}

clean:
	rm -rf build

build/{top}.vvp: sim.f ../{layout.verilog} {layout.testbench}
	mkdir -p build
	$(IVERILOG) -g2012 -Wall -s {top} -o $@ -c sim.f

build/verilator/V{top}: lint.vlt sim.f ../{layout.verilog} {layout.testbench}
	mkdir -p build
	$(VERILATOR) --binary --timing -Wall $(VERILATOR_FLAGS) -Mdir build/verilator lint.vlt -f sim.f --top-module {top}
"""
