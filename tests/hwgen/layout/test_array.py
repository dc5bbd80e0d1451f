"""Arrays: what is found of one, and where its elements are put."""

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.layout.array import Array, amid_sinks, around, array_of, element_problem, gaps, grid_of
from hwgen.layout.eco import adapted
from hwgen.layout.layout import lay_out
from hwgen.layout.lef import Macro, Shapes
from hwgen.layout.pins import pins_of, widths
from hwgen.layout.problem import Rows
from hwgen.layout.technology import Technology
from hwgen.netlist.graph import Instance
from hwgen.netlist.link import link

PLAIN = Technology("plain", 2.0, 0.25, 0.2, 0.01, "none")
SIZE = 5


def body(make, rows, columns, spare=0):
    """An array of ``rows`` by ``columns`` elements: a and b enter along rows and columns, c goes to one alone.

    Outside of the elements are the buffers of the rows, and ``spare`` inverters.
    """
    element = {f"n{i}": ("NAND2", {"A": 2 if i % 2 else 3, "B": 10 + i, "Y": 11 + i}) for i in range(SIZE)}
    element["in"] = ("INV", {"A": 4, "Y": 10})
    leaf = make({"a": ("input", [2]), "b": ("input", [3]), "c": ("input", [4]), "y": ("output", [10 + SIZE])}, element)
    cells, bit = {}, 2
    ports = {name: ("input", list(range(bit + 10 * i, bit + 10 * i + 8))) for i, name in enumerate("ab")}
    ports["c"] = ("input", list(range(100, 100 + rows * columns)))
    ports["y"] = ("output", list(range(200, 200 + rows * columns)))
    for row in range(rows):
        cells[f"buffer{row}"] = ("INV", {"A": 2 + row, "Y": 50 + row})
    for number in range(spare):
        cells[f"spare{number}"] = ("INV", {"A": 2, "Y": 300 + number})
    for row in range(rows):
        for column in range(columns):
            number = row * columns + column
            wires = {"a": 50 + row, "b": 12 + column, "c": 100 + number, "y": 200 + number}
            cells[f"element{row}_{column}"] = ("leaf", wires)
    return {"leaf": leaf, "t": make(ports, cells)}


@pytest.fixture(scope="module")
def netlist(make, tiny):
    return link(body(make, 2, 4), "t", tiny)


def test_array(netlist):
    array = array_of(netlist)
    assert (array.rows, array.columns, array.size) == (2, 4, SIZE + 1)
    assert [instance.path for instance in array.instances[1]] == [f"element1_{i}." for i in range(4)]
    assert np.array_equal(np.bincount(array.tile + 1), [2, *[SIZE + 1] * 8])
    for row in array.instances:
        for instance in row:
            assert netlist.cell_name(instance.first).startswith(instance.path)


def test_no_array(make, tiny):
    modules = body(make, 1, 2)
    flat = {"t": {**modules["leaf"]}}
    with pytest.raises(InputError, match="t has no array"):
        array_of(link(flat, "t", tiny))
    del modules["t"]["cells"]["element0_0"]
    modules["t"]["ports"].pop("y")
    with pytest.raises(InputError, match="t has no array"):
        array_of(link(modules, "t", tiny))


def test_grid(netlist):
    array, width = array_of(netlist), widths(netlist, PLAIN)
    grid = grid_of(array, width, PLAIN, 0.5)
    wide, high = grid.element.die
    first = array.instances[0][0].first
    own = width[first : first + array.size].sum() * PLAIN.row_height
    assert own / 0.6 < grid.element.area < own / 0.4
    # Element 0_0 is on top at the left; those right of the middle and below it are mirrored.
    left = grid.x[0]
    assert (grid.y[:4] > grid.y[4:]).all()
    assert grid.mirrored_x.tolist() == [False, False, True, True] * 2
    assert grid.mirrored_y.tolist() == [False] * 4 + [True] * 4
    x, y = grid.copied(np.array([0.0]), np.array([0.0]), np.array([1.0]))
    assert (x[:, 0] - left).tolist() == [0, wide, 3 * wide - 1, 4 * wide - 1] * 2
    assert (y[:4, 0] == grid.y[:4]).all()
    assert (y[4:, 0] == grid.y[4:] + high - PLAIN.row_height).all()
    assert (grid.x >= 0).all()
    assert (grid.x + wide <= grid.die.die[0] + 1e-9).all()
    assert (grid.y >= 0).all()
    assert (grid.y + high <= grid.die.die[1] + 1e-9).all()


