"""Steps drawn at random."""

from dataclasses import replace

import numpy as np
import pytest

from hwgen.config import LOOP_REGISTERS, NAMED, TensorCoreConfig
from hwgen.formats import BLOCK_FORMATS
from sim.random import decoded, negated, random_steps, sums

CONFIG = TensorCoreConfig("x", "mixfp4", "mixfp4", 3, 2, 2)


def drawn(count, seed=0, config=CONFIG):
    return random_steps(config, count, np.random.default_rng(seed))


def test_random_steps_are_repeatable():
    np.testing.assert_array_equal(drawn(50, 1).packed(), drawn(50, 1).packed())
    assert (drawn(50, 1).packed() != drawn(50, 2).packed()).any()


@pytest.mark.parametrize("turns", [1, 4])
def test_random_steps_start_and_end_whole(turns):
    for seed in range(5):
        for count in (1, 2, 33):
            steps = drawn(
                count, seed, TensorCoreConfig("x", "mixfp4", "mixfp4", 3, 2, 2, pipeline=LOOP_REGISTERS[: turns - 1])
            )
            assert len(steps) == count
            assert steps.first[:turns].all()
            assert steps.last[-1]


@pytest.mark.parametrize("form", BLOCK_FORMATS.values(), ids=BLOCK_FORMATS)
def test_numbers_have_a_negative(form):
    """The largest of the first element among them, on which sums of either sign depend."""
    values = form.elements[0].values
    others = negated(form)
    opposite = [np.isfinite(value) and values[other] == -value for value, other in zip(values, others, strict=True)]
    largest = max(range(len(values)), key=lambda code: values[code] if np.isfinite(values[code]) else 0)
    assert opposite[largest]
    # All but two at most: a special value, and the most negative integer.
    assert sum(opposite) + sum(not np.isfinite(value) for value in values) >= len(values) - 2


def test_random_steps_reach_the_corners():
    steps = drawn(4000)
    bytes_ = np.concatenate([steps.a_scales.ravel(), steps.b_scales.ravel()])
    assert set(bytes_.tolist()) == set(range(256))
    assert 0.0005 < np.mean(bytes_ & 0x7F == 0x7F) < 0.02
    assert set(steps.a_codes.ravel().tolist()) == set(range(16))

    magnitude = steps.c & 0x7FFFFFFF
    for kind in (magnitude > 0x7F800000, magnitude == 0x7F800000, steps.c == 0x80000000, (magnitude - 1) < 0x7FFFFF):
        assert kind.any()
    # A block scale's exponent counts from field 1; the tag adds one.
    exponents = [np.maximum(s >> 3 & 15, 1) - 7 + (s >> 7) for s in (steps.a_scales, steps.b_scales)]
    largest = (exponents[0][:, :, None].astype(int) + exponents[1][:, None]).max(axis=-1)
    distances = (magnitude >> 23).astype(int) - 127 - largest
    assert set(range(-50, 50)) <= set(distances.ravel().tolist())

    results = steps.expected()
    chains = np.diff(np.flatnonzero(steps.first))
    assert 1 in chains
    assert chains.max() > 8
    assert 0.01 < np.mean(results == 0) < 0.2
    assert 0.01 < np.mean(results == 0x7FFFFFFF) < 0.2


@pytest.mark.parametrize("name", ["nvfp4-small", "mixfp4-multi-small", "w4a8-small", "int8-small", "hif4-small"])
def test_random_steps_have_sums_near_the_largest(name):
    """Of both signs, and not those alone that equal codes give."""
    config = replace(NAMED[name], rows=1, columns=1)
    steps = drawn(20_000, 0, config)
    rows = [
        decoded(form, codes, np.full_like(scales, 0x38))[:, 0]
        for form, codes, scales in (
            (config.a, steps.a_codes, steps.a_scales),
            (config.b, steps.b_codes, steps.b_scales),
        )
    ]
    sums = np.einsum("sk,sk->s", *rows)[~steps.half]
    far = 0.25 * abs(sums).max()
    assert min(len(np.unique(sums[sums > far])), len(np.unique(sums[sums < -far]))) > 30
    assert min(np.sum(sums > far), np.sum(sums < -far)) > 0.01 * len(sums)


def test_random_steps_are_no_longer_than_an_exact_core_allows():
    config = TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 8, numerics="exact", largest_depth=4096)
    assert config.largest_steps == 32
    steps = drawn(20_000, 0, config)
    assert np.diff(np.flatnonzero(steps.first)).max() <= 32


@pytest.mark.parametrize("name", ["mixfp4-small", "l-mul-small"])
def test_sums_of_no_steps(name):
    """A batch may have none of some kind."""
    config = NAMED[name]
    none = [steps[:0] for steps in (drawn(1, 0, config).a_codes, drawn(1, 0, config).a_scales)]
    assert sums(config, none, none).shape == (0, config.rows, config.rows)
