"""Zero-delay gate-level simulation of a flat netlist, many streams of stimulus at once.

Each net holds 64 streams per machine word. The meaning of every cell comes from the Liberty file itself. Delays, and
with them glitches, are in `hwgen.power.glitch`.

Every flip-flop rises on the one clock. In each cycle inputs and registers change, logic settles, and outputs
are what they are just before the next edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from hwgen.cells.boolean import Expression
from hwgen.cells.library import Cell, Sequential
from hwgen.errors import InputError
from hwgen.jit import compiled
from hwgen.netlist.graph import CellGroup, Netlist

__all__ = ["MAX_STATE_BITS", "Activity", "respond", "simulate", "state_names"]

MAX_STATE_BITS = 8
"""Cells with more inputs (and state) have no entry in `Activity.states`."""

_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_BLOCK_BYTES = 48 << 20


@dataclass
class Activity:
    """What a simulation saw, on average over streams and cycles.

    Attributes
    ----------
    toggles : numpy.ndarray
        Shape (n_nets,): transitions per cycle; 2 for the clock.
    ones : numpy.ndarray
        Shape (n_nets,): probability of 1; 0.5 for the clock.
    states : list of (numpy.ndarray or None)
        For each of the netlist's groups, shape (cells, 2**k): probability of each combination of the k
        variables `state_names`, the first the lowest bit. None above `MAX_STATE_BITS` variables.
    outputs : dict of str to numpy.ndarray
        Shape (cycles, streams, width), uint8: each output port in every cycle, least significant bit first.
    cycles, streams : int
        As simulated, warm-up included.
    transitions : int
        Pairs of cycles that `toggles` is a mean over; 0 makes it all zero and useless for power.
    kept : numpy.ndarray
        Shape (cycles - warmup, streams, nets), uint8: values of the nets that were asked for.
    """

    toggles: np.ndarray = field(repr=False)
    ones: np.ndarray = field(repr=False)
    states: list[np.ndarray | None] = field(repr=False)
    outputs: dict[str, np.ndarray] = field(repr=False)
    cycles: int
    streams: int
    transitions: int
    kept: np.ndarray = field(repr=False, default_factory=lambda: np.zeros((0, 0, 0), np.uint8))


def state_names(cell: Cell) -> list[str]:
    """Variables that determine a cell's state: its inputs; of a flip-flop its state instead of the clock."""
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


@dataclass
class _FlipFlops:
    """Flip-flops of one type and one level of their asynchronous inputs."""

    sequential: Sequential
    rows_of: dict[str, np.ndarray]
    state: slice
    outputs: list[tuple[Expression, slice]]

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

    def clock(self, values: np.ndarray) -> np.ndarray:
        """State after the next edge."""
        state = values[self.state]
        known = {self.sequential.state: state, self.sequential.inverse: ~state}
        return self._evaluate(self.sequential.next_state, values, known)

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
class _Program:
    """The netlist as a list of steps over an array of rows: one per net, then one per flip-flop."""

    row: np.ndarray
    n_rows: int
    steps: list[_Logic | _FlipFlops]
    flip_flops: list[_FlipFlops]
    # Rows of each group's state variables, shape (k, cells).
    variables: list[np.ndarray]


def _check_names(cell: Cell, pin: str, expression: Expression | None, allowed: set[str]) -> Expression:
    if expression is None:
        raise InputError(f"output {pin} of the cell {cell.name} has no function; expected one to simulate")
    for name in expression.names:
        if name not in allowed:
            raise InputError(
                f"{expression.text!r} of the cell {cell.name} uses {name}; expected its inputs {', '.join(cell.inputs)}"
            )
    return expression


