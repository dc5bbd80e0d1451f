"""Records of formats: what follows from a table, and what is no format."""

import dataclasses

import pytest

from hwgen.errors import InputError
from hwgen.formats import (
    BLOCK_FORMATS,
    E1M2,
    E2M1,
    E2M3,
    E3M2,
    E5M2,
    E8M0,
    INT4,
    INT8,
    NONE,
    S1P2,
    UE4M3,
    BlockFormat,
    ElementFormat,
    ScaleFormat,
)


@pytest.mark.parametrize(
    ("element", "bits", "longest"), [(E2M1, 2, 2), (E2M3, 4, 2), (E3M2, 3, 6), (INT8, 7, 1), (E1M2, 3, 0)]
)
def test_integers_are_short_significands_that_are_shifted(element, bits, longest):
    """Those of minifloats have a hidden bit; 128 is what INT8 is shifted for."""
    assert (element.significand_bits, max(element.shifts)) == (bits, longest)
    for h, significand, shift in zip(element.integers, element.significands, element.shifts, strict=True):
        assert significand << shift == abs(h)
        assert significand < 1 << bits
        assert shift == 0 or significand >= 1 << bits - 1


def sign_magnitude(*magnitudes):
    return (*magnitudes, *(-magnitude for magnitude in magnitudes))


def test_integers_are_the_values_over_their_largest_common_power_of_two():
    assert E2M1.integers == sign_magnitude(0, 1, 2, 3, 4, 6, 8, 12)
    assert E1M2.integers == sign_magnitude(*range(8))
    assert INT4.integers == (*range(8), 0, *range(-7, 0))
    assert S1P2.integers == E1M2.integers
    assert [element.fold for element in (E2M1, E1M2, INT4, S1P2)] == [0, 1, 1, -1]
    assert [element.largest for element in (E2M1, E1M2, INT4, S1P2)] == [12, 7, 7, 7]
    assert [element.fold for element in (E2M3, E3M2, INT8)] == [0, 0, 0]
    assert [element.largest for element in (E2M3, E3M2, INT8)] == [60, 448, 128]
    scaled = ElementFormat("", tuple(value * 0.375 for value in E2M1.values), "")
    assert (scaled.fold, scaled.largest) == (-3, 36)
    assert ElementFormat("", (0.0, 24.0, -0.0, -8.0), "").integers == (0, 3, 0, -1)


@pytest.mark.parametrize("width", range(2, 9))
def test_codes_of_any_width(width):
    half = 1 << width - 1
    element = ElementFormat("", (*range(half), *range(-half, 0)), "")
    assert (element.width, element.largest, element.fold) == (width, half, 1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((0, 1, 2), "has 3 values"),
        ((0, 1), "has 2 values"),
        (range(512), "has 512 values"),
        ((0, float("inf"), 0, -1), "code 0x1 is inf"),
        ((0, float("nan"), 0, -1), "code 0x1 is nan"),
        ((0, 2.0**600, 0, -(2.0**-600)), "values of 1201 bits"),
        ((0, "1", 0, -1), "code 0x1 is '1'; must be a number"),
        ((1, 2, -1, -2), "code 0 is 1"),
        ((0, 0, 0, 0), "all values are 0"),
        ((0, 1, 2, 3, 4, -1, 2, -3), "code 0x6 is 2; the top bit of a code must be its sign"),
        ((0, -1, 0, -2), "code 0x1 is -1; the top bit of a code must be its sign"),
    ],
)
def test_tables_that_are_no_element_format(values, words):
    with pytest.raises(InputError) as caught:
        ElementFormat("odd", tuple(values), "")
    assert "element format odd: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"infinities": (1,)}, "infinities = (1,): 0x1 must be a code of value 0"),
        ({"infinities": (0,)}, "infinities = (0,): 0x0 must be a code of value 0"),
        ({"nans": (256,)}, "nans = (256,): 0x100 must be a code of value 0"),
        ({"infinities": (0x7C, 0x7D)}, "infinities = (124, 125): 0x7d is NaN"),
    ],
)
def test_codes_that_are_neither_nan_nor_infinite(fields, words):
    with pytest.raises(InputError) as caught:
        dataclasses.replace(E5M2, **fields)
    assert f"element format E5M2: {words}" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"exponent_bits": 6}, "exponent_bits = 6, mantissa_bits = 3"),
        ({"exponent_bits": 1}, "exponent_bits = 1"),
        ({"mantissa_bits": 0}, "mantissa_bits = 0: at least 2 and 1"),
        ({"mantissa_bits": -1, "subnormals": False}, "mantissa_bits = -1: at least 2 and 0"),
        ({"nan": 0x7E}, "nan = 0x7e: must be the highest code, 0x7f"),
    ],
)
def test_fields_that_are_no_scale_format(fields, words):
    with pytest.raises(InputError) as caught:
        dataclasses.replace(UE4M3, **fields)
    assert words in str(caught.value)


