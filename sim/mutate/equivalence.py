"""Proof that a mutant is no fault: nothing that can be seen depends on it."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from hwgen.rtl.lane_array import LaneArray
from hwgen.verilog import design
from sim.mutate.control import same_control
from sim.mutate.design import SELECT, SELECT_WIDTH, planted
from sim.mutate.kept import kept
from sim.mutate.operators import Mutant
from sim.mutate.prover import ABC, run
from sim.mutate.relation import (
    GUESSES,
    Built,
    anticipated,
    condition,
    in_range,
    largest_held,
    matters_with,
    with_result,
    word,
)
from sim.mutate.rtlil import lowered, ports
from sim.mutate.standing import same_content

__all__ = ["equivalent", "proven"]

_FLATTEN = r"""
import json, sys
from pyosys import libyosys as ys
top = sys.argv[1]
design = ys.Design()
ys.run_pass("read_rtlil planted.il", design)
ys.run_pass(f"hierarchy -top {top}", design)
ys.run_pass("flatten", design)
ys.run_pass("opt_clean -purge", design)
# What loads a constant alone holds it wherever it is read. Inputs that an enable never lets pass become x on the way.
ys.run_pass("opt_dff -nosdff", design)
ys.run_pass("dffunmap", design)
ys.run_pass("setundef -zero", design)
ys.run_pass("splitcells", design)
ys.run_pass("opt_clean -purge", design)
ys.run_pass("rename -top scope", design)
ys.run_pass("attrmap -remove src -remove hdlname -remove init", design)

# A wire, or some of its bits, as RTLIL writes them.
def named(signal):
    if signal.is_wire():
        return signal.as_wire().name.str()[1:]
    if not signal.is_chunk():
        return "parts"
    chunk = signal.as_chunk()
    return f"{chunk.wire.name.str()[1:]} [{chunk.offset + chunk.width - 1}:{chunk.offset}]"

# Registers become ports: their content comes in, what they are to hold goes out.
scope = design.module(ys.IdString("\\scope"))
names = []
for cell in sorted(scope.selected_cells(), key=lambda cell: cell.name.str()):
    kind = cell.type.str()
    if kind != "$dff":
        if "ff" in kind or "latch" in kind or "mem" in kind:
            sys.exit(f"register {cell.name.str()} is of type {kind}, not $dff")
        continue
    following, content = (cell.getPort(ys.IdString(f"\\{port}")) for port in "DQ")
    into = scope.addWire(ys.IdString(f"\\state{len(names)}"), content.size())
    out = scope.addWire(ys.IdString(f"\\next{len(names)}"), content.size())
    into.port_input = out.port_output = True
    names.append(named(content))
    scope.remove(cell)
    scope.connect(content, ys.SigSpec(into))
    scope.connect(ys.SigSpec(out), following)
scope.fixup_ports()
ys.run_pass("write_rtlil scope.il", design)
with open("registers.json", "w") as file:
    json.dump(names, file)
"""

_TO_AIGER = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in (
    "read_rtlil scope.il", f"read_verilog -DCASE={sys.argv[1]} miter.v", "hierarchy -check -top miter", "flatten",
    "opt_clean", "opt_expr", "opt_muxtree", "opt_expr", "opt_merge", "opt_clean",
    "techmap", "simplemap", "aigmap", "opt_clean", "write_aiger case.aig",
):
    ys.run_pass(command, design)
"""


def _claims(config: Built, module: str, registers: Sequence[str], role: str) -> dict[str, str]:
    """Verilog of what registers keep from one cycle to the next, by what is claimed; parameters as of `kept`."""
    held = {name: (word(registers, name, role), largest) for name, largest in largest_held(config, module).items()}
    ranges = {f"range of {name}": f"{found[0]} <= {largest}" for name, (found, largest) in held.items() if found}
    return ranges | kept(config, registers, role)


