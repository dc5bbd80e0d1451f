"""Zero-delay gate-level simulation of a flat netlist, many streams of stimulus at once.

Each net holds 64 streams per machine word. The meaning of every cell comes from the Liberty file itself. Delays, and
with them glitches, are in `hwgen.power.glitch`.

Every flip-flop rises on the one clock, or on what clock gates let through of it. In each cycle inputs and registers
change, logic settles, and outputs are what they are just before the next edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hwgen.errors import InputError
from hwgen.jit import compiled, inlined
from hwgen.netlist.graph import Netlist
from hwgen.power.logic import Program, compile_netlist, initial, run

__all__ = ["MAX_STATE_BITS", "Activity", "respond", "simulate"]

MAX_STATE_BITS = 8
"""Cells with more inputs (and state) have no entry in `Activity.states`."""
_BLOCK_BYTES = 48 << 20


@dataclass
class Activity:
    """What a simulation saw, on average over streams and cycles.

    Attributes
    ----------
    toggles : numpy.ndarray
        Shape (n_nets,): transitions per cycle; 2 for the clock. Of a gated clock, 2 for each cycle at whose end it has
        a pulse.
    ones : numpy.ndarray
        Shape (n_nets,): probability of 1; 0.5 for the clock, a quarter of the toggles for a gated clock.
    states : list of (numpy.ndarray or None)
        Empty where they were not counted. For each of the netlist's groups, shape (cells, 2**k): probability of each
        combination of the k variables `hwgen.power.logic.state_names`, the first the lowest bit. None above
        `MAX_STATE_BITS` variables.
    outputs : dict of str to numpy.ndarray
        Shape (cycles, streams, width), uint8: each output port in every cycle, least significant bit first.
    cycles, streams : int
        As simulated, warm-up included.
    transitions : int
        Pairs of cycles that `toggles` is a mean over; 0 makes it all zero and useless for power.
    kept : numpy.ndarray
        Shape (cycles - warmup, streams, nets), uint8: values of the nets that were asked for.
    clocked : list of (numpy.ndarray or None)
        As `states`, but of each combination together with a pulse of the cell's clock at the end of the cycle. None
        for groups whose clock has a pulse at the end of every cycle, and for those without a clock; empty where no
        clock is gated.
    """

    toggles: np.ndarray = field(repr=False)
    ones: np.ndarray = field(repr=False)
    states: list[np.ndarray | None] = field(repr=False)
    outputs: dict[str, np.ndarray] = field(repr=False)
    cycles: int
    streams: int
    transitions: int
    kept: np.ndarray = field(repr=False, default_factory=lambda: np.zeros((0, 0, 0), np.uint8))
    clocked: list[np.ndarray | None] = field(repr=False, default_factory=list)


def simulate(
    netlist: Netlist,
    stimulus: Mapping[str, Any],
    warmup: int = 0,
    keep: np.ndarray | None = None,
    states: bool = True,
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
    states : bool
        Whether to count for `Activity.states` and `Activity.clocked`: toggles alone take less time.

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
    program = compile_netlist(netlist)
    words = -(-streams // 64)
    mask = _pack(np.ones((1, streams, 1), dtype=np.uint8), words)[0, 0]
    n_nets = netlist.n_nets
    toggles = np.zeros(program.n_rows, dtype=np.int64)
    ones = np.zeros(program.n_rows, dtype=np.int64)
    counted_states = _States(program) if states else None
    outputs: dict[str, np.ndarray] = {}
    previous = np.zeros((program.n_rows, words), np.uint64)
    kept = [np.zeros((0, streams, 0 if keep is None else len(keep)), np.uint8)]
    for first, history in _play(netlist, program, arrays, outputs):
        history &= mask
        if keep is not None:
            kept.append(_unpack(history[max(warmup - first, 0) :, program.row[keep]], streams))
        counted = history[max(warmup - first, 0) :]
        _tally(counted, first <= warmup, previous, ones, toggles)
        if counted_states is not None:
            counted_states.add(_dense(counted, streams))
    samples = (cycles - warmup) * streams
    transitions = cycles - warmup - 1
    mean_toggles = toggles[program.row] / max(transitions * streams, 1)
    mean_ones = ones[program.row] / samples
    mean_toggles[netlist.gated_nets] = 2 * mean_ones[netlist.gated_nets]
    mean_ones[netlist.gated_nets] /= 2
    if netlist.clock_net is not None:
        mean_toggles[netlist.clock_net], mean_ones[netlist.clock_net] = 2.0, 0.5
    assert len(mean_toggles) == n_nets
    shares, clocked = ([], []) if counted_states is None else counted_states.shares(samples)
    seen = np.concatenate(kept)
    return Activity(
        mean_toggles,
        mean_ones,
        shares,
        outputs,
        cycles,
        streams,
        transitions,
        seen,
        clocked if len(netlist.gated_nets) else [],
    )


class _States:
    """Counts for `Activity.states` and `Activity.clocked`."""

    def __init__(self, program: Program) -> None:
        self._clocks = program.clocks
        # A gated clock is one more variable, the lowest bit.
        self._rows = [
            variables if clocks is None else np.concatenate([clocks[None], variables])
            for variables, clocks in zip(program.variables, program.clocks, strict=True)
        ]
        self._subsets: list[np.ndarray | None] = [
            np.zeros((rows.shape[1], (1 << len(rows)) - 1), dtype=np.int64)
            if len(variables) <= MAX_STATE_BITS
            else None
            for rows, variables in zip(self._rows, program.variables, strict=True)
        ]

    def add(self, history: np.ndarray) -> None:
        """Count in values of all rows, shape (cycles, rows, words)."""
        for total, rows in zip(self._subsets, self._rows, strict=True):
            if total is not None:
                _count_subsets(history, rows, total)

    def shares(self, samples: int) -> tuple[list[np.ndarray | None], list[np.ndarray | None]]:
        """Probabilities of the states, and of those with a pulse of a gated clock, for each group of cells."""
        states: list[np.ndarray | None] = []
        clocked: list[np.ndarray | None] = []
        for counts, clocks in zip(self._subsets, self._clocks, strict=True):
            found = None if counts is None else _distribution(counts, samples)
            pulses = None if found is None or clocks is None else found[:, 1::2]
            states.append(found if found is None or pulses is None else found[:, 0::2] + pulses)
            clocked.append(pulses)
        return states, clocked


def respond(netlist: Netlist, stimulus: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What a netlist puts out, as `Activity.outputs` of `simulate`, without the counting, in less time."""
    arrays, _, _ = _check_stimulus(netlist, stimulus)
    outputs: dict[str, np.ndarray] = {}
    for _ in _play(netlist, compile_netlist(netlist), arrays, outputs, whole=False):
        pass
    return outputs


