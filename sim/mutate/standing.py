"""Proof that a fault in the control of a core loads registers with what they hold: nothing in them ever differs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from sim.mutate.design import SELECT, SELECT_WIDTH
from sim.mutate.prover import never
from sim.mutate.rtlil import Port, ports

__all__ = ["same_content"]

_IN_RESET = {"rst": "(rst | ~started)", "step__valid": "(step__valid & started)"}
"""Inputs that the first cycle decides: it is a reset, and a stream offers nothing in one."""


def _register(port: Port, sides: Sequence[str]) -> list[str]:
    """Verilog of a register's content, one for each side; what it holds before the reset is the port's."""
    name, span = port.name[1:], f"[{port.width - 1}:0]"
    number = name.removeprefix("state")
    lines = []
    for side in sides:
        lines += [
            f"reg {span} {side}_register{number};",
            f"always @(posedge clk) {side}_register{number} <= {side}_next{number};",
            f"wire {span} {side}_{name} = started ? {side}_register{number} : {name};",
        ]
    return lines


def _miter(scope: str, registers: Sequence[str], differing: Collection[str]) -> str:
    """Verilog that runs a core, and beside it those registers of its mutant that may differ."""
    sides = ("faultless", "faulty")
    header, body, differences = ["input clk"], ["reg started = 0;", "always @(posedge clk) started <= 1;"], []
    wires = {side: [f".{SELECT}({SELECT_WIDTH}'d{number})"] for number, side in enumerate(sides)}
    for port in ports(scope):
        name, span = port.name[1:], f"[{port.width - 1}:0]"
        if name == SELECT:
            continue
        given = dict.fromkeys(sides, _IN_RESET.get(name, name))
        if not port.is_input:
            body += [f"wire {span} {side}_{name};" for side in sides]
            given = {side: f"{side}_{name}" for side in sides}
        elif name != "clk":
            header.append(f"input {span} {name}")
            if name.startswith("state"):
                own = registers[int(name.removeprefix("state"))] in differing
                body += _register(port, sides if own else sides[:1])
                given = {side: f"{side if own else sides[0]}_{name}" for side in sides}
                if own:
                    differences.append(f"(faultless_{name} != faulty_{name})")
        for side, connections in wires.items():
            connections.append(f".{name}({given[side]})")
    lines = [
        f"module miter({', '.join([*header, 'output differ'])});",
        *body,
        *(f"scope {side}({', '.join(connections)});" for side, connections in wires.items()),
        f"assign differ = {' | '.join(differences)};",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def same_content(scope: str, registers: Sequence[str], differing: Collection[str], directory: Path) -> bool:
    """Whether registers hold in a mutant what they hold in the core, in all cycles from a reset on.

    Given that nothing else can be told apart after one cycle from a state that is the same in all registers, core and
    mutant are the same then. The first cycle is a reset out of any state, with no step on offer. ABC's
    property-directed reachability (``pdr``) finds what makes the contents the same, such as that they are zero as long
    as a register of the control says so. There is no bound on the cycles.

    Parameters
    ----------
    scope
        The flat core with its mutant, registers as ports: what is in ``scope.il``.
    registers
        Names of all.
    differing
        Names of those that may differ after a cycle.
    directory
        Where ``scope.il`` is, and files may be written.

    Raises
    ------
    ToolError
        Yosys or ABC failed.
    subprocess.TimeoutExpired
        They took too long.
    """
    return not differing or never(directory, _miter(scope, registers, differing))
