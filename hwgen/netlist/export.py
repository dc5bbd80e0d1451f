"""A mapped netlist as structural Verilog, and the names that other exports of it use too.

A bit of a port is called by the port's name, any other net ``n`` and its number, a cell ``c`` and its number. There
is one module: what was hierarchy is in no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from hwgen.netlist.graph import Netlist

__all__ = ["cell_names", "net_names", "netlist_verilog", "port_bits"]

_PLAIN = re.compile(r"[A-Za-z_][\w$]*", re.ASCII)


def _identifier(name: str) -> str:
    """A name as Verilog writes it: with a backslash before and a blank behind it if need be (IEEE 1364-2005, 3.7.1)."""
    return name if _PLAIN.fullmatch(name) else f"\\{name} "


def _bit(port: str, place: int, width: int) -> str:
    return port if width == 1 else f"{port}[{place}]"


def cell_names(netlist: Netlist) -> list[str]:
    """Name of every cell."""
    return [f"c{cell}" for cell in range(netlist.n_cells)]


def net_names(netlist: Netlist) -> list[str]:
    """Name of every net, without escapes; the constants are ``1'b0`` and ``1'b1``."""
    return _names(netlist, {name: name for name in netlist.ports})


def port_bits(netlist: Netlist) -> dict[str, int]:
    """The net of every bit of a port, by the bit's name, without escapes."""
    return {
        _bit(port.name, place, len(port.nets)): net
        for port in netlist.ports.values()
        for place, net in enumerate(port.nets.tolist())
    }


def _names(netlist: Netlist, written: dict[str, str]) -> list[str]:
    """Name of every net, where `written` tells how a port is written."""
    names = ["1'b0", "1'b1", *(f"n{net}" for net in range(2, netlist.n_nets))]
    # Inputs last: their name wins where a wire runs straight through.
    for port in sorted(netlist.ports.values(), key=lambda port: port.direction == "input"):
        for place, net in enumerate(port.nets.tolist()):
            if net > 1:
                names[net] = _bit(written[port.name], place, len(port.nets))
    return names


def netlist_verilog(netlist: Netlist, header: Iterable[str] = ()) -> str:
    """The flat netlist as one structural module, its ports as they are in the RTL; ``header`` are its comments."""
    ports = {name: _identifier(name) for name in netlist.ports}
    names, cells = _names(netlist, ports), cell_names(netlist)
    lines = [*(f"// {line}" for line in header), f"module {_identifier(netlist.top)} ({', '.join(ports.values())});"]
    for port in netlist.ports.values():
        width = f"[{len(port.nets) - 1}:0] " if len(port.nets) > 1 else ""
        lines.append(f"  {port.direction} {width}{ports[port.name]};")
    lines += [f"  wire {name};" for net, name in enumerate(names) if name == f"n{net}"]
    for port in netlist.ports.values():
        for place, net in enumerate(port.nets.tolist()):
            name = _bit(ports[port.name], place, len(port.nets))
            if port.direction == "output" and names[net] != name:
                lines.append(f"  assign {name} = {names[net]};")
    for group in netlist.groups:
        pins = [_identifier(pin) for pin in group.cell.inputs + group.cell.outputs]
        kind = _identifier(group.cell.name)
        connected = np.concatenate([group.inputs, group.outputs], axis=1).tolist()
        for cell, nets in zip(group.cells.tolist(), connected, strict=True):
            wired = ", ".join(f".{pin}({names[net]})" for pin, net in zip(pins, nets, strict=True))
            lines.append(f"  {kind} {cells[cell]} ({wired});")
    return "\n".join([*lines, "endmodule", ""])
