"""Modules put together into one flat netlist.

Yosys writes one JSON body per module (``write_json``). Modules synthesised one by one, each with its children
as black boxes, are put together here: every instance contributes its module's arrays, shifted, and ports are
joined by merging nets. That keeps linking a matter of array copies, however often a module occurs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.cells.library import Library
from hwgen.errors import InputError
from hwgen.netlist.graph import CellGroup, Instance, Netlist, Port

__all__ = ["link"]

_IGNORED = frozenset(("$scopeinfo",))
_CONSTANTS = {"0": 0, "1": 1, "x": 0}  # an undefined bit may be anything: 0


@dataclass
class _Module:
    """A module's own cells and instances, nets numbered from 2."""

    name: str
    body: Mapping[str, Any]
    local: dict[int, int]
    n_nets: int
    types: np.ndarray
    pins: np.ndarray
    cell_names: list[str]
    instances: list[tuple[str, str, dict[str, list[int]]]]

    @cached_property
    def net_names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for name, entry in self.body.get("netnames", {}).items():
            bits = entry["bits"]
            for i, bit in enumerate(bits):
                number = self.local.get(bit)
                if number is not None and (number not in names or not entry.get("hide_name")):
                    names[number] = name if len(bits) == 1 else f"{name}[{i}]"
        return names


@dataclass
class _Names:
    """Where the cells and nets of each instance begin; names are looked up only when asked for."""

    modules: list[_Module]
    paths: list[str]
    first_cell: list[int]
    first_net: list[int]
    original_net: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    number: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def cell(self, cell: int) -> str:
        i = bisect_right(self.first_cell, cell) - 1
        return self.paths[i] + self.modules[i].cell_names[cell - self.first_cell[i]]

    def instances(self) -> list[tuple[str, int, list[str]]]:
        return [
            (module.name, first, module.cell_names) for module, first in zip(self.modules, self.first_cell, strict=True)
        ]

    def top_nets(self) -> dict[int, int]:
        return {bit: int(self.number[local]) for bit, local in self.modules[0].local.items()}

    def net(self, net: int) -> str:
        if net < 2:
            return f"constant {net}"
        original = int(self.original_net[net])
        i = bisect_right(self.first_net, original) - 1
        local = original - self.first_net[i] + 2
        return self.paths[i] + self.modules[i].net_names.get(local, f"net {local}")

    def hierarchy(self, n_cells: int) -> list[Instance]:
        after = [*self.first_cell[1:], n_cells]
        end = list(after)
        inside: list[int] = []  # the instances that hold the present one, from the top down
        for i, path in enumerate(self.paths):
            while inside and not path.startswith(self.paths[inside[-1]]):
                end[inside.pop()] = self.first_cell[i]
            inside.append(i)
        for i in inside:
            end[i] = n_cells
        return [
            Instance(path, module.name, first, behind - first, last - first)
            for path, module, first, behind, last in zip(
                self.paths, self.modules, self.first_cell, after, end, strict=True
            )
        ]


