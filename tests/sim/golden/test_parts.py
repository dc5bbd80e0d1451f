"""The contract in pieces against rational arithmetic and known answers."""

from fractions import Fraction

import pytest
import rational
from hypothesis import given
from hypothesis import strategies as st

from sim import golden
from sim.golden import parts

CODES = st.integers(0, 15)
BYTES = st.integers(0, 255)
NAMES = ("nvfp4", "mixfp4", "nvint4")
FORMS = st.sampled_from(NAMES)
WORDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("form", NAMES)
def test_scales_and_elements(form):
    for byte in range(256):
        found = parts.scale(byte, form)
        values, fold = rational.element(form, byte)
        assert found.nan == (byte & 0x7F == 0x7F)
        if found.nan:
            continue
        assert found.fold == fold
        assert found.significand * Fraction(2) ** (found.exponent - 3) == rational.scale_of(form, byte)
        assert found.significand == 0 or found.exponent == rational.exponent_of(form, byte)
        halves = parts.half_units(range(16), byte, form)
        assert [h * Fraction(2) ** (fold - 1) for h in halves] == values


def test_a_block_by_hand():
    # 1.5 * 6 in the first lane, -3 * 0.5 in the second: 7.5 is 30 quarters.
    a, b = [3, 13] + [0] * 14, [7, 1] + [0] * 14
    total = parts.block_sum(parts.half_units(a, 0x38), parts.half_units(b, 0x38))
    assert total == 30
    one, half = parts.scale(0x38), parts.scale(0x30)
    assert (one, half) == ((8, 0, 0, False), (8, -1, 0, False))
    assert parts.scaled_term(total, one, half) == 30 * 64
    assert parts.exponent(one, half) == -1
    assert parts.exponent(parts.scale(0xB8), half) == 0  # E1M2
    assert parts.exponent(parts.scale(0x00), half) == parts.exponent(parts.scale(0x00), parts.scale(0x7E)) == -126
    assert parts.unit() == 8


@given(WORDS.filter(lambda c: c >> 23 & 255 != 255))
def test_fields_of_c(c):
    significand, exponent = parts.fields(c)
    assert (significand * Fraction(2) ** (exponent - 23), exponent) == rational.c_value(c)


def test_largest_exponent():
    assert parts.largest_exponent(-126, [3, 16], [5, 0]) == 16
    assert parts.largest_exponent(-126, [3, 16], [5, 0], "excluded") == 3
    assert parts.largest_exponent(7, [3, 16], [5, 0], "excluded") == 7
    assert parts.largest_exponent(-126, [3, 16], [0, 0], "excluded") == -126


@given(st.integers(-(2**40), 2**40), st.integers(-60, 60), st.integers(-60, 60), st.integers(1, 48))
def test_alignment_truncates_toward_zero(integer, power, emax, fraction_bits):
    exact = integer * Fraction(2) ** power / Fraction(2) ** (emax - fraction_bits)
    found = parts.aligned(integer, power, emax, fraction_bits)
    assert abs(found) <= abs(exact) < abs(found) + 1
    assert found * exact >= 0


@given(st.integers(-(2**60), 2**60), st.integers(-220, 100), st.sampled_from(golden.ROUNDINGS))
def test_rounding(integer, power, rounding):
    assert parts.rounded(integer, power, rounding) == rational.float_bits(integer * Fraction(2) ** power, rounding)


@pytest.mark.parametrize(
    ("integer", "power", "truncated", "nearest"),
    [
        (0, 0, 0, 0),
        (1, 0, 0x3F800000, 0x3F800000),
        (-3, -1, 0xBFC00000, 0xBFC00000),
        ((1 << 24) + 1, 0, 0x4B800000, 0x4B800000),  # a tie, to even
        ((1 << 24) + 3, 0, 0x4B800001, 0x4B800002),
        ((1 << 25) - 1, 0, 0x4BFFFFFF, 0x4C000000),  # the carry moves into the exponent
        (1, -149, 1, 1),
        (1, -150, 0, 0),
        (3, -150, 1, 2),
        ((1 << 24) - 1, -150, 0x007FFFFF, 0x00800000),  # the largest subnormal and a half
        (1, 128, 0x7F800000, 0x7F800000),
        ((1 << 25) - 1, 103, 0x7F7FFFFF, 0x7F800000),
    ],
)
def test_rounding_by_hand(integer, power, truncated, nearest):
    assert parts.rounded(integer, power) == truncated
    assert parts.rounded(integer, power, "nearest_even") == nearest


@given(st.data())
def test_steps_and_exact_sums_are_those_of_rational_arithmetic(data):
    groups = data.draw(st.sampled_from([1, 2, 4]))
    operands = [
        data.draw(st.lists(of, min_size=n * groups, max_size=n * groups))
        for of, n in ((CODES, 16), (BYTES, 1), (CODES, 16), (BYTES, 1))
    ]
    c, a, b = data.draw(WORDS), data.draw(FORMS), data.draw(FORMS)
    expected = rational.terms(*operands, (a, b))
    assert parts.exact(*operands, c, a=a, b=b) == rational.exact_output(expected, c)
    options = {
        "fraction_bits": data.draw(st.integers(1, 60)),
        "rounding": data.draw(st.sampled_from(golden.ROUNDINGS)),
        "empty_blocks": data.draw(st.sampled_from(golden.EMPTY_BLOCKS)),
    }
    assert parts.step(*operands, c, a=a, b=b, **options) == rational.step_output(expected, c, **options)
