"""Steps at half the rate: every product in the window by itself, and what is seen of it in a result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwgen.formats.unscaled import LOWEST_PRODUCT, SCALE, SIGNIFICAND
from hwgen.jit import borrowing, inlined
from sim.verify.half_goals import LEAST_RAISED
from sim.verify.kernels.products import (
    INFINITE,
    NOT_A_NUMBER,
    ZERO,
    Decoded,
    Products,
    UnscaledSide,
    UnscaledStimulus,
    decode,
    multiply,
    space,
)
from sim.verify.kernels.rounding import (
    FIRST_INFINITE,
    FIRST_NAN,
    INFINITY,
    LAST_PLACE,
    NAN,
    NEGATIVE_INFINITY,
    Fp32,
    ResultBins,
    bit_length,
    fields,
    kind,
    rounded,
)

__all__ = ["UnscaledBins", "count_unscaled"]

_Array = NDArray[np.int64]
_NOWHERE = -1 << 20
"""Below all exponents."""
_ONE, _NO_SCALE = SCALE.bias, (1 << SCALE.width) - 1
"""Bytes of the scale of 1 and of the one that is NaN."""
_PLACES = 2 * SIGNIFICAND - 2
"""Places of a product of significands behind its point."""


class UnscaledBins(NamedTuple):
    """Bins in the order of `sim.verify.half_goals`, and of their axes there."""

    types: _Array
    codes_a: _Array
    codes_b: _Array
    significands: _Array
    scales: _Array
    nans_a: _Array
    nans_b: _Array
    infinite: _Array
    infinities: _Array
    addends: _Array
    alone: _Array
    shifts: _Array
    largest: _Array
    against: _Array
    leading: _Array
    cancelled: _Array
    zeros: _Array
    scales_a: _Array
    scales_b: _Array
    nan_scales: _Array
    raised: _Array
    ends: _Array
    below: _Array


class _Found(NamedTuple):
    """What is special about an output: NaN elements of A and of B, infinite products and their kind, other products."""

    nans_a: int
    nans_b: int
    infinite: int
    lane: int
    kind: int
    some: bool


@inlined
def _specials(  # pragma: no cover
    a: Decoded, b: Decoded, m: int, n: int, slots: int, some: bool
) -> _Found:
    """Look for NaN and infinity among the products of an output; ``some`` is whether one of the others is not zero."""
    nans_a = nans_b = count = lane = 0
    positive = negative = of_zero = together = False
    if a.special[m] or b.special[n]:
        for begin in range(0, a.kind.shape[1], slots):
            plus = minus = False
            for k in range(begin, begin + slots):
                x, y = a.kind[m, k], b.kind[n, k]
                if x == NOT_A_NUMBER or y == NOT_A_NUMBER:
                    nans_a += x == NOT_A_NUMBER
                    nans_b += y == NOT_A_NUMBER
                    lane = k
                elif x >= INFINITE or y >= INFINITE:
                    count, lane = count + 1, k
                    zero = x == ZERO or y == ZERO
                    of_zero = of_zero or zero
                    plus = plus or zero or x % 2 == y % 2
                    minus = minus or zero or x % 2 != y % 2
            together = together or (plus and minus)
            positive, negative = positive or plus, negative or minus
    made = 4 if of_zero else 2 if together else 3 if positive and negative else 1 if negative else 0
    return _Found(nans_a, nans_b, count, lane, made, some)


@inlined
def _special_result(  # pragma: no cover
    stimulus: UnscaledStimulus, step: int, m: int, n: int, found: _Found, bits: int, bins: UnscaledBins
) -> int:
    """FP32 bits of a result that no sum decides, -1 where one does; counts why."""
    a, b = stimulus.a, stimulus.b
    c_kind = kind(bits)
    c_number = c_kind < FIRST_INFINITE
    reserved = a.known[a.types[step]] < 0 or b.known[b.types[step]] < 0
    nans = found.nans_a + found.nans_b
    nan_scales = (a.byte[step, m] == _NO_SCALE) + 2 * (b.byte[step, n] == _NO_SCALE)
    meets = 4 if reserved else 5 if nan_scales else 2 if nans else 3 if found.infinite else 0 if found.some else 1
    origin = stimulus.origin[step]
    bins.addends[origin, c_kind, meets] += 1
    if reserved:
        bins.types[a.types[step], b.types[step]] += c_kind < FIRST_NAN
        return NAN
    if nan_scales:
        bins.nan_scales[nan_scales - 1] += nans == 0 and c_kind < FIRST_NAN
        return NAN
    if nans:
        if nans == 1 and not found.infinite and c_kind < FIRST_NAN:
            if found.nans_a:
                bins.nans_a[found.lane, a.nan[a.types[step], a.elements[step, m, found.lane]]] += 1
            else:
                bins.nans_b[found.lane, b.nan[b.types[step], b.elements[step, n, found.lane]]] += 1
        return NAN
    if found.infinite:
        bins.infinities[min(origin, 1), found.kind, max(min(c_kind, FIRST_NAN) - FIRST_INFINITE + 1, 0)] += 1
        if found.infinite == 1 and c_number:
            x = a.kind[a.types[step], a.elements[step, m, found.lane]]
            y = b.kind[b.types[step], b.elements[step, n, found.lane]]
            bins.infinite[found.lane, x, y] += 1
    if not found.infinite and c_number:
        return -1
    positive = bits == INFINITY or (found.infinite > 0 and found.kind != 1)
    negative = bits == NEGATIVE_INFINITY or (found.infinite > 0 and found.kind != 0)
    if c_kind >= FIRST_NAN or (positive and negative):
        return NAN
    return INFINITY if positive else NEGATIVE_INFINITY


@inlined
def _count_products(  # pragma: no cover
    a: Decoded, b: Decoded, m: int, n: int, top: int, last: int, products: Products, bins: UnscaledBins
) -> bool:
    """Count the products of an output whose largest exponent is ``top`` and whose last place is that of 2^``last``.

    Returns whether one that is not zero is seen.
    """
    seen = False
    farthest = bins.shifts.shape[1] - 1
    for k in range(len(products.signed)):
        product, exponent = products.signed[k], products.exponent[k]
        if product != 0:
            bins.shifts[k, min(top - exponent, farthest), int(product < 0)] += 1
        if exponent - _PLACES < last:
            continue
        x, y = abs(a.signed[m, k]), abs(b.signed[n, k])
        bins.significands[k, x, y, products.signs[k]] += 1
        a.seen[m, k] += y != 0
        b.seen[n, k] += x != 0
        seen = seen or product != 0
    return seen


@inlined
def _count_codes(  # pragma: no cover
    side: UnscaledSide, step: int, decoded: Decoded, codes: _Array
) -> None:
    """Count the elements of a step that were seen."""
    of_type = side.known[side.types[step]]
    rows, count = decoded.seen.shape
    if of_type >= 0:
        for row in range(rows):
            for k in range(count):
                codes[k, of_type, side.elements[step, row, k]] += decoded.seen[row, k]


@inlined
def _count_sum(  # pragma: no cover
    c: Fp32, total: int, products: int, biggest: int, top: int, top_product: int, unequal: bool, bins: UnscaledBins
) -> None:
    """Count C beside the products, and their sum; all but exponents in units of the window's last place."""
    some = top_product != _NOWHERE
    if c.magnitude != 0 and some:
        middle = bins.against.shape[0] // 2
        bins.against[min(max(c.exponent - top_product, -middle), middle) + middle, int(unequal)] += 1
    if c.magnitude != 0 or some:
        bins.largest[0 if top_product < top else 1 if c.magnitude != 0 and c.exponent == top else 2] += 1
        place = bit_length(abs(total)) - 1
        if total == 0:
            bins.cancelled[len(bins.cancelled) - 1] += 1
        else:
            bins.cancelled[max(bit_length(biggest) - 1 - place, -1) + 1] += 1
            bins.leading[place, int(total < 0)] += 1
    if not some:
        bins.zeros[0 if c.magnitude == 0 else 1] += 1
    else:
        bins.zeros[2] += c.magnitude == 0
        if products == 0:
            # None is cut to zero where the largest is theirs.
            bins.zeros[3 if c.magnitude == 0 else 4] += top_product == top
        bins.zeros[5] += total == 0 and products != 0


