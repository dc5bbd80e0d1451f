"""Measure both simulators of a tensor core: cycles per second, and the time to build the compiled one.

Usage: python benchmarks/simulation.py [--json FILE] [--config NAME ...] [--seconds S]
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hwgen.config import resolve
from sim.engines import AmaranthEngine, CompiledEngine, Engine, available, compiled
from sim.steps import Steps, random_steps


def timed(make: Callable[[], Engine]) -> tuple[Engine, float]:
    """Make an engine and say how long it took."""
    start = time.perf_counter()
    engine = make()
    return engine, time.perf_counter() - start


def cycles_per_second(engine: Engine, steps: Steps, seconds: float) -> float:
    """Run more and more of the steps until a run takes long enough."""
    engine.run(steps[:1])
    count = 8
    while True:
        repeated = steps[np.resize(np.arange(len(steps)), count)]
        start = time.perf_counter()
        cycles = engine.run(repeated).cycles
        took = time.perf_counter() - start
        if took >= seconds:
            return cycles / took
        count = int(count * min(8, 1.2 * seconds / took + 1))


def measure(names: list[str], seconds: float) -> list[dict[str, object]]:
    """Time both engines of every configuration."""
    rows: list[dict[str, object]] = []
    for name in names:
        config = resolve(name)
        steps = random_steps(config, 256, np.random.default_rng(0))
        engine, build = timed(lambda config=config: AmaranthEngine(config))  # type: ignore[misc]
        speed = cycles_per_second(engine, steps, seconds)
        row = {"configuration": name, "engine": "python", "build_s": build, "warm_build_s": build}
        rows.append({**row, "cycles_per_s": speed, "mac_per_s": speed * config.macs_per_step})
        if available():
            engine, build = timed(lambda config=config: CompiledEngine(config))  # type: ignore[misc]
            _, warm = timed(lambda config=config: CompiledEngine(config))  # type: ignore[misc]
            speed = cycles_per_second(engine, steps, seconds)
            row = {"configuration": name, "engine": "compiled", "build_s": build, "warm_build_s": warm}
            rows.append({**row, "cycles_per_s": speed, "mac_per_s": speed * config.macs_per_step})
    return rows


def main() -> None:
    """Print a table; with --json also write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here as well")
    parser.add_argument("--config", nargs="+", default=["nvfp4-small", "mixfp4-small"], help="names or TOML files")
    parser.add_argument("--seconds", type=float, default=2.0, help="least duration of a run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as empty:
        compiled.cache_directory = lambda name: Path(empty)
        rows = measure(options.config, options.seconds)
    print(f"{'configuration':<18} {'engine':<9} {'build/s':>8} {'warm/s':>8} {'cycles/s':>10} {'MAC/s':>9}")
    for row in rows:
        times = f"{row['build_s']:>8.2f} {row['warm_build_s']:>8.2f}"
        print(
            f"{row['configuration']:<18} {row['engine']:<9} {times}"
            f" {row['cycles_per_s']:>10.0f} {row['mac_per_s']:>9.2e}"
        )
    if options.json:
        document = {"python": platform.python_version(), "numpy": np.__version__, "results": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
