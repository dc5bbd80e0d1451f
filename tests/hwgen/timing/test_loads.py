"""What a net drives and what is assumed, by hand."""

import math

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.netlist.link import link
from hwgen.timing.loads import default_output_load, default_slew, default_wire_load, net_loads
from hwgen.timing.wires import per_fanout

TEMPLATE = """
lu_table_template (t) {
  variable_1 : input_net_transition; variable_2 : total_output_net_capacitance; index_1 ("0, 1"); index_2 ("0, 10");
}
"""


def library(tmp_path, body):
    path = tmp_path / "cells.lib"
    path.write_text(f"library (cells) {{ nom_voltage : 1; capacitive_load_unit (1, ff); {TEMPLATE} {body} }}")
    return reader.load(path)


def gate(name, area, function, capacitance=2.0, tables=""):
    inputs = "".join(
        f"pin ({pin}) {{ direction : input; capacitance : {capacitance}; }} " for pin in "AB" if pin in function
    )
    timing = f'timing () {{ related_pin : "A"; {tables} }}' if tables else ""
    output = f'pin (Y) {{ direction : output; function : "{function}"; {timing} }}'
    return f"cell ({name}) {{ area : {area}; {inputs} {output} }}"


def test_a_wire_is_as_long_as_ten_pitches_of_the_smallest_gate(tmp_path):
    gates = gate("NOR", 2.8, "!(A | B)") + gate("NAND", 0.7 * 9, "!(A & B)")
    cells = library(tmp_path, gates)
    assert default_wire_load(cells) == pytest.approx(0.15 * 10 * 2.0)
    assert default_wire_load(cells.without(["NOR"])) == pytest.approx(0.15 * 10 * 3.0)
    # What the library says is taken.
    assert default_wire_load(library(tmp_path, gates + "wire_load (per_fanout) { slope : 2; capacitance : 3; }")) == 6.0
    # No gate, and one without an area.
    assert default_wire_load(library(tmp_path, gate("INV", 1, "!A"))) == 0.0
    assert default_wire_load(library(tmp_path, gate("NOR", 0, "!(A | B)"))) == 0.0


def test_the_slew_of_a_chain_of_inverters(tmp_path):
    # Rising 0.1 + 0.9 slew + 0.02 load, falling 0.3 + 0.5 slew + 0.04 load: 0.2 + 0.7 slew + 0.03 load on the mean.
    rise = 'rise_transition (t) { values ("0.1, 0.3", "1.0, 1.2"); }'
    tables = f'{rise} fall_transition (t) {{ values ("0.3, 0.7", "0.8, 1.2"); }}'
    cells = library(tmp_path, gate("INV", 1, "!A", 1.5, tables) + gate("LARGE", 2, "!A", 9.0, tables))
    for wire in (0.0, 2.5):
        load = 4 * (1.5 + wire)
        last = (0.2 + 0.03 * load) * (1 - 0.7**16) / (1 - 0.7)
        assert default_slew(cells, wire) == pytest.approx(last, rel=1e-12)
    assert default_slew(cells) == default_slew(cells, 0.0)
    assert default_slew(library(tmp_path, gate("NAND", 1, "!(A & B)"))) == 0.0
    assert default_slew(library(tmp_path, gate("INV", 1, "!A"))) == 0.0  # without tables


def test_an_output_port_is_four_inverters(tmp_path):
    cells = library(tmp_path, gate("LARGE", 2, "!A", 9.0) + gate("INV", 1, "!A", 1.5))
    assert default_output_load(cells) == 6.0
    assert default_output_load(library(tmp_path, gate("NAND", 1, "!(A & B)"))) == 0.0


def test_the_load_of_a_net(make, tiny):
    """Pins by edge, one wire for each of them and for each port, and the ports' own load."""
    cells = {
        "n": ("NAND2", {"A": 2, "B": 2, "Y": 3}),
        "u": ("INV", {"A": 2, "Y": 4}),
        "v": ("INV", {"A": 3, "Y": 5}),
    }
    ports = {"a": ("input", [2]), "y": ("output", [3, 3, 4]), "z": ("output", [5])}
    found = link({"t": make(ports, cells)}, "t", tiny)
    wires = per_fanout(found, 0.5)
    load = net_loads(found, 7.0, wires)
    a, n, u, v = (int(found.ports[port].nets[bit]) for port, bit in (("a", 0), ("y", 0), ("y", 2), ("z", 0)))
    # a drives the NAND's A (2 rising, 4 falling) and B (3), and an inverter (2): three loads.
    assert load[a].tolist() == pytest.approx([2 + 3 + 2 + 1.5, 4 + 3 + 2 + 1.5])
    assert load[n].tolist() == pytest.approx([2 + 2 * 7 + 1.5] * 2)
    assert load[u].tolist() == load[v].tolist() == pytest.approx([7.5] * 2)
    assert wires.capacitance[[a, n, u, v]].tolist() == pytest.approx([1.5, 1.5, 0.5, 0.5])
    assert np.all(load[:2] == 0)
    assert math.isclose(net_loads(found, 0.0, per_fanout(found, 0.0)).sum(), 7 + 9 + 2 * 2)
