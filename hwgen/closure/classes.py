"""Cells that are one cell of one module: they have one size in all instances of it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from hwgen.netlist.graph import Netlist
from hwgen.timing.compiled import Compiled

__all__ = ["Classes", "applied", "classes"]


class Classes(NamedTuple):
    """The cells of a netlist by the cells of its modules.

    Attributes
    ----------
    number : numpy.ndarray
        Shape (n_cells,): class of each cell, from 0 up.
    names : list of (str, str)
        Module of each class, and the cell's name in it.
    """

    number: np.ndarray
    names: list[tuple[str, str]]


def classes(netlist: Netlist) -> Classes:
    """The classes of a netlist's cells."""
    number = np.empty(netlist.n_cells, dtype=np.int64)
    names: list[tuple[str, str]] = []
    begin: dict[str, int] = {}
    for module, first, cells in netlist.names.instances():
        if module not in begin:
            begin[module] = len(names)
            names.extend(zip(repeat(module), cells))
        number[first : first + len(cells)] = begin[module] + np.arange(len(cells))
    return Classes(number, names)


def applied(modules: Mapping[str, dict[str, Any]], found: Classes, compiled: Compiled) -> dict[str, dict[str, Any]]:
    """The modules with the sizes of a folded netlist.

    Parameters
    ----------
    modules : mapping of str to dict
        Module bodies as in Yosys' ``write_json``; left as they are.
    found : Classes
        Of the netlist that they make.
    compiled : Compiled
        That netlist, folded by these classes.
    """
    result = {name: {**body, "cells": dict(body["cells"])} for name, body in modules.items()}
    for cell, kind in zip(compiled.cell_of.tolist(), compiled.state.kind.tolist(), strict=True):
        if cell >= 0:
            module, name = found.names[found.number[cell]]
            cells, chosen = result[module]["cells"], compiled.kinds.cells[kind].name
            if cells[name]["type"] != chosen:
                cells[name] = {**cells[name], "type": chosen}
    return result
