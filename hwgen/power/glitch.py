"""Gate-level simulation with delays: every transition of every net, glitches included.

The values that a cycle begins and ends with come from the simulation without delays; only flip-flop outputs and
input ports change at the clock edge, so within a cycle the logic between them is combinational, and one cycle is
one pass over its cells in topological order, see `hwgen.power.transitions`. A cell puts out its transitions each a
delay after the one that caused it: that of the arc by pin, edges and state, see `hwgen.power.ways`, at the slews and
loads of the timing analysis. Wires hand on all that comes out, by the one delay that the timing analysis has for a net.
Inputs change with the clock edge.

``kyupy`` does such work for a fixed set of primitives with up to four inputs and one output, which leaves out
adder cells and everything with five inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from hwgen.errors import InputError
from hwgen.netlist.graph import CellGroup, Netlist, ranges
from hwgen.power.activity import Activity
from hwgen.power.transitions import MAX_INPUTS, Cells, Sources, counted, numbered, settle, transitions
from hwgen.power.ways import Way, clocked_ways, ways_of
from hwgen.timing.analysis import Timing

__all__ = ["Event", "Gates", "sources", "with_glitches"]

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
    def _clocked(self) -> Sources:
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
        return Sources(self.sources, found[self.sources].astype(np.float32))

    @cached_property
    def _cells(self) -> Cells:
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
        read = np.concatenate([*inputs, empty])[ranges(_begins(width)[order], width[order])]
        own = np.concatenate([*delays, np.zeros(0)])[ranges(_begins(count)[order], count[order])]
        return Cells(
            nets=driven.astype(np.int32),
            first=_begins(width[order]),
            width=width[order],
            inputs=read.astype(np.int32),
            truth=truth[order],
            pick=pick[order],
            own=_begins(count[order]),
            tables=np.concatenate(tables),
            picks=np.concatenate(picks),
            # Tables go below 0 at small loads behind slow slews.
            delays=np.maximum(own, 0.0).astype(np.float32),
            wire=self.timing.wire_delay[driven].astype(np.float32),
        )

    @cached_property
    def _numbered(self) -> tuple[Cells, Sources, np.ndarray]:
        return numbered(self._cells, self._clocked, self.netlist.n_nets)

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
        cells, clocked, place = self._numbered
        return counted(before, after, clocked, cells, self.netlist.n_nets)[place]

    def events(self, values: np.ndarray) -> list[Event]:
        """Every transition of consecutive cycles, in order of time; ``values`` of shape (cycles, sources)."""
        values = np.ascontiguousarray(values, np.uint8)
        found: list[Event] = []
        for number in range(1, len(values)):
            before = self.settled(values[number - 1])
            room = 16 * self.netlist.n_nets
            start, length, pool = transitions(before, values[number], self._clocked, self._cells, room)
            nets, times = np.repeat(np.arange(self.netlist.n_nets), length), pool[ranges(start, length)]
            found += [(number, float(times[place]), int(nets[place])) for place in np.argsort(times, kind="stable")]
        return found

    def settled(self, values: np.ndarray) -> np.ndarray:
        """Value of every net for the values of `sources`, shape (sources,)."""
        found = np.zeros(self.netlist.n_nets, np.uint8)
        found[1] = 1
        found[self.sources] = values
        settle(found, self._cells)
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