def _compile(name: str, modules: Mapping[str, Any], library: Library, types: dict[str, int]) -> _Module:
    body = modules[name]
    local: dict[int, int] = {}
    n_nets = 2

    def number(bit: Any) -> int:
        """Local net of a bit of the JSON; -1 for an open one."""
        nonlocal n_nets
        if isinstance(bit, str):
            return _CONSTANTS.get(bit, -1)
        found = local.get(bit)
        if found is None:
            found = local[bit] = n_nets
            n_nets += 1
        return found

    for port in body.get("ports", {}).values():
        for bit in port["bits"]:
            number(bit)
    cell_types: list[int] = []
    pins: list[int] = []
    cell_names: list[str] = []
    instances = []
    for cell_name, entry in body.get("cells", {}).items():
        kind = entry["type"]
        connections = entry.get("connections", {})
        cell = library.cells.get(kind)
        if cell is None:
            if kind in modules:
                wired = {port: [number(bit) for bit in bits] for port, bits in connections.items()}
                instances.append((cell_name, kind, wired))
            elif kind not in _IGNORED:
                raise InputError(
                    f"cell {cell_name} of module {name} has the type {kind}, which is neither in the library "
                    f"{library.name} nor a module; expected a mapped netlist"
                )
            continue
        for pin in cell.inputs:
            bits = connections.get(pin, ())
            net = local.get(bits[0]) if len(bits) == 1 else -1
            if net is None:
                net = number(bits[0])
            if net < 0:
                raise InputError(f"pin {pin} of cell {cell_name} ({kind}) of module {name} is open; expected one net")
            pins.append(net)
        for pin in cell.outputs:
            bits = connections.get(pin, ())
            if len(bits) == 1 and not isinstance(bits[0], str):
                net = local.get(bits[0])
                pins.append(number(bits[0]) if net is None else net)
            elif len(bits) > 1 or (bits and bits[0] in ("0", "1")):
                raise InputError(
                    f"output {pin} of cell {cell_name} ({kind}) of module {name} drives a constant or "
                    "several nets; expected one net"
                )
            else:
                pins.append(n_nets)
                n_nets += 1
        if not connections.keys() <= cell.pins.keys():
            unknown = next(pin for pin in connections if pin not in cell.pins)
            raise InputError(
                f"cell {cell_name} of module {name}: {kind} has no pin {unknown}; "
                f"expected {', '.join(cell.inputs + cell.outputs)}"
            )
        cell_types.append(types.setdefault(kind, len(types)))
        cell_names.append(cell_name)
    return _Module(
        name,
        body,
        local,
        n_nets,
        np.array(cell_types, dtype=np.int64),
        np.array(pins, dtype=np.int64),
        cell_names,
        instances,
    )


def link(modules: Mapping[str, Any], top: str, library: Library) -> Netlist:
    """Flatten a hierarchy of mapped modules.

    Parameters
    ----------
    modules : mapping of str to mapping
        Module bodies as in the ``modules`` object of Yosys' ``write_json``: ``ports``, ``cells``,
        ``netnames``. A cell is a library cell or an instance of another module of this mapping.
    top : str
    library : Library

    Returns
    -------
    Netlist

    Raises
    ------
    InputError
        If a module or cell type is unknown, a module contains itself, a pin is unconnected, a net has no
        driver or several, a cell is a latch or has a three-state output, or the flip-flops do not all rise on
        one clock that is an input port, with no other cells in between than clock gates.
    """
    if top not in modules:
        raise InputError(f"no module {top} in the netlist; expected one of {', '.join(sorted(modules)[:8])}")
    types: dict[str, int] = {}
    compiled: dict[str, _Module] = {}
    names = _Names([], [], [], [])
    blocks: dict[str, int] = {}
    part_types, part_pins, part_blocks = [], [], []
    joined: list[tuple[np.ndarray, np.ndarray]] = []
    n_cells, n_nets = 0, 2
    # (module, instance path, block label, modules above, parent's nets at the ports)
    stack: list[tuple[str, str, str, tuple[str, ...], dict[str, np.ndarray]]] = [(top, "", top, (), {})]
    while stack:
        name, path, block, above, outside = stack.pop()
        if name in above:
            raise InputError(f"module {name} contains itself ({' > '.join((*above, name))}); expected a tree")
        module = compiled.get(name)
        if module is None:
            module = compiled[name] = _compile(name, modules, library, types)
        offset = n_nets - 2
        names.modules.append(module)
        names.paths.append(path)
        names.first_cell.append(n_cells)
        names.first_net.append(n_nets)
        part_types.append(module.types)
        part_pins.append(np.where(module.pins > 1, module.pins + offset, module.pins))
        part_blocks.append(np.full(len(module.types), blocks.setdefault(block, len(blocks))))
        n_cells += len(module.types)
        n_nets += module.n_nets - 2
        for port, nets in outside.items():
            entry = module.body.get("ports", {}).get(port)
            if entry is None:
                raise InputError(f"instance {path[:-1]}: module {name} has no port {port}; expected one it has")
            inside = _port_nets(module, entry, offset)
            if len(inside) != len(nets):
                raise InputError(
                    f"instance {path[:-1]}: port {port} of {name} is {len(inside)} bits wide, "
                    f"not {len(nets)}; expected equal widths"
                )
            used = (nets >= 0) & (inside >= 0)
            joined.append((inside[used], nets[used]))
        for instance, child, wired in reversed(module.instances):
            at = {}
            for port, bits in wired.items():
                local = np.array(bits, dtype=np.int64)
                at[port] = np.where(local > 1, local + offset, local)
            stack.append((child, f"{path}{instance}.", f"{block}/{child}", (*above, name), at))
    root = _merge(n_nets, joined, names)
    kept, original, number = np.unique(root, return_index=True, return_inverse=True)
    names.original_net, names.number = original, number
    pins = number[np.concatenate(part_pins)]
    groups = _group(np.concatenate(part_types), pins, [library.cells[kind] for kind in types])
    ports = {}
    for port, entry in modules[top].get("ports", {}).items():
        direction = entry["direction"]
        if direction not in ("input", "output"):
            raise InputError(f"port {port} of {top} is {direction}; expected input or output")
        nets = _port_nets(compiled[top], entry, 0)
        if np.any(nets < 0):
            raise InputError(f"port {port} of {top} has an open bit; expected every bit connected")
        ports[port] = Port(port, direction, number[nets])
    return _checked(library, top, n_cells, len(kept), groups, np.concatenate(part_blocks), list(blocks), ports, names)