def test_ranges_of_a_scale():
    assert (UE4M3.highest, UE4M3.largest, UE4M3.exponents) == (0x7E, 448.0, range(-6, 9))
    without = dataclasses.replace(UE4M3, nan=None)
    assert (without.highest, without.largest) == (0x7F, 480.0)


WIDE = ScaleFormat("UE5M3", exponent_bits=5, mantissa_bits=3, bias=15, nan=0xFF, source="")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"elements": ()}, "0 elements"),
        ({"elements": (E2M1, E1M2, INT4)}, "3 elements"),
        ({"elements": (E2M1, ElementFormat("T", (0, 1, 0, -1), ""))}, "codes of 4 and 2 bits"),
        ({"elements": (E2M1, E1M2), "scale": WIDE}, "a selector of 1 bits has no place beside scale UE5M3"),
        ({"size": 0}, "a block of 0: must fill whole bytes"),
        ({"size": 3}, "a block of 3: must fill whole bytes"),
        ({"factors": (7, 6)}, "factors = (7, 6): must be positive, one for each element"),
        ({"factors": (0,)}, "factors = (0,)"),
        ({"factors": (1,), "scale": E8M0}, "factors = (1,): scale E8M0 has no significand"),
        ({"scale_bytes": 3}, "scale_bytes = 3: must be 1, 2 or 4"),
        ({"scale_bytes": 4}, "scale_bytes = 4: takes shifts"),
        ({"scale_bytes": 0}, "scale_bytes = 0: must be 1, 2 or 4, or 0 without a scale"),
        (
            {"scale_bytes": 0, "scale": NONE, "elements": (E2M1, E1M2)},
            "a selector of 1 bits has no place beside scale none",
        ),
        ({"shifts": (4, 8)}, "shifts = (4, 8): must divide one another and the 16 products of a sum, longest first"),
        ({"shifts": (8, 8)}, "shifts = (8, 8): must divide one another"),
        ({"shifts": (8, 3)}, "shifts = (8, 3): must divide one another"),
        ({"shifts": (8, 0)}, "shifts = (8, 0): must divide one another"),
        ({"shifts": (16,), "sums": 2}, "shifts = (16,): must divide one another and the 8 products of a sum"),
        ({"shifts": (8,), "elements": (E2M1, E1M2)}, "shifts = (8,): take elements of one kind, without factors"),
        ({"shifts": (8,), "factors": (2,)}, "shifts = (8,): take elements of one kind"),
        ({"shifts": (8, 4), "scale_bytes": 1}, "shifts of 6 bits have no place beside scale UE4M3"),
        ({"window": 1}, "window = 1: must keep the bits of a whole product, and be 32 at most"),
        ({"window": 25, "sums": 2}, "window = 25: takes one kind of elements, in one sum"),
        ({"elements": (E2M1,) * 16, "scale": WIDE}, "a selector of 4 bits has no place beside scale UE5M3"),
        ({"elements": (E5M2,), "size": 32}, "elements may be infinite; they take a scale without zero, and UE4M3 has"),
        ({"sums": 3}, "sums = 3: must divide the block of 16"),
        ({"sums": 0}, "sums = 0"),
    ],
)
def test_parts_that_are_no_block_format(fields, words):
    with pytest.raises(InputError) as caught:
        dataclasses.replace(BLOCK_FORMATS["nvfp4"], **fields)
    assert "block format nvfp4: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"window": None}, "products of all exponents are cut to a window; give one"),
        ({"elements": (E5M2,)}, "elements of E5M2 may be infinite, and no sum of codes is"),
        ({"elements": BLOCK_FORMATS["mxint8"].elements}, "takes codes of sign, exponent and up to 3 bits of mantissa"),
    ],
)
def test_codes_that_do_not_add_up(fields, words):
    with pytest.raises(InputError) as caught:
        dataclasses.replace(BLOCK_FORMATS["l-mul"], **fields)
    assert str(caught.value).startswith("block format l-mul: additive: ")
    assert words in str(caught.value)


