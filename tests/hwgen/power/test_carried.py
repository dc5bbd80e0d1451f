"""Activity handed on to a netlist with other sizes and buffers, beside a simulation of that netlist."""

from typing import Any

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.power.activity import Activity, simulate
from hwgen.power.carried import carried
from hwgen.power.glitch import sources

CELLS = reader.load(libraries.path("generic7"))
FLOP = next(cell for cell in CELLS.cells.values() if cell.is_flip_flop and len(cell.inputs) == 2)
GATE = next(cell for cell in CELLS.cells.values() if cell.clock_gate is not None)


def cell(kind: str, *nets: int) -> dict[str, Any]:
    pins = (*CELLS.cells[kind].inputs, *CELLS.cells[kind].outputs)
    return {"type": kind, "connections": {pin: [net] for pin, net in zip(pins, nets, strict=True)}}


def clocked(kind: str, clock: int, given: list[int], driven: int) -> dict[str, Any]:
    """A cell with a clock, its other inputs in their order."""
    own = CELLS.cells[kind]
    others = iter(given)
    nets = [clock if pin == own.clock_pin else next(others) for pin in own.inputs]
    return cell(kind, *nets, driven)


def linked(cells: dict[str, dict[str, Any]]) -> Netlist:
    ports = {
        "clk": {"direction": "input", "bits": [2]},
        "a": {"direction": "input", "bits": [3, 4]},
        "y": {"direction": "output", "bits": [8]},
    }
    return link({"t": {"ports": ports, "cells": cells, "netnames": {}}}, "t", CELLS)


BEFORE = {
    "nand": cell("NAND2_X1", 3, 4, 5),
    "flop": clocked(FLOP.name, 2, [5], 6),
    "inv": cell("INV_X1", 6, 7),
    "last": clocked(FLOP.name, 2, [7], 8),
}
"""a0 nand a1, registered, inverted, registered."""
GIVEN = {"a": np.random.default_rng(4).integers(0, 2, (50, 70, 2), np.uint8)}


def seen(netlist: Netlist) -> Activity:
    return simulate(netlist, GIVEN, warmup=3, keep=sources(netlist))


def same(found: Activity | None, wanted: Activity) -> None:
    assert found is not None
    assert np.array_equal(found.toggles, wanted.toggles)
    assert np.array_equal(found.ones, wanted.ones)
    assert np.array_equal(found.kept, wanted.kept)
    assert (found.cycles, found.streams, found.transitions) == (wanted.cycles, wanted.streams, wanted.transitions)
    assert (found.states, found.clocked) == ([], [])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"nand": cell("NAND2_X2", 3, 4, 5), "inv": cell("INV_X4", 6, 7)},
        {"more": cell("BUF_X3", 6, 9), "again": cell("BUF_X2", 9, 10), "inv": cell("INV_X1", 10, 7)},
        # Its number of cells and their order are others: the sources have other numbers.
        {"last": clocked(FLOP.name, 2, [9], 8), "between": cell("BUF_X2", 7, 9), "nand": cell("NAND2_X1", 3, 4, 5)},
    ],
)
def test_it_is_that_of_a_simulation(changes: dict[str, dict[str, Any]]) -> None:
    old = linked(BEFORE)
    for cells in ({**BEFORE, **changes}, {**changes, **{name: BEFORE[name] for name in BEFORE if name not in changes}}):
        new = linked(cells)
        same(carried(seen(old), old, new), seen(new))


def test_buffers_are_taken_out() -> None:
    old = linked({**BEFORE, "more": cell("BUF_X3", 6, 9), "inv": cell("INV_X1", 9, 7)})
    new = linked(BEFORE)
    same(carried(seen(old), old, new), seen(new))


def test_behind_a_clock_gate() -> None:
    """Pulses are counted twice a cycle, and a register that holds has no less."""
    assert GATE.clock_gate is not None
    enable = [3] + [0] * (len(GATE.inputs) - 2)
    gate = clocked(GATE.name, 2, enable, 9)
    for pin, bits in gate["connections"].items():
        if bits == [0]:
            gate["connections"][pin] = ["0"]
    gated = {**BEFORE, "gate": gate, "last": clocked(FLOP.name, 9, [7], 8)}
    old, new = linked(gated), linked({"more": cell("BUF_X2", 6, 10), **gated, "inv": cell("INV_X3", 10, 7)})
    assert len(new.gated_nets)
    same(carried(seen(old), old, new), seen(new))


@pytest.mark.parametrize(
    "changes",
    [
        {"more": cell("INV_X1", 6, 9), "inv": cell("INV_X1", 9, 7)},
        {"more": clocked(FLOP.name, 2, [6], 9), "inv": cell("INV_X1", 9, 7)},
    ],
)
def test_a_netlist_with_other_logic_is_not_known(changes: dict[str, dict[str, Any]]) -> None:
    old = linked(BEFORE)
    assert carried(seen(old), old, linked({**BEFORE, **changes})) is None