def _compile(netlist: Netlist) -> _Program:
    level = netlist.level
    # Gates by function: programs are equal where functions differ only in the names of their pins.
    gates: dict[tuple[int | str, ...], tuple[Expression, list[np.ndarray], list[np.ndarray], list[np.ndarray]]]
    gates = {}
    flops: list[tuple[int, int, CellGroup, np.ndarray, list[Expression]]] = []
    for number, group in enumerate(netlist.groups):
        cell = group.cell
        allowed = set(cell.inputs)
        if cell.sequential is not None:
            sequential = cell.sequential
            allowed |= {sequential.state, sequential.inverse}
            for expression in (sequential.next_state, sequential.clear, sequential.preset):
                if expression is not None:
                    _check_names(cell, "", expression, allowed)
            functions = [_check_names(cell, pin, cell.pins[pin].function, allowed) for pin in cell.outputs]
            levels = level[group.cells]
            for one in np.unique(levels).tolist():
                flops.append((one, number, group, np.flatnonzero(levels == one), functions))
            continue
        for pin, nets in zip(cell.outputs, group.outputs.T, strict=True):
            function = _check_names(cell, pin, cell.pins[pin].function, allowed)
            columns = [cell.inputs.index(name) for name in function.names]
            entry = gates.setdefault(function.program, (function, [], [], []))
            entry[1].append(group.inputs[:, columns])
            entry[2].append(nets)
            entry[3].append(level[group.cells])
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
        if group.cell.sequential is not None
    }
    for one, number, group, members, functions in flops:
        driven = [(function, place(nets)) for function, nets in zip(functions, group.outputs[members].T, strict=True)]
        state = slice(free, free + len(members))
        free = state.stop
        state_rows[number][members] = np.arange(state.start, state.stop)
        placed.append((one, number, group, members, driven, state))
    rest = np.flatnonzero(row < 0)
    place(rest)
    steps: list[tuple[int, _Gates | _FlipFlops]] = []
    flip_flops = []
    for one, _, group, members, driven, state in placed:
        assert group.cell.sequential is not None
        pins = {name: row[group.inputs[members, i]] for i, name in enumerate(group.cell.inputs)}
        step = _FlipFlops(group.cell.sequential, pins, state, driven)
        flip_flops.append(step)
        steps.append((one, step))
    steps += [(one, _Gates(function, row[sources], rows)) for one, function, sources, rows in waiting]
    steps.sort(key=lambda pair: pair[0])
    variables = []
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
    return _Program(row, free, joined, flip_flops, variables)


def _pack(values: np.ndarray, words: int) -> np.ndarray:
    """Bits (cycles, streams, width) to words (width, cycles, words)."""
    cycles, _, width = values.shape
    packed = np.packbits(values.transpose(2, 0, 1), axis=2, bitorder="little")
    filled = np.zeros((width, cycles, 8 * words), dtype=np.uint8)
    filled[:, :, : packed.shape[2]] = packed
    return filled.view("<u8").astype(np.uint64, copy=False)


def _unpack(words: np.ndarray, streams: int) -> np.ndarray:
    """Words (width, cycles, words) to bits (cycles, streams, width)."""
    data = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    bits = np.unpackbits(data, axis=2, bitorder="little")[:, :, :streams]
    return bits.transpose(1, 2, 0)


if hasattr(np, "bitwise_count"):

    def _count(words: np.ndarray) -> np.ndarray:
        """Number of ones in each row of a 2-D array."""
        return np.bitwise_count(words).sum(axis=1, dtype=np.int64)

else:  # numpy 1
    _BITS = np.array([bin(i).count("1") for i in range(1 << 16)], dtype=np.uint8)

    def _count(words: np.ndarray) -> np.ndarray:
        """Number of ones in each row of a 2-D array."""
        halves = np.ascontiguousarray(words).view(np.uint16)
        return _BITS[halves].sum(axis=1, dtype=np.int64)