@inlined
def _count_ends(  # pragma: no cover
    c: Fp32, total: int, unit: int, d: int, bins: UnscaledBins
) -> None:
    """Count sums with products in them that are beyond FP32 at either end; ``unit`` is their last place."""
    magnitude, negative = d & 0x7FFFFFFF, int(total < 0)
    if magnitude == INFINITY:
        bins.ends[0, negative] += 1
    elif c.magnitude == 0 and total != 0:
        bins.ends[1, negative] += 0 < magnitude < 0x800000
        bins.ends[2, negative] += magnitude == 0
    if c.magnitude == 0 and total != 0:
        bins.below[min(max(LAST_PLACE - unit, 0), len(bins.below) - 1)] += 1


@inlined
def _finite(  # pragma: no cover
    a: Decoded,
    b: Decoded,
    m: int,
    n: int,
    c: Fp32,
    raised: int,
    fraction: int,
    nearest: bool,
    products: Products,
    bins: UnscaledBins,
    results: ResultBins,
) -> tuple[int, bool]:
    """FP32 bits of a sum of numbers, and whether a product is seen in it; counts what becomes of them."""
    top_product, alone, negative = _NOWHERE, -1, False
    for k in range(len(products.signed)):
        if products.signed[k] != 0:
            exponent = products.exponent[k]
            if exponent > top_product:
                top_product, alone, negative = exponent, k, products.signed[k] < 0
            elif exponent == top_product:
                alone = -1
    top = max(top_product, c.exponent if c.magnitude != 0 or top_product == _NOWHERE else _NOWHERE)
    word = c.magnitude << fraction - 23 >> min(top - c.exponent, 63) if c.magnitude != 0 else 0
    biggest, summed = word, 0
    for k in range(len(products.signed)):
        magnitude = abs(products.signed[k]) << fraction - _PLACES
        magnitude = magnitude >> min(max(top - products.exponent[k], 0), 63)
        biggest = max(biggest, magnitude)
        summed += -magnitude if products.signed[k] < 0 else magnitude
    total = summed - word if c.negative else summed + word
    d = rounded(total, False, top - fraction, nearest, results)
    _count_sum(c, total, summed, biggest, top, top_product, c.negative != negative, bins)
    if alone >= 0 and top == top_product:
        bins.alone[alone, top_product - raised - LOWEST_PRODUCT] += 1
    if len(bins.below) and top_product != _NOWHERE:
        _count_ends(c, total, top - fraction, d, bins)
    last = max(top - fraction + max(bit_length(abs(total)) - 24, 0), LAST_PLACE)
    if d & 0x7FFFFFFF == INFINITY:
        last = -_NOWHERE
    return d, _count_products(a, b, m, n, top, last, products, bins)