def _miter(
    scope: str, registers: Sequence[str], config: Built, module: str, free: Mapping[str, Mapping[str, bool]]
) -> tuple[str, int, list[str]]:
    """Verilog that compares a scope with its mutant and without, the number of its cases, and what it compares.

    The registers of ``free`` may differ where they do not matter, before the clock edge and after it: where others do
    not all hold what ``free`` says. The cases are the values of those: where a register matters, both sides have one
    and the same signal, which leaves little to prove. What it compares is outputs and, by their names, registers.
    """
    needed = [free.get(register, {}) for register in registers]
    deciding = sorted({registers.index(other) for others in needed for other in others if other in registers})
    header, body, differences, compared = [], [], [], []

    def holds(role: str, others: Mapping[str, bool]) -> list[str]:
        return [f"({condition(registers, other, role)} == {value:d})" for other, value in others.items()]

    wires = {side: [f".{SELECT}({SELECT_WIDTH}'d{number})"] for number, side in enumerate(("faultless", "faulty"))}
    for port in ports(scope):
        name, span = port.name[1:], f"[{port.width - 1}:0]"
        if name == SELECT:
            continue
        for side, connections in wires.items():
            connections.append(f".{name}({side}_{name})")
        body += [f"wire {span} {side}_{name};" for side in wires]
        role = re.fullmatch(r"(state|next)(\d+)", name)
        index = int(role[2]) if role else None
        others = needed[index] if index is not None else {}
        if port.is_input:
            value, same = name, f"faultless_{name}"
            if index in deciding:
                value = f"CASE[{deciding.index(index)}]"
            else:
                header.append(f"input {span} {name}")
            if others:
                header.append(f"input {span} other_{name}")
                matters = " & ".join(holds("faultless_state", others))
                same = f"{matters} ? {same} : other_{name}"
            body += [f"assign faultless_{name} = {value};", f"assign faulty_{name} = {same};"]
        else:
            conditions = holds("faultless_next", others)
            if name == "result__payload" and with_result(config):
                conditions.append("faultless_result__valid")
            differences.append(" & ".join(["ranges", *conditions, f"(faultless_{name} != faulty_{name})"]))
            compared.append(name if index is None else registers[index])
    claims = _claims(config, module, registers, "faultless_next")
    differences += [f"ranges & !({claim})" for claim in claims.values()]
    compared += claims
    taken = _claims(config, module, registers, "faultless_state").values()
    granted = [*in_range(config, module), *anticipated(config, registers), *taken]
    lines = [
        f"module miter({', '.join([*header, f'output [{len(compared) - 1}:0] differ'])});",
        f"localparam [{max(len(deciding), 1) - 1}:0] CASE = `CASE;",
        *body,
        *(f"scope {side}({', '.join(connections)});" for side, connections in wires.items()),
        f"wire [{len(granted)}:0] granted;",
        *(f"assign granted[{number}] = {term};" for number, term in enumerate([*granted, "1"])),
        "wire ranges = &granted;",  # one term of many would be too deep for Yosys
        *(f"assign differ[{number}] = {difference};" for number, difference in enumerate(differences)),
        "endmodule",
        "",
    ]
    return "\n".join(lines), 1 << len(deciding), compared


_PARTS = 8
"""Into how many parts outputs are divided where they are not proven together."""


def _proven(directory: Path, first: int, count: int) -> bool:
    """Whether outputs of the case at hand, ``count`` from the ``first`` on, are proven to be zero always."""
    answer = run(directory, ABC, "-c", f"read_aiger case.aig; strash; cone -O {first} -R {count}; orpos; iprove")
    verdict = re.search(r"^(UNSATISFIABLE|SATISFIABLE|UNDECIDED)\b", answer, re.M)
    if verdict is None:
        raise ToolError("proof of equivalence failed: ABC gives no answer")
    return verdict[1] == "UNSATISFIABLE"


