"""Pins of a netlist: which cells and ports each net joins, the driver first, and where on a cell a pin is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwgen.errors import InputError
from hwgen.jit import compiled
from hwgen.layout.lef import Shapes
from hwgen.layout.technology import Technology
from hwgen.netlist.graph import Netlist

__all__ = ["Pins", "pins_of", "widths"]

_ROUND = 0.02
_SAME = 0.05


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
        A cell that ``shapes`` does not have, that is higher than a row, or that has another area there.
    """
    found = np.zeros(netlist.n_cells)
    for group in netlist.groups:
        if shapes is not None:
            wide = shapes.width(group.cell.name, technology)
            if abs(wide * technology.row_height - group.cell.area) > _SAME * group.cell.area:
                raise InputError(
                    f"{shapes.paths[0]}: MACRO {group.cell.name} is {wide:g} by {technology.row_height:g} um; its area"
                    f" in the library is {group.cell.area:g} um2, expected the same (is the LEF at another scale?)"
                )
            sites = wide / technology.site
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
    first = np.cumsum([0, *(len(port.nets) for port in netlist.ports.values())])
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    at: list[tuple[float, float]] = []
    for side, direction in (("outputs", "input"), ("inputs", "output")):  # what drives comes first
        for group in netlist.groups:
            none = np.full(len(group.cells), -1)
            for name, nets in zip(getattr(group.cell, side), getattr(group, side).T, strict=True):
                parts.append((nets, group.cells, none))
                at.append((0.0, 0.0) if shapes is None else shapes.pin(group.cell.name, name))
        for port, bit in zip(netlist.ports.values(), first[:-1], strict=True):
            if port.direction == direction:
                parts.append((port.nets, np.full(len(port.nets), -1), bit + np.arange(len(port.nets))))
                at.append((0.0, 0.0))
    net, cell, bits = (np.concatenate(values) for values in zip(*parts, strict=True))
    order, start = _by_net(net, netlist.n_nets, -1 if netlist.clock_net is None else netlist.clock_net)
    x, y = np.zeros((2, len(order)))
    if shapes is not None:
        part = np.repeat(np.arange(len(parts)), [len(nets) for nets, _, _ in parts])[order]
        x, y = (np.array(offsets)[part] for offsets in zip(*at, strict=True))
    return Pins(start, cell[order], x, y, bits[order])


@compiled
def _by_net(net: np.ndarray, n_nets: int, clock: int) -> tuple[np.ndarray, np.ndarray]:
    """Pins in the order of their nets, those of a net in the order they have, and where each net's begin."""
    start = np.zeros(n_nets + 1, np.int64)
    for pin in range(len(net)):
        if net[pin] > 1 and net[pin] != clock:
            start[net[pin] + 1] += 1
    for i in range(n_nets):
        start[i + 1] += start[i]
    free = start[:-1].copy()
    order = np.empty(start[-1], np.int64)
    for pin in range(len(net)):
        if net[pin] > 1 and net[pin] != clock:
            order[free[net[pin]]] = pin
            free[net[pin]] += 1
    return order, start
