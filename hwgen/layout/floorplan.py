"""The die: rows for the cells, and places for the ports at its edge."""

from __future__ import annotations

import math

import numpy as np

from hwgen.errors import InputError
from hwgen.layout.problem import Rows
from hwgen.layout.technology import Technology

__all__ = ["UTILISATION", "density_of", "die_of", "edge_places", "port_places"]

UTILISATION = 0.7
"""Share of the rows that cells fill."""


def density_of(utilisation: float) -> float:
    """How full any part of a die may get that is filled to ``utilisation``: half of what is free may be gathered."""
    return (1 + utilisation) / 2


def die_of(width: np.ndarray, technology: Technology, utilisation: float = UTILISATION, aspect: float = 1.0) -> Rows:
    """Rows in which cells fill a given share of the room, on a die as near to the wanted shape as rows allow.

    Parameters
    ----------
    width
        Shape (n_cells,): um.
    technology
        Row height and site.
    utilisation
        Share of the room that is filled, above 0 and at most 1.
    aspect
        Height of the die over its width.

    Raises
    ------
    InputError
        A utilisation that is none.
    """
    if not 0 < utilisation <= 1:
        raise InputError(f"utilisation {utilisation:g}: must be above 0 and at most 1")
    row, site = technology.row_height, technology.site
    length = max(float(width.sum()) / utilisation, site)  # of all rows together
    rows = max(round(math.sqrt(length * aspect / row)), 1)
    sites = max(math.ceil(length / rows / site - 1e-6), math.ceil(float(width.max(initial=site)) / site - 1e-6))
    zeros = np.zeros(rows, dtype=np.int64)
    return Rows(row, site, (sites * site, rows * row), np.arange(rows), zeros, np.full(rows, sites))


def edge_places(die: tuple[float, float], along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of the die's edge.

    Parameters
    ----------
    die
        Width and height, um.
    along
        Shape (n,): how far along the edge, from the lower left corner to the right and round, um.
    """
    width, height = die
    turns = np.cumsum([0.0, width, height, width, height])
    along = np.mod(along, turns[-1])
    x = np.interp(along, turns, [0.0, width, width, 0.0, 0.0])
    y = np.interp(along, turns, [0.0, 0.0, height, height, 0.0])
    return x, y


def port_places(die: tuple[float, float], x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of ports: each at the point of the die's edge that is nearest to where it is wanted, or near it.

    Neighbours keep a distance, half of what they would have if they were spread evenly round the die. Their order
    along the edge is that of the wanted points, and the sum of their squared moves is least.

    Parameters
    ----------
    die
        Width and height, um.
    x, y
        Shape (n,): wanted places, on the die.

    Returns
    -------
    x, y
        Shape (n,): places at the edge.
    """
    n = len(x)
    if not n:
        return np.zeros(0), np.zeros(0)
    width, height = die
    round_about = 2 * (width + height)
    reach = np.stack([y, width - x, height - y, x])
    on_edge = np.stack([x, width + y, 2 * width + height - x, round_about - y])
    wanted = np.take_along_axis(on_edge, reach.argmin(axis=0)[None], axis=0)[0]
    order = np.lexsort((np.arange(n), wanted))
    ranked = wanted[order]
    # The ring is cut where it is emptiest.
    cut = int(np.argmax(np.diff(ranked, append=ranked[0] + round_about))) + 1
    order, ranked = np.roll(order, -cut), np.roll(ranked, -cut)
    origin = ranked[-1] - round_about
    spacing = round_about / (2 * n)
    free = _rising(np.mod(ranked - origin, round_about) - spacing * np.arange(n))
    places = np.empty(n)
    places[order] = origin + np.clip(free, 0, round_about - n * spacing) + spacing * np.arange(n)
    return edge_places(die, places)


def _rising(values: np.ndarray) -> np.ndarray:
    """The nearest sequence, in squares, that never falls: the means of blocks that would."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        total, count = value, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before = blocks.pop()
            total, count = total + before[0], count + before[1]
        blocks.append((total, count))
    return np.concatenate([np.full(count, total / count) for total, count in blocks])
