"""A netlist compiled for simulation without delays: steps over an array of rows, one for each net and register.

The row of a gated clock does not hold the clock's level. It is 1 in the cycles at whose end the gated clock has a
pulse: where the gate's enable is then 1, and its own clock has a pulse. Flip-flops on it keep their state otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from hwgen.cells.boolean import Expression
from hwgen.cells.cell import Cell, Sequential
from hwgen.errors import InputError
from hwgen.jit import compiled
from hwgen.netlist.graph import CellGroup, Netlist

__all__ = ["Program", "compile_netlist", "initial", "run", "state_names"]

_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def state_names(cell: Cell) -> list[str]:
    """Variables that determine a cell's state: its inputs; of a flip-flop its state instead of the clock.

    Of a clock gate its inputs but the clock: what its latch holds is what its enables were at the end of the cycle.
    """
    if cell.clock_gate is not None:
        return [name for name in cell.inputs if name != cell.clock_pin]
    if cell.sequential is None:
        return cell.inputs
    return [name for name in cell.inputs if name != cell.clock_pin] + [cell.sequential.state]


@dataclass
class _Gates:
    """Cells of one function and one level."""

    function: Expression
    inputs: np.ndarray  # (cells, inputs)
    rows: slice


_NOT, _AND, _OR, _XOR, _ZERO, _ONE = range(-1, -7, -1)
_CODES = {"!": _NOT, "&": _AND, "|": _OR, "^": _XOR, "0": _ZERO, "1": _ONE}


@dataclass
class _Logic:
    """Cells between flip-flops, in topological order, as programs for a stack machine."""

    rows: np.ndarray
    first_input: np.ndarray
    inputs: np.ndarray
    first_code: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, gates: list[_Gates]) -> _Logic:
        programs: dict[tuple[int | str, ...], int] = {}
        codes: list[int] = []
        rows, widths, inputs, starts = [], [], [], []
        for one in gates:
            program = one.function.program
            if program not in programs:
                programs[program] = len(codes)
                codes += [len(program), *(step if isinstance(step, int) else _CODES[step] for step in program)]
            count = len(one.inputs)
            rows.append(np.arange(one.rows.start, one.rows.stop))
            widths.append(np.full(count, one.inputs.shape[1]))
            inputs.append(one.inputs.ravel())
            starts.append(np.full(count, programs[program]))
        width = np.concatenate(widths)
        return cls(
            np.concatenate(rows).astype(np.int32),
            (np.cumsum(width) - width).astype(np.int32),
            np.concatenate(inputs).astype(np.int32),
            np.concatenate(starts).astype(np.int32),
            np.array(codes, np.int32),
        )

    def run(self, values: np.ndarray) -> None:
        _evaluate(values, self.rows, self.first_input, self.inputs, self.first_code, self.codes)


@compiled
def _evaluate(values, rows, first_input, inputs, first_code, codes):
    words = values.shape[1]
    longest = 1
    place = 0
    while place < len(codes):
        longest = max(longest, codes[place])
        place += codes[place] + 1
    if words == 1:
        _evaluate_word(values.reshape(-1), rows, first_input, inputs, first_code, codes, longest)
        return
    stack = np.empty((longest, words), np.uint64)
    for gate in range(len(rows)):
        begin = first_code[gate] + 1
        top = -1
        for place in range(begin, begin + codes[begin - 1]):
            code = codes[place]
            if code >= 0:
                top += 1
                source = inputs[first_input[gate] + code]
                for word in range(words):
                    stack[top, word] = values[source, word]
            elif code == _NOT:
                for word in range(words):
                    stack[top, word] = ~stack[top, word]
            elif code in (_ZERO, _ONE):
                top += 1
                for word in range(words):
                    stack[top, word] = _ONES if code == _ONE else np.uint64(0)
            else:
                top -= 1
                for word in range(words):
                    left, right = stack[top, word], stack[top + 1, word]
                    if code == _AND:
                        stack[top, word] = left & right
                    elif code == _OR:
                        stack[top, word] = left | right
                    else:
                        stack[top, word] = left ^ right
        target = rows[gate]
        for word in range(words):
            values[target, word] = stack[0, word]


@compiled
def _evaluate_word(values, rows, first_input, inputs, first_code, codes, longest):
    """As `_evaluate`, of one word each: loops over words would take longer than all else."""
    stack = np.empty(longest, np.uint64)
    for gate in range(len(rows)):
        begin, base = first_code[gate] + 1, first_input[gate]
        top = -1
        for place in range(begin, begin + codes[begin - 1]):
            code = codes[place]
            if code >= 0:
                top += 1
                stack[top] = values[inputs[base + code]]
            elif code == _NOT:
                stack[top] = ~stack[top]
            elif code == _AND:
                top -= 1
                stack[top] &= stack[top + 1]
            elif code == _OR:
                top -= 1
                stack[top] |= stack[top + 1]
            elif code == _XOR:
                top -= 1
                stack[top] ^= stack[top + 1]
            else:
                top += 1
                stack[top] = _ONES if code == _ONE else np.uint64(0)
        values[rows[gate]] = stack[0]


@dataclass
class _FlipFlops:
    """Flip-flops of one type and one level of their asynchronous inputs.

    ``gated`` has the rows of their clocks, or is None where those have a pulse in every cycle.
    """

    sequential: Sequential
    rows_of: dict[str, np.ndarray]
    state: slice
    outputs: list[tuple[Expression, slice]]
    gated: np.ndarray | None

    def run(self, values: np.ndarray) -> None:
        """Drive the outputs, after any asynchronous clear and preset."""
        sequential = self.sequential
        state = values[self.state]
        clear, preset = (
            np.zeros_like(state) if expression is None else self._evaluate(expression, values)
            for expression in (sequential.clear, sequential.preset)
        )
        if sequential.both[0]:
            state[:] = (state & ~clear) | preset
        else:
            state[:] = (state | preset) & ~clear
        inverse = ~state
        if sequential.both[0] == sequential.both[1]:
            inverse ^= clear & preset
        known = {sequential.state: state, sequential.inverse: inverse}
        for function, rows in self.outputs:
            values[rows] = self._evaluate(function, values, known)

    def following(self, rows: slice) -> _Gates:
        """What gives the state after the next edge, into ``rows``: where the clock has no pulse, the state itself."""
        own = np.arange(self.state.start, self.state.stop)
        names = self.sequential.next_state.names
        inputs = [self.rows_of.get(name, own) for name in names]
        program: list[int | str] = []
        for code in self.sequential.next_state.program:
            program.append(code)
            if isinstance(code, int) and names[code] == self.sequential.inverse:
                program.append("!")
        if self.gated is not None:
            pulse, state = len(inputs), len(inputs) + 1
            inputs += [self.gated, own]
            program += [pulse, "&", state, pulse, "!", "&", "|"]
        function = Expression(
            "state after the next edge", tuple(f"{number}" for number in range(len(inputs))), tuple(program)
        )
        return _Gates(function, np.array(inputs, np.int64).reshape(len(inputs), len(own)).T, rows)

    def _evaluate(
        self, expression: Expression, values: np.ndarray, known: Mapping[str, np.ndarray] | None = None
    ) -> np.ndarray:
        known = known or {}
        result = expression.evaluate(
            [known[name] if name in known else values[self.rows_of[name]] for name in expression.names]
        )
        return np.full_like(values[self.state], _ONES if result else 0) if isinstance(result, bool) else result


def _store(values: np.ndarray, rows: slice, result: Any) -> None:
    values[rows] = (_ONES if result else np.uint64(0)) if isinstance(result, bool) else result


@dataclass
class Program:
    """The netlist as a list of steps over an array of rows: one per net, then one per flip-flop.

    Attributes
    ----------
    row : numpy.ndarray
        Shape (n_nets,): row of each net.
    n_rows : int
    steps : list
        Gates and flip-flops in the order in which their values settle.
    flip_flops : list
        Those of the steps that hold state.
    states, following : numpy.ndarray, _Logic
        Rows of the states, and what finds the ones after the next edge, into rows behind all others; None without
        flip-flops.
    variables : list of numpy.ndarray
        For each of the netlist's groups, shape (k, cells): rows of the variables `state_names`.
    clocks : list of (numpy.ndarray or None)
        For each of the groups, shape (cells,): rows that are 1 where the cell's clock has a pulse at the end of the
        cycle. None where it has one at the end of every cycle, or the cells have no clock.
    """

    row: np.ndarray
    n_rows: int
    steps: list[_Logic | _FlipFlops]
    flip_flops: list[_FlipFlops]
    states: np.ndarray
    following: _Logic | None
    variables: list[np.ndarray]
    clocks: list[np.ndarray | None]


def _check_names(cell: Cell, pin: str, expression: Expression | None, allowed: set[str]) -> Expression:
    if expression is None:
        raise InputError(f"output {pin} of the cell {cell.name} has no function; expected one to simulate")
    for name in expression.names:
        if name not in allowed:
            raise InputError(
                f"{expression.text!r} of the cell {cell.name} uses {name}; expected its inputs {', '.join(cell.inputs)}"
            )
    return expression


def compile_netlist(netlist: Netlist) -> Program:
    """Order the netlist's cells, gates of one function and level together.

    Raises
    ------
    InputError
        A cell has no function, or there is a combinational loop.
    """
    level = netlist.level
    # Gates by function: programs are equal where functions differ only in the names of their pins.
    gates: dict[tuple[int | str, ...], tuple[Expression, list[np.ndarray], list[np.ndarray], list[np.ndarray]]]
    gates = {}
    flops: list[tuple[int, int, CellGroup, np.ndarray, list[Expression]]] = []

    def add_gate(function: Expression, cell: Cell, inputs: np.ndarray, outputs: np.ndarray, depth: np.ndarray) -> None:
        columns = [cell.inputs.index(name) for name in function.names]
        entry = gates.setdefault(function.program, (function, [], [], []))
        entry[1].append(inputs[:, columns])
        entry[2].append(outputs)
        entry[3].append(depth)

    for number, group in enumerate(netlist.groups):
        cell = group.cell
        allowed = set(cell.inputs)
        if cell.clock_pin is not None:
            behind = np.isin(group.inputs[:, cell.inputs.index(cell.clock_pin)], netlist.gated_nets)
        if cell.clock_gate is not None:
            # On the clock itself a pulse comes in every cycle.
            gate = cell.clock_gate
            for among, function in ((~behind, gate.opened), (behind, gate.pulse)):
                members = np.flatnonzero(among)
                outputs = group.outputs[members, 0]
                if len(members):
                    add_gate(function, cell, group.inputs[members], outputs, level[group.cells[members]])
            continue
        if cell.sequential is not None:
            sequential = cell.sequential
            allowed |= {sequential.state, sequential.inverse}
            for expression in (sequential.next_state, sequential.clear, sequential.preset):
                if expression is not None:
                    _check_names(cell, "", expression, allowed)
            functions = [_check_names(cell, pin, cell.pins[pin].function, allowed) for pin in cell.outputs]
            # By level, and those behind clock gates apart.
            kinds = 2 * level[group.cells] + behind
            for one in np.unique(kinds).tolist():
                flops.append((one // 2, number, group, np.flatnonzero(kinds == one), functions))
            continue
        for pin, nets in zip(cell.outputs, group.outputs.T, strict=True):
            function = _check_names(cell, pin, cell.pins[pin].function, allowed)
            add_gate(function, cell, group.inputs, nets, level[group.cells])
    row = np.full(netlist.n_nets, -1, dtype=np.int64)
    row[:2] = (0, 1)
    free = 2

    def place(nets: np.ndarray) -> slice:
        nonlocal free
        rows = slice(free, free + len(nets))
        row[nets] = np.arange(free, rows.stop)
        free = rows.stop
        return rows

    waiting: list[tuple[int, Expression, np.ndarray, slice]] = []
    for function, inputs, outputs, levels_of in gates.values():
        at = np.concatenate(levels_of)
        order = np.argsort(at, kind="stable")
        sources, nets = np.concatenate(inputs)[order], np.concatenate(outputs)[order]
        at = at[order]
        cuts = np.flatnonzero(np.diff(at)) + 1
        for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(at)], strict=True):
            waiting.append((int(at[first]), function, sources[first:last], place(nets[first:last])))
    placed: list[tuple[int, int, CellGroup, np.ndarray, list[tuple[Expression, slice]], slice]] = []
    state_rows = {
        number: np.zeros(len(group.cells), dtype=np.int64)
        for number, group in enumerate(netlist.groups)
        if group.cell.is_flip_flop
    }
    for one, number, group, members, functions in flops:
        driven = [(function, place(nets)) for function, nets in zip(functions, group.outputs[members].T, strict=True)]
        state = slice(free, free + len(members))
        free = state.stop
        state_rows[number][members] = np.arange(state.start, state.stop)
        placed.append((one, number, group, members, driven, state))
    rest = np.flatnonzero(row < 0)
    place(rest)
    clocks = [_clock_rows(netlist, group, row) for group in netlist.groups]
    steps: list[tuple[int, _Gates | _FlipFlops]] = []
    flip_flops = []
    for one, number, group, members, driven, state in placed:
        assert group.cell.sequential is not None
        pins = {name: row[group.inputs[members, i]] for i, name in enumerate(group.cell.inputs)}
        pulses = clocks[number]
        gated = None if pulses is None or np.all(pulses[members] == row[1]) else pulses[members]
        step = _FlipFlops(group.cell.sequential, pins, state, driven, gated)
        flip_flops.append(step)
        steps.append((one, step))
    steps += [(one, _Gates(function, row[sources], rows)) for one, function, sources, rows in waiting]
    steps.sort(key=lambda pair: pair[0])
    variables: list[np.ndarray] = []
    for number, group in enumerate(netlist.groups):
        cell = group.cell
        rows_of = [
            row[group.inputs[:, cell.inputs.index(name)]] if name in cell.inputs else state_rows[number]
            for name in state_names(cell)
        ]
        variables.append(np.array(rows_of).reshape(len(rows_of), len(group.cells)))
    joined: list[_Logic | _FlipFlops] = []
    for logic, together in groupby((step for _, step in steps), key=lambda step: isinstance(step, _Gates)):
        some = list(together)
        joined += [_Logic.of(some)] if logic else some  # type: ignore[arg-type]
    states = np.concatenate(
        [np.zeros(0, np.int64), *(np.arange(step.state.start, step.state.stop) for step in flip_flops)]
    )
    ends = free + np.cumsum([step.state.stop - step.state.start for step in flip_flops])
    begins = [free, *ends.tolist()]
    following = [step.following(slice(*ends)) for step, ends in zip(flip_flops, pairwise(begins), strict=True)]
    return Program(
        row, free, joined, flip_flops, states, _Logic.of(following) if following else None, variables, clocks
    )


def _clock_rows(netlist: Netlist, group: CellGroup, row: np.ndarray) -> np.ndarray | None:
    """As `Program.clocks`, of one group."""
    if group.cell.clock_pin is None:
        return None
    nets = group.inputs[:, group.cell.inputs.index(group.cell.clock_pin)]
    gated = np.isin(nets, netlist.gated_nets)
    return np.where(gated, row[nets], row[1]) if gated.any() else None


def initial(program: Program, words: int) -> np.ndarray:
    """Values before the first cycle: registers as if a 0 had been clocked in.

    Shape (rows, words), with room for all states behind the rows.
    """
    values = np.zeros((program.n_rows + len(program.states), words), dtype=np.uint64)
    values[1] = _ONES
    for step in program.flip_flops:
        names = step.sequential.next_state.names
        known = {step.sequential.inverse: True}
        start = step.sequential.next_state.evaluate([known.get(name, False) for name in names])
        _store(values, step.state, start)
    return values


def run(
    program: Program, values: np.ndarray, inputs: Sequence[tuple[np.ndarray, np.ndarray]], kept: np.ndarray
) -> np.ndarray:
    """Simulate some cycles.

    Parameters
    ----------
    program : Program
    values : numpy.ndarray
        Of the cycle before, or `initial`; advanced to the last cycle.
    inputs : sequence of (numpy.ndarray, numpy.ndarray)
        Rows of an input port, shape (width,), and their values, shape (width, cycles, words).
    kept : numpy.ndarray
        The rows that are asked for.

    Returns
    -------
    numpy.ndarray
        Shape (cycles, kept, words).
    """
    words = values.shape[1]
    cycles = inputs[0][1].shape[1]
    if program.following is None:
        # Without state, cycles are as independent as streams.
        wide = np.zeros((program.n_rows, cycles * words), dtype=np.uint64)
        wide[1] = _ONES
        for rows, source in inputs:
            wide[rows] = source.reshape(len(source), -1)
        for step in program.steps:
            step.run(wide)
        return np.ascontiguousarray(wide[kept].reshape(len(kept), cycles, words).swapaxes(0, 1))
    history = np.empty((cycles, len(kept), words), dtype=np.uint64)
    for cycle in range(cycles):
        for rows, source in inputs:
            values[rows] = source[:, cycle]
        for step in program.steps:
            step.run(values)
        history[cycle] = values[: program.n_rows] if len(kept) == program.n_rows else values[kept]
        program.following.run(values)
        values[program.states] = values[program.n_rows :]
    return history
