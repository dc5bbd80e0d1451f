"""The tree of repeaters with the latest required time at a net's driver.

It is found by dynamic programming from the sinks up a Steiner tree of the net (van Ginneken, ISCAS 1990): at every
branch, and along every long edge, a buffer of some drive may be put in. A buffer's delay is taken to be linear in its
load, a wire's that of Elmore to the farthest end: timing takes a net to be so late for all that it leads to, see
`hwgen.layout.Layout.wires`. The shortest tree leads to its sinks in roundabout ways where there are many. So trees of
shorter ways and more wire are tried, too.

A way to build a branch is three numbers: its load, when its ends have to be there, and the delay of its wire to the
farthest of them. The second less the third is when its beginning has to switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hwgen.jit import compiled
from hwgen.layout.steiner import steiner_tree
from hwgen.layout.technology import Technology

__all__ = ["Load", "Repeater", "best_tree"]

_NS_PER_PS = 1e-3
_LONGEST = 12
# Of trees that are tried besides the shortest, see `hwgen.layout.steiner.steiner_tree`.
_DIRECT = 0.3, 0.6, 1.0
# What is made: nothing, a load, two things, or a buffer before a thing.
_NOTHING, _LOAD, _BOTH, _BUFFER = 0, 1, 2, 3


class Repeater(NamedTuple):
    """A buffer as trees know it.

    Attributes
    ----------
    name : str
        Cell.
    capacitance : float
        fF of its input.
    delay, slope : float
        ns without load, and ns per fF.
    """

    name: str
    capacitance: float
    delay: float
    slope: float


class Load(NamedTuple):
    """What a net leads to at one place.

    Attributes
    ----------
    x, y : float
        um.
    capacitance : float
        fF.
    required : float
        ns, when it has to be there.
    """

    x: float
    y: float
    capacitance: float
    required: float


class _Net(NamedTuple):
    """A net as the kernels know it.

    Attributes
    ----------
    x, y, length, pieces, parent : numpy.ndarray
        Shape (points,): of each point of its Steiner tree; the edge above it, and how many pieces that is cut into.
    order : numpy.ndarray
        Shape (points,): points such that none comes before those that hang on it.
    capacitance, required : numpy.ndarray
        Shape (loads,): of points 1 and up.
    repeaters : numpy.ndarray
        Shape (repeaters, 3): capacitance, delay and slope.
    per_um : tuple of float
        fF and ns per fF of a um of wire.
    each : float
        ns that a repeater must gain.
    """

    x: Any
    y: Any
    length: Any
    pieces: Any
    parent: Any
    order: Any
    capacitance: Any
    required: Any
    repeaters: Any
    per_um: Any
    each: Any


class _Made(NamedTuple):
    """All that was made: its kind, two numbers (a load; two things; a repeater and a thing), and a repeater's place."""

    what: Any
    first: Any
    second: Any
    x: Any
    y: Any
    count: Any


