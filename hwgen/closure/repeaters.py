"""Repeaters: buffers along the critical nets between the blocks of a placed design, where their sinks are.

Each net gets the tree with the latest required time at its driver, by dynamic programming from the sinks up its Steiner
tree (van Ginneken, ISCAS 1990): at every branch, and along every long edge, a buffer of some drive may be put in. A
buffer's delay is taken to be linear in its load, a wire's that of Elmore.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hwgen.closure.buffering import pins_required, through
from hwgen.layout import Layout
from hwgen.layout.steiner import steiner_tree
from hwgen.layout.technology import Technology
from hwgen.netlist.bodies import copied_cells, highest_bit
from hwgen.netlist.fanout import TREE, tree_buffer
from hwgen.timing import kernels
from hwgen.timing.compiled import Compiled

__all__ = ["Load", "Repeater", "best_tree", "insert_repeaters"]

# Of the clock: nets with less slack than this are looked at; a tree must gain so much, and each buffer in it a little.
_CRITICAL = 0.05
_WORTH = 0.005
_EACH = 0.001
_NAME = "$repeater$"
_NS_PER_PS = 1e-3
_LONGEST = 12


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


class _Way(NamedTuple):
    """One way to build what hangs at a point: its load, when it must be there, and how it is made.

    ``made`` is the number of a load, a pair of such things, or a buffer as a list: repeater, place and ``made``.
    """

    capacitance: float
    required: float
    made: Any


def best_tree(
    loads: Sequence[Load],
    source: tuple[float, float],
    slope: float,
    repeaters: Sequence[Repeater],
    technology: Technology,
    each: float,
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

    Returns
    -------
    float
        ns gained over the net without any.
    list
        What the driver drives: numbers of loads, and ``(repeater, (x, y), list)`` of what that drives in turn.
    """
    x, y, parent = steiner_tree(
        np.array([source[0], *(load.x for load in loads)]), np.array([source[1], *(load.y for load in loads)])
    )
    length = np.abs(x - x[parent]) + np.abs(y - y[parent])
    length[0] = 0.0
    total = float(length.sum()) * technology.detour
    ohms = technology.long_resistance if total > technology.long_from else technology.resistance
    per_um = technology.detour * technology.capacitance, technology.detour * ohms * _NS_PER_PS
    # A good distance between repeaters, and points to put them at three times as dense.
    apart = min((2 * (it.delay + it.slope * it.capacitance) for it in repeaters), default=0.0)
    step = (apart / max(per_um[0] * per_um[1], 1e-12)) ** 0.5 / 3
    children: list[list[int]] = [[] for _ in parent]
    for child, above in enumerate(parent.tolist()):
        if above >= 0:
            children[above].append(child)

    def at(point: int, buffers: bool) -> list[_Way]:
        """Ways to build what hangs at a point of the tree."""
        ways = [_Way(0.0, np.inf, None)]
        if 0 < point <= len(loads):
            ways = [_Way(loads[point - 1].capacitance, loads[point - 1].required, point - 1)]
        for child in children[point]:
            ways = _joined(ways, along(child, buffers))
        return _buffered(ways, repeaters, each, (float(x[point]), float(y[point]))) if buffers and point else ways

    def along(child: int, buffers: bool) -> list[_Way]:
        """The same with the edge above a point."""
        ways = at(child, buffers)
        pieces = min(max(1, int(np.ceil(length[child] / step))), _LONGEST)
        piece = float(length[child]) / pieces
        above = parent[child]
        for number in range(pieces):
            ways = [
                _Way(
                    way.capacitance + per_um[0] * piece,
                    way.required - per_um[1] * piece * (0.5 * per_um[0] * piece + way.capacitance),
                    way.made,
                )
                for way in ways
            ]
            if buffers and number < pieces - 1:
                up = (number + 1) / pieces
                at_x, at_y = (float(place[child] + up * (place[above] - place[child])) for place in (x, y))
                ways = _buffered(ways, repeaters, each, (at_x, at_y))
        return ways

    (plain,) = at(0, buffers=False)
    best = max(at(0, buffers=True), key=lambda way: way.required - slope * way.capacitance)
    gain = best.required - slope * best.capacitance - (plain.required - slope * plain.capacitance)
    return gain, _unfolded(best.made)


def _buffered(ways: list[_Way], repeaters: Sequence[Repeater], each: float, place: tuple[float, float]) -> list[_Way]:
    """Ways with those through a buffer, the good ones."""
    behind = []
    for it in repeaters:
        best = max(ways, key=lambda way: way.required - it.slope * way.capacitance)
        required = best.required - it.slope * best.capacitance - it.delay - each
        behind.append(_Way(it.capacitance, required, [it, place, best.made]))
    return _good([*ways, *behind])


def _good(ways: list[_Way]) -> list[_Way]:
    """Those that no other beats in load and required time."""
    found: list[_Way] = []
    for way in sorted(ways, key=lambda way: (way.capacitance, -way.required)):
        if not found or way.required > found[-1].required:
            found.append(way)
    return found