def test_which_codes_are_those_of_a_float():
    coded = {element.name for form in BLOCK_FORMATS.values() for element in form.elements if element.coded_as_float}
    assert {"E4M3", "E5M2", "E2M3", "E3M2", "E2M1"} <= coded
    assert not {"INT8", "INT4", "I8", "D0"} & coded


def test_a_number_in_the_place_of_minus_zero():
    values = (0, 1, 2, 3, 2.5, -1, -2, -3)
    positive, negative = ElementFormat("", values, ""), ElementFormat("", (*values[:4], -2.5, *values[5:]), "")
    assert (positive.integers[4], positive.signed_by_top_bit) == (5, False)
    assert (negative.integers[4], negative.signed_by_top_bit) == (-5, True)
    assert E2M1.signed_by_top_bit


def test_factors():
    if4 = BLOCK_FORMATS["if4"]
    assert (if4.factor_bits, if4.weights, if4.largest_weighted) == (3, (7, 6), 84)
    assert set(if4.significands) == {s * f for s in range(1, 16) for f in (6, 7)}
    assert (if4.significand_bits, if4.fraction_bits) == (7, 6)
    nvfp4, mxfp4 = BLOCK_FORMATS["nvfp4"], BLOCK_FORMATS["mxfp4"]
    assert (nvfp4.significands, nvfp4.significand_bits, nvfp4.weights) == (tuple(range(1, 16)), 4, (1,))
    assert (mxfp4.significands, mxfp4.significand_bits) == ((1,), 0)


def test_sub_groups_that_are_shifted():
    hif4 = BLOCK_FORMATS["hif4"]
    assert (hif4.shift_bits, hif4.scale_width, hif4.stored_bytes, hif4.lanes) == (24, 32, 36, 16)
    assert [max(table) for table in hif4.integers] == [7, 14, 14, 28]
    assert hif4.magnitudes == {m << s for m in range(8) for s in range(3)}
    pairs = dataclasses.replace(BLOCK_FORMATS["nvfp4"], name="pairs", shifts=(2,), scale_bytes=2)
    assert (pairs.shift_bits, pairs.scale_width, pairs.largest, pairs.largest_weighted) == (8, 15, 24, 24)


def test_a_selector_of_two_bits():
    narrow = ScaleFormat("UE3M3", exponent_bits=3, mantissa_bits=3, bias=3, nan=None, source="")
    shifted = tuple(ElementFormat(str(up), tuple(value * 2**up for value in E2M1.values), "") for up in range(4))
    form = BlockFormat("four", shifted, narrow, size=16, full_scale=1.0, source="")
    assert (form.selector_bits, form.scale_width, form.folds, form.extra_folds) == (2, 8, (0, 1, 2, 3), (0, 1, 2, 3))
    assert (form.lowest_exponent, form.highest_exponent) == (-2, 4 + 3)


def test_steps_choose_between_two_kinds():
    with pytest.raises(InputError, match="block format one: by_step: takes two kinds of elements; this has 1"):
        dataclasses.replace(BLOCK_FORMATS["nvfp4"], name="one", by_step=True)
    mixfp4, chosen = BLOCK_FORMATS["mixfp4"], BLOCK_FORMATS["nvfp4-e0m3"]
    assert (mixfp4.scale_width, chosen.scale_width, chosen.selector_bits) == (8, 7, 1)
