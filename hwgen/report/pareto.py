"""The Pareto front: points that no other is at once as cheap as and better than."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["front"]


def front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Names of the points on the front, the cheapest first.

    Parameters
    ----------
    points
        Cost, which is to be small, and worth, which is to be large, by name.
    """
    found: list[str] = []
    best = float("-inf")
    for name, (_, worth) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1])):
        if worth > best:
            found.append(name)
            best = worth
    return found
