"""Layouts of netlists that changed: legal, near the old places, new cells near their nets."""

import copy

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.layout.eco import adapted
from hwgen.layout.layout import lay_out
from hwgen.layout.technology import Technology
from hwgen.netlist.link import link

PLAIN = Technology("plain", 2.0, 0.25, 0.2, 0.01, "none")
SIZE = 12


@pytest.fixture
def modules(make):
    """An array of 3 by 3 chains of gates, and an inverter before each row."""
    leaf = {f"n{i}": ("NAND2", {"A": 10 + i, "B": 3, "Y": 11 + i}) for i in range(SIZE)}
    leaf["in"] = ("INV", {"A": 2, "Y": 10})
    ports = {"a": ("input", [2]), "b": ("input", [3]), "y": ("output", [10 + SIZE])}
    cells = {f"buffer{row}": ("INV", {"A": 2 + row, "Y": 20 + row}) for row in range(3)}
    for row in range(3):
        for column in range(3):
            wires = {"a": 20 + row, "b": 10 + column, "y": 30 + 3 * row + column}
            cells[f"element{row}_{column}"] = ("leaf", wires)
    top = {
        "a": ("input", [2, 3, 4]),
        "b": ("input", [10, 11, 12]),
        "y": ("output", list(range(30, 39))),
    }
    return {"leaf": make(ports, leaf), "t": make(top, cells)}


def changed(modules):
    """A gate of the element made a wide cell, one taken out, one put in; a buffer before the first row."""
    new = copy.deepcopy(modules)
    cells = new["leaf"]["cells"]
    cells["n3"]["type"] = "NAND2W"
    cells["more"] = {"type": "INV", "connections": {"A": [14], "Y": [90]}}
    cells["n5"]["connections"]["B"] = [90]
    new["t"]["cells"]["new"] = {"type": "INV", "connections": {"A": [20], "Y": [80]}}
    new["t"]["cells"]["element0_0"]["connections"]["a"] = [80]
    return new


@pytest.fixture
def wider(tiny):
    """The tiny library with a NAND2 of twice the area."""
    from dataclasses import replace

    wide = replace(tiny.cells["NAND2"], name="NAND2W", area=3.0)
    return replace(tiny, cells={**tiny.cells, "NAND2W": wide})


@pytest.mark.parametrize("arrangement", ["array", "flat"])
def test_adapted(modules, wider, arrangement):
    before = lay_out(link(modules, "t", wider), PLAIN, utilisation=0.6, arrangement=arrangement)
    netlist = link(changed(modules), "t", wider)
    after = adapted(before, netlist)
    assert after.faults() == []
    assert after.die == before.die
    assert np.array_equal((after.port_x, after.port_y), (before.port_x, before.port_y))
    old = {before.netlist.cell_name(i): i for i in range(before.netlist.n_cells)}
    new = {netlist.cell_name(i): i for i in range(netlist.n_cells)}
    moves = [
        abs(after.x[new[name]] - before.x[i]) + abs(after.y[new[name]] - before.y[i])
        for name, i in old.items()
        if name in new
    ]
    assert np.mean(moves) < 0.1 * sum(before.die)
    assert after.length.sum() < 1.5 * before.length.sum()
    # The new cell stands by the wire that it is on.
    names = ("element1_1.more", "element1_1.n3", "element1_1.n5")
    x, y = (np.array([place[new[name]] for name in names]) for place in (after.x, after.y))
    assert abs(x[0] - x[1:]).min() + abs(y[0] - y[1:]).min() < 0.4 * sum(before.die)
    if arrangement == "array":
        first = [new[f"element0_{column}.n0"] for column in (0, 1)]
        other = [new[f"element0_{column}.more"] for column in (0, 1)]
        assert np.diff(after.x[first]) == pytest.approx(np.diff(after.x[other]))


def test_a_draft_has_new_cells_where_they_are_to_be(modules, wider):
    before = lay_out(link(modules, "t", wider), PLAIN, utilisation=0.6)
    netlist = link(changed(modules), "t", wider)
    draft = adapted(before, netlist, legal=False, places={"new": (7.0, 9.0)})
    cell = {netlist.cell_name(i): i for i in range(netlist.n_cells)}["new"]
    assert (draft.x[cell] + draft.width[cell] / 2, draft.y[cell] + PLAIN.row_height / 2) == pytest.approx((7.0, 9.0))
    # The others are where they were.
    kept, old = (
        netlist.names.instances()[0][2].index("buffer1"),
        before.netlist.names.instances()[0][2].index("buffer1"),
    )
    assert (draft.x[kept], draft.y[kept]) == (before.x[old], before.y[old])
    legal = adapted(draft, link(changed(modules), "t", wider))
    assert legal.faults() == []
    assert abs(legal.x[cell] - draft.x[cell]) + abs(legal.y[cell] - draft.y[cell]) < 0.3 * sum(before.die)


