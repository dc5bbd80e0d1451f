"""Legal places near given ones: cells in rows, on sites, without overlaps.

`legalise` is Abacus (Spindler, Schlichtmann and Johannes, ISPD 2008): cells come from left to right, each goes to
the row where it and those it pushes move least, and cells that touch form clusters that stand where the sum of
their squared moves is least. `faults` is a check of its own: it shares no code with what places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hwgen.errors import InputError
from hwgen.jit import compiled, inner
from hwgen.layout.problem import Rows
from hwgen.layout.search import first_from

__all__ = ["NoRoomError", "faults", "legalise"]

_NEAR = 1e-6
_SAFE = 1 - 1e-9


class NoRoomError(InputError):
    """Cells do not fit into their rows."""


def legalise(width: np.ndarray, rows: Rows, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Move cells into the rows.

    Parameters
    ----------
    width
        Shape (n_cells,): um, whole numbers of sites.
    rows
        Where they may stand.
    x, y
        Shape (n_cells,): lower left corners to stay near to, um.

    Returns
    -------
    piece, site : numpy.ndarray
        Shape (n_cells,): piece of a row that the cell stands in, and its left edge there, as a number of sites.

    Raises
    ------
    NoRoomError
        If they do not fit.
    """
    sites = np.rint(width / rows.site).astype(np.int64)
    order = np.lexsort((np.arange(len(x)), y, x + width / 2))
    sorted_pieces = np.lexsort((rows.first, rows.bottom))
    bottom = rows.bottom[sorted_pieces].astype(np.int64)
    n_rows = int(bottom.max()) + 1 if len(bottom) else 0
    row_start = np.searchsorted(bottom, np.arange(n_rows + 1))
    n, pieces = len(x), len(bottom)
    state = _Rows(
        start=row_start,
        first=rows.first[sorted_pieces].astype(np.int64),
        last=rows.last[sorted_pieces].astype(np.int64),
        used=np.zeros(pieces, np.int64),
        newest=np.full(pieces, -1, np.int64),
        newest_cell=np.full(pieces, -1, np.int64),
        weight=np.zeros(n),
        moment=np.zeros(n),
        width=np.zeros(n, np.int64),
        cells=np.zeros(n, np.int64),
        at=np.zeros(n),
        before=np.full(n, -1, np.int64),
    )
    piece, site, left_over = _abacus(
        state, order.astype(np.int64), sites, x / rows.site, y / rows.height, rows.height / rows.site
    )
    if left_over:
        raise NoRoomError(
            f"{left_over} of {len(x)} cells find no room in rows of {rows.area:.0f} um2 in all; expected a"
            " lower utilisation"
        )
    return sorted_pieces[piece], site


class _Rows(NamedTuple):
    """Pieces sorted by row, and what stands in them so far: clusters, each with the one before it in its piece.

    A cluster has a weight, the sum of its cells' wanted left edges each less what stands before it, and a width.
    """

    start: Any
    first: Any
    last: Any
    used: Any
    newest: Any
    newest_cell: Any
    weight: Any
    moment: Any
    width: Any
    cells: Any
    at: Any
    before: Any


@inner
def _joined(rows, piece, own, x):
    """The cluster that a cell would be the last of: weight, moment, width, left edge, cells, the one before."""
    weight, moment, width, cells = 1.0, x, own, 1
    before = rows.newest[piece]
    first, last = float(rows.first[piece]), rows.last[piece]
    left = min(max(moment, first), float(last - own))
    while before >= 0 and rows.at[before] + rows.width[before] > left:
        moment = rows.moment[before] + moment - weight * rows.width[before]
        weight += rows.weight[before]
        width += rows.width[before]
        cells += rows.cells[before]
        left = min(max(moment / weight, first), float(last - width))
        before = rows.before[before]
    return weight, moment, width, left, cells, before


