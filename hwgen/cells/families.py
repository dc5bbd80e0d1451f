"""Families of cells: the same pins and the same behaviour in several sizes, so that one may take another's place."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from hwgen.cells.boolean import Expression
from hwgen.cells.cell import Cell
from hwgen.cells.tables import Table

__all__ = ["behaviour", "families"]

# A truth table doubles with every input.
_MOST_INPUTS = 12
# Of the delay cells of three open libraries each takes 1.28 times as long or more, of other buffers each at most 1.16.
_SLOW_ON_PURPOSE = 1.25


def families(cells: Iterable[Cell]) -> list[tuple[Cell, ...]]:
    """Group cells that are interchangeable in a netlist.

    Parameters
    ----------
    cells : iterable of Cell

    Returns
    -------
    list of tuple of Cell
        Each family smallest first (by area, then by input capacitance), in the order of their first cells. A
        cell that nothing can replace is a family of one. Cells whose `behaviour` is not known are left out, and so
        are delay cells: buffers that are slow on purpose, for paths that are too short. Such a cell takes a quarter
        longer at every load than another buffer of no more area.
    """
    found: dict[Hashable, list[Cell]] = {}
    for cell in cells:
        key = behaviour(cell)
        if key is not None:
            found.setdefault(key, []).append(cell)
    return [_without_delay_cells(sorted(family, key=_size)) for family in found.values()]


def behaviour(cell: Cell) -> Hashable | None:
    """What two cells have in common if one may take the other's place.

    Parameters
    ----------
    cell : Cell

    Returns
    -------
    hashable or None
        Names and order of the pins, functions of the outputs, the state's function or the pins of a clock gate.
        None for cells that drive nothing, for latches, for three-state outputs and for very wide functions.
    """
    pins = (tuple(cell.inputs), tuple(cell.outputs))
    unknown = any(pin.direction == "inout" or pin.is_three_state for pin in cell.pins.values())
    if unknown or not cell.outputs or len(cell.inputs) > _MOST_INPUTS:
        return None
    if cell.clock_gate is not None:
        return pins, cell.clock_gate
    names = list(cell.inputs)
    state: list[Expression | None] = []
    if cell.sequential is not None:
        if not cell.is_flip_flop:
            return None
        sequential = cell.sequential
        names += [sequential.state, sequential.inverse]
        state = [sequential.clocked_on, sequential.next_state, sequential.clear, sequential.preset]
    functions = [cell.pins[output].function for output in cell.outputs]
    if None in functions:
        return None
    known = [expression for expression in (*functions, *state) if expression is not None]
    if any(not set(expression.names) <= set(names) for expression in known):
        return None
    tables = [None if expression is None else expression.truth(names).tobytes() for expression in (*functions, *state)]
    both = cell.sequential.both if cell.sequential is not None else None
    return pins, cell.is_flip_flop, tuple(tables), both


def _without_delay_cells(family: list[Cell]) -> tuple[Cell, ...]:
    """A family, smallest first, without its delay cells."""
    if not family[0].is_buffer:
        return tuple(family)
    return tuple(cell for cell in family if not any(_much_slower(cell, other) for other in family))


def _much_slower(cell: Cell, other: Cell) -> bool:
    """Whether a buffer takes a quarter longer at every load of its tables than another of no more area."""
    if other is cell or other.area > cell.area:
        return False
    delays = _delays(cell), _delays(other)
    if not all(delays):
        return False
    first = delays[0][0]
    slew = first.x[len(first.x) // 2]
    own, best = (np.max([table(slew, first.y) for table in tables], axis=0) for tables in delays)
    return bool((own > _SLOW_ON_PURPOSE * best).all())


def _delays(cell: Cell) -> list[Table]:
    """Tables of the delays of all arcs of the first output."""
    return [table for arc in cell.pins[cell.outputs[0]].arcs for table in arc.delay if table is not None]


def _size(cell: Cell) -> tuple[float, float, str]:
    return cell.area, sum(pin.capacitance for pin in cell.pins.values()), cell.name
