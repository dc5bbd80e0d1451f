"""Cells and nets of a netlist that was changed, by what they were before."""

import dataclasses
from typing import Any

import numpy as np

from hwgen.cells import libraries, reader
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.netlist.revision import cells_before, nets_before, resized

CELLS = reader.load(libraries.path("generic7"))


def linked(child: dict[str, Any], top: dict[str, Any] | None = None) -> Netlist:
    """Two instances of a child with one gate or more, from ``a`` to ``y``, in a row."""
    instances = {
        name: {"type": "child", "connections": {"a": [2 + place], "y": [3 + place]}}
        for place, name in enumerate(("one", "two"))
    }
    modules = {
        "t": {
            "ports": {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [4]}},
            "cells": {**instances, **(top or {})},
            "netnames": {},
        },
        "child": {
            "ports": {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [3]}},
            "cells": child,
            "netnames": {},
        },
    }
    return link(modules, "t", CELLS)


def gate(kind: str, a: int, y: int) -> dict[str, Any]:
    return {"type": kind, "connections": {"A": [a], "Y": [y]}}


BEFORE = linked({"u": gate("INV_X1", 2, 3)})


def traced(after: Netlist) -> dict[str, int]:
    """The net before of what each cell drives, by the cell's name."""
    found = nets_before(BEFORE, after)
    return {
        after.cell_name(cell): int(found[net])
        for group in after.groups
        for cell, net in zip(group.cells, group.outputs[:, 0], strict=True)
    }


def test_nothing_changed() -> None:
    assert np.array_equal(nets_before(BEFORE, BEFORE), np.arange(BEFORE.n_nets))
    assert np.array_equal(cells_before(BEFORE, BEFORE), np.arange(BEFORE.n_cells))


def test_sizes_are_as_if_linked_with_them() -> None:
    """Also where pins of another size come in another order, and kinds in another order than before."""
    nand = {"type": "NAND2_X1", "connections": {"A": [2], "B": [4], "Y": [3]}}
    begun = {"u": gate("INV_X1", 2, 4), "v": nand, "w": gate("INV_X4", 3, 5), "x": gate("INV_X1", 5, 6)}
    before = linked(begun)
    families = [CELLS.cells[name] for name in ("NAND2_X1", "INV_X1", "INV_X4", "NAND2_X2")]
    turned = dataclasses.replace(families[3], pins=dict(reversed(families[3].pins.items())))
    assert turned.inputs == families[3].inputs[::-1]
    kinds = [*families[:3], turned]
    chosen = {"u": "INV_X4", "v": "NAND2_X2", "w": "INV_X4", "x": "INV_X1"}
    kind = np.array([[*families].index(CELLS.cells[chosen[before.cell_name(cell)[-1]]]) for cell in range(8)])
    found = resized(before, kinds, kind)
    wanted = linked({name: {**cell, "type": chosen[name]} for name, cell in begun.items()})
    assert [group.cell.name for group in found.groups] == [group.cell.name for group in wanted.groups]
    for mine, its in zip(found.groups, wanted.groups, strict=True):
        columns = [1, 0] if mine.cell is turned else list(range(mine.inputs.shape[1]))
        assert np.array_equal(mine.cells, its.cells)
        assert np.array_equal(mine.inputs[:, columns], its.inputs)
        assert np.array_equal(mine.outputs, its.outputs)
    assert np.array_equal(found.driver, wanted.driver)
    assert found.area == wanted.area
    assert np.array_equal(found.level, wanted.level)
    assert np.array_equal(cells_before(before, found), np.arange(before.n_cells))


def test_a_size_and_buffers_before_and_behind() -> None:
    after = linked({"b": gate("BUF_X3", 2, 5), "u": gate("INV_X4", 5, 6), "c": gate("BUF_X2", 6, 3)})
    names = {after.cell_name(cell): int(place) for cell, place in enumerate(cells_before(BEFORE, after))}
    assert names == {"one.b": -1, "one.u": 0, "one.c": -1, "two.b": -1, "two.u": 1, "two.c": -1}
    given = int(BEFORE.ports["a"].nets[0])
    first, second = (int(BEFORE.groups[0].outputs[place, 0]) for place in (0, 1))
    assert traced(after) == {
        "one.b": given,
        "one.u": first,
        "one.c": first,
        "two.b": first,
        "two.u": second,
        "two.c": second,
    }


def test_a_buffer_elsewhere_that_has_the_name_of_one_before() -> None:
    """What is behind it tells, not its name."""
    before = linked({"b": gate("BUF_X3", 2, 5), "u": gate("INV_X1", 5, 3)})
    after = linked({"u": gate("INV_X1", 2, 5), "b": gate("BUF_X3", 5, 3)})
    found = nets_before(before, after)
    (inverters,) = [group for group in after.groups if group.cell.name == "INV_X1"]
    (buffers,) = [group for group in after.groups if group.cell.name == "BUF_X3"]
    assert np.array_equal(found[buffers.outputs], found[inverters.outputs])


def test_a_new_gate_is_known_by_nothing() -> None:
    after = linked({"u": gate("INV_X1", 2, 5), "v": gate("INV_X1", 5, 6), "w": gate("BUF_X3", 6, 3)})
    found = traced(after)
    assert [name for name, net in found.items() if net < 0] == ["one.v", "two.v", "one.w", "two.w"]
