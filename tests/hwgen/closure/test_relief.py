"""Outputs that drive too much: larger drives, buffers, and what nothing helps."""

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.closure.close import close
from hwgen.closure.relief import relieve
from hwgen.config import TensorCoreConfig
from hwgen.measure.netlists.checks import check_core
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.netlist.link import link
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing.loads import assumptions, net_loads, overloads
from hwgen.timing.wires import Wires

CONFIG = TensorCoreConfig("single", "nvfp4", "nvfp4", rows=1, columns=1, groups=1)


def inverter(name, area, most, function="!A"):
    return (
        f"cell ({name}) {{ area : {area}; pin (A) {{ direction : input; capacitance : 1; }}\n"
        f'pin (Y) {{ direction : output; function : "{function}"; max_capacitance : {most}; }} }}\n'
    )


@pytest.fixture
def cells(tmp_path):
    """Inverters for 10 and 20 fF, buffers for 10 and 40."""
    path = tmp_path / "cells.lib"
    gates = inverter("INV1", 1, 10) + inverter("INV2", 2, 20)
    gates += inverter("BUF1", 3, 10, "A") + inverter("BUF2", 4, 40, "A")
    path.write_text(f"library (cells) {{ nom_voltage : 1; capacitive_load_unit (1, ff); {gates} }}")
    return reader.load(path)


def chain(cells, *names):
    """Cells one behind the other, in a module of their own that stands twice in the top."""
    bits = range(2, 3 + len(names))
    inner = {
        "ports": {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [bits[-1]]}},
        "cells": {
            f"g{place}": {"type": name, "connections": {"A": [bits[place]], "Y": [bits[place + 1]]}}
            for place, name in enumerate(names)
        },
        "netnames": {},
    }
    twice = {
        f"i{place}": {
            "type": "inner",
            "port_directions": {"a": "input", "y": "output"},
            "connections": {"a": [2 + place], "y": [3 + place]},
        }
        for place in range(2)
    }
    top = {
        "ports": {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [4]}},
        "cells": twice,
        "netnames": {},
    }
    return {"top": top, "inner": inner}


def loads(netlist, heavy):
    """Loads with 1 fF of wire, and so many more on the net at the output port."""
    wire = np.ones(netlist.n_nets)
    wire[netlist.ports["y"].nets] = heavy
    return net_loads(netlist, 0.0, Wires(wire, np.zeros(netlist.n_nets), "placed"))


@pytest.mark.parametrize(
    ("heavy", "expected"),
    [
        (10.0, ["INV1", "INV1"]),  # as much as it may
        (10.1, ["INV1", "INV2"]),  # in one copy of the module alone, but they are one
        (19.5, ["INV1", "INV1", "BUF2"]),  # within INV2's limit, but too near
        (30.0, ["INV1", "INV1", "BUF2"]),
        (50.0, ["INV1", "INV1"]),  # nothing would do
    ],
)
def test_the_smallest_that_suffices(cells, heavy, expected):
    before = chain(cells, "INV1", "INV1")
    netlist = link(before, "top", cells)
    load = loads(netlist, heavy)
    after, count = relieve(before, netlist, load)
    own = after["inner"]["cells"]
    assert [cell["type"] for cell in own.values()] == expected
    assert count == (expected != ["INV1", "INV1"])
    assert before == chain(cells, "INV1", "INV1")
    now = link(after, "top", cells)
    left = list(overloads(now, loads(now, heavy)))
    assert bool(left) == (heavy == 50)
    if len(own) == 3:
        *_, driver, buffer = own.values()
        assert buffer["connections"] == {"A": driver["connections"]["Y"], "Y": [4]}


def test_overloads_say_which_and_by_how_much(cells):
    netlist = link(chain(cells, "INV1", "INV1"), "top", cells)
    (found,) = overloads(netlist, loads(netlist, 11.0))
    assert (found.kind.name, found.output, found.load, found.limit) == ("INV1", "Y", 11.0, 10.0)
    assert netlist.driver[netlist.ports["y"].nets[0]] == found.cell


def test_a_closed_core_has_no_overload(cache, mapped):
    """With wires so long that the mapped core has many; what it computes stays."""
    library = reader.load(libraries.path("generic7"))
    modules = mapped(Design(CONFIG, TensorCore), Flow(library, cache))
    assumed = assumptions(library, wire_load=4.0)
    netlist = link(modules, TensorCore.module_name, library)
    closed = close(modules, TensorCore.module_name, library, 0.0, assumed=assumed, rounds=1)
    wires = Wires(4.0 * netlist.fanout, np.zeros(netlist.n_nets), "fanout")
    assert len(list(overloads(netlist, net_loads(netlist, assumed.output_load, wires)))) > 10
    assert closed.record.overloaded == 0
    assert list(overloads(closed.netlist, closed.timing.load)) == []
    signals = np.setdiff1d(np.arange(closed.netlist.n_nets), closed.netlist.clock_nets)
    assert closed.timing.slew[signals].max() <= 0.32
    assert check_core(closed.netlist, CONFIG, 500) >= 500
