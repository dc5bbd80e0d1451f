"""Gate-level simulation with delays: every transition of every net, glitches included.

The values that a cycle begins and ends with come from the simulation without delays; only flip-flop outputs and
input ports change at the clock edge, so within a cycle the logic between them is combinational, and one cycle is
one pass over its cells in topological order. A cell merges the transitions of its inputs in order of time and puts
out its own, each a delay after the one that caused it: the arc's by pin and edge, at the slews and loads of the
timing analysis, the mean over its conditions. Delays are inertial: a pulse that would end before it has come out
is swallowed (IEEE 1364-2005, 6.1.3). Wires have no delay, and inputs change with the clock edge.

``kyupy`` does such work for a fixed set of primitives with up to four inputs and one output, which leaves out
adder cells and everything with five inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hwgen.cells.cell import Cell, Pin
from hwgen.cells.tables import Table
from hwgen.errors import InputError
from hwgen.jit import compiled
from hwgen.netlist.graph import Netlist
from hwgen.power.activity import Activity
from hwgen.timing.analysis import Timing

__all__ = ["MAX_INPUTS", "Event", "Gates", "sources", "with_glitches"]

MAX_INPUTS = 12
"""Cells with more inputs are not simulated."""

Event = tuple[int, float, int]
"""Cycle, time in ns after its clock edge, and net of a transition."""


def sources(netlist: Netlist) -> np.ndarray:
    """Nets that change at the clock edge: input ports but the clock, and outputs of flip-flops; increasing.

    Gated clocks are none: their gates let whole pulses through, whatever the enables do before.
    """
    found = [port.nets for port in netlist.ports.values() if port.direction == "input"]
    found += [group.outputs.ravel() for group in netlist.groups if group.cell.is_flip_flop]
    nets = np.unique(np.concatenate([*found, np.zeros(0, np.int64)]))
    return nets[(nets > 1) & (nets != (-1 if netlist.clock_net is None else netlist.clock_net))]


def _causes(cell: Cell, pin: Pin, name: str) -> list[tuple[int, int, Table]]:
    """(input edge, output edge, delay table) of the arcs from an input to an output; edge 0 rises."""
    found = []
    for arc in pin.arcs:
        if arc.related_pin != name:
            continue
        flips = {"positive_unate": (0,), "negative_unate": (1,)}.get(arc.sense, (0, 1))
        for edge, table in enumerate(arc.delay):
            if table is None or arc.kind == f"combinational_{('fall', 'rise')[edge]}":
                continue
            if cell.sequential is not None:
                flips = (edge,)  # the edge is the clock's, which is rising
            found += [(edge ^ flip, edge, table) for flip in flips]
    return found


class _Sources(NamedTuple):
    """What changes at the clock edge.

    Attributes
    ----------
    nets : numpy.ndarray
        Shape (sources,).
    delays : numpy.ndarray
        Shape (sources, 2), float32: ns from the edge to the rising and to the falling net; 0 at ports.
    """

    nets: np.ndarray
    delays: np.ndarray


class _Cells(NamedTuple):
    """Outputs of the cells between flip-flops, in topological order. Narrow types, so that they stay in the cache.

    Attributes
    ----------
    nets, first, width : numpy.ndarray
        Shape (outputs,), int32: net, place of its first input in `inputs` and `delays`, and number of inputs.
    inputs : numpy.ndarray
        Shape (places,), int32: nets.
    delays : numpy.ndarray
        Shape (places, 4), float32: ns by input edge and output edge; rise to rise, to fall, fall to rise, to fall.
    truth : numpy.ndarray
        Shape (outputs,), int32: where the truth table begins in `tables`.
    tables : numpy.ndarray
        uint8: truth tables one after another, the first input the lowest bit.
    """

    nets: np.ndarray
    first: np.ndarray
    width: np.ndarray
    inputs: np.ndarray
    delays: np.ndarray
    truth: np.ndarray
    tables: np.ndarray


class _Transitions(NamedTuple):
    """Where the transitions of each net lie in a pool of times, and how many there are; shape (n_nets,), int32."""

    start: np.ndarray
    length: np.ndarray


@dataclass
class Gates:
    """A netlist made ready for simulation with delays.

    Parameters
    ----------
    netlist, timing
        The netlist, and its slews and loads.

    Attributes
    ----------
    sources : numpy.ndarray
        The nets whose values the simulation is given, see `sources`.

    Raises
    ------
    InputError
        A cell has too many inputs, or an output without function.
    """

    netlist: Netlist
    timing: Timing
    sources: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.sources = sources(self.netlist)

    @cached_property
    def _clocked(self) -> _Sources:
        """The sources with their delays from clock to output and along the wire."""
        found = self.timing.wire_delay.copy()
        for group in self.netlist.groups:
            cell = group.cell
            if cell.clock_pin is None or cell.clock_gate is not None:
                continue
            for name, nets in zip(cell.outputs, group.outputs.T, strict=True):
                for edge in (0, 1):
                    tables = [table for _, to, table in _causes(cell, cell.pins[name], cell.clock_pin) if to == edge]
                    slew, load = self.timing.clock_slew, self.timing.load[nets, edge]
                    if tables:
                        found[nets, edge] += np.mean([table(slew, load) for table in tables], axis=0)
        return _Sources(self.sources, found[self.sources].astype(np.float32))

    @cached_property
    def _cells(self) -> _Cells:
        level = self.netlist.level
        keys, nets, widths, inputs, truths, delays = [], [], [], [], [], []
        tables: list[np.ndarray] = []
        for group in self.netlist.groups:
            cell = group.cell
            if cell.sequential is not None or cell.clock_gate is not None:
                continue
            if len(cell.inputs) > MAX_INPUTS:
                raise InputError(
                    f"the cell {cell.name} has {len(cell.inputs)} inputs; at most {MAX_INPUTS} can be simulated with"
                    " delays, leave it out with --dont-use"
                )
            for name, driven in zip(cell.outputs, group.outputs.T, strict=True):
                function = cell.pins[name].function
                if function is None:
                    raise InputError(f"output {name} of the cell {cell.name} has no function; expected one")
                used = [pin for pin in cell.inputs if pin in function.names]
                truths.append(np.full(len(driven), sum(map(len, tables))))
                tables.append(function.truth(used).astype(np.uint8))
                own = np.zeros((len(driven), len(used), 2, 2))
                for place, pin in enumerate(used):
                    source = group.inputs[:, cell.inputs.index(pin)]
                    own[:, place] = self._delays(cell, name, pin, source, driven)
                own += self.timing.wire_delay[driven][:, None, None, :]
                columns = [cell.inputs.index(pin) for pin in used]
                keys.append(level[group.cells])
                nets.append(driven)
                widths.append(np.full(len(driven), len(used)))
                inputs.append(group.inputs[:, columns])
                delays.append(own)
        empty = np.zeros(0, np.int64)
        order = np.argsort(np.concatenate([*keys, empty]), kind="stable")
        width = np.concatenate([*widths, empty])
        first = np.concatenate([[0], np.cumsum(width)[:-1]]) if len(width) else empty
        flat_inputs = np.concatenate([*(part.ravel() for part in inputs), empty])
        flat_delays = np.concatenate([*(part.reshape(-1, 4) for part in delays), np.zeros((0, 4))])
        # Tables go below 0 at small loads behind slow slews.
        flat_delays = np.maximum(flat_delays, 0.0)
        return _Cells(
            nets=np.concatenate([*nets, empty])[order].astype(np.int32),
            first=first[order].astype(np.int32),
            width=width[order].astype(np.int32),
            inputs=flat_inputs.astype(np.int32),
            delays=flat_delays.astype(np.float32),
            truth=np.concatenate([*truths, empty])[order].astype(np.int32),
            tables=np.concatenate([*tables, np.zeros(1, np.uint8)]),
        )

    def _delays(self, cell: Cell, output: str, pin: str, source: np.ndarray, driven: np.ndarray) -> np.ndarray:
        """ns by input edge and output edge, shape (cells, 2, 2); an arc the library lacks has that of the others."""
        total = np.zeros((len(driven), 2, 2))
        count = np.zeros((2, 2))
        for cause, edge, table in _causes(cell, cell.pins[output], pin):
            total[:, cause, edge] += table(self.timing.slew[source, cause], self.timing.load[driven, edge])
            count[cause, edge] += 1
        if not count.any():
            return total
        mean = total.sum(axis=(1, 2), keepdims=True) / count.sum()
        return np.where(count > 0, total / np.maximum(count, 1), mean)

    def extra(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Count the transitions that the settled values do not show.

        Parameters
        ----------
        before, after : numpy.ndarray of uint8
            Shape (cycles, sources): settled values of `sources` in some cycles, and in the ones after them.

        Returns
        -------
        numpy.ndarray
            Shape (n_nets,): transitions in all these cycles beyond the one of each net that changes; even numbers.
        """
        before, after = (np.ascontiguousarray(values, np.uint8) for values in (before, after))
        for values in (before, after):
            if values.shape != (len(before), len(self.sources)):
                raise InputError(f"values have the shape {values.shape}; expected (cycles, {len(self.sources)})")
        return _count(before, after, self._clocked, self._cells, self._constants(), self._room)

    def events(self, values: np.ndarray) -> list[Event]:
        """Every transition of consecutive cycles, in order of time; ``values`` of shape (cycles, sources)."""
        values = np.ascontiguousarray(values, np.uint8)
        room = self._room
        found: list[Event] = []
        for number in range(1, len(values)):
            pool = np.empty(16 * self.netlist.n_nets + 1024, np.float32)
            before = self.settled(values[number - 1])
            pool = _cycle(values[number], self._clocked, self._cells, before, room, pool)
            nets = np.repeat(np.arange(self.netlist.n_nets), room.length)
            # Place of each transition: where its net begins, and how many of the net were before it.
            earlier = np.repeat(np.cumsum(room.length) - room.length, room.length)
            times = pool[np.repeat(room.start, room.length) + np.arange(len(nets)) - earlier]
            found += [(number, float(times[place]), int(nets[place])) for place in np.argsort(times, kind="stable")]
        return found

    @property
    def _room(self) -> _Transitions:
        return _Transitions(np.zeros(self.netlist.n_nets, np.int32), np.zeros(self.netlist.n_nets, np.int32))

    def settled(self, values: np.ndarray) -> np.ndarray:
        """Value of every net for the values of `sources`, shape (sources,)."""
        found = self._constants()
        found[self.sources] = values
        _settle(found, self._cells)
        return found

    def _constants(self) -> np.ndarray:
        found = np.zeros(self.netlist.n_nets, np.uint8)
        found[1] = 1
        return found