def count_unscaled(
    stimulus: UnscaledStimulus,
    fraction: int,
    nearest: bool,
    bins: UnscaledBins,
    results: ResultBins,
    d: NDArray[np.uint32],
) -> None:
    """Count all outputs of steps at half the rate, and compute them; ``c`` is what each of them adds to."""
    a, b = space(stimulus.a), space(stimulus.b)
    products = Products(*np.zeros((3, stimulus.a.elements.shape[2]), np.int64))
    _count(stimulus, fraction, nearest, a, b, products, bins, results, d)


@borrowing
def _count(  # pragma: no cover
    stimulus: UnscaledStimulus,
    fraction: int,
    nearest: bool,
    a: Decoded,
    b: Decoded,
    products: Products,
    bins: UnscaledBins,
    results: ResultBins,
    d: NDArray[np.uint32],
) -> None:
    count, rows, columns = stimulus.c.shape
    of_a, of_b = stimulus.a.scales, stimulus.b.scales
    for step in range(count):
        decode(stimulus.a, step, a)
        decode(stimulus.b, step, b)
        seen = 0
        for m in range(rows):
            for n in range(columns):
                raised = stimulus.a.byte[step, m] + stimulus.b.byte[step, n] - 2 * _ONE
                some = multiply(a, b, m, n, raised, products)
                found = _specials(a, b, m, n, stimulus.slots, some)
                bits = int(stimulus.c[step, m, n])
                special = _special_result(stimulus, step, m, n, found, bits, bins)
                if special >= 0:
                    d[step, m, n] = special
                    results.classes[kind(special)] += 1
                else:
                    shown = _finite(a, b, m, n, fields(bits), raised, fraction, nearest, products, bins, results)
                    d[step, m, n] = shown[0]
                    seen += shown[1]
                    if len(bins.raised) and shown[1]:
                        bins.scales_a[stimulus.a.byte[step, m]] += 1
                        bins.scales_b[stimulus.b.byte[step, n]] += 1
                        if 0 <= raised - LEAST_RAISED < len(bins.raised):
                            bins.raised[raised - LEAST_RAISED] += 1
                if d[step, m, n] != NAN:
                    for g in range(of_a.shape[2]):
                        bins.scales[g, of_a[step, m, g], of_b[step, n, g]] += 1
        bins.types[stimulus.a.types[step], stimulus.b.types[step]] += seen
        _count_codes(stimulus.a, step, a, bins.codes_a)
        _count_codes(stimulus.b, step, b, bins.codes_b)
