"""Relief of outputs that drive more than the library lets them: a larger drive, or a buffer that takes the load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.closure.classes import classes
from hwgen.netlist.bodies import copied_cells, highest_bit
from hwgen.netlist.fanout import tree_buffer
from hwgen.netlist.graph import Netlist
from hwgen.timing.loads import overloads

__all__ = ["relieve"]

# Wires move when cells do: a limit is used up to this share.
_SHARE = 0.95


def relieve(
    modules: Mapping[str, dict[str, Any]], netlist: Netlist, load: np.ndarray
) -> tuple[dict[str, dict[str, Any]], int]:
    """Give overloaded outputs the smallest drive that suffices, or a buffer where there is none.

    An output that even the largest buffer could not serve is left as it is.

    Parameters
    ----------
    modules : mapping of str to dict
        Module bodies as in Yosys' ``write_json``; left as they are.
    netlist : Netlist
        Of them.
    load : numpy.ndarray
        Shape (n_nets, 2): fF on each net, by edge.

    Returns
    -------
    dict, int
        The modules, and how many cells are new or of another size.
    """
    library, found = netlist.library, classes(netlist)
    worst: dict[tuple[str, str], dict[str, float]] = {}
    kinds: dict[tuple[str, str], Cell] = {}
    for each in overloads(netlist, load):
        place = found.names[found.number[each.cell]]
        its = worst.setdefault(place, {})
        its[each.output] = max(its.get(each.output, 0.0), each.load)
        kinds[place] = each.kind
    buffer = tree_buffer(library)
    buffers = library.drives(buffer) if buffer is not None else ()
    changed = dict.fromkeys(module for module, _ in worst)
    cells = {module: copied_cells(modules[module]) for module in changed}
    highest = {module: highest_bit(modules[module]) for module in changed}
    count = 0
    for place, loads in worst.items():
        module, name = place
        larger = next((kind for kind in library.drives(kinds[place]) if _bears(netlist, kind, loads)), None)
        if larger is not None:
            cells[module][name]["type"] = larger.name
            count += 1
            continue
        for output, most in loads.items():
            chosen = next((kind for kind in buffers if _bears(netlist, kind, {kind.outputs[0]: most})), None)
            if chosen is None:
                continue
            highest[module] += 1
            count += 1
            driven = cells[module][name]["connections"][output]
            pins = {chosen.inputs[0]: [highest[module]], chosen.outputs[0]: [driven[0]]}
            driven[0] = highest[module]
            cells[module][f"$closure${highest[module]}"] = {"type": chosen.name, "connections": pins}
    return {**modules, **{module: {**modules[module], "cells": own} for module, own in cells.items()}}, count


def _bears(netlist: Netlist, kind: Cell, loads: Mapping[str, float]) -> bool:
    """Whether a kind may drive these loads in fF, by output."""
    limits = netlist.library.load_limits(kind)
    return all(load <= _SHARE * limits[output] for output, load in loads.items())
