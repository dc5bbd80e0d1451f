"""A netlist laid out: places of cells and ports, lengths of wires and what they add to nets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from hwgen.errors import InputError
from hwgen.layout.array import Array, Grid, amid_sinks, around, array_of, element_problem, facing, grid_of
from hwgen.layout.clock_tree import ClockTree, clock_tree
from hwgen.layout.floorplan import UTILISATION, density_of, die_of, port_places
from hwgen.layout.lef import Shapes
from hwgen.layout.legal import faults
from hwgen.layout.pins import Pins, pins_of, widths
from hwgen.layout.place import place, rough
from hwgen.layout.problem import Problem, Rows, half_perimeters
from hwgen.layout.steiner import steiner_lengths
from hwgen.layout.technology import Technology
from hwgen.netlist.graph import Netlist
from hwgen.timing.wires import Wires

__all__ = ["ARRANGEMENTS", "Layout", "copied", "lay_out", "with_ports"]

ARRANGEMENTS = ("array", "flat")
"""One element placed and copied to all, or all cells placed together."""


@dataclass(frozen=True)
class Layout:
    """Where everything is. Lengths in um; the die's lower left corner is (0, 0).

    Attributes
    ----------
    netlist : Netlist
    technology : Technology
    rows : Rows
        All rows of the die, in one piece each.
    utilisation : float
        Asked for; the share of the rows that cells fill.
    arrangement, placer : str
    seed : int
    width, x, y : numpy.ndarray
        Shape (n_cells,): widths and lower left corners of the cells.
    pins : Pins
    port_x, port_y : numpy.ndarray
        Shape (port bits,): places of the ports, the bits of all ports in order.
    grid : Grid or None
        Where the elements of an array are.
    """

    netlist: Netlist = field(repr=False)
    technology: Technology
    rows: Rows = field(repr=False)
    utilisation: float
    arrangement: str
    placer: str
    seed: int
    width: np.ndarray = field(repr=False)
    x: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    pins: Pins = field(repr=False)
    port_x: np.ndarray = field(repr=False)
    port_y: np.ndarray = field(repr=False)
    grid: Grid | None = field(repr=False)

    @property
    def die(self) -> tuple[float, float]:
        """Width and height of the die, um."""
        return self.rows.die

    @property
    def filled(self) -> float:
        """Share of the rows that cells fill."""
        return float(self.width.sum()) * self.rows.height / self.rows.area

    @cached_property
    def pin_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of all pins, two arrays of shape (n_pins,), um."""
        return _places(self.pins, self.x + self.width / 2, self.y + self.rows.height / 2, self.port_x, self.port_y)

    @cached_property
    def half_perimeter(self) -> np.ndarray:
        """Half perimeter of each net, shape (n_nets,), um."""
        across, up = half_perimeters(self.pins.start, *self.pin_places)
        return across + up

    @cached_property
    def _trees(self) -> tuple[np.ndarray, np.ndarray]:
        wire = self.technology.detour * self.technology.capacitance
        pin = self.netlist.library.pin_capacitance / wire if wire else 0.0
        return steiner_lengths(self.pins.start, *self.pin_places, pin)

    @property
    def length(self) -> np.ndarray:
        """Length of each net's Steiner tree, shape (n_nets,), um; 0 for clock nets, see `clock_tree`."""
        length = self._trees[0].copy()
        length[self.netlist.clock_nets] = 0.0
        return length

    @cached_property
    def clock_tree(self) -> ClockTree:
        """Wires and buffers of the clock."""
        x, y = self.x + self.width / 2, self.y + self.rows.height / 2
        return clock_tree(self.netlist, self.technology, x, y, self.port_x, self.port_y)

    def wires(self) -> Wires:
        """What the wires add to the nets: Steiner lengths times detour times capacitance and resistance per um.

        The resistance of a net with branches is the one with which a single wire has the tree's delay by Elmore, see
        `hwgen.layout.steiner.steiner_lengths`. Long nets have that of upper layers.

        A clock net's capacitance is that of the wires of all levels of its tree; it has no resistance, as clocks are
        ideal.
        """
        length, way = self._trees
        technology = self.technology
        capacitance = length * technology.detour * technology.capacitance
        long = length * technology.detour > technology.long_from
        resistance = way * technology.detour * np.where(long, technology.long_resistance, technology.resistance)
        for net, of_tree in self.clock_tree.capacitance.items():
            capacitance[net], resistance[net] = of_tree, 0.0
        return Wires(capacitance, resistance, "placed")

    def by_block(self, values: np.ndarray) -> dict[str, float]:
        """Sum of a figure of nets over the nets that each block drives; the input ports are the top module's.

        Parameters
        ----------
        values
            Shape (n_nets,).
        """
        netlist = self.netlist
        top = netlist.blocks.index(netlist.top)
        block = np.where(netlist.driver >= 0, np.append(netlist.cell_block, top)[netlist.driver], top)
        total = np.bincount(block, values, minlength=len(netlist.blocks))
        return dict(zip(netlist.blocks, total.tolist(), strict=True))

    def faults(self) -> list[str]:
        """What is not legal about it, see `hwgen.layout.legal.faults`."""
        return faults(self.width, self.rows, self.x, self.y)


