"""Measure the speed of the golden model's GEMM on one core.

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
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from sim import golden, tensors  # noqa: E402

WAYS = {"blackwell": {}, "no empty blocks": {"empty_blocks": "excluded"}, "exact": {"numerics": "exact"}}
"""Arguments of the GEMM, by what the table calls them."""


def measure(m: int, n: int, k: int, repeat: int) -> list[dict[str, object]]:
    """Time every format and way to compute, `repeat` times each, and keep the fastest run."""
    rows: list[dict[str, object]] = []
    for fmt in golden.FORMATS:
        qa = golden.quantize(tensors.generate("gaussian", (m, k), 0), fmt)
        qb = golden.quantize(tensors.generate("gaussian", (n, k), 1), fmt)
        for way, arguments in WAYS.items():
            seconds = float("inf")
            for _ in range(repeat):
                start = time.perf_counter()
                golden.gemm(qa, qb, **arguments)
                seconds = min(seconds, time.perf_counter() - start)
            rows.append(
                {
                    "format": fmt,
                    "way": way,
                    "m": m,
                    "n": n,
                    "k": k,
                    "seconds": seconds,
                    "mac_per_s": m * n * k / seconds,
                }
            )
    return rows


def main() -> None:
    """Print a table; with --json also write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here as well")
    parser.add_argument("--size", type=int, nargs=3, default=(512, 512, 4096), metavar=("M", "N", "K"))
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, of which the fastest counts")
    options = parser.parse_args()
    rows = measure(*options.size, options.repeat)
    print(f"{'format':<8} {'way':<15} {'M x N x K':>16} {'seconds':>9} {'MAC/s':>9}")
    for row in rows:
        size = f"{row['m']} x {row['n']} x {row['k']}"
        speed = f"{row['seconds']:>9.3f} {row['mac_per_s']:>9.2e}"
        print(f"{row['format']:<8} {row['way']:<15} {size:>16} {speed}")
    if options.json:
        document = {"python": platform.python_version(), "numpy": np.__version__, "results": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
