"""What the reader makes of Liberty's groups, one rule at a time."""

import hashlib

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.errors import InputError


def library(tmp_path, body, header=""):
    """A library of volts, ns, fF and nW with that body."""
    path = tmp_path / "one.lib"
    path.write_text(
        "library (one) {\n"
        'nom_voltage : 1; time_unit : "1ns"; voltage_unit : "1V"; leakage_power_unit : "1nW";\n'
        f"capacitive_load_unit (1, ff);\n{header}\n{body}\n}}\n"
    )
    return reader.load(path)


def gate(function, names, timing="", pins=""):
    inputs = " ".join(f"pin ({name}) {{ direction : input; }}" for name in names)
    return f'cell (G) {{ {inputs} {pins} pin (Y) {{ direction : output; function : "{function}"; {timing} }} }}'


@pytest.mark.parametrize(
    ("unit", "worth"),
    [("1fF", 1.0), ("1pF", 1e3), ("2nF", 2e6), ("1uF", 1e9), ("1mF", 1e12), ("1F", 1e15), ("1kF", 1e18)],
)
def test_every_prefix_of_a_unit(tmp_path, unit, worth):
    path = tmp_path / "unit.lib"
    number, letters = unit[0], unit[1:]
    path.write_text(
        f"library (u) {{ nom_voltage : 1; capacitive_load_unit ({number}, {letters});\n"
        "cell (C) { pin (A) { direction : input; capacitance : 3; } } }"
    )
    found = reader.load(path)
    assert found.units["capacitance"] == pytest.approx(worth)
    assert found.cells["C"].pins["A"].capacitance == pytest.approx(3 * worth)
    # What the file leaves out.
    assert found.units == pytest.approx({"time": 1.0, "voltage": 1.0, "leakage": 1.0, "capacitance": worth})


def test_capacitance_is_in_picofarads_unless_it_says_otherwise(tmp_path):
    path = tmp_path / "unit.lib"
    path.write_text("library (u) { nom_voltage : 1; cell (C) { pin (A) { direction : input; capacitance : 2; } } }")
    assert reader.load(path).cells["C"].pins["A"].capacitance == pytest.approx(2000.0)


@pytest.mark.parametrize("unit", ["0pF", "-1pF", "1pV", "1xF", "1..2pF", "pp"])
def test_a_unit_that_is_none(tmp_path, unit):
    path = tmp_path / "unit.lib"
    path.write_text(f"library (u) {{ nom_voltage : 1;\ncapacitive_load_unit ({unit});\ncell (C) {{ }} }}")
    with pytest.raises(InputError, match=r"unit\.lib:2: unit '.*'; expected a (positive )?multiple of F"):
        reader.load(path)


@pytest.mark.parametrize("name", ["area", "capacitance", "rise_capacitance"])
def test_less_than_nothing_is_refused(tmp_path, name):
    own = f"{name} : -0.5;"
    body = f"cell (C) {{\n{own if name == 'area' else ''} pin (A) {{ direction : input; {own} }} }}"
    with pytest.raises(InputError, match=rf"one\.lib:6: {name} is -0\.5; expected at least 0"):
        library(tmp_path, body)


def test_the_voltage_is_that_of_the_default_conditions(tmp_path):
    """Without default conditions it is the nominal one; where there is none either, that of the first conditions."""
    fast = "operating_conditions (fast) { voltage : 3; }"
    slow = "operating_conditions (slow) { voltage : 2; }"
    body = "cell (C) { }"
    assert library(tmp_path, body).voltage == 1.0
    assert library(tmp_path, body, fast + slow).voltage == 1.0
    (tmp_path / "bare.lib").write_text(f"library (bare) {{ {fast} {slow} {body} }}")
    assert reader.load(tmp_path / "bare.lib").voltage == 3.0
    assert library(tmp_path, body, f"{fast} {slow} default_operating_conditions : slow;").voltage == 2.0
    assert library(tmp_path, body, f"{fast} {slow} default_operating_conditions : other;").voltage == 1.0
    chosen = "default_operating_conditions : x;"
    for voltage in ("0", "-1", "100", "1000"):
        with pytest.raises(InputError, match="no supply voltage"):
            library(tmp_path, body, f"{chosen} operating_conditions (x) {{ voltage : {voltage}; }}")
    assert library(tmp_path, body, f"{chosen} operating_conditions (x) {{ voltage : 99; }}").voltage == 99.0
    tenths = f'voltage_unit : "100mV"; {chosen} operating_conditions (x) {{ voltage : 18; }}'
    assert library(tmp_path, body, tenths).voltage == pytest.approx(1.8)


