"""How much an output may drive: what a library says of its load, and of how slow an edge may be.

Both limits are told as a load. An output is within the library's limit on slews where its load lets it make an edge
that is fast enough from the slowest one that inputs may get. Where that holds for every driver, it holds for every
net: the inputs' edges are outputs' in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.cells.tables import Table

__all__ = ["load_limits", "slowest_edge"]


def slowest_edge(cells: Iterable[Cell]) -> float:
    """The slowest edge that every input takes, ns: the least ``max_transition``; infinite where none is given.

    Clock pins are apart: a clock's edges are no output's that is sized. So are cells that no netlist has, as latches.
    """
    found = (
        pin.max_transition
        for cell in cells
        if cell.sequential is None or cell.is_flip_flop or cell.clock_gate is not None
        for name, pin in cell.pins.items()
        if pin.direction == "input" and name != cell.clock_pin
    )
    return min(found, default=math.inf)


def load_limits(cell: Cell, slowest: float) -> dict[str, float]:
    """The largest load of each output in fF; infinite for a clock gate, whose load is the clock tree's.

    Parameters
    ----------
    cell : Cell
    slowest : float
        ns, of `slowest_edge`.
    """
    if cell.clock_gate is not None:
        return dict.fromkeys(cell.outputs, math.inf)
    return {name: _load_limit(cell, name, slowest) for name in cell.outputs}


def _load_limit(cell: Cell, output: str, slowest: float) -> float:
    pin = cell.pins[output]
    allowed = min(slowest, pin.max_transition)
    limit = pin.max_capacitance
    if allowed == math.inf:
        return limit
    for arc in pin.arcs:
        for table in arc.transition:
            if table is not None:
                limit = min(limit, _load_at(table, allowed))
    return max(limit, 0.0)


def _load_at(table: Table, slew: float) -> float:
    """Least load in fF at which a table of slews gives one in ns from the same at the input; infinite if none does."""
    if len(table.y) < 2:
        return math.inf
    slews = table(np.full(len(table.y), slew), table.y)
    over = np.flatnonzero(slews > slew)
    place = max(int(over[0]) - 1, 0) if len(over) else len(slews) - 2
    slope = (slews[place + 1] - slews[place]) / (table.y[place + 1] - table.y[place])
    if slope <= 0:
        return math.inf
    return float(table.y[place] + (slew - slews[place]) / slope)
