"""Many tiles at once are the tiles one after the other."""

import dataclasses

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from sim import golden
from sim.random import random_steps

CORES = [
    TensorCoreConfig("core", "mixfp4", "mixfp4", 2, 3, 2, rounding="nearest_even"),
    TensorCoreConfig("core", "nvfp4", "nvfp4", 1, 1, 1),
    TensorCoreConfig("core", "nvfp4", "mixfp4", 3, 2, 1, pipeline=("total",)),
    TensorCoreConfig("core", "mixfp4", "mixfp4", 1, 1, 1, pipeline=("aligned", "total", "normal"), fraction_bits=38),
    TensorCoreConfig("core", "mixfp4", "mixfp4", 2, 3, 1, numerics="exact"),
    TensorCoreConfig("core", "nvfp4", "mixfp4", 40, 1, 2, numerics="exact"),
    TensorCoreConfig("core", "nvint4", "mixfp4", 2, 2, 2, pipeline=("normal",)),
    TensorCoreConfig("core", "nvint4", "nvint4", 2, 2, 2, numerics="exact"),
]


def one_by_one(steps):
    """Results, a call of the golden model for each step; for each tile where it is rounded once."""
    config = steps.config
    a_scales, b_scales = (
        scales & (0xFF if form.tagged else 0x7F)
        for form, scales in zip(config.formats, (steps.a_scales, steps.b_scales), strict=True)
    )
    slots = [np.zeros(steps.c.shape[1:], np.float32)] * config.interleave
    results, begin = [], 0
    for index in range(len(steps)):
        slot = index % config.interleave
        begin = index if steps.first[index] else begin
        if config.exact:
            part = slice(begin, index + 1)
            a, b = (
                golden.QuantizedTensor(np.hstack(codes[part]), np.hstack(scales[part]), np.float32(1), form.name)
                for codes, scales, form in (
                    (steps.a_codes, a_scales, config.a),
                    (steps.b_codes, b_scales, config.b),
                )
            )
            if steps.last[index]:
                c = steps.c[begin].view(np.float32)
                results.append(golden.accumulate(a, b, c, numerics="exact").view(np.uint32))
            continue
        slots[slot] = golden.step(
            steps.a_codes[index],
            a_scales[index],
            steps.b_codes[index],
            b_scales[index],
            steps.c[index].view(np.float32) if steps.first[index] else slots[slot],
            fraction_bits=config.fraction_bits,
            rounding=config.rounding,
            a=config.a.name,
            b=config.b.name,
        )
        if steps.last[index]:
            results.append(slots[slot].view(np.uint32))
    return np.array(results)


@pytest.mark.parametrize("core", CORES)
def test_results_are_those_of_the_steps(core):
    steps = random_steps(core, 300 if core.rows < 40 else 40, np.random.default_rng(0))
    found = steps.trace()
    np.testing.assert_array_equal(found.results, one_by_one(steps))
    np.testing.assert_array_equal(found.results, steps.expected())
    np.testing.assert_array_equal(found.c[steps.first], steps.c[steps.first])


def test_a_step_adds_to_the_result_before_it():
    steps = random_steps(CORES[2], 200, np.random.default_rng(1))
    steps = dataclasses.replace(steps, last=np.ones(200, bool))
    found = steps.trace()
    chained = np.flatnonzero(~steps.first)
    assert len(chained) > 20
    np.testing.assert_array_equal(found.c[chained], found.results[chained - 2])


def test_slots_without_a_tile_are_zero():
    steps = random_steps(CORES[3], 40, np.random.default_rng(4))
    steps.first[:6] = False
    steps = dataclasses.replace(steps, last=np.ones(40, bool))
    np.testing.assert_array_equal(steps.expected(), one_by_one(steps))


def test_no_results():
    steps = random_steps(CORES[4], 5, np.random.default_rng(2))
    assert dataclasses.replace(steps, last=np.zeros(5, bool)).trace().results.shape == (0, 2, 3)


def test_too_deep_for_an_exact_core():
    core = TensorCoreConfig("core", "nvfp4", "nvfp4", 1, 1, 1, numerics="exact", largest_depth=4096)
    steps = random_steps(core, 300, np.random.default_rng(3))
    steps.first[1:] = False
    with pytest.raises(InputError, match="K = 4800: core accumulates exactly up to K = 4096"):
        steps.trace()
