"""The contract in pieces: pure functions of Python's integers, with the names that the formula in `mma` has.

They are slow and plain. Tests of hardware compare its parts with them, one part at a time, and `mma`, which computes
the same with float64 for whole matrices, is tested against `step` and `exact`.

A number that a format describes is a pair (integer, exponent); what unit the exponent counts stands beside each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from .block import BlockFormat
from .catalogue import block_format
from .element import ElementFormat
from .unscaled import UNSCALED_ELEMENTS
from .window import common_window

NAN = 0x7FFFFFFF
"""FP32 bits of every NaN that is put out."""
INFINITY = 0x7F800000
"""FP32 bits of +Inf."""
MIN_EXPONENT = -126
"""Smallest exponent of FP32, and by convention that of C = 0: no emax is below it."""


class Scale(NamedTuple):
    """A block scale, and what it says of its block. The scale's value is significand * 2^(exponent - 3) in UE4M3."""

    significand: int
    """In eighths, 0 to 15 in UE4M3; the factor of the block's elements included, where they have one."""
    exponent: int
    """exp; of zero it means nothing."""
    fold: int
    """Power of two that the block's elements leave to the exponent."""
    nan: bool
    """Whether it is NaN; the rest then means nothing."""


def scale(byte: int, form: str | BlockFormat = "mixfp4") -> Scale:
    """Return what a scale byte says."""
    form = block_format(form)
    code, selected = byte & ((1 << form.scale.width) - 1), _selected(byte, form)
    fold, factor = form.elements[selected].fold, form.factors[selected] if form.factors else 1
    if code == form.scale.nan:
        return Scale(0, 0, fold, True)
    return Scale(form.scale.significand(code) * factor, form.scale.exponent(code), fold, False)


def half_units(codes: Iterable[int], byte: int, form: str | BlockFormat = "mixfp4", first: int = 0) -> list[int]:
    """Return the integers h of elements of a block with this scale byte: value = h * 2^(fold - point).

    They are consecutive elements of the block from number ``first`` on.
    """
    form = block_format(form)
    integers = form.elements[_selected(byte, form)].integers
    return [integers[code] << shift(lane, byte, form) for lane, code in enumerate(codes, first)]


def shift(lane: int, byte: int, form: str | BlockFormat) -> int:
    """Return how many of the sub-groups of an element, by its number in the block, have their bit set."""
    form = block_format(form)
    count, lowest = 0, form.scale.width
    for length in form.shifts:
        count += byte >> lowest + lane // length & 1
        lowest += form.block // length
    return count


def _selected(byte: int, form: BlockFormat) -> int:
    return byte >> (form.tag_bit or 0) & len(form.elements) - 1


def block_sum(a: Iterable[int], b: Iterable[int]) -> int:
    """Return S_g, the sum of the products of two blocks, in quarters: h times h."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def windowed_sum(a_codes: Iterable[int], b_codes: Iterable[int], a: BlockFormat, b: BlockFormat) -> tuple[int, int]:
    """Return S_g of products that are cut to a window, and r, the largest exponent of a product."""
    (left,), (right,) = a.elements, b.elements
    window = common_window(a, b)
    assert window is not None
    pairs = zip(a_codes, b_codes, strict=True)
    if a.additive:
        bits, lowest = left.mantissa_bits, left.lowest + right.lowest - 2
        found = [added_product(x, y, left) for x, y in pairs]
    else:
        bits, lowest = left.mantissa_bits + right.mantissa_bits, left.lowest + right.lowest
        found = [
            (left.significands[x] * right.significands[y], int(left.exponents[x]) + int(right.exponents[y]))
            for x, y in pairs
        ]
    largest = max((exponent for product, exponent in found if product), default=lowest)
    return sum(aligned(product, exponent - bits, largest, window) for product, exponent in found), largest


def added_product(x: int, y: int, element: ElementFormat) -> tuple[int, int]:
    """Return L-Mul's product of two codes of one element, as a significand with its sign, and its exponent."""
    signs = [(value > 0) - (value < 0) for value in (element.values[x], element.values[y])]
    half, unit = 1 << element.width - 1, 1 << element.mantissa_bits
    exponent, mantissa = divmod(x % half + y % half + 1, unit)
    assert element.normal is not None
    return signs[0] * signs[1] * (unit + mantissa), exponent + 2 * (element.normal - 1)