def lay_out(
    netlist: Netlist,
    technology: Technology,
    *,
    utilisation: float = UTILISATION,
    placer: str = "embedded",
    arrangement: str = "array",
    seed: int = 1,
    shapes: Shapes | None = None,
) -> Layout:
    """Place a netlist.

    Parameters
    ----------
    netlist
        What to place.
    technology
        Rows and wires, see `hwgen.layout.technology.technology_of`.
    utilisation
        Share of the rows that cells are to fill. No part of the die is filled above halfway from this to 1, but for the
        elements of an array, which have boxes of their own, and for cells between them that find no other room.
    placer
        ``embedded``, or ``coloquinte`` where it is installed.
    arrangement
        ``array``: one element placed and copied, see `hwgen.layout.array`. ``flat``: all cells together.
    seed
        The same seed gives the same placement.
    shapes
        Of the cells, from LEF; without, widths are areas over the row's height, and pins at the cells' centres.

    Raises
    ------
    InputError
        A choice that there is none of, an arrangement that the netlist does not have, shapes that lack a cell.
    """
    if arrangement not in ARRANGEMENTS:
        raise InputError(f"arrangement {arrangement!r}: must be one of {', '.join(ARRANGEMENTS)}")
    if not 0 < utilisation <= 1:
        raise InputError(f"utilisation {utilisation:g}: must be above 0 and at most 1")
    width = widths(netlist, technology, shapes)
    pins = pins_of(netlist, shapes)
    how = _How(placer, density_of(utilisation), seed)
    made = _array if arrangement == "array" else _flat
    rows, x, y, pins, port_x, port_y, grid = made(netlist, technology, utilisation, width, pins, how)
    return Layout(
        netlist, technology, rows, utilisation, arrangement, placer, seed, width, x, y, pins, port_x, port_y, grid
    )


