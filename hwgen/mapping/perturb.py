"""Perturbation: the same design in another order.

A mapper breaks ties by the order in which it meets the gates, so one run is one draw from a spread. Shuffling
the order of a module's continuous assignments changes nothing in its meaning and moves the area of a block by
1 to 2 % (standard deviation). Renaming wires and shuffling their declarations alone hardly moves it in Yosys
0.70: names no longer decide the order there.
"""

from __future__ import annotations

import random
import re

__all__ = ["MODULE", "reordered", "shuffled"]

_ASSIGNMENT = re.compile(r"^  assign [^;]*;$", re.MULTILINE)

MODULE = re.compile(r"^module (\w+)\b.*?^endmodule$", re.DOTALL | re.MULTILINE)
"""One module of such a text; group 1 is its name."""


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
    """
    if variant == 0:
        return verilog
    generator = random.Random(variant)

    def module(match: re.Match[str]) -> str:
        assignments = _ASSIGNMENT.findall(match[0])
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
    """
    cells = _CELL.findall(rtlil)
    random.Random(variant).shuffle(cells)
    following = iter(cells)
    return _CELL.sub(lambda _: next(following), rtlil)
