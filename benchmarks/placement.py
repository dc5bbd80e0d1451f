"""Time and wirelength of placements, beside Coloquinte's where it is installed: an element, and a small core."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from hwgen.cells import libraries, reader
from hwgen.config import NAMED
from hwgen.files import cache_directory, write_text
from hwgen.layout import lay_out, technology_of
from hwgen.layout.coloquinte import is_installed
from hwgen.layout.place import PLACERS
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.netlist.link import link
from hwgen.rtl.tensor_core import TensorCore


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--library", choices=libraries.names(), default="generic130")
    parser.add_argument("--config", choices=NAMED, default="nvfp4-small")
    arguments = parser.parse_args()

    cells = reader.load(libraries.path(arguments.library))
    design = Design(NAMED[arguments.config], TensorCore)
    jobs = design.plan([RECIPES["area"]], [0])
    bodies = Flow(cells, cache_directory("synthesis")).synthesise(jobs, "synthesis")
    modules = design.assembled(bodies, {job.module: job.recipe for job in jobs}, 0, cells)
    technology = technology_of(cells)
    figures = []
    for top, arrangement in (("element", "flat"), (TensorCore.module_name, "array"), (TensorCore.module_name, "flat")):
        netlist = link(modules, top, cells)
        for placer in PLACERS:
            if placer == "coloquinte" and not is_installed():
                continue
            # The first call of a placer compiles it.
            for _ in range(2 if top == "element" else 1):
                started = time.perf_counter()
                layout = lay_out(netlist, technology, placer=placer, arrangement=arrangement)
                seconds = time.perf_counter() - started
            started = time.perf_counter()
            layout.wires()
            figures.append(
                {
                    "netlist": top,
                    "cells": netlist.n_cells,
                    "arrangement": arrangement,
                    "placer": placer,
                    "placement, s": seconds,
                    "wires, s": time.perf_counter() - started,
                    "half perimeters, um": float(layout.half_perimeter.sum()),
                    "Steiner trees, um": float(layout.length.sum()),
                }
            )
            print("  ".join(value if isinstance(value, str) else f"{value:.6g}" for value in figures[-1].values()))
    if arguments.json:
        write_text(arguments.json, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