def _count_subsets(history: np.ndarray, variables: np.ndarray) -> np.ndarray:
    """How often all variables of each subset are 1: shape (cells, 2**k - 1), without the empty subset."""
    k, cells = variables.shape
    counts = np.empty((cells, (1 << k) - 1), dtype=np.int64)
    # Slices that stay in the cache: the words are read many times.
    step = max(1, (1 << 17) // (history.shape[1] * 8))
    for first in range(0, cells, step):
        part = slice(first, first + step)
        products: list[np.ndarray] = []
        for bit in range(k):
            word = history[variables[bit, part]]
            products += [word, *(product & word for product in products)]
        for subset, product in enumerate(products):
            counts[part, subset] = _count(product)
    return counts


def _distribution(subsets: np.ndarray, samples: int) -> np.ndarray:
    """Probabilities of the 2**k combinations, from the counts of `_count_subsets`."""
    exact = np.concatenate([np.full((len(subsets), 1), samples, dtype=np.int64), subsets], axis=1)
    size = exact.shape[1]
    bit = 1
    while bit < size:
        view = exact.reshape(len(exact), size // (2 * bit), 2, bit)
        view[:, :, 0] -= view[:, :, 1]
        bit *= 2
    return exact / max(samples, 1)


def _check_stimulus(netlist: Netlist, stimulus: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], int, int]:
    wanted = {
        port.name: port
        for port in netlist.ports.values()
        if port.direction == "input" and port.name != netlist.clock_port
    }
    for name in stimulus:
        if name not in wanted:
            raise InputError(f"stimulus for {name}, which is no data input of {netlist.top}; expected {_few(wanted)}")
    missing = [name for name in wanted if name not in stimulus]
    if missing:
        raise InputError(f"no stimulus for the input {missing[0]} of {netlist.top}; expected every data input")
    if not wanted:
        raise InputError(f"{netlist.top} has no data input; expected one to simulate")
    arrays: dict[str, np.ndarray] = {}
    shape: tuple[int, ...] | None = None
    for name, port in wanted.items():
        values = np.asarray(stimulus[name])
        if values.ndim == 2 and len(port.nets) == 1:
            values = values[:, :, None]
        shape = shape or values.shape[:2]
        if values.ndim != 3 or values.shape != (*shape, len(port.nets)) or 0 in values.shape[:2]:
            raise InputError(
                f"stimulus for {name} has the shape {values.shape}; expected "
                f"(cycles, streams, {len(port.nets)}), the first two alike for every input"
            )
        if values.dtype != np.bool_ and (values.dtype.kind not in "iu" or np.any((values != 0) & (values != 1))):
            raise InputError(f"stimulus for {name} holds other values than 0 and 1; expected bits")
        arrays[name] = values.astype(np.uint8)
    assert shape is not None
    return arrays, shape[0], shape[1]


def _few(names: Mapping[str, Any]) -> str:
    shown = list(names)
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")


def simulate(
    netlist: Netlist, stimulus: Mapping[str, Any], warmup: int = 0, keep: np.ndarray | None = None
) -> Activity:
    """Simulate a netlist.

    Parameters
    ----------
    netlist : Netlist
        Sequential or purely combinational.
    stimulus : mapping of str to array
        For every input port but the clock: bool or 0/1 integers, shape (cycles, streams, width), least
        significant bit first; (cycles, streams) will do for one bit. Streams are independent of each other.
    warmup : int
        Cycles at the beginning that count for `Activity.outputs` only.
    keep : numpy.ndarray, optional
        Nets for `Activity.kept`.

    Returns
    -------
    Activity

    Raises
    ------
    InputError
        If the stimulus does not fit the ports, a cell has no function, or there is a combinational loop.

    Notes
    -----
    A flip-flop starts in the state it would take with all its inputs 0: as if a 0 had been clocked in, also
    where the cell stores or puts out the inverse.
    """
    arrays, cycles, streams = _check_stimulus(netlist, stimulus)
    if not 0 <= warmup < cycles:
        raise InputError(f"warmup is {warmup}; expected less than the {cycles} cycles of the stimulus")
    program = _compile(netlist)
    words = -(-streams // 64)
    mask = _pack(np.ones((1, streams, 1), dtype=np.uint8), words)[0, 0]
    n_nets = netlist.n_nets
    toggles = np.zeros(program.n_rows, dtype=np.int64)
    ones = np.zeros(program.n_rows, dtype=np.int64)
    subsets: list[np.ndarray | None] = [
        np.zeros((variables.shape[1], (1 << len(variables)) - 1), dtype=np.int64)
        if len(variables) <= MAX_STATE_BITS
        else None
        for variables in program.variables
    ]
    outputs: dict[str, np.ndarray] = {}
    previous: np.ndarray | None = None
    kept = [np.zeros((0, streams, 0 if keep is None else len(keep)), np.uint8)]
    for first, history in _play(netlist, program, arrays, outputs):
        history &= mask
        if keep is not None:
            kept.append(_unpack(history[program.row[keep], max(warmup - first, 0) :], streams))
        counted = history[:, max(warmup - first, 0) :].reshape(program.n_rows, -1)
        if counted.shape[1] == 0:
            continue
        ones += _count(counted)
        if previous is not None:
            toggles += _count(previous ^ counted[:, :words])
        if counted.shape[1] > words:
            toggles += _count(counted[:, words:] ^ counted[:, :-words])
        previous = counted[:, -words:].copy()
        for total, variables in zip(subsets, program.variables, strict=True):
            if total is not None:
                total += _count_subsets(counted, variables)
    samples = (cycles - warmup) * streams
    transitions = cycles - warmup - 1
    mean_toggles = toggles[program.row] / max(transitions * streams, 1)
    mean_ones = ones[program.row] / samples
    if netlist.clock_net is not None:
        mean_toggles[netlist.clock_net], mean_ones[netlist.clock_net] = 2.0, 0.5
    assert len(mean_toggles) == n_nets
    states = [None if counts is None else _distribution(counts, samples) for counts in subsets]
    return Activity(mean_toggles, mean_ones, states, outputs, cycles, streams, transitions, np.concatenate(kept))


def respond(netlist: Netlist, stimulus: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What a netlist puts out, as `Activity.outputs` of `simulate`, without the counting, in less time."""
    arrays, _, _ = _check_stimulus(netlist, stimulus)
    outputs: dict[str, np.ndarray] = {}
    for _ in _play(netlist, _compile(netlist), arrays, outputs, whole=False):
        pass
    return outputs


def _play(
    netlist: Netlist,
    program: _Program,
    arrays: Mapping[str, np.ndarray],
    outputs: dict[str, np.ndarray],
    whole: bool = True,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run all cycles, some at a time: the first of them and values of shape (rows, cycles, words).

    The rows are all of them or, not ``whole``, those of the output ports. `outputs` is filled, whatever is done
    with the values.
    """
    cycles, streams = next(iter(arrays.values())).shape[:2]
    words = -(-streams // 64)
    packed = {name: _pack(values, words) for name, values in arrays.items()}
    rows = {name: program.row[netlist.ports[name].nets] for name in arrays}
    leaving = {port.name: program.row[port.nets] for port in netlist.ports.values() if port.direction == "output"}
    for name, places in leaving.items():
        outputs[name] = np.empty((cycles, streams, len(places)), dtype=np.uint8)
    kept = np.arange(program.n_rows) if whole else np.unique(np.concatenate([*leaving.values(), [0]]))
    values = _initial(program, words)
    block = max(1, min(cycles, _BLOCK_BYTES // (8 * words * program.n_rows)))
    for first in range(0, cycles, block):
        last = min(first + block, cycles)
        history = _run(program, values, packed, rows, first, last, kept)
        for name, result in outputs.items():
            result[first:last] = _unpack(history[np.searchsorted(kept, leaving[name])], streams)
        yield first, history


def _initial(program: _Program, words: int) -> np.ndarray:
    values = np.zeros((program.n_rows, words), dtype=np.uint64)
    values[1] = _ONES
    for step in program.flip_flops:
        names = step.sequential.next_state.names
        known = {step.sequential.inverse: True}
        start = step.sequential.next_state.evaluate([known.get(name, False) for name in names])
        _store(values, step.state, start)
    return values


def _run(
    program: _Program,
    values: np.ndarray,
    packed: Mapping[str, np.ndarray],
    rows: Mapping[str, np.ndarray],
    first: int,
    last: int,
    kept: np.ndarray,
) -> np.ndarray:
    """Values of the rows `kept` from `first` to `last`, shape (rows, cycles, words); advances the state."""
    cycles, words = last - first, values.shape[1]
    if not program.flip_flops:
        # Without state, cycles are as independent as streams.
        wide = np.zeros((program.n_rows, cycles * words), dtype=np.uint64)
        wide[1] = _ONES
        for name, source in packed.items():
            wide[rows[name]] = source[:, first:last].reshape(len(source), -1)
        for step in program.steps:
            step.run(wide)
        return wide[kept].reshape(len(kept), cycles, words)
    history = np.empty((len(kept), cycles, words), dtype=np.uint64)
    for cycle in range(cycles):
        for name, source in packed.items():
            values[rows[name]] = source[:, first + cycle]
        for step in program.steps:
            step.run(values)
        history[:, cycle] = values[kept]
        following = [step.clock(values) for step in program.flip_flops]
        for step, state in zip(program.flip_flops, following, strict=True):
            values[step.state] = state
    return history