def _joined(ones: list[_Way], others: list[_Way]) -> list[_Way]:
    """Ways to build two branches."""
    return _good(
        [
            _Way(one.capacitance + other.capacitance, min(one.required, other.required), (one.made, other.made))
            for one in ones
            for other in others
        ]
    )


def _unfolded(made: Any) -> list[Any]:
    """What a way is made of, as `best_tree` gives it."""
    if made is None:
        return []
    if isinstance(made, tuple):
        return [*_unfolded(made[0]), *_unfolded(made[1])]
    if isinstance(made, list):
        return [(made[0], made[1], _unfolded(made[2]))]
    return [made]


def insert_repeaters(
    modules: Mapping[str, dict[str, Any]], layout: Layout, compiled: Compiled, period: float
) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[float, float]]]:
    """Build the critical nets of the top module anew, with repeaters.

    The buffers that are there by fanout go.

    Parameters
    ----------
    modules : mapping of str to dict
        Module bodies as in Yosys' ``write_json``; left as they are.
    layout : Layout
        Of the netlist that they make.
    compiled : Compiled
        That netlist, folded by `hwgen.closure.classes.classes`.
    period : float
        ns.

    Returns
    -------
    dict, dict
        The modules with repeaters, and where these are to be: centres by name, um.
    """
    netlist = layout.netlist
    buffer = tree_buffer(netlist.library)
    if buffer is None or buffer.name not in compiled.kinds.number:
        return dict(modules), {}
    body = modules[netlist.top]
    cells, highest = copied_cells(body), highest_bit(body)
    nets = _Nets(layout, compiled, period, cells)
    repeaters = _repeaters(compiled, buffer.name)
    places: dict[str, tuple[float, float]] = {}

    def put(net: int, tree: list[Any], units: list[_Unit]) -> None:
        nonlocal highest
        for each in tree:
            if isinstance(each, tuple):
                highest += 1
                name, pins = f"{_NAME}{highest}", {buffer.inputs[0]: [net], buffer.outputs[0]: [highest]}
                cells[name], places[name] = {"type": each[0].name, "connections": pins}, each[1]
                put(highest, each[2], units)
            else:
                for bits, place in units[each].places:
                    bits[place] = net

    for bit in nets.critical():
        units, old = nets.units(bit)
        loads = [unit.load for unit in units]
        gain, tree = best_tree(loads, nets.source(bit), nets.slope(bit), repeaters, layout.technology, _EACH * period)
        if gain > _WORTH * period or old:
            for name in old:
                del cells[name]
            put(bit, tree, units)
    return {**modules, netlist.top: {**body, "cells": cells}}, places


def _repeaters(compiled: Compiled, name: str) -> list[Repeater]:
    """The buffers of a family, in every drive, their delays at a slew that they make themselves."""
    kinds, found = compiled.kinds, []
    number = kinds.family[kinds.number[name]]
    for kind in range(*kinds.bounds[number : number + 2].tolist()):
        capacitance = float(kinds.arrays.capacitance[kind].max())
        loads = 2 * capacitance, 8 * capacitance
        slew = compiled.assumed.input_slew
        delays = [through(kinds.arrays, kind, slew, load) for load in loads]
        slope = (delays[1] - delays[0]) / (loads[1] - loads[0])
        found.append(Repeater(kinds.cells[kind].name, capacitance, delays[0] - slope * loads[0], slope))
    return found


@dataclass(frozen=True)
class _Unit:
    """What a net leads to in one cell or block of the top module.

    Attributes
    ----------
    places : list of (list, int)
        Where the number of the net stands in the body.
    load : Load
    """

    places: list[tuple[list[Any], int]]
    load: Load


