"""What of the goals a run has met: events by bin, and what a report says of them."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from sim.verify.bins import Goals

__all__ = ["Counts", "CoverageFigures", "complete", "empty", "figures", "impossible", "missed"]

Counts = dict[str, NDArray[np.int64]]
"""Events by group of goals and bin."""


class AxisFigures(TypedDict):
    """One axis of the goals of a group.

    Parameters
    ----------
    name
        What is told apart.
    labels
        Of its bins.
    """

    name: str
    labels: list[str]


class CoverageFigures(TypedDict):
    """Coverage of a group of goals.

    Parameters
    ----------
    goals, hit
        How many there are, and how many of them had an event.
    events
        Of all goals.
    fewest
        Of any one goal.
    missed
        Goals without an event, in words.
    excluded
        Bins that no step can reach.
    reason
        Why they cannot be reached.
    axes
        What the bins are told apart by.
    counts
        Events of each bin: a list for each axis within that of the axis before.
    """

    goals: int
    hit: int
    events: int
    fewest: int
    missed: list[str]
    excluded: int
    reason: str
    axes: list[AxisFigures]
    counts: list[Any]


def empty(wanted: dict[str, Goals]) -> Counts:
    """No events at all."""
    return {name: np.zeros(goal.reachable.shape, np.int64) for name, goal in wanted.items()}


def complete(wanted: dict[str, Goals], counts: Counts) -> bool:
    """Whether every goal has been met."""
    return all((counts[name] > 0)[goal.reachable].all() for name, goal in wanted.items())


def missed(wanted: dict[str, Goals], counts: Counts) -> list[str]:
    """Goals without an event, in words."""
    return [f"{name}: {label}" for name, goal in wanted.items() for label in goal.missed(counts[name])]


def impossible(wanted: dict[str, Goals], counts: Counts) -> list[str]:
    """Events that should not have been possible, in words."""
    return [
        f"{name}: {goal.label(tuple(index))}"
        for name, goal in wanted.items()
        for index in np.argwhere(~goal.reachable & (counts[name] > 0))
    ]


def figures(wanted: dict[str, Goals], counts: Counts) -> dict[str, CoverageFigures]:
    """Coverage by group of goals, ready for JSON."""
    return {
        name: {
            "goals": int(goal.reachable.sum()),
            "hit": int((goal.reachable & (counts[name] > 0)).sum()),
            "events": int(counts[name].sum()),
            "fewest": int(counts[name][goal.reachable].min(initial=np.iinfo(np.int64).max)),
            "missed": goal.missed(counts[name]),
            "excluded": int((~goal.reachable).sum()),
            "reason": goal.reason,
            "axes": [{"name": axis, "labels": list(labels)} for axis, labels in goal.axes],
            "counts": counts[name].tolist(),
        }
        for name, goal in wanted.items()
    }
