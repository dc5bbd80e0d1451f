"""A mapped netlist, flattened into arrays for analysis. `hwgen.netlist.link` makes one from modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.cells.library import Library
from hwgen.errors import InputError

__all__ = ["CellGroup", "Instance", "Names", "Netlist", "Port", "dependencies", "ranges"]


class Names(Protocol):
    """Finds the hierarchical names of cells and nets by their numbers."""

    def cell(self, cell: int) -> str:
        """Name of a cell."""
        ...

    def net(self, net: int) -> str:
        """Name of a net, as the outermost module calls it."""
        ...

    def top_nets(self) -> dict[int, int]:
        """Net of each bit of the top module's body; bits that are joined in an instance have the same."""
        ...

    def instances(self) -> list[tuple[str, int, list[str]]]:
        """For every instance its module, the number of its first cell, and the names of its own cells."""
        ...

    def hierarchy(self, n_cells: int) -> list[Instance]:
        """Instances of modules of a netlist with that many cells."""
        ...


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a module in a flat netlist. Instances of one module have their cells in one order.

    Attributes
    ----------
    path : str
        Names of the instances from the top module down, each followed by "."; "" for the top module itself.
    module : str
    first : int
        Number of its first cell.
    own : int
        Cells of the module itself: numbers ``first`` to ``first + own - 1``.
    whole : int
        Cells with those of the instances in it: numbers ``first`` to ``first + whole - 1``.
    """

    path: str
    module: str
    first: int
    own: int
    whole: int


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the top module.

    Attributes
    ----------
    name : str
    direction : str
        ``input`` or ``output``.
    nets : numpy.ndarray
        Shape (width,), least significant bit first.
    """

    name: str
    direction: str
    nets: np.ndarray


@dataclass(frozen=True, slots=True)
class CellGroup:
    """All cells of one type.

    Attributes
    ----------
    cell : Cell
    cells : numpy.ndarray
        Shape (n,): the cells' numbers in the netlist.
    inputs, outputs : numpy.ndarray
        Shapes (n, i), (n, o): nets at the pins ``cell.inputs`` and ``cell.outputs``.
    """

    cell: Cell
    cells: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray


