"""Timing analysis, sizing and closure of a placed core of some 60,000 cells, beside OpenSTA where it is installed."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hwgen.cells import libraries, reader
from hwgen.closure.classes import classes
from hwgen.closure.close import close
from hwgen.closure.sizing import area_cost, size
from hwgen.config import NAMED
from hwgen.files import cache_directory, write_text
from hwgen.layout import lay_out, technology_of
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.clock import usual
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.netlist.export import netlist_verilog
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import kernels
from hwgen.timing.analysis import Timing, analyse
from hwgen.timing.compiled import compile_timing
from hwgen.timing.export import sdc, spef

RECIPE = "speed"


def seconds(function: Callable[[], object], times: int = 1) -> float:
    """The least time of some calls."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


def opensta(netlist: Netlist, timing: Timing, clock: float) -> dict[str, float]:
    """What OpenSTA takes to read a netlist and its wires, and for its timing, s; and its worst slack, ns."""
    program = shutil.which("sta")
    if program is None:
        return {}
    with tempfile.TemporaryDirectory() as place:
        texts = {
            "top.v": netlist_verilog(netlist),
            "top.sdc": sdc(netlist, timing, clock),
            "top.spef": spef(netlist, timing.wires),
        }
        lines = [
            *(f"read_liberty {path}" for path in netlist.library.paths),
            "set begin [clock microseconds]",
            "read_verilog top.v",
            f"link_design {netlist.top}",
            "read_sdc top.sdc",
            "read_spef top.spef",
            "set read [clock microseconds]",
            # The default calculator makes slews longer at the least resistance of a wire.
            "set_delay_calculator arnoldi",
            "report_checks -path_delay max > checks.txt",
            'puts "microseconds [expr $read - $begin] [expr [clock microseconds] - $read]"',
            "report_worst_slack -digits 6",
        ]
        for name, text in (*texts.items(), ("top.tcl", "\n".join(lines) + "\n")):
            (Path(place) / name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [program, "-no_init", "-no_splash", "-exit", "top.tcl"], cwd=place, capture_output=True, text=True
        )
    times = re.search(r"microseconds (\d+) (\d+)", done.stdout)
    slack = re.search(r"worst slack (?:max )?(-?[\d.]+)", done.stdout)
    if times is None or slack is None:  # some releases end on some netlists
        return {}
    return {
        "OpenSTA: netlist and wires, s": int(times[1]) * 1e-6,
        "OpenSTA: full timing, s": int(times[2]) * 1e-6,
        "OpenSTA: longest path, ns": clock - float(slack[1]) * netlist.library.units["time"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--library", choices=libraries.names(), default="generic7")
    parser.add_argument("--config", choices=NAMED, default="nvfp4-small")
    parser.add_argument("--clock", type=float, help="ns; the library's usual one if not given")
    arguments = parser.parse_args()

    cells = reader.load(libraries.path(arguments.library))
    design, how = Design(NAMED[arguments.config], TensorCore), RECIPES[RECIPE]
    jobs = design.plan([how], [0])
    bodies = Flow(cells, cache_directory("synthesis")).synthesise(jobs, "mapping")
    modules = design.assembled(bodies, {job.module: how for job in jobs}, 0, cells)
    netlist = link(modules, TensorCore.module_name, cells)
    families = [family for family in cells.families() if len(family) > 1]
    clock = arguments.clock or usual(cells)
    layout = lay_out(netlist, technology_of(cells))
    wires = layout.wires()

    flat = compile_timing(netlist, wires=wires, families=families)
    before = analyse(netlist, wires=wires)
    figures: dict[str, float | str] = {
        "library": arguments.library,
        "configuration": arguments.config,
        "cells": netlist.n_cells,
        "analyse, s": seconds(lambda: analyse(netlist, wires=wires), 3),
        "compiled: arrays, s": seconds(lambda: compile_timing(netlist, wires=wires, families=families)),
        "compiled: full pass, s": seconds(flat.reload, 5),
        "compiled: full pass with slacks, s": seconds(lambda: (flat.reload(), flat.slack(clock)), 5),
    }
    random = np.random.default_rng(1)
    several = [(node, cell) for node, cell in enumerate(flat.cells()) if cell and len(cells.drives(cell)) > 1]
    chosen = [several[place] for place in random.integers(len(several), size=1000)]
    flat.change(*chosen[0])  # compiles
    changed = seconds(lambda: [flat.change(node, cells.drives(cell)[-1]) for node, cell in chosen])
    figures["compiled: one change, us"] = 1e6 * changed / len(chosen)
    folded = compile_timing(netlist, wires=wires, classes=classes(netlist).number, families=families)
    figures["folded: nodes"] = len(folded.copies)
    figures["folded: full pass, s"] = seconds(lambda: kernels.forward(folded.graph, folded.kinds.arrays, folded.state))
    size(folded, clock, area_cost(folded), 2)  # compiles
    folded = compile_timing(netlist, wires=wires, classes=classes(netlist).number, families=families)
    figures["sizing, s"] = seconds(lambda: size(folded, clock, area_cost(folded)))
    close(modules, TensorCore.module_name, cells, 10 * before.delay, layout=layout, rounds=1)  # compiles
    started = time.perf_counter()
    closed = close(modules, TensorCore.module_name, cells, clock, layout=layout)
    figures |= {
        "closure, placed, s": time.perf_counter() - started,
        "clock, ns": clock,
        "longest path before, ns": before.delay,
        "longest path after, ns": closed.record.delay_ns,
        "area before, um2": closed.record.area_before,
        "area after, um2": closed.record.area_after,
        **opensta(closed.netlist, closed.timing, clock),
    }
    for key, value in figures.items():
        print(f"{key:36s} {f'{value:.4g}' if isinstance(value, float) else value}", flush=True)
    if arguments.json:
        write_text(arguments.json, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
