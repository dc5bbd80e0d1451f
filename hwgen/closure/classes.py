"""Cells that are one cell of one module: they have one size in all instances of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwgen.netlist.graph import Netlist

__all__ = ["Classes", "classes"]


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
            names += [(module, cell) for cell in cells]
        number[first : first + len(cells)] = begin[module] + np.arange(len(cells))
    return Classes(number, names)