class _Nets:
    """The nets of a top module, their sinks and how critical they are."""

    def __init__(self, layout: Layout, compiled: Compiled, period: float, cells: Mapping[str, Any]):
        self.layout, self.compiled, self.period, self.cells = layout, compiled, period, cells
        self.netlist = netlist = layout.netlist
        kernels.backward(compiled.graph, compiled.kinds.arrays, compiled.state, period)
        self.required = pins_required(compiled.graph, compiled.kinds.arrays, compiled.state, period).min(axis=1)
        self.number = {name: number for number, name in enumerate(netlist.names.instances()[0][2])}
        # Which block of the top module a cell is in, by the name of the block's instance.
        self.block = {
            instance.path[:-1]: slice(instance.first, instance.first + instance.whole)
            for instance in netlist.instances
            if instance.path.count(".") == 1
        }
        self.sinks: dict[int, list[tuple[str, str, int]]] = {}
        self.behind: dict[int, str] = {}
        library = netlist.library.cells
        for name, cell in cells.items():
            kind = library.get(cell["type"])
            for pin, bits in cell["connections"].items():
                if (cell["port_directions"][pin] if kind is None else kind.pins[pin].direction) == "output":
                    continue
                for place, bit in enumerate(bits):
                    if isinstance(bit, int):
                        self.sinks.setdefault(bit, []).append((name, pin, place))
            if name.startswith((TREE, _NAME)):
                self.behind[self._output(name)] = name
        self.flat = netlist.names.top_nets()
        self._pins()

    def _pins(self) -> None:
        """All input pins of the netlist, by net."""
        graph, kinds, state = self.compiled.graph, self.compiled.kinds, self.compiled.state
        net, cell, place, load = [], [], [], []
        for group in self.netlist.groups:
            nodes = self.compiled.node_of[group.cells]
            columns = kinds.inputs[kinds.family[kinds.number[group.cell.name]]]
            for pin, nets in zip(group.cell.inputs, group.inputs.T, strict=True):
                column = columns.index(pin)
                net.append(nets)
                cell.append(group.cells)
                place.append(graph.pin_first[nodes] + column)
                load.append(kinds.arrays.capacitance[state.kind[nodes], column].max(axis=1))
        order = np.argsort(np.concatenate(net), kind="stable")
        self.pin_net = np.concatenate(net)[order]
        self.pin_cell, self.pin, self.pin_load = (np.concatenate(found)[order] for found in (cell, place, load))

    def critical(self) -> list[int]:
        """The bits of the top module whose trees are to be looked at: those at which trees begin."""
        state = self.compiled.state
        bits = Counter(self.flat.values())
        # Where a wire runs through a block, a net has several bits, and a tree could not be told from what it feeds.
        left = {*self.netlist.clock_nets.tolist(), *(net for net, count in bits.items() if count > 1)}
        found = []
        for bit in self.sinks:
            nets = [self.flat[part] for part in self._tree(bit)]
            if bit in self.behind or not left.isdisjoint(nets):
                continue
            worst = np.inf
            for net in self.compiled.net_of[nets].tolist():
                if net >= 0:
                    worst = min(worst, float((state.required[net] - state.arrival[net]).min()))
            if worst < _CRITICAL * self.period:
                found.append(bit)
        return found

    def _tree(self, bit: int) -> list[int]:
        """A bit, and those behind the buffers that it leads to."""
        found = [bit]
        for part in found:
            for name, _, _ in self.sinks.get(part, ()):
                if name.startswith((TREE, _NAME)):
                    found.append(self._output(name))
        return found

    def _output(self, name: str) -> int:
        """The bit that a buffer drives."""
        cell = self.cells[name]
        bit: int = cell["connections"][self.netlist.library.cells[cell["type"]].outputs[0]][0]
        return bit

    def units(self, bit: int) -> tuple[list[_Unit], list[str]]:
        """What a bit leads to in the end, and the buffers on the way."""
        tree = self._tree(bit)
        old = [self.behind[part] for part in tree[1:]]
        found: dict[str, list[tuple[list[Any], int]]] = {}
        pins: dict[str, list[int]] = {}
        for part in tree:
            net = self.flat[part]
            range_ = slice(*np.searchsorted(self.pin_net, [net, net + 1]).tolist())
            own = self.pin_cell[range_]
            for name, pin, place in self.sinks.get(part, ()):
                if name in old:
                    continue
                found.setdefault(name, []).append((self.cells[name]["connections"][pin], place))
                block = self.block.get(name, slice(self.number.get(name, -1), self.number.get(name, -1) + 1))
                inside = np.flatnonzero((own >= block.start) & (own < block.stop)) + range_.start
                pins[name] = sorted({*pins.get(name, ()), *inside.tolist()})
        for name, places in found.items():
            if not pins[name]:  # nothing inside reads it
                for bits, place in places:
                    bits[place] = bit
        return [_Unit(places, self._load(pins[name])) for name, places in found.items() if pins[name]], old

    def _load(self, pins: Sequence[int]) -> Load:
        cells, width = self.pin_cell[pins], self.layout.width
        return Load(
            float((self.layout.x[cells] + width[cells] / 2).mean()),
            float(self.layout.y[cells].mean()) + self.layout.rows.height / 2,
            float(self.pin_load[pins].sum()),
            float(self.required[self.pin[pins]].min()),
        )

    def source(self, bit: int) -> tuple[float, float]:
        """Where a bit's driver is."""
        layout, net = self.layout, self.flat[bit]
        first = layout.pins.start[net]
        return float(layout.pin_places[0][first]), float(layout.pin_places[1][first])

    def slope(self, bit: int) -> float:
        """Ns per fF of a bit's driver; 0 for an input port."""
        cell = int(self.netlist.driver[self.flat[bit]])
        if cell < 0:
            return 0.0
        kinds, state = self.compiled.kinds, self.compiled.state
        net = self.compiled.net_of[self.flat[bit]]
        kind, load = state.kind[self.compiled.node_of[cell]], float(state.load[net].max())
        slew = self.compiled.assumed.input_slew
        low, high = (through(kinds.arrays, kind, slew, load * factor) for factor in (0.5, 1.0))
        return max(high - low, 0.0) / (0.5 * load) if load else 0.0
