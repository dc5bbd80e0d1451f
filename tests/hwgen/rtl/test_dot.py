"""The 16-lane dot product, with decoders before it and on its own."""

import itertools

import numpy as np
import pytest

from hwgen.config import DOTS, TensorCoreConfig
from hwgen.config.dots import FIVES, PLACES, TENS, can_collide, supported
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS, UE4M3, BlockFormat, ElementFormat
from hwgen.rtl.dot import DotProduct
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.lanes import lanes
from sim import golden

PAIRS = [("nvfp4", "nvfp4"), ("mixfp4", "mixfp4"), ("nvfp4", "mixfp4"), ("nvint4", "nvint4"), ("mixfp4", "nvint4")]
FORMS = {
    f"{a}-{b}-{dot}": TensorCoreConfig("x", a, b, 1, 1, 1, dot=dot)
    for a, b in PAIRS
    for dot in DOTS
    if dot in supported(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
}
forms = pytest.mark.parametrize("config", FORMS.values(), ids=FORMS)

CODES = np.arange(16, dtype=np.uint8)
INTEGERS = {
    name: [np.array(element.integers) for element in golden.block_format(name).elements] for name in BLOCK_FORMATS
}


def blocks(codes):
    return sum(int(code) << 4 * i for i, code in enumerate(codes))


def check_lanes(config, evaluation, cases):
    """``cases``: codes of A, codes of B, tag of A, tag of B."""
    tagged = [side for side in "ab" if config.form(side).tagged]
    tables = [INTEGERS[form.name] for form in config.formats]
    stimuli = [
        {"a_codes": blocks(a), "b_codes": blocks(b)} | {f"{side}_tag": {"a": ta, "b": tb}[side] for side in tagged}
        for a, b, ta, tb in cases
    ]
    for case, outputs in zip(cases, evaluation(LaneArray, config)(stimuli), strict=True):
        a, b, tag_a, tag_b = case
        assert outputs["sum"] == tables[0][tag_a][a] @ tables[1][tag_b][b], case


def tag_pairs(config):
    return list(itertools.product(*(range(len(form.elements)) for form in config.formats)))


@pytest.mark.sampled(3)
@forms
def test_every_pair_of_codes(config, evaluation):
    """Sixteen pairs at a time; the engine tests have every pair alone in every lane."""
    pairs = np.array(list(itertools.product(CODES, CODES)), np.uint8)
    pairs = np.random.default_rng(0).permutation(pairs).reshape(16, 16, 2)
    check_lanes(config, evaluation, [(ab[:, 0], ab[:, 1], *tags) for tags in tag_pairs(config) for ab in pairs])


@forms
def test_extreme_sums(config, evaluation):
    ends = (0x7, 0xF, 0x1, 0x8, 0x9)
    same = [
        (np.full(16, a, np.uint8), np.full(16, b, np.uint8), *pair)
        for a, b in itertools.product(ends, repeat=2)
        for pair in tag_pairs(config)
    ]
    tables = [INTEGERS[form.name] for form in config.formats]
    largest = 16 * int(np.prod([np.abs(table).max() for table in tables]))
    assert {tables[0][ta][a] @ tables[1][tb][b] for a, b, ta, tb in same} >= {largest, -largest, 0}
    assert lanes(config).sum_width == largest.bit_length() + 1
    check_lanes(config, evaluation, same)


@pytest.mark.sampled(3)
@forms
def test_random_blocks(config, evaluation):
    rng = np.random.default_rng(1)
    check_lanes(
        config,
        evaluation,
        [
            (*rng.integers(0, 16, (2, 16), np.uint8), *tag_pairs(config)[rng.integers(len(tag_pairs(config)))])
            for _ in range(100)
        ],
    )


@pytest.mark.parametrize("form", ["nvfp4", "mixfp4"])
def test_significands_the_decoders_do_not_make(form, evaluate):
    """Not only what the decoders make of codes: any significand, with any shift that is documented."""
    config = FORMS[f"{form}-{form}-significand"]
    layout = lanes(config).layout("a")
    most = 1 if config.a.tagged else 2
    largest = config.a.largest
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


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ("nvfp4", "nvfp4", set()),
        ("nvfp4", "mixfp4", set()),
        ("mixfp4", "mixfp4", set(itertools.product((5, 7), repeat=2))),
        ("mixfp4", "nvint4", set(itertools.product((5, 7), repeat=2))),
    ],
)
def test_a_product_of_fives_is_all_that_mixfp4_adds(a, b, wanted):
    """Of the partial products that share a place, only those of two numbers that are 5 or 7 collide."""
    tables = [{abs(h) for table in INTEGERS[name] for h in table.tolist()} for name in (a, b)]
    colliding = {
        (x, y)
        for x, y in itertools.product(*tables)
        for i, j in itertools.product(range(2), range(4))
        if x >> i & x >> i + 2 & 1 and j >= 2 and y >> j & y >> j - 2 & 1
    }
    assert colliding == wanted
    assert can_collide(BLOCK_FORMATS[a], BLOCK_FORMATS[b], *FIVES) == bool(wanted)
    assert DOTS["merged"].supports(BLOCK_FORMATS[a], BLOCK_FORMATS[b]) is None


@pytest.mark.parametrize("b", ["razer-activations", "razer-weights"])
def test_a_product_of_tens_is_all_that_razer_adds(b):
    """Where partial products that share a place collide, and that none does beside what makes up for it."""
    forms = BLOCK_FORMATS["razer-activations"], BLOCK_FORMATS[b]
    for x, y in itertools.product(*(form.magnitudes for form in forms)):
        for place in PLACES:
            ones = [sum(x >> i & y >> j & 1 for i, j in group) for group in place]
            missing = place[1:] == (TENS,) and x == y == 10
            assert max(ones) == 1 + missing or max(ones) == 0
            assert not (missing and ones[0])


@pytest.mark.parametrize("dot", ["merged", "merged-timed", "merged-binary"])
def test_what_makes_up_for_collisions_takes_no_wire(dot):
    """Decoders hand over magnitude and sign alone: MixFP4's as many bits as NVFP4's."""
    forms = ("nvfp4", "mixfp4", "razer-activations", "razer-weights")
    handed = {name: dict(lanes(TensorCoreConfig("x", name, name, 1, 1, 1, dot)).layout("a")) for name in forms}
    assert all(fields.keys() == {"magnitude", "sign"} for fields in handed.values())
    assert handed["mixfp4"] == handed["nvfp4"]


def test_tens_beside_a_bit_2_are_refused():
    """14 x 14 has three ones where two are added."""
    values = (0, 1, 2, 4, 10, 14, 0, 0)
    form = BlockFormat(
        "wide", (ElementFormat("T", (*values, *(-v for v in values)), ""),), UE4M3, 16, full_scale=1.0, source=""
    )
    with pytest.raises(InputError, match="dot = 'merged': partial products of wide x wide that it joins"):
        TensorCoreConfig("x", form, form, 1, 1, 1)


def test_formats_that_merged_cannot_add_are_refused():
    """Neighbouring magnitudes of four bits: every pair of joined partial products can collide."""
    values = (*range(16), *(-value for value in range(16)))
    wide = BlockFormat("wide", (ElementFormat("INT5", values, ""),), UE4M3, size=16, full_scale=1.0, source="")
    with pytest.raises(InputError, match="dot = 'merged': partial products of wide x wide that it joins"):
        TensorCoreConfig("x", wide, wide, 1, 1, 1)
    assert supported(wide, wide) == ["signed", "multiplier"]
