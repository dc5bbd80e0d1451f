"""Cells of a library as arrays, for compiled timing: arcs, constraints, capacitances and tables by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.cells.tables import TableBank
from hwgen.errors import InputError
from hwgen.timing.arcs import FALL, RISE, TableNumbers, cell_arcs, ranks

__all__ = ["KindArrays", "Kinds"]


class KindArrays(NamedTuple):
    """Arcs, constraints and capacitances of each kind, for compiled functions.

    A pin edge is ``2 * column + edge``, with the columns of the kind's family; as sources, outputs have the columns
    behind all inputs. Rows ``first[k]`` to ``first[k + 1]`` are those of kind k, sorted by target, an output behind
    those that it follows.

    Attributes
    ----------
    first, source, target, delay, slew, slot : numpy.ndarray
        Arcs: pin edges of where they begin and end, numbers of tables, and number of the pair (source, target) in the
        family.
    follows : numpy.ndarray
        Whether an arc begins at an output; the last arc of a kind does if any does.
    same_axes : numpy.ndarray
        Whether an arc's two tables have the same axes.
    check_first, check_source, check_table : numpy.ndarray
        Set-up constraints: pin edge of the data, and table of (clock slew, data slew).
    capacitance : numpy.ndarray
        Shape (kinds, widest input, 2): fF by input column and edge.
    limit : numpy.ndarray
        Shape (kinds, widest output): the most fF that the library lets an output drive, by column.
    x, y, values : numpy.ndarray
        All tables, see `hwgen.cells.tables.TableBank`.
    slots : numpy.ndarray
        Shape (kinds,): pairs (source, target) of its family.
    """

    first: np.ndarray
    source: np.ndarray
    target: np.ndarray
    delay: np.ndarray
    slew: np.ndarray
    slot: np.ndarray
    follows: np.ndarray
    same_axes: np.ndarray
    check_first: np.ndarray
    check_source: np.ndarray
    check_table: np.ndarray
    capacitance: np.ndarray
    limit: np.ndarray
    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    slots: np.ndarray


class Kinds:
    """Families of cells with a number for each cell.

    Parameters
    ----------
    families : sequence of sequences of Cell
        Cells that may stand for one another: their pins have the same names. A cell is in one family.
    limits : callable
        The largest load of each output of a cell, fF, as `hwgen.cells.library.Library.load_limits`.

    Attributes
    ----------
    cells : list of Cell
        By number, those of a family one after the other.
    number : dict of str to int
        Number of a cell by its name.
    family : numpy.ndarray
        Shape (kinds,): number of the family.
    bounds : numpy.ndarray
        Shape (families + 1,): where the kinds of each family begin; the end of the last.
    inputs, outputs : list of list of str
        Pins of each family, in the order of the columns.
    following : numpy.ndarray
        Shape (families,), bool: whether outputs follow others in some of their cells.
    arrays : KindArrays
    """

    def __init__(self, families: Sequence[Sequence[Cell]], limits: Callable[[Cell], Mapping[str, float]]):
        self.cells = [cell for family in families for cell in family]
        self.number = {cell.name: number for number, cell in enumerate(self.cells)}
        sizes = [len(family) for family in families]
        self.family = np.repeat(np.arange(len(sizes)), sizes)
        self.bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        self.inputs = [family[0].inputs for family in families]
        self.outputs = [family[0].outputs for family in families]
        for family in families:
            for cell in family:
                if {*cell.inputs} != {*family[0].inputs} or {*cell.outputs} != {*family[0].outputs}:
                    raise InputError(f"{cell.name} has other pins than {family[0].name}; expected drives of one gate")
        self.arrays = self._arrays(limits)
        self.following = np.zeros(len(sizes), dtype=np.bool_)
        self.following[np.repeat(self.family, np.diff(self.arrays.first))[self.arrays.follows]] = True

    def _arrays(self, limits: Callable[[Cell], Mapping[str, float]]) -> KindArrays:
        tables = TableNumbers()
        first, check_first = [0], [0]
        arcs: list[list[int]] = []
        checks: list[tuple[int, int]] = []
        width = max([1, *(len(inputs) for inputs in self.inputs)])
        capacitance = np.zeros((len(self.cells), width, 2))
        limit = np.full((len(self.cells), max([1, *(len(outputs) for outputs in self.outputs)])), np.inf)
        pairs: list[dict[tuple[int, int], int]] = [{} for _ in self.inputs]
        for number, cell in enumerate(self.cells):
            family = self.family[number]
            inputs, outputs = self.inputs[family], self.outputs[family]
            columns, names, rank = [*inputs, *outputs], [*cell.inputs, *cell.outputs], ranks(cell)
            found = []
            for arc in cell_arcs(cell):
                source = 2 * columns.index(names[arc.source]) + arc.cause
                target = 2 * outputs.index(cell.outputs[arc.target]) + arc.edge
                slot = pairs[family].setdefault((target, source), len(pairs[family]))
                row = target, source, slot, tables.number(arc.delay), tables.number(arc.slew)
                found.append((rank[arc.target], *row, arc.source >= len(inputs)))
            arcs += [row for _, *row in sorted(found)]
            first.append(len(arcs))
            allowed = limits(cell)
            limit[number, : len(outputs)] = [allowed[name] for name in outputs]
            for column, name in enumerate(inputs):
                capacitance[number, column] = cell.pins[name].edge_capacitance
                for timing in cell.pins[name].arcs:
                    for edge in (RISE, FALL):
                        table = timing.constraint[edge]
                        if timing.kind == "setup_rising" and table is not None and cell.clock_pin is not None:
                            checks.append((2 * column + edge, tables.number(table)))
            check_first.append(len(checks))
        slots = [len(pairs[family]) for family in self.family]
        bank = TableBank(tables.tables)
        rows = np.array(arcs, dtype=np.int64).reshape(-1, 6)
        check_rows = np.array(checks, dtype=np.int64).reshape(-1, 2)
        delay, slew = rows[:, 3], rows[:, 4]
        same_axes = np.all(bank.x[delay] == bank.x[slew], axis=1) & np.all(bank.y[delay] == bank.y[slew], axis=1)
        return KindArrays(
            first=np.array(first),
            source=rows[:, 1].copy(),
            target=rows[:, 0].copy(),
            delay=delay.copy(),
            slew=slew.copy(),
            slot=rows[:, 2].copy(),
            follows=rows[:, 5].astype(np.bool_),
            same_axes=same_axes,
            check_first=np.array(check_first),
            check_source=check_rows[:, 0].copy(),
            check_table=check_rows[:, 1].copy(),
            capacitance=capacitance,
            limit=limit,
            x=bank.x,
            y=bank.y,
            values=bank.values,
            slots=np.array(slots, dtype=np.int64),
        )
