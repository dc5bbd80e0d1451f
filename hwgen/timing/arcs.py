"""The timing arcs of all cells of a netlist as arrays, level by level.

A library may time an output from another output of the same cell: in ASAP7 the sum of an adder follows its carry, and
so it waits for what the carry drives. Such an arc begins at the driver of its net, where the wire begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hwgen.cells.boolean import Expression
from hwgen.cells.cell import Cell
from hwgen.cells.library import Library
from hwgen.cells.tables import Table, TableBank
from hwgen.errors import InputError
from hwgen.netlist.graph import Netlist

__all__ = ["EDGES", "FALL", "RISE", "Arcs", "CellArc", "TableNumbers", "cell_arcs", "collect", "ranks"]

RISE, FALL = 0, 1
EDGES = ("rise", "fall")
_INVERTING = {"positive_unate": (False,), "negative_unate": (True,), "non_unate": (False, True)}


@dataclass
class Arcs:
    """Every arc of every cell, sorted by stage and then by the place it ends at.

    A level of cells is `stages` stages: outputs that follow no other output of their cell, those that follow these,
    and so on.

    A place is an edge of a net: ``2 * net + edge``.

    Attributes
    ----------
    start, end : numpy.ndarray
        Shape (n,): places.
    delay_table, slew_table : numpy.ndarray
        Shape (n,): numbers of tables in `bank`.
    cell : numpy.ndarray
        Shape (n,): the cells' numbers in the netlist.
    label : numpy.ndarray
        Shape (n,): index into `labels`.
    labels : list of str
        As ``A fall -> Y rise``.
    stages : int
        Stages of each level.
    bounds : numpy.ndarray
        Shape (levels * stages + 1,): where the arcs of each stage begin; the end of the last.
    follows : numpy.ndarray
        Numbers of the arcs that begin at an output of their own cell, increasing.
    bank : TableBank
    """

    start: np.ndarray
    end: np.ndarray
    delay_table: np.ndarray
    slew_table: np.ndarray
    cell: np.ndarray
    label: np.ndarray
    labels: list[str]
    stages: int
    bounds: np.ndarray
    follows: np.ndarray
    bank: TableBank

    def delays(self, slew: np.ndarray, load: np.ndarray, wire_delay: np.ndarray, first: int, last: int) -> np.ndarray:
        """From where arcs begin, at the loads of their nets, to the drivers of the nets where they end; ns.

        Of arcs that begin at an output of their own cell the wire of that is no part.

        Parameters
        ----------
        slew, load, wire_delay
            Of each place: ns, fF, and ns from driver to loads.
        first, last
            The arcs: from the first to the one before the last.
        """
        start, end = self.start[first:last], self.end[first:last]
        delay = self.bank(self.delay_table[first:last], slew[start], load[end])
        among = slice(*np.searchsorted(self.follows, [first, last]))
        own = self.follows[among] - first
        delay[own] -= wire_delay[start[own]]
        return delay

    def to(self, level: int, place: int) -> slice:
        """The arcs that end at a place of an output of a cell of some level."""
        for stage in range(level * self.stages, (level + 1) * self.stages):
            first, last = self.bounds[stage], self.bounds[stage + 1]
            low, high = first + np.searchsorted(self.end[first:last], [place, place + 1])
            if low < high:
                return slice(int(low), int(high))
        return slice(0, 0)


class CellArc(NamedTuple):
    """One edge of an output that one edge of another pin causes.

    Attributes
    ----------
    source, cause : int
        Column of that pin, and its edge: outputs have the columns behind all inputs.
    target, edge : int
        Column of the output pin, and its edge.
    delay, slew : Table or None
        None is 0.
    when : Expression or None
        The condition under which it is.
    """

    source: int
    cause: int
    target: int
    edge: int
    delay: Table
    slew: Table | None
    when: Expression | None


def cell_arcs(cell: Cell) -> Iterator[CellArc]:
    """The timing arcs of a cell: one for each condition under which the library gives it; none of a clock gate."""
    if cell.clock_gate is not None:
        return
    pins = [*cell.inputs, *cell.outputs]
    for target, output in enumerate(cell.outputs):
        for arc in cell.pins[output].arcs:
            if arc.related_pin not in pins:
                continue
            source = pins.index(arc.related_pin)
            for edge in (RISE, FALL):
                table = arc.delay[edge]
                if table is None or arc.kind == f"combinational_{EDGES[1 - edge]}":
                    continue
                if arc.kind in ("rising_edge", "falling_edge"):
                    causes: tuple[int, ...] = (RISE if arc.kind == "rising_edge" else FALL,)
                else:
                    causes = tuple(edge ^ int(flip) for flip in _INVERTING.get(arc.sense, (False, True)))
                for cause in causes:
                    yield CellArc(source, cause, target, edge, table, arc.transition[edge], arc.when)


def ranks(cell: Cell) -> Sequence[int]:
    """How many outputs of a cell each of its outputs follows, one after another; 0 if it is timed from inputs alone.

    Raises
    ------
    InputError
        Outputs follow one another in a circle.
    """
    before = {
        name: {arc.related_pin for arc in cell.pins[name].arcs if any(arc.delay)} & {*cell.outputs}
        for name in cell.outputs
    }
    found: dict[str, int] = {}
    while len(found) < len(before):
        known = {
            name: 1 + max((found[other] for other in others), default=-1)
            for name, others in before.items()
            if name not in found and others <= found.keys()
        }
        if not known:
            circle = ", ".join(sorted(before.keys() - found.keys()))
            raise InputError(f"cell {cell.name}: its outputs {circle} are timed from one another; expected an input")
        found |= known
    return [found[name] for name in cell.outputs]


class TableNumbers:
    """Numbers tables, one number each; 0 is a table of 0 everywhere."""

    def __init__(self) -> None:
        self.tables: list[Table] = [Table(np.zeros(1), np.zeros(1), np.zeros((1, 1)))]
        self._numbers: dict[int, int] = {}

    def number(self, table: Table | None) -> int:
        if table is None:
            return 0
        found = self._numbers.get(id(table))
        if found is None:
            found = self._numbers[id(table)] = len(self.tables)
            self.tables.append(table)
        return found


class _Own(NamedTuple):
    """The arcs of one cell: columns and edges of pins, tables of delay and slew, and labels as of `Arcs`.

    Of their ends the ranks.
    """

    source: np.ndarray
    cause: np.ndarray
    target: np.ndarray
    edge: np.ndarray
    rank: np.ndarray
    tables: list[tuple[Table, Table | None]]
    labels: list[str]


def _own(library: Library, name: str) -> _Own:
    cell = library.cells[name]
    arcs = list(cell_arcs(cell))
    source, cause, target, edge = np.array([arc[:4] for arc in arcs], dtype=np.int64).reshape(-1, 4).T
    pins = [*cell.inputs, *cell.outputs]
    return _Own(
        source,
        cause,
        target,
        edge,
        np.array(ranks(cell), dtype=np.int64)[target],
        [(arc.delay, arc.slew) for arc in arcs],
        [f"{pins[arc.source]} {EDGES[arc.cause]} -> {cell.outputs[arc.target]} {EDGES[arc.edge]}" for arc in arcs],
    )


def collect(netlist: Netlist) -> Arcs:
    """All arcs of a netlist, but those of its clock gates: when a gated clock comes is not for them to say."""
    tables = TableNumbers()
    start, end, delay, slew, cells, label, rank, follows = [], [], [], [], [], [], [], []
    labels: list[str] = []
    for group in netlist.groups:
        own = netlist.library.known(_own, group.cell.name)
        n, arcs = len(group.cells), len(own.labels)
        pins = np.concatenate([group.inputs, group.outputs], axis=1)
        start.append((2 * pins[:, own.source].T + own.cause[:, None]).ravel())
        end.append((2 * group.outputs[:, own.target].T + own.edge[:, None]).ravel())
        numbers_of = [(tables.number(delays), tables.number(slews)) for delays, slews in own.tables]
        both = np.array(numbers_of, dtype=np.int64).reshape(-1, 2)
        delay.append(np.repeat(both[:, 0], n))
        slew.append(np.repeat(both[:, 1], n))
        cells.append(np.tile(group.cells, arcs))
        label.append(np.repeat(len(labels) + np.arange(arcs), n))
        rank.append(np.repeat(own.rank, n))
        follows.append(np.repeat(own.source >= group.inputs.shape[1], n))
        labels += own.labels
    empty = np.zeros(0, dtype=np.int64)
    cell_of = np.concatenate([*cells, empty])
    ends = np.concatenate([*end, empty])
    ranked = np.concatenate([*rank, empty])
    stages = int(ranked.max(initial=0)) + 1
    stage = netlist.level[cell_of] * stages + ranked
    # By stage, then end, then as they come: one sort of numbers that say all three is far quicker than three.
    numbers = np.arange(len(ends))
    order = np.sort((stage * 2 * netlist.n_nets + ends) * len(ends) + numbers) % max(len(ends), 1)
    depth = int(netlist.level.max(initial=-1)) + 1
    return Arcs(
        start=np.concatenate([*start, empty])[order],
        end=ends[order],
        delay_table=np.concatenate([*delay, empty])[order],
        slew_table=np.concatenate([*slew, empty])[order],
        cell=cell_of[order],
        label=np.concatenate([*label, empty])[order],
        labels=labels,
        stages=stages,
        bounds=np.searchsorted(stage[order], np.arange(depth * stages + 1)),
        follows=np.flatnonzero(np.concatenate([*follows, empty])[order]),
        bank=TableBank(tables.tables),
    )
