"""Which flip-flops synthesis is to pass over, so that it takes the smallest.

Yosys' ``dfflibmap`` takes a flip-flop with an output that is not inverted whatever its size, and no account of drives
at all. Sizing, which knows the loads, comes after it.
"""

from __future__ import annotations

from hwgen.cells.boolean import parse_expression
from hwgen.cells.cell import Cell
from hwgen.cells.library import Library

__all__ = ["passed_over"]


def passed_over(library: Library) -> list[str]:
    """Flip-flops that are not the smallest choice.

    Of each family of drives only the smallest is left. A plain flip-flop whose output is inverted is worth an inverter
    more, which the logic around it may absorb; if both together are still smaller than the smallest flip-flop whose
    output is not inverted, then those are passed over too.

    Parameters
    ----------
    library : Library

    Returns
    -------
    list of str
        Names, in the library's order; without cells that are marked ``dont_use`` anyway.
    """
    families = [family for family in library.families() if family[0].is_flip_flop]
    avoided = {cell.name for _, *larger in families for cell in larger}
    plain = [smallest for smallest, *_ in families if _is_plain(smallest)]
    true = [cell for cell in plain if _has_true_output(cell)]
    inverted = [cell for cell in plain if not _has_true_output(cell)]
    inverters = library.inverters()
    if true and inverted and inverters:
        cheapest = min(cell.area for cell in inverted) + inverters[0].area
        if cheapest < min(cell.area for cell in true):
            avoided.update(cell.name for cell in true)
    return [name for name in library.cells if name in avoided]


def _is_plain(cell: Cell) -> bool:
    """Whether the cell is a rising-edge flip-flop with a clock and one data pin."""
    assert cell.sequential is not None
    data = cell.sequential.next_state.names
    return cell.is_rising_edge and len(data) == 1 and set(cell.inputs) == {cell.clock_pin, *data}


def _has_true_output(cell: Cell) -> bool:
    """Whether an output of a plain flip-flop follows its data pin, rather than the inverse."""
    state = cell.sequential
    assert state is not None
    inverse = {state.inverse: parse_expression(f"!{state.state}")}
    stored = state.next_state.truth(state.next_state.names).astype(int)
    functions = [cell.pins[pin].function for pin in cell.outputs]
    shown = [function.truth([state.state], inverse)[stored] for function in functions if function is not None]
    return any(not low and high for low, high in shown)
