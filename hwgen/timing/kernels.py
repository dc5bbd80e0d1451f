"""Compiled timing: all nodes in order, or those behind a change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwgen.jit import borrowing, compiled, inlined, inner
from hwgen.timing.kinds import KindArrays

__all__ = [
    "GraphArrays",
    "StateArrays",
    "backward",
    "forward",
    "levels",
    "lookup",
    "lookup_pair",
    "reload",
    "setup",
    "start",
    "swap",
    "update",
    "visit",
    "wire_delay",
]

_NS_PER_PS = 1e-3


class GraphArrays(NamedTuple):
    """What drives what; nodes are cells (or classes of them) in topological order.

    Attributes
    ----------
    pin_first, pin_net : numpy.ndarray
        Shape (nodes + 1,) and (pins,): nets at the inputs of each node, by column of its family; behind them those of
        its outputs, where some follow others.
    out_first, out_net : numpy.ndarray
        The same of the outputs.
    meet : numpy.ndarray
        Shape (nodes,), bool: no cell, but where several nets meet: one output, as late and as slow as the worst input.
    driver : numpy.ndarray
        Shape (nets,): node, or -1.
    sink_first, sink_node : numpy.ndarray
        Shape (nets + 1,) and (n,): nodes with an arc from the net.
    load_first, load_net, load_count : numpy.ndarray
        Shape (pins + 1,), (n,), (n,): the nets whose load has this pin in it, and how many times.
    inputs : numpy.ndarray
        Shape (nets,), bool: input ports, the clock apart.
    end_net, end_edge, end_node, end_check : numpy.ndarray
        Shape (ends,): where paths end: net, edge, node (-1 for a port) and number of the constraint in its kind.
    node_end_first, node_end : numpy.ndarray
        Shape (nodes + 1,), (n,): the ends at each node.
    net_end_first, net_end : numpy.ndarray
        Shape (nets + 1,), (ends,): the ends on each net.
    resistance, capacitance : numpy.ndarray
        Shape (nets,): kohm and fF of the wire.
    fixed : numpy.ndarray
        Shape (nets, 2): fF of wire and output ports.
    clock_slew : float
        ns.
    """

    pin_first: np.ndarray
    pin_net: np.ndarray
    out_first: np.ndarray
    out_net: np.ndarray
    meet: np.ndarray
    driver: np.ndarray
    sink_first: np.ndarray
    sink_node: np.ndarray
    load_first: np.ndarray
    load_net: np.ndarray
    load_count: np.ndarray
    inputs: np.ndarray
    end_net: np.ndarray
    end_edge: np.ndarray
    end_node: np.ndarray
    end_check: np.ndarray
    node_end_first: np.ndarray
    node_end: np.ndarray
    net_end_first: np.ndarray
    net_end: np.ndarray
    resistance: np.ndarray
    capacitance: np.ndarray
    fixed: np.ndarray
    clock_slew: float


class StateArrays(NamedTuple):
    """What changes: kinds of the nodes, and times.

    Attributes
    ----------
    kind : numpy.ndarray
        Shape (nodes,): number in `Kinds`; of no meaning for meets.
    load : numpy.ndarray
        Shape (nets, 2), fF.
    arrival, slew, required : numpy.ndarray
        Shape (nets, 2), ns; arrivals and required times at the loads.
    end : numpy.ndarray
        Shape (ends,), ns: arrival and set-up; minus infinity where nothing arrives.
    """

    kind: np.ndarray
    load: np.ndarray
    arrival: np.ndarray
    slew: np.ndarray
    required: np.ndarray
    end: np.ndarray


@inner
def _segment(axes: np.ndarray, table: int, at: float) -> tuple[int, float]:
    place = 0
    last = axes.shape[1] - 2
    while place < last and at >= axes[table, place + 1]:
        place += 1
    low = axes[table, place]
    return place, (at - low) / (axes[table, place + 1] - low)


@inner
def _inside(values: np.ndarray, table: int, i: int, s: float, j: int, t: float) -> float:
    low = values[table, i, j] * (1 - t) + values[table, i, j + 1] * t
    high = values[table, i + 1, j] * (1 - t) + values[table, i + 1, j + 1] * t
    return low * (1 - s) + high * s


@inner
def _value(axes: np.ndarray, others: np.ndarray, values: np.ndarray, table: int, x: float, y: float) -> float:
    i, s = _segment(axes, table, x)
    j, t = _segment(others, table, y)
    return _inside(values, table, i, s, j, t)


@inner
def _values(
    axes: np.ndarray, others: np.ndarray, values: np.ndarray, table: int, second: int, same: bool, x: float, y: float
) -> tuple[float, float]:
    i, s = _segment(axes, table, x)
    j, t = _segment(others, table, y)
    value = _inside(values, table, i, s, j, t)
    if same:
        return value, _inside(values, second, i, s, j, t)
    return value, _value(axes, others, values, second, x, y)


@inlined
def lookup(kinds: KindArrays, table: int, x: float, y: float) -> float:
    """One table at one point, as `hwgen.cells.tables.TableBank` has it."""
    return _value(kinds.x, kinds.y, kinds.values, table, x, y)


@inlined
def lookup_pair(kinds: KindArrays, arc: int, slew: float, load: float) -> tuple[float, float]:
    """Delay and slew of an arc."""
    return _values(kinds.x, kinds.y, kinds.values, kinds.delay[arc], kinds.slew[arc], kinds.same_axes[arc], slew, load)


@inlined
def wire_delay(graph: GraphArrays, state: StateArrays, net: int, edge: int) -> float:
    """Elmore delay of a net's wire in ns."""
    return _NS_PER_PS * graph.resistance[net] * (state.load[net, edge] - 0.5 * graph.capacitance[net])


