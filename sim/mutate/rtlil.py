"""The text of RTLIL, as far as mutants need it: cells with parameters and connections, ports of modules.

It stays text, for a mutant is a change of a line or two beside all else as it was, and the order of the cells decides
which bits a seed draws. What is read is counted: a line that is not understood is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hwgen.errors import ToolError
from hwgen.rtl.hierarchy import ModuleSet
from hwgen.verilog import run_passes

__all__ = ["Cell", "Port", "cells", "lowered", "ports"]

_PASSES = """
hierarchy -top {top}
proc
opt_expr
{clean}
attrmap -remove src -remove generator -remove full_case -remove unused_bits
write_rtlil
"""

_MODULE = re.compile(r"^module \\(\S+)\n.*?^end$", re.DOTALL | re.MULTILINE)
_CELL = re.compile(r"^  cell (\S+) (\S+)\n(.*?)^  end$", re.DOTALL | re.MULTILINE)
_PARAMETER = re.compile(r"^    parameter (?:signed )?\\(\S+) (\S+)$", re.MULTILINE)
_CONNECTION = re.compile(r"^    connect \\(\S+) (.+)$", re.MULTILINE)
_PORT = re.compile(r"^  wire (?:width (\d+) )?(input|output) \d+ (?:signed )?(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """One cell of a module.

    Parameters
    ----------
    kind
        Type: ``$and``, or ``\\`` and the name of a module.
    name
        Name, unique in its module; ``$13``, or ``\\`` and a public name.
    parameters
        Values as they are written.
    connections
        Signals as they are written, by port.
    text
        All of it.
    """

    kind: str
    name: str
    parameters: Mapping[str, str]
    connections: Mapping[str, str]
    text: str

    def width(self, port: str) -> int:
        """Bits of a port of a cell of Yosys' own library."""
        own = self.parameters.get(f"{port}_WIDTH")
        if own is None:
            own = "1" if port == "S" and self.kind == "$mux" else self.parameters["WIDTH"]
        return int(own)


@dataclass(frozen=True)
class Port:
    """One port of a module: name as it is written, width in bits, and whether it is an input."""

    name: str
    width: int
    is_input: bool


def _check(understood: int, lines: int, what: str) -> None:
    if understood != lines:
        raise ToolError(f"RTLIL of another shape: of {lines} {what}, {understood} are understood")


def lowered(modules: ModuleSet, top: str, *, clean: bool = False) -> dict[str, str]:
    """Text of every module, with its processes as cells; ``clean`` without cells and wires that nobody reads.

    Raises
    ------
    ToolError
        Yosys failed, or what it wrote has not the modules that went in.
    """
    text, _ = run_passes(modules, _PASSES.format(top=top, clean="opt_clean" if clean else ""))
    texts = {match[1]: match[0] for match in _MODULE.finditer(text)}
    if texts.keys() != modules.texts.keys():
        raise ToolError(f"RTLIL of another shape: modules {', '.join(texts)}, not {', '.join(modules.texts)}")
    return texts


# The same modules are asked for with every mutant.
@lru_cache(maxsize=64)
def cells(module: str) -> tuple[Cell, ...]:
    """The cells of a module's text, in its order.

    Raises
    ------
    ToolError
        A line of a cell is not understood.
    """
    found = []
    for match in _CELL.finditer(module):
        parameters, connections = _PARAMETER.findall(match[3]), _CONNECTION.findall(match[3])
        _check(len(parameters) + len(connections), match[3].count("\n"), f"lines of cell {match[2]}")
        found.append(Cell(match[1], match[2], dict(parameters), dict(connections), match[0]))
    _check(len(found), sum(line.startswith("  cell ") for line in module.splitlines()), "cells")
    return tuple(found)


@lru_cache(maxsize=64)
def ports(module: str) -> tuple[Port, ...]:
    """The ports of a module's text, in its order.

    Raises
    ------
    ToolError
        A line of a port is not understood.
    """
    found = [Port(name, int(width or 1), way == "input") for width, way, name in _PORT.findall(module)]
    lines = [line.split() for line in module.splitlines() if line.startswith("  wire ")]
    _check(len(found), sum(bool({"input", "output", "inout"} & set(words[1:-1])) for words in lines), "ports")
    return tuple(found)
