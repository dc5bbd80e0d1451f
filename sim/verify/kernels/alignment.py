"""Terms and C in one window, or in fixed point: shifts, sums, what cancels and what is lost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwgen.jit import inlined
from sim.verify.kernels.rounding import Fp32, ResultBins, bit_length, rounded

__all__ = ["Aligned", "ExactBins", "Numerics", "StepBins", "Work", "add_exact", "align", "count_step", "count_sum"]

_Array = NDArray[np.int64]
NOWHERE = -1 << 20
"""Below all exponents."""


class Numerics(NamedTuple):
    """What a step computes by: its options, and two exponents of the pair of formats.

    ``fraction``: bits kept below emax. ``nearest``: how the sum is rounded. ``excluded``: empty blocks take no part
    in emax. ``term_fraction``: a term is T * 2^(E - term_fraction). ``lowest``: the lowest E. ``wide``: exponents are
    so far apart that 64 bits do not hold all terms in one unit.
    """

    fraction: int
    nearest: bool
    excluded: bool
    term_fraction: int
    lowest: int
    wide: bool


class Work(NamedTuple):
    """Of one output, by group: T, E, the aligned word, and whether the block is empty, see `operands.gather`."""

    terms: _Array
    exponents: _Array
    words: _Array
    empty: _Array


class StepBins(NamedTuple):
    """Bins of steps that are rounded one by one."""

    addends: _Array
    shifts: _Array
    term_shifts: _Array
    distances: _Array
    largest: _Array
    leading: _Array
    empty: _Array
    cancelled: _Array
    zeros: _Array


class ExactBins(NamedTuple):
    """Bins of tiles that are summed up in fixed point."""

    addends: _Array
    places: _Array
    leading: _Array
    against: _Array
    cancelled: _Array
    zeros: _Array


class Aligned(NamedTuple):
    """The sum of one step in units of 2^(top - fraction), and what it was made of.

    ``top_term`` is the largest exponent of a term that is not zero, ``shift`` how far C lies below ``top``, ``cut``
    whether it lost bits, ``biggest`` the longest word, ``unaligned`` the sum of all terms alone, or where those are
    wide what is left of it 30 places below the largest exponent.
    """

    total: int
    top: int
    top_term: int
    shift: int
    cut: bool
    biggest: int
    some: bool
    unaligned: int


@inlined
def _shift_right(number: int, by: int) -> int:  # pragma: no cover
    """Truncate toward zero; any shift, to the left where it is negative."""
    if by <= 0:
        return number << -by
    by = min(by, 63)
    return number >> by if number >= 0 else -(-number >> by)


@inlined
def align(c: Fp32, numerics: Numerics, work: Work) -> Aligned:  # pragma: no cover
    """Align one step and add it up; fills in the words."""
    top_zero = top_term = NOWHERE
    for g in range(len(work.terms)):
        if work.terms[g] != 0:
            top_term = max(top_term, work.exponents[g])
        else:
            top_zero = max(top_zero, work.exponents[g])
    top = max(c.exponent, top_term) if numerics.excluded else max(c.exponent, top_term, top_zero)
    own = c.magnitude << (numerics.fraction - 23)
    shift = top - c.exponent
    word = _shift_right(own, shift)
    cut = word << min(shift, 60) != own if shift < 60 else c.magnitude != 0
    total = -word if c.negative else word
    biggest, some = word, False
    unaligned = 0  # exact: all terms together are less than 62 bits long
    for g in range(len(work.terms)):
        work.words[g] = 0
        if work.terms[g] != 0:
            by = top - work.exponents[g] - (numerics.fraction - numerics.term_fraction)
            work.words[g] = _shift_right(work.terms[g], by)
            some = True
            if numerics.wide:
                unaligned += _shift_right(work.terms[g], top_term - work.exponents[g] - 30)
            else:
                unaligned += work.terms[g] << (work.exponents[g] - numerics.lowest)
        total += work.words[g]
        biggest = max(biggest, abs(work.words[g]))
    return Aligned(total, top, top_term, shift, cut, biggest, some, unaligned)


@inlined
def count_step(  # pragma: no cover
    c: Fp32, numerics: Numerics, work: Work, found: Aligned, cancels: bool, bins: StepBins
) -> None:
    """Count what became of C and of the terms of one step."""
    total, some = found.total, found.some
    if c.magnitude != 0 and found.unaligned != 0:
        subtracts = int((found.unaligned < 0) != c.negative)
        bins.shifts[min(found.shift, bins.shifts.shape[0] - 1), subtracts] += 1
    place = bit_length(abs(total)) - 1
    if total != 0:
        bins.leading[place, int(total < 0)] += 1
    if c.magnitude != 0 and c.exponent == found.top:
        bins.largest[1 if found.top_term == found.top else 0] += 1
    elif found.top_term == found.top:
        bins.largest[2] += 1
    elif c.magnitude != 0 and found.cut:
        bins.largest[3] += 1
    if found.biggest != 0 and (c.magnitude != 0 or some):
        _count_cancelled(bit_length(found.biggest) - 1, place, total == 0, bins.cancelled)
    _count_zeros(c, total, some, found.biggest != 0, bins.zeros)
    bins.zeros[3] += cancels
    pair = 0
    for g in range(len(work.terms)):
        for h in range(g + 1, len(work.terms)):
            if work.words[g] != 0 and work.words[h] != 0:
                middle = bins.distances.shape[1] // 2
                bins.distances[pair, min(max(work.exponents[g] - work.exponents[h], -middle), middle) + middle] += 1
            pair += 1
        if work.empty[g]:
            above = work.exponents[g] > max(c.exponent, found.top_term)
            bins.empty[g, work.empty[g] - 1, 0 if above else 1] += 1
        if work.terms[g] != 0 and c.magnitude != 0:
            subtracts = int((work.terms[g] < 0) != c.negative)
            bins.term_shifts[g, min(found.top - work.exponents[g], bins.term_shifts.shape[1] - 1), subtracts] += 1


@inlined
def _count_zeros(c: Fp32, total: int, some: bool, left: bool, zeros: _Array) -> None:  # pragma: no cover
    """Count zeros among C, the terms and their sum; ``left``: of one of them something is left in the window."""
    if not some:
        zeros[0 if c.magnitude == 0 else 1] += 1
    elif c.magnitude == 0:
        zeros[2] += 1
    if total == 0:
        if c.magnitude != 0 and some and left:
            zeros[4] += 1
        elif not left and (c.magnitude != 0 or some):
            zeros[5] += 1
        elif c.magnitude == 0 and some:
            zeros[6] += 1


@inlined
def _count_cancelled(largest: int, place: int, empty: bool, cancelled: _Array) -> None:  # pragma: no cover
    """Count how far behind the largest word the sum's leading place lies."""
    if empty:
        cancelled[len(cancelled) - 1] += 1
    else:
        cancelled[min(max(largest - place, -1) + 1, len(cancelled) - 2)] += 1