@inlined
def start(graph: GraphArrays, kinds: KindArrays, state: StateArrays, arc: int, net: int, edge: int) -> float:
    """When an arc begins, ns: its edge arrives at the loads of its net, or, of an output of the cell, at the driver."""
    if kinds.follows[arc]:
        return state.arrival[net, edge] - wire_delay(graph, state, net, edge)
    return state.arrival[net, edge]


@compiled
def levels(pin_first: np.ndarray, timed: np.ndarray, driver: np.ndarray, pin_net: np.ndarray) -> np.ndarray:
    """Level of every node above all those that its timed pins wait for; -1 for those in loops and behind them."""
    nodes = len(pin_first) - 1
    waiting = np.zeros(nodes, np.int64)
    count = np.zeros(nodes + 1, np.int64)
    for node in range(nodes):
        for pin in range(pin_first[node], pin_first[node + 1]):
            source = driver[pin_net[pin]]
            if timed[pin] and source >= 0:
                waiting[node] += 1
                count[source + 1] += 1
    first = np.zeros(nodes + 1, np.int64)
    place = np.empty(nodes, np.int64)
    for node in range(nodes):
        place[node] = first[node]
        first[node + 1] = first[node] + count[node + 1]
    reached = np.empty(first[-1], np.int64)
    for node in range(nodes):
        for pin in range(pin_first[node], pin_first[node + 1]):
            source = driver[pin_net[pin]]
            if timed[pin] and source >= 0:
                reached[place[source]] = node
                place[source] += 1
    level = np.full(nodes, -1, np.int64)
    queue = np.empty(nodes, np.int64)
    head = tail = 0
    for node in range(nodes):
        if waiting[node] == 0:
            level[node] = 0
            queue[tail] = node
            tail += 1
    depth = np.zeros(nodes, np.int64)
    while head < tail:
        node = queue[head]
        head += 1
        level[node] = depth[node]
        for at in range(first[node], first[node + 1]):
            after = reached[at]
            depth[after] = max(depth[after], depth[node] + 1)
            waiting[after] -= 1
            if waiting[after] == 0:
                queue[tail] = after
                tail += 1
    return level


@borrowing
def reload(graph: GraphArrays, kinds: KindArrays, state: StateArrays) -> None:
    """Loads of all nets."""
    for net in range(len(state.load)):
        for edge in range(2):
            state.load[net, edge] = graph.fixed[net, edge]
    for node in range(len(state.kind)):
        if graph.meet[node]:
            continue
        for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
            column = pin - graph.pin_first[node]
            for at in range(graph.load_first[pin], graph.load_first[pin + 1]):
                net = graph.load_net[at]
                for edge in range(2):
                    state.load[net, edge] += graph.load_count[at] * kinds.capacitance[state.kind[node], column, edge]


@inlined
def _settle(
    graph: GraphArrays, kinds: KindArrays, state: StateArrays, net: int, edge: int, arrival: float, slew: float
) -> float:
    """Set one edge of a net; returns by how much it changed, ns."""
    arrival += wire_delay(graph, state, net, edge)
    before = state.arrival[net, edge]
    change = abs(slew - state.slew[net, edge])
    if arrival != before:
        change = max(change, abs(arrival - before))
    state.arrival[net, edge] = arrival
    state.slew[net, edge] = slew
    return change