def test_unchanged_stays(modules, wider):
    before = lay_out(link(modules, "t", wider), PLAIN, utilisation=0.6)
    again = adapted(before, before.netlist)
    assert again.length.sum() <= before.length.sum() * (1 + 1e-9)
    assert np.abs(again.x - before.x).mean() < 0.02 * before.die[0]


def test_refused(modules, wider, make):
    before = lay_out(link(modules, "t", wider), PLAIN, utilisation=0.6)
    fewer = copy.deepcopy(modules)
    for column in range(3):
        del fewer["t"]["cells"][f"element2_{column}"]
    fewer["t"]["ports"]["y"]["bits"] = list(range(30, 36))
    with pytest.raises(InputError, match="has other ports"):
        adapted(before, link(fewer, "t", wider))
    fewer["t"]["ports"]["y"]["bits"] = [*range(30, 36), *range(30, 33)]
    with pytest.raises(InputError, match="has other elements"):
        adapted(before, link(fewer, "t", wider))


@pytest.mark.parametrize("arrangement", ["array", "flat"])
def test_a_netlist_that_outgrew_its_die_gets_a_new_one(modules, wider, arrangement):
    before = lay_out(link(modules, "t", wider), PLAIN, utilisation=0.6, arrangement=arrangement)
    many = copy.deepcopy(modules)
    for number in range(60):
        many["leaf"]["cells"][f"x{number}"] = {"type": "INV", "connections": {"A": [2]}}
    netlist = link(many, "t", wider)
    after = adapted(before, netlist)
    assert after.faults() == []
    assert after.netlist is netlist
    assert after.arrangement == arrangement
    assert after.filled < 0.7 < 1 < after.width.sum() / before.width.sum() * before.filled


@pytest.fixture
def wide(make):
    """Six elements in a row, and sixty inverters outside of them."""
    leaf = {f"n{i}": ("NAND2", {"A": 10 + i, "B": 3, "Y": 11 + i}) for i in range(60)}
    leaf["in"] = ("INV", {"A": 2, "Y": 10})
    ports = {"a": ("input", [2]), "b": ("input", [3]), "y": ("output", [70])}
    cells = {"buffer": ("INV", {"A": 2, "Y": 20})}
    cells |= {f"spare{i}": ("INV", {"A": 2, "Y": 200 + i}) for i in range(60)}
    cells |= {f"element0_{i}": ("leaf", {"a": 20, "b": 10 + i, "y": 30 + i}) for i in range(6)}
    top = {"a": ("input", [2]), "b": ("input", list(range(10, 16))), "y": ("output", list(range(30, 36)))}
    return {"leaf": make(ports, leaf), "t": make(top, cells)}


def test_many_new_cells_in_one_place_of_a_wide_array(wide, wider):
    """They spread around it, and what stood there makes room."""
    before = lay_out(link(wide, "t", wider), PLAIN, utilisation=0.6)
    crowd = [f"new{i}" for i in range(80)]
    wide["t"]["cells"] |= {name: {"type": "INV", "connections": {"A": [20]}} for name in crowd}
    netlist = link(wide, "t", wider)
    across, up = before.die
    draft = adapted(before, netlist, legal=False, places=dict.fromkeys(crowd, (across / 2, up / 2)))
    legal = adapted(draft, netlist)
    assert legal.faults() == []
    new = np.isin([netlist.cell_name(cell) for cell in range(netlist.n_cells)], crowd)
    moved = (np.abs(legal.x - draft.x) + np.abs(legal.y - draft.y)) / sum(before.die)
    assert 0.02 < moved[new].mean() < 0.25
    assert np.abs(np.mean(legal.x[new] + legal.width[new] / 2) - across / 2) < 0.1 * across
    assert moved[~new].mean() < 0.03
    again = adapted(draft, netlist)
    assert np.array_equal((again.x, again.y), (legal.x, legal.y))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_new_cell_of_a_wide_array_stays_where_it_is_to_be(wide, wider, share):
    """Though its wire would be shorter elsewhere."""
    before = lay_out(link(wide, "t", wider), PLAIN, utilisation=0.6)
    across, up = before.die
    wide["t"]["cells"]["new"] = {"type": "INV", "connections": {"A": [30]}}
    netlist = link(wide, "t", wider)
    draft = adapted(before, netlist, legal=False, places={"new": (share * across, 0.2 * up)})
    legal = adapted(draft, netlist)
    cell = [netlist.cell_name(cell) for cell in range(netlist.n_cells)].index("new")
    assert abs(legal.x[cell] - draft.x[cell]) + abs(legal.y[cell] - draft.y[cell]) < 0.03 * sum(before.die)
