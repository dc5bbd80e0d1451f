"""Measure the speed of the golden model's GEMM, and of its hardware quantiser, on one core.

Usage: python benchmarks/golden.py [--json FILE] [--size M N K] [--repeat R]
"""

from __future__ import annotations

import os

# BLAS reads these when numpy loads it.
for _variable in (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
):
    os.environ[_variable] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from contextlib import suppress  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from hwgen.config.named import NAMED  # noqa: E402
from sim import golden, tensors  # noqa: E402

WAYS = {"blackwell": {}, "no empty blocks": {"empty_blocks": "excluded"}, "exact": {"numerics": "exact"}}
"""Arguments of the GEMM, by what the table calls them."""

MIXED = [config for name, config in NAMED.items() if config.a != config.b and name.endswith("-small")]
"""Configurations whose operands have two formats; each is timed in its own way."""


def fastest(call: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest run."""
    seconds = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds


def measure(m: int, n: int, k: int, repeat: int) -> list[dict[str, object]]:
    """Time every format and way to compute that goes with it, and pairs, `repeat` times each; keep the fastest run."""
    rows: list[dict[str, object]] = []

    def row(fmt: str, way: str, seconds: float) -> None:
        speed = m * n * k / seconds
        rows.append({"format": fmt, "way": way, "m": m, "n": n, "k": k, "seconds": seconds, "mac_per_s": speed})

    drawn = [tensors.generate("gaussian", (count, k), seed) for seed, count in enumerate((m, n))]
    for fmt in golden.FORMATS:
        qa, qb = (golden.quantize(x, fmt) for x in drawn)
        for way, arguments in WAYS.items():
            with suppress(golden.ArgumentError):  # the model refuses some formats in some ways
                row(fmt, way, fastest(partial(golden.gemm, qa, qb, **arguments), repeat))
    for config in MIXED:
        qa, qb = (golden.quantize(x, form.name) for x, form in zip(drawn, (config.a, config.b), strict=True))
        own = {"blocks_per_step": config.groups, "fraction_bits": config.fraction_bits}
        row(f"{config.a.name} x {config.b.name}", "blackwell", fastest(partial(golden.gemm, qa, qb, **own), repeat))
    for name, element in golden.UNSCALED_ELEMENTS.items():
        a, b = (element.encode(x / np.abs(x).max() * element.largest) for x in drawn)
        row(name, "unscaled", fastest(partial(golden.unscaled_gemm, a, b, a=name, b=name), repeat))
    return rows


def measure_quantisers(repeat: int) -> list[dict[str, object]]:
    """Time the hardware quantiser of every format, `repeat` times each, and keep the fastest run."""
    x = tensors.generate("gaussian", (512, 4096), 0)
    rows: list[dict[str, object]] = []
    for fmt, rule in golden.QUANTISERS:
        unit = golden.Quantiser(fmt, rule)
        seconds = fastest(partial(unit.quantize, x, unit.tensor_scale(x)), repeat)
        rows.append({"format": fmt, "rule": rule, "seconds": seconds, "numbers_per_s": x.size / seconds})
    return rows


def main() -> None:
    """Print a table; with --json also write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here as well")
    parser.add_argument("--size", type=int, nargs=3, default=(512, 512, 4096), metavar=("M", "N", "K"))
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, of which the fastest counts")
    options = parser.parse_args()
    rows = measure(*options.size, options.repeat)
    print(f"{'format':<33} {'way':<15} {'M x N x K':>16} {'seconds':>9} {'MAC/s':>9}")
    for row in rows:
        size = f"{row['m']} x {row['n']} x {row['k']}"
        speed = f"{row['seconds']:>9.3f} {row['mac_per_s']:>9.2e}"
        print(f"{row['format']:<33} {row['way']:<15} {size:>16} {speed}")
    quantisers = measure_quantisers(options.repeat)
    print(f"\n{'format':<17} {'rule of scales':<15} {'seconds':>9} {'numbers/s':>10}")
    for row in quantisers:
        print(f"{row['format']:<17} {row['rule']:<15} {row['seconds']:>9.3f} {row['numbers_per_s']:>10.2e}")
    if options.json:
        versions = {"python": platform.python_version(), "numpy": np.__version__}
        document = {**versions, "results": rows, "quantisers": quantisers}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