def test_templates_of_delays_and_energies_may_share_a_name(tmp_path):
    """Either kind of table takes its own, and the other's where there is none of its own."""
    axes = 'variable_{} : input_net_transition; variable_{} : total_output_net_capacitance; index_{} ("0, 2"); '
    delays = axes.format(1, 2, 1) + 'index_2 ("0, 10, 20");'
    energies = axes.format(2, 1, 2) + 'index_1 ("0, 10, 20");'
    both = f"lu_table_template (grid) {{ {delays} }} power_lut_template (grid) {{ {energies} }}"
    tables = """
    timing () { related_pin : "A"; cell_rise (grid) { values ("1, 2, 3", "4, 5, 6"); }
      cell_fall (grid) { values ("1, 2, 3", "4, 5, 6"); } }
    internal_power () { related_pin : "A"; rise_power (grid) { values ("VALUES"); } }"""

    def read(header, values):
        text = gate("!A", ["A"], tables.replace("VALUES", values))
        (pin,) = (cell.pins["Y"] for cell in library(tmp_path, text, header).cells.values())
        return pin.arcs[0].delay[0], pin.internal_power[0].energy[0]

    delay, energy = read(both, "1, 2, 3, 4, 5, 6")
    assert float(delay(2, 10)) == 5
    assert float(energy(2, 10)) == 4
    _, energy = read(f"lu_table_template (grid) {{ {delays} }}", "1, 2, 3, 4, 5, 6")
    assert float(energy(2, 10)) == 5


def test_wire_load(tmp_path):
    group = "wire_load ({}) {{ slope : 4; capacitance : 0.5; }}"
    assert library(tmp_path, "cell (C) { }", group.format("per_fanout")).wire_load == 2.0
    assert library(tmp_path, "cell (C) { }", group.format("Small")).wire_load is None


@pytest.mark.parametrize(
    ("function", "sense"),
    [
        ("A", ("positive_unate", "non_unate")),
        ("!A", ("negative_unate", "non_unate")),
        ("A & B", ("positive_unate", "positive_unate")),
        ("!(A & B)", ("negative_unate", "negative_unate")),
        ("!A & B", ("negative_unate", "positive_unate")),
        ("B & !A | B", ("positive_unate", "positive_unate")),  # A is in no way in it
        ("A ^ B", ("non_unate", "non_unate")),
        ("A & !B", ("positive_unate", "negative_unate")),
    ],
)
def test_the_sense_of_an_arc_follows_from_the_function(tmp_path, function, sense):
    timing = 'timing () { related_pin : "A B"; cell_rise (scalar) { values ("1"); } }'
    arcs = library(tmp_path, gate(function, "AB", timing)).cells["G"].pins["Y"].arcs
    assert [arc.related_pin for arc in arcs] == ["A", "B"]
    assert tuple(arc.sense for arc in arcs) == sense


def test_the_sense_that_is_given_is_taken(tmp_path):
    timing = 'timing () { related_pin : "A"; timing_sense : negative_unate; cell_rise (scalar) { values ("1"); } }'
    (arc,) = library(tmp_path, gate("A", "A", timing)).cells["G"].pins["Y"].arcs
    assert arc.sense == "negative_unate"


@pytest.mark.parametrize(("count", "sense"), [(16, "positive_unate"), (17, "non_unate")])
def test_the_sense_of_wide_gates_is_not_looked_for(tmp_path, count, sense):
    names = [f"A{number}" for number in range(count)]
    timing = 'timing () { related_pin : "A0"; cell_rise (scalar) { values ("1"); } }'
    (arc,) = library(tmp_path, gate(" & ".join(names), names, timing)).cells["G"].pins["Y"].arcs
    assert arc.sense == sense


