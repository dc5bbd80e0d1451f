"""Groups of bins: what a verification run counts, and which of it is a goal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.formats import BlockFormat

__all__ = ["CLASSES", "NO_RESULT", "OPERANDS", "Axis", "Goals", "kinds_of_scales", "numbers", "results"]

Axis = tuple[str, tuple[str, ...]]
"""Name of an axis of bins, and its labels."""

CLASSES = (
    *("+0", "-0", "+subnormal", "-subnormal", "+normal", "-normal", "+largest", "-largest"),
    *("+Inf", "-Inf", "+quiet NaN", "-quiet NaN", "+signalling NaN", "-signalling NaN"),
)
"""Kinds of FP32 numbers; "largest" is the largest finite one."""

OPERANDS = ("zero", "positive", "negative", "+Inf", "-Inf")
"""Kinds of elements that a product with infinity tells apart."""

NO_RESULT = "an exact zero is +0, and every NaN is 0x7fffffff"
"""Why some kinds of FP32 numbers are no results."""


@dataclass(frozen=True)
class Goals:
    """A group of bins.

    Parameters
    ----------
    name
        Unique.
    axes
        Name and labels of every axis.
    reachable
        bool, as many axes as there are: the bins that are goals.
    reason
        Why the others cannot be hit; empty if there are none.
    """

    name: str
    axes: tuple[Axis, ...]
    reachable: NDArray[np.bool_]
    reason: str = ""

    def missed(self, counts: NDArray[np.int64]) -> list[str]:
        """The goals without an event, in words."""
        return [self.label(tuple(index)) for index in np.argwhere(self.reachable & (counts == 0))]

    def label(self, index: tuple[int, ...]) -> str:
        """One bin, in words."""
        words = (f"{name} {labels[i]}".strip() for (name, labels), i in zip(self.axes, index, strict=True))
        return ", ".join(words)


def numbers(values: range, *more: str) -> tuple[str, ...]:
    """Labels of an axis of numbers, and those behind them."""
    return (*map(str, values), *more)


def results() -> NDArray[np.bool_]:
    """Kinds of FP32 numbers that are results."""
    never = ("-0", "-quiet NaN", "+signalling NaN", "-signalling NaN")
    return np.array([kind not in never for kind in CLASSES])


def kinds_of_scales(form: BlockFormat) -> tuple[str, ...]:
    """Kinds of scale bytes; with bits above the scale also those with one of them set, whether it is read or not."""
    kinds = ("finite", "zero", "NaN")
    if form.scale.width == form.stored_scale_width:
        return kinds
    above = "bit 7" if form.scale.width == form.stored_scale_width - 1 else "a bit above"
    return (*kinds, *(f"{kind}, {above} set" for kind in kinds))
