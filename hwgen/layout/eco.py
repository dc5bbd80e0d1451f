"""A layout for a netlist that changed a little: cells of other sizes, buffers that came, gates that went.

Cells that both netlists have, by their names, stay near where they were. New ones begin amid their nets. Then
everything is made legal again, with few moves. The die, its ports and the places of an array's elements stay. A
netlist that has outgrown its die gets a new one, and is placed anew.

What is outside of the elements of a wide array is spread before it is made legal: its buffers are many, and they begin
in few places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hwgen.errors import InputError
from hwgen.layout.array import Array, Grid, around, array_of, element_problem, facing
from hwgen.layout.detail import improve
from hwgen.layout.floorplan import density_of
from hwgen.layout.layout import Layout, copied, lay_out, with_ports
from hwgen.layout.lef import Shapes
from hwgen.layout.legal import NoRoomError, legalise
from hwgen.layout.pins import Pins, pins_of, widths
from hwgen.layout.problem import Problem
from hwgen.layout.spread import FROM_NEAR, spread
from hwgen.netlist.graph import Netlist
from hwgen.netlist.revision import cells_before

__all__ = ["adapted"]

_PASSES = 2
_SWEEPS = 4
_HOLD = 1.0
"""What a um that a cell of a wide array moves counts for; a um of wire counts for 1."""

_Places = tuple[np.ndarray, np.ndarray]


def adapted(
    layout: Layout,
    netlist: Netlist,
    shapes: Shapes | None = None,
    *,
    legal: bool = True,
    places: Mapping[str, tuple[float, float]] | None = None,
) -> Layout:
    """The layout of a netlist that came of another one by small changes.

    Parameters
    ----------
    layout
        Of the netlist before.
    netlist
        The netlist now: the same ports; for an array, the same elements.
    shapes
        Of the cells, if the layout has them from LEF.
    legal
        Whether to make it legal: without, cells may overlap, and all is quick.
    places
        Centres in um of new cells of the top module, by name, where they are known; others begin amid their nets.

    Raises
    ------
    InputError
        Other ports or elements.
    """
    ports = [(port.name, len(port.nets)) for port in netlist.ports.values()]
    if ports != [(port.name, len(port.nets)) for port in layout.netlist.ports.values()]:
        raise InputError(f"{netlist.top}: has other ports than the layout; expected a netlist that changed a little")
    width, pins = widths(netlist, layout.technology, shapes), pins_of(netlist, shapes)
    if layout.grid is not None and shapes is not None:
        pins = facing(pins, _array_of(netlist, layout.grid), layout.grid)
    x, y = _begun(layout, netlist, width, pins, places or {})
    if not legal:
        return replace(layout, netlist=netlist, width=width, pins=pins, x=x, y=y)
    try:
        if layout.grid is None:
            along = np.ones((netlist.n_nets, 2))
            problem = Problem(width, layout.rows, pins.start, pins.cell, pins.x, pins.y, along)
            x, y = _moved(with_ports(problem, pins.port, layout.port_x, layout.port_y), x, y)
        else:
            x, y = _moved_array(layout, netlist, width, pins, x, y)
    except NoRoomError:
        return lay_out(
            netlist,
            layout.technology,
            utilisation=layout.utilisation,
            placer=layout.placer,
            arrangement=layout.arrangement,
            seed=layout.seed,
            shapes=shapes,
        )
    return replace(layout, netlist=netlist, width=width, pins=pins, x=x, y=y)


def _begun(
    layout: Layout, netlist: Netlist, width: np.ndarray, pins: Pins, places: Mapping[str, tuple[float, float]]
) -> _Places:
    """Lower left corners to begin with: the old ones, about the same centres."""
    before = cells_before(layout.netlist, netlist)
    kept = before >= 0
    told = {cell: places[name] for cell, name in enumerate(netlist.names.instances()[0][2]) if name in places}
    new, centres = np.array(list(told), dtype=np.int64), np.array(list(told.values())).reshape(-1, 2)
    known = kept.copy()
    known[new] = True
    height = layout.rows.height
    found = []
    for old, old_size, size, port, told_at in (
        (layout.x, layout.width, width, layout.port_x, centres[:, 0]),
        (layout.y, np.zeros(len(layout.y)), np.zeros(len(width)), layout.port_y, centres[:, 1] - height / 2),
    ):
        place = np.zeros(netlist.n_cells)
        place[kept] = (old + old_size / 2)[before[kept]] - size[kept] / 2
        place[new] = told_at - size[new] / 2
        found.append(_amid(place, known, pins, port))
    return found[0], found[1]


def _amid(place: np.ndarray, known: np.ndarray, pins: Pins, port: np.ndarray) -> np.ndarray:
    """Places where those that are not known are the means of their nets' pins."""
    net, n_nets = pins.net, len(pins.start) - 1
    cell = pins.cell
    settled = np.where(cell >= 0, known[cell], True)
    for _ in range(_SWEEPS if not known.all() else 0):
        at = np.where(cell >= 0, place[cell], port[pins.port] if len(port) else 0.0)
        count = np.bincount(net, settled, n_nets)
        mean = np.bincount(net, np.where(settled, at, 0.0), n_nets) / np.maximum(count, 1)
        of_new = (cell >= 0) & ~known[cell] & (count[net] > 0)
        nets = np.bincount(cell[of_new], minlength=len(place))
        amid = np.bincount(cell[of_new], mean[net[of_new]], len(place)) / np.maximum(nets, 1)
        moved = ~known & (nets > 0)
        place = np.where(moved, amid, place)
        settled = np.where(cell >= 0, (known | moved)[cell], True)
    return place


