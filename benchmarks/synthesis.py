"""Time of the steps of ``hwgen compare --as-mapped`` on the small cores: Verilog, synthesis, checks, timing, power."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from hwgen.cells import libraries, reader
from hwgen.config import NAMED
from hwgen.files import write_text
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.overhead import measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--library", choices=libraries.names(), default="generic7")
    parser.add_argument("--runs", type=int, default=1, help="perturbed syntheses of each module")
    arguments = parser.parse_args()

    marks: list[tuple[str, float]] = []
    started = time.perf_counter()
    cells = reader.load(libraries.path(arguments.library))
    marks.append(("Liberty", time.perf_counter()))

    def progress(what: str, done: int, total: int) -> None:
        if done == 0:
            marks.append((f"before {what}", time.perf_counter()))

    pair = NAMED["nvfp4-small"], NAMED["mixfp4-small"]
    measure(*pair, Flow(cells, progress=progress), [RECIPES["area"]], runs=arguments.runs)
    marks.append(("all", time.perf_counter()))

    instants = dict(marks)
    figures = {
        "library": arguments.library,
        "runs": arguments.runs,
        "read Liberty, s": instants["Liberty"] - started,
        "generate Verilog, s": instants["before synthesis"] - instants["Liberty"],
        "synthesise, s": instants["before checks, timing, power"] - instants["before synthesis"],
        "check, time, power, s": instants["all"] - instants["before checks, timing, power"],
        "total, s": instants["all"] - started,
    }
    for name, value in figures.items():
        print(f"{name:24s} {value if isinstance(value, (str, int)) else f'{value:8.2f}'}")
    if arguments.json:
        write_text(arguments.json, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
