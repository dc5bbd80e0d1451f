"""Cores whose rows have E8M0 scales at half the rate, step by step, against the golden model."""

import dataclasses

import numpy as np
import pytest

from hwgen.config import SLOTS, TensorCoreConfig
from sim.engines import Pattern
from sim.random import random_chains, random_steps
from sim.steps import ELEMENT_TYPES, Steps, codes_of

SMALL = ("decoded", "tree", "factors", "compared", "aligned", "total", "normal")
BLACKWELL = ("decoded", "tree", "factors", "compared", "aligned", "addends", "total", "normal")
CHOSEN = {"separate": "signed", "split": "merged", "full": "merged-timed", "quadrants": "significand"}
slots = pytest.mark.parametrize(("slot", "dot"), CHOSEN.items())
NAN, INFINITY = 0x7FFFFFFF, 0x7F800000


def core(slot, dot, a="nvfp4", b=None, groups=1, pipeline=SMALL, rows=2, columns=2, **further):
    return TensorCoreConfig(
        "scaled", a, b or a, rows, columns, groups, dot, pipeline=pipeline, slot=slot, half_scale="e8m0", **further
    )


def check(engine, steps, **streams):
    results, want = engine.run(steps, **streams).results, steps.expected()
    np.testing.assert_array_equal(results, want)
    return want


def patterns(rng, *shares):
    return {name: Pattern.random(share, rng) for name, share in zip(("offer", "supply", "take"), shares, strict=True)}


