"""Timing analysis and sizing of a core of some 60,000 cells, beside OpenSTA's full timing where it is installed."""

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
from hwgen.files import write_text
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.flow import Design, Flow
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import kernels
from hwgen.timing.analysis import analyse
from hwgen.timing.compiled import compile_timing


def seconds(function: Callable[[], object], times: int = 1) -> float:
    """The least time of some calls."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


def _verilog(netlist: Netlist) -> str:
    """The flat netlist with plain names."""
    ports = {"input": set(), "output": set()}
    for port in netlist.ports.values():
        ports[port.direction].update(port.nets.tolist())
    ports["output"] -= ports["input"] | {0, 1}
    lines = [f"module top ({', '.join(f'n{net}' for nets in ports.values() for net in sorted(nets))});"]
    for direction, nets in ports.items():
        lines += [f"{direction} n{net};" for net in sorted(nets)]
    for group in netlist.groups:
        names = group.cell.inputs + group.cell.outputs
        for cell, inputs, outputs in zip(group.cells, group.inputs, group.outputs, strict=True):
            nets = [f"1'b{net}" if net < 2 else f"n{net}" for net in (*inputs, *outputs)]
            pins = ", ".join(f".{name}({net})" for name, net in zip(names, nets, strict=True))
            lines.append(f"{group.cell.name} c{cell} ({pins});")
    return "\n".join([*lines, "endmodule", ""])


def opensta(netlist: Netlist, period: float) -> float | None:
    """Seconds that OpenSTA takes for timing alone, the netlist being read; None where it is not installed."""
    program = shutil.which("sta")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "top.v").write_text(_verilog(netlist), encoding="utf-8")
        lines = [f"read_liberty {path}" for path in netlist.library.paths]
        lines += [
            "read_verilog top.v",
            "link_design top",
            f"create_clock -period {period / netlist.library.units['time']} n{netlist.clock_net}",
            "set begin [clock microseconds]",
            "report_checks -path_delay max > checks.txt",
            'puts "microseconds [expr [clock microseconds] - $begin]"',
        ]
        (Path(place) / "top.tcl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = subprocess.run(
            [program, "-no_init", "-no_splash", "-exit", "top.tcl"], cwd=place, capture_output=True, text=True
        )
    found = re.search(r"microseconds (\d+)", done.stdout)
    return None if found is None else int(found[1]) * 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--library", choices=libraries.names(), default="generic7")
    parser.add_argument("--config", choices=NAMED, default="nvfp4-small")
    parser.add_argument("--clock", type=float, help="ns; three quarters of the unsized path if not given")
    parser.add_argument("--cache", type=Path, help="directory of synthesis results")
    arguments = parser.parse_args()

    cells = reader.load(libraries.path(arguments.library))
    design, flow, how = Design(NAMED[arguments.config], TensorCore), Flow(cells, arguments.cache), RECIPES["area"]
    jobs = design.plan([how], [0])
    modules = design.assembled(flow.synthesise(jobs, "mapping"), {job.module: how for job in jobs}, 0, cells)
    netlist = link(modules, TensorCore.module_name, cells)
    families = [family for family in cells.families() if len(family) > 1]
    flat = compile_timing(netlist, families=families)
    before = flat.delay
    clock = arguments.clock or 0.75 * before
    figures: dict[str, float | str | None] = {
        "library": arguments.library,
        "configuration": arguments.config,
        "cells": netlist.n_cells,
        "analyse, s": seconds(lambda: analyse(netlist), 3),
        "compiled: arrays, s": seconds(lambda: compile_timing(netlist, families=families)),
        "compiled: full pass, s": seconds(flat.reload, 5),
        "compiled: full pass with slacks, s": seconds(lambda: (flat.reload(), flat.slack(clock)), 5),
    }
    random = np.random.default_rng(1)
    several = [node for node, cell in enumerate(flat.cells()) if cell and len(cells.drives(cell)) > 1]
    chosen = random.choice(several, 1000).tolist()
    flat.change(chosen[0], flat.cell_at(chosen[0]))  # compiles
    changed = seconds(lambda: [flat.change(node, cells.drives(flat.cell_at(node))[-1]) for node in chosen])
    figures["compiled: one change, us"] = 1e6 * changed / len(chosen)
    folded = compile_timing(netlist, classes=classes(netlist).number, families=families)
    figures["folded: nodes"] = len(folded.copies)
    figures["folded: full pass, s"] = seconds(lambda: kernels.forward(folded.graph, folded.kinds.arrays, folded.state))
    size(folded, clock, area_cost(folded), 1)  # compiles
    folded = compile_timing(netlist, classes=classes(netlist).number, families=families)
    figures["sizing, s"] = seconds(lambda: size(folded, clock, area_cost(folded)))
    close(modules, TensorCore.module_name, cells, 10 * before, rounds=1)  # compiles
    started = time.perf_counter()
    closed = close(modules, TensorCore.module_name, cells, clock)
    figures["closure, s"] = time.perf_counter() - started
    figures |= {
        "clock, ns": clock,
        "delay before, ns": before,
        "delay after, ns": closed.record.delay_ns,
        "area before, um2": closed.record.area_before,
        "area after, um2": closed.record.area_after,
        "OpenSTA: full timing, s": opensta(netlist, clock),
    }
    for key, value in figures.items():
        print(f"{key:36s} {f'{value:.4g}' if isinstance(value, float) else value}", flush=True)
    if arguments.json:
        write_text(arguments.json, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
