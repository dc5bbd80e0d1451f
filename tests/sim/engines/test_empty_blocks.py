"""Blocks whose sum is zero, in and out of the largest exponent: every bit of every result."""

import dataclasses

import numpy as np
import pytest

from hwgen.config import LOOP_REGISTERS, TensorCoreConfig
from sim import golden
from sim.random import random_chains


def core(groups, pipeline, empty_blocks="excluded", form="mixfp4", **more):
    return TensorCoreConfig("empty", form, form, 2, 2, groups, pipeline=pipeline, empty_blocks=empty_blocks, **more)


def with_empty_blocks(config, count, seed):
    """Chains in which half of the blocks of A are zero under large scales, and the rest of a step is small."""
    rng = np.random.default_rng(seed)
    steps = random_chains(config, count, rng, first=0.5, last=0.7)
    empty = rng.random(steps.a_scales.shape) < 0.5
    zero = np.repeat(empty, golden.BLOCK, axis=-1)
    a_codes = np.where(zero, steps.a_codes & 8, steps.a_codes)
    a_scales = np.where(empty, rng.integers(0x60, 0x7F, empty.shape), rng.integers(0, 0x20, empty.shape))
    b_scales = rng.integers(0, 0x30, steps.b_scales.shape)
    c = steps.c & np.uint32(0x80FFFFFF) | rng.integers(0x54, 0x7C, steps.c.shape, np.uint32) << np.uint32(23)
    return dataclasses.replace(
        steps, a_codes=a_codes, a_scales=a_scales.astype(np.uint8), b_scales=b_scales.astype(np.uint8), c=c
    )


@pytest.mark.parametrize(
    ("groups", "pipeline", "more"),
    [
        (1, (), {}),
        (4, ("decoded", "sums", "terms"), {}),
        (3, ("sums", *LOOP_REGISTERS), {"rounding": "nearest_even"}),
        (4, ("terms", "total"), {"form": "nvint4"}),
    ],
)
def test_compiled(groups, pipeline, more, compiled):
    config = core(groups, pipeline, **more)
    steps = with_empty_blocks(config, 3000, groups)
    wanted = steps.expected()
    np.testing.assert_array_equal(compiled(config).run(steps).results, wanted)
    included = dataclasses.replace(steps, config=core(groups, pipeline, "included", **more))
    assert (included.expected() != wanted).mean() > 0.05


def test_python(python):
    config = core(2, ("sums", "total"))
    steps = with_empty_blocks(config, 60, 7)
    np.testing.assert_array_equal(python(config).run(steps).results, steps.expected())


@pytest.mark.parametrize("c", [0x00000001, 0x80000000, 0x807FFFFF, 0x3F800001, 0x00800000])
def test_only_empty_blocks_leave_c_as_it_is(c, python):
    """Where they take part, they cut it."""
    config = core(1, ())
    steps = random_chains(config, 1, np.random.default_rng(0))
    steps = dataclasses.replace(
        steps,
        a_codes=steps.a_codes & 8,
        a_scales=np.full_like(steps.a_scales, 0x7E),
        b_scales=np.full_like(steps.b_scales, 0x7E),
        c=np.full_like(steps.c, c),
        first=np.array([True]),
    )
    assert set(python(config).run(steps).results.flat) == {c if c & 0x7FFFFFFF else 0}
    included = dataclasses.replace(steps, config=core(1, (), "included"))
    assert set(included.expected().flat) == {0x3F800000 if c == 0x3F800001 else 0}
