"""One cell after the other, with exact timing: what violates is repaired, what has slack to spare is made smaller."""

from __future__ import annotations

import numpy as np

from hwgen.closure.relaxation import overloaded, overloaded_before
from hwgen.jit import compiled, inlined, inner
from hwgen.timing.kernels import GraphArrays, StateArrays, lookup, lookup_pair, start, swap, update
from hwgen.timing.kinds import KindArrays

__all__ = ["recover", "repair"]

_LONGEST_PATH = 4096
# Kinds tried in full for one move; the others promise less.
_TRIED = 16


@inner
def _violation(state: StateArrays, period: float) -> tuple[float, float]:
    """The latest end, and by how much all of them are late together, ns."""
    latest, total = -np.inf, 0.0
    for end in range(len(state.end)):
        latest = max(latest, state.end[end])
        if state.end[end] > period:
            total += state.end[end] - period
    return latest, total


@inner
def _copy(state: StateArrays, to: StateArrays) -> None:
    """Kinds and times, but for required ones."""
    for node in range(len(state.kind)):
        to.kind[node] = state.kind[node]
    for end in range(len(state.end)):
        to.end[end] = state.end[end]
    for net in range(len(state.load)):
        for edge in range(2):
            to.load[net, edge] = state.load[net, edge]
            to.arrival[net, edge] = state.arrival[net, edge]
            to.slew[net, edge] = state.slew[net, edge]


@inner
def _restore(
    graph: GraphArrays, state: StateArrays, kept: StateArrays, node: int, visited: np.ndarray, count: int
) -> None:
    """Undo what a swap of a node and the update behind it changed; ``visited`` are the nodes that were."""
    state.kind[node] = kept.kind[node]
    for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
        for at in range(graph.load_first[pin], graph.load_first[pin + 1]):
            net = graph.load_net[at]
            state.load[net, 0], state.load[net, 1] = kept.load[net, 0], kept.load[net, 1]
            _restore_net(graph, state, kept, net)
    for at in range(count):
        here = visited[at]
        for out in range(graph.out_first[here], graph.out_first[here + 1]):
            _restore_net(graph, state, kept, graph.out_net[out])
    for at_end in range(graph.node_end_first[node], graph.node_end_first[node + 1]):
        state.end[graph.node_end[at_end]] = kept.end[graph.node_end[at_end]]


@inner
def _restore_net(graph: GraphArrays, state: StateArrays, kept: StateArrays, net: int) -> None:
    for edge in range(2):
        state.arrival[net, edge] = kept.arrival[net, edge]
        state.slew[net, edge] = kept.slew[net, edge]
    for at_end in range(graph.net_end_first[net], graph.net_end_first[net + 1]):
        state.end[graph.net_end[at_end]] = kept.end[graph.net_end[at_end]]


