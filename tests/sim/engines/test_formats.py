"""Formats with scales or blocks other than those of NVFP4: every bit of every result against the golden model."""

import itertools

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from sim.counterpart import resolved
from sim.random import random_chains
from sim.steps import Steps


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("form", "groups", "more"),
    [
        ("fp4-ue5m3-b16", 3, {"pipeline": ("decoded", "sums", "terms", "total")}),
        ("fp4-ue5m3-b32", 1, {"fraction_bits": 23, "empty_blocks": "excluded", "rounding": "nearest_even"}),
        ("mxfp4", 1, {"pipeline": ("decoded", "tree", "terms", "aligned", "total", "normal")}),
        ("mxfp4", 3, {"pipeline": (), "rounding": "nearest_even"}),
        ("msfp12", 2, {"pipeline": ("decoded", "tree", "terms"), "rounding": "nearest_even"}),
        ("if4", 2, {"pipeline": ("decoded", "tree", "factors", "terms")}),
        ("blockdialect", 2, {"pipeline": ("decoded", "tree", "terms", "total"), "dot": "signed"}),
        ("mxint8", 1, {"pipeline": ("decoded", "tree", "terms", "total"), "dot": "shifted"}),
        ("mxint8", 2, {"pipeline": ("sums",), "dot": "multiplier", "rounding": "nearest_even"}),
        ("mxfp6-e2m3", 2, {"pipeline": ("tree", "normal"), "dot": "shifted", "empty_blocks": "excluded"}),
        ("mxfp6-e3m2", 1, {"pipeline": ("decoded", "tree"), "dot": "shifted", "fraction_bits": 23}),
        ("mxfp4-2x16", 2, {"pipeline": ("sums", "addends"), "empty_blocks": "excluded", "dot": "signed"}),
        ("int8", 1, {"pipeline": ("decoded", "tree", "factors", "terms", "aligned"), "dot": "shifted"}),
        ("int8", 2, {"pipeline": ("terms",), "dot": "multiplier", "empty_blocks": "excluded"}),
        ("int8", 2, {"pipeline": ("decoded", "tree", "sums"), "dot": "booth"}),
        ("mxint8", 1, {"pipeline": ("decoded", "tree", "terms", "aligned"), "dot": "booth"}),
        ("mxfp6-e3m2", 1, {"pipeline": ("tree", "sums"), "dot": "shifted-carry-save", "rounding": "nearest_even"}),
        ("int8", 2, {"pipeline": ("decoded", "terms", "total"), "dot": "shifted", "numerics": "exact"}),
        ("ternary", 1, {"pipeline": ("tree",), "dot": "signed", "numerics": "exact", "largest_depth": 4096}),
    ],
)
def test_random_steps(form, groups, more, compiled):
    config = TensorCoreConfig("formats", form, form, 2, 2, groups, **more)
    steps = random_chains(config, 6000, np.random.default_rng(groups), first=0.6)
    wanted = steps.expected()
    np.testing.assert_array_equal(compiled(config).run(steps).results, wanted)
    if config.wide:
        exponent, fraction = wanted >> 23 & 0xFF, wanted & 0x7FFFFF
        for kind in ((exponent == 0) & (fraction > 0), (exponent == 0xFF) & (fraction == 0)):
            assert kind.sum() > 30  # subnormal and infinite results


