"""Liberty syntax and library meaning: what is read, and how bad files are refused."""

import dataclasses
import gzip

import numpy as np
import pytest

from hwgen.cells import liberty, libraries, reader
from hwgen.cells.boolean import parse_expression
from hwgen.cells.tables import Table, TableBank
from hwgen.errors import InputError


def wrap(body, header='nom_voltage : 1; time_unit : "1ns"; capacitive_load_unit (1, pf);'):
    return f"library (small) {{\n{header}\n{body}\n}}\n"


INVERTER = 'cell (INV) { area : 1; pin (A) { direction : input; } pin (Y) { direction : output; function : "!A"; } }'


def test_syntax():
    text = """
    /* a comment with { and " */
    library ("two words") {   // the rest of the line }
      define (mine, cell, string);
      unquoted : 1.5e-3 ;
      no_semicolon : table_lookup
      quoted : "a ; b } c" ;
      long : "first, \\
              second";
      capacitive_load_unit (1, \\
        "pf");
      voltage_map (VDD, 1.8); voltage_map (VSS, 0);
      type (bus2) { base_type : array; bit_width : 2; }
      cell(A){pin(X,Y){direction:input;}}
      cell ("B") { skipped () { odd : "}"; deeper () { } } }
    }
    """
    root = liberty.parse(text, "x.lib", skip={"skipped"})
    assert root.names == ["two words"]
    assert root.line == 3
    assert root.get("unquoted") == "1.5e-3"
    assert root.get("no_semicolon") == "table_lookup"
    assert root.get("quoted") == "a ; b } c"
    assert root.get("long") == "first, second"
    assert liberty.split_arguments(root.get("capacitive_load_unit")) == ["1", "pf"]
    assert [a.text for a in root.every("voltage_map")] == ["VDD, 1.8", "VSS, 0"]
    first, second = root.children("cell")
    assert next(first.children("pin")).names == ["X", "Y"]
    assert second.names == ["B"]
    assert second.groups == []


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("A*B+C", lambda a, b, c: (a and b) or c),
        ("A B | C", lambda a, b, c: (a and b) or c),
        ("!A&B ^ C", lambda a, b, c: (not a) and (b ^ c)),
        ("(A+B)'C", lambda a, b, c: not (a or b) and c),
        ("A'' * !(!B) + 0 * C", lambda a, b, c: a and b),
        ("1 ^ A", lambda a, b, c: not a),
        ("A (B + C) + 1 * 0", lambda a, b, c: a and (b or c)),
    ],
)
def test_expression(text, table):
    expected = [bool(table(i & 1, i >> 1 & 1, i >> 2 & 1)) for i in range(8)]
    expression = parse_expression(text)
    assert expression.truth(["A", "B", "C"]).tolist() == expected
    words = [
        np.array([0xAA], dtype=np.uint64),
        np.array([0xCC], dtype=np.uint64),
        np.array([0xF0], dtype=np.uint64),
    ]
    found = expression.evaluate([words["ABC".index(name)] for name in expression.names])
    assert int(found[0]) & 0xFF == sum(bit << i for i, bit in enumerate(expected))


@pytest.mark.parametrize("text", ["", "A +", "(A", "A)", "A ? B", "* A", "!"])
def test_bad_expression(text):
    with pytest.raises(ValueError, match="expression"):
        parse_expression(text)


TEMPLATE = "lu_table_template (t) { variable_1 : input_net_transition; variable_2 : total_output_net_capacitance; "
TEMPLATE += 'index_1 ("1, 2"); index_2 ("1, 2"); }\n'


def timed(values, template="t", extra=""):
    return (
        TEMPLATE + "cell (C) { pin (A) { direction : input; } pin (Y) { direction : output; timing () {\n"
        f'related_pin : "A"; cell_rise ({template}) {{ {extra} values ({values}); }} }} }} }}'
    )


