"""The accumulation loop against integer arithmetic."""

import itertools

import numpy as np
import pytest

from hwgen.config import LOOP_REGISTERS, TensorCoreConfig
from hwgen.rtl.accumulate.stepwise import Accumulate
from hwgen.rtl.accumulate.terms import term_width, terms_layout
from sim.golden import parts

LARGEST = 16 * 12 * 12 * 15 * 15


def expected(config, terms, exponent, active, nan, c):
    """The contract; ``terms`` are sign, magnitude and distance, ``exponent`` is offset by 12."""
    field, fraction = c >> 23 & 255, c & 0x7FFFFF
    if nan or (field == 255 and fraction):
        return parts.NAN
    if field == 255 or not active:
        return c if c & 0x7FFFFFFF else 0
    significand, c_exponent = parts.fields(c)
    top = max(c_exponent, exponent - 12)
    total = parts.aligned(significand, c_exponent - 23, top, config.fraction_bits)
    for sign, magnitude, distance in terms:
        term = -magnitude if sign else magnitude
        total += parts.aligned(term, exponent - 12 - distance - 8, top, config.fraction_bits)
    return parts.rounded(total, top - config.fraction_bits, config.rounding)


def check(config, evaluate, cases):
    layout = terms_layout(config)

    def packed(terms, exponent, active, nan):
        fields = [
            {"sign": sign, "magnitude": magnitude} | ({"distance": distance} if config.groups > 1 else {})
            for sign, magnitude, distance in terms
        ]
        value = layout.const({"terms": fields, "exponent": exponent, "active": active, "nan": nan})
        return value.as_value().value

    always = {"enter": 1, "enable": 1} if config.interleave > 1 else {}
    stimuli = [{"terms": packed(*case[:-1]), "c": case[-1], **always} for case in cases]
    for case, outputs in zip(cases, evaluate(Accumulate(config), stimuli), strict=True):
        want = expected(config, *case)
        assert outputs["d"] == want, f"{case}: {outputs['d']:08x}, not {want:08x}"


CONFIGS = [
    TensorCoreConfig(
        "x",
        "mixfp4",
        "mixfp4",
        1,
        1,
        groups,
        fraction_bits=fraction_bits,
        rounding=rounding,
        pipeline=("terms", *registers),
    )
    for groups, fraction_bits, rounding, registers in [
        (1, 35, "toward_zero", ()),
        (1, 33, "nearest_even", ()),
        (2, 39, "toward_zero", ()),
        (3, 35, "nearest_even", ()),
        (4, 35, "toward_zero", ()),
        (8, 39, "nearest_even", ()),
        (1, 35, "toward_zero", LOOP_REGISTERS),
        (3, 33, "nearest_even", ("aligned", "total")),
        (4, 39, "toward_zero", ("normal",)),
    ]
]
configs = pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda c: "-".join(map(str, (c.groups, c.fraction_bits, c.rounding, *c.pipeline[1:])))
)

SPECIAL_C = [
    *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x80400000, 0x00800000, 0x80800000),
    *(0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF, 0x7FC00000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000),
]


def random_terms(config, rng, exponent):
    distances = rng.integers(0, exponent + 1, config.groups)
    if rng.random() < 0.5:
        distances = np.minimum(distances, rng.integers(0, 4, config.groups))
    distances[rng.integers(config.groups)] = 0
    widths = rng.integers(0, 20, config.groups)
    magnitudes = np.minimum(rng.integers(0, 1 << 19, config.groups) >> 19 - widths, LARGEST)
    if rng.random() < 0.3:
        magnitudes[:] = rng.choice([LARGEST, 1, 0, 1 << 18, 0x3FFFF], config.groups)
    return list(zip(rng.integers(0, 2, config.groups).tolist(), magnitudes.tolist(), distances.tolist(), strict=True))