@inlined
def add_exact(total: int, c: Fp32, unit: int, cancelled: _Array, results: ResultBins) -> int:  # pragma: no cover
    """FP32 bits of total * 2^-unit + C, rounded to nearest even."""
    addend = -c.magnitude if c.negative else c.magnitude
    # 24 bits of C and up to 62 of the sum, in 64: what does not fit is kept as a rest from 0 to 1.
    shift = c.exponent - 23 + unit
    rest = False
    lowest = -unit
    if c.magnitude == 0:
        pass
    elif total == 0:
        lowest = c.exponent - 23
    elif shift >= 0:
        up = min(shift, 38)
        addend <<= up
        down = min(shift - up, 62)
        rest = total & (1 << down) - 1 != 0
        total >>= down
        lowest += shift - up
    else:
        up = min(-shift, 62 - bit_length(abs(total)))
        total <<= up
        down = min(-shift - up, 62)
        rest = addend & (1 << down) - 1 != 0
        addend >>= down
        lowest -= up
    result = total + addend
    largest = max(bit_length(abs(total)), bit_length(abs(addend)))
    if largest:
        _count_cancelled(largest - 1, bit_length(abs(result)) - 1, result == 0 and not rest, cancelled)
    return rounded(result, rest, lowest, True, results)


@inlined
def count_sum(total: int, c: Fp32, unit: int, cancels: bool, bins: ExactBins) -> None:  # pragma: no cover
    """Count the sum of a tile, in units of 2^-unit, and C beside it."""
    if total != 0:
        place = bit_length(abs(total)) - 1
        bins.leading[place, int(total < 0)] += 1
        if c.magnitude != 0:
            middle = bins.against.shape[0] // 2
            distance = min(max(c.exponent - (place - unit), -middle), middle)
            bins.against[distance + middle, int((total < 0) != c.negative)] += 1
        bins.zeros[2] += c.magnitude == 0
    else:
        bins.zeros[0 if c.magnitude == 0 else 1] += 1
    bins.zeros[3] += cancels
