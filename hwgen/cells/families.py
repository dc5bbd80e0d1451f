"""Families of cells: the same pins and the same behaviour in several sizes, so that one may take another's place."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hwgen.cells.boolean import Expression
from hwgen.cells.cell import Cell

__all__ = ["behaviour", "families"]

# A truth table doubles with every input.
_MOST_INPUTS = 12


def families(cells: Iterable[Cell]) -> list[tuple[Cell, ...]]:
    """Group cells that are interchangeable in a netlist.

    Parameters
    ----------
    cells : iterable of Cell

    Returns
    -------
    list of tuple of Cell
        Each family smallest first (by area, then by input capacitance), in the order of their first cells. A
        cell that nothing can replace is a family of one; cells whose `behaviour` is not known are left out.
    """
    found: dict[Hashable, list[Cell]] = {}
    for cell in cells:
        key = behaviour(cell)
        if key is not None:
            found.setdefault(key, []).append(cell)
    return [tuple(sorted(family, key=_size)) for family in found.values()]


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


def _size(cell: Cell) -> tuple[float, float, str]:
    return cell.area, sum(pin.capacitance for pin in cell.pins.values()), cell.name
