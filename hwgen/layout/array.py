"""Regular arrays: one element placed, and its placement copied to all.

The elements of an array have equal netlists. One of them is placed with its neighbours in mind, and every other gets
the same places: moved, and mirrored beyond the middle of the array, so that in all of them the same side faces the
middle. What the neighbours mean to the nets of the element:

- A wire along a row of elements passes through all of them. How far it reaches is up to the first and the last one:
  in these its pins had better be near the middle of the array. Across the row, every element has a branch of its own.
  Likewise for columns.
- What an element has to itself, its addend and its result, comes from the edge of the die.

All cells outside of elements, which are decoders, registers, control and buffers, are placed then: around the array,
and in what its elements leave of their rows. In a wide array their room is in the middle instead, between the left half
of the elements and the right one, or the upper and the lower one. What drives a row is pulled there, and so is near to
both its ends.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np

from hwgen.errors import InputError
from hwgen.jit import compiled
from hwgen.layout.floorplan import density_of, die_of
from hwgen.layout.pins import Pins
from hwgen.layout.problem import Problem, Rows
from hwgen.layout.technology import Technology
from hwgen.netlist.graph import Instance, Netlist

__all__ = ["Array", "Grid", "amid_sinks", "around", "array_of", "element_problem", "facing", "gaps", "grid_of"]

_WIDE = 4
"""Elements side by side whose rows are short enough to be driven from an end."""

_OUTWARD = 0.5
_PULL = 2.0
"""What a um counts for that a driver is from the middle of its sinks; a um of wire counts for 1."""

_EMPTIER, _FULLER = 0.95, 1.05
"""How full elements are, as a share of how full the die is: in an array that is not wide, and in a wide one at most."""

_MOST = 0.98
_PLACE = re.compile(r"(\d+)_(\d+)\.$")


@dataclass(frozen=True, slots=True)
class Array:
    """The elements of a netlist.

    Attributes
    ----------
    instances : list of list of Instance
        By row and column; all with equally many cells in the same order.
    tile : numpy.ndarray
        Shape (n_cells,): which element a cell is in, row by row; -1 outside.
    """

    instances: list[list[Instance]]
    tile: np.ndarray

    @property
    def rows(self) -> int:
        """Rows of elements."""
        return len(self.instances)

    @property
    def columns(self) -> int:
        """Columns of elements."""
        return len(self.instances[0])

    @property
    def wide(self) -> bool:
        """Whether its rows or columns are too long to be driven from an end."""
        return max(self.rows, self.columns) > _WIDE

    @property
    def size(self) -> int:
        """Cells of an element."""
        return self.instances[0][0].whole

    @property
    def first(self) -> np.ndarray:
        """First cell of each element, shape (rows * columns,)."""
        return np.array([instance.first for row in self.instances for instance in row])


def array_of(netlist: Netlist) -> Array:
    """Find the array: the module with most area whose instances in the top module are named ``NAMEr_c.``.

    Raises
    ------
    InputError
        There is none.
    """
    found: dict[str, dict[tuple[int, int], Instance]] = {}
    for instance in netlist.instances:
        place = _PLACE.search(instance.path)
        if instance.path.count(".") == 1 and place:
            found.setdefault(instance.module, {})[int(place[1]), int(place[2])] = instance
    whole = {
        module: places
        for module, places in found.items()
        if len(places) == (1 + max(row for row, _ in places)) * (1 + max(column for _, column in places))
    }
    if not whole:
        raise InputError(
            f"{netlist.top} has no array: no module with instances named NAME0_0, NAME0_1, ...; expected some,"
            " or a flat placement"
        )
    places = max(whole.values(), key=lambda places: sum(instance.whole for instance in places.values()))
    rows, columns = 1 + max(row for row, _ in places), 1 + max(column for _, column in places)
    tile = np.full(netlist.n_cells, -1, dtype=np.int64)
    for (row, column), instance in places.items():
        tile[instance.first : instance.first + instance.whole] = row * columns + column
    return Array([[places[row, column] for column in range(columns)] for row in range(rows)], tile)


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the elements of an array are on the die.

    Attributes
    ----------
    element : Rows
        The rows of one element, from its own lower left corner.
    x, y : numpy.ndarray
        Shape (elements,): lower left corner of each, um.
    mirrored_x, mirrored_y : numpy.ndarray
        Shape (elements,): whether left and right, or below and above, change places. Elements that do not are those
        in the upper left quarter.
    die : Rows
        All rows of the die.
    """

    element: Rows
    x: np.ndarray
    y: np.ndarray
    mirrored_x: np.ndarray
    mirrored_y: np.ndarray
    die: Rows

    def copied(self, x: np.ndarray, y: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places in all elements, two arrays of shape (elements, cells), um.

        Parameters
        ----------
        x, y, width
            Shape (cells,): lower left corners in the element, and widths, um.
        """
        across, up = self.element.die
        in_x = np.where(self.mirrored_x[:, None], across - width - x, x)
        in_y = np.where(self.mirrored_y[:, None], up - self.element.height - y, y)
        return self.x[:, None] + in_x, self.y[:, None] + in_y


def grid_of(array: Array, width: np.ndarray, technology: Technology, utilisation: float) -> Grid:
    """Room for the elements, the first row of the array on top.

    They stand in the middle of the die. Those of a wide array stand at its sides, half of them at either, and leave the
    middle to the other cells; they are a little fuller than the die, for what drives all their rows and columns meets
    there. Elsewhere elements are a little emptier, so that cells from outside find room among theirs.

    Parameters
    ----------
    array
        The elements.
    width
        Shape (n_cells,): um.
    technology
        Row height and site.
    utilisation
        Share of the die that is filled.
    """
    die = die_of(width, technology, utilisation)
    n_rows, across = len(die.bottom), int(die.last[0])
    first, elements = array.instances[0][0].first, array.rows * array.columns
    cells = float(width[first : first + array.size].sum())
    full = min(_FULLER, density_of(utilisation) / utilisation) if array.wide else _EMPTIER
    # The block of elements has the die's shape; where there is little else, it is all of the die.
    covered = min(cells * elements / float(width.sum()) / full, _MOST)
    own = covered * n_rows * across / elements  # sites of an element
    side = math.sqrt(covered)
    wide = max(int(side * across / array.columns), math.ceil(width.max() / die.site - 1e-6))
    high = int(own / wide)
    if across < wide * array.columns or n_rows < high * array.rows or wide * high * die.site < cells:
        raise InputError(
            f"an array of {array.rows} by {array.columns} elements of {cells / die.site:.0f} sites does not fit its"
            f" die of {n_rows} rows of {across} sites; expected a lower utilisation, or a flat placement"
        )
    element = Rows(
        die.height,
        die.site,
        (wide * die.site, high * die.height),
        np.arange(high),
        np.zeros(high, dtype=np.int64),
        np.full(high, wide),
    )
    return Grid(
        element,
        np.tile(_begins(array.columns, wide, across) * die.site, array.rows),
        np.repeat(_begins(array.rows, high, n_rows)[::-1] * die.height, array.columns),
        np.tile(2 * np.arange(array.columns) > array.columns - 1, array.rows),
        np.repeat(2 * np.arange(array.rows) > array.rows - 1, array.columns),
        die,
    )


def _begins(count: int, size: int, room: int) -> np.ndarray:
    """Where elements side by side begin, shape (count,), in the unit of their size and of the room they have."""
    place, spare = np.arange(count), room - count * size
    before = np.where(2 * place > count - 1, spare, 0) if count > _WIDE else spare // 2
    return before + size * place


def gaps(die: Rows, x: np.ndarray, y: np.ndarray, width: np.ndarray, least: float) -> Rows:
    """What placed cells leave of the rows of a die, in pieces.

    Parameters
    ----------
    die
        All rows, each in one piece.
    x, y, width
        Shape (n,): lower left corners and widths of the cells, um.
    least
        Width of the narrowest piece that is wanted, um.
    """
    sites, n_rows = int(die.last[0]), len(die.bottom)
    # A cell of no width at either end of each row.
    row = np.concatenate([np.rint(y / die.height).astype(np.int64), np.repeat(np.arange(n_rows), 2)])
    left = np.concatenate([np.rint(x / die.site).astype(np.int64), np.tile([0, sites], n_rows)])
    wide = np.concatenate([np.rint(width / die.site).astype(np.int64), np.zeros(2 * n_rows, dtype=np.int64)])
    order = np.lexsort((left + wide, left, row))
    row, begin, end = row[order], left[order], (left + wide)[order]
    free = (row[1:] == row[:-1]) & (begin[1:] - end[:-1] >= round(least / die.site))
    return replace(die, bottom=row[1:][free], first=end[:-1][free], last=begin[1:][free])


def _signals(netlist: Netlist, array: Array) -> np.ndarray:
    """For each net the net it is a copy of, through buffers and inverters outside of the elements."""
    source = np.arange(netlist.n_nets)
    for group in netlist.groups:
        if group.cell.sequential is None and len(group.cell.inputs) == 1 and len(group.cell.outputs) == 1:
            outside = array.tile[group.cells] < 0
            source[group.outputs[outside, 0]] = group.inputs[outside, 0]
    while not np.array_equal(further := source[source], source):
        source = further
    return source


def facing(pins: Pins, array: Array, grid: Grid) -> Pins:
    """The same pins, where the cells of elements that are mirrored are so themselves."""
    if not (pins.x.any() or pins.y.any()):
        return pins
    tile = np.where(pins.cell >= 0, array.tile[pins.cell], -1)
    x, y = (
        np.where((tile >= 0) & mirrored[tile], -at, at)
        for at, mirrored in ((pins.x, grid.mirrored_x), (pins.y, grid.mirrored_y))
    )
    return replace(pins, x=x, y=y)


def element_problem(netlist: Netlist, array: Array, pins: Pins, width: np.ndarray, rows: Rows) -> Problem:
    """The problem of placing one element, for all to have its places.

    Parameters
    ----------
    netlist, array, pins
        The whole, its elements, its pins.
    width
        Shape (n_cells,): um.
    rows
        Of the element.
    """
    net = pins.net
    tile = np.where(pins.cell >= 0, array.tile[pins.cell], -1)
    signal = _signals(netlist, array)[net]
    inside = np.flatnonzero(tile >= 0)
    beyond = []
    for index in (tile // array.columns, tile % array.columns):
        least, most = _bounds(signal[inside], index[inside], netlist.n_nets)
        beyond.append(most > least)
    beyond_rows, beyond_columns = (found[signal] for found in beyond)
    instance = array.instances[0][0]
    own = np.flatnonzero((pins.cell >= instance.first) & (pins.cell < instance.first + instance.whole))
    # Where a net of the element leaves it, it has a pin of some other cell, or a port's.
    leaves = np.bincount(net, minlength=netlist.n_nets) > np.bincount(net[own], minlength=netlist.n_nets)
    nets = _Nets(net[own], pins.cell[own] - instance.first, pins.x[own], pins.y[own])
    across, up = rows.die
    along_row = ~beyond_rows[own] & beyond_columns[own]
    along_column = beyond_rows[own] & ~beyond_columns[own]
    alone = ~beyond_rows[own] & ~beyond_columns[own] & leaves[net[own]]
    nets.add(~along_row & ~along_column, (1.0, 1.0))
    nets.add(along_row, (2 / array.columns, 0.0), (across, up / 2))
    nets.add(along_row, (0.0, 1.0))
    nets.add(along_column, (0.0, 2 / array.rows), (across / 2, 0.0))
    nets.add(along_column, (1.0, 0.0))
    nets.add(alone, (_OUTWARD, 0.0), (0.0, up / 2))
    nets.add(alone, (0.0, _OUTWARD), (across / 2, up))
    return nets.problem(width[instance.first : instance.first + instance.whole], rows)


class _Nets:
    """Collects the nets of a problem from pins that are sorted by net."""

    def __init__(self, net: np.ndarray, cell: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        self._pins = net, cell, x, y
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._along: list[np.ndarray] = []
        self._count = 0

    def add(self, chosen: np.ndarray, along: tuple[float, float], fixed: tuple[float, float] | None = None) -> None:
        """Add the nets of the chosen pins with a weight along x and y, each with a fixed pin if one is given."""
        net, cell, x, y = (values[chosen] for values in self._pins)
        _, number = np.unique(net, return_inverse=True)
        n = int(number.max(initial=-1)) + 1
        self._parts.append((self._count + number, cell, x, y))
        if fixed is not None:
            every = np.arange(n)
            self._parts.append((self._count + every, np.full(n, -1), np.full(n, fixed[0]), np.full(n, fixed[1])))
        self._along.append(np.tile(along, (n, 1)))
        self._count += n

    def problem(self, width: np.ndarray, rows: Rows) -> Problem:
        """All of them as a problem."""
        net, cell, x, y = (np.concatenate(values) for values in zip(*self._parts, strict=True))
        order = np.argsort(net, kind="stable")
        start = np.searchsorted(net[order], np.arange(self._count + 1))
        return Problem(width, rows, start, cell[order], x[order], y[order], np.concatenate(self._along))


def around(
    array: Array, pins: Pins, width: np.ndarray, die: Rows, x: np.ndarray, y: np.ndarray
) -> tuple[Problem, np.ndarray]:
    """The problem of placing what is outside of the elements, with the elements where they are.

    Parameters
    ----------
    array, pins
        The elements, and the pins of the whole.
    width
        Shape (n_cells,): um.
    die
        All rows.
    x, y
        Shape (n_cells,): lower left corners of the cells of elements, um.

    Returns
    -------
    problem : Problem
        Of the cells outside. Its nets are all nets; those without such a cell have no pins.
    kept : numpy.ndarray
        Which of ``pins`` are the problem's.
    """
    inside, others = array.tile >= 0, np.flatnonzero(array.tile < 0)
    rows = gaps(die, x[inside], y[inside], width[inside], float(width[others].min(initial=die.die[0])))
    number = np.full(len(width) + 1, -1, dtype=np.int64)
    number[others] = np.arange(len(others))
    cell, net = number[pins.cell], pins.net
    wanted = np.bincount(net[(cell >= 0) | (pins.cell < 0)], minlength=len(pins.start) - 1) > 0
    kept = np.flatnonzero(wanted[net])
    fixed = (pins.cell >= 0) & (cell < 0)
    at_x = pins.x + np.where(fixed, (x + width / 2)[pins.cell], 0.0)
    at_y = pins.y + np.where(fixed, (y + die.height / 2)[pins.cell], 0.0)
    start = np.searchsorted(net[kept], np.arange(len(pins.start)))
    along = np.ones((len(wanted), 2))
    return Problem(width[others], rows, start, cell[kept], at_x[kept], at_y[kept], along), kept


def amid_sinks(netlist: Netlist, array: Array, pins: Pins, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Pulls on what drives a row or a column of a wide array, towards the middle of its sinks.

    The half perimeter of a net is the same wherever in its box the driver stands. The longest way to a sink is not.

    Parameters
    ----------
    netlist, array, pins
        The whole, its elements, its pins.
    x, y
        Shape (n_cells,): centres of the cells of elements, um.

    Returns
    -------
    tuple of numpy.ndarray
        What `Problem.pulled` takes, for the problem of `around`.
    """
    inside = np.flatnonzero((pins.cell >= 0) & (array.tile[pins.cell] >= 0))
    signal, cell = _signals(netlist, array)[pins.net[inside]], pins.cell[inside]
    tile = array.tile[cell]
    along, middle = [], []
    for index, count, place in ((tile % array.columns, array.columns, x), (tile // array.columns, array.rows, y)):
        least, most = _bounds(signal, index, netlist.n_nets)
        along.append((most > least) & (count > _WIDE))
        near, far = _bounds(signal, place[cell], netlist.n_nets)
        middle.append((near + far) / 2)
    driven = np.flatnonzero((along[0] | along[1]) & (netlist.driver >= 0))
    driven = driven[array.tile[netlist.driver[driven]] < 0]
    others = np.cumsum(array.tile < 0) - 1
    pull = _PULL * np.stack([spans[driven] for spans in along], axis=1)
    return others[netlist.driver[driven]], middle[0][driven], middle[1][driven], pull


def _bounds(group: np.ndarray, value: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest value of each group, shapes (count,); those of no value are 0."""
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    _bound(group, value, least, most)
    return np.where(np.isfinite(least), least, 0.0), np.where(np.isfinite(most), most, 0.0)


@compiled
def _bound(group: np.ndarray, value: np.ndarray, least: np.ndarray, most: np.ndarray) -> None:
    for i in range(len(group)):
        least[group[i]] = min(least[group[i]], value[i])
        most[group[i]] = max(most[group[i]], value[i])