def _not_zero(directory: Path, case: int, count: int) -> list[int]:
    """Which of the outputs of a case are not proven to be zero always."""
    run(directory, sys.executable, "-c", _TO_AIGER, str(case))
    found, asked = [], [range(count)]
    while asked:
        some = asked.pop()
        if _proven(directory, some.start, len(some)):
            continue
        if len(some) == 1:
            found.append(some.start)
        else:
            size = -(-len(some) // _PARTS)
            asked += [some[start : start + size] for start in range(0, len(some), size)]
    return sorted(found)


def _closed(
    differing: Sequence[str],
    after: Callable[[Mapping[str, Mapping[str, bool]]], list[str]],
    matters: Callable[[str], Mapping[str, bool]],
) -> bool:
    """Whether nothing differs after a cycle but registers that do not matter then, by one guess of when they do.

    What differs if no register may differ before is ``differing``; ``after`` tells it of registers that may.
    """
    free: dict[str, Mapping[str, bool]] = {}
    while differing:
        more = {name: matters(name) for name in differing}
        # Registers whose content may turn out not to matter; anything else is seen.
        if free.keys() & more.keys() or not all(more.values()):
            return False
        free |= more
        differing = after(free)
    return True


class _Flat:
    """A module with its mutant, all below it flattened, registers as ports: ``scope.il`` of a directory.

    Attributes
    ----------
    text : str
        What is in that file.
    registers : list of str
        Their names, by the number of the port.
    """

    def __init__(self, config: Built, texts: Mapping[str, str], mutant: Mutant, scope: str, directory: Path) -> None:
        self.config = config
        self.scope = scope
        self.directory = directory
        (directory / "planted.il").write_text("\n".join(planted(texts, [mutant]).values()), encoding="utf-8")
        run(directory, sys.executable, "-c", _FLATTEN, scope)
        self.text = (directory / "scope.il").read_text(encoding="utf-8")
        self.registers: list[str] = json.loads((directory / "registers.json").read_text(encoding="utf-8"))

    def after(self, free: Mapping[str, Mapping[str, bool]]) -> list[str]:
        """What may differ after a cycle, see `_miter`; in the first case in which something does."""
        miter, cases, compared = _miter(self.text, self.registers, self.config, self.scope, free)
        (self.directory / "miter.v").write_text(miter, encoding="utf-8")
        found = (_not_zero(self.directory, case, len(compared)) for case in range(cases))
        return [compared[output] for output in next(filter(None, found), [])]


def proven(config: Built, texts: Mapping[str, str], mutant: Mutant, scope: str) -> bool:
    """Whether a mutant cannot be told from the core at the borders of a module, all below it included.

    Proven is one clock cycle from any two states that agree in all registers but some that do not matter, see
    `sim.mutate.relation`: the outputs are the same, and the next states agree again. At first no
    register may differ; those that then do after the cycle are let off where they do not matter, and so on.
    What takes a tool longer than `TIME_LIMIT` is not proven.

    Parameters
    ----------
    config
        The core, or the quantiser.
    texts
        Its modules, see `sim.mutate.rtlil.lowered`.
    mutant
        The mutant.
    scope
        Name of the module.

    Raises
    ------
    ToolError
        Yosys or ABC failed.
    """
    with tempfile.TemporaryDirectory(prefix="hwgen-") as place, contextlib.suppress(subprocess.TimeoutExpired):
        flat = _Flat(config, texts, mutant, scope, Path(place))

        def matters(guess: tuple[bool, bool | None], name: str) -> Mapping[str, bool]:
            return matters_with(config, name, flat.registers, *guess) if name in flat.registers else {}

        guesses = GUESSES if isinstance(config, TensorCoreConfig) and config.slotted else GUESSES[:1]
        differing = flat.after({})
        return any(_closed(differing, flat.after, partial(matters, guess)) for guess in guesses)
    return False


def _same_control(config: TensorCoreConfig, texts: Mapping[str, str], mutant: Mutant) -> bool:
    """Whether a mutant of the core's own module tells all else the same in all cycles, or what is held already."""
    for proof in (same_control, partial(_same_content, config)):
        with tempfile.TemporaryDirectory(prefix="hwgen-") as place, contextlib.suppress(subprocess.TimeoutExpired):
            if proof(texts, mutant, Path(place)):
                return True
    return False


def _same_content(config: TensorCoreConfig, texts: Mapping[str, str], mutant: Mutant, directory: Path) -> bool:
    flat = _Flat(config, texts, mutant, mutant.module, directory)
    differing = flat.after({})
    return set(differing) <= set(flat.registers) and same_content(flat.text, flat.registers, differing, directory)


def equivalent(config: TensorCoreConfig, texts: Mapping[str, str], mutant: Mutant) -> str | None:
    """The smallest module at whose borders a mutant is proven equivalent; None if there is none.

    Above its own module that is the lane array for decoders and dot products, and the core, with a single element. A
    mutant of the core itself is also compared with it over many cycles, see `sim.mutate.control` and
    `sim.mutate.standing`.
    """
    if mutant.module == "core" and _same_control(config, texts, mutant):
        return "core"
    if proven(config, texts, mutant, mutant.module):
        return mutant.module
    if mutant.module == "core":
        return None
    lane_array = lowered(design(LaneArray, config, "lane_array"), "lane_array")
    # With a slot that shares lanes the dot product is another one than in a lane array, which has none.
    same = lane_array.get(mutant.module) == texts[mutant.module]
    if same and proven(config, lane_array, mutant, "lane_array"):
        return "lane_array"
    return "core" if proven(config, texts, mutant, "core") else None