def with_glitches(activity: Activity, gates: Gates, cycles: int) -> Activity:
    """An activity without delays, and the extra toggles of some of its cycles.

    Parameters
    ----------
    activity
        Of the same netlist, with the values of ``gates.sources`` kept.
    gates
        The netlist.
    cycles
        How many pairs of consecutive cycles to simulate with delays, spread evenly over all streams; at most all.
    """
    length, streams, _ = activity.kept.shape
    there = (length - 1) * streams
    cycles = min(cycles, there)
    cycle, stream = np.divmod(np.arange(cycles) * there // max(cycles, 1), streams)
    # Neighbours of other streams are cycles of other tiles: every place in a tile gets its share.
    stream = (stream + cycle) % streams
    counts = gates.extra(activity.kept[cycle, stream], activity.kept[cycle + 1, stream])
    return replace(activity, toggles=activity.toggles + counts / max(cycles, 1))


@compiled
def _settle(state: np.ndarray, cells: _Cells) -> None:
    """Bring ``state``, the value of every net, in line with its sources."""
    for gate in range(len(cells.nets)):
        row = 0
        for place in range(cells.width[gate]):
            row |= np.int64(state[cells.inputs[cells.first[gate] + place]]) << place
        state[cells.nets[gate]] = cells.tables[cells.truth[gate] + row]


@compiled
def _cycle(
    after: np.ndarray, sources: _Sources, cells: _Cells, state: np.ndarray, found: _Transitions, pool: np.ndarray
) -> np.ndarray:
    """Transitions of one cycle; ``state`` holds the values before it, ``after`` those of the sources in it.

    Those of a net lie one after another in ``pool``, of which ``found`` notes the first place and the number. Returns
    the pool, which grows as it must.
    """
    at = np.zeros(MAX_INPUTS, np.int64)
    left = np.zeros(MAX_INPUTS, np.int64)
    coming = np.zeros(MAX_INPUTS, np.float32)
    never = np.float32(np.inf)
    start, length = found.start, found.length
    used = 0
    for index in range(len(sources.nets)):
        net = sources.nets[index]
        value = after[index]
        length[net] = 0
        if state[net] != value:
            start[net] = used
            length[net] = 1
            pool[used] = sources.delays[index, 0 if value else 1]
            used += 1
    for gate in range(len(cells.nets)):
        net = cells.nets[gate]
        base = cells.first[gate]
        width = cells.width[gate]
        more = 0
        for place in range(width):
            more += length[cells.inputs[base + place]]
        length[net] = 0
        if more == 0:
            continue
        row = 0
        for place in range(width):
            source = cells.inputs[base + place]
            row |= np.int64(state[source]) << place
            at[place] = start[source]
            left[place] = length[source]
            coming[place] = pool[start[source]] if length[source] else never
        if used + more > len(pool):
            longer = np.empty(2 * (used + more), np.float32)
            for place in range(used):
                longer[place] = pool[place]
            pool = longer
        begun = used
        value = state[net]
        for _ in range(more):
            cause = 0
            time = coming[0]
            for place in range(1, width):
                if coming[place] < time:
                    time = coming[place]
                    cause = place
            at[cause] += 1
            left[cause] -= 1
            coming[cause] = pool[at[cause]] if left[cause] else never
            row ^= 1 << cause
            follows = cells.tables[cells.truth[gate] + row]
            if follows == value:
                continue
            value = follows
            edge = 0 if (row >> cause) & 1 else 1
            out = time + cells.delays[base + cause, 2 * edge + (0 if follows else 1)]
            # The one before has not come out yet, or would be overtaken: neither of the two is seen.
            if used > begun and (time < pool[used - 1] or out <= pool[used - 1]):
                used -= 1
            else:
                pool[used] = out
                used += 1
        start[net] = begun
        length[net] = used - begun
    return pool


@compiled
def _settle_words(words: np.ndarray, cells: _Cells) -> None:
    """As `_settle`, of 64 cycles at once, one in each bit of a net's word."""
    rows = np.empty(1 << MAX_INPUTS, np.uint64)
    for gate in range(len(cells.nets)):
        size, table = 1 << cells.width[gate], cells.truth[gate]
        for row in range(size):
            rows[row] = ~np.uint64(0) if cells.tables[table + row] else np.uint64(0)
        # Each input halves the table, the lowest bit first.
        for place in range(cells.width[gate]):
            value = words[cells.inputs[cells.first[gate] + place]]
            size >>= 1
            for row in range(size):
                rows[row] = (rows[2 * row] & ~value) | (rows[2 * row + 1] & value)
        words[cells.nets[gate]] = rows[0]


@compiled
def _count(
    before: np.ndarray, after: np.ndarray, sources: _Sources, cells: _Cells, state: np.ndarray, found: _Transitions
) -> np.ndarray:
    """Transitions of each net beyond one, over all cycles."""
    counts = np.zeros(len(state), np.int64)
    pool = np.empty(16 * len(state) + 1024, np.float32)
    words = np.zeros(len(state), np.uint64)
    words[1] = ~np.uint64(0)
    for first in range(0, len(before), 64):
        last = min(first + 64, len(before))
        for index in range(len(sources.nets)):
            word = np.uint64(0)
            for cycle in range(first, last):
                word |= np.uint64(before[cycle, index]) << np.uint64(cycle - first)
            words[sources.nets[index]] = word
        _settle_words(words, cells)
        for cycle in range(first, last):
            bit = np.uint64(cycle - first)
            for net in range(len(state)):
                state[net] = (words[net] >> bit) & np.uint64(1)
            pool = _cycle(after[cycle], sources, cells, state, found, pool)
            for net in range(len(state)):
                counts[net] += found.length[net] & ~1
    return counts
