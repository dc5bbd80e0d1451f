"""A netlist after a change, beside the one before it: cells have other sizes, and buffers were put in or taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.netlist.graph import CellGroup, Netlist

__all__ = ["cells_before", "nets_before", "only_resized", "resized"]


def resized(netlist: Netlist, kinds: Sequence[Cell], kind: np.ndarray) -> Netlist:
    """A netlist with cells of other sizes, as `hwgen.netlist.link.link` makes it of modules that have these.

    Parameters
    ----------
    netlist
        Before.
    kinds
        Cells, all that occur now among them.
    kind
        Shape (n_cells,): which of ``kinds`` each cell is now, with pins of the same names.
    """
    parts: dict[int, list[CellGroup]] = {}
    for group in netlist.groups:
        its = kind[group.cells]
        for one in np.unique(its).tolist():
            rows, cell = np.flatnonzero(its == one), kinds[one]
            inputs = [group.cell.inputs.index(name) for name in cell.inputs]
            outputs = [group.cell.outputs.index(name) for name in cell.outputs]
            part = CellGroup(cell, group.cells[rows], group.inputs[rows][:, inputs], group.outputs[rows][:, outputs])
            parts.setdefault(one, []).append(part)
    groups = []
    for several in parts.values():
        cells, ins, outs = (
            np.concatenate([getattr(part, name) for part in several]) for name in ("cells", "inputs", "outputs")
        )
        order = np.argsort(cells)
        groups.append(CellGroup(several[0].cell, cells[order], ins[order], outs[order]))
    groups.sort(key=lambda group: int(group.cells[0]))
    return replace(netlist, groups=groups)


def only_resized(old: Netlist, new: Netlist) -> bool:
    """Whether `resized` made one of the other, so that cells and nets have the same numbers in both."""
    return new.names is old.names


def cells_before(old: Netlist, new: Netlist) -> np.ndarray:
    """For each cell of a netlist its number in the one before, -1 if it is new; shape (n_cells,)."""
    if only_resized(old, new):
        return np.arange(new.n_cells)
    found = np.full(new.n_cells, -1, dtype=np.int64)
    places = {instance.path: number for number, instance in enumerate(old.instances)}
    old_names, new_names = old.names.instances(), new.names.instances()
    kept: dict[tuple[str, str], np.ndarray] = {}
    for number, instance in enumerate(new.instances):
        place = places.get(instance.path)
        if place is None:
            continue
        modules = instance.module, old.instances[place].module
        if modules not in kept:
            own = {name: i for i, name in enumerate(old_names[place][2])}
            kept[modules] = np.array([own.get(name, -1) for name in new_names[number][2]], dtype=np.int64)
        local = kept[modules]
        own_cells = slice(instance.first, instance.first + instance.own)
        found[own_cells] = np.where(local >= 0, local + old.instances[place].first, -1)
    return found


def nets_before(old: Netlist, new: Netlist) -> np.ndarray:
    """For each net of a netlist the one before that has its value in every cycle, -1 where none is known.

    It is the net that the same port or output drove; behind buffers, whose names mean nothing, it is the one before
    them. The caller vouches for it that any other cell of the same name computes the same.

    Returns
    -------
    numpy.ndarray
        Shape (n_nets,). Nets without a driver are 0, as the constant is.
    """
    found = np.where(new.driver == -2, 0, -1)
    found[:2] = 0, 1
    for name, port in new.ports.items():
        before = old.ports.get(name)
        if port.direction == "input" and before is not None and len(before.nets) == len(port.nets):
            found[port.nets] = before.nets
    place = cells_before(old, new)
    buffers = []
    for group in new.groups:
        if group.cell.is_buffer:
            buffers.append((group.inputs[:, 0], group.outputs[:, 0]))
            continue
        number = place[group.cells]
        known = np.flatnonzero(number >= 0)
        kind = old.cell_group[number[known]]
        for one in np.unique(kind).tolist():
            members = known[kind == one]
            before_group = old.groups[one]
            rows = old.cell_row[number[members]]
            for column, pin in enumerate(group.cell.outputs):
                if pin in before_group.cell.outputs:
                    found[group.outputs[members, column]] = before_group.outputs[
                        rows, before_group.cell.outputs.index(pin)
                    ]
    if buffers:
        sources, driven = (np.concatenate(nets) for nets in zip(*buffers, strict=True))
        while (ready := (found[driven] < 0) & (found[sources] >= 0)).any():
            found[driven[ready]] = found[sources[ready]]
    return found