BAD = {
    "empty": ("", "no 'library' group"),
    "not Liberty": ("module top; endmodule\n", "cannot read 'module"),
    "group is no library": ("cell (A) { }", "no 'library' group"),
    "two libraries": ("library (a) { }\nlibrary (b) { }", ":2: a second 'library' group"),
    "truncated": (wrap(INVERTER)[:-8], r"ends inside the group .*truncated"),
    "truncated in a string": (wrap('cell (A) { comment : "abc'), "cannot read"),
    "truncated in a statement": (
        'library (l) { cell (A) { index_1 ("1, 2',
        r"cannot read .*\(is the file truncated\?\)",
    ),
    "extra brace": (wrap(INVERTER) + "}", r":5: '}' without its '{'"),
    "no cells": (wrap(""), "no cells"),
    "no voltage": (wrap(INVERTER, 'time_unit : "1ns";'), "no supply voltage"),
    "bad unit": (wrap(INVERTER, 'nom_voltage : 1; time_unit : "1 parsec";'), r":2: unit .*multiple of s"),
    "negative unit": (wrap(INVERTER, 'nom_voltage : 1; time_unit : "0ns";'), r":2: unit .*positive"),
    "bad area": (wrap(INVERTER.replace("area : 1", "area : big")), r":3: area is 'big'; expected a number"),
    "bad function": (wrap(INVERTER.replace("!A", "!A +")), r":3: function: .*expression"),
    "duplicate cell": (wrap(INVERTER + "\n" + INVERTER), r":4: cell INV is defined twice \(first in .*:3\)"),
    "nameless cell": (wrap("cell () { }"), r":3: cell \(\); expected one name"),
    "half a flip-flop": (wrap("cell (F) { ff (IQ, IQN) { clocked_on : C; } }"), ":3: ff without"),
    "too few values": (wrap(timed('"1, 2", "3"')), "has 3 values; its indices say 2 x 2"),
    "no number": (wrap(timed('"1, 2", "3, x"')), "'x'; expected numbers"),
    "not finite": (wrap(timed('"1, 2", "3, nan"')), "not finite"),
    "unknown template": (wrap(timed('"1"', "u")), "no template 'u'"),
    "falling index": (wrap(timed('"1, 2", "3, 4"', extra='index_1 ("2, 1");')), "expected increasing"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_file(tmp_path, case):
    text, message = BAD[case]
    path = tmp_path / "bad.lib"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        reader.load(path)
    assert "bad.lib" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable(tmp_path):
    cases = {
        tmp_path / "none.lib": "no such file",
        tmp_path: "is a directory",
    }
    for name, data in {
        "plain.lib.gz": b"library (x) { }",
        "cut.lib.gz": gzip.compress(wrap(INVERTER).encode())[:-10],
    }.items():
        (tmp_path / name).write_bytes(data)
        cases[tmp_path / name] = "not a complete gzip file"
    (tmp_path / "junk.lib").write_bytes(bytes(range(256)) * 100)
    cases[tmp_path / "junk.lib"] = "binary data"
    for path, message in cases.items():
        with pytest.raises(InputError, match=message):
            reader.load(path)
    with pytest.raises(InputError, match="no Liberty file given"):
        reader.load([])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ('nom_voltage : 1; time_unit : "1ps"; capacitive_load_unit (1, pf);', "time unit differs"),
        ('nom_voltage : 1; time_unit : "1ns"; capacitive_load_unit (1, ff);', "capacitance unit differs"),
        ('nom_voltage : 2; time_unit : "1ns"; capacitive_load_unit (1, pf);', "its voltage, 2 V, differs"),
    ],
)
def test_files_that_do_not_belong_together(tmp_path, header, message):
    (tmp_path / "a.lib").write_text(wrap(INVERTER))
    (tmp_path / "b.lib").write_text(wrap(INVERTER.replace("INV", "BUF"), header))
    with pytest.raises(InputError, match=message):
        reader.load([tmp_path / "a.lib", tmp_path / "b.lib"])


def test_several_files(tmp_path):
    (tmp_path / "a.lib").write_text(wrap(INVERTER))
    (tmp_path / "b.lib.gz").write_bytes(gzip.compress(wrap(INVERTER.replace("INV", "BUF")).encode()))
    both = [tmp_path / "a.lib", tmp_path / "b.lib.gz"]
    found = reader.load(both)
    assert list(found.cells) == ["INV", "BUF"]
    assert found.digest == reader.load(both[::-1]).digest
    assert found.digest != reader.load(both[0]).digest
    with pytest.raises(InputError, match="no 2-input NAND or NOR gate and no rising-edge D flip-flop; synthesis needs"):
        found.check_for_synthesis()
    with pytest.raises(InputError, match="synthesis needs a 2-input NAND or NOR gate"):
        found.check_for_synthesis(sequential=False)