@dataclass(frozen=True, slots=True)
class _How:
    """How to place."""

    placer: str
    density: float
    seed: int

    def place(self, problem: Problem, density: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        return place(problem, placer=self.placer, density=density or self.density, seed=self.seed)

    def rough(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        return rough(problem, density=self.density, seed=self.seed)


_Made = tuple[Rows, np.ndarray, np.ndarray, Pins, np.ndarray, np.ndarray, Grid | None]


def _places(
    pins: Pins, x: np.ndarray, y: np.ndarray, port_x: np.ndarray, port_y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places of pins, from the cells' centres and the ports' places."""
    port = pins.cell < 0
    found_x, found_y = np.empty(len(port)), np.empty(len(port))
    found_x[port], found_y[port] = port_x[pins.port[port]], port_y[pins.port[port]]
    cell = pins.cell[~port]
    found_x[~port], found_y[~port] = x[cell] + pins.x[~port], y[cell] + pins.y[~port]
    return found_x, found_y


def _ports(netlist: Netlist, pins: Pins, die: tuple[float, float], x: np.ndarray, y: np.ndarray) -> _Sides:
    """Places of the ports for cells about where ``x`` and ``y``, their centres, say."""
    nets = np.concatenate([*(port.nets for port in netlist.ports.values()), np.zeros(0, np.int64)])
    inside = pins.cell >= 0
    net = pins.net[inside]
    count = np.bincount(net, minlength=netlist.n_nets)
    wanted = []
    for middle, centre in ((die[0] / 2, x), (die[1] / 2, y)):
        mean = np.bincount(net, centre[pins.cell[inside]], minlength=netlist.n_nets) / np.maximum(count, 1)
        wanted.append(np.where(count > 0, mean, middle)[nets])
    return port_places(die, wanted[0], wanted[1])


_Sides = tuple[np.ndarray, np.ndarray]


def _flat(
    netlist: Netlist, technology: Technology, utilisation: float, width: np.ndarray, pins: Pins, how: _How
) -> _Made:
    """All cells together."""
    rows = die_of(width, technology, utilisation)
    problem = Problem(width, rows, pins.start, pins.cell, pins.x, pins.y, np.ones((netlist.n_nets, 2)))
    # Without ports first: they are then put where the cells want them.
    port_x, port_y = _ports(netlist, pins, rows.die, *how.rough(_without_ports(problem, pins.cell < 0)))
    x, y = how.place(with_ports(problem, pins.port, port_x, port_y))
    return rows, x, y, pins, port_x, port_y, None


def _without_ports(problem: Problem, port: np.ndarray) -> Problem:
    """The same without the pins that ``port`` says are ports'."""
    start = np.concatenate([[0], np.cumsum(~port)])[problem.net_start]
    kept = problem.pin_cell[~port], problem.pin_x[~port], problem.pin_y[~port]
    return replace(problem, net_start=start, pin_cell=kept[0], pin_x=kept[1], pin_y=kept[2])


def with_ports(problem: Problem, bit: np.ndarray, port_x: np.ndarray, port_y: np.ndarray) -> Problem:
    """The same with ports in their places.

    Parameters
    ----------
    problem
        Its ports are anywhere.
    bit
        Shape (n_pins,): bit of the ports that a pin is, -1 for others.
    port_x, port_y
        Shape (port bits,).
    """
    x, y = problem.pin_x.copy(), problem.pin_y.copy()
    x[bit >= 0], y[bit >= 0] = port_x[bit[bit >= 0]], port_y[bit[bit >= 0]]
    return replace(problem, pin_x=x, pin_y=y)


def copied(
    netlist: Netlist, array: Array, grid: Grid, x: np.ndarray, y: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places of all cells, from those of one element; 0 outside of elements."""
    found_x, found_y = np.zeros(netlist.n_cells), np.zeros(netlist.n_cells)
    cells = array.first[:, None] + np.arange(array.size)
    found_x[cells], found_y[cells] = grid.copied(x, y, width)
    return found_x, found_y


def _array(
    netlist: Netlist, technology: Technology, utilisation: float, width: np.ndarray, pins: Pins, how: _How
) -> _Made:
    """One element placed and copied, then the cells between the elements."""
    array = array_of(netlist)
    grid = grid_of(array, width, technology, utilisation)
    pins = facing(pins, array, grid)
    one = element_problem(netlist, array, pins, width, grid.element)
    # There is room enough in its box: cells may stand side by side.
    x, y = copied(netlist, array, grid, *how.place(one, density=1.0), one.width)
    problem, kept = around(array, pins, width, grid.die, x, y)
    others = np.flatnonzero(array.tile < 0)
    centre_x, centre_y = x + width / 2, y + technology.row_height / 2
    pulls = amid_sinks(netlist, array, pins, centre_x, centre_y)
    centre_x[others], centre_y[others] = how.rough(_without_ports(problem, pins.cell[kept] < 0).pulled(*pulls))
    port_x, port_y = _ports(netlist, pins, grid.die.die, centre_x, centre_y)
    x[others], y[others] = how.place(with_ports(problem, pins.port[kept], port_x, port_y).pulled(*pulls))
    return grid.die, x, y, pins, port_x, port_y, grid