def test_arcs_and_their_tables(tmp_path):
    timing = """
      timing () { related_pin : "A"; when : "!B"; timing_type : combinational_rise;
        cell_rise (scalar) { values ("1"); } rise_transition (scalar) { values ("2"); } }
      timing () { related_pin : "B";
        cell_fall (scalar) { values ("3"); } fall_transition (scalar) { values ("4"); } }
      timing () { related_pin : "B"; timing_type : hold_rising; rise_constraint (scalar) { values ("5"); } }
      timing () { related_pin : "B"; timing_type : setup_rising;
        rise_constraint (scalar) { values ("6"); } fall_constraint (scalar) { values ("7"); } }
    """
    rise, fall, setup = library(tmp_path, gate("A & B", "AB", timing)).cells["G"].pins["Y"].arcs

    def values(tables):
        return tuple(None if table is None else float(table(0.0, 0.0)) for table in tables)

    assert (rise.kind, rise.when.text, values(rise.delay)) == ("combinational_rise", "!B", (1.0, None))
    assert (values(rise.transition), values(rise.constraint)) == ((2.0, None), (None, None))
    assert (fall.kind, fall.when, values(fall.delay)) == ("combinational", None, (None, 3.0))
    assert values(fall.transition) == (None, 4.0)
    assert (setup.kind, values(setup.constraint)) == ("setup_rising", (6.0, 7.0))


def test_energies(tmp_path):
    power = """
      internal_power () { related_pin : "A B"; related_pg_pin : VDD; when : "C";
        rise_power (scalar) { values ("1"); } fall_power (scalar) { values ("2"); } }
      internal_power () { power (scalar) { values ("3"); } }
      internal_power () { fall_power (scalar) { values ("4"); } }
      minimum_period () { constraint : 1; }
      mode_value () { }
    """
    found = library(tmp_path, gate("A & B & C", "ABC", power)).cells["G"].pins["Y"].internal_power
    rows = [
        (
            entry.related_pin,
            entry.supply,
            entry.when.text if entry.when else None,
            *(float(table(0.0, 0.0)) for table in entry.energy),
        )
        for entry in found
    ]
    assert rows == [
        ("A", "VDD", "C", 1.0, 2.0),
        ("B", "VDD", "C", 1.0, 2.0),
        (None, "", None, 3.0, 3.0),
        (None, "", None, 0.0, 4.0),
    ]


@pytest.mark.parametrize(
    ("groups", "leakage", "states"),
    [
        ("leakage_power () { value : 3; } leakage_power () { value : 4; }", 7.0, []),  # two supplies
        ("leakage_power () { value : 3; } cell_leakage_power : 5;", 5.0, []),
        ('leakage_power () { when : "A"; value : 2; } leakage_power () { when : "!A"; value : 6; }', 4.0, [2.0, 6.0]),
        ('leakage_power () { when : "A"; value : 2; } leakage_power () { value : 9; }', 9.0, [2.0]),
        ("", 11.0, []),
    ],
)
def test_leakage(tmp_path, groups, leakage, states):
    body = f"cell (C) {{ {groups} pin (A) {{ direction : input; }} }}"
    cell = library(tmp_path, body, "default_cell_leakage_power : 11;").cells["C"]
    assert cell.leakage == leakage
    assert [value for _, value in cell.leakage_states] == states


@pytest.mark.parametrize(
    ("text", "mean", "edges"),
    [
        ("capacitance : 5;", 5.0, (5.0, 5.0)),
        ("capacitance : 5; rise_capacitance : 4;", 5.0, (4.0, 5.0)),
        ("capacitance : 5; fall_capacitance : 4;", 5.0, (5.0, 4.0)),
        ("rise_capacitance : 4;", 4.0, (4.0, 4.0)),
        ("fall_capacitance : 4;", 4.0, (4.0, 4.0)),
        ("rise_capacitance : 4; fall_capacitance : 6;", 5.0, (4.0, 6.0)),
        ("capacitance : 0;", 0.0, (0.0, 0.0)),
        ("", 7.0, (7.0, 7.0)),
    ],
)
def test_capacitances(tmp_path, text, mean, edges):
    body = f"cell (C) {{ pin (A) {{ direction : input; {text} }} pin (Y) {{ direction : output; }} }}"
    cell = library(tmp_path, body, "default_input_pin_cap : 7;").cells["C"]
    assert cell.pins["A"].capacitance == mean
    assert cell.pins["A"].edge_capacitance == edges
    assert cell.pins["Y"].capacitance == 0.0