@dataclass
class Netlist:
    """A flat netlist. Nets 0 and 1 are the constants.

    Attributes
    ----------
    library : Library
    top : str
    n_cells, n_nets : int
    groups : list of CellGroup
        By cell type.
    cell_block : numpy.ndarray
        Shape (n_cells,): index into `blocks` of the module that holds the cell.
    blocks : list of str
        Module names from the top down, joined by "/". Instances of one module under equal parents share one.
    ports : dict of str to Port
    driver : numpy.ndarray
        Shape (n_nets,): the cell that drives the net, -1 for an input port or a constant, -2 for nothing.
    fanout : numpy.ndarray
        Shape (n_nets,): number of cell inputs and output ports on the net.
    clock_net : int or None
        The net that clocks all flip-flops, itself or through clock gates: an input port.
    gated_nets : numpy.ndarray
        The nets that clock gates drive, increasing: with the clock's pulses, but not in every cycle.
    names : Names
    """

    library: Library
    top: str
    n_cells: int
    n_nets: int
    groups: list[CellGroup]
    cell_block: np.ndarray
    blocks: list[str]
    ports: dict[str, Port]
    driver: np.ndarray
    fanout: np.ndarray
    clock_net: int | None
    gated_nets: np.ndarray
    names: Names = field(repr=False)

    @property
    def clock_port(self) -> str | None:
        """Name of the clock's port."""
        for port in self.ports.values():
            if port.direction == "input" and self.clock_net is not None and self.clock_net in port.nets:
                return port.name
        return None

    @cached_property
    def cell_group(self) -> np.ndarray:
        """Index into `groups` for each cell, shape (n_cells,)."""
        found = np.empty(self.n_cells, dtype=np.int32)
        for i, group in enumerate(self.groups):
            found[group.cells] = i
        return found

    @cached_property
    def cell_row(self) -> np.ndarray:
        """Row of each cell in its group, shape (n_cells,)."""
        found = np.empty(self.n_cells, dtype=np.int64)
        for group in self.groups:
            found[group.cells] = np.arange(len(group.cells))
        return found

    @cached_property
    def level(self) -> np.ndarray:
        """Depth of each cell, shape (n_cells,): above every cell that its outputs depend on within a cycle.

        Flip-flops depend on their asynchronous clear and preset only; clock gates on all their pins.

        Raises
        ------
        InputError
            If there is a combinational loop; names its cells.
        """
        return _levelise(self)

    @cached_property
    def instances(self) -> list[Instance]:
        """Instances of modules, the top module first, each before those in it."""
        return self.names.hierarchy(self.n_cells)

    @cached_property
    def clock_nets(self) -> np.ndarray:
        """The nets of clock pins, increasing: the clock and what gates make of it."""
        root = [] if self.clock_net is None else [self.clock_net]
        return np.union1d(np.array(root, dtype=np.int64), self.gated_nets)

    @property
    def area(self) -> float:
        """Sum of the cells' areas in um2."""
        return float(sum(group.cell.area * len(group.cells) for group in self.groups))

    def area_by_block(self) -> dict[str, float]:
        """Area in um2 of the cells of each block itself (without its children)."""
        total = np.zeros(len(self.blocks))
        for group in self.groups:
            total += group.cell.area * np.bincount(self.cell_block[group.cells], minlength=len(self.blocks))
        return dict(zip(self.blocks, total.tolist(), strict=True))

    def cell_name(self, cell: int) -> str:
        """Hierarchical name of a cell."""
        return self.names.cell(int(cell))

    def net_name(self, net: int) -> str:
        """Hierarchical name of a net, as the outermost module calls it."""
        return self.names.net(int(net))


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Concatenated ranges ``starts[i] .. starts[i] + counts[i] - 1``."""
    total = int(counts.sum())
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return np.arange(total) + shift


def _levelise(netlist: Netlist) -> np.ndarray:
    sources, targets = [], []
    for group in netlist.groups:
        columns = dependencies(group.cell)
        if columns:
            source = netlist.driver[group.inputs[:, columns]]
            target = np.broadcast_to(group.cells[:, None], source.shape)
            inside = source >= 0
            sources.append(source[inside])
            targets.append(target[inside])
    source = np.concatenate([*sources, np.zeros(0, dtype=np.int64)])
    target = np.concatenate([*targets, np.zeros(0, dtype=np.int64)])
    target = target[np.argsort(source, kind="stable")]
    count = np.bincount(source, minlength=netlist.n_cells)
    start = np.concatenate([[0], np.cumsum(count)])[:-1]
    waiting = np.bincount(target, minlength=netlist.n_cells)
    level = np.full(netlist.n_cells, -1, dtype=np.int64)
    front = np.flatnonzero(waiting == 0)
    depth = 0
    while len(front):
        level[front] = depth
        reached = target[ranges(start[front], count[front])]
        np.subtract.at(waiting, reached, 1)
        reached = np.unique(reached)
        front = reached[waiting[reached] == 0]
        depth += 1
    stuck = np.flatnonzero(level < 0)
    if len(stuck):
        raise InputError(
            f"combinational loop in {netlist.top} through {_loop(netlist, stuck)}; expected a register in it"
        )
    return level


def dependencies(cell: Cell) -> list[int]:
    """Columns of the inputs that the outputs follow within a cycle."""
    if cell.sequential is None or cell.clock_gate is not None:
        return list(range(len(cell.inputs)))
    wanted: set[str] = set()
    for expression in (cell.sequential.clear, cell.sequential.preset):
        wanted.update(expression.names if expression else ())
    return [i for i, name in enumerate(cell.inputs) if name in wanted]


def _loop(netlist: Netlist, stuck: np.ndarray) -> str:
    inside = set(stuck.tolist())
    cell = int(stuck[0])
    order: dict[int, int] = {}
    while cell not in order:
        order[cell] = len(order)
        group = netlist.groups[netlist.cell_group[cell]]
        nets = group.inputs[netlist.cell_row[cell]][dependencies(group.cell)]
        cell = next(int(driver) for driver in netlist.driver[nets] if int(driver) in inside)
    loop = [netlist.cell_name(member) for member, i in order.items() if i >= order[cell]]
    shown = ", ".join(reversed(loop[-6:]))
    return shown if len(loop) <= 6 else f"{shown} and {len(loop) - 6} more cells"
