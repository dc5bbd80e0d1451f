"""The clock tree of a placement: by hand, and of a mapped netlist."""

import numpy as np
import pytest

from hwgen.layout.clock_tree import clock_tree
from hwgen.layout.layout import lay_out
from hwgen.layout.technology import Technology, technology_of
from hwgen.netlist.fanout import LIMIT
from hwgen.netlist.link import link

PLAIN = Technology("plain", 2.0, 0.25, 0.2, 0.01, "none", detour=1.5)


def flip_flops(make, tiny, count):
    cells = {f"f{i}": ("DFF", {"CK": 2, "RN": "1", "D": 3, "Q": 10 + i}) for i in range(count)}
    ports = {"ck": ("input", [2]), "d": ("input", [3]), "q": ("output", [10 + i for i in range(count)])}
    return link({"t": make(ports, cells)}, "t", tiny)


def test_without_buffers(make, tiny):
    netlist = flip_flops(make, tiny, 3)
    places = np.zeros(5)
    found = clock_tree(netlist, PLAIN, np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0]), places, places)
    assert found.sinks == 3
    assert found.buffers == {netlist.clock_net: 0}
    # From the port at (0, 0) to the right, with a branch of 1.
    assert found.length == {netlist.clock_net: 4.0}
    assert found.capacitance == {netlist.clock_net: pytest.approx(4 * 0.2 * 1.5)}


def test_no_clock(make, tiny):
    ports = {"a": ("input", [2]), "y": ("output", [3])}
    netlist = link({"t": make(ports, {"g": ("INV", {"A": 2, "Y": 3})})}, "t", tiny)
    found = clock_tree(netlist, PLAIN, np.zeros(1), np.zeros(1), np.zeros(2), np.zeros(2))
    assert (found.sinks, found.buffers, found.length, found.capacitance) == (0, {}, {}, {})


def test_two_levels(make, tiny):
    """Two crowds of 16 pins, each in one point: a buffer in each, and a wire to both."""
    count = 2 * LIMIT
    netlist = flip_flops(make, tiny, count)
    x = np.tile([0.0, 10.0], LIMIT)
    ports = np.full(count + 2, 5.0)
    found = clock_tree(netlist, PLAIN, x, np.zeros(count), ports, np.full(count + 2, 3.0))
    assert found.buffers == {netlist.clock_net: 2}
    assert found.length == {netlist.clock_net: 13.0}


def test_mapped(mac):
    layout = lay_out(mac, technology_of(mac.library), arrangement="flat")
    tree = layout.clock_tree
    (net,) = tree.length
    assert net == mac.clock_net
    assert tree.sinks == sum(len(group.cells) for group in mac.groups if group.cell.clock_pin)
    assert tree.sinks / LIMIT <= tree.buffers[net] < 2 * tree.sinks / LIMIT + 2
    # No less than the half perimeter of the die nearly; no more than a wire of its own for each pin.
    assert 0.5 * sum(layout.die) < tree.length[net] < tree.sinks * sum(layout.die) / 2
    wires = layout.wires()
    assert wires.capacitance[net] == tree.capacitance[net]
    assert wires.resistance[net] == 0
