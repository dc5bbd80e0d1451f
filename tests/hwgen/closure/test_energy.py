"""The energy of sizes as an objective, against the power estimate of the same netlist."""

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.closure.classes import classes
from hwgen.closure.energy import energy_cost
from hwgen.netlist.link import link
from hwgen.power import estimate as power
from hwgen.power.activity import simulate
from hwgen.timing.analysis import analyse
from hwgen.timing.compiled import compile_timing

CELLS = reader.load(libraries.path("generic7"))
CLOCK = 1.5


def test_the_cost_of_a_chain_is_what_it_consumes() -> None:
    """Three inverters toggle in every cycle: inside, at their pins, and what leaks; wires and ports are no cell's."""
    cells = {f"u{place}": {"type": "INV_X1", "connections": {"A": [2 + place], "Y": [3 + place]}} for place in range(3)}
    ports = {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [5]}}
    netlist = link({"t": {"ports": ports, "cells": cells, "netnames": {}}}, "t", CELLS)
    given = {"a": (np.arange(64) % 2)[:, None, None].astype(np.uint8)}
    compiled = compile_timing(netlist, classes=classes(netlist).number, families=CELLS.families())
    cost = energy_cost(lambda net, timing: simulate(net, given).toggles, CLOCK)(netlist, analyse(netlist), compiled)

    family = CELLS.drives(CELLS.cells["INV_X1"])
    now = [cell.name for cell in family].index("INV_X1")
    found = power.estimate(netlist, analyse(netlist), simulate(netlist, given), 1e3 / CLOCK)
    pins = 3 * 0.5 * CELLS.voltage**2 * CELLS.cells["INV_X1"].pins["A"].capacitance
    assert cost[:, now].sum() == pytest.approx(found.fj["internal"] + pins + found.fj["leakage"])
    # Every drive has a cost, and one twice as strong charges more.
    assert (cost[:, : len(family)] > 0).all()
    assert (np.diff(cost[:, now : len(family)], axis=1) > 0).all()


def test_what_never_toggles_costs_what_it_leaks() -> None:
    cells = {"u": {"type": "INV_X1", "connections": {"A": [2], "Y": [3]}}}
    ports = {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [3]}}
    netlist = link({"t": {"ports": ports, "cells": cells, "netnames": {}}}, "t", CELLS)
    given = {"a": np.zeros((4, 1, 1), np.uint8)}
    compiled = compile_timing(netlist, classes=classes(netlist).number, families=CELLS.families())
    cost = energy_cost(lambda net, timing: simulate(net, given).toggles, CLOCK)(netlist, analyse(netlist), compiled)
    family = CELLS.drives(CELLS.cells["INV_X1"])
    assert cost[0, : len(family)].tolist() == pytest.approx([cell.leakage * 1e-3 * CLOCK for cell in family])


def test_the_energy_of_an_output_is_that_behind_the_slew_of_its_input(make, tiny) -> None:
    """A rising output takes 4 fJ behind a slew of 0, and 6 behind one of 1 ns; a falling one 2."""
    netlist = link(
        {"t": make({"a": ("input", [2]), "y": ("output", [3])}, {"u": ("INV", {"A": 2, "Y": 3})})}, "t", tiny
    )
    timing = analyse(netlist, input_slew=1.0)
    compiled = compile_timing(netlist, classes=classes(netlist).number, families=tiny.families())
    (cost,) = energy_cost(lambda net, timing: np.ones(net.n_nets), CLOCK)(netlist, timing, compiled)
    inside = 0.5 * (6 + 2)
    assert cost[0] == pytest.approx(inside + 0.5 * tiny.voltage**2 * 2 + tiny.cells["INV"].leakage * 1e-3 * CLOCK)
