"""SCALE-Sim, an independent simulator of systolic arrays: every difference explained."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.cost.gemms import Gemms
from hwgen.cost.schedule import schedule

pytest.importorskip("scalesim", reason="no SCALE-Sim: pip install scalesim")


@pytest.fixture(scope="module")
def benchmark():
    """The benchmark, which knows how to run SCALE-Sim."""
    path = Path(__file__).parents[3] / "benchmarks" / "cost.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_cost", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHAPES = [(16, 24, 640), (5, 9, 200), (1, 64, 1280), (8, 8, 64), (40, 3, 1), (17, 17, 129), (1, 1, 4096)]


@pytest.mark.parametrize(
    "config",
    [
        # SCALE-Sim knows no tiles that take turns.
        replace(NAMED["nvfp4-blackwell"], pipeline=("decoded", "sums", "terms")),
        replace(NAMED["mixfp4-small"], pipeline=("decoded", "sums")),
        TensorCoreConfig("wide", "nvfp4", "nvfp4", 2, 16, 2, pipeline=()),
    ],
    ids=lambda config: config.name,
)
def test_every_difference_in_cycles_and_reads(benchmark, config):
    cycles, reads_a, reads_b, _ = benchmark.scalesim(config, SHAPES)
    gemms = Gemms.of([(*shape, 1) for shape in SHAPES])
    ours = schedule(config, gemms)
    # A systolic array passes operands on from element to element: the last one gets its first R + C - 2 cycles after
    # the first. SCALE-Sim begins a tile when the one before has left. The core hands every row to all elements
    # at once, tiles follow one another without a break, and its pipeline is drained once, at the end.
    skew = ours.tiles * (config.rows + config.columns - 2)
    # SCALE-Sim gives the number of the last cycle, counted from 0.
    last = 1
    # A core without a register before its loop takes C in a cycle of its own, once; SCALE-Sim knows no C.
    waits = config.entrance == 0
    np.testing.assert_array_equal(np.array(cycles), ours.cycles - config.latency - waits + skew - last)
    # It does not read what is padding: a core's rows are read whether they are used or not.
    deep = -(-gemms.k // config.depth)
    across, down = -(-gemms.n // config.columns), -(-gemms.m // config.rows)
    padded_a = (down * config.rows - gemms.m) * deep * across
    padded_b = (across * config.columns - gemms.n) * deep * down
    bytes_of_a_word = config.groups * 9
    assert (ours.operand_bytes == (np.array(reads_a) + padded_a + reads_b + padded_b) * bytes_of_a_word).all()