@inlined
def _meet(graph: GraphArrays, state: StateArrays, node: int) -> float:
    net = graph.out_net[graph.out_first[node]]
    change = 0.0
    for edge in range(2):
        arrival, slew = -np.inf, 0.0
        for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
            source = graph.pin_net[pin]
            arrival = max(arrival, state.arrival[source, edge])
            slew = max(slew, state.slew[source, edge])
        if arrival != state.arrival[net, edge]:
            change = np.inf
        change = max(change, abs(slew - state.slew[net, edge]))
        state.arrival[net, edge] = arrival
        state.slew[net, edge] = slew
    return change


@inlined
def visit(graph: GraphArrays, kinds: KindArrays, state: StateArrays, node: int) -> float:
    """Arrivals and slews behind one node; returns the largest change, ns."""
    if graph.meet[node]:
        return _meet(graph, state, node)
    kind = state.kind[node]
    change = 0.0
    arc, end = kinds.first[kind], kinds.first[kind + 1]
    while arc < end:
        target = kinds.target[arc]
        edge = target % 2
        net = graph.out_net[graph.out_first[node] + target // 2]
        load = state.load[net, edge]
        arrival, slew = -np.inf, -np.inf
        while arc < end and kinds.target[arc] == target:
            source = kinds.source[arc]
            before = graph.pin_net[graph.pin_first[node] + source // 2]
            begun = start(graph, kinds, state, arc, before, source % 2)
            # Nothing moves on constants: they must not set a slew either.
            if begun == -np.inf:
                slew = max(slew, 0.0)
            else:
                delay, its = lookup_pair(kinds, arc, state.slew[before, source % 2], load)
                arrival = max(arrival, begun + delay)
                slew = max(slew, its)
            arc += 1
        change = max(change, _settle(graph, kinds, state, net, edge, arrival, slew))
    return change


@borrowing
def begin(graph: GraphArrays, state: StateArrays) -> None:
    """Arrivals at input ports: the delays of their wires."""
    for net in range(len(graph.inputs)):
        if graph.inputs[net]:
            for edge in range(2):
                state.arrival[net, edge] = wire_delay(graph, state, net, edge)


@inlined
def setup(graph: GraphArrays, kinds: KindArrays, state: StateArrays, end: int) -> float:
    """Set-up time at an end in ns; 0 at a port."""
    node = graph.end_node[end]
    if node < 0:
        return 0.0
    check = kinds.check_first[state.kind[node]] + graph.end_check[end]
    slew = state.slew[graph.end_net[end], graph.end_edge[end]]
    return lookup(kinds, kinds.check_table[check], graph.clock_slew, slew)


@inlined
def _reach(graph: GraphArrays, kinds: KindArrays, state: StateArrays, end: int) -> float:
    """Time one end; returns when that is."""
    arrival = state.arrival[graph.end_net[end], graph.end_edge[end]]
    state.end[end] = arrival if arrival == -np.inf else arrival + setup(graph, kinds, state, end)
    return state.end[end]


@borrowing
def forward(graph: GraphArrays, kinds: KindArrays, state: StateArrays) -> None:
    """Arrivals and slews of all nets."""
    begin(graph, state)
    for node in range(len(state.kind)):
        visit(graph, kinds, state, node)
    for end in range(len(graph.end_net)):
        _reach(graph, kinds, state, end)


@borrowing
def backward(graph: GraphArrays, kinds: KindArrays, state: StateArrays, period: float) -> None:
    """Required times of all nets: ``period`` at output ports, less the set-up at registers."""
    for net in range(len(state.required)):
        for edge in range(2):
            state.required[net, edge] = np.inf
    for end in range(len(graph.end_net)):
        net, edge = graph.end_net[end], graph.end_edge[end]
        due = period - setup(graph, kinds, state, end)
        state.required[net, edge] = min(state.required[net, edge], due)
    for node in range(len(state.kind) - 1, -1, -1):
        if graph.meet[node]:
            net = graph.out_net[graph.out_first[node]]
            for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
                for edge in range(2):
                    source = graph.pin_net[pin]
                    state.required[source, edge] = min(state.required[source, edge], state.required[net, edge])
            continue
        kind = state.kind[node]
        # From the last: what follows an output says when that one is required.
        for arc in range(kinds.first[kind + 1] - 1, kinds.first[kind] - 1, -1):
            target, source = kinds.target[arc], kinds.source[arc]
            net, edge = graph.out_net[graph.out_first[node] + target // 2], target % 2
            before, cause = graph.pin_net[graph.pin_first[node] + source // 2], source % 2
            if state.required[net, edge] == np.inf or state.arrival[before, cause] == -np.inf:
                continue
            delay = lookup(kinds, kinds.delay[arc], state.slew[before, cause], state.load[net, edge])
            due = state.required[net, edge] - wire_delay(graph, state, net, edge) - delay
            if kinds.follows[arc]:
                due += wire_delay(graph, state, before, cause)
            state.required[before, cause] = min(state.required[before, cause], due)


@borrowing
def swap(graph: GraphArrays, kinds: KindArrays, state: StateArrays, node: int, kind: int) -> None:
    """Give a node another kind, and the nets before it their new loads."""
    old = state.kind[node]
    state.kind[node] = kind
    for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
        column = pin - graph.pin_first[node]
        for at in range(graph.load_first[pin], graph.load_first[pin + 1]):
            for edge in range(2):
                more = kinds.capacitance[kind, column, edge] - kinds.capacitance[old, column, edge]
                state.load[graph.load_net[at], edge] += graph.load_count[at] * more


@inlined
def _push(heap: np.ndarray, size: int, node: int) -> int:
    """Add a node to a heap, the least on top; returns its size."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > node:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = node
    return size + 1


@inlined
def _pop(heap: np.ndarray, size: int) -> int:
    """Take the least node from a heap; returns it."""
    least, last = heap[0], heap[size - 1]
    at, below = 0, 1
    while below < size - 1:
        if below + 1 < size - 1 and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= last:
            break
        heap[at] = heap[below]
        at, below = below, 2 * below + 1
    heap[at] = last
    return least


@inlined
def _queue_sinks(graph: GraphArrays, net: int, heap: np.ndarray, size: int, queued: np.ndarray) -> int:
    for at in range(graph.sink_first[net], graph.sink_first[net + 1]):
        after = graph.sink_node[at]
        if not queued[after]:
            queued[after] = True
            size = _push(heap, size, after)
    return size


@borrowing
def update(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    node: int,
    queued: np.ndarray,
    tolerance: float,
    room: np.ndarray,
) -> tuple[int, float]:
    """Arrivals and slews behind a node that was swapped, and behind the drivers of its nets.

    Parameters
    ----------
    queued : numpy.ndarray
        Shape (nodes,), bool: all False, before and after.
    tolerance : float
        ns; smaller changes are not followed.
    room : numpy.ndarray
        Shape (2, nodes), int64. The first row holds the nodes visited afterwards, each once.

    Returns
    -------
    int
        Nodes visited.
    float
        ns, the latest of the ends that were timed again.
    """
    visited, heap, size = room[0], room[1], 1
    heap[0] = node
    queued[node] = True
    latest = -np.inf
    for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
        for at in range(graph.load_first[pin], graph.load_first[pin + 1]):
            net = graph.load_net[at]
            before = graph.driver[net]
            if before >= 0 and not queued[before]:
                queued[before] = True
                size = _push(heap, size, before)
            if graph.inputs[net] and graph.resistance[net] > 0:
                for edge in range(2):
                    state.arrival[net, edge] = wire_delay(graph, state, net, edge)
                size = _queue_sinks(graph, net, heap, size, queued)
                for at_end in range(graph.net_end_first[net], graph.net_end_first[net + 1]):
                    latest = max(latest, _reach(graph, kinds, state, graph.net_end[at_end]))
    count = 0
    while size:
        here = _pop(heap, size)
        size -= 1
        queued[here] = False
        visited[count] = here
        count += 1
        if visit(graph, kinds, state, here) <= tolerance:
            continue
        for out in range(graph.out_first[here], graph.out_first[here + 1]):
            net = graph.out_net[out]
            size = _queue_sinks(graph, net, heap, size, queued)
            for at_end in range(graph.net_end_first[net], graph.net_end_first[net + 1]):
                latest = max(latest, _reach(graph, kinds, state, graph.net_end[at_end]))
    # Last, when what is before the node has its times, so that no end counts that moves once more.
    for at_end in range(graph.node_end_first[node], graph.node_end_first[node + 1]):
        latest = max(latest, _reach(graph, kinds, state, graph.node_end[at_end]))
    return count, latest
