"""Buffers behind weak drivers: which one, by the library's tables."""

import pytest

from hwgen.cells import libraries, reader
from hwgen.closure.buffering import insert_buffers
from hwgen.closure.classes import classes
from hwgen.netlist.fanout import tree_buffer
from hwgen.netlist.link import link
from hwgen.timing.analysis import analyse
from hwgen.timing.arcs import RISE, cell_arcs
from hwgen.timing.compiled import compile_timing


@pytest.fixture(scope="module")
def library():
    return reader.load(libraries.path("generic7"))


def star(inverter, sinks):
    """An inverter that drives many others."""
    bits = range(4, 4 + sinks)
    driven = {f"s{bit}": {"type": inverter, "connections": {"A": [3], "Y": [bit]}} for bit in bits}
    return {
        "top": {
            "ports": {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [*bits]}},
            "cells": {"g": {"type": inverter, "connections": {"A": [2], "Y": [3]}}, **driven},
            "netnames": {},
        }
    }


def slowest(cell, slew, load, edges):
    return max(float(arc.delay(slew, load)) for arc in cell_arcs(cell) if arc.edge in edges)


@pytest.mark.parametrize("sinks", [12, 40, 150])
def test_a_weak_driver_gets_the_buffer_that_makes_its_net_earliest(library, sinks):
    inverter = library.drives(library.cells["INV_X1"])[0]
    modules = star(inverter.name, sinks)
    netlist = link(modules, "top", library)
    compiled = compile_timing(
        netlist, classes=classes(netlist).number, families=[each for each in library.families() if len(each) > 1]
    )
    found, count = insert_buffers(modules, netlist, compiled, 0.5 * compiled.delay)
    assert count == 1
    assert analyse(link(found, "top", library)).delay < analyse(netlist).delay
    # What is in time gets none.
    assert insert_buffers(modules, netlist, compiled, 1.001 * compiled.delay) == (modules, 0)

    load, slew = float(compiled.state.load.max()), compiled.assumed.input_slew
    expected = {}
    for buffer in library.drives(tree_buffer(library)):
        # The rising edge of the net is the later one: inverters pull up more slowly.
        first = slowest(inverter, slew, float(buffer.pins[buffer.inputs[0]].edge_capacitance[RISE]), [RISE])
        expected[buffer.name] = first + slowest(buffer, slew, load, [0, 1])
    (chosen,) = (cell["type"] for name, cell in found["top"]["cells"].items() if name.startswith("$closure"))
    assert chosen == min(expected, key=lambda name: expected[name])
