"""The 16-lane dot product, with decoders before it and on its own."""

import itertools

import numpy as np
import pytest

from hwgen.config import DOTS, TensorCoreConfig
from hwgen.rtl.dot import DotProduct
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.lanes import lanes
from sim import golden

FORMS = {
    f"{form}-{dot}{'' if tags == 'both' else '-weights'}": TensorCoreConfig("x", form, 1, 1, 1, dot=dot, tags=tags)
    for form, tags in (("nvfp4", "both"), ("mixfp4", "both"), ("mixfp4", "weights"))
    for dot in DOTS
    if dot != "e2m2" or (form, tags) == ("mixfp4", "both")
}
forms = pytest.mark.parametrize("config", FORMS.values(), ids=FORMS)

CODES = np.arange(16, dtype=np.uint8)
# E1M2's factor 2 is the half of the half-unit.
HALVES = [(golden.decode_e2m1(CODES) * 2).astype(int), golden.decode_e1m2(CODES).astype(int)]


def blocks(codes):
    return sum(int(code) << 4 * i for i, code in enumerate(codes))


def check_lanes(config, evaluate, cases):
    """``cases``: codes of A, codes of B, tag of A, tag of B."""
    tagged = [side for side in "ab" if config.tagged(side)]
    stimuli = [
        {"a_codes": blocks(a), "b_codes": blocks(b)} | {f"{side}_tag": {"a": ta, "b": tb}[side] for side in tagged}
        for a, b, ta, tb in cases
    ]
    for case, outputs in zip(cases, evaluate(LaneArray(config), stimuli), strict=True):
        a, b, tag_a, tag_b = case
        assert outputs["sum"] == HALVES[tag_a][a] @ HALVES[tag_b][b], case


def tag_pairs(config):
    return list(itertools.product(*((0, 1) if config.tagged(side) else (0,) for side in "ab")))


@forms
def test_every_pair_of_codes(config, evaluate):
    """Sixteen pairs at a time; the engine tests have every pair alone in every lane."""
    pairs = np.array(list(itertools.product(CODES, CODES)), np.uint8)
    pairs = np.random.default_rng(0).permutation(pairs).reshape(16, 16, 2)
    check_lanes(config, evaluate, [(ab[:, 0], ab[:, 1], *tags) for tags in tag_pairs(config) for ab in pairs])


@forms
def test_extreme_sums(config, evaluate):
    ends = (0x7, 0xF, 0x1, 0x8)
    same = [
        (np.full(16, a, np.uint8), np.full(16, b, np.uint8), *pair)
        for a, b in itertools.product(ends, repeat=2)
        for pair in tag_pairs(config)
    ]
    largest = 16 * config.block_format.largest**2
    assert {HALVES[ta][a] @ HALVES[tb][b] for a, b, ta, tb in same} >= {largest, -largest, 0}
    assert lanes(config).sum_width == largest.bit_length() + 1
    check_lanes(config, evaluate, same)


@forms
def test_random_blocks(config, evaluate):
    rng = np.random.default_rng(1)
    check_lanes(
        config,
        evaluate,
        [
            (*rng.integers(0, 16, (2, 16), np.uint8), *tag_pairs(config)[rng.integers(len(tag_pairs(config)))])
            for _ in range(100)
        ],
    )


@pytest.mark.parametrize("form", ["nvfp4", "mixfp4"])
def test_significands_the_decoders_do_not_make(form, evaluate):
    """Not only what the decoders make of codes: any significand, with any shift that is documented."""
    config = FORMS[f"{form}-significand"]
    layout = lanes(config).layout("a")
    most = 1 if config.block_format.tagged else 2
    largest = config.block_format.largest
    numbers = [
        (sign, significand, shift)
        for sign in (0, 1)
        for significand in range(1 << layout["significand"].width)
        for shift in range(most + 1)
        if significand << shift <= largest
    ]
    pairs = list(itertools.product(numbers, repeat=2))

    def packed(lane, index):
        sign, significand, shift = lane
        bits = layout.const({"sign": sign, "significand": significand, "shift": shift}).as_value().value
        return bits << layout.size * index

    def value(lane):
        sign, significand, shift = lane
        return (-1) ** sign * (significand << shift)

    stimuli = [{"a": packed(a, i % 16), "b": packed(b, i % 16)} for i, (a, b) in enumerate(pairs)]
    for (a, b), outputs in zip(pairs, evaluate(DotProduct(config), stimuli), strict=True):
        assert outputs["sum"] == value(a) * value(b)


@pytest.mark.parametrize("tags", ["both", "weights"])
def test_a_product_of_fives_is_all_that_mixfp4_adds(tags):
    """Of the partial products that share a place, only those of two numbers that are 5 or 7 collide."""
    tables = [{0, 1, 2, 3, 4, 6, 8, 12} | (set(range(8)) if tags == "both" or side == "b" else set()) for side in "ab"]
    colliding = {
        (a, b)
        for a, b in itertools.product(*tables)
        for i, j in itertools.product(range(2), range(4))
        if a >> i & a >> i + 2 & 1 and j >= 2 and b >> j & b >> j - 2 & 1
    }
    assert colliding == (set(itertools.product((5, 7), repeat=2)) if tags == "both" else set())
    assert ("five" in dict(lanes(FORMS[f"mixfp4-merged{'-weights' if tags == 'weights' else ''}"]).layout("a"))) == (
        tags == "both"
    )