def best_tree(
    loads: Sequence[Load],
    source: tuple[float, float],
    slope: float,
    repeaters: Sequence[Repeater],
    technology: Technology,
    each: float,
    enough: float = np.inf,
) -> tuple[float, list[Any]]:
    """The tree of repeaters that lets a net's driver be latest.

    Parameters
    ----------
    loads
        What the net leads to.
    source
        Where its driver is, um.
    slope
        ns per fF of the driver.
    repeaters
        To choose from.
    technology
        What a um of wire adds.
    each
        ns that a repeater must gain.
    enough
        ns: a required time without a load that is late enough. More wire is laid only where the shortest tree has less.

    Returns
    -------
    float
        ns gained over the net without any.
    list
        What the driver drives: numbers of loads, and ``(repeater, (x, y), list)`` of what that drives in turn.
    """
    values = np.array(loads, dtype=float).reshape(-1, 4)
    places = np.append(source[0], values[:, 0]), np.append(source[1], values[:, 1])
    own = values[:, 2].copy(), values[:, 3].copy()
    known = np.array([it[1:] for it in repeaters], dtype=float).reshape(-1, 3)
    # A good distance between repeaters, and points to put them at three times as dense.
    apart = min((2 * (it.delay + it.slope * it.capacitance) for it in repeaters), default=0.0)

    def routed(directness: float) -> _Net:
        x, y, parent = steiner_tree(*places, directness)
        length = np.abs(x - x[parent]) + np.abs(y - y[parent])
        length[0] = 0.0
        total = float(length.sum()) * technology.detour
        ohms = technology.long_resistance if total > technology.long_from else technology.resistance
        per_um = technology.detour * technology.capacitance, technology.detour * ohms * _NS_PER_PS
        step = (apart / max(per_um[0] * per_um[1], 1e-12)) ** 0.5 / 3
        pieces = np.clip(np.ceil(length / step), 1, _LONGEST).astype(np.int64)
        return _Net(x, y, length, pieces, parent, _upward(parent), *own, known, per_um, each)

    shortest = routed(0.0)
    plain, _, _ = _tree(shortest, slope, False)
    best, thing, made = _tree(shortest, slope, True)
    for directness in _DIRECT if len(loads) > 1 else ():
        if best >= enough:
            break
        found, its, ways = _tree(routed(directness), slope, True)
        if found > best + each:
            best, thing, made = found, its, ways
    return best - plain, _unfolded(thing, made, repeaters)


def _unfolded(thing: int, made: _Made, repeaters: Sequence[Repeater]) -> list[Any]:
    """What a thing is made of, as `best_tree` gives it."""
    what, first, second = made.what[thing], int(made.first[thing]), int(made.second[thing])
    if what == _LOAD:
        return [first]
    if what == _BOTH:
        return [*_unfolded(first, made, repeaters), *_unfolded(second, made, repeaters)]
    if what == _BUFFER:
        place = float(made.x[thing]), float(made.y[thing])
        return [(repeaters[first], place, _unfolded(second, made, repeaters))]
    return []


@compiled
def _upward(parent):
    """The points of a tree, none before those that hang on it."""
    n = len(parent)
    waiting, order = np.zeros(n, np.int64), np.empty(n, np.int64)
    for point in range(n):
        if parent[point] >= 0:
            waiting[parent[point]] += 1
    count = 0
    for point in range(n):
        if waiting[point] == 0:
            order[count] = point
            count += 1
    at = 0
    while at < count:
        above = parent[order[at]]
        at += 1
        if above >= 0:
            waiting[above] -= 1
            if waiting[above] == 0:
                order[count] = above
                count += 1
    return order


@compiled
def _new(made, what, first, second, x, y):
    """Make a thing; returns what was made, in more room where that is needed, and its number."""
    number = made.count[0]
    if number == len(made.what):
        made = _Made(
            np.append(made.what, made.what),
            np.append(made.first, made.first),
            np.append(made.second, made.second),
            np.append(made.x, made.x),
            np.append(made.y, made.y),
            made.count,
        )
    made.what[number], made.first[number], made.second[number] = what, first, second
    made.x[number], made.y[number] = x, y
    made.count[0] += 1
    return made, number


@compiled
def _good(ways):
    """Which ways no other beats in load and required time; the least load first."""
    capacitance, required = ways[0], ways[1] - ways[2]
    by_time = np.argsort(-required, kind="mergesort")
    order = by_time[np.argsort(capacitance[by_time], kind="mergesort")]
    kept = np.empty(len(order), np.int64)
    count = 0
    for way in order:
        if count == 0 or required[way] > required[kept[count - 1]]:
            kept[count] = way
            count += 1
    return kept[:count]


@compiled
def _driven(ways, slope):
    """The best way for a driver of a slope, and when it would have to switch without a load."""
    best, latest = 0, -np.inf
    for way in range(ways.shape[1]):
        required = ways[1, way] - ways[2, way] - slope * ways[0, way]
        if required > latest:
            best, latest = way, required
    return best, latest


