"""Lagrangian relaxation for discrete gate sizes, compiled.

Every arc has a multiplier: what a ns of it is worth, in units of cost. Multipliers grow where slack is negative and
fade where it is not; those that leave a net add up to those that enter it (Chen, Chu and Wong, IEEE Trans. CAD 1999).
With them given, each cell by itself takes the size of least cost plus delay: of its own arcs by their tables, of the
drivers before it by their slopes, of what its slew does behind it by slopes too (Flach et al., IEEE Trans. CAD 2014).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwgen.jit import borrowing, compiled, inlined
from hwgen.timing.kernels import GraphArrays, StateArrays, lookup, lookup_pair, start, swap
from hwgen.timing.kinds import KindArrays

__all__ = ["OVERLOAD", "MultiplierArrays", "bearable", "multiply", "overloaded", "overloaded_before", "resize"]

OVERLOAD = 1e9
"""Cost of a fF more on an output than the library lets it drive: more than all else."""

_NS_PER_PS = 1e-3
_MOST_LOAD = 1e9
_HALVINGS = 30


class MultiplierArrays(NamedTuple):
    """What delays are worth; cost per ns.

    Attributes
    ----------
    first, arc : numpy.ndarray
        Shape (nodes + 1,), (n,): for each slot of each node (of a meet: for both edges of each pin) its share of the
        multipliers that leave the edge of the output where it ends.
    end : numpy.ndarray
        Shape (ends,).
    net : numpy.ndarray
        Shape (nets, 2): the sum of those that leave a net, and of its ends.
    slew : numpy.ndarray
        Shape (nets, 2): cost per ns of the slew of a net.
    load : numpy.ndarray
        Shape (nets, 2): cost per fF on a net.
    """

    first: np.ndarray
    arc: np.ndarray
    end: np.ndarray
    net: np.ndarray
    slew: np.ndarray
    load: np.ndarray


@inlined
def _segment(axes: np.ndarray, table: int, at: float) -> tuple[int, float, float]:
    """Segment of a table's axis, its width, and the position in it."""
    place = 0
    last = axes.shape[1] - 2
    while place < last and at >= axes[table, place + 1]:
        place += 1
    width = axes[table, place + 1] - axes[table, place]
    return place, width, (at - axes[table, place]) / width


@inlined
def _slopes_at(
    kinds: KindArrays, table: int, i: int, width: float, s: float, j: int, height: float, t: float
) -> tuple[float, float, float]:
    """A table's value and its slopes along both axes, in known segments."""
    a, b = kinds.values[table, i, j], kinds.values[table, i, j + 1]
    c, d = kinds.values[table, i + 1, j], kinds.values[table, i + 1, j + 1]
    low, high = a * (1 - t) + b * t, c * (1 - t) + d * t
    return low * (1 - s) + high * s, (high - low) / width, ((b - a) * (1 - s) + (d - c) * s) / height


@inlined
def _slopes(kinds: KindArrays, table: int, x: float, y: float) -> tuple[float, float, float]:
    """A table's value and its slopes along both axes."""
    i, width, s = _segment(kinds.x, table, x)
    j, height, t = _segment(kinds.y, table, y)
    return _slopes_at(kinds, table, i, width, s, j, height, t)


