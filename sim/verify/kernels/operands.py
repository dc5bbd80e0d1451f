"""Blocks: their sums, their scales, and which of them are seen in a result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwgen.formats import BlockFormat
from hwgen.jit import compiled

__all__ = ["Met", "OperandBins", "Side", "Stimulus", "block_sum", "count_seen", "gather", "side"]

_Array = NDArray[np.int64]
_ZERO_EXPONENT = -(1 << 12)
"""Of a scale of zero: whatever its partner, below every C, since such a block takes no part."""


class Side(NamedTuple):
    """One operand of all steps, and the tables of its format.

    ``codes`` (S, rows, K) and ``scales`` (S, rows, G) are as the core gets them. A block makes ``sums`` block sums of
    ``lanes`` products each; ``first`` is the lowest code of a scale that is not zero, and scales have ``places``
    exponents.
    ``integers`` has the elements in half-units, without fold, by selector and code. All other tables are by the byte
    of a scale: ``selector``; ``exponent`` with the fold; ``place``, the exponent without it, from the lowest one;
    ``significand`` in units of the last place, factors included; ``multiplier``, which one that is of all there are;
    ``code``, without the bits above; ``kind`` as in the goals; ``zero``;
    ``nan``. ``nan_codes`` has which elements are NaN, as ``integers`` does.
    """

    codes: NDArray[np.uint8]
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


class Met(NamedTuple):
    """What is special about the blocks of one output: a NaN, a zero among the scales, products that cancel."""

    nan: bool
    zero: bool
    cancel: bool


def side(form: BlockFormat, codes: NDArray[np.uint8], scales: NDArray[np.uint8]) -> Side:
    """An operand with the tables of its format."""
    scale = form.scale
    stored = np.arange(1 << form.stored_scale_width)
    code = stored & (1 << scale.width) - 1
    selector = stored >> scale.width & (1 << form.selector_bits) - 1
    exponents = np.array([scale.exponent(byte) for byte in code.tolist()])
    zero = (code == 0) & scale.subnormals
    significands = np.array([scale.significand(byte) for byte in code.tolist()], np.int64)
    significands *= np.array(form.weights)[selector]
    return Side(
        codes,
        scales.astype(np.uint16),
        form.lanes,
        form.sums,
        int(scale.subnormals),
        len(scale.exponents),
        np.array([element.integers for element in form.elements], np.int64),
        selector,
        np.where(zero, _ZERO_EXPONENT, exponents) + np.array(form.folds)[selector],
        exponents - scale.exponents[0],
        significands,
        np.searchsorted(np.array(form.significands), significands),
        code,
        np.select([zero, code == (-1 if scale.nan is None else scale.nan)], [1, 2]) + 3 * (stored != code),
        zero,
        code == (-1 if scale.nan is None else scale.nan),
        np.array([[code in element.nans for code in range(1 << form.code_width)] for element in form.elements]),
    )


@compiled
def block_sum(a: Side, b: Side, step: int, m: int, n: int, g: int) -> tuple[int, bool]:  # pragma: no cover
    """S_g of block sum g, and whether a product in it is not zero."""
    of_a = a.integers[a.selector[a.scales[step, m, g // a.sums]]]
    of_b = b.integers[b.selector[b.scales[step, n, g // b.sums]]]
    total, some = 0, False
    for i in range(a.lanes * g, a.lanes * (g + 1)):
        product = of_a[a.codes[step, m, i]] * of_b[b.codes[step, n, i]]
        total += product
        some = some or product != 0
    return total, some


@compiled
def _nan_elements(operand: Side, step: int, row: int, g: int, bins: _Array) -> bool:  # pragma: no cover
    """Whether an element of a block sum is NaN; counts those."""
    if not bins.shape[0]:
        return False
    nan = operand.nan_codes[operand.selector[operand.scales[step, row, g // operand.sums]]]
    found = False
    for lane in range(operand.lanes * g, operand.lanes * (g + 1)):
        code = operand.codes[step, row, lane]
        if nan[code]:
            bins[lane, code] += 1
            found = True
    return found


@compiled
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
        total, some = block_sum(a, b, step, m, n, g)
        nan = _nan_elements(a, step, m, g, bins.nans_a) or nan
        nan = _nan_elements(b, step, n, g, bins.nans_b) or nan
        usable = not (a.nan[x] or b.nan[y] or a.zero[x] or b.zero[y])
        empty[g] = (2 if some else 1) if usable and total == 0 else 0
        some_cancel = some_cancel or (some and total == 0)
        terms[g] = total * a.significand[x] * b.significand[y]
        exponents[g] = a.exponent[x] + b.exponent[y]
    return Met(nan, zero, some_cancel)


@compiled
def count_seen(  # pragma: no cover
    a: Side, b: Side, step: int, m: int, n: int, g: int, lowest: int, bins: OperandBins
) -> None:
    """Count a block sum that is seen, and the scales of its block."""
    block = g // a.sums
    x, y = a.scales[step, m, block], b.scales[step, n, block]
    of_a, of_b = a.selector[x], b.selector[y]
    for lane in range(a.lanes * g, a.lanes * (g + 1)):
        bins.pairs[lane, of_a, of_b, a.codes[step, m, lane], b.codes[step, n, lane]] += 1
    bins.selectors[block, of_a, of_b] += 1
    bins.scales_a[block, of_a, a.code[x] - a.first] += 1
    bins.scales_b[block, of_b, b.code[y] - b.first] += 1
    if bins.exponents.shape[0]:
        bins.exponents[block, a.place[x], b.place[y]] += 1
    if bins.powers.shape[0]:
        bins.powers[block, min(max(a.exponent[x] + b.exponent[y] - lowest, 0), bins.powers.shape[1] - 1)] += 1
    # The least difference is that of A's lowest exponent and B's highest.
    bins.differences[block, a.place[x] - b.place[y] + b.places - 1] += 1
    bins.significands[block, a.multiplier[x], b.multiplier[y]] += 1