@inner
def _trace(
    graph: GraphArrays, kinds: KindArrays, state: StateArrays, end: int, path: np.ndarray, slots: np.ndarray
) -> int:
    """Nodes of the longest path to an end, the last first, and the slots it takes in them; returns how many.

    Of a register at the end the slot is -1.
    """
    length = 0
    net, edge = graph.end_net[end], graph.end_edge[end]
    if graph.end_node[end] >= 0:
        path[length], slots[length] = graph.end_node[end], -1
        length += 1
    while graph.driver[net] >= 0 and length < len(path):
        node = graph.driver[net]
        latest, source, cause, slot = -np.inf, -1, 0, -1
        if graph.meet[node]:
            for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
                if state.arrival[graph.pin_net[pin], edge] > latest:
                    latest, source, cause = state.arrival[graph.pin_net[pin], edge], graph.pin_net[pin], edge
        else:
            kind = state.kind[node]
            for arc in range(kinds.first[kind], kinds.first[kind + 1]):
                target = kinds.target[arc]
                if graph.out_net[graph.out_first[node] + target // 2] != net or target % 2 != edge:
                    continue
                before = graph.pin_net[graph.pin_first[node] + kinds.source[arc] // 2]
                its = kinds.source[arc] % 2
                begun = start(graph, kinds, state, arc, before, its)
                if begun == -np.inf:
                    continue
                delay = lookup(kinds, kinds.delay[arc], state.slew[before, its], state.load[net, edge])
                if begun + delay > latest:
                    latest, source, cause = begun + delay, before, its
                    slot = kinds.slot[arc]
            path[length], slots[length] = node, slot
            length += 1
        if source < 0:
            break
        net, edge = source, cause
    return length


@inner
def _through(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    node: int,
    kind: int,
    slot: int,
    faster: float,
    more: float,
) -> tuple[float, float]:
    """Delay and slew, ns, of a slot of a node of some kind, with ``more`` fF behind and its slew less by ``faster``."""
    worst, slowest = 0.0, 0.0
    for arc in range(kinds.first[kind], kinds.first[kind + 1]):
        if kinds.slot[arc] == slot:
            target, source = kinds.target[arc], kinds.source[arc]
            net = graph.out_net[graph.out_first[node] + target // 2]
            before = graph.pin_net[graph.pin_first[node] + source // 2]
            delay, slew = lookup_pair(
                kinds, arc, state.slew[before, source % 2] - faster, state.load[net, target % 2] + more
            )
            worst, slowest = max(worst, delay), max(slowest, slew)
    return worst, slowest


@compiled
def _promises(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    bounds: np.ndarray,
    cost: np.ndarray,
    path: np.ndarray,
    slots: np.ndarray,
) -> np.ndarray:
    """By how much a path is shorter for its cost, by place in it and by kind less the present one, from -2 up to 2.

    That is with slews as they are but for that of the node itself. Minus infinity where there is no such kind.
    """
    promise = np.full((len(path), 5), -np.inf)
    for place in range(len(path)):
        node = path[place]
        first, old = bounds[node, 0], state.kind[node]
        allowed = overloaded(graph, kinds, state, node, old)
        for kind in range(max(first, old - 2), min(bounds[node, 1], old + 3)):
            if kind == old or overloaded(graph, kinds, state, node, kind) > allowed:
                continue
            gain = 0.0
            if slots[place] >= 0:
                was, slow = _through(graph, kinds, state, node, old, slots[place], 0.0, 0.0)
                now, quick = _through(graph, kinds, state, node, kind, slots[place], 0.0, 0.0)
                gain += was - now
                if place > 0 and slots[place - 1] >= 0:
                    after, kept = path[place - 1], state.kind[path[place - 1]]
                    was, _ = _through(graph, kinds, state, after, kept, slots[place - 1], 0.0, 0.0)
                    now, _ = _through(graph, kinds, state, after, kept, slots[place - 1], slow - quick, 0.0)
                    gain += was - now
            if place + 1 < len(path):
                before, kept = path[place + 1], state.kind[path[place + 1]]
                more = 0.0
                for pin in range(graph.pin_first[node], graph.pin_first[node + 1]):
                    column = pin - graph.pin_first[node]
                    for at in range(graph.load_first[pin], graph.load_first[pin + 1]):
                        if graph.driver[graph.load_net[at]] == before:
                            change = kinds.capacitance[kind, column, 0] - kinds.capacitance[old, column, 0]
                            more += graph.load_count[at] * change
                was, _ = _through(graph, kinds, state, before, kept, slots[place + 1], 0.0, 0.0)
                now, _ = _through(graph, kinds, state, before, kept, slots[place + 1], 0.0, more)
                gain += was - now
            dearer = cost[node, kind - first] - cost[node, old - first]
            promise[place, kind - old + 2] = gain / dearer if dearer > 1e-9 and gain > 0 else 1e9 * gain
    return promise


@inlined
def _best_move(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    bounds: np.ndarray,
    cost: np.ndarray,
    period: float,
    path: np.ndarray,
    slots: np.ndarray,
    queued: np.ndarray,
    room: np.ndarray,
    kept: StateArrays,
    vain: np.ndarray,
    made: int,
) -> tuple[int, int]:
    """The node of a path and the kind for it that shorten what is late by most for their cost; -1 if none does.

    ``vain`` has, by node and by kind as `_promises` does, how many moves had been ``made`` when it last helped nothing:
    many paths have nodes in common, and it need not be tried for each.
    """
    latest, total = _violation(state, period)
    _copy(state, kept)
    best_node, best_kind, best = np.int64(-1), np.int64(-1), 0.0
    promise = _promises(graph, kinds, state, bounds, cost, path, slots).ravel()
    for candidate in np.argsort(-promise)[:_TRIED]:
        if promise[candidate] == -np.inf:
            break
        node = path[candidate // 5]
        if vain[node, candidate % 5] == made:
            continue
        first, old = bounds[node, 0], state.kind[node]
        kind = old + candidate % 5 - 2
        before = overloaded_before(graph, kinds, state, node)
        swap(graph, kinds, state, node, kind)
        count, _ = update(graph, kinds, state, node, queued, 0.0, room)
        now, sum_now = _violation(state, period)
        gain = total - sum_now
        lighter = overloaded_before(graph, kinds, state, node) <= before
        score = 0.0
        if lighter and gain > 1e-9 and now <= latest + 1e-12:
            more = cost[node, kind - first] - cost[node, old - first]
            # What costs nothing is best, by its gain.
            score = gain / more if more > 1e-9 else 1e9 * (1 + gain)
        if score > best:
            best_node, best_kind, best = node, kind, score
        if score <= 0.0:
            vain[node, candidate % 5] = made
        _restore(graph, state, kept, node, room[0], count)
    return best_node, best_kind


@compiled
def repair(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    bounds: np.ndarray,
    cost: np.ndarray,
    period: float,
    moves: int,
    kept: StateArrays,
) -> int:
    """Resize cells on the latest path, each time the one that helps most for its cost.

    An end that nothing helps is left, and the next one is looked at: the latest may be late for what is no path at all,
    where copies of a cell are one node. It ends where all others are in time.

    Parameters
    ----------
    bounds, cost : numpy.ndarray
        As for `hwgen.closure.relaxation.resize`.
    period : float
        ns.
    moves : int
        The most that are looked for.
    kept : StateArrays
        Room for a copy of the state.

    Returns
    -------
    int
        Moves made.
    """
    queued, room = np.zeros(len(state.kind), np.bool_), np.empty((2, len(state.kind)), np.int64)
    path, slots = np.empty(_LONGEST_PATH, np.int64), np.empty(_LONGEST_PATH, np.int64)
    left = np.zeros(len(state.end), np.bool_)
    vain = np.full((len(state.kind), 5), -1, np.int64)
    made = tried = 0
    while tried < moves:
        tried += 1
        worst = -1
        for end in range(len(state.end)):
            if state.end[end] > period and not left[end] and (worst < 0 or state.end[end] > state.end[worst]):
                worst = end
        if worst < 0:
            break
        length = _trace(graph, kinds, state, worst, path, slots)
        node, kind = _best_move(
            graph, kinds, state, bounds, cost, period, path[:length], slots[:length], queued, room, kept, vain, made
        )
        if node < 0:
            left[worst] = True
            continue
        swap(graph, kinds, state, node, kind)
        update(graph, kinds, state, node, queued, 0.0, room)
        made += 1
    return made


@inner
def _slower(graph: GraphArrays, kinds: KindArrays, state: StateArrays, node: int, kind: int) -> bool:
    """Whether a kind is later at some output of a node than is required there, its own inputs as they are."""
    for arc in range(kinds.first[kind], kinds.first[kind + 1]):
        target, source = kinds.target[arc], kinds.source[arc]
        net, edge = graph.out_net[graph.out_first[node] + target // 2], target % 2
        before, cause = graph.pin_net[graph.pin_first[node] + source // 2], source % 2
        begun = start(graph, kinds, state, arc, before, cause)
        if begun == -np.inf or state.required[net, edge] == np.inf:
            continue
        delay = lookup(kinds, kinds.delay[arc], state.slew[before, cause], state.load[net, edge])
        wire = 1e-3 * graph.resistance[net] * (state.load[net, edge] - 0.5 * graph.capacitance[net])
        if begun + delay + wire > state.required[net, edge] + 0.02 * delay:
            return True
    return False


@compiled
def recover(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    bounds: np.ndarray,
    cost: np.ndarray,
    period: float,
) -> int:
    """Make cells cheaper where no end becomes late, or all together later than they are; required times are up to date.

    Returns
    -------
    int
        Cells that changed.
    """
    nodes = len(state.kind)
    queued, room = np.zeros(nodes, np.bool_), np.empty((2, nodes), np.int64)
    saving = np.zeros(nodes)
    for node in range(nodes):
        first, old = bounds[node, 0], state.kind[node]
        for kind in range(first, bounds[node, 1]):
            saving[node] = max(saving[node], cost[node, old - first] - cost[node, kind - first])
    latest, total = _violation(state, period)
    made = 0
    for node in np.argsort(-saving):
        if saving[node] <= 0:
            break
        first, last, old = bounds[node, 0], bounds[node, 1], state.kind[node]
        best = np.int64(-1)
        allowed_load = overloaded(graph, kinds, state, node, old)
        for kind in range(first, last):
            cheaper = cost[node, kind - first] < (cost[node, old - first] if best < 0 else cost[node, best - first])
            if not cheaper or overloaded(graph, kinds, state, node, kind) > allowed_load:
                continue
            if not _slower(graph, kinds, state, node, kind):
                best = kind
        if best < 0:
            continue
        before = overloaded_before(graph, kinds, state, node)
        swap(graph, kinds, state, node, best)
        # Ends that it does not reach are not later than they were.
        _, reached = update(graph, kinds, state, node, queued, 0.0, room)
        later = reached > max(latest, period) + 1e-12
        if total > 0.0 and not later:
            _, now = _violation(state, period)
            later = now > total + 1e-12
        if later or overloaded_before(graph, kinds, state, node) > before:
            swap(graph, kinds, state, node, old)
            update(graph, kinds, state, node, queued, 0.0, room)
        else:
            made += 1
    return made