@compiled
def _nearest(rows, own, x, y, aspect):
    """The piece where a cell moves least; -1 if there is room in none."""
    n_rows = len(rows.start) - 1
    home = min(max(int(np.floor(y + 0.5)), 0), n_rows - 1)
    best, found = np.inf, -1
    for reach in range(n_rows):
        inside = False
        for side in range(2):
            row = home - reach if side == 0 else home + reach
            vertical = (row - y) * aspect
            if row < 0 or row >= n_rows or (side == 1 and reach == 0) or vertical * vertical >= best:
                continue
            inside = True
            start, end = rows.start[row], rows.start[row + 1]
            middle = first_from(rows.first, start, end, x)
            for right in range(2):
                piece = middle if right else middle - 1
                while start <= piece < end:
                    # Into this piece and those behind it the cell moves at least so far; less a bit, for rounding.
                    beyond = _SAFE * max(rows.first[piece] - x if right else x + own - rows.last[piece], 0.0)
                    if beyond * beyond + vertical * vertical > best:
                        break
                    if rows.used[piece] + own <= rows.last[piece] - rows.first[piece]:
                        _, _, width, left, _, _ = _joined(rows, piece, own, x)
                        move = left + width - own - x
                        cost = move * move + vertical * vertical
                        # Of equals the first in the row.
                        if cost < best or (cost == best and start <= piece < found < end):
                            best, found = cost, piece
                    piece += 1 if right else -1
        if not inside and found >= 0:
            break
    return found


@compiled
def _abacus(rows, order, sites, x, y, aspect):
    """Piece and left edge of every cell, and how many found no room; ``x`` in sites, ``y`` in rows."""
    n = len(order)
    piece_of, place, cell_before = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    left_over = 0
    for number in range(n):
        cell = order[number]
        piece = _nearest(rows, sites[cell], x[cell], y[cell], aspect)
        if piece < 0:
            left_over += 1
            continue
        weight, moment, width, left, cells, before = _joined(rows, piece, sites[cell], x[cell])
        rows.weight[number], rows.moment[number], rows.width[number] = weight, moment, width
        rows.at[number], rows.cells[number], rows.before[number] = left, cells, before
        rows.newest[piece] = number
        cell_before[cell], rows.newest_cell[piece] = rows.newest_cell[piece], cell
        piece_of[cell] = piece
        rows.used[piece] += sites[cell]
    for piece in range(len(rows.first)):
        # From the right: whole sites, never beyond the neighbour, and room for all that stand before.
        limit, room = rows.last[piece], rows.used[piece]
        cluster, cell = rows.newest[piece], rows.newest_cell[piece]
        while cluster >= 0:
            end = int(np.floor(rows.at[cluster] + 0.5)) + rows.width[cluster]
            end = min(max(end, rows.first[piece] + room), limit)
            room -= rows.width[cluster]
            for _ in range(rows.cells[cluster]):
                end -= sites[cell]
                place[cell] = end
                cell = cell_before[cell]
            limit = end
            cluster = rows.before[cluster]
    return piece_of, place, left_over


def faults(width: np.ndarray, rows: Rows, x: np.ndarray, y: np.ndarray) -> list[str]:
    """What is not legal about a placement, a sentence for each kind of fault; empty if it is legal.

    Parameters
    ----------
    width
        Shape (n_cells,): um.
    rows
        Where cells may stand.
    x, y
        Shape (n_cells,): lower left corners, um.
    """
    found = []
    row, site = y / rows.height, x / rows.site
    off_row = np.abs(row - np.rint(row)) > _NEAR
    off_site = np.abs(site - np.rint(site)) > _NEAR
    outside = (
        (x < -_NEAR * rows.site)
        | (x + width > rows.die[0] + _NEAR * rows.site)
        | (y < -_NEAR * rows.height)
        | (y + rows.height > rows.die[1] + _NEAR * rows.height)
    )
    pieces: dict[int, list[tuple[float, float]]] = {}
    for bottom, first, last in zip(rows.bottom.tolist(), rows.first.tolist(), rows.last.tolist(), strict=True):
        pieces.setdefault(bottom, []).append((first * rows.site, last * rows.site))
    slack = _NEAR * rows.site
    between = [
        not any(low - slack <= left and right <= high + slack for low, high in pieces.get(number, ()))
        for number, left, right in zip(np.rint(row).tolist(), x.tolist(), (x + width).tolist(), strict=True)
    ]
    order = np.lexsort((x, np.rint(row)))
    same = np.rint(row)[order][1:] == np.rint(row)[order][:-1]
    overlap = same & (x[order][1:] < (x + width)[order][:-1] - slack)
    for what, wrong in (
        ("outside the die", np.flatnonzero(outside)),
        ("off the rows", np.flatnonzero(off_row)),
        ("off the sites", np.flatnonzero(off_site)),
        ("beyond the ends of their rows", np.flatnonzero(np.array(between, dtype=bool) & ~outside)),
        ("over the cell to their left", order[1:][overlap]),
    ):
        if len(wrong):
            found.append(f"{len(wrong)} cells {what}, such as cell {int(wrong.min())}")
    return found
