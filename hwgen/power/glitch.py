"""Gate-level simulation with delays: every transition of every net, glitches included.

The values that a cycle begins and ends with come from the simulation without delays; only flip-flop outputs and
input ports change at the clock edge, so within a cycle the logic between them is combinational, and one cycle is
one pass over its cells in topological order. A cell merges the transitions of its inputs in order of time and puts
out its own, each a delay after the one that caused it: that of the arc by pin, edges and state, see
`hwgen.power.ways`, at the slews and loads of the timing analysis. Delays of cells are inertial: a pulse that would end
before it has come out is swallowed (IEEE 1364-2005, 6.1.3). Wires hand on all that comes out, by the one delay that
the timing analysis has for a net. Inputs change with the clock edge.

``kyupy`` does such work for a fixed set of primitives with up to four inputs and one output, which leaves out
adder cells and everything with five inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hwgen.errors import InputError
from hwgen.jit import compiled
from hwgen.netlist.graph import CellGroup, Netlist
from hwgen.power.activity import Activity
from hwgen.power.ways import Way, clocked_ways, ways_of
from hwgen.timing.analysis import Timing

__all__ = ["MAX_INPUTS", "Event", "Gates", "sources", "with_glitches"]

MAX_INPUTS = 12
"""Cells with more inputs are not simulated."""

# Multiples of it are spread evenly over a turn, however many there are.
_GOLDEN = 0.6180339887498949

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
        Shape (outputs,), int32: net, place of its first input in `inputs`, and number of inputs.
    inputs : numpy.ndarray
        Shape (places,), int32: nets.
    truth, pick, own : numpy.ndarray
        Shape (outputs,), int32: where truth table, choice and delays begin in `tables`, `picks` and `delays`.
    tables : numpy.ndarray
        uint8: truth tables one after another, the first input the lowest bit.
    picks : numpy.ndarray
        uint16: for each input, then for each row that its edge leads to, which of its delays an output takes.
    delays : numpy.ndarray
        float32: ns to the driver of the output's net.
    wire : numpy.ndarray
        Shape (outputs, 2), float32: ns from there to the loads, by edge; edge 0 rises.
    """

    nets: np.ndarray
    first: np.ndarray
    width: np.ndarray
    inputs: np.ndarray
    truth: np.ndarray
    pick: np.ndarray
    own: np.ndarray
    tables: np.ndarray
    picks: np.ndarray
    delays: np.ndarray
    wire: np.ndarray


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
            pins = _pins(group)
            for name, nets in zip(cell.outputs, group.outputs.T, strict=True):
                for edge in (0, 1):
                    if ways := clocked_ways(cell, name, edge):
                        found[nets, edge] += np.mean([self._delay(way, pins, cell.clock_pin) for way in ways], axis=0)
        return _Sources(self.sources, found[self.sources].astype(np.float32))

    @cached_property
    def _cells(self) -> _Cells:
        netlist = self.netlist
        keys, nets, inputs, kinds, delays = [], [], [], [], []
        tables, picks = [np.zeros(1, np.uint8)], [np.zeros(0, np.uint16)]
        for group in netlist.groups:
            cell = group.cell
            if cell.sequential is not None or cell.clock_gate is not None:
                continue
            if len(cell.inputs) > MAX_INPUTS:
                raise InputError(
                    f"the cell {cell.name} has {len(cell.inputs)} inputs; at most {MAX_INPUTS} can be simulated with"
                    " delays, leave it out with --dont-use"
                )
            pins = _pins(group)
            for name, driven in zip(cell.outputs, group.outputs.T, strict=True):
                function = cell.pins[name].function
                if function is None:
                    raise InputError(f"output {name} of the cell {cell.name} has no function; expected one")
                ways = netlist.library.known(ways_of, cell.name, name)
                own = np.zeros((len(driven), len(ways.choices)))
                for place, choice in enumerate(ways.choices):
                    if choice:
                        own[:, place] = np.mean([self._delay(way, pins) for way in choice], axis=0)
                begins = sum(map(len, tables)), sum(map(len, picks))
                kinds.append(np.tile([len(ways.inputs), *begins, len(ways.choices)], (len(driven), 1)))
                tables.append(function.truth(ways.inputs).astype(np.uint8))
                picks.append(ways.pick.ravel())
                keys.append(netlist.level[group.cells])
                nets.append(driven)
                inputs.append(group.inputs[:, [cell.inputs.index(pin) for pin in ways.inputs]].ravel())
                delays.append(own.ravel())
        empty = np.zeros(0, np.int64)
        order = np.argsort(np.concatenate([*keys, empty]), kind="stable")
        width, truth, pick, count = np.concatenate([*kinds, np.zeros((0, 4), np.int64)]).astype(np.int32).T
        driven = np.concatenate([*nets, empty])[order]
        return _Cells(
            nets=driven.astype(np.int32),
            first=_begins(width)[order],
            width=width[order],
            inputs=np.concatenate([*inputs, empty]).astype(np.int32),
            truth=truth[order],
            pick=pick[order],
            own=_begins(count)[order],
            tables=np.concatenate(tables),
            picks=np.concatenate(picks),
            # Tables go below 0 at small loads behind slow slews.
            delays=np.maximum(np.concatenate([*delays, np.zeros(0)]), 0.0).astype(np.float32),
            wire=self.timing.wire_delay[driven].astype(np.float32),
        )

    def _delay(self, way: Way, pins: Mapping[str, np.ndarray], clock_pin: str | None = None) -> np.ndarray:
        """Ns from an input of some cells to an output, without the wire behind it; ``pins`` are the nets at pins."""
        total = np.zeros(len(next(iter(pins.values()))))
        for step in way:
            clocked = step.source == clock_pin
            slew = self.timing.clock_slew if clocked else self.timing.slew[pins[step.source], step.cause]
            total += step.delay(slew, self.timing.load[pins[step.target], step.edge])
        return total

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