def scaled_term(total: int, a: Scale, b: Scale) -> int:
    """Return T_g = S_g * sigA * sigB; its value is T_g * 2^(E_g - 8) with UE4M3 scales."""
    return total * a.significand * b.significand


def exponent(a: Scale, b: Scale, largest: int | None = None) -> int:
    """Return E_g = expA + expB + foldA + foldB; with a zero scale the smallest there is, so that it has no say.

    The ``largest`` exponent of products that are cut to a window takes the place of the folds.
    """
    if not (a.significand and b.significand):
        return MIN_EXPONENT
    return a.exponent + b.exponent + (a.fold + b.fold if largest is None else largest)


def unit(a: str | BlockFormat = "mixfp4", b: str | BlockFormat = "mixfp4") -> int:
    """Return the u of value = T_g * 2^(E_g - u): 8 with UE4M3 scales, 3 more for IF4, 2 for MXFP4, 25 for MXFP8."""
    left, right = map(block_format, (a, b))
    if (window := common_window(left, right)) is not None:
        return window + left.scale.mantissa_bits + right.scale.mantissa_bits
    return sum(form.point + form.scale.mantissa_bits + form.factor_bits for form in map(block_format, (a, b)))


def fields(c: int) -> tuple[int, int]:
    """Return sigC, with its sign, and expC of the bits of a finite C: value = sigC * 2^(expC - 23)."""
    field, mantissa = c >> 23 & 0xFF, c & 0x7FFFFF
    significand = mantissa | (1 << 23 if field else 0)
    return (-significand if c >> 31 else significand), max(field, 1) - 127


def largest_exponent(
    c_exponent: int, exponents: Sequence[int], sums: Sequence[int], empty_blocks: str = "included"
) -> int:
    """Return emax of expC, all E_g and all S_g. With "excluded", a block with S_g = 0 has no say."""
    said = [e for e, total in zip(exponents, sums, strict=True) if total or empty_blocks == "included"]
    return max([c_exponent, *said])


def aligned(integer: int, power: int, emax: int, fraction_bits: int = 35) -> int:
    """Return integer * 2^power in units of 2^(emax - fraction_bits), truncated toward zero on its magnitude."""
    shift = power - (emax - fraction_bits)
    magnitude = abs(integer) << shift if shift >= 0 else abs(integer) >> -shift
    return -magnitude if integer < 0 else magnitude


def rounded(integer: int, power: int, rounding: str = "toward_zero") -> int:
    """Return the FP32 bits of integer * 2^power.

    Subnormals are kept, 2^128 and above is infinite, and what is zero after rounding is +0.
    """
    sign, magnitude = (1 << 31 if integer < 0 else 0), abs(integer)
    # Of the leading bit of the result, and so the power of its last place.
    leading = max(magnitude.bit_length() - 1 + power, MIN_EXPONENT)
    drop = leading - 23 - power
    units = magnitude << -drop if drop <= 0 else magnitude >> drop
    if rounding == "nearest_even" and drop > 0:
        rest, half = magnitude & ((1 << drop) - 1), 1 << drop - 1
        units += rest > half or (rest == half and units & 1)
    if not units:
        return 0
    # The hidden bit, which subnormals lack, adds 1 to the exponent field; a carry moves into it.
    return sign | min((leading - MIN_EXPONENT << 23) + units, INFINITY)


def nan_among(codes: Sequence[int], scales: Sequence[int], form: str | BlockFormat) -> bool:
    """Return whether an element of a row is NaN."""
    form = block_format(form)
    blocks = (form.elements[_selected(byte, form)] for byte in scales for _ in range(form.block))
    return any(code in element.nans for code, element in zip(codes, blocks, strict=True))


def infinities(
    a_codes: Sequence[int],
    a_scales: Sequence[int],
    b_codes: Sequence[int],
    b_scales: Sequence[int],
    a: str | BlockFormat,
    b: str | BlockFormat,
) -> frozenset[int]:
    """Return the signs of the infinite products of two rows, 1 and -1; both for infinity times zero."""
    left, right = ([*_values(*row)] for row in ((a_codes, a_scales, a), (b_codes, b_scales, b)))
    found: set[int] = set()
    for x, y in zip(left, right, strict=True):
        if inf in (abs(x), abs(y)):
            found |= {1, -1} if 0 in (x, y) else {1 if (x > 0) == (y > 0) else -1}
    return frozenset(found)


