"""How well an overhead is known, and how well it should be."""

from __future__ import annotations

import math

from hwgen.stats import Estimate

__all__ = ["WITHIN", "asked", "half_width"]

WITHIN = 0.005
"""Half-width of an interval that is asked for by default: half a percentage point."""


def half_width(overhead: Estimate | None) -> float:
    """Half of the interval, a fraction; infinite where there is none."""
    if overhead is None or overhead.low is None or overhead.high is None:
        return math.inf
    return (overhead.high - overhead.low) / 2


def asked(overhead: Estimate | None, within: float) -> float:
    """Half-width to ask for where rows differ much: ``within``, as a share of the larger of a row and its baseline.

    A row of twice the baseline's area that is known to a point is known as well as its baseline is to half a point.
    """
    return within if overhead is None else within * max(1.0, 1.0 + overhead.value)