def _port_nets(module: _Module, entry: Mapping[str, Any], offset: int) -> np.ndarray:
    bits = [_CONSTANTS.get(bit, -1) if isinstance(bit, str) else module.local[bit] for bit in entry["bits"]]
    local = np.array(bits, dtype=np.int64)
    return np.where(local > 1, local + offset, local)


def _merge(n_nets: int, joined: list[tuple[np.ndarray, np.ndarray]], names: _Names) -> np.ndarray:
    """Smallest net joined, directly or not, with each net."""
    root = np.arange(n_nets)
    if joined:
        left = np.concatenate([pair[0] for pair in joined])
        right = np.concatenate([pair[1] for pair in joined])
        while True:
            low = np.minimum(root[left], root[right])
            before = root.copy()
            np.minimum.at(root, root[left], low)
            np.minimum.at(root, root[right], low)
            while True:
                jumped = root[root]
                if np.array_equal(jumped, root):
                    break
                root = jumped
            if np.array_equal(root, before):
                break
    if root[1] == 0:
        raise InputError(f"constants 0 and 1 meet through the ports of {names.modules[0].name}; expected either")
    return root


def _group(types: np.ndarray, pins: np.ndarray, cells: list[Cell]) -> list[CellGroup]:
    width = np.array([len(cell.inputs) + len(cell.outputs) for cell in cells], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(width[types])])[:-1] if len(types) else np.zeros(0, dtype=np.int64)
    order = np.argsort(types, kind="stable")
    bounds = np.searchsorted(types[order], np.arange(len(cells) + 1))
    groups = []
    for i, cell in enumerate(cells):
        members = order[bounds[i] : bounds[i + 1]]
        nets = pins[first[members, None] + np.arange(width[i])]
        inputs = len(cell.inputs)
        groups.append(CellGroup(cell, members, nets[:, :inputs], nets[:, inputs:]))
    return groups