def test_flip_flops(tmp_path):
    body = """
      cell (F) {
        area : 2.5;
        ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; clear : "!R"; preset : "S";
          clear_preset_var1 : H; clear_preset_var2 : L; }
        pin (CK) { direction : input; clock : true; } pin (D, R, S) { direction : input; }
        pin (Q) { direction : output; function : "IQ"; three_state : "D"; }
      }
      cell (L) { latch (X, Y) { enable : "G"; } is_isolation_cell : true; }
    """
    cells = library(tmp_path, body).cells
    flip_flop = cells["F"]
    assert flip_flop.area == 2.5
    assert not flip_flop.dont_use
    assert flip_flop.is_flip_flop
    sequential = flip_flop.sequential
    assert (sequential.kind, sequential.state, sequential.inverse, sequential.both) == ("ff", "IQ", "IQN", (1, 0))
    assert (sequential.clear.text, sequential.preset.text) == ("!R", "S")
    assert flip_flop.pins["CK"].is_clock
    assert not flip_flop.pins["D"].is_clock
    assert flip_flop.pins["Q"].is_three_state
    assert flip_flop.inputs == ["CK", "D", "R", "S"]
    assert (cells["L"].sequential.kind, cells["L"].sequential.state) == ("latch", "X")
    assert not cells["L"].is_flip_flop
    assert cells["L"].dont_use


TEMPLATES = """
  lu_table_template (both) {
    variable_1 : total_output_net_capacitance; variable_2 : input_net_transition; index_1 ("1, 2"); index_2 ("3, 4, 6");
  }
  lu_table_template (load) { variable_1 : total_output_net_capacitance; index_1 ("1, 2"); }
  lu_table_template (strange) { variable_1 : related_out_total_output_net_capacitance; index_1 ("1, 2"); }
  lu_table_template (twice) {
    variable_1 : input_net_transition; variable_2 : input_net_transition; index_1 ("1, 2"); index_2 ("1, 2");
  }
  lu_table_template (setup) {
    variable_1 : constrained_pin_transition; variable_2 : related_pin_transition; index_1 ("1, 2"); index_2 ("3, 4, 6");
  }
"""


def table(tmp_path, text, kind="cell_rise", units=""):
    timing = f'timing () {{ related_pin : "A"; timing_type : combinational; {kind} {text} }}'
    path = tmp_path / "table.lib"
    header = units or 'time_unit : "1ns"; capacitive_load_unit (1, ff);'
    path.write_text(f"library (t) {{\n nom_voltage : 1; {header}\n{TEMPLATES}\n{gate('A', 'A', timing)}\n}}\n")
    (arc,) = reader.load(path).cells["G"].pins["Y"].arcs
    return arc.constraint[0] if "constraint" in kind else arc.delay[0]


def test_the_axes_of_a_table(tmp_path):
    found = table(tmp_path, '(both) { values ("1, 2, 3", "4, 5, 6"); }')
    assert (found.x.tolist(), found.y.tolist()) == ([3.0, 4.0, 6.0], [1.0, 2.0])
    assert found.values.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    found = table(tmp_path, '(load) { index_1 ("5, 7"); values ("1, 2"); }')
    assert (found.x.tolist(), found.y.tolist(), found.values.tolist()) == ([0.0], [5.0, 7.0], [[1.0, 2.0]])
    found = table(tmp_path, '(setup) { values ("1, 2, 3", "4, 5, 6"); }', "rise_constraint")
    assert (found.x.tolist(), found.y.tolist()) == ([3.0, 4.0, 6.0], [1.0, 2.0])
    units = 'time_unit : "10ps"; capacitive_load_unit (1, pf);'
    found = table(tmp_path, '(both) { values ("1, 2, 3", "4, 5, 6"); }', units=units)
    assert found.x == pytest.approx([0.03, 0.04, 0.06])
    assert found.y == pytest.approx([1000.0, 2000.0])
    assert found.values[0] == pytest.approx([0.01, 0.04])
    # Both axes of a constraint are slews.
    found = table(tmp_path, '(setup) { values ("1, 2, 3", "4, 5, 6"); }', "rise_constraint", units)
    assert found.y == pytest.approx([0.01, 0.02])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('(strange) { values ("1, 2"); }', "cell_rise over 'related_out_total_output_net_capacitance'"),
        ('(twice) { values ("1, 2", "3, 4"); }', "cell_rise over 'input_net_transition'"),
        ('(missing) { values ("1"); }', "no template 'missing'"),
        ('(load) { values ("1, 2, 3"); }', "cell_rise has 3 values; its indices say 1 x 2"),
        ('(load) { index_1 ("2, 2"); values ("1, 2"); }', "expected increasing numbers"),
        ('(load) { index_1 ("2, 1"); values ("1, 2"); }', "expected increasing numbers"),
        ('(load) { index_1 ("1, inf"); values ("1, 2"); }', "expected increasing numbers"),
        ('(load) { index_1 (""); values (""); }', "expected increasing numbers"),
        ('(load) { values ("1, nan"); }', "a value that is not finite"),
        ('(load) { values ("1, x"); }', "table: could not convert"),
        ("(load) { }", "cell_rise without values"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=rf"table\.lib:\d+: .*{message}"):
        table(tmp_path, text)


