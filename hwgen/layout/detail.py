"""Detailed placement: legal moves, each of which makes the nets shorter.

Two kinds of moves, as in FastPlace-DP (Pan, Viswanathan and Chu, ICCAD 2005). A cell goes toward its optimal region,
the box between the medians of its nets' other pins, into a gap or by a swap with a cell there. Neighbours in a row
change their order, three at a time. Every move is tried and undone if it does not help.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hwgen.jit import compiled, inner
from hwgen.layout.problem import Problem
from hwgen.layout.search import first_from

__all__ = ["improve"]

_PASSES = 6
_GAIN = 0.002
# Nets of more pins say nothing about where their cells belong.
_LARGE = 64
_ORDERS = (0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)


class _Nets(NamedTuple):
    """Movable pins by net, the boxes around the fixed ones, and nets by cell."""

    start: Any
    pin_cell: Any
    pin_x: Any
    pin_y: Any
    box: Any
    large: Any
    along_x: Any
    along_y: Any
    cell_start: Any
    cell_net: Any


class _Places(NamedTuple):
    """Where cells stand: centres in um; piece and left site; cells of every piece from the left, from its base on."""

    x: Any
    y: Any
    piece: Any
    site: Any
    sites: Any
    order: Any
    base: Any
    count: Any
    first: Any
    last: Any
    bottom: Any
    row_start: Any
    pitch: Any
    height: Any


class _Around(NamedTuple):
    """The nets of one cell, in room for the most that there may be.

    Of each net: the ends of its other pins, and of its pins on the cell from there, along x and y.
    """

    box: Any
    own: Any


class _Trio(NamedTuple):
    """The nets of three cells, one cell's after the other's, in room for the most that there may be.

    Of each net: the ends of its other pins along x, what all its pins make along y, its weight along x, and where its
    pins on the three end: whose these are, and where on the cell.
    """

    box: Any
    span: Any
    weight: Any
    end: Any
    whose: Any
    offset: Any


@inner
def _span(nets, places, net):
    """Weighted half perimeter of a net."""
    low_x, high_x, low_y, high_y = nets.box[net, 0], nets.box[net, 1], nets.box[net, 2], nets.box[net, 3]
    for pin in range(nets.start[net], nets.start[net + 1]):
        cell = nets.pin_cell[pin]
        x, y = nets.pin_x[pin] + places.x[cell], nets.pin_y[pin] + places.y[cell]
        low_x, high_x = min(low_x, x), max(high_x, x)
        low_y, high_y = min(low_y, y), max(high_y, y)
    return nets.along_x[net] * (high_x - low_x) + nets.along_y[net] * (high_y - low_y)


@inner
def _look(nets, places, cell, around):
    """Fill ``around`` with the nets of a cell."""
    for k in range(nets.cell_start[cell + 1] - nets.cell_start[cell]):
        net = nets.cell_net[nets.cell_start[cell] + k]
        for end in range(4):
            around.box[k, end] = nets.box[net, end]
            around.own[k, end] = 1e30 if end % 2 == 0 else -1e30
        for pin in range(nets.start[net], nets.start[net + 1]):
            other = nets.pin_cell[pin]
            x, y, ends = nets.pin_x[pin], nets.pin_y[pin], around.own
            if other != cell:
                x, y, ends = x + places.x[other], y + places.y[other], around.box
            ends[k, 0], ends[k, 1] = min(ends[k, 0], x), max(ends[k, 1], x)
            ends[k, 2], ends[k, 3] = min(ends[k, 2], y), max(ends[k, 3], y)


@inner
def _span_at(nets, around, k, net, x, y):
    """Weighted half perimeter of the net that is number ``k`` of a cell, with the centre of the cell at a place."""
    low_x, high_x = min(around.box[k, 0], around.own[k, 0] + x), max(around.box[k, 1], around.own[k, 1] + x)
    low_y, high_y = min(around.box[k, 2], around.own[k, 2] + y), max(around.box[k, 3], around.own[k, 3] + y)
    return nets.along_x[net] * (high_x - low_x) + nets.along_y[net] * (high_y - low_y)


@inner
def _length_at(nets, around, cell, x, y):
    """Length of the nets of a cell with its centre at a place."""
    total = 0.0
    for k in range(nets.cell_start[cell + 1] - nets.cell_start[cell]):
        total += _span_at(nets, around, k, nets.cell_net[nets.cell_start[cell] + k], x, y)
    return total


@inner
def _on(nets, cell, net):
    """Whether a cell is on a net."""
    at, end = nets.cell_start[cell], nets.cell_start[cell + 1]
    while at < end and nets.cell_net[at] != net:
        at += 1
    return at < end


@inner
def _with_others(nets, places, cell, other, length):
    """The length of the nets of a cell, and that of those of another that it is not on."""
    for k in range(nets.cell_start[other], nets.cell_start[other + 1]):
        if not _on(nets, cell, nets.cell_net[k]):
            length += _span(nets, places, nets.cell_net[k])
    return length


@inner
def _length_beside(nets, places, around, cell, other):
    """Length of the nets of a cell that has moved, as another has since `_look`."""
    total = 0.0
    for k in range(nets.cell_start[cell + 1] - nets.cell_start[cell]):
        net = nets.cell_net[nets.cell_start[cell] + k]
        if _on(nets, other, net):
            total += _span(nets, places, net)
        else:
            total += _span_at(nets, around, k, net, places.x[cell], places.y[cell])
    return total


@inner
def _put(places, cell, piece, site):
    """Set where a cell stands; the order of its piece is the caller's."""
    places.piece[cell] = piece
    places.site[cell] = site
    places.x[cell] = (site + 0.5 * places.sites[cell]) * places.pitch
    places.y[cell] = (places.bottom[piece] + 0.5) * places.height


