"""Repeaters: buffers along the critical nets between the blocks of a placed design, where their sinks are.

Each net gets the tree with the latest required time at its driver, see `hwgen.closure.trees`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwgen.closure.buffering import pins_required, through
from hwgen.closure.trees import Load, Repeater, best_tree
from hwgen.layout import Layout
from hwgen.netlist.bodies import copied_cells, highest_bit
from hwgen.netlist.fanout import TREE, tree_buffer
from hwgen.timing import kernels
from hwgen.timing.compiled import Compiled

__all__ = ["insert_repeaters"]

# Of the clock: nets with less slack than this are looked at; a tree must gain so much, and each buffer in it a little.
_CRITICAL = 0.05
_WORTH = 0.005
_EACH = 0.001
_NAME = "$repeater$"


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
    # A port's net goes by its name as well, and keeps it.
    ports = {name: {**port, "bits": [*port["bits"]]} for name, port in body["ports"].items()}
    named = {name: {**body["netnames"][name], "bits": port["bits"]} for name, port in ports.items()}
    nets = _Nets(layout, compiled, period, cells, ports)
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
        slope, each = nets.slope(bit), _EACH * period
        # A tree that leaves its net critical is not good enough.
        enough = nets.begins(bit, slope) + _CRITICAL * period
        gain, tree = best_tree(loads, nets.source(bit), slope, repeaters, layout.technology, each, enough)
        if gain > _WORTH * period or old:
            for name in old:
                del cells[name]
            put(bit, tree, units)
    changed = {"cells": cells, "ports": ports, "netnames": {**body["netnames"], **named}}
    return {**modules, netlist.top: {**body, **changed}}, places


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


# Of a cell or block of the top module, or of a port with a place in it.
_Name = str | tuple[str, int]
# Cells or ports of a body by name.
_Parts = Mapping[str, Any]


@dataclass(frozen=True)
class _Unit:
    """What a net leads to in one cell or block of the top module, or at a bit of an output port.

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

    def __init__(self, layout: Layout, compiled: Compiled, period: float, cells: _Parts, ports: _Parts):
        self.layout, self.compiled, self.period, self.cells = layout, compiled, period, cells
        self.netlist = netlist = layout.netlist
        kernels.backward(compiled.graph, compiled.kinds.arrays, compiled.state, period)
        pins = pins_required(compiled.graph, compiled.kinds.arrays, compiled.state, period).min(axis=1)
        # The last is that of output ports.
        self.required = np.append(pins, period)
        # Cells and blocks of the top module by name, and which of them each cell of the netlist is or is in.
        self.number: dict[_Name, int] = {name: number for number, name in enumerate(netlist.names.instances()[0][2])}
        self.owner = np.arange(netlist.n_cells + len(layout.port_x))
        for instance in netlist.instances:
            if instance.path.count(".") == 1:
                self.number[instance.path[:-1]] = instance.first
                self.owner[instance.first : instance.first + instance.whole] = instance.first
        # By bit: what it leads to, by name or as a port and a place in it, and where the number of the bit stands.
        self.sinks: dict[int, list[tuple[_Name, list[Any], int]]] = {}
        self.behind: dict[int, str] = {}
        library = netlist.library.cells
        for name, cell in cells.items():
            kind = library.get(cell["type"])
            for pin, bits in cell["connections"].items():
                if (cell["port_directions"][pin] if kind is None else kind.pins[pin].direction) == "output":
                    continue
                for place, bit in enumerate(bits):
                    if isinstance(bit, int):
                        self.sinks.setdefault(bit, []).append((name, bits, place))
            if name.startswith((TREE, _NAME)):
                self.behind[self._output(name)] = name
        self.flat = netlist.names.top_nets()
        # Bits of ports come behind the cells.
        self.x = np.append(layout.x + layout.width / 2, layout.port_x)
        self.y = np.append(layout.y + layout.rows.height / 2, layout.port_y)
        self._pins(ports)

    def _pins(self, ports: _Parts) -> None:
        """Input pins of the netlist and bits of its output ports, by net; bits that lead elsewhere, too, are sinks."""
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
        number = self.netlist.n_cells
        for name, port in self.netlist.ports.items():
            if port.direction == "output":
                net.append(port.nets)
                cell.append(number + np.arange(len(port.nets)))
                place.append(np.full(len(port.nets), len(self.required) - 1))
                load.append(np.full(len(port.nets), self.compiled.assumed.output_load))
                bits = ports[name]["bits"]
                for at, bit in enumerate(bits):
                    if bit in self.sinks or bit in self.behind:
                        self.number[name, at] = number + at
                        self.sinks.setdefault(bit, []).append(((name, at), bits, at))
            number += len(port.nets)
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
                if isinstance(name, str) and name.startswith((TREE, _NAME)):
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
        found: dict[_Name, list[tuple[list[Any], int]]] = {}
        for part in tree:
            for name, bits, place in self.sinks.get(part, ()):
                if name not in old:
                    found.setdefault(name, []).append((bits, place))
        return self._loaded(bit, tree, found), old

    def _loaded(self, bit: int, tree: list[int], found: Mapping[_Name, list[tuple[list[Any], int]]]) -> list[_Unit]:
        """What a tree of bits leads to, given places by name."""
        nets = [self.flat[part] for part in tree]
        first, last = np.searchsorted(self.pin_net, nets), np.searchsorted(self.pin_net, nets, side="right")
        pins = np.concatenate([np.arange(*ends) for ends in zip(first, last, strict=True)])
        cells = self.pin_cell[pins]
        owners, unit = np.unique(self.owner[cells], return_inverse=True)
        count = np.bincount(unit)
        x, y, load = (np.bincount(unit, values) for values in (self.x[cells], self.y[cells], self.pin_load[pins]))
        required = np.full(len(owners), np.inf)
        np.minimum.at(required, unit, self.required[self.pin[pins]])
        at = dict(zip(owners.tolist(), range(len(owners)), strict=True))
        units = []
        for name, places in found.items():
            here = at.get(self.number[name])
            if here is None:  # nothing inside reads it
                for bits, place in places:
                    bits[place] = bit
                continue
            middle = float(x[here] / count[here]), float(y[here] / count[here])
            units.append(_Unit(places, Load(*middle, float(load[here]), float(required[here]))))
        return units

    def source(self, bit: int) -> tuple[float, float]:
        """Where a bit's driver is."""
        layout, net = self.layout, self.flat[bit]
        first = layout.pins.start[net]
        return float(layout.pin_places[0][first]), float(layout.pin_places[1][first])

    def begins(self, bit: int, slope: float) -> float:
        """When a bit would switch without a load, ns."""
        net = self.compiled.net_of[self.flat[bit]]
        if net < 0:
            return 0.0
        state = self.compiled.state
        return float((state.arrival[net] - slope * state.load[net]).max())

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
