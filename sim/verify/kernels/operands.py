"""Blocks: their sums, their scales, and which of them are seen in a result."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwgen.formats import BlockFormat, ElementFormat
from hwgen.jit import inlined
from sim.verify.codes import Codes, codes_of, members

__all__ = [
    "Infinite",
    "Met",
    "OperandBins",
    "Side",
    "Stimulus",
    "block_sum",
    "count_infinite",
    "count_seen",
    "gather",
    "infinite_products",
    "side",
]

_Array = NDArray[np.int64]
_ZERO_EXPONENT = -(1 << 12)
"""Of a scale of zero: whatever its partner, below every C, since such a block takes no part."""


class Side(NamedTuple):
    """One operand of all steps, and the tables of its format.

    ``codes`` (S, rows, K) and ``scales`` (S, rows, G) are as the core gets them. A block makes ``sums`` block sums of
    ``lanes`` products each; ``first`` is the lowest code of a scale that is not zero, and scales have ``places``
    exponents.
    ``integers`` has the elements in half-units, without fold, by selector and code. Where sub-groups are shifted, the
    bits of an element's own stand above its code, and the byte of a scale has one bit more, set if any of its bits
    above is.
    All other tables are by the byte of a scale: ``selector``; ``exponent`` with the fold; ``place``, the exponent
    without it, from the lowest one; ``significand`` in units of the last place, factors included; ``multiplier``, which
    one that is of all there are; ``code``, without the bits above; ``kind`` as in the goals; ``zero``; ``nan``.
    ``nan_codes`` has which elements are NaN, as ``integers`` does.
    Where products are cut to a window, ``integers`` are significands with a sign and ``shifts`` their exponents above
    ``lowest``; a product with the largest exponent is shifted by ``up`` places to the left. Else ``up`` is -1.
    Where codes are added in the place of products, ``integers`` are signs and ``shifts`` codes without them, whose
    mantissa has ``added`` bits. Else ``added`` is -1.
    ``kind_of``, ``fraction`` and ``nan_of`` are by code what `sim.verify.codes` tells apart of it.
    ``signs`` has by selector and code which of `sim.verify.bins.OPERANDS` an element is; it is empty where no element
    of either operand may be infinite.
    """

    codes: NDArray[Any]
    scales: NDArray[np.uint16]
    lanes: int
    sums: int
    first: int
    places: int
    integers: _Array
    selector: _Array
    exponent: _Array
    place: _Array
    significand: _Array
    multiplier: _Array
    code: _Array
    kind: _Array
    zero: NDArray[np.bool_]
    nan: NDArray[np.bool_]
    nan_codes: NDArray[np.bool_]
    shifts: _Array
    lowest: int
    up: int
    added: int
    kind_of: _Array
    fraction: _Array
    nan_of: _Array
    signs: _Array


class Stimulus(NamedTuple):
    """What the core gets: both operands, C as uint32 (S, M, N), and the flags of every step."""

    a: Side
    b: Side
    c: NDArray[np.uint32]
    first: NDArray[np.bool_]
    last: NDArray[np.bool_]


class OperandBins(NamedTuple):
    """Bins of what is seen, in the order of their axes in `sim.verify.goals`, and of all scales."""

    pairs: _Array
    fractions_a: _Array
    fractions_b: _Array
    selectors: _Array
    scales_a: _Array
    scales_b: _Array
    exponents: _Array
    powers: _Array
    differences: _Array
    significands: _Array
    kinds: _Array
    nans_a: _Array
    nans_b: _Array
    infinite: _Array
    infinities: _Array


class Infinite(NamedTuple):
    """The infinite products of an output: their number, the last one's lane, their signs, and whether one is of zero.

    ``together`` is that a block has both signs.
    """

    number: int
    lane: int
    positive: bool
    negative: bool
    of_zero: bool
    together: bool


class Met(NamedTuple):
    """What is special about the blocks of one output: a NaN, a zero among the scales, products that cancel."""

    nan: bool
    zero: bool
    cancel: bool


def side(
    form: BlockFormat,
    codes: NDArray[Any],
    scales: NDArray[np.uint8],
    window_shift: int | None = None,
    infinite: bool = False,
) -> Side:
    """An operand with the tables of its format.

    ``window_shift`` is `Bounds.window_shift`, where there is a window; ``infinite`` whether elements of either operand
    may be that.
    """
    scale = form.scale
    codes, scales, above = _with_shifts(form, codes, scales)
    stored = np.arange(1 << scale.width + above)
    code = stored & (1 << scale.width) - 1
    selector = stored >> scale.width & (1 << form.selector_bits) - 1
    exponents = np.array([scale.exponent(byte) for byte in code.tolist()])
    zero = (code == 0) & scale.subnormals
    significands = np.array([scale.significand(byte) for byte in code.tolist()], np.int64)
    significands *= np.array(form.weights)[selector]
    own = _by_code(form, window_shift is not None, infinite)
    return Side(
        codes,
        scales.astype(np.uint16),
        form.lanes,
        form.sums,
        int(scale.subnormals),
        len(scale.exponents),
        own.integers,
        selector,
        np.where(zero, _ZERO_EXPONENT, exponents) + np.array(form.folds)[selector],
        exponents - scale.exponents[0],
        significands,
        np.searchsorted(np.array(form.significands), significands),
        code,
        np.select([zero, code == (-1 if scale.nan is None else scale.nan)], [1, 2]) + 3 * (stored != code),
        zero,
        code == (-1 if scale.nan is None else scale.nan),
        own.nans,
        own.shifts,
        0 if window_shift is None else form.product_exponent,
        -1 if window_shift is None else window_shift,
        form.elements[0].mantissa_bits if form.additive else -1,
        own.told.kind,
        own.told.fraction,
        own.told.nan,
        own.signs,
    )


class _ByCode(NamedTuple):
    """Tables of `Side` by selector and code, and how codes are told apart."""

    integers: _Array
    nans: NDArray[np.bool_]
    shifts: _Array
    signs: _Array
    told: Codes


@cache
def _by_code(form: BlockFormat, cut: bool, infinite: bool) -> _ByCode:
    codes = [*range(1 << form.code_width)] * (1 << len(form.shifts))
    signs = np.array([_signs(element) for element in form.elements if infinite], np.int64)
    return _ByCode(
        _integers(form, cut),
        members(form, "nans"),
        np.array([_shifts(form, element, codes) for element in form.elements], np.int64),
        signs.reshape(-1, 1 << form.code_width),
        codes_of(form),
    )


def _shifts(form: BlockFormat, element: ElementFormat, codes: list[int]) -> list[int]:
    """Exponents of codes above the lowest one; of codes that are added those without their signs."""
    half = len(element.values) // 2
    return [code % half if form.additive else element.shifts[code] for code in codes]


def _signs(element: ElementFormat) -> list[int]:
    """Which of `sim.verify.bins.OPERANDS` each code is; NaN, which decides by itself, counts as zero."""
    half = len(element.values) // 2
    found = [int(h > 0) + 2 * int(h < 0) for h in element.integers]
    return [3 + (code >= half) if code in element.infinities else sign for code, sign in enumerate(found)]


def _with_shifts(
    form: BlockFormat, codes: NDArray[Any], scales: NDArray[np.uint8]
) -> tuple[NDArray[Any], NDArray[np.uint8], int]:
    """Codes with the bits of their sub-groups above, scales, and the bits that these have above the scale itself."""
    if not form.shifts:
        return codes, scales, form.stored_scale_width - form.scale.width
    if form.code_width + len(form.shifts) > 8:
        codes = codes.astype(np.uint16)
    place = form.scale.width
    for level, length in enumerate(form.shifts):
        bits = np.stack([scales >> place + index & 1 for index in range(form.size // length)], axis=-1)
        spread = np.repeat(bits, length, axis=-1).reshape(codes.shape).astype(codes.dtype)
        codes = codes | spread << (form.code_width + level)
        place += bits.shape[-1]
    alone, some = scales & (1 << form.scale.width) - 1, scales >> form.scale.width != 0
    return codes, alone | some.astype(scales.dtype) << form.scale.width, 1


def _integers(form: BlockFormat, cut: bool) -> _Array:
    """Integers by selector and code, or by shifts and code in one; where products are cut, significands with a sign."""
    if form.additive:
        return np.sign([element.integers for element in form.elements])
    if cut:
        return np.array([_significands(element) for element in form.elements], np.int64)
    tables = np.array(form.integers, np.int64)
    return tables.reshape(1, -1) if form.shifts else tables


def _significands(element: ElementFormat) -> list[int]:
    """The significands of an element, with their signs."""
    return [s if h > 0 else -s for s, h in zip(element.significands, element.integers, strict=True)]


@inlined
def _exponent(a: Side, x: int, y: int) -> int:  # pragma: no cover
    """Exponent of a product above the lowest, of the entries of its elements in ``shifts``."""
    return x + y if a.added < 0 else (x + y + 1) >> a.added


@inlined
def _magnitude(a: Side, product: int, x: int, y: int) -> int:  # pragma: no cover
    """Significand of a product that is cut, without its sign; of those of its elements, and as `_exponent`."""
    if a.added < 0 or product == 0:
        return abs(product)
    return 1 << a.added | ((x + y + 1) & ((1 << a.added) - 1))


@inlined
def largest_exponent(a: Side, b: Side, step: int, m: int, n: int, g: int) -> int:  # pragma: no cover
    """Largest exponent of a product of block sum g that is not zero, above the lowest; 0 where none is cut."""
    if a.up < 0:
        return 0
    of_a, of_b = a.selector[a.scales[step, m, g // a.sums]], b.selector[b.scales[step, n, g // b.sums]]
    largest = 0
    for i in range(a.lanes * g, a.lanes * (g + 1)):
        x, y = a.codes[step, m, i], b.codes[step, n, i]
        if a.integers[of_a, x] and b.integers[of_b, y]:
            largest = max(largest, _exponent(a, a.shifts[of_a, x], b.shifts[of_b, y]))
    return largest


@inlined
def block_sum(
    a: Side, b: Side, step: int, m: int, n: int, g: int, largest: int
) -> tuple[int, bool]:  # pragma: no cover
    """S_g of block sum g, and whether a product in it is not zero; ``largest`` as above."""
    selected_a, selected_b = a.selector[a.scales[step, m, g // a.sums]], b.selector[b.scales[step, n, g // b.sums]]
    of_a, of_b = a.integers[selected_a], b.integers[selected_b]
    total, some = 0, False
    for i in range(a.lanes * g, a.lanes * (g + 1)):
        product = of_a[a.codes[step, m, i]] * of_b[b.codes[step, n, i]]
        some = some or product != 0
        if a.up >= 0:
            x, y = a.shifts[selected_a, a.codes[step, m, i]], b.shifts[selected_b, b.codes[step, n, i]]
            cut = (_magnitude(a, product, x, y) << a.up) >> min(max(largest - _exponent(a, x, y), 0), 63)
            product = cut if product > 0 else -cut
        total += product
    return total, some


@inlined
def _nan_elements(operand: Side, step: int, row: int, g: int, bins: _Array) -> bool:  # pragma: no cover
    """Whether an element of a block sum is NaN; counts those."""
    if not bins.shape[0]:
        return False
    nan = operand.nan_codes[operand.selector[operand.scales[step, row, g // operand.sums]]]
    found = False
    for lane in range(operand.lanes * g, operand.lanes * (g + 1)):
        code = operand.codes[step, row, lane]
        if nan[code]:
            bins[lane, operand.nan_of[code]] += 1
            found = True
    return found


@inlined
def gather(  # pragma: no cover
    a: Side, b: Side, step: int, m: int, n: int, bins: OperandBins, terms: _Array, exponents: _Array, empty: _Array
) -> Met:
    """Fill in T_g, E_g and which blocks are empty, of one output; count its scales.

    Empty is a block between usable scales whose sum is zero: 1 if all its products are, 2 if they cancel, else 0.
    """
    nan = zero = some_cancel = False
    for g in range(a.scales.shape[2] * a.sums):
        x, y = a.scales[step, m, g // a.sums], b.scales[step, n, g // b.sums]
        if g % a.sums == 0:
            bins.kinds[g // a.sums, a.kind[x], b.kind[y]] += 1
        nan = nan or a.nan[x] or b.nan[y]
        zero = zero or a.zero[x] or b.zero[y]
        largest = largest_exponent(a, b, step, m, n, g)
        total, some = block_sum(a, b, step, m, n, g, largest)
        nan = _nan_elements(a, step, m, g, bins.nans_a) or nan
        nan = _nan_elements(b, step, n, g, bins.nans_b) or nan
        usable = not (a.nan[x] or b.nan[y] or a.zero[x] or b.zero[y])
        empty[g] = (2 if some else 1) if usable and total == 0 else 0
        some_cancel = some_cancel or (some and total == 0)
        terms[g] = total * a.significand[x] * b.significand[y]
        exponents[g] = a.exponent[x] + b.exponent[y] + a.lowest + b.lowest + largest
    return Met(nan, zero, some_cancel)


@inlined
def infinite_products(a: Side, b: Side, step: int, m: int, n: int) -> Infinite:  # pragma: no cover
    """The infinite products of an output."""
    count = lane = 0
    positive = negative = of_zero = together = False
    groups = a.scales.shape[2] * a.sums if a.signs.shape[0] else 0
    for g in range(groups):
        of_a, of_b = a.selector[a.scales[step, m, g // a.sums]], b.selector[b.scales[step, n, g // b.sums]]
        plus = minus = False
        for i in range(a.lanes * g, a.lanes * (g + 1)):
            x, y = a.signs[of_a, a.codes[step, m, i]], b.signs[of_b, b.codes[step, n, i]]
            if x < 3 and y < 3:
                continue
            count, lane = count + 1, i
            zero = x == 0 or y == 0
            of_zero = of_zero or zero
            plus = plus or zero or x % 2 == y % 2
            minus = minus or zero or x % 2 != y % 2
        together = together or (plus and minus)
        positive, negative = positive or plus, negative or minus
    return Infinite(count, lane, positive, negative, of_zero, together)


@inlined
def count_infinite(  # pragma: no cover
    a: Side, b: Side, step: int, m: int, n: int, found: Infinite, origin: int, c: int, bins: OperandBins
) -> None:
    """Count the infinite products of an output without NaN; ``c`` is 0 for a number, 1 and 2 for infinities, 3 for NaN.

    A product alone beside numbers is seen in the result.
    """
    kind = 4 if found.of_zero else 2 if found.together else 3 if found.positive and found.negative else 0
    if kind == 0 and found.negative:
        kind = 1
    bins.infinities[origin, kind, c] += 1
    if found.number == 1 and c == 0:
        g = found.lane // a.lanes
        of_a, of_b = a.selector[a.scales[step, m, g // a.sums]], b.selector[b.scales[step, n, g // b.sums]]
        x, y = a.signs[of_a, a.codes[step, m, found.lane]], b.signs[of_b, b.codes[step, n, found.lane]]
        bins.infinite[found.lane, x, y] += 1


@inlined
def count_seen(  # pragma: no cover
    a: Side, b: Side, step: int, m: int, n: int, g: int, lowest: int, spare: int, bins: OperandBins
) -> None:
    """Count a block sum that is seen, and the scales of its block.

    ``spare`` is how many places above the last one of the result a unit of the sum stands. It may be negative where
    products are cut to a window: a product with a large exponent stands higher.
    """
    block = g // a.sums
    x, y = a.scales[step, m, block], b.scales[step, n, block]
    of_a, of_b = a.selector[x], b.selector[y]
    largest = largest_exponent(a, b, step, m, n, g)
    for lane in range(a.lanes * g, a.lanes * (g + 1)):
        if a.up >= 0:
            own = _exponent(a, a.shifts[of_a, a.codes[step, m, lane]], b.shifts[of_b, b.codes[step, n, lane]])
            if largest - own > a.up + min(spare, 0):
                continue
        code_a, code_b = a.codes[step, m, lane], b.codes[step, n, lane]
        bins.pairs[lane, of_a, of_b, a.kind_of[code_a], b.kind_of[code_b]] += 1
        if bins.fractions_a.shape[0]:
            bins.fractions_a[lane, a.fraction[code_a], b.kind_of[code_b]] += 1
        if bins.fractions_b.shape[0]:
            bins.fractions_b[lane, a.kind_of[code_a], b.fraction[code_b]] += 1
    bins.selectors[block, of_a, of_b] += 1
    bins.scales_a[block, of_a, a.code[x] - a.first] += 1
    bins.scales_b[block, of_b, b.code[y] - b.first] += 1
    if bins.exponents.shape[0]:
        bins.exponents[block, a.place[x], b.place[y]] += 1
    if bins.powers.shape[0]:
        power = a.exponent[x] + b.exponent[y] + a.lowest + b.lowest + largest - lowest
        bins.powers[block, min(max(power, 0), bins.powers.shape[1] - 1)] += 1
    # The least difference is that of A's lowest exponent and B's highest.
    bins.differences[block, a.place[x] - b.place[y] + b.places - 1] += 1
    bins.significands[block, a.multiplier[x], b.multiplier[y]] += 1