@compiled
def _buffered(ways, things, net, made, x, y):
    """Ways with those through a buffer, the good ones."""
    n, kinds = ways.shape[1], len(net.repeaters)
    more, behind = np.zeros((3, n + kinds)), np.empty(n + kinds, np.int64)
    more[:, :n] = ways
    behind[:n] = things
    for kind in range(kinds):
        best, latest = _driven(ways, net.repeaters[kind, 2])
        more[0, n + kind] = net.repeaters[kind, 0]
        more[1, n + kind] = latest - net.repeaters[kind, 1] - net.each
        behind[n + kind] = things[best]
    kept = _good(more)
    found, its = np.empty((3, len(kept))), np.empty(len(kept), np.int64)
    for number in range(len(kept)):
        way = kept[number]
        found[:, number] = more[:, way]
        its[number] = behind[way]
        if way >= n:
            made, its[number] = _new(made, _BUFFER, way - n, behind[way], x, y)
    return found, its, made


@compiled
def _joined(ways, things, others, their, made):
    """Ways to build two branches, the good ones."""
    n, m = ways.shape[1], others.shape[1]
    both = np.empty((3, n * m))
    for one in range(n):
        for other in range(m):
            both[0, one * m + other] = ways[0, one] + others[0, other]
            both[1, one * m + other] = min(ways[1, one], others[1, other])
            both[2, one * m + other] = max(ways[2, one], others[2, other])
    kept = _good(both)
    found, its = np.empty((3, len(kept))), np.empty(len(kept), np.int64)
    for number in range(len(kept)):
        pair = kept[number]
        found[:, number] = both[:, pair]
        made, its[number] = _new(made, _BOTH, things[pair // m], their[pair % m], 0.0, 0.0)
    return found, its, made


@compiled
def _along(ways, things, net, point, made, buffers):
    """Ways to build what hangs at a point, with the edge above it."""
    pieces, above = net.pieces[point], net.parent[point]
    piece = net.length[point] / pieces
    for number in range(pieces):
        longer = ways.copy()
        longer[0] += net.per_um[0] * piece
        longer[2] += net.per_um[1] * piece * (0.5 * net.per_um[0] * piece + ways[0])
        ways = longer
        if buffers and number < pieces - 1:
            up = (number + 1) / pieces
            x = net.x[point] + up * (net.x[above] - net.x[point])
            y = net.y[point] + up * (net.y[above] - net.y[point])
            ways, things, made = _buffered(ways, things, net, made, x, y)
    return ways, things, made


@compiled
def _tree(net, slope, buffers):
    """Required time at the driver of the best tree, the thing that this is, and all that was made."""
    points, loads = len(net.parent), len(net.capacitance)
    made = _Made(
        np.zeros(256, np.int64),
        np.zeros(256, np.int64),
        np.zeros(256, np.int64),
        np.zeros(256),
        np.zeros(256),
        np.ones(1, np.int64),
    )
    ways, things = [np.zeros((3, 1)) for _ in range(points)], [np.zeros(1, np.int64) for _ in range(points)]
    for point in range(points):
        ways[point][1, 0] = np.inf
        if 0 < point <= loads:
            ways[point][0, 0], ways[point][1, 0] = net.capacitance[point - 1], net.required[point - 1]
            made, things[point][0] = _new(made, _LOAD, point - 1, 0, 0.0, 0.0)
    for point in net.order:
        if point == 0:
            continue
        own, its = ways[point], things[point]
        if buffers:
            own, its, made = _buffered(own, its, net, made, net.x[point], net.y[point])
        own, its, made = _along(own, its, net, point, made, buffers)
        above = net.parent[point]
        ways[above], things[above], made = _joined(ways[above], things[above], own, its, made)
    best, latest = _driven(ways[0], slope)
    return latest, things[0][best], made