def _checked(
    library: Library,
    top: str,
    n_cells: int,
    n_nets: int,
    groups: list[CellGroup],
    cell_block: np.ndarray,
    blocks: list[str],
    ports: dict[str, Port],
    names: _Names,
) -> Netlist:
    driver = np.full(n_nets, -2, dtype=np.int64)
    driver[:2] = -1
    drivers = np.zeros(n_nets, dtype=np.int64)
    drivers[:2] = 1
    fanout = np.zeros(n_nets, dtype=np.int64)
    clocked: dict[int, int] = {}  # cells on each clock net, one each
    gates: dict[int, int] = {}  # clock before each gate
    for group in groups:
        cell = group.cell
        _check_cell(cell, names.cell(int(group.cells[0])))
        fanout += np.bincount(group.inputs.ravel(), minlength=n_nets)
        drivers += np.bincount(group.outputs.ravel(), minlength=n_nets)
        driver[group.outputs] = group.cells[:, None]
        if cell.clock_pin is not None:
            column = cell.inputs.index(cell.clock_pin)
            for net in np.unique(group.inputs[:, column]).tolist():
                clocked.setdefault(net, int(group.cells[np.argmax(group.inputs[:, column] == net)]))
            if cell.clock_gate is not None:
                gates |= zip(group.outputs[:, 0].tolist(), group.inputs[:, column].tolist(), strict=True)
    for port in ports.values():
        if port.direction == "input":
            drivers += np.bincount(port.nets, minlength=n_nets)
            driver[port.nets] = -1
        else:
            fanout += np.bincount(port.nets, minlength=n_nets)
    several = np.flatnonzero(drivers > 1)
    if len(several):
        raise InputError(f"net {names.net(int(several[0]))} of {top} has several drivers; expected one")
    open_nets = np.flatnonzero((drivers == 0) & (fanout > 0))
    if len(open_nets):
        raise InputError(f"net {names.net(int(open_nets[0]))} of {top} is used but not driven; expected a driver")
    clock = _clock(top, clocked, gates, driver, names)
    gated = np.array(sorted(gates), dtype=np.int64)
    _check_clock_only(gated, groups, ports, names)
    return Netlist(
        library, top, n_cells, n_nets, groups, cell_block, blocks, ports, driver, fanout, clock, gated, names
    )


def _clock(
    top: str, clocked: Mapping[int, int], gates: Mapping[int, int], driver: np.ndarray, names: _Names
) -> int | None:
    """The one clock behind all clock pins, through gates or not."""
    found: dict[int, int] = {}
    for net, cell in clocked.items():
        root, passed = net, {net}
        while root in gates and gates[root] not in passed:
            root = gates[root]
            passed.add(root)
        found.setdefault(root, cell)
    if len(found) > 1:
        shown = ", ".join(f"{names.net(net)} (at {names.cell(cell)})" for net, cell in list(found.items())[:3])
        raise InputError(f"{top} has {len(found)} clock nets: {shown}; expected one")
    clock = next(iter(found), None)
    if clock is not None and (driver[clock] != -1 or clock < 2):
        raise InputError(
            f"the clock {names.net(clock)} of {top} is not an input port; expected one, with clock gates behind it"
            " or nothing"
        )
    return clock


def _check_clock_only(gated: np.ndarray, groups: list[CellGroup], ports: dict[str, Port], names: _Names) -> None:
    """Refuse gated clocks that go anywhere but to clock pins."""
    if not len(gated):
        return
    for group in groups:
        for name, nets in zip(group.cell.inputs, group.inputs.T, strict=True):
            if name != group.cell.clock_pin and (found := np.flatnonzero(np.isin(nets, gated))).size:
                cell = names.cell(int(group.cells[found[0]]))
                raise InputError(
                    f"pin {name} of cell {cell} is on the gated clock {names.net(int(nets[found[0]]))}; expected clock"
                    " pins only"
                )
    for port in ports.values():
        if np.isin(port.nets, gated).any():
            raise InputError(f"port {port.name} is a gated clock; expected clock pins only behind a clock gate")


def _check_cell(cell: Cell, name: str) -> None:
    gate = cell.clock_gate
    if gate is not None and (
        cell.outputs != [gate.output] or sorted(cell.inputs) != sorted([gate.clock, *gate.enables])
    ):
        raise InputError(f"cell {name} is a {cell.name}; expected clock gates of a clock, an enable and one output")
    if cell.sequential is not None and cell.clock_gate is None:
        if cell.sequential.kind != "ff":
            raise InputError(
                f"cell {name} is a {cell.name}, a {cell.sequential.kind}; expected gates, flip-flops and clock gates"
                " only"
            )
        if not cell.is_rising_edge:
            raise InputError(f"cell {name} is a {cell.name}; expected flip-flops on the rising edge of one pin")
    if any(pin.is_three_state for pin in cell.pins.values()):
        raise InputError(f"cell {name} is a {cell.name}, with a three-state output; expected gates that drive")
    strange = [pin.name for pin in cell.pins.values() if pin.direction == "inout"]
    if strange:
        raise InputError(f"cell {name}: {cell.name} has the inout pin {strange[0]}; expected inputs and outputs")
