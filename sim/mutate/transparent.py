"""Proof that a fault in the data of a quantiser is none: whatever block comes, its result is the same."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sim.mutate.cone import frontier, reached, steered_by
from sim.mutate.design import SELECT, SELECT_WIDTH, planted
from sim.mutate.operators import Mutant
from sim.mutate.prover import ABC, run
from sim.mutate.rtlil import ports

__all__ = ["same_results"]

_SEEN = "seen"
"""What begins the names of outputs of a design that are no results: what a fault comes to first."""

_TRANSPARENT = r"""
import re, sys
from pyosys import libyosys as ys
top, seen, *first = sys.argv[1:]
design = ys.Design()
ys.run_pass("read_rtlil planted.il", design)
ys.run_pass(f"hierarchy -top {top}", design)
ys.run_pass("flatten", design)
ys.run_pass("rename -top scope", design)
ys.run_pass("attrmap -remove src -remove hdlname -remove init", design)
scope = design.module(ys.IdString("\\scope"))

# A wire of that name in another module never differs.
names = sorted(wire.name.str() for wire in scope.selected_wires())
alike = [[name for name in names if name == wanted or name.endswith("." + wanted[1:])] for wanted in first]
assert all(alike), first
for number, name in enumerate(name for some in alike for name in some):
    wire = scope.wire(ys.IdString(name))
    port = scope.addWire(ys.IdString(f"\\{seen}{number}"), wire.width)
    scope.connect(ys.SigSpec(port), ys.SigSpec(wire))
    port.port_output = True
scope.fixup_ports()
ys.run_pass("opt_clean -purge", design)

def registers():
    return sorted((cell for cell in scope.selected_cells() if cell.type.str() == "$dff"), key=lambda c: c.name.str())

# A block in every stage, in every cycle, and every result is taken.
constants = {"block__valid": "1", "result__ready": "1", "rst": "0"}
for cell in registers():
    content = cell.getPort(ys.IdString("\\Q"))
    name = content.as_wire().name.str()[1:] if content.is_wire() else ""
    if re.fullmatch(r"\w+_valid|waiting", name):
        scope.remove(cell)
        constants[name] = "1"
for name, value in constants.items():
    wire = scope.wire(ys.IdString(f"\\{name}"))
    wire.port_input = wire.port_output = False
    ys.run_pass(f"select -module scope", design)
    ys.run_pass(f"connect -nounset -set {name} 1'{value}", design)
    ys.run_pass("select -clear", design)
scope.fixup_ports()
for command in ("opt_expr -full", "opt_clean", "opt_muxtree", "opt_expr -full", "opt_clean -purge"):
    ys.run_pass(command, design)
# What a register is given, its readers have a cycle later: one block alone cannot tell.
for cell in registers():
    following, content = (cell.getPort(ys.IdString(f"\\{port}")) for port in "DQ")
    scope.remove(cell)
    scope.connect(content, following)
ys.run_pass("opt_clean -purge", design)
ys.run_pass("check -assert", design)
ys.run_pass("write_rtlil scope.il", design)
"""

_TO_AIGER = """
from pyosys import libyosys as ys
design = ys.Design()
for command in (
    "read_rtlil scope.il", "read_verilog miter.v", "hierarchy -check -top miter", "flatten",
    "opt_clean", "opt_expr", "opt_muxtree", "opt_expr", "opt_merge", "opt_clean",
    "techmap", "simplemap", "aigmap", "opt_clean", "write_aiger data.aig",
):
    ys.run_pass(command, design)
"""


def same_results(texts: Mapping[str, str], mutant: Mutant) -> bool:
    """Whether a mutant of the data of a quantiser gives the results of the quantiser, for every block.

    There is a block in every stage, and all move on in every cycle. So registers of data pass on what they are given,
    and are taken out. ABC proves (``iprove``) that the results are equal, for all blocks and tensor scales of the
    contract. Registers and their enables are as they were: a mutant of one of these is not proven here. Nor is one of
    the module ``core``, which has the control, unless no wire by which blocks move depends on its cell.

    Parameters
    ----------
    texts
        Modules of the quantiser, see `sim.mutate.rtlil.lowered`.
    mutant
        The mutant.

    Raises
    ------
    ToolError
        Yosys or ABC failed.
    """
    if mutant.operator in ("enable", "reset"):
        return False
    if mutant.module == "core" and reached(texts, "core", mutant.cell) & steered_by(texts, "core"):
        return False
    with tempfile.TemporaryDirectory(prefix="hwgen-") as place, contextlib.suppress(subprocess.TimeoutExpired):
        directory = Path(place)
        (directory / "planted.il").write_text("\n".join(planted(texts, [mutant]).values()), encoding="utf-8")
        first = sorted(frontier(texts, mutant.module, mutant.cell))
        run(directory, sys.executable, "-c", _TRANSPARENT, "core", _SEEN, *first)
        scope = (directory / "scope.il").read_text(encoding="utf-8")
        (directory / "miter.v").write_text(_miter(scope), encoding="utf-8")
        run(directory, sys.executable, "-c", _TO_AIGER)
        return "UNSATISFIABLE" in run(directory, ABC, "-c", "read_aiger data.aig; strash; orpos; iprove").split()
    return False


def _miter(scope: str) -> str:
    """Verilog that compares the results of both for a block."""
    inputs = [port for port in ports(scope) if port.is_input and port.name[1:] not in (SELECT, "clk")]
    outputs = [port for port in ports(scope) if not port.is_input]
    header = [f"input [{port.width - 1}:0] {port.name[1:]}" for port in inputs]
    lines = [f"module miter({', '.join([*header, 'output differ'])});"]
    for number, side in enumerate(("faultless", "faulty")):
        wires = [f".{SELECT}({SELECT_WIDTH}'d{number})", *(f".{port.name[1:]}({port.name[1:]})" for port in inputs)]
        for port in outputs:
            lines.append(f"wire [{port.width - 1}:0] {side}_{port.name[1:]};")
            wires.append(f".{port.name[1:]}({side}_{port.name[1:]})")
        if any(port.name == "\\clk" for port in ports(scope)):
            wires.append(".clk(1'b0)")
        lines.append(f"scope {side}({', '.join(wires)});")
    granted = "$signed(tensor_exponent) >= -100 && $signed(tensor_exponent) <= 126"

    def differ(*, first: bool) -> str:
        names = (port.name[1:] for port in outputs if port.name[1:].startswith(_SEEN) == first)
        return " | ".join(f"(faultless_{name} != faulty_{name})" for name in names) or "1'b0"

    # Where nothing differs at once, no result does. Said here, that leaves fewer cases to a solver.
    differ_at_all = f"{granted} && ({differ(first=True)}) && ({differ(first=False)})"
    return "\n".join([*lines, f"assign differ = {differ_at_all};", "endmodule", ""])
