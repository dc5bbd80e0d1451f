"""Proof that a mutant is no fault: nothing that can be seen depends on it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from sim.mutate.design import SELECT, SELECT_WIDTH
from sim.mutate.relation import matters_with
from sim.mutate.rtlil import cells, ports

__all__ = ["TIME_LIMIT", "proofs"]

TIME_LIMIT = 60
"""Seconds of the solver for one mutant."""

_FLATTEN = """
import sys
from pyosys import libyosys as ys
top = sys.argv[1]
design = ys.Design()
ys.run_pass("read_rtlil planted.il", design)
ys.run_pass(f"hierarchy -top {top}", design)
ys.run_pass("flatten", design)
ys.run_pass("opt_clean -purge", design)
ys.run_pass("rename -top scope", design)
ys.run_pass("attrmap -remove src -remove hdlname", design)
ys.run_pass("write_rtlil flat.il", design)
"""

_PROVE = """
import json, sys
from pyosys import libyosys as ys
numbers, limit = json.loads(sys.argv[1]), sys.argv[2]
design = ys.Design()
ys.run_pass("read_rtlil scope.il", design)
ys.run_pass("design -save scope", design)
for number in numbers:
    ys.run_pass("design -load scope", design)
    ys.run_pass(f"read_verilog miter{number}.v", design)
    ys.run_pass("hierarchy -check -top miter", design)
    ys.run_pass("flatten", design)
    ys.run_pass("opt -full", design)
    ys.run_pass(f"tee -q -o log{number} sat -timeout {limit} -prove differ 0 miter", design)
"""

_PROVEN = "SAT proof finished - no model found: SUCCESS!"


def _without_registers(flat: str) -> tuple[str, list[str]]:
    """A flat module whose registers are ports, ``state0`` and ``next0`` and so on; and the names of the registers."""
    names = []
    count = len(ports(flat))
    for cell in cells(flat):
        if cell.kind != "$dff":
            continue
        index, width, content = len(names), cell.width("D"), cell.connections["Q"]
        lines = [
            f"  wire width {width} input {count + 1} \\state{index}",
            f"  wire width {width} output {count + 2} \\next{index}",
            f"  connect {content} \\state{index}",
            f"  connect \\next{index} {cell.connections['D']}",
        ]
        flat = flat.replace(cell.text, "\n".join(lines))
        names.append(content.removeprefix("\\"))
        count += 2
    return flat, names


def _miter(scope: str, registers: Sequence[str], config: TensorCoreConfig, number: int) -> str:
    """Verilog that compares a scope with mutant ``number`` and without.

    Registers that do not matter may differ, before the clock edge and after it.
    """
    header, body, differences, assumed = [], [], [], []
    connections: dict[str, list[str]] = {
        "faultless": [f".{SELECT}({SELECT_WIDTH}'d0)"],
        "faulty": [f".{SELECT}({SELECT_WIDTH}'d{number})"],
    }

    def conditions(index: int, prefix: str) -> str:
        others = matters_with(config, registers[index], registers)
        return " & ".join([f"faultless_{prefix}{registers.index(other)}" for other in others]) or "1'b1"

    for port in ports(scope):
        name, span = port.name[1:], f"[{port.width - 1}:0]"
        if name == SELECT:
            continue
        role = re.fullmatch(r"(state|next)(\d+)", name)
        if port.is_input and (role is None or conditions(int(role[2]), "state") == "1'b1"):
            header.append(f"input {span} {name}")
            body += [f"wire {span} {side}_{name} = {name};" for side in connections]
        elif port.is_input:
            header += [f"input {span} {side}_{name}" for side in connections]
        else:
            body += [f"wire {span} {side}_{name};" for side in connections]
        for side, wires in connections.items():
            wires.append(f".{name}({side}_{name})")
        different = f"faultless_{name} != faulty_{name}"
        if role is not None:
            relevant = conditions(int(role[2]), role[1])
            (assumed if port.is_input else differences).append(f"{relevant} & ({different})")
        elif not port.is_input:
            valid = "faultless_result__valid & " if name == "result__payload" and config.exact else ""
            differences.append(f"{valid}({different})")
    lines = [
        f"module miter({', '.join([*header, 'output differ'])});",
        *body,
        *(f"scope {side}({', '.join(wires)});" for side, wires in connections.items()),
        f"wire apart = {' | '.join(f'({term})' for term in assumed) or 0};",
        f"assign differ = ~apart & ({' | '.join(f'({term})' for term in differences)});",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def _run(directory: Path, script: str, *arguments: str) -> None:
    command = [sys.executable, "-c", script, *arguments]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode:
        words = (result.stdout + result.stderr).strip().splitlines() or ["no output"]
        raise ToolError(f"proof of equivalence failed: {words[-1].strip()}")


def proofs(
    config: TensorCoreConfig, texts: Mapping[str, str], scope: str, numbers: Sequence[int], limit: int = TIME_LIMIT
) -> set[int]:
    """Which mutants cannot be told from the core at the borders of a module, all below it included.

    Proven is one clock cycle from any two states that agree in all registers that matter, see
    `sim.mutate.relation`: the outputs are the same, and the next states agree again.

    Parameters
    ----------
    config
        The core.
    texts
        Its modules with the mutants, see `sim.mutate.design.planted`.
    scope
        Name of the module.
    numbers
        The mutants.
    limit
        Seconds of the solver for one mutant; what it has not proven by then is not proven.

    Raises
    ------
    ToolError
        Yosys failed.
    """
    with tempfile.TemporaryDirectory(prefix="hwgen-") as place:
        directory = Path(place)
        (directory / "planted.il").write_text("\n".join(texts.values()), encoding="utf-8")
        _run(directory, _FLATTEN, scope)
        text, registers = _without_registers((directory / "flat.il").read_text(encoding="utf-8"))
        (directory / "scope.il").write_text(text, encoding="utf-8")
        for number in numbers:
            (directory / f"miter{number}.v").write_text(_miter(text, registers, config, number), encoding="utf-8")
        _run(directory, _PROVE, json.dumps(list(numbers)), str(limit))
        return {number for number in numbers if _PROVEN in (directory / f"log{number}").read_text(encoding="utf-8")}