def _moved(problem: Problem, x: np.ndarray, y: np.ndarray) -> _Places:
    """Legal places near the given ones."""
    rows = problem.rows
    piece, site = legalise(problem.width, rows, x, y)
    piece, site = improve(problem, piece, site, _PASSES)
    return site * rows.site, rows.bottom[piece] * rows.height


def _array_of(netlist: Netlist, grid: Grid) -> Array:
    """The elements, as many as the grid has."""
    array = array_of(netlist)
    if array.rows * array.columns != len(grid.x):
        raise InputError(f"{netlist.top}: has other elements than the layout; expected a netlist that changed a little")
    return array


def _moved_array(
    layout: Layout, netlist: Netlist, width: np.ndarray, pins: Pins, x: np.ndarray, y: np.ndarray
) -> _Places:
    """Legal places of an array: of one element, copied, and then of the cells around."""
    grid = layout.grid
    assert grid is not None
    array = _array_of(netlist, grid)
    # The first element, on top at the left, is mirrored in neither way.
    own = slice(array.instances[0][0].first, array.instances[0][0].first + array.size)
    one = element_problem(netlist, array, pins, width, grid.element)
    others = np.flatnonzero(array.tile < 0)
    begun = x[others], y[others]
    x, y = copied(netlist, array, grid, *_moved(one, x[own] - grid.x[0], y[own] - grid.y[0]), one.width)
    problem, kept = around(array, pins, width, grid.die, x, y)
    problem = with_ports(problem, pins.port[kept], layout.port_x, layout.port_y)
    if array.wide:
        problem = _held(problem, *begun)
        begun = _spread(problem, *begun, layout.utilisation, layout.seed)
    x[others], y[others] = _moved(problem, *begun)
    return x, y


def _held(problem: Problem, x: np.ndarray, y: np.ndarray) -> Problem:
    """A problem in which each cell is pulled to where it is.

    A repeater on a long wire could be anywhere along it as far as the wire is concerned, but not as far as time is.
    """
    half = problem.width / 2, problem.rows.height / 2
    along = np.full((problem.n_cells, 2), _HOLD)
    return problem.pulled(np.arange(problem.n_cells), x + half[0], y + half[1], along)


def _spread(problem: Problem, x: np.ndarray, y: np.ndarray, utilisation: float, seed: int) -> _Places:
    """Places with room for all.

    Buffers crowd where the rows of a wide array are driven. Made legal from there, the last of them would end far away.
    """
    half = problem.width / 2, problem.rows.height / 2
    x, y = spread(problem, x + half[0], y + half[1], density=density_of(utilisation), seed=seed, first=FROM_NEAR)
    return x - half[0], y - half[1]