@configs
def test_random(config, evaluate):
    assert LARGEST.bit_length() == term_width(config)
    rng = np.random.default_rng(config.groups * 100 + config.fraction_bits)
    cases = []
    for index in range(1200 // (config.groups + 1)):
        exponent = int(rng.integers(0, 31))
        terms = random_terms(config, rng, exponent)
        c = int(rng.integers(0, 1 << 32))
        if index % 4 == 1:
            c = int(rng.choice(SPECIAL_C))
        elif index % 4 > 1:
            field = np.clip(exponent - 12 + rng.integers(-60, 70), -126, 127) + 127
            c = (c & 0x807FFFFF & ~int(rng.choice([0, 0xFFF, 0x3FFFFF]))) | int(field) << 23
        cases.append((terms, exponent, 1, int(rng.random() < 0.02), c))
    check(config, evaluate, cases)


@configs
def test_every_distance_of_c(config, evaluate):
    """C from far above to far below the terms, one bit or all ones, both relative signs."""
    cases = []
    for exponent, field in itertools.product((0, 30), range(60, 220, config.groups)):
        for fraction, magnitude in ((0, 1), (0x7FFFFF, LARGEST), (0, LARGEST), (0x7FFFFF, 1)):
            sign = (field + exponent) & 1
            terms = [(sign, magnitude, 0)] * config.groups
            cases.append((terms, exponent, 1, 0, (field // 3 & 1) << 31 | field << 23 | fraction))
    check(config, evaluate, cases)


@pytest.mark.parametrize(
    "config", [c for c in CONFIGS if c.groups > 1], ids=lambda c: "-".join(map(str, (c.groups, *c.pipeline[1:])))
)
def test_every_distance_of_a_term(config, evaluate):
    cases = []
    for distance in range(31):
        place = distance % config.groups
        # C lifts emax, so that the terms reach the end of the window.
        for magnitude, c in ((1, 0), (LARGEST, 0), (1, 0x4F000000), (LARGEST, 0xCF000000), (LARGEST, 0x58000001)):
            terms = [(1, 1, 0)] * config.groups
            terms[place] = (0, magnitude, distance)
            cases.append((terms, 30, 1, 0, c))
    check(config, evaluate, cases)


@configs
def test_cancellation(config, evaluate):
    """C against terms that add up to its negative, exactly or one unit off."""
    cases = []
    for bit, off, sign in itertools.product(range(0, 18, config.groups), (0, 1, -1), (0, 1)):
        magnitude = (1 << bit) + off
        terms = [(sign, magnitude, 0)] + [(0, 0, 0)] * (config.groups - 1)
        exponent = 20
        c = (1 - sign) << 31 | (bit + exponent - 12 - 8 + 127) << 23
        cases.append((terms, exponent, 1, 0, c))
        if config.groups > 1:
            pair = [(sign, magnitude, 0), (1 - sign, 1 << bit, 0), *terms[2:]]
            cases += [(pair, exponent, 1, 0, c) for c in (0, 0x80000000, 0x80000001, c)]
    check(config, evaluate, cases)


@configs
def test_ties(config, evaluate):
    """Sums at, just below and just above the middle of two FP32 numbers, and on a carry to the next binade."""
    cases = []
    for fraction, shift, extra, signs in itertools.product(
        (0, 1, 0x7FFFFE, 0x7FFFFF), (24, 25), (-1, 0, 1), itertools.product((0, 1), repeat=2)
    ):
        # The term is 2^-shift of C, give or take one unit.
        terms = [(signs[0], (1 << 11) + extra, 0)] + [(0, 0, 0)] * (config.groups - 1)
        exponent = 10
        field = 11 + exponent - 12 - 8 + shift + 127
        cases.append((terms, exponent, 1, 0, signs[1] << 31 | field << 23 | fraction))
    check(config, evaluate, cases)


@configs
def test_specials(config, evaluate):
    zero = [(0, 0, 0)] * config.groups
    one = [(1, 5, 0), *zero[1:]]
    cases = [
        (terms, exponent, active, nan, c)
        for (terms, exponent, active) in ((zero, 0, 0), (zero, 9, 1), (one, 9, 1), (one, 0, 1))
        for nan in (0, 1)
        for c in SPECIAL_C
    ]
    check(config, evaluate, cases)


pipelined = pytest.mark.parametrize("groups", [1, 3])


@pipelined
def test_without_a_step_the_accumulator_goes_round(groups, evaluate):
    """Whatever the terms say; -0 and other NaN do not occur in an accumulator."""
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, groups, pipeline=LOOP_REGISTERS)
    rng = np.random.default_rng(groups)
    bits = terms_layout(config).size
    accumulators = [c for c in (*SPECIAL_C, *rng.integers(0, 1 << 32, 300).tolist()) if c != 0x80000000]
    accumulators = [c if c & 0x7FFFFFFF <= 0x7F800000 else 0x7FFFFFFF for c in accumulators]
    stimuli = [
        {"terms": int.from_bytes(rng.bytes(-(-bits // 8)), "little") & (1 << bits) - 1, "c": c, "enter": 0, "enable": 1}
        for c in accumulators
    ]
    assert [outputs["d"] for outputs in evaluate(Accumulate(config), stimuli)] == accumulators


@pipelined
def test_registers_hold(groups, evaluate):
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, groups, pipeline=LOOP_REGISTERS)
    depth = len(LOOP_REGISTERS)
    enables = [*[True] * depth, False, False, True, False, True, True, True, True]
    values = [0x3F800000 + index for index in range(len(enables))]
    stimuli = [{"terms": 0, "c": c, "enter": 0, "enable": enable} for c, enable in zip(values, enables, strict=True)]
    found = [outputs["d"] for outputs in evaluate(Accumulate(config), stimuli)]
    loaded = [c for c, enable in zip(values, enables, strict=True) if enable]
    # Behind the last input the clock goes on, with the last enable.
    edges = [*enables, *[True] * depth]
    want = [loaded[sum(edges[: index + depth]) - depth] for index in range(len(found))]
    assert found == want
