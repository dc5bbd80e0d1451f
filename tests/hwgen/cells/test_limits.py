"""What an output may drive, by hand."""

import math

import pytest

from hwgen.cells import reader

TEMPLATE = """
lu_table_template (t) {
  variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
  index_1 ("0, 1"); index_2 ("0, 10, 20");
}
"""


def library(tmp_path, output="", header="", slews="0.1, 0.2, 0.4", extra=""):
    """An inverter whose slews rise by 0.01 ns per fF at first, by 0.02 then; half of the input's slew comes on top."""
    later = ", ".join(f"{float(slew) + 0.5:g}" for slew in slews.split(", "))
    path = tmp_path / "cells.lib"
    path.write_text(
        f"library (cells) {{ nom_voltage : 1; capacitive_load_unit (1, ff); {header} {TEMPLATE} cell (INV) {{\n"
        f"pin (A) {{ direction : input; capacitance : 1; {extra} }}\n"
        f'pin (Y) {{ direction : output; function : "!A"; {output} timing () {{ related_pin : "A";\n'
        f'rise_transition (t) {{ values ("{slews}", "{later}"); }}\n'
        'fall_transition (t) { values ("0, 0, 0", "0, 0, 0"); }\n'
        "} } } }"
    )
    return reader.load(path)


def limit(cells):
    return cells.load_limits(cells.cells["INV"])["Y"]


def test_the_capacitance_that_the_pin_says_or_else_the_file(tmp_path):
    assert limit(library(tmp_path)) == math.inf
    assert limit(library(tmp_path, "max_capacitance : 12;")) == 12
    assert limit(library(tmp_path, header="default_max_capacitance : 9;")) == 9
    assert limit(library(tmp_path, "max_capacitance : 12;", "default_max_capacitance : 9;")) == 12
    # Some files say 0 where they mean nothing.
    assert limit(library(tmp_path, "max_capacitance : 0;")) == math.inf
    assert library(tmp_path, "max_capacitance : 12;").cells["INV"].pins["A"].max_capacitance == math.inf


@pytest.mark.parametrize(
    ("slowest", "load"),
    [
        # 0.1 + load / 100 + slowest / 2, then 0.2 + (load - 10) / 50 + slowest / 2
        (0.3, 5.0),
        (0.4, 10.0),
        (0.6, 15.0),
        (1.0, 25.0),
        (0.1, 0.0),
    ],
)
def test_the_load_at_which_an_edge_is_too_slow(tmp_path, slowest, load):
    """Reached from the slowest edge that inputs may get."""
    assert limit(library(tmp_path, header=f"default_max_transition : {slowest};")) == pytest.approx(load)
    assert limit(library(tmp_path, extra=f"max_transition : {slowest};")) == pytest.approx(load)
    # The least of all limits counts.
    both = library(tmp_path, f"max_capacitance : {load / 2 or 1};", f"default_max_transition : {slowest};")
    assert limit(both) == pytest.approx(min(load, load / 2 or 1))


def test_an_output_s_own_limit(tmp_path):
    """It is reached from its own slowest edge, which comes before that of the inputs."""
    assert limit(library(tmp_path, "max_transition : 0.3;", extra="max_transition : 0.6;")) == pytest.approx(5.0)


def test_slews_that_do_not_depend_on_the_load(tmp_path):
    assert limit(library(tmp_path, header="default_max_transition : 0.9;", slews="0.1, 0.1, 0.1")) == math.inf


def test_the_load_of_a_clock_gate_is_the_clock_tree_s(tmp_path):
    path = tmp_path / "cells.lib"
    path.write_text(
        "library (cells) { nom_voltage : 1; capacitive_load_unit (1, ff); cell (GATE) {\n"
        "clock_gating_integrated_cell : latch_posedge; statetable (a, b) { }\n"
        "pin (CK) { direction : input; clock_gate_clock_pin : true; }\n"
        "pin (E) { direction : input; clock_gate_enable_pin : true; }\n"
        "pin (Q) { direction : output; clock_gate_out_pin : true; max_capacitance : 3; }\n"
        "} }"
    )
    cells = reader.load(path)
    assert cells.cells["GATE"].pins["Q"].max_capacitance == 3
    assert cells.load_limits(cells.cells["GATE"]) == {"Q": math.inf}


def test_the_limits_of_real_libraries(real, real_name):
    """Within its limit no output makes an edge slower than inputs take, whatever comes in."""
    slowest = {"sky130hd": 1.5, "generic130": 1.5, "sg13g2": 2.5074}.get(real_name, 0.32)
    looked = 0
    for cell in real.cells.values():
        if cell.dont_use or cell.clock_gate is not None:
            continue
        for name, most in real.load_limits(cell).items():
            pin = cell.pins[name]
            assert 0 < most <= pin.max_capacitance
            for arc in pin.arcs:
                for table in arc.transition:
                    if table is not None and most < math.inf:
                        looked += 1
                        assert float(table(slowest, most)) <= slowest * (1 + 1e-9), (cell.name, name)
    assert looked > 100


def test_a_slow_edge_that_no_output_makes_limits_none(tmp_path):
    """Edges of clocks are ideal, and no netlist has a latch."""
    pin = "pin ({}) {{ direction : input; max_transition : 0.01; {} }}"
    flop = f'cell (DFF) {{ ff (I, IN) {{ clocked_on : "CK"; next_state : "D"; }} {pin.format("CK", "clock : true;")} }}'
    latch = f'cell (LAT) {{ latch (I, IN) {{ enable : "G"; data_in : "D"; }} {pin.format("D", "")} }}'
    path = tmp_path / "cells.lib"
    library(tmp_path, "max_capacitance : 80;")
    text = path.read_text().rstrip().removesuffix("}")
    path.write_text(f"{text} {flop} {latch} }}")
    assert limit(reader.load(path)) == 80
    path.write_text(f"{text} {flop.replace('pin (CK)', 'pin (D)')} }}")
    assert limit(reader.load(path)) < 80