def test_a_byte_order_mark_is_none_of_the_text(tmp_path):
    (tmp_path / "marked.lib").write_text(wrap(INVERTER), encoding="utf-8-sig")
    assert list(reader.load(tmp_path / "marked.lib").cells) == ["INV"]


def test_units_and_defaults(tmp_path):
    path = tmp_path / "u.lib"
    path.write_text(
        """library (u) {
        time_unit : "10ps"; voltage_unit : "100mV"; leakage_power_unit : "1uW";
        capacitive_load_unit (0.1, pf);
        nom_voltage : 18; default_input_pin_cap : 0.02; default_cell_leakage_power : 4;
        power_lut_template (p) {
          variable_1 : total_output_net_capacitance; variable_2 : input_transition_time;
          index_1 ("0, 1"); index_2 ("0, 2, 3"); }
        wire_load ("per_fanout") { capacitance : 0.01; slope : 5; resistance : 0; fanout_length (1, 5); }
        cell (C) {
          area : 3; dont_use : true;
          leakage_power () { related_pg_pin : VDD; when : "A"; value : 1; }
          leakage_power () { related_pg_pin : VSS; when : "A"; value : 2; }
          leakage_power () { related_pg_pin : VDD; when : "!A"; value : 5; }
          pin (A) { direction : input; }
          pin (B) { direction : input; rise_capacitance : 0.01; fall_capacitance : 0.03; }
          pin (Y) { direction : output; function : "A";
            internal_power () { related_pin : "A"; power (p) { values ("1, 2, 3", "4, 5, 6"); } } }
        }
        cell (D) { pin (A) { direction : input; } }
        }"""
    )
    found = reader.load(path)
    assert found.units == pytest.approx({"time": 0.01, "voltage": 0.1, "leakage": 1000.0, "capacitance": 100.0})
    assert found.voltage == pytest.approx(1.8)
    assert found.wire_load == pytest.approx(5.0)
    cell = found.cells["C"]
    assert cell.dont_use
    assert cell.leakage == pytest.approx(4000.0)
    assert [(when.text, value) for when, value in cell.leakage_states] == [("A", 3000.0), ("!A", 5000.0)]
    assert found.cells["D"].leakage == pytest.approx(4000.0)
    assert cell.pins["A"].capacitance == pytest.approx(2.0)
    assert cell.pins["B"].capacitance == pytest.approx(2.0)
    assert cell.pins["B"].edge_capacitance == pytest.approx((1.0, 3.0))
    # The energy unit is 0.1 pF times (0.1 V)^2: 1 fJ. The table is (load, slew) in the file.
    (entry,) = cell.pins["Y"].internal_power
    assert entry.energy[0](0.02, 0.0) == pytest.approx(2.0)
    assert entry.energy[1](0.03, 100.0) == pytest.approx(6.0)


def test_table():
    table = Table(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0]), np.array([[0, 2], [1, 3], [7, 9.0]]))
    assert table(1.0, 2.0) == 3.0
    assert table(2.0, 1.0) == 5.0
    assert table(-1.0, -1.0) == -2.0
    assert table(5.0, 4.0) == 17.0
    assert table(np.array([[0.5], [3.0]]), np.array([0.0, 1.0])).tolist() == [[0.5, 1.5], [7.0, 8.0]]
    line = Table(np.array([1.0, 2.0]), np.zeros(1), np.array([[5.0], [7.0]]))
    assert line(1.5, 99.0) == 6.0
    scalar = Table(np.zeros(1), np.zeros(1), np.array([[4.0]]))
    assert scalar(-3.0, 1e9) == 4.0
    bank = TableBank([table, line, scalar])
    at = np.array([0, 1, 2, 0])
    assert bank(at, np.array([2.0, 1.5, 8.0, 5.0]), np.array([1.0, 0.0, 3.0, 4.0])).tolist() == [
        5.0,
        6.0,
        4.0,
        17.0,
    ]


