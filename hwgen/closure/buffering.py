"""Buffers before sinks that can wait, on nets where others cannot; and behind drivers too small for what they drive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hwgen.closure.classes import classes
from hwgen.jit import borrowing
from hwgen.jit import compiled as compiled_by_numba
from hwgen.netlist.bodies import copied_cells, highest_bit
from hwgen.netlist.fanout import tree_buffer
from hwgen.netlist.graph import Netlist
from hwgen.timing import kernels
from hwgen.timing.compiled import Compiled
from hwgen.timing.kernels import GraphArrays, StateArrays, lookup, setup, start, wire_delay
from hwgen.timing.kinds import KindArrays

__all__ = ["insert_buffers", "pins_required", "through"]

# Of the clock: a buffer must gain at least this much.
_WORTH = 0.002
# What waits must be able to wait for so many times the buffer's delay: sizes change afterwards.
_PATIENCE = 1.5


@compiled_by_numba
def pins_required(graph: GraphArrays, kinds: KindArrays, state: StateArrays, period: float) -> np.ndarray:
    """Required time of each pin and edge, ns, shape (pins, 2); those of the nets are up to date."""
    required = np.full((len(graph.pin_net), 2), np.inf)
    for end in range(len(graph.end_net)):
        node = graph.end_node[end]
        if node >= 0:
            check = kinds.check_first[state.kind[node]] + graph.end_check[end]
            pin = graph.pin_first[node] + kinds.check_source[check] // 2
            edge = graph.end_edge[end]
            required[pin, edge] = min(required[pin, edge], period - setup(graph, kinds, state, end))
    for node in range(len(state.kind)):
        if graph.meet[node]:
            continue
        kind = state.kind[node]
        for arc in range(kinds.first[kind], kinds.first[kind + 1]):
            target, source = kinds.target[arc], kinds.source[arc]
            net, edge = graph.out_net[graph.out_first[node] + target // 2], target % 2
            pin, cause = graph.pin_first[node] + source // 2, source % 2
            before = graph.pin_net[pin]
            if state.required[net, edge] == np.inf or state.arrival[before, cause] == -np.inf:
                continue
            delay = lookup(kinds, kinds.delay[arc], state.slew[before, cause], state.load[net, edge])
            due = state.required[net, edge] - wire_delay(graph, state, net, edge) - delay
            required[pin, cause] = min(required[pin, cause], due)
    return required


@borrowing
def _gain(
    graph: GraphArrays, kinds: KindArrays, state: StateArrays, node: int, net: int, edge: int, less: float
) -> float:
    """By how much a net's edge is reached earlier with ``less`` fF on it, ns."""
    kind = state.kind[node]
    latest = -np.inf
    for arc in range(kinds.first[kind], kinds.first[kind + 1]):
        target, source = kinds.target[arc], kinds.source[arc]
        if graph.out_net[graph.out_first[node] + target // 2] != net or target % 2 != edge:
            continue
        before, cause = graph.pin_net[graph.pin_first[node] + source // 2], source % 2
        begun = start(graph, kinds, state, arc, before, cause)
        if begun > -np.inf:
            load = state.load[net, edge] - less
            delay = lookup(kinds, kinds.delay[arc], state.slew[before, cause], load)
            latest = max(latest, begun + delay)
    return state.arrival[net, edge] - wire_delay(graph, state, net, edge) - latest


@borrowing
def through(kinds: KindArrays, kind: int, slew: float, load: float) -> float:
    """The slowest arc of a kind, ns."""
    slowest = 0.0
    for arc in range(kinds.first[kind], kinds.first[kind + 1]):
        slowest = max(slowest, lookup(kinds, kinds.delay[arc], slew, load))
    return slowest


@borrowing
def _relief(
    graph: GraphArrays,
    kinds: KindArrays,
    state: StateArrays,
    node: int,
    net: int,
    edge: int,
    first: int,
    last: int,
    slew: float,
) -> tuple[float, int]:
    """By how much a net is earlier behind the best buffer, ns, and which that is, from ``first`` to before ``last``.

    What its sinks gain by its slew comes on top.
    """
    load = state.load[net, edge]
    most, best = -np.inf, -1
    for kind in range(first, last):
        entry = 0.0
        for column in range(kinds.capacitance.shape[1]):
            entry = max(entry, kinds.capacitance[kind, column, 0], kinds.capacitance[kind, column, 1])
        gain = _gain(graph, kinds, state, node, net, edge, load - entry) - through(kinds, kind, slew, load)
        if gain >= most:
            most, best = gain, kind
    return most, best


class _Sink(NamedTuple):
    """A pin of a cell in a module, on a net of the same module."""

    bits: list[Any]
    slack: float
    capacitance: float


def insert_buffers(
    modules: Mapping[str, dict[str, Any]], netlist: Netlist, compiled: Compiled, period: float
) -> tuple[dict[str, dict[str, Any]], int]:
    """Put buffers on late nets, where that gains time.

    A driver that is slow for its load hands all of it to a buffer. Else the sinks that can wait go behind one: a net is
    looked at in the module of its driver, and what it drives through ports stays with the driver.

    Parameters
    ----------
    modules : mapping of str to dict
        Module bodies as in Yosys' ``write_json``; left as they are.
    netlist : Netlist
        Of them.
    compiled : Compiled
        The netlist, folded by `hwgen.closure.classes.classes`.
    period : float
        ns.

    Returns
    -------
    dict, int
        The modules with buffers, and how many these are.
    """
    buffer = tree_buffer(netlist.library)
    if buffer is None or buffer.name not in compiled.kinds.number:
        return dict(modules), 0
    finder = _Finder(netlist, compiled, period, compiled.kinds.number[buffer.name])
    result, count = {}, 0
    for name, body in modules.items():
        cells, highest = copied_cells(body), highest_bit(body)
        for driven, kind in finder.weak(name, cells):
            highest += 1
            count += 1
            pins = {buffer.inputs[0]: [highest], buffer.outputs[0]: [driven[0]]}
            driven[0] = highest
            cells[f"$closure${highest}"] = {"type": compiled.kinds.cells[kind].name, "connections": pins}
        for net, waiting in finder.splits(name, cells):
            highest += 1
            count += 1
            for sink in waiting:
                sink.bits[0] = highest
            pins = {buffer.inputs[0]: [net], buffer.outputs[0]: [highest]}
            cells[f"$closure${highest}"] = {"type": buffer.name, "connections": pins}
        result[name] = {**body, "cells": cells}
    return result, count


class _Finder:
    """Finds nets that are worth a buffer."""

    def __init__(self, netlist: Netlist, compiled: Compiled, period: float, buffer: int):
        self.netlist, self.compiled, self.period, self.buffer = netlist, compiled, period, buffer
        self.cells = compiled.kinds.arrays
        kernels.backward(compiled.graph, self.cells, compiled.state, period)
        self.required = pins_required(compiled.graph, self.cells, compiled.state, period)
        found = classes(netlist)
        self.node = {
            found.names[found.number[cell]]: node for node, cell in enumerate(compiled.cell_of.tolist()) if cell >= 0
        }
        slack = compiled.state.required - compiled.state.arrival
        self.later = np.argmin(slack, axis=1)
        self.late = slack.min(axis=1) < 0
        self.late[compiled.net_of[netlist.clock_nets]] = False

    def weak(self, module: str, cells: Mapping[str, Any]) -> list[tuple[list[Any], int]]:
        """Outputs that had better drive a buffer alone, and the kind of it."""
        kinds = self.compiled.kinds
        first, end = kinds.bounds[kinds.family[self.buffer] : kinds.family[self.buffer] + 2].tolist()
        found = []
        for name, cell in cells.items():
            node = self.node.get((module, name))
            if node is None or self.netlist.library.cells[cell["type"]].clock_gate is not None:
                continue
            for column, pin in enumerate(kinds.outputs[kinds.family[self.compiled.state.kind[node]]]):
                bits = cell["connections"].get(pin, [])
                late = self._late(node, column)
                if bits and isinstance(bits[0], int) and late is not None:
                    at = node, *late, first, end, self.compiled.assumed.input_slew
                    gain, kind = _relief(self.compiled.graph, self.cells, self.compiled.state, *at)
                    if gain > _WORTH * self.period:
                        found.append((bits, kind))
        return found

    def _late(self, node: int, column: int) -> tuple[int, int] | None:
        """The net at an output and its later edge; None if it is a clock, or not late."""
        net = int(self.compiled.graph.out_net[self.compiled.graph.out_first[node] + column])
        return (net, int(self.later[net])) if self.late[net] else None

    def splits(self, module: str, cells: Mapping[str, Any]) -> list[tuple[int, list[_Sink]]]:
        """Nets of a module, each with the sinks that are to go behind a buffer."""
        library = self.netlist.library
        sinks: dict[int, list[tuple[list[Any], int, int]]] = {}
        for name, cell in cells.items():
            if (module, name) in self.node:
                node = self.node[module, name]
                family = self.compiled.kinds.family[self.compiled.state.kind[node]]
                for column, pin in enumerate(self.compiled.kinds.inputs[family]):
                    bits = cell["connections"][pin]
                    if isinstance(bits[0], int):
                        sinks.setdefault(bits[0], []).append((bits, node, column))
        found = []
        for name, cell in cells.items():
            if (module, name) not in self.node or library.cells[cell["type"]].clock_gate is not None:
                continue
            node = self.node[module, name]
            family = self.compiled.kinds.family[self.compiled.state.kind[node]]
            for column, pin in enumerate(self.compiled.kinds.outputs[family]):
                bits = cell["connections"].get(pin, [])
                if bits and len(sinks.get(bits[0], ())) > 1:
                    waiting = self._waiting(node, column, sinks[bits[0]])
                    if waiting:
                        found.append((bits[0], waiting))
        return found

    def _waiting(self, node: int, column: int, sinks: list[tuple[list[Any], int, int]]) -> list[_Sink]:
        """The sinks of one output that a buffer would serve well enough; none if it is not worth it."""
        graph, state = self.compiled.graph, self.compiled.state
        late = self._late(node, column)
        if late is None:
            return []
        net, edge = late
        least = state.required[net, edge] - state.arrival[net, edge]
        wire = graph.capacitance[net] / max(1, len(sinks))
        known = []
        for bits, at, pin in sinks:
            place = graph.pin_first[at] + pin
            spare = float((self.required[place] - state.arrival[net]).min())
            load = float(self.cells.capacitance[state.kind[at], pin].max())
            known.append(_Sink(bits, spare, load + wire))
        known.sort(key=lambda sink: -sink.slack)
        entry = float(self.cells.capacitance[self.buffer].max()) + wire
        best: tuple[float, int] = (_WORTH * self.period, 0)
        load = 0.0
        for count, sink in enumerate(known[:-1], start=1):
            load += sink.capacitance
            delay = through(self.cells, self.buffer, float(state.slew[net].max()), load)
            if sink.slack - least < _PATIENCE * delay:
                break
            gain = _gain(graph, self.cells, state, node, net, edge, load - entry)
            if gain > best[0]:
                best = gain, count
        return known[: best[1]]
