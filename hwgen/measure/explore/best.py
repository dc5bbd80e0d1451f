"""The best points of two designs under equal constraints; intervals hold what the choice among points does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.stats import Estimate, estimate, resampled

__all__ = ["Best", "best_at", "mean_overhead"]

_RESAMPLES = 2000
_STEPS = 100


@dataclass(frozen=True)
class Best:
    """The best that both designs can do under one constraint.

    Parameters
    ----------
    limit
        The constraint: clock period in ns, or area in um2.
    chosen
        Index of the best point of the baseline and of the candidate; None where none will do.
    overhead
        (candidate - baseline) / baseline of what is to be small; None where one of them cannot keep to the limit.
    """

    limit: float
    chosen: tuple[int | None, int | None]
    overhead: Estimate | None


def best_at(
    limits: Sequence[float],
    small: tuple[NDArray[np.float64], NDArray[np.float64]],
    limited: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[list[Best], list[set[int]]]:
    """Compare the best points of two designs under equal constraints.

    The interval is that of the percentile bootstrap over the runs, both designs resampled alike, at the
    `hwgen.stats.levels` of a small sample; every resample chooses its own best points, so that the interval
    holds what that choice does. A bound is None where it lies among resamples in which one design cannot keep to
    the constraint.

    Parameters
    ----------
    limits
        Constraints.
    small
        What is to be small, of each design: points x runs.
    limited
        What must not exceed the constraint, in the same form.

    Returns
    -------
    tuple
        The comparison at each constraint, and for each design the points that any resample chose.
    """
    means = _resampled(small, limited)
    found: list[Best] = []
    used: list[set[int]] = [set(), set()]
    for limit in limits:
        best = []
        chosen: list[int | None] = []
        for which, (values, bounded) in enumerate(means):
            places, lowest = _lowest(values, bounded, limit)
            best.append(lowest)
            used[which].update(np.unique(places[np.isfinite(lowest)]).tolist())
            chosen.append(int(places[0]) if np.isfinite(lowest[0]) else None)
        overhead = None
        if None not in chosen:
            # Infinite where one design cannot keep to the constraint; nothing can be said where neither can.
            some = np.isfinite(best[0]) | np.isfinite(best[1])
            with np.errstate(invalid="ignore"):
                ratios = np.where(np.isfinite(best[0]), best[1] / best[0] - 1, -np.inf)[some]
            overhead = estimate(ratios, small[0].shape[1], outward=True)
        found.append(Best(float(limit), (chosen[0], chosen[1]), overhead))
    return found, used


def mean_overhead(
    limits: Sequence[float],
    small: tuple[NDArray[np.float64], NDArray[np.float64]],
    limited: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> Estimate:
    """Geometric mean of the overhead over a range of constraints, with its interval; otherwise as `best_at`.

    Curves of recipes and pipelines are staircases: close to a step of one design a single constraint says more of
    the step than of the design.

    Parameters
    ----------
    limits
        The first and the last constraint.
    small, limited
        As for `best_at`.
    """
    means = _resampled(small, limited)
    logarithms = []
    for limit in np.geomspace(limits[0], limits[-1], _STEPS):
        one, other = (_lowest(values, bounded, limit)[1] for values, bounded in means)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.log(other / one)
        logarithms.append(np.where(np.isfinite(ratio), ratio, np.nan))
    return estimate(np.expm1(np.nanmean(logarithms, axis=0)), small[0].shape[1], outward=True)


def _resampled(
    small: tuple[NDArray[np.float64], NDArray[np.float64]], limited: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Means of both kinds for each design, (points, 1 + resamples); the first is the sample itself."""
    means = resampled(*small, *limited, resamples=_RESAMPLES)
    return [(means[0], means[2]), (means[1], means[3])]


def _lowest(
    values: NDArray[np.float64], bounded: NDArray[np.float64], limit: float
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """For each resample the best point within the limit, and its value: infinite where there is none."""
    allowed = np.where(bounded <= limit, values, np.inf)
    places = allowed.argmin(axis=0)
    return places, allowed[places, np.arange(allowed.shape[1])]
