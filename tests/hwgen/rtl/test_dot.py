"""The 16-lane dot product, with decoders before it and on its own."""

import itertools

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.dot import DotProduct, sum_shape
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.operand import lane_layout
from sim import golden

FORMS = {
    "nvfp4": TensorCoreConfig("x", "nvfp4", 1, 1, 1),
    "folded": TensorCoreConfig("x", "mixfp4", 1, 1, 1),
    "e2m2": TensorCoreConfig("x", "mixfp4", 1, 1, 1, operand="e2m2"),
}
forms = pytest.mark.parametrize("config", FORMS.values(), ids=FORMS)

CODES = np.arange(16, dtype=np.uint8)
# E1M2's factor 2 is the half of the half-unit.
HALVES = [(golden.decode_e2m1(CODES) * 2).astype(int), golden.decode_e1m2(CODES).astype(int)]


def blocks(codes):
    return sum(int(code) << 4 * i for i, code in enumerate(codes))


def check_lanes(config, evaluate, cases):
    """``cases``: codes of A, codes of B, tag of A, tag of B."""
    tagged = config.block_format.tagged
    stimuli = [
        {"a_codes": blocks(a), "b_codes": blocks(b)} | ({"a_tag": ta, "b_tag": tb} if tagged else {})
        for a, b, ta, tb in cases
    ]
    for case, outputs in zip(cases, evaluate(LaneArray(config), stimuli), strict=True):
        a, b, tag_a, tag_b = case
        assert outputs["sum"] == HALVES[tag_a][a] @ HALVES[tag_b][b], case


def tag_pairs(config):
    return list(itertools.product((0, 1), repeat=2)) if config.block_format.tagged else [(0, 0)]


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
    assert sum_shape(config) == largest.bit_length() + 1
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


@pytest.mark.parametrize("config", [FORMS["nvfp4"], FORMS["folded"]], ids=["nvfp4", "folded"])
def test_every_lane_the_layout_allows(config, evaluate):
    """Not only what the decoders make of codes: any significand, with any shift that is documented."""
    layout = lane_layout(config)
    most = 1 if config.block_format.tagged else 2
    largest = config.block_format.largest
    lanes = [
        (sign, significand, shift)
        for sign in (0, 1)
        for significand in range(1 << layout["significand"].width)
        for shift in range(most + 1)
        if significand << shift <= largest
    ]
    pairs = list(itertools.product(lanes, repeat=2))

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