@borrowing
def multiply(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    worth: MultiplierArrays,
    period: float,
    exponent: float,
) -> float:
    """Renew all multipliers by the slacks; arrivals and required times are up to date.

    A multiplier is multiplied by (length of the longest path through it over the period) to the power of
    ``exponent``, then scaled so that what enters a net is what leaves it.

    Returns
    -------
    float
        The sum of the ends' multipliers.
    """
    for net in range(len(worth.net)):
        for edge in range(2):
            worth.net[net, edge] = worth.slew[net, edge] = worth.load[net, edge] = 0.0
    total = 0.0
    for end in range(len(graph.end_net)):
        if state.end[end] == -np.inf:
            worth.end[end] = 0.0
            continue
        worth.end[end] *= max(state.end[end] / period, 0.01) ** exponent
        net, edge = graph.end_net[end], graph.end_edge[end]
        total += worth.end[end]
        worth.net[net, edge] += worth.end[end]
        node = graph.end_node[end]
        if node >= 0:
            check = kinds.check_first[state.kind[node]] + graph.end_check[end]
            table = kinds.check_table[check]
            _, _, slope = _slopes(kinds, table, graph.clock_slew, state.slew[net, edge])
            worth.slew[net, edge] += worth.end[end] * slope
    for node in range(len(state.kind) - 1, -1, -1):
        if graph.meet[node]:
            _multiply_meet(graph, state, worth, node, period, exponent)
        else:
            _multiply_node(graph, kinds, state, worth, node, period, exponent)
    return total


@inlined
def _factor(slack: float, period: float, exponent: float) -> float:
    return max((period - slack) / period, 0.01) ** exponent


@inlined
def _multiply_meet(
    graph: GraphArrays, state: StateArrays, worth: MultiplierArrays, node: int, period: float, exponent: float
) -> None:
    net = graph.out_net[graph.out_first[node]]
    first = graph.pin_first[node]
    pins = graph.pin_first[node + 1] - first
    for edge in range(2):
        total = 0.0
        slowest = 0
        for pin in range(pins):
            source = graph.pin_net[first + pin]
            if state.slew[source, edge] > state.slew[graph.pin_net[first + slowest], edge]:
                slowest = pin
            place = worth.first[node] + 2 * pin + edge
            if state.arrival[source, edge] == -np.inf:
                worth.arc[place] = 0.0
                continue
            slack = state.required[net, edge] - state.arrival[source, edge]
            factor = _factor(slack, period, exponent) if slack < np.inf else 0.01
            worth.arc[place] = max(worth.arc[place] * factor, 1e-12)
            total += worth.arc[place]
        if total == 0.0:
            continue
        scale = worth.net[net, edge] / total
        for pin in range(pins):
            source = graph.pin_net[first + pin]
            place = worth.first[node] + 2 * pin + edge
            worth.net[source, edge] += scale * worth.arc[place]
            worth.arc[place] /= total
        worth.slew[graph.pin_net[first + slowest], edge] += worth.slew[net, edge]


@inlined
def _multiply_node(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    worth: MultiplierArrays,
    node: int,
    period: float,
    exponent: float,
) -> None:
    """One node: its shares by their slacks, and what they and the slopes of its tables make of the nets before it."""
    begin, end = kinds.first[state.kind[node]], kinds.first[state.kind[node] + 1]
    if begin < end and kinds.follows[end - 1]:
        # From the last: an output takes from those that follow it what it hands on.
        while begin < end:
            own = end - 1
            while own > begin and kinds.target[own - 1] == kinds.target[end - 1]:
                own -= 1
            total = _share(graph, kinds, state, worth, node, own, end, period, exponent)
            _hand_on(graph, kinds, state, worth, node, own, end, total)
            end = own
        return
    while begin < end:
        total = _share(graph, kinds, state, worth, node, begin, end, period, exponent)
        begin = _hand_on(graph, kinds, state, worth, node, begin, end, total)


