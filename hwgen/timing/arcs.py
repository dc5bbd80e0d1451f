"""The timing arcs of all cells of a netlist as arrays, level by level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.cells.library import Library
from hwgen.cells.tables import Table, TableBank
from hwgen.netlist.graph import Netlist

__all__ = ["EDGES", "FALL", "RISE", "Arcs", "CellArc", "TableNumbers", "cell_arcs", "collect"]

RISE, FALL = 0, 1
EDGES = ("rise", "fall")
_INVERTING = {"positive_unate": (False,), "negative_unate": (True,), "non_unate": (False, True)}


@dataclass
class Arcs:
    """Every arc of every cell, sorted by level and then by the place it ends at.

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
    bounds : numpy.ndarray
        Shape (levels + 1,): where the arcs of each level begin; the end of the last.
    bank : TableBank
    """

    start: np.ndarray
    end: np.ndarray
    delay_table: np.ndarray
    slew_table: np.ndarray
    cell: np.ndarray
    label: np.ndarray
    labels: list[str]
    bounds: np.ndarray
    bank: TableBank


class CellArc(NamedTuple):
    """One edge of an output that one edge of an input causes.

    Attributes
    ----------
    source, cause : int
        Column of the input pin, and its edge.
    target, edge : int
        Column of the output pin, and its edge.
    delay, slew : Table or None
        None is 0.
    """

    source: int
    cause: int
    target: int
    edge: int
    delay: Table
    slew: Table | None


def cell_arcs(cell: Cell) -> Iterator[CellArc]:
    """The timing arcs of a cell: one for each condition under which the library gives it; none of a clock gate."""
    if cell.clock_gate is not None:
        return
    for target, output in enumerate(cell.outputs):
        for arc in cell.pins[output].arcs:
            if arc.related_pin not in cell.inputs:
                continue
            source = cell.inputs.index(arc.related_pin)
            for edge in (RISE, FALL):
                table = arc.delay[edge]
                if table is None or arc.kind == f"combinational_{EDGES[1 - edge]}":
                    continue
                if arc.kind in ("rising_edge", "falling_edge"):
                    causes: tuple[int, ...] = (RISE if arc.kind == "rising_edge" else FALL,)
                else:
                    causes = tuple(edge ^ int(flip) for flip in _INVERTING.get(arc.sense, (False, True)))
                for cause in causes:
                    yield CellArc(source, cause, target, edge, table, arc.transition[edge])


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
    """The arcs of one cell: columns and edges of pins, tables of delay and slew, and labels as of `Arcs`."""

    source: np.ndarray
    cause: np.ndarray
    target: np.ndarray
    edge: np.ndarray
    tables: list[tuple[Table, Table | None]]
    labels: list[str]


def _own(library: Library, name: str) -> _Own:
    cell = library.cells[name]
    arcs = list(cell_arcs(cell))
    source, cause, target, edge = np.array([arc[:4] for arc in arcs], dtype=np.int64).reshape(-1, 4).T
    return _Own(
        source,
        cause,
        target,
        edge,
        [(arc.delay, arc.slew) for arc in arcs],
        [
            f"{cell.inputs[arc.source]} {EDGES[arc.cause]} -> {cell.outputs[arc.target]} {EDGES[arc.edge]}"
            for arc in arcs
        ],
    )


def collect(netlist: Netlist) -> Arcs:
    """All arcs of a netlist, but those of its clock gates: when a gated clock comes is not for them to say."""
    tables = TableNumbers()
    start, end, delay, slew, cells, label = [], [], [], [], [], []
    labels: list[str] = []
    for group in netlist.groups:
        own = netlist.library.known(_own, group.cell.name)
        n, arcs = len(group.cells), len(own.labels)
        start.append((2 * group.inputs[:, own.source].T + own.cause[:, None]).ravel())
        end.append((2 * group.outputs[:, own.target].T + own.edge[:, None]).ravel())
        numbers_of = [(tables.number(delays), tables.number(slews)) for delays, slews in own.tables]
        both = np.array(numbers_of, dtype=np.int64).reshape(-1, 2)
        delay.append(np.repeat(both[:, 0], n))
        slew.append(np.repeat(both[:, 1], n))
        cells.append(np.tile(group.cells, arcs))
        label.append(np.repeat(len(labels) + np.arange(arcs), n))
        labels += own.labels
    empty = np.zeros(0, dtype=np.int64)
    cell_of = np.concatenate([*cells, empty])
    ends = np.concatenate([*end, empty])
    level = netlist.level[cell_of]
    # By level, then end, then as they come: one sort of numbers that say all three is far quicker than three.
    numbers = np.arange(len(ends))
    order = np.sort((level * 2 * netlist.n_nets + ends) * len(ends) + numbers) % max(len(ends), 1)
    depth = int(netlist.level.max(initial=-1)) + 1
    return Arcs(
        start=np.concatenate([*start, empty])[order],
        end=ends[order],
        delay_table=np.concatenate([*delay, empty])[order],
        slew_table=np.concatenate([*slew, empty])[order],
        cell=cell_of[order],
        label=np.concatenate([*label, empty])[order],
        labels=labels,
        bounds=np.searchsorted(level[order], np.arange(depth + 1)),
        bank=TableBank(tables.tables),
    )
