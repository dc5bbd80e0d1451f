"""Proof that a fault in the control of a core is none: its registers may tell the same in another way."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sim.mutate.design import SELECT, SELECT_WIDTH, planted
from sim.mutate.operators import Mutant
from sim.mutate.prover import never, run
from sim.mutate.rtlil import ports

__all__ = ["same_control"]

_STEERS = re.compile(r"(\w+_)?(valid|first|last|fp4)|addend_held|enter|bubbles")
"""Registers of the control, by name; all others of a core hold data."""

_ENTERS = re.compile(r"block\d+_enter(ing)?")
"""Inputs of elements by which a step enters the accumulation loop: in this cycle, or in the next one."""

_TURNS = ("_enable_result", "_enable_products")
"""Ends of the names of an element's inputs by which the slots of the loop move on, and products in them."""

_CUT = r"""
import json, re, sys
from pyosys import libyosys as ys
top, steers, select = sys.argv[1:]
design = ys.Design()
ys.run_pass("read_rtlil planted.il", design)
ys.run_pass(f"hierarchy -top {top}", design)
scope = design.module(ys.IdString(f"\\{top}"))

def port(name, signal, is_input):
    wire = scope.addWire(ys.IdString(f"\\{name}"), signal.size())
    wire.port_input, wire.port_output = is_input, not is_input
    scope.connect(*((signal, ys.SigSpec(wire)) if is_input else (ys.SigSpec(wire), signal)))

# What registers and blocks hold comes in, what they are given goes out.
steering, number = [], 0
for cell in sorted(scope.selected_cells(), key=lambda cell: cell.name.str()):
    kind = cell.type.str()
    if kind == "$dff":
        following, content = (cell.getPort(ys.IdString(f"\\{name}")) for name in "DQ")
        name = content.as_wire().name.str()[1:] if content.is_wire() else ""
        role = "held"
        if re.fullmatch(steers, name):
            role = "state"
            steering.append(number)
        scope.remove(cell)
        port(f"{role}{number}", content, True)
        port(f"next{number}", following, False)
    elif kind.startswith("\\"):
        block = design.module(cell.type)
        signals = {name.str(): cell.getPort(name) for name in block.ports}
        scope.remove(cell)
        for name, signal in signals.items():
            gives = block.wire(ys.IdString(name)).port_output
            if signal.size() and name not in ("\\clk", "\\rst", select):
                port(f"block{number}_{name[1:]}", signal, gives)
    number += 1
scope.fixup_ports()
ys.run_pass(f"rename {top} scope", design)
ys.run_pass("hierarchy -top scope", design)
ys.run_pass("opt_clean -purge", design)
ys.run_pass("attrmap -remove src -remove hdlname -remove init", design)
ys.run_pass("write_rtlil scope.il", design)
with open("steering.json", "w") as file:
    json.dump(steering, file)
"""


def _miter(scope: str, steering: Sequence[int]) -> str:
    """Verilog that runs a core's control beside its mutant, with one and the same of everything else.

    The first cycle is a reset, out of any state. As long as no step has entered the accumulation loop since then, it is
    all the same whether its slots move on: nothing is in them. Nor are there any products, and the first step brings
    its own.
    """
    header, body, differences = ["input clk"], [], []
    entering = [port.name[1:] for port in ports(scope) if _ENTERS.fullmatch(port.name[1:])]
    enters = " | ".join(f"faultless_{name}" for name in entering) or "1"
    now = " | ".join(f"faultless_{name}" for name in entering if not name.endswith("ing")) or "0"
    for port in ports(scope):
        name, span = port.name[1:], f"[{port.width - 1}:0]"
        if name in (SELECT, "clk"):
            continue
        role = re.fullmatch(r"(state|next)(\d+)", name)
        if port.is_input:
            header.append(f"input {span} {name}")
        for side in ("faultless", "faulty"):
            body.append(f"wire {span} {side}_{name};")
            if name == "rst":
                body.append(f"assign {side}_{name} = {name} | ~started;")
            elif role and port.is_input:
                body.append(f"reg {span} {side}_register{role[2]};")
                body.append(f"assign {side}_{name} = started ? {side}_register{role[2]} : {name};")
            elif port.is_input:
                body.append(f"assign {side}_{name} = {name};")
            elif role and int(role[2]) in steering:
                body.append(f"always @(posedge clk) {side}_register{role[2]} <= {side}_{name};")
        if not port.is_input and not (role and int(role[2]) in steering):
            matters = "(entered | now) & " if name.endswith(_TURNS) else ""
            differences.append(f"({matters}(faultless_{name} != faulty_{name}))")
    names = [port.name[1:] for port in ports(scope) if port.name[1:] not in (SELECT, "clk")]
    for number, side in enumerate(("faultless", "faulty")):
        connections = [f".{SELECT}({SELECT_WIDTH}'d{number})", *(f".{name}({side}_{name})" for name in names)]
        if any(port.name == "\\clk" for port in ports(scope)):
            connections.append(".clk(clk)")
        body.append(f"scope {side}({', '.join(connections)});")
    lines = [
        f"module miter({', '.join([*header, 'output differ'])});",
        "reg started = 0;",
        "always @(posedge clk) started <= 1;",
        *body,
        f"wire enters = {enters}, now = {now};",
        "reg entered = 0;",
        "always @(posedge clk) entered <= (entered | enters) & started & ~rst;",
        f"assign differ = {' | '.join(differences)};",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def same_control(texts: Mapping[str, str], mutant: Mutant, directory: Path) -> bool:
    """Whether a mutant of a core's control tells its blocks, and the world, what the core tells them.

    Both run side by side from a reset on, each with registers of its own. All blocks and registers of data are cut out:
    what they hold is any sequence, the same on both sides. What they are given must be the same in every cycle. ABC's
    property-directed reachability (``pdr``) proves that without a bound on the cycles. The first steps after a reset
    begin tiles, as the contract of the streams says.

    Parameters
    ----------
    texts
        Modules of the core, see `sim.mutate.rtlil.lowered`.
    mutant
        A mutant of the module ``core``.
    directory
        Where files may be written.

    Raises
    ------
    ToolError
        Yosys or ABC failed.
    subprocess.TimeoutExpired
        They took too long.
    """
    (directory / "planted.il").write_text("\n".join(planted(texts, [mutant]).values()), encoding="utf-8")
    run(directory, sys.executable, "-c", _CUT, mutant.module, _STEERS.pattern, f"\\{SELECT}")
    steering = json.loads((directory / "steering.json").read_text(encoding="utf-8"))
    scope = (directory / "scope.il").read_text(encoding="utf-8")
    return never(directory, _miter(scope, steering))