def _values(codes: Sequence[int], scales: Sequence[int], form: str | BlockFormat) -> Iterable[float]:
    """Yield the elements of a row, infinity among them."""
    form = block_format(form)
    for index, code in enumerate(codes):
        yield form.elements[_selected(scales[index // form.block], form)].table[code]


def special(scales: Iterable[Scale], c: int, nan: bool = False, infinite: frozenset[int] = frozenset()) -> int | None:
    """Return the result, FP32 bits, where what is no number gives it; otherwise None.

    That is a NaN scale or element, NaN C, infinite C, and infinite products, of which the signs are given.
    """
    field, mantissa = c >> 23 & 0xFF, c & 0x7FFFFF
    if nan or any(s.nan for s in scales) or (field == 0xFF and mantissa):
        return NAN
    if field == 0xFF:
        infinite = infinite | {-1 if c >> 31 else 1}
    if len(infinite) == 2:
        return NAN
    return INFINITY | (-1 in infinite) << 31 if infinite else None


class Term(NamedTuple):
    """One group of one output."""

    total: int
    """S_g."""
    scaled: int
    """T_g."""
    exponent: int
    """E_g."""


def terms(
    a_codes: Sequence[int],
    a_scales: Sequence[int],
    b_codes: Sequence[int],
    b_scales: Sequence[int],
    a: str | BlockFormat = "mixfp4",
    b: str | BlockFormat = "mixfp4",
) -> list[Term]:
    """Return the groups of one output; those with a NaN scale mean nothing."""
    form, other, found = block_format(a), block_format(b), []
    windowed = common_window(form, other) is not None
    pairs = [pair for pair in zip(a_scales, b_scales, strict=True) for _ in range(form.sums)]
    for group, (left, right) in enumerate(pairs):
        lanes = slice(form.lanes * group, form.lanes * (group + 1))
        pair = scale(left, a), scale(right, b)
        if windowed:
            total, largest = windowed_sum(a_codes[lanes], b_codes[lanes], form, other)
        else:
            first = form.lanes * (group % form.sums)
            numbers = half_units(a_codes[lanes], left, a, first), half_units(b_codes[lanes], right, b, first)
            total, largest = block_sum(*numbers), None
        found.append(Term(total, scaled_term(total, *pair), exponent(*pair, largest)))
    return found


def step(
    a_codes: Sequence[int],
    a_scales: Sequence[int],
    b_codes: Sequence[int],
    b_scales: Sequence[int],
    c: int,
    *,
    a: str | BlockFormat = "mixfp4",
    b: str | BlockFormat = "mixfp4",
    fraction_bits: int = 35,
    rounding: str = "toward_zero",
    empty_blocks: str = "included",
) -> int:
    """Return one output of a step, FP32 bits.

    Parameters
    ----------
    a_codes, b_codes : sequence of int
        16 G element codes each.
    a_scales, b_scales : sequence of int
        G scale bytes each.
    c : int
        FP32 bits.
    a, b, fraction_bits, rounding, empty_blocks
        As in `golden.step`.
    """
    nan = nan_among(a_codes, a_scales, a) or nan_among(b_codes, b_scales, b)
    infinite = infinities(a_codes, a_scales, b_codes, b_scales, a, b)
    result = special([*(scale(x, a) for x in a_scales), *(scale(x, b) for x in b_scales)], c, nan, infinite)
    if result is not None:
        return result
    groups = terms(a_codes, a_scales, b_codes, b_scales, a, b)
    significand, c_exponent = fields(c)
    emax = largest_exponent(c_exponent, [t.exponent for t in groups], [t.total for t in groups], empty_blocks)
    total = aligned(significand, c_exponent - 23, emax, fraction_bits)
    total += sum(aligned(t.scaled, t.exponent - unit(a, b), emax, fraction_bits) for t in groups)
    return rounded(total, emax - fraction_bits, rounding)


def exact(
    a_codes: Sequence[int],
    a_scales: Sequence[int],
    b_codes: Sequence[int],
    b_scales: Sequence[int],
    c: int,
    *,
    a: str | BlockFormat = "mixfp4",
    b: str | BlockFormat = "mixfp4",
) -> int:
    """Return one output of a GEMM with exact numerics, FP32 bits: all terms and C, rounded once to nearest even."""
    nan = nan_among(a_codes, a_scales, a) or nan_among(b_codes, b_scales, b)
    result = special([*(scale(x, a) for x in a_scales), *(scale(x, b) for x in b_scales)], c, nan)
    if result is not None:
        return result
    groups = terms(a_codes, a_scales, b_codes, b_scales, a, b)
    significand, c_exponent = fields(c)
    numbers = [(significand, c_exponent - 23), *((t.scaled, t.exponent - unit(a, b)) for t in groups)]
    lowest = min(power for integer, power in numbers)
    return rounded(sum(integer << power - lowest for integer, power in numbers), lowest, "nearest_even")


class Factor(NamedTuple):
    """An element without a block scale: value = significand * 2^(exponent - 3)."""

    significand: int
    """In eighths, -15 to 15; 0 of NaN and infinity, too."""
    exponent: int
    """The encoded one, r; of zero and subnormal numbers that of the smallest normal one."""
    nan: bool
    """Whether it is NaN."""
    infinite: int
    """Sign of infinity, 1 or -1; 0 of all others."""


def factor(code: int, element: str = "e4m3") -> Factor:
    """Return what a byte says in an element type of `golden.unscaled_step`. Bits above the type's are ignored."""
    form = UNSCALED_ELEMENTS[element]
    code &= (1 << form.width) - 1
    significand = form.significands[code] << 3 - form.mantissa_bits
    sign = -1 if code >> form.width - 1 else 1
    return Factor(significand, int(form.exponents[code]), code in form.nans, sign if code in form.infinities else 0)


def product(a: Factor, b: Factor) -> tuple[int, int]:
    """Return a product of two numbers and its exponent r: value = product * 2^(r - 6)."""
    return a.significand * b.significand, a.exponent + b.exponent


def infinite_product(a: Factor, b: Factor) -> frozenset[int]:
    """Return the sign of a product if it is infinite, both for infinity times zero, and none for a number."""
    if not (a.infinite or b.infinite):
        return frozenset()
    signs = a.infinite or a.significand, b.infinite or b.significand
    return frozenset({1, -1} if 0 in signs else {1 if (signs[0] > 0) == (signs[1] > 0) else -1})


def unscaled_step(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    c: int,
    *,
    a: str = "e4m3",
    b: str = "e4m3",
    fraction_bits: int = 25,
    rounding: str = "toward_zero",
    a_scales: Sequence[int] = (),
    b_scales: Sequence[int] = (),
) -> int:
    """Return one output of a step without block scales, FP32 bits; or of one with UE8M0 scales.

    Parameters
    ----------
    a_codes, b_codes : sequence of int
        K bytes each.
    c : int
        FP32 bits.
    a, b, fraction_bits, rounding
        As in `golden.unscaled_step`, but `fraction_bits` has no limit.
    a_scales, b_scales : sequence of int
        One for each 32 elements, if there are any.
    """
    pairs = [(factor(x, a), factor(y, b)) for x, y in zip(a_codes, b_codes, strict=True)]
    nan = any(x.nan or y.nan for x, y in pairs) or 255 in (*a_scales, *b_scales)
    result = special((), c, nan, frozenset().union(*(infinite_product(x, y) for x, y in pairs)))
    if result is not None:
        return result
    significand, c_exponent = fields(c)
    raised = [x + y - 254 for x, y in zip(a_scales, b_scales, strict=True)] or [0] * len(pairs)
    products = [(integer, r + raised[k // 32]) for k, (integer, r) in enumerate(product(x, y) for x, y in pairs)]
    # Integer, exponent, and what its unit is below that; those of zero have no say.
    terms = [(significand, c_exponent, 23), *((integer, r, 6) for integer, r in products)]
    largest = max((r for integer, r, _ in terms if integer), default=0)
    total = sum(aligned(integer, r - unit, largest, fraction_bits) for integer, r, unit in terms)
    return rounded(total, largest - fraction_bits, rounding)
