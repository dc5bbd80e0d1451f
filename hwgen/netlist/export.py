"""A mapped netlist and its activity for other tools: structural Verilog, SAIF, VCD.

All three call a net by one name: a bit of a port by the port's, any other ``n`` and its number.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

import numpy as np
from vcd import VCDWriter

from hwgen.netlist.graph import Netlist
from hwgen.power.activity import Activity
from hwgen.power.glitch import Event

__all__ = ["net_names", "netlist_verilog", "saif", "vcd"]

_PICOSECONDS = 1000
_FEMTOSECONDS = 1_000_000


def _bit(port: str, place: int, width: int) -> str:
    return port if width == 1 else f"{port}[{place}]"


def net_names(netlist: Netlist) -> list[str]:
    """Name of every net; the constants are ``1'b0`` and ``1'b1``."""
    names = ["1'b0", "1'b1", *(f"n{net}" for net in range(2, netlist.n_nets))]
    # Inputs last: their name wins where a wire runs straight through.
    for port in sorted(netlist.ports.values(), key=lambda port: port.direction == "input"):
        for place, net in enumerate(port.nets.tolist()):
            if net > 1:
                names[net] = _bit(port.name, place, len(port.nets))
    return names


def netlist_verilog(netlist: Netlist, header: Iterable[str] = ()) -> str:
    """The flat netlist as one structural module, its ports as they are in the RTL; ``header`` are its comments."""
    names = net_names(netlist)
    lines = [*(f"// {line}" for line in header), f"module {netlist.top} ({', '.join(netlist.ports)});"]
    for port in netlist.ports.values():
        width = f"[{len(port.nets) - 1}:0] " if len(port.nets) > 1 else ""
        lines.append(f"  {port.direction} {width}{port.name};")
    lines += [f"  wire {name};" for net, name in enumerate(names) if name == f"n{net}"]
    for port in netlist.ports.values():
        for place, net in enumerate(port.nets.tolist()):
            name = _bit(port.name, place, len(port.nets))
            if port.direction == "output" and names[net] != name:
                lines.append(f"  assign {name} = {names[net]};")
    for group in netlist.groups:
        pins = group.cell.inputs + group.cell.outputs
        connected = np.concatenate([group.inputs, group.outputs], axis=1).tolist()
        for cell, nets in zip(group.cells.tolist(), connected, strict=True):
            wired = ", ".join(f".{pin}({names[net]})" for pin, net in zip(pins, nets, strict=True))
            lines.append(f"  {group.cell.name} c{cell} ({wired});")
    return "\n".join([*lines, "endmodule", ""])


def saif(netlist: Netlist, activity: Activity, clock_ns: float) -> str:
    """Switching activity of every net (SAIF 2.0, IEEE 1801-2018 annex I): transitions with glitches in TC.

    Parameters
    ----------
    netlist, activity
        The netlist and its toggles; they are scaled to the cycles simulated.
    clock_ns
        Clock period.
    """
    cycles = max(activity.transitions * activity.streams, 1)
    duration = cycles * clock_ns * _PICOSECONDS
    lines = [
        "(SAIFILE",
        '(SAIFVERSION "2.0")',
        '(DIRECTION "backward")',
        '(PROGRAM_NAME "hwgen")',
        "(DIVIDER / )",
        "(TIMESCALE 1 ps)",
        f"(DURATION {duration:.0f})",
        f"(INSTANCE {netlist.top}",
        "  (NET",
    ]
    for net, name in enumerate(net_names(netlist)[2:], start=2):
        high = round(float(activity.ones[net]) * duration)
        changes = round(float(activity.toggles[net]) * cycles)
        escaped = name.replace("[", "\\[").replace("]", "\\]")
        lines.append(f"    ({escaped} (T0 {round(duration) - high}) (T1 {high}) (TX 0) (TC {changes}) (IG 0))")
    return "\n".join([*lines, "  )", ")", ")", ""])


def vcd(netlist: Netlist, initial: np.ndarray, events: Iterable[Event], cycles: int, clock_ns: float) -> str:
    """Waveforms of every net, glitches included; time 0 is a clock edge.

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
    changes: list[tuple[int, int]] = [
        (cycle * period + min(round(time * _FEMTOSECONDS), period - 1), net) for cycle, time, net in events
    ]
    if clock is not None:
        changes += [(edge * period // 2, clock) for edge in range(1, 2 * cycles)]
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
