"""Perturbation: the same design in another order.

A mapper breaks ties by the order in which it meets the gates, so one run is one draw from a spread. Shuffling
the order of a module's continuous assignments changes nothing in its meaning and moves the area of a block by
1 to 2 % (standard deviation). Renaming wires and shuffling their declarations alone hardly moves it in Yosys
0.70: names no longer decide the order there.

Both functions work on text. What they change is the order in which a file lists statements, which no object has:
Yosys keeps cells and connections by name, and what it reads decides in which order it meets them. So what is found is
counted, and a text of another shape is refused.
"""

from __future__ import annotations

import random
import re

from hwgen.errors import ToolError

__all__ = ["MODULE", "reordered", "shuffled"]

_ASSIGNMENT = re.compile(r"^  assign [^;]*;$", re.MULTILINE)

MODULE = re.compile(r"^module (\w+)\b.*?^endmodule$", re.DOTALL | re.MULTILINE)
"""One module of such a text; group 1 is its name."""


def _check(found: int, text: str, start: str) -> None:
    """Whether so many statements are all of those whose lines begin with ``start``."""
    there = sum(line.startswith(start) for line in text.splitlines())
    if found != there:
        raise ToolError(f"cannot perturb: of {there} lines that begin with {start!r}, {found} are understood")


def shuffled(verilog: str, variant: int) -> str:
    """Shuffle the continuous assignments of every module.

    Parameters
    ----------
    verilog
        Text as `hwgen.verilog.verilog` writes it: one assignment on a line.
    variant
        0 leaves the text as it is; any other number is a seed.

    Returns
    -------
    str
        Text of the same meaning.

    Raises
    ------
    ToolError
        There are modules or assignments that are not written like that.
    """
    if variant == 0:
        return verilog
    generator = random.Random(variant)
    _check(len(MODULE.findall(verilog)), verilog, "module ")

    def module(match: re.Match[str]) -> str:
        assignments = _ASSIGNMENT.findall(match[0])
        _check(len(assignments), match[0], "  assign ")
        generator.shuffle(assignments)
        following = iter(assignments)
        return _ASSIGNMENT.sub(lambda _: next(following), match[0])

    return MODULE.sub(module, verilog)


_CELL = re.compile(r"^(?:  attribute [^\n]*\n)*  cell [^\n]*\n(?:    [^\n]*\n)*  end\n", re.MULTILINE)


def reordered(rtlil: str, variant: int) -> str:
    """Shuffle the cells of a design of one module.

    Parameters
    ----------
    rtlil
        Text as Yosys' ``write_rtlil`` gives it; black boxes have no cells.
    variant
        Seed.

    Returns
    -------
    str
        Text of the same meaning.

    Raises
    ------
    ToolError
        There are cells that are not written like that.
    """
    cells = _CELL.findall(rtlil)
    _check(len(cells), rtlil, "  cell ")
    random.Random(variant).shuffle(cells)
    following = iter(cells)
    return _CELL.sub(lambda _: next(following), rtlil)
