"""Odd multiples of W, the step of a block: what midpoints and values of elements are made of.

W is what an element of 1/4 is in units of the aligned numbers, docs/quantiser.md, step 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from amaranth.hdl import Cat, Const, Value

from hwgen.config.quantiser import Candidate, QuantiserConfig

__all__ = ["VALUES", "midpoints", "multiple", "odd_multiples", "step_width", "two_levels", "values"]

VALUES = (1, 3)
"""Odd multiples of W that values of elements are made of, if they are counted as in `values`."""


def midpoints(candidate: Candidate) -> tuple[int, ...]:
    """Multiples of W half-way between the values of codes c and c + 1."""
    return tuple(below + above for below, above in pairwise(candidate.halves))


def values(candidate: Candidate) -> tuple[int, ...]:
    """Multiples of W that errors are counted from, by code: those of the second half are these, shifted or less far.

    Evenly spaced values are counted from half of the range.
    """
    return tuple(2 * each for each in candidate.halves[:4])


def two_levels(config: QuantiserConfig, candidate: Candidate) -> bool:
    """Whether numbers are first cut by half of the range, and then compared with the midpoints of one half.

    It takes evenly spaced values, and what it leaves is most of an error.
    """
    return config.chooses and len({above - below for below, above in pairwise(candidate.halves)}) == 1


def _odd(number: int) -> int:
    return number // (number & -number)


def odd_multiples(config: QuantiserConfig, candidate: Candidate) -> tuple[int, ...]:
    """The odd multiples of W that lanes read; all others are these, shifted."""
    wanted = {1, *midpoints(candidate)[: 4 if two_levels(config, candidate) else None]}
    if config.chooses:
        wanted |= set(values(candidate)[1:])
    return tuple(sorted({_odd(each) for each in wanted}))


def step_width(config: QuantiserConfig, candidate: Candidate, times: int) -> int:
    """Bits of a multiple of W.

    4 W x top is less than twice the largest number: a scale of one unit is for more than half of it.
    """
    return (((times << config.tensor_scale_bits + 9) - 1) // candidate.top).bit_length()


def multiple(multiples: Mapping[int, Value], times: int) -> Value:
    """W times a number, of the odd multiples."""
    if not times:
        return Const(0, 1)
    odd = _odd(times)
    return Cat(Const(0, (times // odd).bit_length() - 1), multiples[odd])
