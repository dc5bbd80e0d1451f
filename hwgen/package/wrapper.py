"""Records of the wrappers of a core: modules around it with other ports, in SystemVerilog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hwgen.verilog.ports import Port

__all__ = ["Wrapper", "declared"]


@dataclass(frozen=True)
class Wrapper:
    """A module around a core.

    Parameters
    ----------
    module
        Its name.
    files
        What it is made of beside the core's Verilog, in the order in which a tool must read them.
    latency
        Cycles from the acceptance of a step to its result, without stalls and with C in time.
    ports
        Of the module, in its order.
    types
        By port, where it is a structure: the type.
    streams
        By name: the port that has each role.
    rules
        What both sides keep to, in words, beside the rules of the core's streams.
    """

    module: str
    files: Sequence[str]
    latency: int
    ports: Sequence[Port]
    types: Mapping[str, str]
    streams: Mapping[str, Mapping[str, str]]
    rules: Sequence[str]

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "ports": [port.as_dict() for port in self.ports]}

    def declarations(self) -> str:
        """Its ports, as the head of the module has them."""
        return ",\n".join(
            f"    {port.direction + ' ':7}{declared(port, self.types.get(port.name, ''))}" for port in self.ports
        )


def declared(port: Port, form: str = "", net: str = "logic") -> str:
    """Declaration of a port, or of what is connected to it, without a direction; ``form`` is its type if it has one."""
    span = f" [{port.width - 1}:0]" if port.width > 1 else ""
    return f"{form or net + span} {port.name}"
