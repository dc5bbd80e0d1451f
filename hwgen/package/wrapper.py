"""Declarations of ports in SystemVerilog."""

from __future__ import annotations

from hwgen.verilog import Port, Wrapper

__all__ = ["declarations", "declared"]


def declarations(wrapper: Wrapper) -> str:
    """The ports of a wrapper, as the head of its module has them."""
    return ",\n".join(
        f"    {port.direction + ' ':7}{declared(port, wrapper.types.get(port.name, ''))}" for port in wrapper.ports
    )


def declared(port: Port, form: str = "", net: str = "logic") -> str:
    """Declaration of a port, or of what is connected to it, without a direction; ``form`` is its type if it has one."""
    span = f" [{port.width - 1}:0]" if port.width > 1 else ""
    return f"{form or net + span} {port.name}"
