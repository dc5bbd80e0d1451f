"""Many tiles at once are the tiles one after the other."""

import dataclasses

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from sim.steps import random_steps
from sim.verify.reference import trace

CORES = [
    TensorCoreConfig("core", "mixfp4", 2, 3, 2, rounding="nearest_even"),
    TensorCoreConfig("core", "nvfp4", 1, 1, 1),
    TensorCoreConfig("core", "mixfp4", 3, 2, 1, tags="weights", pipeline=("total",)),
    TensorCoreConfig("core", "mixfp4", 1, 1, 1, pipeline=("aligned", "total", "normal"), fraction_bits=38),
    TensorCoreConfig("core", "mixfp4", 2, 3, 1, numerics="exact"),
    TensorCoreConfig("core", "mixfp4", 40, 1, 2, tags="weights", numerics="exact"),
]


@pytest.mark.parametrize("core", CORES)
def test_results_are_those_of_the_steps(core):
    steps = random_steps(core, 300 if core.rows < 40 else 40, np.random.default_rng(0))
    found = trace(steps)
    np.testing.assert_array_equal(found.results, steps.expected())
    np.testing.assert_array_equal(found.c[steps.first], steps.c[steps.first])


def test_a_step_adds_to_the_result_before_it():
    steps = random_steps(CORES[2], 200, np.random.default_rng(1))
    steps = dataclasses.replace(steps, last=np.ones(200, bool))
    found = trace(steps)
    chained = np.flatnonzero(~steps.first)
    assert len(chained) > 20
    np.testing.assert_array_equal(found.c[chained], found.results[chained - 2])


def test_no_results():
    steps = random_steps(CORES[4], 5, np.random.default_rng(2))
    assert trace(dataclasses.replace(steps, last=np.zeros(5, bool))).results.shape == (0, 2, 3)


def test_too_deep_for_an_exact_core():
    core = TensorCoreConfig("core", "nvfp4", 1, 1, 1, numerics="exact", largest_depth=4096)
    steps = random_steps(core, 300, np.random.default_rng(3))
    steps.first[1:] = False
    with pytest.raises(InputError, match="K = 4800: core accumulates exactly up to K = 4096"):
        trace(steps)