def with_glitches(activity: Activity, gates: Gates, cycles: int | None = None) -> Activity:
    """An activity without delays, and the extra toggles of its cycles.

    Parameters
    ----------
    activity
        Of the same netlist, with the values of ``gates.sources`` kept.
    gates
        The netlist.
    cycles
        How many pairs of consecutive cycles to simulate with delays, at most all, which is the default. They are spread
        over all streams, one drawn from each of so many parts of equal length: at equal distances they would meet some
        of the turns alone that operands take.
    """
    length, streams, _ = activity.kept.shape
    there = (length - 1) * streams
    cycles = there if cycles is None else min(cycles, there)
    first = np.arange(cycles + 1) * there // max(cycles, 1)
    drawn = first[:-1] + (np.arange(cycles) * _GOLDEN % 1.0 * np.diff(first)).astype(np.int64)
    cycle, stream = np.divmod(drawn, streams)
    counts = gates.extra(activity.kept[cycle, stream], activity.kept[cycle + 1, stream])
    return replace(activity, toggles=activity.toggles + counts / max(cycles, 1))


def _pins(group: CellGroup) -> dict[str, np.ndarray]:
    """Nets at each pin of a group's cells."""
    nets = np.concatenate([group.inputs, group.outputs], axis=1).T
    return dict(zip([*group.cell.inputs, *group.cell.outputs], nets, strict=True))


def _begins(sizes: np.ndarray) -> np.ndarray:
    """Where ranges of these sizes begin, one after the other; int32."""
    return (np.cumsum(sizes) - sizes).astype(np.int32)


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
            which = cells.picks[cells.pick[gate] + (cause << width) + row]
            out = time + cells.delays[cells.own[gate] + which]
            # The one before has not come out yet, or would be overtaken: neither of the two is seen.
            if used > begun and (time < pool[used - 1] or out <= pool[used - 1]):
                used -= 1
            else:
                pool[used] = out
                used += 1
        value = state[net]
        for place in range(begun, used):
            value ^= 1
            later = pool[place] + cells.wire[gate, 0 if value else 1]
            # A net has one delay for each edge: they must not overtake one another.
            pool[place] = later if place == begun else max(later, pool[place - 1])
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
