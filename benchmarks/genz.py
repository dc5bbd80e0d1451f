"""Beside GenZ (genz-llm), an independent model of the same machine: what each difference in time is.

Usage: python benchmarks/genz.py

From the time that GenZ says to the time that hwgen says, one rule after another is changed from GenZ's to hwgen's.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.config import NAMED
from hwgen.cost.gemms import Gemms
from hwgen.cost.grid import GridRun, Memory, arrange, run
from hwgen.cost.results import results_of
from hwgen.cost.workloads import Workload, model

CORE = NAMED["mixfp4-blackwell"]
CORES, CLOCK_NS, DRAM_GB, BUFFER_MIB = 64, 9.6, 819.2, 8
"""64 cores at 104 MHz: 54.6 TFLOP/s. Only time is compared, and that hangs on nothing measured."""

LENGTH = 2048
RUNS = (("decode", 1), ("decode", 16), ("prefill", 1))
"""Phase and sequences of what is compared, Llama 3.1 8B with 2048 tokens each."""

PEAK = 2 * CORES * CORE.macs_per_step / (CLOCK_NS * 1e-9)
_VOCABULARY, _DIMENSION = 128256, 4096
_ON_CHIP_GB = 18000
"""What GenZ takes for the bandwidth of memory on the chip where nothing is said."""

_Floats = NDArray[np.float64]


def has_genz() -> bool:
    """Whether GenZ is installed."""
    return importlib.util.find_spec("GenZ") is not None


def genz(phase: str, sequences: int) -> float:
    """Seconds of a pass as GenZ says."""
    library = importlib.import_module("GenZ")
    # It takes a bit width into account by a factor of the rate that is given: four for FP4.
    system = library.System(flops=PEAK / 4e12, offchip_mem_bw=DRAM_GB, off_chip_mem_size=1 << 20)
    given = {
        "model": "llama3_8b",
        "batch_size": sequences,
        "input_tokens": LENGTH,
        "system_name": system,
        "bits": "fp4",
    }
    found = library.decode_moddeling(**given, Bb=1) if phase == "decode" else library.prefill_moddeling(**given)
    return float(found["Latency"]) * 1e-3


def hwgen_run(workload: Workload) -> GridRun:
    """What hwgen's defaults make of it."""
    memory = Memory(BUFFER_MIB << 20, DRAM_GB * 1e9)
    results = results_of(
        CORE, workload.gemms, workload.roles, workload.operands, workload.readers, "quantised", "fused"
    )
    return run(CORE, workload.gemms, arrange(CORE, workload.gemms, CORES, memory), memory, CLOCK_NS, results)


@dataclass(frozen=True)
class Rules:
    """What GenZ does otherwise; True is its way."""

    vocabulary: bool = True  # the embedding is a product with a matrix, and all tokens have logits (prefill)
    binary: bool = True  # a GB is 2^30 bytes
    four_bits: bool = True  # block scales are left out
    resident: bool = True  # what stays on the chip, and how fast it is read there
    full: bool = True  # all multipliers have work all the time


def _bytes(gemms: Gemms) -> tuple[_Floats, _Floats, _Floats]:
    """Elements of A, B and D, as floats."""
    m, n, k, batch = (getattr(gemms, name).astype(float) for name in ("m", "n", "k", "batch"))
    return m * k * batch, n * k * batch, m * n * batch


def _listed(workload: Workload, rules: Rules, phase: str) -> tuple[Gemms, NDArray[np.int64], list[str]]:
    """Shapes, counts and roles; the vocabulary as GenZ has it in prefill."""
    gemms, count, roles = workload.gemms, workload.count, list(workload.roles)
    if phase == "decode" or not rules.vocabulary:
        return gemms, count, roles
    tokens = workload.tokens
    sizes = {name: getattr(gemms, name).tolist() for name in ("m", "n", "k", "batch")}
    sizes["m"][roles.index("logits")] = tokens
    for name, size in (("m", tokens), ("n", _DIMENSION), ("k", _VOCABULARY), ("batch", 1)):
        sizes[name].append(size)
    return Gemms(*sizes.values()), np.append(count, 1), [*roles, "embedding"]


def roofline(workload: Workload, phase: str, rules: Rules) -> float:
    """Seconds of a pass, where each GEMM takes the longer of arithmetic and memory."""
    gemms, count, roles = _listed(workload, rules, phase)
    ran = hwgen_run(workload)
    giga = 2.0**30 if rules.binary else 1e9
    size = 0.5 if rules.four_bits else 9 / 16
    a, b, d = (each * size for each in _bytes(gemms))
    role = np.array(roles)
    if rules.resident:
        on_chip = np.isin(role, ("linear", "scores", "values")) & (phase == "decode")
        inside = np.where(on_chip | (role == "values"), a, 0) + np.where(on_chip | (role == "scores"), d, 0)
        outside = a + b + d - inside
        memory = outside / (DRAM_GB * giga) + inside / (_ON_CHIP_GB * giga)
    else:
        memory = (ran.dram_read_bytes + ran.dram_write_bytes) / (DRAM_GB * giga)
    compute = 2 * gemms.macs / PEAK if rules.full else ran.core_cycles * CLOCK_NS * 1e-9
    return float(np.maximum(compute, memory) @ count)


STEPS = (
    ("GenZ's rules, hwgen's list of GEMMs", Rules()),
    ("the embedding is no product, one token of a sequence has logits", Rules(vocabulary=False)),
    ("a GB is 1e9 bytes, not 2^30", Rules(False, False)),
    ("4.5 bits an element, not 4: with scales", Rules(False, False, False)),
    ("inputs and results come from DRAM and go there, but scores", Rules(False, False, False, False)),
    ("padded rows, empty steps and the pipeline's fill take cycles", Rules(False, False, False, False, False)),
)


def ladder(phase: str, sequences: int) -> list[tuple[str, float]]:
    """Seconds of a pass after each step from GenZ's rules to hwgen's, hwgen's last."""
    workload = model("llama-3.1-8b", phase, sequences, LENGTH)
    found = [(what, roofline(workload, phase, rules)) for what, rules in STEPS]
    whole = float(hwgen_run(workload).cycles @ workload.count) * CLOCK_NS * 1e-9
    return [*found, ("loads and stores overlap with work phase by phase, not in all: hwgen", whole)]


def table(columns: Sequence[tuple[str, int]] = RUNS) -> list[str]:
    """The steps in ms, as lines of a Markdown table; GenZ's own figure first where it is installed."""
    steps = [ladder(*column) for column in columns]
    header = ["after each step, ms", *(f"{phase}, {sequences}" for phase, sequences in columns)]
    rows = [["GenZ", *(f"{1e3 * genz(*column):.3f}" for column in columns)]] if has_genz() else []
    rows += [[steps[0][row][0], *(f"{1e3 * each[row][1]:.3f}" for each in steps)] for row in range(len(steps[0]))]
    lines = ["| " + " | ".join(row) + " |" for row in (header, ["---", *["---:"] * len(columns)], *rows)]
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
