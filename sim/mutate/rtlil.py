"""The text of RTLIL, as far as mutants need it: cells with parameters and connections, ports of modules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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


def lowered(modules: ModuleSet, top: str, *, clean: bool = False) -> dict[str, str]:
    """Text of every module, with its processes as cells; ``clean`` without cells and wires that nobody reads."""
    text, _ = run_passes(modules, _PASSES.format(top=top, clean="opt_clean" if clean else ""))
    return {match[1]: match[0] for match in _MODULE.finditer(text)}


def cells(module: str) -> list[Cell]:
    """The cells of a module's text, in its order."""
    return [
        Cell(match[1], match[2], dict(_PARAMETER.findall(match[3])), dict(_CONNECTION.findall(match[3])), match[0])
        for match in _CELL.finditer(module)
    ]


def ports(module: str) -> list[Port]:
    """The ports of a module's text, in its order."""
    return [Port(name, int(width or 1), way == "input") for width, way, name in _PORT.findall(module)]
