"""How long an edge takes through a cell, by the values of the cell's inputs.

A library may give several delays from a pin to an output, each with the condition under which it holds, and one without
a condition for all other states. An output may also be timed from another output of the cell: in ASAP7 the sum of an
adder follows its carry wherever both change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hwgen.cells.boolean import Expression
from hwgen.cells.cell import Cell
from hwgen.cells.library import Library
from hwgen.cells.tables import Table
from hwgen.timing.arcs import FALL, RISE, cell_arcs

__all__ = ["Step", "Way", "Ways", "clocked_ways", "ways_of"]


class Step(NamedTuple):
    """An edge of an output that an edge of another pin causes.

    Attributes
    ----------
    source, cause
        The other pin, and its edge.
    target, edge
        The output, and its edge.
    delay
        Of the slew at the one and of the load at the other.
    when
        The condition; None for all states that no other arc has a condition for.
    """

    source: str
    cause: int
    target: str
    edge: int
    delay: Table
    when: Expression | None


Way = tuple[Step, ...]
"""From an input to an output: one step, or more where outputs follow one another."""


class Ways(NamedTuple):
    """The ways from each input to one output.

    Attributes
    ----------
    inputs
        The inputs that its function has.
    choices
        Sets of ways. The mean of a set is how long an edge takes.
    pick
        Shape (inputs, rows): which of the sets an edge of an input takes, by the row of the truth table behind it; the
        first input is the lowest bit.
    """

    inputs: list[str]
    choices: list[tuple[Way, ...]]
    pick: np.ndarray


_Steps = Mapping[tuple[str, str], Sequence[Step]]


def ways_of(library: Library, name: str, output: str) -> Ways:
    """The ways to an output of a cell without state; where an edge leaves the output as it is, `pick` says nothing."""
    cell = library.cells[name]
    function = cell.pins[output].function
    assert function is not None
    inputs = [pin for pin in cell.inputs if pin in function.names]
    steps, truth = _steps(cell), function.truth(inputs)
    choices: list[tuple[Way, ...]] = []
    numbers: dict[tuple[tuple[int, ...], ...], int] = {}
    pick = np.zeros((len(inputs), 1 << len(inputs)), dtype=np.uint16)
    for place, pin in enumerate(inputs):
        for row in np.flatnonzero(truth != truth[np.arange(len(truth)) ^ 1 << place]).tolist():
            after = {each: bool(row >> number & 1) for number, each in enumerate(inputs)}
            before = {**after, pin: not after[pin]}
            ways = tuple(_through(cell, steps, output, pin, before, after))
            of = tuple(tuple(map(id, way)) for way in ways)
            if of not in numbers:
                numbers[of] = len(choices)
                choices.append(ways)
            pick[place, row] = numbers[of]
    return Ways(inputs, choices, pick)


def clocked_ways(cell: Cell, output: str, edge: int) -> list[Way]:
    """The ways from the clock pin of a flip-flop to an edge of an output; their mean is how long it takes."""
    return _from_clock(cell, _steps(cell), output, edge)


def _steps(cell: Cell) -> _Steps:
    """All steps, by the pins at which they begin and end."""
    found: dict[tuple[str, str], list[Step]] = defaultdict(list)
    pins = [*cell.inputs, *cell.outputs]
    for arc in cell_arcs(cell):
        source, target = pins[arc.source], cell.outputs[arc.target]
        found[source, target].append(Step(source, arc.cause, target, arc.edge, arc.delay, arc.when))
    return found


def _from_clock(cell: Cell, steps: _Steps, output: str, edge: int) -> list[Way]:
    followed = [
        (*way, step)
        for other in cell.outputs
        for step in steps.get((other, output), ())
        if step.edge == edge
        for way in _from_clock(cell, steps, other, step.cause)
    ]
    alike = [step for step in steps.get((cell.clock_pin or "", output), ()) if step.edge == edge]
    return followed or [(step,) for step in [step for step in alike if step.when is not None] or alike]


def _through(
    cell: Cell, steps: _Steps, output: str, pin: str, before: Mapping[str, bool], after: Mapping[str, bool]
) -> list[Way]:
    """The ways of an edge of an input to an output, which may follow other outputs that it changes."""
    cause, edge = _edge(after[pin]), _edge(_value(cell, output, after))
    followed = []
    for other in cell.outputs:
        own = steps.get((other, output), ())
        if own and _value(cell, other, before) != _value(cell, other, after):
            last = _fitting(own, _edge(_value(cell, other, after)), edge, before, after)
            followed += [(*way, step) for way in _through(cell, steps, other, pin, before, after) for step in last]
    if followed:
        return followed
    direct = steps.get((pin, output), ())
    return [(step,) for step in _fitting(direct, cause, edge, after) or direct]


def _edge(value: bool | None) -> int:
    return RISE if value else FALL


def _value(cell: Cell, output: str, state: Mapping[str, bool]) -> bool | None:
    """Value of an output; None where its inputs are not all known."""
    function = cell.pins[output].function
    return None if function is None else _holds(function, state)


def _holds(expression: Expression, state: Mapping[str, bool]) -> bool | None:
    """Value of an expression; None where it has other names."""
    if not {*expression.names} <= state.keys():
        return None
    return bool(expression.evaluate([state[name] for name in expression.names]))


def _fitting(steps: Sequence[Step], cause: int, edge: int, *states: Mapping[str, bool]) -> list[Step]:
    """Of steps with these edges those whose condition holds in the first of some states that any holds in.

    Else those without a condition; where the library has none, all of them.
    """
    alike = [step for step in steps if (step.cause, step.edge) == (cause, edge)]
    for state in states:
        if found := [step for step in alike if step.when is not None and _holds(step.when, state)]:
            return found
    return [step for step in alike if step.when is None] or alike