@inlined
def _share(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    worth: MultiplierArrays,
    node: int,
    begin: int,
    end: int,
    period: float,
    exponent: float,
) -> float:
    """Renew the multipliers of the arcs to one edge of an output, of which the first is ``begin``; their sum."""
    target = kinds.target[begin]
    net, edge = graph.out_net[graph.out_first[node] + target // 2], target % 2
    load = state.load[net, edge]
    due = state.required[net, edge] - _NS_PER_PS * graph.resistance[net] * (load - 0.5 * graph.capacitance[net])
    total = 0.0
    arc = begin
    while arc < end and kinds.target[arc] == target:
        same = kinds.slot[arc]
        before = graph.pin_net[graph.pin_first[node] + kinds.source[arc] // 2]
        cause = kinds.source[arc] % 2
        begun = start(graph, kinds, state, arc, before, cause)
        longest = 0.0
        while arc < end and kinds.slot[arc] == same and kinds.target[arc] == target:
            if begun > -np.inf:
                longest = max(longest, lookup(kinds, kinds.delay[arc], state.slew[before, cause], load))
            arc += 1
        slot = worth.first[node] + same
        if begun == -np.inf:
            worth.arc[slot] = 0.0
            continue
        slack = due - begun - longest
        factor = _factor(slack, period, exponent) if slack < np.inf else 0.01
        worth.arc[slot] = max(worth.arc[slot] * factor, 1e-12)
        total += worth.arc[slot]
    return total


@inlined
def _hand_on(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    worth: MultiplierArrays,
    node: int,
    begin: int,
    end: int,
    total: float,
) -> int:
    """Turn the same multipliers into shares of 1, and hand them on to the nets before; returns the arc behind them."""
    target = kinds.target[begin]
    net, edge = graph.out_net[graph.out_first[node] + target // 2], target % 2
    load, here = state.load[net, edge], worth.net[net, edge]
    slowest, at, its_x, its_y = -1.0, -1, 0.0, 0.0
    arc = begin
    while arc < end and kinds.target[arc] == target:
        same = kinds.slot[arc]
        before = graph.pin_net[graph.pin_first[node] + kinds.source[arc] // 2]
        cause = kinds.source[arc] % 2
        dead = state.arrival[before, cause] == -np.inf
        longest, by_slew, by_load = -1.0, 0.0, 0.0
        while arc < end and kinds.slot[arc] == same and kinds.target[arc] == target:
            if not dead:
                table, coming = kinds.delay[arc], state.slew[before, cause]
                i, width, s = _segment(kinds.x, table, coming)
                j, height, t = _segment(kinds.y, table, load)
                delay, x, y = _slopes_at(kinds, table, i, width, s, j, height, t)
                if delay > longest:
                    longest, by_slew, by_load = delay, x, y
                table = kinds.slew[arc]
                if not kinds.same_axes[arc]:
                    i, width, s = _segment(kinds.x, table, coming)
                    j, height, t = _segment(kinds.y, table, load)
                slew, x, y = _slopes_at(kinds, table, i, width, s, j, height, t)
                if slew > slowest:
                    slowest, at, its_x, its_y = slew, 2 * before + cause, x, y
            arc += 1
        if not dead and total > 0:
            slot = worth.first[node] + same
            worth.arc[slot] /= total
            mine = here * worth.arc[slot]
            worth.net[before, cause] += mine
            worth.slew[before, cause] += mine * by_slew
            worth.load[net, edge] += mine * by_load
    if at >= 0:
        worth.slew[at // 2, at % 2] += worth.slew[net, edge] * its_x
        worth.load[net, edge] += worth.slew[net, edge] * its_y
    worth.load[net, edge] += here * _NS_PER_PS * graph.resistance[net]
    return arc


@inlined
def _penalty(
    graph: GraphArrays, kinds: KindArrays, state: StateArrays, worth: MultiplierArrays, node: int, kind: int
) -> float:
    """What the delay of a node of some kind is worth, with that of its drivers; up to a constant."""
    total = 0.0
    arc, end = kinds.first[kind], kinds.first[kind + 1]
    while arc < end:
        target = kinds.target[arc]
        edge = target % 2
        net = graph.out_net[graph.out_first[node] + target // 2]
        load = state.load[net, edge]
        slowest = 0.0
        here = worth.net[net, edge]
        while arc < end and kinds.target[arc] == target:
            same = kinds.slot[arc]
            mine = here * worth.arc[worth.first[node] + same]
            before = graph.pin_net[graph.pin_first[node] + kinds.source[arc] // 2]
            cause = kinds.source[arc] % 2
            longest = 0.0
            while arc < end and kinds.slot[arc] == same and kinds.target[arc] == target:
                if state.arrival[before, cause] > -np.inf:
                    delay, slew = lookup_pair(kinds, arc, state.slew[before, cause], load)
                    longest, slowest = max(longest, delay), max(slowest, slew)
                arc += 1
            total += mine * longest
        total += worth.slew[net, edge] * slowest
    for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
        column = pin - graph.pin_first[node]
        for at in range(graph.load_first[pin], graph.load_first[pin + 1]):
            net = graph.load_net[at]
            for edge in range(2):
                total += worth.load[net, edge] * graph.load_count[at] * kinds.capacitance[kind, column, edge]
    for at_end in range(graph.node_end_first[node], graph.node_end_first[node + 1]):
        its = graph.node_end[at_end]
        if worth.end[its] > 0:
            check = kinds.check_first[kind] + graph.end_check[its]
            slew = state.slew[graph.end_net[its], graph.end_edge[its]]
            total += worth.end[its] * lookup(kinds, kinds.check_table[check], graph.clock_slew, slew)
    return total


@inlined
def overloaded(graph: GraphArrays, kinds: KindArrays, state: StateArrays, node: int, kind: int) -> float:
    """By how many fF the outputs of a node of some kind drive more than the library lets them."""
    worst = 0.0
    first = graph.out_first[node]
    for out in range(first, graph.out_first[node + 1]):
        net = graph.out_net[out]
        worst = max(worst, max(state.load[net, 0], state.load[net, 1]) - kinds.limit[kind, out - first])
    return worst


@inlined
def overloaded_before(graph: GraphArrays, kinds: KindArrays, state: StateArrays, node: int) -> float:
    """By how many fF the drivers of a node's inputs drive more than the library lets them, together."""
    total = 0.0
    for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
        for at in range(graph.load_first[pin], graph.load_first[pin + 1]):
            before = graph.driver[graph.load_net[at]]
            if before >= 0 and not graph.meet[before]:
                total += overloaded(graph, kinds, state, before, state.kind[before])
    return total


@compiled
def bearable(kinds: KindArrays, slew: float, most: float) -> np.ndarray:
    """Loads in fF behind which the outputs of each kind have slews of ``most`` ns; shape (kinds, widest output).

    Parameters
    ----------
    slew : float
        ns, at the inputs.
    most : float
        ns.
    """
    found = np.full(kinds.limit.shape, np.inf)
    for kind in range(len(found)):
        for arc in range(kinds.first[kind], kinds.first[kind + 1]):
            table, out = kinds.slew[arc], kinds.target[arc] // 2
            low, high = 0.0, kinds.y[table, -1]
            while lookup(kinds, table, slew, high) < most and high < _MOST_LOAD:
                low, high = high, 2 * high
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                if lookup(kinds, table, slew, middle) < most:
                    low = middle
                else:
                    high = middle
            found[kind, out] = min(found[kind, out], high)
    return found


@borrowing
def resize(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    worth: MultiplierArrays,
    bounds: np.ndarray,
    cost: np.ndarray,
) -> int:
    """Give each node the kind of least cost and penalty, the last node first, so that drivers see what they drive.

    Parameters
    ----------
    bounds : numpy.ndarray
        Shape (nodes, 2): the kinds of each node's family, first and behind the last.
    cost : numpy.ndarray
        Shape (nodes, widest family): of each node by place in its family.

    Returns
    -------
    int
        Nodes that changed.
    """
    changed = 0
    for node in range(len(state.kind) - 1, -1, -1):
        first, end = bounds[node, 0], bounds[node, 1]
        if end - first < 2:
            continue
        old = state.kind[node]
        best, least = old, np.inf
        for kind in range(first, end):
            found = cost[node, kind - first] + _penalty(graph, kinds, state, worth, node, kind)
            found += OVERLOAD * overloaded(graph, kinds, state, node, kind)
            if found < least or (found == least and kind == old):
                best, least = kind, found
        if best != old:
            changed += 1
            swap(graph, kinds, state, node, best)
    return changed