@pytest.mark.parametrize(
    ("a", "b", "dot"),
    [
        ("if4", "if4", "merged"),
        ("razer-activations", "razer-weights", "merged"),
        ("razer-activations", "razer-weights", "merged-binary"),
        ("razer-activations", "razer-weights", "signed"),
        ("razer-weights", "razer-weights", "merged"),
    ],
)
def test_every_pair_of_codes_alone_in_every_lane(a, b, dot, compiled):
    """With every pair of selectors; scales are 1, all other codes zero."""
    config = TensorCoreConfig("formats", a, b, 4, 4, 1, dot, pipeline=("tree",))
    ones = [form.scale.bias << form.scale.mantissa_bits for form in config.formats]
    tags = [range(len(form.elements)) for form in config.formats]
    fours = np.arange(16, dtype=np.uint8).reshape(4, 4)
    cases = list(itertools.product(*tags, range(config.depth), range(4), range(4)))
    codes = np.zeros((2, len(cases), 4, config.depth), np.uint8)
    scales = np.zeros((2, len(cases), 4, 1), np.uint8)
    for index, (*selectors, lane, left, right) in enumerate(cases):
        codes[0, index, :, lane], codes[1, index, :, lane] = fours[left], fours[right]
        for side, form in enumerate(config.formats):
            scales[side, index] = selectors[side] << form.scale.width | ones[side]
    everything = np.ones(len(cases), bool)
    zeros = np.zeros((len(cases), 4, 4), np.uint32)
    steps = Steps(config, codes[0], scales[0], codes[1], scales[1], zeros, everything, everything)
    np.testing.assert_array_equal(compiled(config).run(steps).results, steps.expected())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("a", "b", "dot"),
    [
        ("mxint8", "mxint8", "shifted"),
        ("mxfp6-e2m3", "mxfp6-e2m3", "shifted"),
        ("mxfp6-e3m2", "mxfp6-e3m2", "shifted"),
        ("mxfp8-e4m3", "mxfp4", "shifted"),
        ("int8", "int8", "shifted"),
        ("int8", "ternary", "shifted"),
        ("mxint8", "mxint8", "booth"),
        ("int8", "int8", "booth"),
        ("int8", "int4", "booth"),
        ("int4", "int8", "booth"),
        ("int8", "ternary", "booth"),
        ("mxfp6-e2m3", "mxfp6-e2m3", "booth"),
        ("mxfp6-e2m3", "mxfp6-e2m3", "shifted-carry-save"),
        ("mxfp6-e3m2", "mxfp6-e3m2", "shifted-carry-save"),
        ("mxfp8-e4m3", "mxfp4", "shifted-carry-save"),
        ("mxfp4", "mxfp8-e4m3", "shifted-carry-save"),
    ],
)
def test_every_pair_of_long_codes_in_every_lane(a, b, dot, compiled):
    """Every lane has all of them, each in an order of its own; scales are 1. No sum can hide a wrong product twice."""
    config = TensorCoreConfig("formats", a, b, 4, 4, 1, dot, pipeline=("tree",))
    fours = [np.arange(1 << form.code_width, dtype=np.uint8).reshape(-1, 4) for form in config.formats]
    count = len(fours[0]) * len(fours[1])
    rng = np.random.default_rng(3)
    orders = np.stack([rng.permutation(count) for _ in range(config.depth)], axis=1)
    a_codes = fours[0][orders // len(fours[1])].swapaxes(1, 2)
    b_codes = fours[1][orders % len(fours[1])].swapaxes(1, 2)
    scales = [np.full((count, 4, 1), form.scale.bias, np.uint8) for form in config.formats]
    everything = np.ones(count, bool)
    steps = Steps(
        config, a_codes, scales[0], b_codes, scales[1], np.zeros((count, 4, 4), np.uint32), everything, everything
    )
    np.testing.assert_array_equal(compiled(config).run(steps).results, steps.expected())


@pytest.mark.parametrize(
    ("groups", "dot", "more"),
    [
        (1, "nested", {"pipeline": ("decoded", "tree", "factors", "terms", "aligned", "total", "normal")}),
        (2, "nested", {"pipeline": ("sums",), "empty_blocks": "excluded", "rounding": "nearest_even"}),
        (1, "multiplier", {"pipeline": ("decoded", "tree")}),
    ],
)
def test_sub_groups_that_are_shifted(groups, dot, more, compiled):
    """Random chains with any bits; before them every pair of codes in every lane, with equal bits of all sub-groups."""
    config = TensorCoreConfig("formats", "hif4", "hif4", 4, 4, groups, dot, **more)
    steps = random_chains(config, 6000, np.random.default_rng(groups), first=0.6)
    form, fours = config.a, np.arange(16, dtype=np.uint8).reshape(-1, 4)
    rng = np.random.default_rng(7)
    for case, (left, right) in enumerate(itertools.product(range(4), repeat=2)):
        part = slice(16 * case, 16 * case + 16)
        orders = np.stack([rng.permutation(16) for _ in range(config.depth)], axis=1)
        steps.a_codes[part], steps.b_codes[part] = fours[orders // 4].swapaxes(1, 2), fours[orders % 4].swapaxes(1, 2)
        for scales, bits in ((steps.a_scales, left), (steps.b_scales, right)):
            word = form.scale.bias << form.scale.mantissa_bits
            scales[part] = word | 0xFF00 * (bits & 1) | 0xFFFF0000 * (bits >> 1)
        steps.first[part], steps.last[part], steps.c[part] = True, True, 0
    np.testing.assert_array_equal(compiled(config).run(steps).results, steps.expected())


def test_every_product_of_blockdialect_in_every_lane(compiled):
    """All pairs of its numbers, each from some dialect, under scales of 1; all other codes are zero."""
    config = TensorCoreConfig("formats", "blockdialect", "blockdialect", 4, 4, 1, "signed", pipeline=("tree",))
    form = config.a
    found = {h: (tag, code) for tag, each in enumerate(form.elements) for code, h in enumerate(each.integers)}
    assert set(found) == set(range(-15, 16))
    places = np.array([found[h] for h in sorted(found)] + [found[15]])  # 32 of them
    cases = list(itertools.product(range(config.depth), range(8), range(8)))
    codes = np.zeros((2, len(cases), 4, config.depth), np.uint8)
    scales = np.zeros((2, len(cases), 4, 1), np.uint16)
    for index, (lane, *fours) in enumerate(cases):
        for side, four in enumerate(fours):
            tags, chosen = places[4 * four : 4 * four + 4].T
            codes[side, index, :, lane], scales[side, index, :, 0] = chosen, tags << form.scale.width | form.scale.bias
    everything = np.ones(len(cases), bool)
    zeros = np.zeros((len(cases), 4, 4), np.uint32)
    steps = Steps(config, codes[0], scales[0], codes[1], scales[1], zeros, everything, everything)
    np.testing.assert_array_equal(compiled(config).run(steps).results, steps.expected())


@pytest.mark.parametrize(
    ("a", "b", "pipeline"),
    [
        ("l-mul", "l-mul", ("decoded", "tree", "terms")),
        ("l-mul", "l-mul", ("decoded", "tree", "sums", "terms", "aligned", "total", "normal")),
        ("mxfp8-e4m3", "mxfp8-e4m3", ("decoded", "tree", "terms")),
        ("mxfp8-e5m2", "mxfp8-e5m2", ("decoded", "tree", "terms", "aligned", "total")),
        ("mxfp8-e4m3", "mxfp8-e5m2", ("sums", "factors")),
        ("mxfp8-e4m3", "mxfp8-e4m3", ("decoded", "tree", "sums", "terms", "aligned", "total", "normal")),
        ("mxfp8-e5m2", "mxfp8-e5m2", ("tree", "sums", "factors")),
    ],
)
def test_products_that_are_cut_to_a_window(a, b, pipeline, compiled):
    """Random chains; before them every pair of codes alone, by turns in all lanes, NaN and infinity among them."""
    dot = "additive" if a == "l-mul" else "windowed"
    config = TensorCoreConfig("formats", a, b, 4, 4, 1, dot, pipeline=pipeline)
    steps = random_chains(config, 6000, np.random.default_rng(6), first=0.6)
    case = np.arange(4096)
    fours = np.arange(256, dtype=np.uint8).reshape(64, 4)
    for codes, scales, chosen in (
        (steps.a_codes, steps.a_scales, fours[case // 64]),
        (steps.b_codes, steps.b_scales, fours[case % 64]),
    ):
        codes[case] = 0
        codes[case, :, (case + case // 64) % 32] = chosen
        scales[case] = 127
    steps.c[case] = 0
    steps.first[case] = steps.last[case] = True
    np.testing.assert_array_equal(compiled(config).run(steps).results, steps.expected())


@pytest.mark.parametrize(
    ("a", "b", "more"),
    [
        ("fp16", "int4", {"pipeline": ("decoded", "tree", "sums", "terms", "aligned", "total", "normal")}),
        ("int8", "fp16", {"pipeline": ("tree", "terms"), "empty_blocks": "excluded", "rounding": "nearest_even"}),
        ("fp16", "fp16", {"pipeline": ("sums", "aligned"), "groups": 2}),
        ("nvfp4", "fp16", {"pipeline": ("decoded", "tree", "factors", "total"), "groups": 2}),
        ("fp16", "ternary", {"pipeline": ()}),
    ],
)
def test_products_with_fp16(a, b, more, compiled):
    """Chains of numbers with infinities, NaN and zeros among them, of operands with scales that may be zero, too."""
    config = TensorCoreConfig("formats", a, b, 2, 2, **{"groups": 1, "dot": "windowed", **more})
    steps = random_chains(config, 4000, np.random.default_rng(8), first=0.5)
    rng = np.random.default_rng(9)
    for form, codes in ((config.a, steps.a_codes), (config.b, steps.b_codes)):
        if form.may_be_infinite:
            chosen = rng.random(codes.shape) < 0.01
            codes[chosen] = rng.choice(np.array(form.elements[0].infinities, codes.dtype), chosen.sum())
    results = steps.expected()
    exponents = results >> 23 & 0xFF
    assert 0.01 < (exponents == 0xFF).mean() < 0.95
    np.testing.assert_array_equal(compiled(config).run(steps).results, results)


NEAR = """
name = "near"
a = "near"
b = "near"
rows = 2
columns = 2
groups = 2
dot = "windowed"
pipeline = {pipeline}

[scales.few]
exponent_bits = 4
mantissa_bits = 3
bias = 7
nan = 127
subnormals = false

[formats.near]
elements = ["E5M2"]
scale = "few"
block = 16
window = 25
"""
"""Infinite elements under scales of few exponents."""


@pytest.mark.parametrize("pipeline", ["[]", '["tree", "terms", "total"]'])
def test_infinite_elements_where_no_sum_of_numbers_is_infinite(pipeline, compiled, tmp_path):
    """The accumulator is that of NVFP4, and infinities go through it."""
    (tmp_path / "near.toml").write_text(NEAR.format(pipeline=pipeline))
    config = resolved(str(tmp_path / "near.toml"))
    assert not config.wide
    steps = random_chains(config, 3000, np.random.default_rng(4), first=0.5)
    rng = np.random.default_rng(5)
    for codes in (steps.a_codes, steps.b_codes):
        chosen = rng.random(codes.shape) < 0.01
        codes[chosen] = rng.choice(np.array([0x7C, 0xFC], np.uint8), chosen.sum())
    results = steps.expected()
    assert {0x7F800000, 0xFF800000, 0x7FFFFFFF} < {*results.ravel().tolist()}
    np.testing.assert_array_equal(compiled(config).run(steps).results, results)


@pytest.mark.parametrize(
    "more",
    [
        {"groups": 2, "empty_blocks": "excluded"},
        {"groups": 4, "rounding": "nearest_even", "pipeline": ("tree", "sums", "terms", "total")},
    ],
)
def test_codes_that_are_added_in_several_blocks(more, compiled):
    config = TensorCoreConfig("formats", "l-mul", "l-mul", 2, 2, dot="additive", **more)
    steps = random_chains(config, 3000, np.random.default_rng(11), first=0.5)
    np.testing.assert_array_equal(compiled(config).run(steps).results, steps.expected())


@pytest.mark.parametrize(("groups", "rounding"), [(1, "toward_zero"), (2, "nearest_even")])
def test_infinite_elements(groups, rounding, compiled):
    """Chains of numbers and a few infinities; C is often infinite, and sums are beyond FP32 now and then."""
    form = "mxfp8-e5m2"
    config = TensorCoreConfig(
        "formats", form, form, 4, 4, groups, "windowed", rounding=rounding, pipeline=("tree", "terms", "total")
    )
    rng = np.random.default_rng(7)
    steps = random_chains(config, 3000, rng, first=0.4)
    for codes, scales in ((steps.a_codes, steps.a_scales), (steps.b_codes, steps.b_scales)):
        codes[codes & 0x7F >= 0x7C] = 0x42
        rare = rng.random(codes.shape) < rng.choice([0, 1 / 256, 1 / 64], (len(codes), 1, 1))
        codes[rare] = rng.choice(np.array([0x7C, 0xFC], np.uint8), rare.sum())
        scales[...] = rng.choice(np.array([100, 127, 170, 171, 175, 254], np.uint8), scales.shape)
    steps.c[rng.random(steps.c.shape) < 0.2] = 0x7F800000
    steps.c[rng.random(steps.c.shape) < 0.2] = 0xFF800000
    wanted = steps.expected()
    kinds = (wanted == 0x7F800000, wanted == 0xFF800000, wanted == 0x7FFFFFFF, wanted & 0x7F800000 != 0x7F800000)
    assert min(kind.mean() for kind in kinds) > 0.05
    np.testing.assert_array_equal(compiled(config).run(steps).results, wanted)


def test_elements_that_are_nan(compiled):
    """W4A8: every code of A that is NaN, in every lane, beside zeros and infinities; and random chains."""
    config = TensorCoreConfig(
        "formats", "mxfp8-e4m3", "mxfp4", 4, 4, 1, "shifted", pipeline=("decoded", "tree", "terms")
    )
    steps = random_chains(config, 3000, np.random.default_rng(5), first=0.6)
    at = np.arange(256)
    steps.a_codes[at] = 0
    steps.a_codes[at, at // 2 % 4, at // 8] = np.where(at % 2, 0x7F, 0xFF)
    wanted = steps.expected()
    assert 0.1 < (wanted == 0x7FFFFFFF).mean() < 0.4
    np.testing.assert_array_equal(compiled(config).run(steps).results, wanted)


def test_scales_of_two_kinds(compiled):
    """One operand's scales have significands, the other's are powers of two."""
    pipeline = ("decoded", "tree", "factors", "terms", "total")
    config = TensorCoreConfig("formats", "mxfp4", "fp4-ue5m3-b32", 2, 2, 1, pipeline=pipeline)
    steps = random_chains(config, 3000, np.random.default_rng(9), first=0.6)
    np.testing.assert_array_equal(compiled(config).run(steps).results, steps.expected())


def chosen(config, a_code, a_scale, b_code, b_scale, c):
    """Single steps of one lane, from sequences of equal length; all other codes are zero."""
    count = len(c)
    codes = [np.zeros((count, 1, config.depth), np.uint8) for _ in "ab"]
    for side, code in zip(codes, (a_code, b_code), strict=True):
        side[:, 0, 5] = code
    scales = [np.array(scale, np.uint8).reshape(count, 1, 1) for scale in (a_scale, b_scale)]
    everything = np.ones(count, bool)
    addends = np.array(c, np.uint32).reshape(count, 1, 1)
    return Steps(config, codes[0], scales[0], codes[1], scales[1], addends, everything, everything)


CORNERS = {
    # A's scale, B's scale, A's code, C, result: B's code is 2, which is 1
    "largest below infinity": (254, 127, 3, 0, 0x7F400000),
    "2^128 is infinite": (254, 128, 2, 0, 0x7F800000),
    "so is its negative": (254, 128, 10, 0, 0xFF800000),
    "C just reaches it": (127 + 104, 127, 2, 0x7F7FFFFF, 0x7F800000),
    "C just does not": (127 + 103, 127, 2, 0x7F7FFFFF, 0x7F7FFFFF),
    "C brings it back": (254, 127, 4, 0xFF000000, 0x7F000000),
    "far beyond": (254, 254, 7, 0xFF7FFFFF, 0x7F800000),
    "infinite C passes": (254, 254, 7, 0xFF800000, 0xFF800000),
    "smallest normal": (1, 127, 2, 0, 0x00800000),
    "subnormal": (0, 127, 2, 0, 0x00400000),
    "smallest subnormal": (0, 127 - 22, 2, 0, 0x00000001),
    "half of it is +0": (0, 127 - 22, 1, 0, 0x00000000),
    "its negative half, too": (0, 127 - 22, 9, 0, 0x00000000),
    "subnormal C and product": (0, 127 - 22, 2, 0x00000001, 0x00000002),
    "that become normal": (0, 127 - 22, 2, 0x007FFFFF, 0x00800000),
    "normal C that becomes subnormal": (0, 127 - 22, 10, 0x00800000, 0x007FFFFF),
    "subnormal C that cancels": (0, 127 - 22, 2, 0x80000001, 0x00000000),
    "subnormal C passes": (0, 0, 2, 0x80000001, 0x80000001),
    "cut toward zero": (0, 127 - 23, 10, 0x00000003, 0x00000002),
}


@pytest.mark.parametrize("form", ["mxfp4", "mxfp4-2x16"])
def test_corners_of_the_exponents(form, python):
    config = TensorCoreConfig("formats", form, form, 1, 1, 1, pipeline=("total",))
    a_scale, b_scale, a_code, c, result = zip(*CORNERS.values(), strict=True)
    steps = chosen(config, a_code, a_scale, [2] * len(c), b_scale, c)
    found = {name: f"{bits:08x}" for name, bits in zip(CORNERS, steps.expected().ravel().tolist(), strict=True)}
    assert found == {name: f"{bits:08x}" for name, bits in zip(CORNERS, result, strict=True)}
    np.testing.assert_array_equal(python(config).run(steps).results, steps.expected())
