"""What is drawn of steps at half the rate."""

import numpy as np
import pytest

from hwgen.config import NAMED
from sim.random import count_at_half_rate, random_steps, unscaled_values
from sim.steps import elements
from sim.verify.half_stimulus import _OF_SCALES, _PURPOSES, draw_half_rate
from sim.verify.stimulus import draw

CONFIG = NAMED["nvfp4-multi-small"]
SCALED = NAMED["nvfp4-mx-multi-small"]


@pytest.mark.parametrize("count", [1, 2, 3, 50, 4096])
def test_both_modes_do_as_many_products(count):
    steps = draw(CONFIG, count, np.random.default_rng(count)).steps
    assert steps.half.sum() == count_at_half_rate(count) == 2 * count // 3


def test_equal_generators_draw_equal_steps():
    steps = [draw(CONFIG, 300, np.random.default_rng(seed)).steps for seed in (1, 1, 2)]
    assert list(steps[0].words()) == list(steps[1].words()) != list(steps[2].words())


def test_steps_of_fp4_and_of_no_purpose_are_left():
    rng = np.random.default_rng(0)
    steps = random_steps(CONFIG, 500, rng)
    before = list(steps.words())
    draw_half_rate(steps, np.zeros(0, np.intp), rng)
    assert list(steps.words()) == before


@pytest.mark.parametrize(
    ("make", "config"),
    [*((make, CONFIG) for make, _ in _PURPOSES), *((make, SCALED) for make, _ in (*_PURPOSES, *_OF_SCALES))],
)
def test_any_steps_may_have_a_purpose(make, config):
    """No step at all, the first and the last ones, and all of them: every purpose can make them."""
    rng = np.random.default_rng(1)
    steps = random_steps(config, 40, rng)
    steps.half[:] = True
    for at in (np.zeros(0, np.intp), np.array([0, 39]), np.arange(40)):
        make(steps, at, rng)
        steps.first[: config.interleave] = True
        assert steps.expected().shape[1:] == (4, 4)
        assert max(steps.a_codes.max(), steps.b_codes.max()) <= 15


def test_numbers_of_all_types_are_numbers():
    rng = np.random.default_rng(2)
    (seen, _), *_ = _PURPOSES
    steps = random_steps(CONFIG, 400, rng)
    steps.half[:] = True
    seen(steps, np.arange(400), rng)
    assert len({*zip(steps.a_types.tolist(), steps.b_types.tolist(), strict=True)}) == 25
    assert (steps.expected() & 0x7F800000 != 0x7F800000).all()
    values = unscaled_values(steps.a_types, elements(steps.a_codes))
    assert 0.85 < (values != 0).mean() < 1


def test_scales_of_rows_are_drawn_for_their_purposes():
    """Most of the scales of a step multiply to one; others bring results to either end, or are NaN."""
    steps = draw(SCALED, 3000, np.random.default_rng(4)).steps
    a, b = (scales[steps.half, :, 0].astype(int) for scales in (steps.a_scales, steps.b_scales))
    total = a[:, 0] + b[:, 0] - 254
    assert 0.5 < (total == 0).mean() < 0.8
    assert len(np.unique(a)) > 200
    assert 0.005 < (a == 255).any(axis=1).mean() < 0.1
    d = steps.expected()[steps.half[steps.last]] & 0x7FFFFFFF
    assert ((d > 0) & (d < 1 << 23)).mean() > 0.03
    assert (d == 0x7F800000).mean() > 0.01
