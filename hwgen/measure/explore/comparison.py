"""The points of two designs at equal clock and at equal area."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.measure.explore.best import Best, best_at, mean_overhead
from hwgen.measure.explore.points import Point, Points, front
from hwgen.measure.netlists.clock import rounded_up
from hwgen.report import schema

__all__ = ["Comparison", "compared"]

_CLOCKS = 8


@dataclass(frozen=True)
class Comparison:
    """How the points of both designs compare.

    Parameters
    ----------
    at_clock
        Smallest areas at equal clocks.
    at_area
        Shortest clock periods at equal areas.
    energy_at_clock
        Least energies at equal clocks.
    means
        Geometric means of the overhead over the range of both designs.
    used
        For each design, places of the points that a figure rests on.
    """

    at_clock: list[Best]
    at_area: list[Best]
    energy_at_clock: list[Best]
    means: schema.Means
    used: tuple[set[int], set[int]]


def _limits(points: Points) -> tuple[list[float], list[float]]:
    """Clock periods and areas that both designs can do something with, evenly spaced by ratio."""
    areas = [[point.area for point in ours] for ours in points]
    delays = [[point.slowest for point in ours] for ours in points]

    def spaced(values: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> list[float]:
        first = max(min(ours) for ours in values)
        # Nothing is gained beyond the point that is best in the other respect.
        last = max(ours[int(np.argmin(other))] for ours, other in zip(values, others, strict=True))
        # A hair more, so that means of the very runs meet their own limit.
        spread = (float(f"{1.005 * value:.3g}") for value in np.geomspace(first, max(first, last), _CLOCKS))
        return list(dict.fromkeys(spread))

    return spaced(delays, areas), spaced(areas, delays)


def compared(points: Points, clocks_ns: Sequence[float], library: str) -> Comparison:
    """Compare the points of two designs at equal clock and at equal area.

    A point meets a clock if its slowest run does, and fits an area if the mean over its runs does.

    Parameters
    ----------
    points
        Of the baseline and of the candidate.
    clocks_ns
        Clock periods; by default some from the shortest to the longest that matter.
    library
        Name of the cells.

    Raises
    ------
    InputError
        None of the clocks is met by both designs.
    """
    clocks, sizes = _limits(points)
    one, other = points
    areas = np.array([point.areas for point in one]), np.array([point.areas for point in other])
    delays = np.array([point.delays for point in one]), np.array([point.delays for point in other])
    energies = np.array([point.energies for point in one]), np.array([point.energies for point in other])
    slowest = _slowest(one), _slowest(other)
    limits = sorted(set(clocks_ns)) or clocks
    at_clock, small = best_at(limits, areas, slowest)
    met = [best.limit for best in at_clock if best.overhead]
    if not met:
        fastest = max(min(point.slowest for point in ours) for ours in points)
        raise InputError(
            f"clock of {', '.join(f'{clock:g}' for clock in clocks_ns)} ns: not met with {library};"
            f" both designs meet {rounded_up(fastest):g} ns"
        )
    energy_at_clock, frugal = best_at(limits, energies, slowest)
    at_area, fast = best_at(sizes, delays, areas)
    means = schema.Means(
        area=mean_overhead(met, areas, slowest),
        energy=mean_overhead(met, energies, slowest),
        critical_path=mean_overhead(sizes, delays, areas),
    )
    used = [
        small[place] | frugal[place] | fast[place] | set(front(ours)) | _smallest(ours)
        for place, ours in enumerate(points)
    ]
    return Comparison(at_clock, at_area, energy_at_clock, means, (used[0], used[1]))


def _slowest(points: Sequence[Point]) -> NDArray[np.float64]:
    """The slowest run of each point in every run's place, points x runs: no resample makes it faster."""
    return np.array([[point.slowest] * len(point.delays) for point in points])


def _smallest(points: Sequence[Point]) -> set[int]:
    """Places of the points that are the smallest of their micro-architecture and pipeline."""
    least: dict[TensorCoreConfig, float] = {}
    for point in points:
        least[point.way.config] = min(point.area, least.get(point.way.config, math.inf))
    return {place for place, point in enumerate(points) if point.area == least[point.way.config]}