def _play(
    netlist: Netlist,
    program: Program,
    arrays: Mapping[str, np.ndarray],
    outputs: dict[str, np.ndarray],
    whole: bool = True,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run all cycles, some at a time: the first of them and values of shape (cycles, rows, words).

    The rows are all of them or, not ``whole``, those of the output ports. `outputs` is filled, whatever is done
    with the values.
    """
    cycles, streams = next(iter(arrays.values())).shape[:2]
    words = -(-streams // 64)
    packed = [(program.row[netlist.ports[name].nets], _pack(values, words)) for name, values in arrays.items()]
    leaving = {port.name: program.row[port.nets] for port in netlist.ports.values() if port.direction == "output"}
    for name, places in leaving.items():
        outputs[name] = np.empty((cycles, streams, len(places)), dtype=np.uint8)
    kept = np.arange(program.n_rows) if whole else np.unique(np.concatenate([*leaving.values(), [0]]))
    values = initial(program, words)
    block = max(1, min(cycles, _BLOCK_BYTES // (8 * words * program.n_rows)))
    for first in range(0, cycles, block):
        last = min(first + block, cycles)
        history = run(program, values, [(rows, source[:, first:last]) for rows, source in packed], kept)
        for name, result in outputs.items():
            result[first:last] = _unpack(history[:, np.searchsorted(kept, leaving[name])], streams)
        yield first, history


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


def _pack(values: np.ndarray, words: int) -> np.ndarray:
    """Bits (cycles, streams, width) to words (width, cycles, words)."""
    cycles, _, width = values.shape
    packed = np.packbits(values.transpose(2, 0, 1), axis=2, bitorder="little")
    filled = np.zeros((width, cycles, 8 * words), dtype=np.uint8)
    filled[:, :, : packed.shape[2]] = packed
    return filled.view("<u8").astype(np.uint64, copy=False)


def _unpack(words: np.ndarray, streams: int) -> np.ndarray:
    """Words (cycles, width, words) to bits (cycles, streams, width)."""
    data = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    bits = np.unpackbits(data, axis=2, bitorder="little")[:, :, :streams]
    return bits.swapaxes(1, 2)


_ODD, _PAIRS, _NIBBLES, _BYTES = (np.uint64(0x0101_0101_0101_0101 * part) for part in (0x55, 0x33, 0x0F, 0x01))


@inlined
def _ones(word):
    """Number of ones in a word."""
    pairs = word - ((word >> np.uint64(1)) & _ODD)
    nibbles = (pairs & _PAIRS) + ((pairs >> np.uint64(2)) & _PAIRS)
    return np.int64((((nibbles + (nibbles >> np.uint64(4))) & _NIBBLES) * _BYTES) >> np.uint64(56))


@compiled
def _tally(history, begins, previous, ones, toggles):
    """Add up ones and transitions of every row; ``previous`` has the values of the cycle before, if any was."""
    cycles, rows, words = history.shape
    for cycle in range(cycles):
        for row in range(rows):
            for word in range(words):
                now = history[cycle, row, word]
                ones[row] += _ones(now)
                if cycle > 0 or not begins:
                    toggles[row] += _ones(now ^ previous[row, word])
                previous[row, word] = now


def _dense(history: np.ndarray, streams: int) -> np.ndarray:
    """The same ones in fewer words where a word has room for several cycles, shape (cycles, rows, words)."""
    together = 64 // streams
    if together < 2:
        return history
    found = np.zeros((-(-len(history) // together), *history.shape[1:]), np.uint64)
    for place in range(together):
        part = history[place::together]
        found[: len(part)] |= part << np.uint64(place * streams)
    return found


@compiled
def _count_subsets(history, variables, counts):
    """Add up how often all variables of each subset are 1.

    ``variables`` has the rows, shape (k, cells), and ``counts`` the shape (cells, 2**k - 1), without the empty subset.
    """
    cycles, _, words = history.shape
    k, cells = variables.shape
    products = np.empty(1 << k, np.uint64)
    for cycle in range(cycles):
        for cell in range(cells):
            for at in range(words):
                products[0] = ~np.uint64(0)
                for bit in range(k):
                    word = history[cycle, variables[bit, cell], at]
                    for subset in range(1 << bit):
                        product = products[subset] & word
                        products[subset + (1 << bit)] = product
                        counts[cell, subset + (1 << bit) - 1] += _ones(product)


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
