"""FP32: kinds of numbers, and sums rounded to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwgen.jit import inlined

__all__ = [
    "FIRST_INFINITE",
    "FIRST_NAN",
    "INFINITY",
    "LAST_PLACE",
    "NAN",
    "NEGATIVE_INFINITY",
    "Fp32",
    "ResultBins",
    "bit_length",
    "fields",
    "kind",
    "rounded",
]

NAN = 0x7FFFFFFF
"""The one NaN of results."""
LAST_PLACE = -149
"""Exponent of the last place of subnormal numbers."""
_ALL = 62
"""Places to the right by which nothing is left of a number."""
INFINITY, NEGATIVE_INFINITY = 0x7F800000, 0xFF800000
FIRST_INFINITE, FIRST_NAN = 8, 10
"""Where these kinds begin in `sim.verify.bins.CLASSES`."""


class ResultBins(NamedTuple):
    """Bins of results and of how they are rounded."""

    classes: NDArray[np.int64]
    rounding: NDArray[np.int64]
    ones: NDArray[np.int64]


class Fp32(NamedTuple):
    """A finite number: magnitude * 2^(exponent - 23), less than 2^24 and not normalised where it is subnormal."""

    negative: bool
    exponent: int
    magnitude: int


@inlined
def bit_length(number: int) -> int:  # pragma: no cover
    """Bits of a number that is not negative."""
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if number >> step:
            number >>= step
            length += step
    return length + (number > 0)


@inlined
def kind(bits: int) -> int:  # pragma: no cover
    """Index into `sim.verify.bins.CLASSES` of a bit pattern."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        found = 4 if fraction == 0 else 5 if fraction >> 22 else 6
    elif exponent == 0:
        found = 1 if fraction else 0
    else:
        found = 3 if bits & 0x7FFFFFFF == 0x7F7FFFFF else 2
    return 2 * found + sign


@inlined
def fields(bits: int) -> Fp32:  # pragma: no cover
    """Sign, exponent and magnitude of a finite bit pattern."""
    magnitude = bits & 0x7FFFFF | (0x800000 if bits & 0x7F800000 else 0)
    return Fp32(bits >> 31 == 1, max(bits >> 23 & 0xFF, 1) - 127, magnitude)


@inlined
def rounded(number: int, rest: bool, unit: int, nearest: bool, bins: ResultBins) -> int:  # pragma: no cover
    """FP32 bits of (number + rest) * 2^unit, 0 <= rest < 1; counts how it is rounded, and what it is."""
    negative = number < 0
    if negative:
        number = -number - rest  # and rest' = 1 - rest
    bits = 0
    if number != 0 or rest:
        place = bit_length(number) - 1
        drop = min(max(place - 23, LAST_PLACE - unit), _ALL)
        if drop <= 0:
            significand = number << -drop
        else:
            significand = number >> drop
            last, behind = significand & 1, number >> (drop - 1) & 1
            sticky = rest or (number & (1 << (drop - 1)) - 1) != 0
            bins.rounding[int(negative), last, behind, int(sticky)] += 1
            if significand == 0xFFFFFF and behind:
                bins.ones[int(negative)] += 1
            if nearest and behind and (sticky or last):
                significand += 1
        # A significand without the hidden bit is subnormal; a carry out of one with it raises the exponent.
        bits = significand + ((unit + drop - LAST_PLACE) << 23 if significand >> 23 else 0)
        bits = min(bits, INFINITY)
        if bits != 0:
            bits |= int(negative) << 31
    bins.classes[kind(bits)] += 1
    return bits
