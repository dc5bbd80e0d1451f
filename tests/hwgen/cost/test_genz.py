"""GenZ (genz-llm), an independent model of time: every difference explained."""

import importlib.util
import sys
from pathlib import Path

import pytest

from hwgen.cost.workloads import model

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def benchmark():
    """The benchmark, which knows how to run GenZ."""
    spec = importlib.util.spec_from_file_location("benchmark_of_genz", ROOT / "benchmarks" / "genz.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its records look themselves up there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("phase", "sequences"), [("decode", 1), ("decode", 16), ("prefill", 1), ("prefill", 4)])
def test_genz_is_hwgens_list_under_its_own_rules(benchmark, phase, sequences):
    """To nine digits: what is left between the two is the steps that follow."""
    pytest.importorskip("GenZ", reason="no GenZ: pip install genz-llm")
    (what, seconds), *_ = benchmark.ladder(phase, sequences)
    assert what == "GenZ's rules, hwgen's list of GEMMs"
    assert benchmark.genz(phase, sequences) == pytest.approx(seconds, rel=1e-9)


def test_the_last_step_is_hwgen(benchmark):
    for phase, sequences in benchmark.RUNS:
        workload = model("llama-3.1-8b", phase, sequences, benchmark.LENGTH)
        cycles = benchmark.hwgen_run(workload).cycles @ workload.count
        assert benchmark.ladder(phase, sequences)[-1][1] == pytest.approx(cycles * benchmark.CLOCK_NS * 1e-9)


def test_every_step_takes_hwgen_nearer_to_what_a_core_can(benchmark):
    """GenZ leaves out what takes time, but for the vocabulary and its GB."""
    for phase, sequences in benchmark.RUNS:
        seconds = [seconds for _, seconds in benchmark.ladder(phase, sequences)]
        assert seconds[1] <= seconds[0]
        assert seconds[1:] == sorted(seconds[1:])


def test_the_documentation_has_these_figures(benchmark):
    text = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")
    rows = [line for line in benchmark.table() if not line.startswith("| GenZ |")]
    assert "\n".join(rows[2:]) in text
    # GenZ's own, which the first step reproduces.
    assert rows[2].replace("GenZ's rules, hwgen's list of GEMMs", "GenZ") in text