def test_tiny(tiny):
    tiny.check_for_synthesis()
    assert [cell.name for cell in tiny.inverters()] == ["INV"]
    assert [cell.name for cell in tiny.gates2()] == ["NAND2"]
    flip_flop = tiny.cells["DFF"]
    assert flip_flop.clock_pin == "CK"
    assert flip_flop.is_rising_edge
    # (constrained, related) in the file.
    (arc,) = flip_flop.pins["D"].arcs
    assert arc.constraint[0](1.0, 0.0) == pytest.approx(0.2)
    assert len(tiny.cells["NAND2"].pins["Y"].arcs) == 2
    with pytest.raises(InputError, match=r"no inverter and no rising-edge D flip-flop without the cells I\*, DFF; "):
        tiny.without(["I*", "DFF"]).check_for_synthesis()


def test_a_gate_without_an_area_is_refused(tiny):
    nand = tiny.cells["NAND2"]
    cells = {**tiny.cells, "NAND2": dataclasses.replace(nand, area=0.0), "NAND3": nand}
    library = dataclasses.replace(tiny, cells=cells)
    with pytest.raises(InputError, match="cell NAND2 has no area; expected one above 0, or --dont-use NAND2"):
        library.check_for_synthesis()
    library.without(["NAND2"]).check_for_synthesis()


def test_an_output_without_a_delay_is_refused(tiny):
    """Whatever is behind it would meet any clock; latches and the like are in no netlist."""
    nand = tiny.cells["NAND2"]
    output = dataclasses.replace(nand.pins["Y"], arcs=[])
    cells = {**tiny.cells, "NAND3": dataclasses.replace(nand, name="NAND3", pins={**nand.pins, "Y": output})}
    library = dataclasses.replace(tiny, cells=cells)
    with pytest.raises(InputError, match=r"output Y of the cell NAND3 has no delay; .* or --dont-use NAND3"):
        library.check_for_synthesis()
    library.without(["NAND3"]).check_for_synthesis()


@pytest.mark.parametrize("real_name", ["sky130hd", "sg13g2", "asap7"], indirect=True)
def test_real(real, real_name):
    real.check_for_synthesis()
    assert len(real.cells) == {"sky130hd": 428, "sg13g2": 78, "asap7": 126}[real_name]
    assert real.voltage == {"sky130hd": 1.8, "sg13g2": 1.2, "asap7": 0.7}[real_name]
    names = {
        "sky130hd": "sky130_fd_sc_hd__dfxtp_1",
        "sg13g2": "sg13g2_dfrbp_1",
        "asap7": "DFFHQNx1_ASAP7_75t_R",
    }
    flip_flop = real.cells[names[real_name]]
    assert flip_flop.area == {"sky130hd": 20.0192, "sg13g2": 47.1744, "asap7": 0.2916}[real_name]
    leakage = {"sky130hd": 0.008438635, "sg13g2": 0.538542, "asap7": 0.229737}[real_name]
    assert flip_flop.leakage == pytest.approx(leakage)
    clock = flip_flop.pins[flip_flop.clock_pin].capacitance
    assert 0.3 < clock < 3.0
    assert flip_flop.is_rising_edge


def test_cells_to_leave_alone() -> None:
    cells = reader.load(libraries.path("generic7"))
    fewer = cells.without(["AOI*", "FA_X1", "INV_X[24]"])
    aoi = {name for name in cells.cells if name.startswith("AOI")}
    assert aoi | {"FA_X1", "INV_X2", "INV_X4"} == set(fewer.unused)
    assert fewer.avoided == ("AOI*", "FA_X1", "INV_X[24]")
    assert not cells.unused
    drives = {f"INV_{drive}" for drive in ("XP33", "XP67", "X1", "X3", "X6", "X8")}
    assert {cell.name for cell in fewer.inverters()} == drives
    assert set(fewer.without(["XOR2_*"]).unused) > set(fewer.unused)
    with pytest.raises(InputError, match=r"dont_use 'aoi\*': matches no cell of generic7; its cells are INV_XP33, "):
        cells.without(["AOI*", "aoi*"])
