"""The activity of a netlist for other tools: SAIF and VCD, by the names of `hwgen.netlist.export`."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

import numpy as np
from vcd import VCDWriter

from hwgen.netlist.export import cell_names, net_names, port_bits
from hwgen.netlist.graph import Netlist
from hwgen.power.activity import Activity
from hwgen.power.glitch import Event

__all__ = ["saif", "vcd"]

_PICOSECONDS = 1000
_FEMTOSECONDS = 1_000_000


def _escaped(name: str) -> str:
    """A name as SAIF writes it: a backslash before every character but letters, digits and underscores."""
    return re.sub(r"(\W)", r"\\\1", name, flags=re.ASCII)


def saif(netlist: Netlist, activity: Activity, clock_ns: float) -> str:
    """Switching activity (SAIF 2.0, IEEE 1801-2018 annex I): transitions with glitches in TC.

    The top instance has every net and every bit of a port, each cell in it every pin. OpenSTA reads pins alone: those
    of the ports, and of the cells. Other tools read nets.

    Parameters
    ----------
    netlist, activity
        The netlist and its toggles; they are scaled to the cycles simulated.
    clock_ns
        Clock period.
    """
    cycles = max(activity.transitions * activity.streams, 1)
    duration = cycles * clock_ns * _PICOSECONDS
    high = np.rint(activity.ones * duration).astype(np.int64)
    low = round(duration) - high
    changes = np.rint(activity.toggles * cycles).astype(np.int64)
    seen = [
        f"(T0 {zeros}) (T1 {ones}) (TX 0) (TC {count}) (IG 0)"
        for zeros, ones, count in zip(low.tolist(), high.tolist(), changes.tolist(), strict=True)
    ]
    lines = [
        "(SAIFILE",
        '(SAIFVERSION "2.0")',
        '(DIRECTION "backward")',
        '(PROGRAM_NAME "hwgen")',
        "(DIVIDER / )",
        "(TIMESCALE 1 ps)",
        f"(DURATION {duration:.0f})",
        f"(INSTANCE {_escaped(netlist.top)}",
        "  (NET",
    ]
    names = net_names(netlist)
    of_name = {names[net]: net for net in range(2, netlist.n_nets)} | port_bits(netlist)
    lines += [f"    ({_escaped(name)} {seen[net]})" for name, net in of_name.items()]
    lines.append("  )")
    cells = cell_names(netlist)
    for group in netlist.groups:
        pins = [_escaped(pin) for pin in group.cell.inputs + group.cell.outputs]
        connected = np.concatenate([group.inputs, group.outputs], axis=1).tolist()
        for cell, nets in zip(group.cells.tolist(), connected, strict=True):
            lines.append(f"  (INSTANCE {_escaped(cells[cell])} (NET")
            lines += [f"    ({pin} {seen[net]})" for pin, net in zip(pins, nets, strict=True)]
            lines.append("  ))")
    return "\n".join([*lines, ")", ")", ""])


def vcd(netlist: Netlist, initial: np.ndarray, events: Iterable[Event], cycles: int, clock_ns: float) -> str:
    """Waveforms of every net, glitches included; time 0 is a clock edge.

    A gated clock has no pulse in cycle 0: what its gate's enable was before, nobody knows.

    Parameters
    ----------
    netlist
        The netlist.
    initial
        Value of every net in cycle 0.
    events
        Transitions of the cycles that follow, in order; `hwgen.power.glitch.Gates.events`.
    cycles
        How many cycles, cycle 0 included.
    clock_ns
        Clock period.
    """
    text = io.StringIO()
    period = round(clock_ns * _FEMTOSECONDS)
    clock = netlist.clock_net
    events = list(events)
    changes: list[tuple[int, int]] = [
        (cycle * period + min(round(time * _FEMTOSECONDS), period - 1), net) for cycle, time, net in events
    ]
    if clock is not None:
        changes += [(edge * period // 2, clock) for edge in range(1, 2 * cycles)]
    for cycle, net in _pulses(netlist, initial, events, cycles):
        changes += [(cycle * period, net), (cycle * period + period // 2, net)]
    values = initial.astype(int).tolist()
    with VCDWriter(text, timescale="1 fs", date="") as writer:
        variables = {}
        for net, name in enumerate(net_names(netlist)[2:], start=2):
            values[net] = 1 if net == clock else values[net]
            variables[net] = writer.register_var(netlist.top, name, "wire", size=1, init=values[net])
        for time, net in sorted(changes):
            values[net] ^= 1
            writer.change(variables[net], time, values[net])
        writer.close(cycles * period)
    return text.getvalue()


def _pulses(netlist: Netlist, initial: np.ndarray, events: Iterable[Event], cycles: int) -> list[tuple[int, int]]:
    """Cycles that begin with a pulse of a gated clock, and its net; parameters as of `vcd`."""
    # Gates in the order of their levels: the clock of one may be the output of another.
    gates: list[tuple[int, int, list[int], int]] = []
    for group in netlist.groups:
        gate = group.cell.clock_gate
        if gate is not None:
            clocks = group.inputs[:, group.cell.inputs.index(gate.clock)]
            enables = group.inputs[:, [group.cell.inputs.index(pin) for pin in gate.enables]]
            outputs = group.outputs[:, 0]
            gates += zip(
                netlist.level[group.cells].tolist(), clocks.tolist(), enables.tolist(), outputs.tolist(), strict=True
            )
    watched = {net for _, _, pins, _ in gates for net in pins}
    # What the watched nets are at the end of each cycle.
    settled = {net: np.full(cycles, int(initial[net])) for net in watched}
    for cycle, _, net in events:
        if net in watched:
            settled[net][cycle:] ^= 1
    runs: dict[int, np.ndarray] = {}
    for _, clock, pins, output in sorted(gates):
        opened = np.any([settled[net] for net in pins], axis=0)
        runs[output] = opened & runs.get(clock, np.ones(cycles, bool))
    return [(cycle + 1, net) for net, run in runs.items() for cycle in np.flatnonzero(run[:-1]).tolist()]