def test_pins_of_mirrored_elements_are_mirrored(netlist, tmp_path):
    """All equal elements have equal nets inside, wherever on their cells the pins are; so has what changed a little."""
    macros = {
        "INV": Macro(0.5, 2.0, {"A": (0.1, 1.5), "Y": (0.45, 0.2)}),
        "NAND2": Macro(0.75, 2.0, {"A": (0.0, 0.0), "B": (0.1, 1.9), "Y": (0.7, 0.3)}),
    }
    shapes = Shapes(macros, None, (tmp_path / "cells.lef",))
    layout = lay_out(netlist, PLAIN, utilisation=0.5, shapes=shapes)
    array = array_of(netlist)
    driven = np.zeros(netlist.n_cells, dtype=np.int64)
    for group in netlist.groups:
        driven[group.cells] = group.outputs[:, 0]
    inside = driven[array.first[:, None] + np.arange(array.size)]
    inside = inside[:, ~np.isin(inside, netlist.ports["y"].nets).any(axis=0)]
    assert inside.shape == (8, SIZE)
    for found in (layout, adapted(layout, netlist, shapes=shapes)):
        lengths = found.half_perimeter[inside]
        assert np.ptp(lengths, axis=0).max() < 1e-9
        assert lengths[0].sum() > 0
        assert found.pins.x.any()


def test_a_wide_array_has_the_room_in_its_middle(make, tiny):
    wide = link(body(make, 1, 6, spare=24), "t", tiny)
    grid = grid_of(array_of(wide), widths(wide, PLAIN), PLAIN, 0.5)
    across, steps = grid.element.die[0], np.diff(grid.x)
    assert grid.x[0] == 0
    assert grid.x[-1] + across == pytest.approx(grid.die.die[0])
    assert steps[[0, 1, 3, 4]] == pytest.approx(across)
    assert steps[2] == pytest.approx(grid.die.die[0] - 5 * across)
    assert steps[2] > 1.2 * across
    # One row: its room is above and below.
    assert grid.y[0] == pytest.approx((grid.die.die[1] - grid.element.die[1]) / 2, abs=PLAIN.row_height)


@pytest.mark.parametrize(("utilisation", "full"), [(0.5, 0.525), (0.7, 0.735), (0.96, 0.98)])
def test_elements_of_a_wide_array_are_fuller_than_the_die(utilisation, full):
    """As far as that leaves them room for other cells; the middle has what is won."""
    size = 2000
    instances = [[Instance(f"e0_{column}.", "leaf", column * size, size, size) for column in range(6)]]
    array = Array(instances, np.repeat([0, 1, 2, 3, 4, 5, -1], size))
    grid = grid_of(array, np.full(7 * size, 1.0), PLAIN, utilisation)
    assert size * PLAIN.row_height / grid.element.area == pytest.approx(full, rel=0.02)


def test_gaps():
    die = Rows(2.0, 0.5, (10.0, 4.0), np.arange(2), np.zeros(2, int), np.full(2, 20))
    found = gaps(die, np.array([4.0, 0.5, 8.0]), np.array([0.0, 0.0, 0.0]), np.array([1.0, 2.0, 2.0]), 1.0)
    assert list(zip(found.bottom, found.first, found.last, strict=True)) == [(0, 5, 8), (0, 10, 16), (1, 0, 20)]


def test_an_array_that_does_not_fit(netlist):
    array, width = array_of(netlist), widths(netlist, PLAIN)
    with pytest.raises(InputError, match="does not fit its die"):
        grid_of(array, width, PLAIN, 1.0)


def test_what_the_neighbours_mean(netlist):
    array, width, pins = array_of(netlist), widths(netlist, PLAIN), pins_of(netlist)
    rows = grid_of(array, width, PLAIN, 0.5).element
    problem = element_problem(netlist, array, pins, width, rows)
    nets = {}
    for net, along in enumerate(problem.along.tolist()):
        own = slice(problem.net_start[net], problem.net_start[net + 1])
        cells = problem.pin_cell[own]
        fixed = np.stack([problem.pin_x[own], problem.pin_y[own]], axis=1)[cells < 0].tolist()
        nets.setdefault((tuple(along), tuple(fixed[0]) if fixed else None), []).append((cells >= 0).sum())
    wide, high = rows.die
    # a passes along the row of four, b along the column of two; c and y are the element's own.
    assert sorted(nets[(0.5, 0.0), (wide, high / 2)]) == [2]
    assert sorted(nets[(0.0, 1.0), None]) == [2]
    assert sorted(nets[(0.0, 1.0), (wide / 2, 0.0)]) == [3]
    assert sorted(nets[(1.0, 0.0), None]) == [3]
    assert sorted(nets[(0.5, 0.0), (0.0, high / 2)]) == [1, 1]
    assert sorted(nets[(0.0, 0.5), (wide / 2, high)]) == [1, 1]


