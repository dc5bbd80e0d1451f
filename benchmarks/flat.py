"""Area composed of modules against the same design synthesised as one, and what that does to the overhead.

With a clock, both are sized and buffered until they meet it, with wires by fanout.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path

import numpy as np

from hwgen.cells import libraries, reader
from hwgen.closure.close import close
from hwgen.config import NAMED
from hwgen.files import write_text
from hwgen.mapping import area
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.rtl.element import Element
from hwgen.rtl.tensor_core import TensorCore
from hwgen.stats import paired

_TOPS = {"element": Element.module_name, "core": TensorCore.module_name}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--library", choices=libraries.names(), default="generic7")
    parser.add_argument("--scope", choices=_TOPS, default="element", help="a flat core takes five to ten minutes a run")
    parser.add_argument("--recipe", choices=RECIPES, default="area", help="of every module and of the whole")
    parser.add_argument("--clock", type=float, help="period in ns to build for; as mapped by default")
    parser.add_argument("--runs", type=int, default=2, help="perturbed syntheses of each")
    arguments = parser.parse_args()

    cells = reader.load(libraries.path(arguments.library))
    flow = Flow(cells, time_limit=3600)
    top, how = _TOPS[arguments.scope], RECIPES[arguments.recipe]
    areas: dict[tuple[str, str], list[float]] = {}
    slacks: dict[tuple[str, str], float] = {}
    seconds = {}
    for name in ("nvfp4-small", "mixfp4-small"):
        source = Design(NAMED[name], TensorCore).source
        for kind in ("composed", "flat"):
            whole = dataclasses.replace(source, top=top, flat=kind == "flat")
            wanted = area.counts(whole)
            jobs = [job for job in area.plan(kind, whole, [how], range(arguments.runs)) if job.module in wanted]
            started = time.perf_counter()
            bodies = flow.synthesise(jobs, kind)
            seconds[name, kind] = time.perf_counter() - started
            runs = [
                area.buffered({module: bodies[kind, module, how.name, run] for module in wanted}, whole, cells)
                for run in range(arguments.runs)
            ]
            if arguments.clock is None:
                areas[name, kind] = np.sum(list(area.by_run(runs, whole, top, cells).values()), axis=0).tolist()
                continue
            closed = [close(modules, top, cells, arguments.clock) for modules in runs]
            areas[name, kind] = [found.netlist.area for found in closed]
            slacks[name, kind] = min(found.record.slack_ns for found in closed)
    names = ("nvfp4-small", "mixfp4-small")
    overheads = {kind: paired(*(areas[name, kind] for name in names)) for kind in ("composed", "flat")}
    figures = {
        "library": arguments.library,
        "scope": arguments.scope,
        "recipe": how.name,
        "clock, ns": arguments.clock,
        "runs": arguments.runs,
        **{f"{name} {kind}, um2": float(np.mean(found)) for (name, kind), found in areas.items()},
        **{
            f"{name} composed over flat": float(np.mean(areas[name, "composed"]) / np.mean(areas[name, "flat"]) - 1)
            for name in names
        },
        **{f"overhead {kind}": dataclasses.asdict(found) for kind, found in overheads.items()},
        **{f"{name} {kind}, least slack, ns": found for (name, kind), found in slacks.items()},
        **{f"{name} {kind}, s": found for (name, kind), found in seconds.items()},
    }
    for key, value in figures.items():
        print(f"{key:32s} {f'{value:.4f}' if isinstance(value, float) else value}", flush=True)
    if arguments.json:
        write_text(arguments.json, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
