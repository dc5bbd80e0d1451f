"""Directed corners of one step, by name; known answers where they can be written down."""

import itertools
import struct

import numpy as np
import pytest

from hwgen.config import DEFAULT_PIPELINE, PIPELINE_REGISTERS, TensorCoreConfig
from sim.engines import available, engine
from sim.steps import Steps

NAN = 0x7FFFFFFF
INF, MINUS_INF = 0x7F800000, 0xFF800000
MINUS_ZERO = 0x80000000
LARGEST = 0x7F7FFFFF
ONE = 0x38  # block scale 1.0
TOP, TINY = 0x7E, 0x01  # 448 and 2^-9

NANS = [0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF, 0x7FABCDEF]
EVERY_C = [
    *(0, MINUS_ZERO, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00400000, 0x00800000, 0x80800000, 0x00800001),
    *(0x3F800000, 0xBF800000, 0x40490FDB, LARGEST, LARGEST | MINUS_ZERO, INF, MINUS_INF, *NANS),
]


def fp32(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def power(exponent, sign=0, fraction=0):
    return sign << 31 | exponent + 127 << 23 | fraction


def kept(c):
    """C where nothing is added: NaN and zero in their only form."""
    if c & 0x7FFFFFFF > INF:
        return NAN
    return c if c & 0x7FFFFFFF else 0


def full(code, scale=ONE):
    return [code] * 16, scale


def single(code, scale=ONE, lane=5):
    return [code if i == lane else 0 for i in range(16)], scale


def alternating(code, scale=ONE):
    return [code ^ 8 * (i & 1) for i in range(16)], scale


def specials(groups):
    """A or B with one block that is out of the ordinary, in every place."""
    ones = [full(2)] * groups

    def placed(block):
        for g in range(groups):
            yield [*ones[:g], block, *ones[g + 1 :]]

    for scale in (0x7F, 0xFF):
        for row in placed(full(2, scale)):
            for c in EVERY_C:
                yield "NaN scale in A", row, ones, c, NAN
                yield "NaN scale in B", ones, row, c, NAN
        for row in placed(full(0, scale)):
            yield "NaN scale with zero codes", row, ones, fp32(1.5), NAN
            yield "NaN scale with an infinite C", ones, row, INF, NAN
        for row in placed(full(2, scale)):
            yield "NaN scale against a zero scale", row, [full(2, 0x00)] * groups, 0, NAN
    for scale in (0x00, 0x80):
        zeros = [full(7, scale)] * groups
        for c in EVERY_C:
            yield "all scales zero", zeros, zeros, c, kept(c)
            yield "all scales of A zero", zeros, ones, c, kept(c)
            yield "all scales of B zero", [full(7, TOP)] * groups, zeros, c, kept(c)
        for row in placed(full(7, scale)):
            for c in EVERY_C:
                yield "one scale zero", row, ones, c, None
            yield "one scale zero, known", row, ones, 0, fp32(16.0 * (groups - 1))
    if groups > 1:
        halves = [full(7, 0x00 if g % 2 else TOP) for g in range(groups)]
        others = [full(7, TOP if g % 2 else 0x80) for g in range(groups)]
        for c in EVERY_C:
            yield "every block has one zero scale", halves, others, c, kept(c)
    for c in NANS:
        yield "NaN C", ones, ones, c, NAN
    for c in (INF, MINUS_INF):
        yield "infinite C", [full(7, TOP)] * groups, [full(15, TOP)] * groups, c, c


def zeros_and_cancellation(groups):
    ones, zeros = [full(2)] * groups, [full(0)] * groups
    minus_zeros = [full(8)] * groups
    for c in (0, MINUS_ZERO, 1, 0x80000001, 0x80800000):
        yield "zero products, C vanishes", zeros, ones, c, 0
        yield "products of minus zero, C vanishes", minus_zeros, [full(10)] * groups, c, 0
        yield "products cancel within the block", [alternating(7)] * groups, ones, c, 0
        yield "subnormal scales, zero codes", [full(0, TINY)] * groups, [full(3, TINY)] * groups, c, 0
    yield "zero products, C stays", zeros, ones, fp32(-2.5), fp32(-2.5)
    yield "zero products, largest C stays", [full(0, TOP)] * groups, ones, LARGEST, LARGEST
    for sign in (0, 1):
        yield "C cancels the products", [full(2 | 8 * sign)] * groups, ones, fp32((-1) ** (1 - sign) * 16 * groups), 0
        for step in (1, -1):
            c = fp32(-16.0 * groups) + step ^ sign << 31
            yield "C cancels all but one unit", [full(2 | 8 * sign)] * groups, ones, c, None
    if groups % 2 == 0:
        signs = [full(2 | 8 * (g & 1)) for g in range(groups)]
        for c in (0, MINUS_ZERO):
            yield "blocks cancel", signs, ones, c, 0
        yield "blocks cancel, C stays", signs, ones, fp32(0.375), fp32(0.375)
        spread = [full(2 | 8 * (g & 1), TINY if g & 1 else 0x02) for g in range(groups)]
        yield "blocks nearly cancel", spread, ones, 0, None


def ranges(groups):
    largest, smallest = [full(7, TOP)] * groups, [single(1, TINY)] + [single(0, TINY)] * (groups - 1)
    yield "largest sum", largest, largest, 0, fp32(groups * 16 * 36 * 448.0**2)
    yield "largest negative sum", largest, [full(15, TOP)] * groups, 0, fp32(-groups * 16 * 36 * 448.0**2)
    yield "largest sum of E1M2, NVFP4 ignores the tags", *([[full(7, 0xFE)] * groups] * 2), 0, None
    yield "smallest product", smallest, smallest, 0, power(-20)
    yield "smallest product doubled", smallest, smallest, power(-20), power(-19)
    yield "smallest product cancelled", smallest, smallest, power(-20, 1), 0
    for fraction, exponent in itertools.product((0, 1, 0x7FFFFF), range(-60, -10)):
        for sign in (0, 1):
            yield "near the smallest product", smallest, smallest, power(exponent, sign, fraction), None
    for scale, tag_a, tag_b in itertools.product((0x01, 0x03, 0x07, 0x08), (0x00, 0x80), (0x00, 0x80)):
        a, b = [full(7, scale | tag_a)] * groups, [full(5, 0x07 | tag_b)] * groups
        for c in (0, power(-4, 1), power(20, 1, 0x1234)):
            yield "subnormal scales, either format", a, b, c, None
        yield "subnormal times largest scale", a, [full(5, TOP | tag_b)] * groups, power(24, 1, 3), None
    if groups > 1:
        # The zero scale must not count as the largest exponent of the step.
        for scale, exponent in itertools.product((TOP, 0xFE), range(-24, -8)):
            a, b = [full(7, scale), *smallest[:1]], [full(7, 0x80), *smallest[:1]]
            rest = [single(0, TINY)] * (groups - 2)
            yield "zero scale against the largest", a + rest, b + rest, power(exponent, 1, 0x7FFFFF), None
    # C from far below the truncation boundary to far beyond the window.
    for name, row in (("largest", largest), ("smallest", smallest), ("one", [single(2)] * groups)):
        for sign, exponent in itertools.product((0, 1), range(-70, 127)):
            fraction = (0, 0x7FFFFF, 0x2AAAAA)[exponent % 3]
            yield f"C at every distance, {name}", row, row, power(exponent, sign, fraction), None
    for sign in (0, 1):
        c = LARGEST | sign << 31
        yield "largest C and largest products", largest, largest, c, None
        yield "largest C is not touched", largest, [full(7 | 8 * (1 - sign), TOP)] * groups, c, c
        yield "smallest normal C vanishes", smallest, smallest, power(-126, sign), power(-20)
    # The largest term and one that is far below it, block against block.
    if groups > 1:
        for low, code in itertools.product(range(1, 0x7F, 5), (1, 7, 9)):
            high = [full(7, TOP), single(code, low), *[single(0)] * (groups - 2)]
            yield "blocks at every distance", high, high, 0, None
            yield "blocks at every distance, under C", high, high, power(60, 1), None
            yield "blocks at every distance, over C", high, high, power(-10, 1, 5), None


def roundings(groups):
    rest = [single(0)] * (groups - 1)
    one = [single(2), *rest]
    for code, fraction, sign in itertools.product(
        (1, 2, 3, 4, 9, 10, 11, 12), (0, 1, 2, 3, 0x7FFFFE, 0x7FFFFF), (0, 1)
    ):
        for exponent in (23, 24, 25):
            yield "ties and their neighbours", [single(code), *rest], one, power(exponent, sign, fraction), None
    for scale in range(1, 0x30, 7):
        tail = [single(1, scale), *rest]
        yield "a tie and a little more", tail, one, power(24, 0, 1), None
        if groups > 1:
            yield (
                "a tie from two blocks",
                [single(2), single(1, scale), *rest[1:]],
                [single(2)] * groups,
                power(24),
                None,
            )
            yield "a tie less a little", [single(2), single(9, scale), *rest[1:]], [single(2)] * groups, power(24), None


def element_formats(groups, tagged):
    for code_a, code_b, tag_a, tag_b in itertools.product((7, 5, 12, 1), (7, 3, 14), (0, 1), (0, 1)):
        e2m1, e1m2 = [0, 0.5, 1, 1.5, 2, 3, 4, 6], list(range(8))
        value = 16.0 * groups
        for code, tag in ((code_a, tag_a), (code_b, tag_b)):
            value *= (e1m2 if tag and tagged else e2m1)[code & 7] * (-1 if code & 8 else 1)
        a, b = full(code_a, ONE | tag_a << 7), full(code_b, ONE | tag_b << 7)
        yield "element formats", [a] * groups, [b] * groups, 0, fp32(value)
    mixed = [full(7, ONE | (g & 1) << 7) for g in range(groups)]
    for c in (0, fp32(-16 * 36), power(30, 1)):
        yield "formats change from block to block", mixed, mixed[::-1], c, None


def corners(config):
    groups = config.groups
    yield from specials(groups)
    yield from zeros_and_cancellation(groups)
    yield from ranges(groups)
    yield from roundings(groups)
    yield from element_formats(groups, config.a.tagged)


def tiles_of(config, cases):
    """Cases with the same operands share a step: all rows and columns are alike, C differs."""
    size = config.rows * config.columns
    for _, group in itertools.groupby(cases, key=lambda case: case[1:3]):
        same = list(group)
        yield from (same[start : start + size] for start in range(0, len(same), size))


def steps_of(config, tiles):
    def operand(index, rows):
        blocks = [tile[0][index] for tile in tiles]
        codes = np.array([[block[0] for block in row] for row in blocks], np.uint8).reshape(len(tiles), 1, -1)
        scales = np.array([[block[1] for block in row] for row in blocks], np.uint8)
        return np.repeat(codes, rows, axis=1), np.repeat(scales[:, None], rows, axis=1)

    c = np.array([np.resize([case[3] for case in tile], config.rows * config.columns) for tile in tiles], np.uint32)
    everything = np.ones(len(tiles), bool)
    return Steps(
        config,
        *operand(1, config.rows),
        *operand(2, config.columns),
        c.reshape(-1, config.rows, config.columns),
        everything,
        everything,
    )


DEFAULT = [
    *(("nvfp4", 1, "toward_zero"), ("nvfp4", 2, "nearest_even"), ("nvfp4", 4, "toward_zero")),
    *(("mixfp4", 1, "nearest_even"), ("mixfp4", 2, "toward_zero"), ("mixfp4", 4, "nearest_even")),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("form", "groups", "rounding", "zeros", "pipeline"),
    [
        # Either rounding with each format, and with each number of groups.
        *((form, groups, rounding, "counted", DEFAULT_PIPELINE) for form, groups, rounding in DEFAULT),
        ("nvfp4", 1, "toward_zero", "counted", PIPELINE_REGISTERS),
        ("mixfp4", 4, "nearest_even", "counted", PIPELINE_REGISTERS),
        ("mixfp4", 1, "nearest_even", "anticipated", ("terms",)),
        ("mixfp4", 3, "toward_zero", "anticipated", ("terms",)),
        ("mixfp4", 4, "toward_zero", "anticipated", ("terms",)),
        ("mixfp4", 4, "nearest_even", "anticipated", PIPELINE_REGISTERS),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_corners(form, groups, rounding, zeros, pipeline):
    size = 4 if available() else 1
    config = TensorCoreConfig(
        "random", form, form, size, size, groups, rounding=rounding, leading_zeros=zeros, pipeline=pipeline
    )
    cases = list(corners(config))
    tiles = list(tiles_of(config, cases))
    steps = steps_of(config, tiles)
    results = engine(config).run(steps).results
    wrong = []
    for tile, outputs, wanted in zip(tiles, results, steps.expected(), strict=True):
        for (name, a, b, c, known), got, want in zip(tile, outputs.flat, wanted.flat, strict=False):
            assert known is None or want == known, f"{name}: golden model says {want:08x}, not {known:08x}"
            if got != want:
                wrong.append(f"{name}: {got:08x}, not {want:08x}; A {a}, B {b}, C {c:08x}")
    assert not wrong, "\n".join(wrong[:10])
