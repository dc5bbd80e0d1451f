"""All steps of a run, output by output."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwgen.jit import borrowing, inlined
from sim.verify.kernels.alignment import ExactBins, Numerics, StepBins, Work, add_exact, align, count_step, count_sum
from sim.verify.kernels.operands import (
    OperandBins,
    Stimulus,
    block_sum,
    count_infinite,
    count_seen,
    gather,
    infinite_products,
)
from sim.verify.kernels.rounding import (
    FIRST_INFINITE,
    FIRST_NAN,
    INFINITY,
    LAST_PLACE,
    NAN,
    NEGATIVE_INFINITY,
    ResultBins,
    bit_length,
    fields,
    kind,
    rounded,
)

__all__ = ["count_exact", "count_rounded"]


def count_rounded(
    stimulus: Stimulus,
    numerics: Numerics,
    operands: OperandBins,
    bins: StepBins,
    results: ResultBins,
    d: NDArray[np.uint32],
) -> None:
    """Count all outputs of steps that are rounded one by one, and compute them; ``c`` is what each of them adds to."""
    _rounded(stimulus, numerics, _work(stimulus), operands, bins, results, d)


def count_exact(
    stimulus: Stimulus,
    numerics: Numerics,
    operands: OperandBins,
    bins: ExactBins,
    results: ResultBins,
    d: NDArray[np.uint32],
) -> None:
    """Count all outputs of tiles that are summed up in fixed point and rounded with ``last``, and compute them."""
    _exact(stimulus, numerics, _work(stimulus), operands, bins, results, d)


def _work(stimulus: Stimulus) -> Work:
    return Work(*np.zeros((4, stimulus.a.scales.shape[2] * stimulus.a.sums), np.int64))


@borrowing
def _rounded(  # pragma: no cover
    stimulus: Stimulus,
    numerics: Numerics,
    work: Work,
    operands: OperandBins,
    bins: StepBins,
    results: ResultBins,
    d: NDArray[np.uint32],
) -> None:
    a, b = stimulus.a, stimulus.b
    count, rows, columns = stimulus.c.shape
    groups = a.scales.shape[2] * a.sums
    for step in range(count):
        for m in range(rows):
            for n in range(columns):
                met = gather(a, b, step, m, n, operands, work.terms, work.exponents, work.empty)
                bits = int(stimulus.c[step, m, n])
                c_kind = kind(bits)
                bins.addends[0 if stimulus.first[step] else 1, c_kind, 2 if met.nan else 1 if met.zero else 0] += 1
                infinite = infinite_products(a, b, step, m, n)
                if infinite.number and not met.nan:
                    origin, kind_of_c = (
                        0 if stimulus.first[step] else 1,
                        max(min(c_kind, FIRST_NAN) - FIRST_INFINITE + 1, 0),
                    )
                    count_infinite(a, b, step, m, n, infinite, origin, kind_of_c, operands)
                if met.nan or c_kind >= FIRST_INFINITE or infinite.number:
                    positive = infinite.positive or bits == INFINITY
                    negative = infinite.negative or bits == NEGATIVE_INFINITY
                    nan = met.nan or c_kind >= FIRST_NAN or (positive and negative)
                    d[step, m, n] = NAN if nan else INFINITY if positive else NEGATIVE_INFINITY
                    results.classes[kind(int(d[step, m, n]))] += 1
                    continue
                c = fields(bits)
                found = align(c, numerics, work)
                d[step, m, n] = rounded(found.total, False, found.top - numerics.fraction, numerics.nearest, results)
                count_step(c, numerics, work, found, met.cancel, bins)
                # A unit of T_g stands at this place of the sum; the last place of the result may be above it.
                # No result has a place below 2^-149, and an infinite one has none.
                unit = found.top - numerics.fraction
                last = max(bit_length(abs(found.total)) - 24, LAST_PLACE - unit, 0)
                if kind(int(d[step, m, n])) >= FIRST_INFINITE:
                    continue
                for g in range(groups):
                    place = numerics.fraction - numerics.term_fraction - (found.top - work.exponents[g])
                    x, y = a.scales[step, m, g // a.sums], b.scales[step, n, g // b.sums]
                    if place + max(a.up, 0) >= last and not a.zero[x] and not b.zero[y]:
                        lowest = LAST_PLACE + numerics.term_fraction
                        count_seen(a, b, step, m, n, g, lowest, place - last, operands)


@borrowing
def _exact(  # pragma: no cover
    stimulus: Stimulus,
    numerics: Numerics,
    work: Work,
    operands: OperandBins,
    bins: ExactBins,
    results: ResultBins,
    d: NDArray[np.uint32],
) -> None:
    a, b = stimulus.a, stimulus.b
    count, rows, columns = stimulus.c.shape
    groups = a.scales.shape[2] * a.sums
    unit = numerics.term_fraction - numerics.lowest
    for m in range(rows):
        for n in range(columns):
            total = begin = fresh = 0
            nan = zero = cancel = False
            for step in range(count):
                if stimulus.first[step]:
                    total, begin, fresh = 0, step, step
                    nan = zero = cancel = False
                met = gather(a, b, step, m, n, operands, work.terms, work.exponents, work.empty)
                nan, zero = nan or met.nan, zero or met.zero
                for g in range(groups):
                    x, y = a.scales[step, m, g // a.sums], b.scales[step, n, g // b.sums]
                    if a.nan[x] or b.nan[y] or a.zero[x] or b.zero[y]:
                        continue
                    cancel = cancel or work.empty[g] == 2
                    total += work.terms[g] << (work.exponents[g] - numerics.lowest)
                if not stimulus.last[step]:
                    continue
                bits = int(stimulus.c[begin, m, n])
                c_kind = kind(bits)
                bins.addends[0, c_kind, 2 if nan else 1 if zero else 0] += 1
                if nan or c_kind >= FIRST_INFINITE:
                    d[step, m, n] = NAN if nan or c_kind >= FIRST_NAN else bits
                    results.classes[kind(int(d[step, m, n]))] += 1
                    fresh = step + 1
                    continue
                c = fields(bits)
                d[step, m, n] = add_exact(total, c, unit, bins.cancelled, results)
                count_sum(total, c, unit, cancel, bins)
                # Bits of the result below the unit are C's alone.
                lowest = fields(int(d[step, m, n])).exponent - 23 + unit
                for index in range(fresh, step + 1):
                    _count_tile(stimulus, index, m, n, lowest, numerics, operands, bins)
                fresh = step + 1


@inlined
def _count_tile(  # pragma: no cover
    stimulus: Stimulus,
    step: int,
    m: int,
    n: int,
    lowest: int,
    numerics: Numerics,
    operands: OperandBins,
    bins: ExactBins,
) -> None:
    """Count the blocks of one step of a tile that are seen: those not below the last place of the result."""
    a, b = stimulus.a, stimulus.b
    for g in range(a.scales.shape[2] * a.sums):
        x, y = a.scales[step, m, g // a.sums], b.scales[step, n, g // b.sums]
        place = a.exponent[x] + b.exponent[y] - numerics.lowest
        if a.zero[x] or b.zero[y] or place < lowest:
            continue
        count_seen(a, b, step, m, n, g, 0, 0, operands)
        total, _ = block_sum(a, b, step, m, n, g, 0)  # exact sums have no window
        if total != 0:
            bins.places[g, place, int(total < 0)] += 1
