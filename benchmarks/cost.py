"""Measure the cost model: GEMMs per second, a whole model in both phases, and SCALE-Sim on the same list.

Usage: python benchmarks/cost.py [--json FILE] [--gemms COUNT]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.cost.gemms import Gemms
from hwgen.cost.grid import Memory, arrange, fixed, run
from hwgen.cost.model import CoreCost, EnergyCosts, energy
from hwgen.cost.schedule import schedule
from hwgen.cost.workloads import PHASES, model

CORE = NAMED["mixfp4-blackwell"]
MEMORY = Memory(8 << 20, 819.2e9)
CLOCK_NS = 1.0
CORES = 64
# Any figures will do for the time it takes to use them.
COST = CoreCost(CORE, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)

LIST = [(16, 1024, 4096), (16, 512, 4096), (64, 256, 1024), (4, 2048, 128), (4, 128, 2048), (100, 100, 1000)]
"""M, N, K of GEMMs that SCALE-Sim takes seconds for."""

_CONFIGURATION = """\
[general]
run_name = run
[architecture_presets]
ArrayHeight = {rows}
ArrayWidth = {columns}
IfmapSramSzkB = 4096
FilterSramSzkB = 4096
OfmapSramSzkB = 4096
IfmapOffset = 0
FilterOffset = 100000000
OfmapOffset = 200000000
Dataflow = os
ReadRequestBuffer = 64
WriteRequestBuffer = 64
[layout]
IfmapCustomLayout = False
FilterCustomLayout = False
IfmapSRAMBankBandwidth = 1
IfmapSRAMBankNum = 1
IfmapSRAMBankPort = 1
FilterSRAMBankBandwidth = 1
FilterSRAMBankNum = 1
FilterSRAMBankPort = 1
[sparsity]
SparsitySupport = false
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""

# SCALE-Sim 3.0.0 makes an int of an array of one, which numpy no longer allows.
_SCRIPT = """\
import time
import numpy as np
import scalesim.memory.double_buffered_scratchpad_mem as memory
from scalesim.scale_sim import scalesim
memory.max = lambda *values: np.max(values)
start = time.perf_counter()
scalesim(save_disk_space=True, verbose=False, config="machine.cfg", topology="gemms.csv", layout="layout.csv",
         input_type_gemm=True).run_scale(top_path="out")
print(time.perf_counter() - start)
"""


def has_scalesim() -> bool:
    """Whether SCALE-Sim is installed."""
    return importlib.util.find_spec("scalesim") is not None


def scalesim(
    config: TensorCoreConfig, shapes: list[tuple[int, int, int]]
) -> tuple[list[int], list[int], list[int], float]:
    """Run GEMMs on the systolic array that is nearest to a core.

    That is an output-stationary array of rows x columns, in which a word stands for the 16 G elements of a row that
    one step takes: K is counted in steps.

    Returns
    -------
    cycles, reads of A, reads of B
        Of each GEMM; reads in words.
    seconds
        Without the start of its process.
    """
    steps = [(m, n, -(-k // config.depth)) for m, n, k in shapes]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "machine.cfg").write_text(_CONFIGURATION.format(rows=config.rows, columns=config.columns))
        rows = [f"gemm{number},{m},{n},{k}," for number, (m, n, k) in enumerate(steps)]
        (directory / "gemms.csv").write_text("\n".join(["Layer,M,N,K,", *rows, ""]))
        (directory / "layout.csv").write_text("Layer,\n")
        command = [sys.executable, "-c", _SCRIPT]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)

        def column(report: str, title: str) -> list[int]:
            header, *lines = (directory / "out" / "run" / f"{report}.csv").read_text().splitlines()
            place = [each.strip() for each in header.split(",")].index(title)
            return [int(float(line.split(",")[place])) for line in lines if line.strip()]

        return (
            column("COMPUTE_REPORT", "Total Cycles"),
            column("DETAILED_ACCESS_REPORT", "SRAM IFMAP Reads"),
            column("DETAILED_ACCESS_REPORT", "SRAM Filter Reads"),
            float(done.stdout.split()[-1]),
        )


def seconds(work: Callable[[], object]) -> float:
    """The shortest of five."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def whole_model() -> None:
    """Llama 3.1 70B, prefill and decode, arranged, run and paid for."""
    for phase in PHASES:
        workload = model("llama-3.1-70b", phase, 16, 8192)
        ran = run(CORE, workload.gemms, arrange(CORE, workload.gemms, CORES, MEMORY), MEMORY, CLOCK_NS)
        energy(ran, COST, CLOCK_NS, EnergyCosts())


def measure(count: int) -> dict[str, Any]:
    """All figures."""
    rng = np.random.default_rng(0)
    gemms = Gemms(*(rng.integers(1, high, count) for high in (8192, 30000, 30000, 64)))
    deep = TensorCoreConfig(
        "deep", "mixfp4", "mixfp4", 8, 8, 4, pipeline=("operands", "terms", "aligned", "total", "normal")
    )
    together = fixed(gemms, 1, 8, 8)
    found: dict[str, Any] = {
        "gemms": count,
        "gemms_per_second": {
            "one core": count / seconds(lambda: schedule(CORE, gemms)),
            "one core, T = 4, a step every 3 cycles": count / seconds(lambda: schedule(deep, gemms, 3)),
            "grid, buffer and DRAM, with energy": count
            / seconds(lambda: energy(run(CORE, gemms, together, MEMORY, CLOCK_NS), COST, CLOCK_NS, EnergyCosts())),
            f"arrangement of {CORES} cores": count / seconds(lambda: arrange(CORE, gemms, CORES, MEMORY)),
        },
        "llama_70b_prefill_and_decode_s": seconds(whole_model),
        "scalesim": None,
    }
    if has_scalesim():
        cycles, _, _, took = scalesim(CORE, LIST)
        listed = Gemms.of([(*shape, 1) for shape in LIST])
        ours = seconds(lambda: schedule(CORE, listed))
        found["scalesim"] = {
            "seconds": took,
            "hwgen_seconds": ours,
            "cycles": cycles,
            "hwgen_cycles": schedule(CORE, listed).cycles.tolist(),
        }
    return found


def main() -> None:
    """Print a table; with --json also write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here as well")
    parser.add_argument("--gemms", type=int, default=100_000, help="GEMMs at once")
    options = parser.parse_args()
    found = measure(options.gemms)
    for what, rate in found["gemms_per_second"].items():
        print(f"{what:<40} {rate:>12,.0f} GEMMs/s")
    print(f"{'Llama 3.1 70B, prefill and decode':<40} {found['llama_70b_prefill_and_decode_s']:>12.4f} s")
    compared = found["scalesim"]
    if compared is None:
        print("SCALE-Sim: skipped, the package scalesim is not installed (pip install scalesim)")
    else:
        print(f"{'SCALE-Sim, list of ' + str(len(LIST)):<40} {compared['seconds']:>12.2f} s")
        print(
            f"{'hwgen, the same list':<40} {compared['hwgen_seconds']:>12.6f} s,"
            f" {compared['seconds'] / compared['hwgen_seconds']:,.0f} times as fast"
        )
        print(f"\n{'M x N x K':<20} {'SCALE-Sim':>12} {'hwgen':>12}  cycles")
        for shape, one, other in zip(LIST, compared["cycles"], compared["hwgen_cycles"], strict=True):
            print(f"{' x '.join(map(str, shape)):<20} {one:>12,} {other:>12,}")
    if options.json:
        document = {"python": platform.python_version(), "numpy": np.__version__, "results": found}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