def test_around(netlist):
    array, width, pins = array_of(netlist), widths(netlist, PLAIN), pins_of(netlist)
    die = grid_of(array, width, PLAIN, 0.5).die
    x, y = np.arange(netlist.n_cells) % 3 * 1.0, np.arange(netlist.n_cells) % 5 * 2.0
    problem, kept = around(array, pins, width, die, x, y)
    assert problem.n_cells == 2
    net = pins.net[kept]
    assert set(net[problem.pin_cell >= 0]) <= set(net)
    inside = (pins.cell[kept] >= 0) & (problem.pin_cell < 0)
    cell = pins.cell[kept][inside]
    assert np.array_equal(problem.pin_x[inside], (x + width / 2)[cell])
    assert np.array_equal(problem.pin_y[inside], y[cell] + 1)
    taken = sum(width[array.tile >= 0]) * 2
    assert problem.rows.area >= die.area - taken


def test_equal_cells_at_equal_places(netlist):
    found = lay_out(netlist, PLAIN, utilisation=0.5)
    assert found.faults() == []
    array = array_of(netlist)
    cells = array.first[:, None] + np.arange(array.size)
    x, y = found.x[cells], found.y[cells]
    assert np.allclose(x[0] - x[0, 0], x[1] - x[1, 0])
    assert np.allclose(y[0], y[1])
    centre = x + found.width[cells] / 2
    assert np.allclose(centre[0] - centre[0, 0], centre[3, 0] - centre[3])
    assert np.allclose(y[0] - y[0, 0], y[4, 0] - y[4])


def pulls(modules, tiny):
    """A core placed with gates instead of the inverters before its rows; the weights and places that pull cells."""
    for name, cell in modules["t"]["cells"].items():
        if name.startswith("buffer"):
            cell.update(type="NAND2", connections={**cell["connections"], "B": cell["connections"]["A"]})
    netlist = link(modules, "t", tiny)
    array, width, pins = array_of(netlist), widths(netlist, PLAIN), pins_of(netlist)
    found = lay_out(netlist, PLAIN, utilisation=0.5)
    problem, _ = around(array, pins, width, found.rows, found.x, found.y)
    centre_x, centre_y = found.x + width / 2, found.y + PLAIN.row_height / 2
    pulled = problem.pulled(*amid_sinks(netlist, array, pins, centre_x, centre_y))
    names = [netlist.cell_name(cell) for cell in np.flatnonzero(array.tile < 0)]
    first = problem.net_start[-1]
    cells, fixed = pulled.pin_cell[first::2], pulled.pin_cell[first + 1 :: 2]
    assert (fixed == -1).all()
    places = zip(pulled.pin_x[first + 1 :: 2], pulled.pin_y[first + 1 :: 2], strict=True)
    weights = pulled.along[len(problem.along) :].tolist()
    return found, {names[cell]: (weight, place) for cell, weight, place in zip(cells, weights, places, strict=True)}


def test_what_drives_a_wide_row_is_pulled_amid_its_sinks(make, tiny):
    found, pulled = pulls(body(make, 2, 6), tiny)
    assert set(pulled) == {"buffer0", "buffer1"}
    names = [found.netlist.cell_name(cell) for cell in range(found.netlist.n_cells)]
    for row in range(2):
        weight, (x, _) = pulled[f"buffer{row}"]
        # Along the row; columns of two are short.
        assert weight == [2.0, 0.0]
        sinks = [names.index(f"element{row}_{column}.n{i}") for column in (0, 5) for i in range(0, SIZE, 2)]
        centres = found.x[sinks] + found.width[sinks] / 2
        assert x == pytest.approx((centres.min() + centres.max()) / 2)
        # And there it stands: elements leave the middle to it.
        driver = names.index(f"buffer{row}")
        assert abs(found.x[driver] + found.width[driver] / 2 - x) < 0.1 * found.die[0]


def test_small_arrays_are_not_pulled(make, tiny):
    assert pulls(body(make, 2, 4), tiny)[1] == {}
    assert not array_of(link(body(make, 4, 4), "t", tiny)).wide
    assert array_of(link(body(make, 5, 4), "t", tiny)).wide


def test_what_drives_through_a_buffer_is_pulled_too(make, tiny):
    modules = body(make, 1, 6)
    modules["t"]["cells"]["further"] = {"type": "INV", "connections": {"A": [50], "Y": [400]}}
    modules["t"]["cells"]["element0_5"]["connections"]["a"] = [400]
    found, pulled = pulls(modules, tiny)
    assert set(pulled) == {"buffer0"}
    assert pulled["buffer0"][1][0] == pytest.approx(found.die[0] / 2, rel=0.1)
