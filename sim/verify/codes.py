"""Codes of elements as the goals tell them apart: each for itself; of floating-point codes of 16 bits the fields."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwgen.formats import BlockFormat
from hwgen.formats.floating import FloatFormat
from sim.verify.bins import numbers

__all__ = ["Codes", "codes_of", "members"]


class Codes(NamedTuple):
    """What is told apart of the codes of a format; where sub-groups are shifted, of codes with the bits of their own.

    ``kind`` is by code which of ``kinds`` it is: the code itself, or sign and exponent field of a long one. The latter
    has a fraction besides, which of ``fractions`` is in ``fraction``; else there are none. A NaN is one of ``nans``:
    again the code itself, or the sign and the highest bit that its fraction has.
    """

    kinds: tuple[str, ...]
    kind: NDArray[np.int64]
    fractions: tuple[str, ...]
    fraction: NDArray[np.int64]
    nans: tuple[str, ...]
    nan: NDArray[np.int64]


@cache
def codes_of(form: BlockFormat) -> Codes:
    """How the codes of a format are told apart."""
    element = form.elements[0]
    count = 1 << form.code_width + len(form.shifts)
    codes = np.arange(count)
    if not isinstance(element, FloatFormat):
        labels = _labels(form)
        return Codes(labels, codes, (), np.zeros(count, np.int64), labels, codes)
    bits = element.values.fraction_bits
    fraction, kind = codes & (1 << bits) - 1, codes >> bits
    leading = np.frexp(np.maximum(fraction, 1))[1] - 1
    return Codes(
        tuple(f"0x{first:04x} to 0x{first + (1 << bits) - 1:04x}" for first in range(0, count, 1 << bits)),
        kind,
        numbers(range(1 << bits)),
        fraction,
        tuple(f"{sign}NaN with bit {bit}" for sign in "+-" for bit in range(bits)),
        (codes >> form.code_width - 1) * bits + leading,
    )


def _labels(form: BlockFormat) -> tuple[str, ...]:
    """Codes of an element; where sub-groups are shifted, each with the bits of its own, the longest lowest."""
    codes = range(1 << form.code_width)
    if not form.shifts:
        return numbers(codes)
    bits = len(form.shifts)
    return tuple(f"{code} with bits {shift:0{bits}b}" for shift in range(1 << bits) for code in codes)


def members(form: BlockFormat, field: str) -> NDArray[np.bool_]:
    """Which codes of a format are among its ``nans``, or its ``infinities``, by selector and code."""
    found = np.zeros((len(form.elements), 1 << len(form.shifts), 1 << form.code_width), np.bool_)
    for selector, element in enumerate(form.elements):
        found[selector, :, list(getattr(element, field))] = True
    return found.reshape(len(form.elements), -1)
