"""Time the parts of a verification run: stimulus, golden model, simulator, coverage; in CPU time and by the clock.

Usage: python benchmarks/verify.py [--json FILE] [--config NAME ...] [--macs N] [--jobs N]
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np

from hwgen.config import resolve
from sim import verify
from sim.engines import Engine, engine
from sim.verify.counting import count
from sim.verify.goals import goals


def parts(core: Engine, batches: int) -> dict[str, float]:
    """CPU time of each part, in microseconds for a step, and how many cycles a step takes."""
    config, wanted = core.config, goals(core.config)
    spent = dict.fromkeys(("stimulus", "golden", "simulator", "coverage"), 0.0)
    steps = cycles = 0
    for batch in range(batches + 1):
        marks = [time.process_time()]
        stimulus = verify.stimulus_of(config, 0, batch, verify.batch_steps(config))
        marks.append(time.process_time())
        expected = stimulus.steps.trace()
        marks.append(time.process_time())
        run = core.run(stimulus.steps, **stimulus.patterns)
        marks.append(time.process_time())
        offered, taken = (pattern.window(0, run.cycles) for pattern in (stimulus.offer, stimulus.take))
        count(wanted, stimulus.steps, expected, run, offered, taken)
        marks.append(time.process_time())
        if batch:  # the first one loads and compiles
            for name, duration in zip(spent, np.diff(marks), strict=True):
                spent[name] += duration
            steps += len(stimulus.steps)
            cycles += run.cycles
    found = {f"{name}_us": 1e6 * duration / steps for name, duration in spent.items()}
    return {**found, "cycles_per_step": cycles / steps}


def measure(names: list[str], macs: int, jobs: int) -> list[dict[str, object]]:
    """Time the parts, and a whole run, of every configuration."""
    rows: list[dict[str, object]] = []
    for name in names:
        core = engine(resolve(name))
        batch = verify.batch_steps(core.config) * core.config.macs_per_step
        split = parts(core, max(1, min(20, macs // batch)))
        start = time.perf_counter()
        outcome = verify.verify(core, macs, workers=jobs)
        took = time.perf_counter() - start
        summary = outcome.as_dict()
        row = {"configuration": name, "engine": core.name, **split, "macs": outcome.macs, "wall_s": took}
        kept = ("goals", "hit", "complete_after_macs", "mismatch")
        rows.append({**row, "mac_per_s": outcome.macs / took, **{key: summary[key] for key in kept}})
    return rows


def main() -> None:
    """Print a table; with --json also write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here as well")
    parser.add_argument("--config", nargs="+", default=["nvfp4-small", "mixfp4-small"], help="names or TOML files")
    parser.add_argument("--macs", type=float, default=1e8, help="multiply-accumulates of the whole run")
    parser.add_argument("--jobs", type=int, default=-1, help="processes of the whole run, -1 for one a core")
    options = parser.parse_args()
    rows = measure(options.config, int(options.macs), options.jobs)
    units = ("stimulus_us", "golden_us", "simulator_us", "coverage_us")
    titles = ("stimulus", "golden", "simulator", "coverage")
    print(f"{'configuration':<18} {'engine':<9}", *(f"{title:>9}" for title in titles), "us/step,  whole run")
    for row in rows:
        split = " ".join(f"{row[unit]:>9.2f}" for unit in units)
        goals_hit = f"{row['hit']} of {row['goals']} goals"
        print(
            f"{row['configuration']:<18} {row['engine']:<9} {split}           {row['macs']:.1e} MAC in"
            f" {row['wall_s']:.1f} s, {goals_hit}"
        )
    if options.json:
        document = {"python": platform.python_version(), "numpy": np.__version__, "results": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
