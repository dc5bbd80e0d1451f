"""Pins of a netlist: which cells and ports each net joins, the driver first, and where on a cell a pin is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwgen.errors import InputError
from hwgen.layout.lef import Shapes
from hwgen.layout.technology import Technology
from hwgen.netlist.graph import Netlist

__all__ = ["Pins", "pins_of", "widths"]

_ROUND = 0.02


@dataclass(frozen=True, slots=True)
class Pins:
    """Pins by net. The constants and the clock have none: nothing of them is a signal's wire.

    Attributes
    ----------
    start : numpy.ndarray
        Shape (n_nets + 1,): net i has the pins ``start[i]`` up to, not including, ``start[i + 1]``; the first is
        the one that drives.
    cell : numpy.ndarray
        Shape (n_pins,): the pin's cell; -1 for a port.
    x, y : numpy.ndarray
        Shape (n_pins,): from the cell's centre to the pin, um; 0 for a port, and where no LEF says.
    port : numpy.ndarray
        Shape (n_pins,): number of the port's bit, those of all ports in order; -1 for a cell.
    """

    start: np.ndarray
    cell: np.ndarray
    x: np.ndarray
    y: np.ndarray
    port: np.ndarray

    @property
    def net(self) -> np.ndarray:
        """Net of each pin, shape (n_pins,)."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def widths(netlist: Netlist, technology: Technology, shapes: Shapes | None = None) -> np.ndarray:
    """Width of every cell in um, a whole number of sites, shape (n_cells,).

    Parameters
    ----------
    netlist
        Cells and their areas.
    technology
        Row height and site.
    shapes
        Of the cells; without, a width is the area over the row's height, to the next whole site where it is more
        than 2 % of a site above one.

    Raises
    ------
    InputError
        A cell that ``shapes`` does not have, or that is higher than a row.
    """
    found = np.zeros(netlist.n_cells)
    for group in netlist.groups:
        if shapes is not None:
            sites = shapes.width(group.cell.name, technology) / technology.site
        else:
            sites = group.cell.area / (technology.row_height * technology.site)
        if not np.isfinite(sites):
            raise InputError(f"cell {group.cell.name} has the area {group.cell.area}; expected a number")
        found[group.cells] = max(np.ceil(sites - _ROUND), 1.0) * technology.site
    return found


def pins_of(netlist: Netlist, shapes: Shapes | None = None) -> Pins:
    """All pins of a netlist's nets.

    Parameters
    ----------
    netlist
        Nets.
    shapes
        Where pins are on cells; without, at the cells' centres.
    """
    parts: list[tuple[np.ndarray, ...]] = []

    def add(net: np.ndarray, cell: np.ndarray | int, at: tuple[float, float], bit: np.ndarray | int, load: int) -> None:
        parts.append(tuple(np.broadcast_to(value, net.shape) for value in (net, cell, *at, bit, load)))

    for group in netlist.groups:
        for names, matrix, load in ((group.cell.inputs, group.inputs, 1), (group.cell.outputs, group.outputs, 0)):
            for column, name in enumerate(names):
                at = (0.0, 0.0) if shapes is None else shapes.pin(group.cell.name, name)
                add(matrix[:, column], group.cells, at, -1, load)
    bits = 0
    for entry in netlist.ports.values():
        add(entry.nets, -1, (0.0, 0.0), np.arange(bits, bits + len(entry.nets)), int(entry.direction == "output"))
        bits += len(entry.nets)
    net, cell, x, y, port_bit, loads = (np.concatenate(values) for values in zip(*parts, strict=True))
    kept = np.flatnonzero((net > 1) & (net != (-1 if netlist.clock_net is None else netlist.clock_net)))
    order = kept[np.lexsort((loads[kept], net[kept]))]
    start = np.searchsorted(net[order], np.arange(netlist.n_nets + 1))
    return Pins(start, cell[order], x[order], y[order], port_bit[order])
