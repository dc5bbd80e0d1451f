"""What follows from a pair of formats, against all blocks that there can be."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from hwgen.formats import BLOCK_FORMATS, Bounds
from sim import golden

PAIRS = [
    *itertools.product(("nvfp4", "mixfp4", "nvint4"), repeat=2),
    ("fp4-ue5m3-b16", "fp4-ue5m3-b16"),
    ("mixfp4", "fp4-ue5m3-b16"),
    ("fp4-ue5m3-b32", "fp4-ue5m3-b32"),
    ("mxfp4", "mxfp4"),
    ("fp4-ue5m3-b32", "mxfp4"),
    ("mxfp4-2x16", "mxfp4-2x16"),
    ("msfp12", "msfp12"),
    ("nvfp4-e0m3", "nvfp4-e0m3"),
    ("if4", "if4"),
    ("if4", "nvint4"),
    ("razer-activations", "razer-activations"),
    ("razer-activations", "razer-weights"),
    ("blockdialect", "blockdialect"),
    ("mxint8", "mxint8"),
    ("mxfp6-e2m3", "mxfp6-e2m3"),
    ("mxfp6-e3m2", "mxfp6-e3m2"),
    ("mxfp6-e3m2", "mxfp4"),
    ("mxfp8-e4m3", "mxfp4"),
    ("mxfp8-e5m2", "mxfp4"),
    ("hif4", "hif4"),
    ("int8", "int8"),
    ("int8", "int4"),
    ("int8", "ternary"),
]
pairs = pytest.mark.parametrize(("a", "b"), PAIRS)


def test_all_formats_have_a_pair():
    cut = {name for name, form in BLOCK_FORMATS.items() if form.additive or form.always_cut}
    assert {name for pair in PAIRS for name in pair} == set(BLOCK_FORMATS) - cut


def usable(form):
    """Scale bytes that are neither zero nor NaN, as (significand, exponent, selector); of many selectors a few."""
    record = golden.block_format(form)
    for tag in sorted({*range(min(4, len(record.elements))), len(record.elements) - 1}):
        for code in range(1 if record.scale.zero == 0 else 0, record.scale.nan or 1 << record.scale.width):
            factor = record.factors[tag] if record.factors else 1
            yield record.scale.significand(code) * factor, record.scale.exponent(code) + record.elements[tag].fold, tag


@cache
def largest(form, tag):
    record = golden.block_format(form)
    return max(abs(h) for h in record.elements[tag].integers) << len(record.shifts)


@pairs
def test_ranges_are_those_of_all_scales_and_the_largest_elements(a, b):
    bounds = Bounds(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
    kinds = {side: list(usable(side)) for side in {a, b}}
    exponents = {x[1] + y[1] for x, y in itertools.product(kinds[a], kinds[b])}
    assert (min(exponents), max(exponents)) == (bounds.lowest_exponent, bounds.highest_exponent)
    assert (max(exponents) + bounds.exponent_offset).bit_length() == bounds.exponent_bits
    sums = [
        (bounds.lanes * largest(a, x[2]) * largest(b, y[2]), x[0] * y[0], x[1] + y[1])
        for x, y in itertools.product(kinds[a], kinds[b])
    ]
    assert max(total for total, _, _ in sums) == bounds.largest_sum
    assert bounds.largest_sum < 1 << bounds.sum_width - 1
    assert max(total * significands for total, significands, _ in sums) == bounds.largest_term
    assert bounds.largest_term.bit_length() == bounds.term_width
    exact = max((total * significands) << exponent + bounds.exponent_offset for total, significands, exponent in sums)
    assert exact == bounds.largest_exact_block


@pairs
def test_the_value_of_a_term(a, b):
    """T * 2^(E - term_fraction) is the product of scales and elements."""
    bounds = Bounds(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
    records = [golden.block_format(name) for name in (a, b)]
    for (sig_a, exp_a, tag_a), (sig_b, exp_b, tag_b) in list(itertools.product(usable(a), usable(b)))[::97]:
        values, hs = Fraction(1), 1
        for record, tag, sig, exp in zip(records, (tag_a, tag_b), (sig_a, sig_b), (exp_a, exp_b), strict=True):
            element = record.elements[tag]
            code = max(range(1 << record.width), key=lambda c, element=element: element.integers[c])
            scale = Fraction(sig) * Fraction(2) ** (
                exp - element.fold - record.scale.mantissa_bits - record.factor_bits
            )
            values *= Fraction(element.values[code]) * scale
            hs *= element.integers[code]
        assert hs * sig_a * sig_b * Fraction(2) ** (exp_a + exp_b - bounds.term_fraction) == values
        assert values * Fraction(2) ** bounds.exact_unit == int(values * Fraction(2) ** bounds.exact_unit)


@pytest.mark.parametrize("name", ["mxfp8-e4m3", "mxfp8-e5m2"])
def test_products_that_are_cut_to_a_window(name):
    """E4M3 x E4M3 and E5M2 x E5M2, from the values and exponents of the golden model."""
    form = BLOCK_FORMATS[name]
    bounds, element = Bounds(form, form), golden.block_format(name).elements[0]
    exponents = element.exponents.tolist()
    significands = [abs(v) / 2.0**e for v, e in zip(element.values, exponents, strict=True)]
    assert (bounds.window, bounds.term_fraction) == (25, 25)
    assert bounds.largest_sum == bounds.largest_term == 32 * max(significands) ** 2 * 2**25
    assert bounds.lowest_exponent == 2 * min(exponents) - 254
    assert bounds.highest_exponent == 2 * max(exponents) + 254
    assert bounds.product_span == 2 * (max(exponents) - min(exponents))
    most = bounds.most_fraction_bits(1)
    assert golden.max_fraction_bits(1, name, name) in (most, most + 1)
    assert bounds.may_be_infinite == bool(element.infinities)
    assert not bounds.exact_in_double
    assert Bounds(form, BLOCK_FORMATS["mxfp4"]).window is None


def test_products_with_fp16():
    """They are cut, be the other operand without a window; integers have one exponent, but -128 its own."""
    form = BLOCK_FORMATS["fp16"]
    for other, largest in (("int4", 7 / 4), ("int8", 127 / 64), ("ternary", 1), ("fp16", 2047 / 1024)):
        forms = form, BLOCK_FORMATS[other]
        elements = [golden.block_format(each.name).elements[0] for each in forms]
        exponents = [element.exponents[element.table != 0].tolist() for element in elements]
        for bounds in (Bounds(*forms), Bounds(*reversed(forms))):
            assert (bounds.window, bounds.term_fraction, bounds.lanes) == (25, 25, 16)
            assert bounds.largest_sum == bounds.largest_term == 16 * Fraction(2047, 1024) * Fraction(largest) * 2**25
            assert bounds.lowest_exponent == sum(map(min, exponents))
            assert bounds.highest_exponent == sum(map(max, exponents))
            assert bounds.may_be_infinite
            assert not bounds.exact_in_double
            assert not bounds.wide(35)
        most = bounds.most_fraction_bits(1)
        assert golden.max_fraction_bits(1, other, "fp16") in (most, most + 1)


def test_codes_that_are_added():
    """Of all pairs of codes of E4M3, by the golden model."""
    form = BLOCK_FORMATS["l-mul"]
    bounds, element = Bounds(form, form), golden.block_format("l-mul").elements[0]
    codes = np.arange(127, dtype=np.uint8)  # positive numbers
    magnitudes, exponents = np.frexp(golden.additive_products(element, codes[1:, None], codes[None, 1:]))
    assert (bounds.product_exponent, bounds.product_span) == (exponents.min() - 1, np.ptp(exponents))
    assert (bounds.product_fraction, bounds.largest_product) == (3, magnitudes.max() * 16)
    assert bounds.largest_sum == bounds.largest_term == 32 * 15 * 2**22
    most = bounds.most_fraction_bits(1)
    assert golden.max_fraction_bits(1, "l-mul", "l-mul") in (most, most + 1)
    assert not bounds.exact_in_double


@pairs
def test_allowed_fraction_bits(a, b):
    bounds = Bounds(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
    assert bounds.least_fraction_bits == 23 > bounds.term_fraction
    # A zero scale of exponent -126 beside the largest one: C is cut at 2^(emax - F), above its last bit or not.
    forms = [golden.block_format(name) for name in (a, b)]
    folds = sum(max(element.fold for element in form.elements) for form in forms)
    largest_scale = max(math.floor(math.log2(form.scale.largest)) for form in forms)
    with_zero = [form for form in forms if form.scale.zero == 0]
    for bits in range(23, 48) if with_zero else ():
        assert bounds.zero_is_lowest(bits) == (-126 + largest_scale + folds - bits <= -149)
    most = bounds.most_fraction_bits()
    for bits, fits in ((most, True), (most + 1, False)):
        units = 8 * forms[0].sums * Fraction(bounds.largest_term) * Fraction(2) ** (
            bits - bounds.term_fraction
        ) + 2 ** (bits + 1)
        assert (units < 2**53) == fits
    for groups in (1, 8):
        own = bounds.most_fraction_bits(groups)
        assert golden.max_fraction_bits(groups, a, b) in (own, own + 1)
    for bits in range(bounds.least_fraction_bits, most + 1):
        powers = sum(form.scale.largest > 2**100 for form in forms)
        # Two of the smallest scales of HiF4, in quarters of quarters: 2^-98.
        assert bounds.subnormal_results(bits) == (powers > 0 or (a == "hif4" and bits > 28))
        assert bounds.wide(bits) == (powers > 0 or a == "hif4")
        assert bounds.can_overflow(bits) == (powers > 0)
    assert bounds.subnormal_results(127 + bounds.lowest_exponent)
    # The largest term just reaches a sum with the highest exponent.
    top = bounds.largest_term.bit_length() + bounds.highest_exponent - bounds.term_fraction
    assert not bounds.can_overflow(127 - top)
    assert bounds.can_overflow(128 - top)
