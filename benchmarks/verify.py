"""Time the parts of a verification run: stimulus, golden model, simulator, coverage; in CPU time and by the clock.

Of a core with a slot, both modes make as many of the multiply-accumulates.

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

PARTS = ("stimulus", "golden", "simulator", "coverage")


def parts(core: Engine, batches: int) -> dict[str, float]:
    """CPU time of each part, in seconds for 1e9 multiply-accumulates, and how many cycles a step takes."""
    config, wanted = core.config, goals(core.config)
    spent = np.zeros(len(PARTS))
    steps = cycles = macs = 0
    for batch in range(batches + 1):
        marks = [time.process_time()]
        stimulus = verify.stimulus_of(config, 0, batch, verify.batch_steps(config))
        marks.append(time.process_time())
        expected = stimulus.steps.trace()
        marks.append(time.process_time())
        run = core.run(stimulus.steps, **stimulus.patterns)
        marks.append(time.process_time())
        given = (stimulus.offer, stimulus.supply, stimulus.take)
        count(wanted, stimulus.steps, expected, run, *(pattern.window(0, run.cycles) for pattern in given))
        marks.append(time.process_time())
        if batch:  # the first one loads and compiles
            spent += np.diff(marks)
            half = int(stimulus.steps.half.sum())
            macs += (2 * len(stimulus.steps) - half) * config.macs_per_step // 2
            steps += len(stimulus.steps)
            cycles += run.cycles
    found = {f"{name}_s": 1e9 * duration / macs for name, duration in zip(PARTS, spent.tolist(), strict=True)}
    return {**found, "sum_s": 1e9 * float(spent.sum()) / macs, "cycles_per_step": cycles / steps}


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
    parser.add_argument(
        "--config", nargs="+", default=["mixfp4-small", "mixfp4-multi-small"], help="names or TOML files"
    )
    parser.add_argument("--macs", type=float, default=1e8, help="multiply-accumulates of the whole run")
    parser.add_argument("--jobs", type=int, default=-1, help="processes of the whole run, -1 for one a core")
    options = parser.parse_args()
    rows = measure(options.config, int(options.macs), options.jobs)
    titles = (*PARTS, "sum")
    width = max(len(str(row["configuration"])) for row in rows)
    print(" " * width, *(f"{title:>9}" for title in titles), "CPU s for 1e9 MAC,  whole run")
    for row in rows:
        split = " ".join(f"{row[f'{title}_s']:>9.1f}" for title in titles)
        print(
            f"{row['configuration']:<{width}} {split} {'':<20} {row['macs']:.1e} MAC in {row['wall_s']:.1f} s"
            f" ({row['engine']}), {row['hit']} of {row['goals']} goals"
        )
    if options.json:
        document = {"python": platform.python_version(), "numpy": np.__version__, "results": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