@inner
def _find(places, piece, site):
    """How many cells of a piece begin before a site."""
    low, high = 0, places.count[piece]
    while low < high:
        middle = (low + high) // 2
        if places.site[places.order[places.base[piece] + middle]] < site:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _free(places, piece, slot):
    """Sites between the neighbours of a cell: from, and to."""
    low, high = places.first[piece], places.last[piece]
    if slot > 0:
        left = places.order[places.base[piece] + slot - 1]
        low = places.site[left] + places.sites[left]
    if slot + 1 < places.count[piece]:
        high = places.site[places.order[places.base[piece] + slot + 1]]
    return low, high


@inner
def _region(nets, places, cell, axis, ends):
    """The optimal region of a cell along an axis: from, and to; ``ends`` is room for those of its nets."""
    count = 0
    for k in range(nets.cell_start[cell], nets.cell_start[cell + 1]):
        net = nets.cell_net[k]
        weight = nets.along_x[net] if axis == 0 else nets.along_y[net]
        if weight == 0.0 or nets.large[net]:
            continue
        least, most = nets.box[net, 2 * axis], nets.box[net, 2 * axis + 1]
        own = 0.0
        for pin in range(nets.start[net], nets.start[net + 1]):
            other = nets.pin_cell[pin]
            at = nets.pin_x[pin] if axis == 0 else nets.pin_y[pin]
            if other == cell:
                own = at
                continue
            at += places.x[other] if axis == 0 else places.y[other]
            least, most = min(least, at), max(most, at)
        if least <= most and count + 1 < len(ends):
            _sort_in(ends, count, least - own)
            _sort_in(ends, count + 1, most - own)
            count += 2
    if count == 0:
        here = places.x[cell] if axis == 0 else places.y[cell]
        return here, here
    return ends[count // 2 - 1], ends[count // 2]


@inner
def _sort_in(ends, count, value):
    """Put a value among so many that are sorted."""
    while count > 0 and ends[count - 1] > value:
        ends[count] = ends[count - 1]
        count -= 1
    ends[count] = value


@inner
def _remove(places, piece, slot):
    """Take a cell out of the order of its piece."""
    for k in range(slot, places.count[piece] - 1):
        places.order[places.base[piece] + k] = places.order[places.base[piece] + k + 1]
    places.count[piece] -= 1


@inner
def _insert(places, piece, slot, cell):
    """Put a cell into the order of a piece."""
    for k in range(places.count[piece], slot, -1):
        places.order[places.base[piece] + k] = places.order[places.base[piece] + k - 1]
    places.order[places.base[piece] + slot] = cell
    places.count[piece] += 1


@inner
def _best_gap(nets, places, around, now, cell, slot, there, wanted, least):
    """The best gap of a piece for a cell: change of length, left site; the change is ``least`` if none is better.

    ``now`` is the length of its nets.
    """
    piece, site, own = places.piece[cell], places.site[cell], places.sites[cell]
    y = (places.bottom[there] + 0.5) * places.height
    middle, chosen = _find(places, there, wanted), -1
    for k in range(max(middle - 2, 0), min(middle + 3, places.count[there]) + 1):
        if there == piece and k == slot + 1:
            continue
        if there == piece and k == slot:
            begin, end = _free(places, piece, slot)
        else:
            begin, end = places.first[there], places.last[there]
            if k > 0:
                before = places.order[places.base[there] + k - 1]
                begin = places.site[before] + places.sites[before]
            if k < places.count[there]:
                end = places.site[places.order[places.base[there] + k]]
        target = min(max(wanted, begin), end - own)
        if end - begin < own or (there == piece and target == site):
            continue
        change = _length_at(nets, around, cell, (target + 0.5 * own) * places.pitch, y) - now
        if change < least:
            least, chosen = change, target
    return least, chosen


@inner
def _best_swap(nets, places, around, now, cell, slot, there, wanted, least):
    """The best cell of a piece to swap with: change of length, its slot, left site there, left site back.

    ``now`` is the length of the cell's nets.
    """
    piece, site, own = places.piece[cell], places.site[cell], places.sites[cell]
    own_low, own_high = _free(places, piece, slot)
    middle = _find(places, there, wanted)
    chosen, chosen_target, chosen_back = -1, 0, 0
    for k in range(max(middle - 2, 0), min(middle + 3, places.count[there])):
        other = places.order[places.base[there] + k]
        if there == piece and abs(k - slot) < 2:
            continue
        low, high = _free(places, there, k)
        its_sites, its_site = places.sites[other], places.site[other]
        if high - low < own or own_high - own_low < its_sites:
            continue
        target = min(max(its_site, low), high - own)
        back = min(max(site, own_low), own_high - its_sites)
        before = _with_others(nets, places, cell, other, now)
        _put(places, cell, there, target)
        _put(places, other, piece, back)
        after = _length_beside(nets, places, around, cell, other)
        change = _with_others(nets, places, cell, other, after) - before
        _put(places, cell, piece, site)
        _put(places, other, there, its_site)
        if change < least:
            least, chosen, chosen_target, chosen_back = change, k, target, back
    return least, chosen, chosen_target, chosen_back


@compiled
def _toward(nets, places, around, reach):
    """Move every cell toward its optimal region; returns how much shorter the nets became."""
    gain = 0.0
    ends = np.empty(512)
    n_rows = len(places.row_start) - 1
    for cell in range(len(places.x)):
        left, right = _region(nets, places, cell, 0, ends)
        down, up = _region(nets, places, cell, 1, ends)
        x, y = places.x[cell], places.y[cell]
        want_x, want_y = min(max(x, left), right), min(max(y, down), up)
        if abs(want_x - x) < places.pitch and abs(want_y - y) < 0.5 * places.height:
            continue
        _look(nets, places, cell, around)
        now = _length_at(nets, around, cell, x, y)
        piece, own = places.piece[cell], places.sites[cell]
        slot = _find(places, piece, places.site[cell])
        wanted = int(want_x / places.pitch - 0.5 * own)
        least, chosen, target, partner, back = -1e-9, -1, 0, -1, 0
        row = int(want_y / places.height)
        # It need not go where it is farther from its region than it is.
        far = int((abs(want_x - x) + abs(want_y - y)) / places.pitch) + 1
        for at_row in range(max(row - reach, 0), min(row + reach + 1, n_rows)):
            start, end = places.row_start[at_row], places.row_start[at_row + 1]
            for there in range(first_from(places.last, start, end, wanted - far), end):
                if places.first[there] > wanted + own + far:
                    break
                change, site = _best_gap(nets, places, around, now, cell, slot, there, wanted, least)
                if change < least:
                    least, chosen, target, partner = change, there, site, -1
                change, k, site, its = _best_swap(nets, places, around, now, cell, slot, there, wanted, least)
                if change < least:
                    least, chosen, target, partner, back = change, there, site, k, its
        if chosen < 0:
            continue
        gain -= least
        if partner >= 0:
            other = places.order[places.base[chosen] + partner]
            places.order[places.base[chosen] + partner] = cell
            places.order[places.base[piece] + slot] = other
            _put(places, other, piece, back)
        else:
            _remove(places, piece, slot)
            _insert(places, chosen, _find(places, chosen, target), cell)
        _put(places, cell, chosen, target)
    return gain


@inner
def _without(nets, places, cells, trio, last):
    """Fill ``trio`` with the nets of three cells, and ``last`` with where those of each cell end."""
    count, pins = 0, 0
    for k in range(3):
        for at in range(nets.cell_start[cells[k]], nets.cell_start[cells[k] + 1]):
            net = nets.cell_net[at]
            low_x, high_x, low_y, high_y = nets.box[net, 0], nets.box[net, 1], nets.box[net, 2], nets.box[net, 3]
            for pin in range(nets.start[net], nets.start[net + 1]):
                cell = nets.pin_cell[pin]
                y = nets.pin_y[pin] + places.y[cell]
                low_y, high_y = min(low_y, y), max(high_y, y)
                if cell == cells[0] or cell == cells[1] or cell == cells[2]:
                    trio.whose[pins] = 0 if cell == cells[0] else 1 if cell == cells[1] else 2
                    trio.offset[pins] = nets.pin_x[pin]
                    pins += 1
                else:
                    x = nets.pin_x[pin] + places.x[cell]
                    low_x, high_x = min(low_x, x), max(high_x, x)
            trio.box[count, 0], trio.box[count, 1] = low_x, high_x
            trio.span[count], trio.weight[count] = nets.along_y[net] * (high_y - low_y), nets.along_x[net]
            trio.end[count] = pins
            count += 1
        last[k] = count


@inner
def _length(trio, last, x):
    """Length of the nets of three cells with their centres at ``x``; nets of two of them count twice."""
    total, net, pin = 0.0, 0, 0
    for k in range(3):
        own = 0.0
        while net < last[k]:
            low, high = trio.box[net, 0], trio.box[net, 1]
            while pin < trio.end[net]:
                at = trio.offset[pin] + x[trio.whose[pin]]
                low, high = min(low, at), max(high, at)
                pin += 1
            own += trio.weight[net] * (high - low) + trio.span[net]
            net += 1
        total += own
    return total


@compiled
def _reorder(nets, places, trio):
    """Try all orders of three neighbours, and where they stand in their gaps; returns the gain."""
    gain = 0.0
    cells, tried, best_sites = np.empty(3, np.int64), np.empty(3, np.int64), np.empty(3, np.int64)
    x, last = np.empty(3), np.empty(3, np.int64)
    for piece in range(len(places.count)):
        for slot in range(places.count[piece] - 2):
            for k in range(3):
                cells[k] = places.order[places.base[piece] + slot + k]
                best_sites[k] = places.site[cells[k]]
                x[k] = places.x[cells[k]]
            first = best_sites[0]
            begin, _ = _free(places, piece, slot)
            _, end = _free(places, piece, slot + 2)
            total = places.sites[cells[0]] + places.sites[cells[1]] + places.sites[cells[2]]
            _without(nets, places, cells, trio, last)
            # Nets of two of the three count twice, before and after alike.
            now = _length(trio, last, x)
            least, best, slack = now - 1e-9, 0, end - begin - total
            for number in range(6):
                for packing in range(3 if slack > 0 else 1):
                    at = first if packing == 0 else begin + (0 if packing == 1 else slack)
                    at = min(at, end - total)
                    for k in range(3):
                        own = _ORDERS[number][k]
                        tried[own] = at
                        x[own] = (at + 0.5 * places.sites[cells[own]]) * places.pitch
                        at += places.sites[cells[own]]
                    cost = _length(trio, last, x)
                    if cost < least:
                        least, best = cost, number
                        for k in range(3):
                            best_sites[k] = tried[k]
            for k in range(3):
                _put(places, cells[k], piece, best_sites[k])
                places.order[places.base[piece] + slot + k] = cells[_ORDERS[best][k]]
            gain += now - least
    return gain


def improve(
    problem: Problem, piece: np.ndarray, site: np.ndarray, passes: int = _PASSES
) -> tuple[np.ndarray, np.ndarray]:
    """Make nets shorter by legal moves.

    Parameters
    ----------
    problem
        Cells, nets and rows.
    piece, site
        Shape (n_cells,): a legal placement, as `hwgen.layout.legal.legalise` gives it.
    passes
        Most passes over all cells; fewer where a pass brings little.

    Returns
    -------
    piece, site
        The same for the better placement.
    """
    rows = problem.rows
    ranked = np.lexsort((rows.first, rows.bottom))
    rank = np.empty(len(ranked), np.int64)
    rank[ranked] = np.arange(len(ranked))
    nets, places = _nets(problem), _places(problem, rank[piece], site, ranked)
    around, trio = _around(nets), _trio(nets)
    length = problem.wirelength(site * rows.site, rows.bottom[piece] * rows.height)
    for number in range(passes):
        gain = _toward(nets, places, around, 2 if number == 0 else 1)
        gain += _reorder(nets, places, trio)
        if gain < _GAIN * length:
            break
    return ranked[places.piece], places.site


def _nets(problem: Problem) -> _Nets:
    """Nets of at least two pins, and which of them each cell is on."""
    n_nets = len(problem.net_start) - 1
    size = np.diff(problem.net_start)
    net = np.repeat(np.arange(n_nets), size)
    moves = problem.pin_cell >= 0
    box = np.tile([1e30, -1e30, 1e30, -1e30], (n_nets, 1))
    for axis, at in enumerate((problem.pin_x, problem.pin_y)):
        np.minimum.at(box[:, 2 * axis], net[~moves], at[~moves])
        np.maximum.at(box[:, 2 * axis + 1], net[~moves], at[~moves])
    on_net = moves & (size[net] > 1)
    pairs = np.unique(problem.pin_cell[on_net].astype(np.int64) * n_nets + net[on_net])
    cell, on = pairs // max(n_nets, 1), pairs % max(n_nets, 1)
    along = np.ascontiguousarray(problem.along.T)
    return _Nets(
        np.searchsorted(net[moves], np.arange(n_nets + 1)),
        problem.pin_cell[moves].astype(np.int64),
        problem.pin_x[moves],
        problem.pin_y[moves],
        box,
        size > _LARGE,
        along[0],
        along[1],
        np.searchsorted(cell, np.arange(problem.n_cells + 1)),
        on,
    )


def _around(nets: _Nets) -> _Around:
    """Room for the nets of any cell."""
    most = int(np.diff(nets.cell_start).max(initial=0))
    return _Around(np.empty((most, 4)), np.empty((most, 4)))


def _trio(nets: _Nets) -> _Trio:
    """Room for the nets of any three cells, and for their pins."""
    most = 3 * int(np.diff(nets.cell_start).max(initial=0))
    pins = 3 * len(nets.pin_cell)
    return _Trio(
        np.empty((most, 2)),
        np.empty(most),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(pins, np.int64),
        np.empty(pins),
    )


def _places(problem: Problem, piece: np.ndarray, site: np.ndarray, ranked: np.ndarray) -> _Places:
    rows = problem.rows
    sites = np.rint(problem.width / rows.site).astype(np.int64)
    count = np.bincount(piece, minlength=len(ranked))
    # Room for cells that come: as many as the narrowest would fill a piece with.
    room = (rows.last - rows.first)[ranked] // max(int(sites.min(initial=1)), 1) + 1
    base = np.concatenate([[0], np.cumsum(room)])
    order = np.zeros(int(base[-1]), np.int64)
    before = np.concatenate([[0], np.cumsum(count)])[:-1]
    sorted_cells = np.lexsort((site, piece))
    own = piece[sorted_cells]
    order[base[own] + np.arange(len(own)) - before[own]] = sorted_cells
    bottom = rows.bottom[ranked].astype(np.int64)
    return _Places(
        (site + sites / 2) * rows.site,
        (bottom[piece] + 0.5) * rows.height,
        piece.astype(np.int64),
        site.astype(np.int64),
        sites,
        order,
        base[:-1].astype(np.int64),
        count.astype(np.int64),
        rows.first[ranked].astype(np.int64),
        rows.last[ranked].astype(np.int64),
        bottom,
        np.searchsorted(bottom, np.arange(int(bottom.max()) + 2)),
        rows.site,
        rows.height,
    )
