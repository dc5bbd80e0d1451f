"""Pins and widths of a small netlist."""

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.layout.lef import Macro, Shapes
from hwgen.layout.pins import pins_of, widths
from hwgen.layout.technology import Technology
from hwgen.netlist.link import link

PLAIN = Technology("plain", 2.0, 0.25, 0.2, 0.01, "none")


@pytest.fixture(scope="module")
def netlist(make, tiny):
    cells = {
        "u1": ("INV", {"A": 3, "Y": 4}),
        "f": ("DFF", {"CK": 2, "RN": "1", "D": 4, "Q": 5}),
        "u2": ("NAND2", {"A": 5, "B": 4, "Y": 6}),
    }
    ports = {"ck": ("input", [2]), "a": ("input", [3]), "y": ("output", [6, 5])}
    return link({"t": make(ports, cells)}, "t", tiny)


def test_driver_first_and_no_clock(netlist):
    pins = pins_of(netlist)
    names = [*(netlist.cell_name(i) for i in range(3)), "port"]
    found = {}
    for net in range(netlist.n_nets):
        own = slice(pins.start[net], pins.start[net + 1])
        found[netlist.net_name(net)] = [
            f"port {bit}" if cell < 0 else names[cell] for cell, bit in zip(pins.cell[own], pins.port[own], strict=True)
        ]
    assert found["ck"] == []
    assert found["constant 1"] == []
    assert found["a"] == ["port 1", "u1"]
    (between,) = (pins for pins in found.values() if pins[:1] == ["u1"])
    assert sorted(between[1:]) == ["f", "u2"]
    assert found["y[0]"] == ["u2", "port 2"]
    assert found["y[1]"][0] == "f"
    assert sorted(found["y[1]"][1:]) == ["port 3", "u2"]
    assert np.array_equal(pins.net, np.repeat(np.arange(netlist.n_nets), np.diff(pins.start)))


def test_widths(netlist):
    width = {netlist.cell_name(i): value for i, value in enumerate(widths(netlist, PLAIN))}
    # Areas 1, 1.5 and 4 um2 in rows of 2 um: 0.5, 0.75 and 2 um.
    assert width == {"u1": 0.5, "u2": 0.75, "f": 2.0}
    wider = Technology("wide", 2.0, 0.4, 0.2, 0.01, "none")
    assert widths(netlist, wider) == pytest.approx([0.8, 2.0, 0.8])


def test_shapes(netlist, tmp_path):
    macros = {
        "INV": Macro(0.5, 2.0, {"A": (0.125, 1.0), "Y": (0.375, 0.5)}),
        "NAND2": Macro(0.75, 2.0, {"A": (0.0, 0.0), "B": (0.5, 2.0), "Y": (0.75, 1.0)}),
        "DFF": Macro(2.0, 2.0, {"CK": (0, 0), "RN": (0, 0), "D": (0.5, 1.0), "Q": (1.5, 1.0)}),
    }
    shapes = Shapes(macros, None, (tmp_path / "cells.lef",))
    assert sorted(widths(netlist, PLAIN, shapes)) == [0.5, 0.75, 2.0]
    pins = pins_of(netlist, shapes)
    net = int(netlist.ports["y"].nets[0])
    first = pins.start[net]
    assert (pins.x[first], pins.y[first]) == (0.375, 0.0)
    larger = {name: Macro(4 * each.width, 4 * each.height, each.pins) for name, each in macros.items()}
    scaled = Technology("plain", 8.0, 0.25, 0.2, 0.01, "none")
    with pytest.raises(InputError, match=r"MACRO \w+ is [\d.]+ by 8 um; its area in the library is [\d.]+ um2, "):
        widths(netlist, scaled, Shapes(larger, None, (tmp_path / "cells.lef",)))
    del macros["DFF"]
    with pytest.raises(InputError, match=r"cells\.lef: no MACRO DFF; it has INV, NAND2"):
        widths(netlist, PLAIN, shapes)