def test_the_digest_is_that_of_the_files_in_any_order(tmp_path):
    texts = [f"library (x) {{ nom_voltage : 1; cell (C{number}) {{ }} }}" for number in range(2)]
    paths = [tmp_path / f"{number}.lib" for number in range(2)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    digests = sorted(hashlib.sha256(text.encode()).hexdigest() for text in texts)
    assert reader.load(paths[:1]).digest == hashlib.sha256(texts[0].encode()).hexdigest()
    both = [reader.load(order) for order in (paths, paths[::-1])]
    assert {found.digest for found in both} == {hashlib.sha256("".join(digests).encode()).hexdigest()}
    assert both[0].digests == both[1].digests[::-1]
    assert all(np.isfinite(found.voltage) for found in both)


def test_an_energy_that_depends_on_another_load_is_its_mean(tmp_path):
    """Of flip-flops with two outputs; a delay must not depend on it."""
    template = """power_lut_template (both) {
      variable_1 : total_output_net_capacitance; variable_2 : equal_or_opposite_output_net_capacitance;
      variable_3 : input_transition_time; index_1 ("0, 10"); index_2 ("0, 5, 10"); index_3 ("0, 1, 2, 3"); }"""
    values = np.arange(24).reshape(2, 3, 4)
    text = ", ".join(map(str, values.ravel().tolist()))
    power = f'internal_power () {{ related_pin : "A"; rise_power (both) {{ values ("{text}"); }} }}'
    (cell,) = library(tmp_path, gate("!A", ["A"], power), template).cells.values()
    energy = cell.pins["Y"].internal_power[0].energy[0]
    for load, slew in ((0, 0), (10, 3), (10, 1)):
        assert float(energy(slew, load)) == pytest.approx(values[load // 10, :, slew].mean())
    delay = f'timing () {{ related_pin : "A"; cell_rise (both) {{ values ("{text}"); }} }}'
    with pytest.raises(
        InputError, match="cell_rise over 'equal_or_opposite_output_net_capacitance'; expected slew and"
    ):
        library(tmp_path, gate("!A", ["A"], delay), template)


def test_files_whose_templates_differ_are_refused(tmp_path):
    """Synthesis reads all files as one; what has equal templates is one library."""
    paths = [tmp_path / name for name in ("a.lib", "b.lib", "c.lib")]
    for path, last in zip(paths, ("2", "3", "2.0"), strict=True):
        template = f'lu_table_template (t) {{ variable_1 : input_net_transition; index_1 ("0, {last}"); }}'
        path.write_text(f"library (x) {{ nom_voltage : 1;\n{template}\ncell ({path.stem.upper()}) {{ }} }}")
    assert list(reader.load([paths[0], paths[2]]).cells) == ["A", "C"]
    with pytest.raises(
        InputError, match=r"b\.lib:2: its lu_table_template 't' differs from that of .*a\.lib; expected"
    ):
        reader.load(paths[:2])


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("one", r'cell (C) { pin ("TE\n!touch x;") { direction : input; } }', r"pin .* of C; expected a name"),
        ("one", 'cell (C) { pin ("A B") { direction : input; } }', "pin 'A B' of C; expected a name as that of a cell"),
        ('"a | b"', "cell (C) { }", r"library 'a \| b'; expected a name of printable characters"),
        ("one", 'include_file ("more.lib"); cell (C) { }', "include_file .*; expected all cells"),
    ],
)
def test_what_would_become_part_of_a_script_or_go_unnoticed_is_refused(tmp_path, name, body, message):
    path = tmp_path / "one.lib"
    path.write_text(f"library ({name}) {{ nom_voltage : 1;\n{body}\n}}\n".replace(r"\n", "\n"))
    with pytest.raises(InputError, match=message):
        reader.load(path)
