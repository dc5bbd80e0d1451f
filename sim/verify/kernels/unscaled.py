"""Steps at half the rate: every product in the window by itself, and what is seen of it in a result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwgen.formats import ElementFormat
from hwgen.formats.unscaled import CONTAINER, LOWEST_PRODUCT, SIGNIFICAND, TYPE_BITS, TYPES
from hwgen.jit import compiled, inlined
from sim.verify.half_goals import NANS
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

__all__ = ["UnscaledBins", "UnscaledSide", "UnscaledStimulus", "count_unscaled", "unscaled_side"]

_Array = NDArray[np.int64]
_NOWHERE = -1 << 20
"""Below all exponents."""
_PLACES = 2 * SIGNIFICAND - 2
"""Places of a product of significands behind its point."""
_ZERO, _INFINITE, _NOT_A_NUMBER = 0, 3, 5
"""Kinds of elements, in the order of `sim.verify.bins.OPERANDS`, and NaN behind them."""


class UnscaledSide(NamedTuple):
    """One operand of steps at half the rate, and the tables of the types.

    ``elements`` (S, rows, K) are its bytes, ``types`` (S,) the codes of their types, ``scales`` (S, rows, G) the kinds
    of the scale bytes beside them. The tables are by code of a type and byte: ``significand`` in eighths, ``exponent``,
    ``kind``, ``negative``, and ``nan``, which one of `NANS` it is. ``known`` has by code which type it is, -1 where it
    is reserved.
    """

    elements: NDArray[np.uint8]
    types: NDArray[np.uint8]
    scales: _Array
    significand: _Array
    exponent: _Array
    kind: _Array
    negative: _Array
    nan: _Array
    known: _Array


class UnscaledStimulus(NamedTuple):
    """Both operands, C as uint32 (S, M, N), its origin by step, and the products of a block.

    An ``origin`` is 0 for the payload, 1 for a step of FP4, and 2 for one at half the rate.
    """

    a: UnscaledSide
    b: UnscaledSide
    c: NDArray[np.uint32]
    origin: _Array
    slots: int


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


class _Found(NamedTuple):
    """What is special about an output: NaN elements of A and of B, infinite products and their kind, other products."""

    nans_a: int
    nans_b: int
    infinite: int
    lane: int
    kind: int
    some: bool


def unscaled_side(elements: NDArray[np.uint8], types: NDArray[np.uint8], scales: _Array) -> UnscaledSide:
    """An operand with the tables of the types; arguments as the fields of `UnscaledSide`."""
    shape = (1 << TYPE_BITS, 1 << CONTAINER)
    tables = np.zeros((5, *shape), np.int64)
    known = np.full(1 << TYPE_BITS, -1)
    for index, (code, element) in enumerate(TYPES.items()):
        known[code] = index
        for byte in range(1 << CONTAINER):
            tables[:, code, byte] = _entry(code, element, byte & (1 << element.width) - 1)
    significand, exponent, kinds, negative, nan = tables
    return UnscaledSide(elements, types, scales, significand, exponent, kinds, negative, nan, known)


def _entry(code: int, element: ElementFormat, own: int) -> tuple[int, int, int, int, int]:
    """Significand in eighths, exponent, kind, sign, and which NaN a code of a type is."""
    negative = own >> element.width - 1
    if own in element.nans:
        return 0, 0, _NOT_A_NUMBER, negative, NANS.index((code, own))
    if own in element.infinities:
        return 0, 0, _INFINITE + negative, negative, 0
    significand = element.significands[own] << SIGNIFICAND - element.significand_bits
    return significand, element.lowest_exponent + element.shifts[own], (1 + negative) * (significand > 0), negative, 0


@inlined
def _specials(  # pragma: no cover
    stimulus: UnscaledStimulus, step: int, m: int, n: int
) -> _Found:
    """Look for NaN, infinity and zero among the products of an output."""
    a, b = stimulus.a, stimulus.b
    of_a, of_b = a.kind[a.types[step]], b.kind[b.types[step]]
    nans_a = nans_b = count = lane = 0
    positive = negative = of_zero = together = some = False
    for block in range(a.scales.shape[2]):
        plus = minus = False
        for k in range(block * stimulus.slots, (block + 1) * stimulus.slots):
            x, y = of_a[a.elements[step, m, k]], of_b[b.elements[step, n, k]]
            if x == _NOT_A_NUMBER or y == _NOT_A_NUMBER:
                nans_a += x == _NOT_A_NUMBER
                nans_b += y == _NOT_A_NUMBER
                lane = k
            elif x >= _INFINITE or y >= _INFINITE:
                count, lane = count + 1, k
                zero = x == _ZERO or y == _ZERO
                of_zero = of_zero or zero
                plus = plus or zero or x % 2 == y % 2
                minus = minus or zero or x % 2 != y % 2
            else:
                some = some or (x != _ZERO and y != _ZERO)
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
    meets = 4 if reserved else 2 if nans else 3 if found.infinite else 0 if found.some else 1
    origin = stimulus.origin[step]
    bins.addends[origin, c_kind, meets] += 1
    if reserved:
        bins.types[a.types[step], b.types[step]] += c_kind < FIRST_NAN
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
    stimulus: UnscaledStimulus, step: int, m: int, n: int, top: int, last: int, bins: UnscaledBins
) -> None:
    """Count the products of an output whose largest exponent is ``top`` and whose last place is that of 2^``last``."""
    a, b = stimulus.a, stimulus.b
    of_a, of_b = a.types[step], b.types[step]
    type_a, type_b = a.known[of_a], b.known[of_b]
    seen = False
    for k in range(a.elements.shape[2]):
        x, y = a.elements[step, m, k], b.elements[step, n, k]
        exponent = a.exponent[of_a, x] + b.exponent[of_b, y]
        significand_a, significand_b = a.significand[of_a, x], b.significand[of_b, y]
        signs = a.negative[of_a, x] + 2 * b.negative[of_b, y]
        if significand_a != 0 and significand_b != 0:
            negative = 1 if signs == 1 or signs == 2 else 0
            bins.shifts[k, min(top - exponent, bins.shifts.shape[1] - 1), negative] += 1
        if exponent - _PLACES < last:
            continue
        bins.significands[k, significand_a, significand_b, signs] += 1
        if significand_b != 0:
            bins.codes_a[k, type_a, x] += 1
            seen = seen or significand_a != 0
        if significand_a != 0:
            bins.codes_b[k, type_b, y] += 1
    bins.types[of_a, of_b] += seen


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
def _finite(  # pragma: no cover
    stimulus: UnscaledStimulus,
    step: int,
    m: int,
    n: int,
    c: Fp32,
    fraction: int,
    nearest: bool,
    bins: UnscaledBins,
    results: ResultBins,
) -> int:
    """FP32 bits of a sum of numbers; counts what becomes of them."""
    a, b = stimulus.a, stimulus.b
    of_a, of_b = a.types[step], b.types[step]
    top_product, alone, negative = _NOWHERE, -1, False
    for k in range(a.elements.shape[2]):
        x, y = a.elements[step, m, k], b.elements[step, n, k]
        if a.significand[of_a, x] != 0 and b.significand[of_b, y] != 0:
            exponent = a.exponent[of_a, x] + b.exponent[of_b, y]
            if exponent > top_product:
                top_product, alone = exponent, k
                negative = a.negative[of_a, x] != b.negative[of_b, y]
            elif exponent == top_product:
                alone = -1
    top = max(top_product, c.exponent if c.magnitude != 0 or top_product == _NOWHERE else _NOWHERE)
    word = c.magnitude << fraction - 23 >> min(top - c.exponent, 63) if c.magnitude != 0 else 0
    biggest, products = word, 0
    for k in range(a.elements.shape[2]):
        x, y = a.elements[step, m, k], b.elements[step, n, k]
        exponent = a.exponent[of_a, x] + b.exponent[of_b, y]
        magnitude = a.significand[of_a, x] * b.significand[of_b, y] << fraction - _PLACES
        magnitude = magnitude >> min(max(top - exponent, 0), 63)
        biggest = max(biggest, magnitude)
        products += -magnitude if a.negative[of_a, x] != b.negative[of_b, y] else magnitude
    total = products - word if c.negative else products + word
    d = rounded(total, False, top - fraction, nearest, results)
    _count_sum(c, total, products, biggest, top, top_product, c.negative != negative, bins)
    if alone >= 0 and top == top_product:
        bins.alone[alone, top_product - LOWEST_PRODUCT] += 1
    last = max(top - fraction + max(bit_length(abs(total)) - 24, 0), LAST_PLACE)
    _count_products(stimulus, step, m, n, top, last, bins)
    return d


@compiled
def count_unscaled(  # pragma: no cover
    stimulus: UnscaledStimulus,
    fraction: int,
    nearest: bool,
    bins: UnscaledBins,
    results: ResultBins,
    d: NDArray[np.uint32],
) -> None:
    """Count all outputs of steps at half the rate, and compute them; ``c`` is what each of them adds to."""
    a, b = stimulus.a, stimulus.b
    count, rows, columns = stimulus.c.shape
    for step in range(count):
        for m in range(rows):
            for n in range(columns):
                found = _specials(stimulus, step, m, n)
                bits = int(stimulus.c[step, m, n])
                special = _special_result(stimulus, step, m, n, found, bits, bins)
                if special >= 0:
                    d[step, m, n] = special
                    results.classes[kind(special)] += 1
                else:
                    d[step, m, n] = _finite(stimulus, step, m, n, fields(bits), fraction, nearest, bins, results)
                if d[step, m, n] != NAN:
                    for g in range(a.scales.shape[2]):
                        bins.scales[g, a.scales[step, m, g], b.scales[step, n, g]] += 1
