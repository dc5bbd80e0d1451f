"""Time of a power figure once a small core is synthesised: settled values, glitches, energy."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from hwgen.cells import libraries, reader
from hwgen.config import NAMED
from hwgen.files import cache_directory, write_text
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.energy import core_activity, of_activity
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.netlist.link import link
from hwgen.power.glitch import Gates, with_glitches
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import analysis as timing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--library", choices=libraries.names(), default="generic7")
    parser.add_argument("--config", choices=NAMED, default="nvfp4-small")
    arguments = parser.parse_args()

    cells = reader.load(libraries.path(arguments.library))
    config = NAMED[arguments.config]
    design = Design(config, TensorCore)
    jobs = design.plan([RECIPES["area"]], [0])
    bodies = Flow(cells, cache_directory("synthesis")).synthesise(jobs, "synthesis")
    modules = design.assembled(bodies, {job.module: job.recipe for job in jobs}, 0, cells)
    stimulus = Stimulus().fitted(config.macs_per_step)

    marks = [time.perf_counter()]
    netlist = link(modules, TensorCore.module_name, cells)
    its_timing = timing.analyse(netlist)
    marks.append(time.perf_counter())
    gates = Gates(netlist, its_timing)
    settled = core_activity(gates, config, config.formats, stimulus)
    marks.append(time.perf_counter())
    # The first call compiles.
    gates.extra(settled.kept[:1, 0], settled.kept[1:2, 0])
    marks.append(time.perf_counter())
    timed = with_glitches(settled, gates, stimulus.timed)
    marks.append(time.perf_counter())
    of_activity(netlist, its_timing, timed)
    marks.append(time.perf_counter())

    link_s, settle_s, compile_s, glitch_s, energy_s = np.diff(marks).tolist()
    toggles = float(timed.toggles.sum()) * stimulus.timed
    figures = {
        "library": arguments.library,
        "configuration": config.name,
        "link and timing, s": link_s,
        "settled values, s": settle_s,
        "compilation, once, s": compile_s,
        "glitches, s": glitch_s,
        "energy, s": energy_s,
        "cycles, settled": settled.transitions * settled.streams,
        "cycles, with delays": stimulus.timed,
        "transitions per s": toggles / glitch_s,
        "toggles over settled": float(timed.toggles.sum() / settled.toggles.sum()),
    }
    for name, value in figures.items():
        print(f"{name:24s} {value if isinstance(value, (str, int)) else f'{value:10.4g}'}")
    if arguments.json:
        write_text(arguments.json, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