def test_all_slots_are_tried():
    assert {"none", *CHOSEN} == set(SLOTS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("groups", [1, 4])
@slots
def test_random(slot, dot, groups, compiled):
    """Both modes by turns and in chains, with gaps and stalls; scales of every kind."""
    config = core(slot, dot, "mixfp4", groups=groups, pipeline=SMALL if groups == 1 else BLACKWELL)
    rng = np.random.default_rng(groups)
    kinds = set()
    for steps in (random_steps(config, 4000, rng), random_chains(config, 1500, rng, first=0.1, last=0.5)):
        assert 0.3 < steps.half.mean() < 0.7
        want = check(compiled(config), steps)
        check(compiled(config), steps, **patterns(rng, 0.6, 0.7, 0.6))
        of_half = want[steps.half[steps.last]] & 0x7FFFFFFF
        kinds |= {"Inf"} if (of_half == INFINITY).any() else set()
        kinds |= {"subnormal"} if ((of_half > 0) & (of_half < 1 << 23)).sum() > 20 else set()
    assert kinds == {"Inf", "subnormal"}


OTHERS = [
    ("separate", {"pipeline": ()}),
    ("split", {"pipeline": ("decoded", "sums"), "groups": 2}),
    ("full", {"rounding": "nearest_even", "groups": 4, "pipeline": BLACKWELL}),
    ("full", {"rounding": "nearest_even", "fraction_bits": 25}),
    ("separate", {"fraction_bits": 23, "half_fraction_bits": 23}),
    ("full", {"fraction_bits": 39, "half_fraction_bits": 39}),
    ("quadrants", {"pipeline": ("factors", "compared", "total"), "groups": 2, "empty_blocks": "excluded"}),
    ("split", {"pipeline": ("decoded", "tree", "factors", "terms", "aligned", "total", "normal")}),
    ("full", {"pipeline": ("operands", "tree", "sums", "factors", "compared", "aligned"), "a": "mixfp4", "b": "nvfp4"}),
    ("full", {"a": "nvfp4-e0m3"}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("slot", "further"), OTHERS)
def test_other_parameters(slot, further, compiled):
    config = core(slot, CHOSEN[slot], **{"rows": 2, "columns": 1, **further})
    rng = np.random.default_rng(7)
    check(compiled(config), random_steps(config, 3000, rng), **patterns(rng, 0.8, 0.8, 0.8))


def test_python(python):
    config = core("full", "merged", rows=1, columns=1, pipeline=("decoded", "tree", "total"))
    rng = np.random.default_rng(3)
    check(python(config), random_chains(config, 100, rng), **patterns(rng, 0.7, 0.8, 0.7))


def at_half_rate(config, a, b, scales, c=0, types=("e4m3", "e4m3")):
    """Steps with bytes ``a``, (S, M, 8 G), and ``b``, scales (S, M) and (S, N), each a tile of its own.

    Scales of further blocks are NaN.
    """
    count = len(a)
    everything = np.ones(count, bool)
    bytes_ = []
    for own, rows in zip(scales, (config.rows, config.columns), strict=True):
        found = np.full((count, rows, config.groups), 0xFF, np.uint8)
        found[..., 0] = own
        bytes_.append(found)
    words = np.broadcast_to(np.asarray(c, np.uint32), (count, config.rows, config.columns)).copy()
    codes = [np.full(count, ELEMENT_TYPES[name], np.uint8) for name in types]
    return Steps(
        config, codes_of(a), bytes_[0], codes_of(b), bytes_[1], words, everything, everything, everything, *codes
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("groups", [1, 4])
@slots
def test_every_sum_of_scales(slot, dot, groups, compiled):
    """Few products and C of zero or next to it, from far below the last place of FP32 to far beyond its end."""
    config = core(slot, dot, groups=groups, pipeline=SMALL if groups == 1 else BLACKWELL)
    rng = np.random.default_rng(0)
    total = np.repeat(np.arange(0, 509), 12)
    first = rng.integers(np.maximum(0, total - 254), np.minimum(254, total) + 1)
    scales = [np.repeat(each[:, None], 2, axis=1) for each in (first, total - first)]
    rows = rng.integers(0, 256, (2, len(total), 2, config.groups * config.slots), np.uint8)
    rows[(rows & 0x7F) == 0x7F] = 0
    rows[:, rng.random(len(total)) < 0.5, :, 2:] = 0
    small = rng.choice(
        np.array([0, 0, 0x80000000, 1, 0x80000001, 0x00800000, 0xFF7FFFFF], np.uint32), (len(total), 2, 2)
    )
    want = check(compiled(config), at_half_rate(config, *rows, scales, small)) & 0x7FFFFFFF
    zero = small & 0x7FFFFFFF == 0
    assert not want[zero & (total < 70)[:, None, None]].any()
    high = zero & (total > 420)[:, None, None]
    assert np.isin(want[high], (0, INFINITY)).all()
    assert (want[high] == INFINITY).mean() > 0.9


@slots
def test_sums_are_cut_at_the_last_place(slot, dot, compiled):
    """Products that are below it add up to it; and their sum goes to the right by up to 24 places."""
    config = core(slot, dot)
    ones = np.full((36, 2, config.slots), 0x3F, np.uint8)  # 1.875
    ones[:, 1] = 0xBF
    plain = np.full((36, 2, config.slots), 0x38, np.uint8)
    below = 4 + np.arange(36)
    scales = (np.zeros((36, 1)), (127 - below)[:, None])  # the products are 1.875 x 2^(-127 - below)
    want = check(compiled(config), at_half_rate(config, ones, plain, scales))
    sums = [int(8 * 1.875 * 2 ** (149 - 127)) >> shift for shift in below.tolist()]
    assert want[:, 0, 0].tolist() == sums
    assert want[:, 1, 1].tolist() == [value | (1 << 31 if value else 0) for value in sums]
    assert {0, 1} < set(sums)


@slots
def test_a_nan_scale_is_nan(slot, dot, compiled):
    """Of its row alone, whatever else is there; in steps of FP4 the byte means what it did."""
    config = core(slot, dot)
    zeros = np.zeros((4, 2, config.slots), np.uint8)
    scales = [np.full((4, 2), 127), np.full((4, 2), 127)]
    scales[0][1, 0], scales[1][2, 1], scales[0][3] = 255, 255, 254
    steps = at_half_rate(config, zeros, zeros, scales, 0x3F800000)
    one = 0x3F800000
    assert check(compiled(config), steps).tolist() == [
        [[one, one], [one, one]],
        [[NAN, NAN], [one, one]],
        [[one, NAN], [one, NAN]],
        [[one, one], [one, one]],
    ]
    fp4 = dataclasses.replace(steps, half=np.zeros(4, bool))
    fp4.a_scales[:] = fp4.b_scales[:] = 0x80 | 0x38
    assert (check(compiled(config), fp4) == one).all()


@slots
def test_scales_of_one_are_a_core_without(slot, dot, compiled):
    config = core(slot, dot, "mixfp4")
    rng = np.random.default_rng(5)
    steps = random_steps(config, 3000, rng)
    for scales in (steps.a_scales, steps.b_scales):
        scales[steps.half] = 127
    plain = dataclasses.replace(config, half_scale="none")
    without = Steps(plain, *(getattr(steps, field.name) for field in dataclasses.fields(Steps)[1:]))
    np.testing.assert_array_equal(check(compiled(config), steps), check(compiled(plain), without))
