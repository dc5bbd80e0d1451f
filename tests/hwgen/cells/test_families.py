"""Families of interchangeable cells, and the clock gates that a library has."""

from fnmatch import fnmatchcase

import pytest

from hwgen.cells import reader
from hwgen.cells.families import behaviour

PIN = "pin ({}) {{ direction : input; capacitance : {}; }}"


def gate(name, function, area=1.0, inputs="AB", output="Y", capacitance=1.0, more=""):
    pins = " ".join(PIN.format(pin, capacitance) for pin in inputs)
    return (
        f"cell ({name}) {{ area : {area}; {more} {pins} "
        f'pin ({output}) {{ direction : output; function : "{function}"; }} }}'
    )


LOADS = (
    "lu_table_template (loads) { variable_1 : total_output_net_capacitance; "
    'index_1 ("1, 10, 100"); } capacitive_load_unit (1, ff);'
)


def buffer(name, area, delays, function="A"):
    """One input; ``delays`` in ns at three loads, the falling edge a tenth quicker."""
    rise, fall = (", ".join(f"{share * delay:g}" for delay in delays) for share in (1, 0.9))
    timing = (
        f'timing () {{ related_pin : "A"; cell_rise (loads) {{ values ("{rise}"); }}'
        f' cell_fall (loads) {{ values ("{fall}"); }} }}'
    )
    return gate(name, function, area, "A").replace(f'function : "{function}";', f'function : "{function}"; {timing}')


def flip_flop(name, next_state, area=1.0, function="IQ", more="", clock="CK"):
    state = f'ff (IQ, IQN) {{ clocked_on : "{clock}"; next_state : "{next_state}"; {more} }}'
    return gate(name, function, area, ("D", "CK", "R"), "Q", more=state)


def clock_gate(name, area=1.0, kind="latch_posedge", test=False, more=""):
    roles = {"CK": "clock", "EN": "enable", **({"SE": "test"} if test else {})}
    pins = " ".join(
        f'pin ({pin}) {{ direction : input; clock_gate_{role}_pin : "true"; }}' for pin, role in roles.items()
    )
    return (
        f'cell ({name}) {{ area : {area}; clock_gating_integrated_cell : "{kind}"; {more} {pins} '
        'statetable ("CK EN", "M") { table : "L L : - : L, L H : - : H, H - : - : N"; } '
        'pin (M) { direction : internal; internal_node : "M"; } '
        'pin (GCK) { direction : output; clock_gate_out_pin : true; state_function : "CK * M"; } }'
    )


def library(tmp_path, *cells):
    path = tmp_path / "some.lib"
    path.write_text("library (some) { nom_voltage : 1;\n" + "\n".join(cells) + "\n}\n")
    return reader.load(path)


def families(cells):
    return [[cell.name for cell in family] for family in cells.families()]


def test_equal_functions_in_other_words_are_one_family_smallest_first(tmp_path):
    cells = library(
        tmp_path,
        gate("BIG", "!(A & B)", 4),
        gate("SMALL", "(B * A)'", 1),
        gate("LESS_LOAD", "!A | !B", 2, capacitance=1),
        gate("MORE_LOAD", "!A | !B", 2, capacitance=3),
        gate("OTHER", "A & B", 1),
    )
    assert families(cells) == [["SMALL", "LESS_LOAD", "MORE_LOAD", "BIG"], ["OTHER"]]
    assert [cell.name for cell in cells.drives(cells.cells["BIG"])] == ["SMALL", "LESS_LOAD", "MORE_LOAD", "BIG"]
    assert cells.drives(cells.cells["OTHER"]) == (cells.cells["OTHER"],)


@pytest.mark.parametrize(
    "other",
    [
        gate("OTHER", "!(A | B)"),
        gate("OTHER", "!(A & C)", inputs="AC"),
        gate("OTHER", "!(A & B)", inputs="BA"),  # nets are kept by the pins' order
        gate("OTHER", "!(A & B)", inputs="ABC"),
        gate("OTHER", "!(A & B)", output="Z"),
    ],
)
def test_other_functions_pins_or_orders_are_other_families(tmp_path, other):
    assert families(library(tmp_path, gate("NAND", "!(A & B)"), other)) == [["NAND"], ["OTHER"]]


def test_cells_marked_dont_use_are_in_no_family(tmp_path):
    cells = library(
        tmp_path, gate("A1", "A & B"), gate("A2", "A & B", 2), gate("A4", "A & B", 4, more="dont_use : true;")
    )
    assert families(cells) == [["A1", "A2"]]
    assert cells.drives(cells.cells["A4"]) == (cells.cells["A4"],)
    less = cells.without(["A1"])
    assert families(less) == [["A2"]]
    assert less.drives(less.cells["A2"]) == (less.cells["A2"],)


def test_delay_cells_are_in_no_family(tmp_path):
    """They are buffers that take a quarter longer at every load than one that is no larger."""
    cells = library(
        tmp_path,
        LOADS,
        buffer("SMALL", 1, (1.0, 2.0, 8.0)),
        buffer("MUCH_SLOWER", 2, (1.3, 2.6, 10.4)),
        buffer("SOMEWHAT_SLOWER", 2, (1.3, 2.6, 9.9)),  # not at the last load
        buffer("LARGE", 4, (0.5, 0.7, 2.0)),
        gate("UNKNOWN", "A", 5, "A"),
    )
    assert families(cells) == [["SMALL", "SOMEWHAT_SLOWER", "LARGE", "UNKNOWN"]]
    assert cells.drives(cells.cells["MUCH_SLOWER"]) == (cells.cells["MUCH_SLOWER"],)


def test_slow_inverters_stay(tmp_path):
    """Those of libraries leak less."""
    cells = library(tmp_path, LOADS, *(buffer(f"X{n}", n, (n, n, n), "!A") for n in (1, 2)))
    assert families(cells) == [["X1", "X2"]]


def test_flip_flops_are_alike_if_state_clear_and_edge_are(tmp_path):
    clear = 'clear : "!R";'
    cells = library(
        tmp_path,
        flip_flop("D1", "D"),
        flip_flop("D2", "(D)", 2),
        flip_flop("INVERTED", "!D"),
        flip_flop("OUT", "D", function="IQN"),
        flip_flop("FALLING", "D", clock="!CK"),
        flip_flop("CLEAR", "D", more=clear),
        flip_flop("PRESET", "D", more=clear.replace("clear", "preset")),
        flip_flop("SYNC", "D & R"),
    )
    alike, *alone = families(cells)
    assert alike == ["D1", "D2"]
    assert [name for (name,) in alone] == ["INVERTED", "OUT", "FALLING", "CLEAR", "PRESET", "SYNC"]


def test_what_has_no_known_behaviour_is_left_out(tmp_path):
    wide = [f"A{i}" for i in range(13)]
    cells = library(
        tmp_path,
        "cell (FILL) { area : 1; }",
        gate("TRI", "A", inputs="AE", more="").replace("function", 'three_state : "!E"; function'),
        gate("LATCH", "IQ", inputs="GD", more='latch (IQ, IQN) { enable : "G"; data_in : "D"; }'),
        gate("WIDE", " & ".join(wide), inputs=wide),
        gate("STRANGE", "A & X"),
        "cell (OPEN) { pin (A) { direction : input; } pin (Y) { direction : output; } }",
        "cell (INOUT) { pin (P) { direction : inout; } "
        'pin (A) { direction : input; } pin (Y) { direction : output; function : "A"; } }',
    )
    assert cells.families() == []
    assert all(behaviour(cell) is None for cell in cells.cells.values())


def test_a_clock_gate_and_its_pins(tmp_path):
    cells = library(
        tmp_path,
        clock_gate("G4", 4),
        clock_gate("G1", 1),
        clock_gate("T1", 0.5, "latch_posedge_precontrol", test=True),
        clock_gate("FALLING", 1, "latch_negedge"),
        clock_gate("NO_LATCH", 1, "none_posedge"),
        clock_gate("PINLESS").replace("clock_gate_out_pin : true;", ""),
        clock_gate("MARKED", 2, more="dont_use : true;"),
        gate("G", "A & B"),
    )
    gates = {name: cell.clock_gate for name, cell in cells.cells.items()}
    assert {name for name, found in gates.items() if found is None} == {"FALLING", "NO_LATCH", "PINLESS", "G"}
    found = gates["T1"]
    assert (found.clock, found.enable, found.output, found.test) == ("CK", "EN", "GCK", "SE")
    assert gates["G1"].test is None
    # A mark keeps a clock gate from logic, not from clock gating; the user's pattern keeps it from both.
    assert [cell.name for cell in cells.clock_gates()] == ["G1", "MARKED", "G4", "T1"]
    assert [cell.name for cell in cells.without(["G1", "M*"]).clock_gates()] == ["G4", "T1"]
    assert [cell.name for cell in cells.drives(cells.cells["G4"])] == ["G1", "G4"]


# Of each library: cells of one family, and a cell of another that differs in its pins or its edge.
KNOWN = {
    "sky130hd": ("sky130_fd_sc_hd__{}", "nand2_1 nand2_2 nand2_4 nand2_8", "nand2b_1"),
    "sg13g2": ("sg13g2_{}", "inv_1 inv_2 inv_4 inv_8 inv_16", "buf_1"),
    "asap7": ("{}_ASAP7_75t_R", "DFFHQNx1 DFFHQNx2 DFFHQNx3", "DFFLQNx1"),
    "generic7": ("{}", "INV_XP33 INV_X1 INV_X2 INV_X4", "BUF_X2"),
    "generic130": ("{}", "DFF_X1 DFF_X2", "DFFE_X1"),
}
DELAY_CELLS = {"sky130hd": ("*dly*", 14), "sg13g2": ("*dly*", 3), "asap7": ("HB[2-4]*", 3)}
GATES = {
    "sky130hd": ("sky130_fd_sc_hd__dlclkp_1", "CLK", "GATE", "GCLK", None),
    "sg13g2": ("sg13g2_lgcp_1", "CLK", "GATE", "GCLK", None),
    "asap7": ("ICGx1_ASAP7_75t_R", "CLK", "ENA", "GCLK", "SE"),
    "generic7": ("ICG_X1", "CLK", "E", "GCLK", "TE"),
    "generic130": ("ICG_X1", "CLK", "E", "GCLK", None),
}


def test_families_of_a_library(real, real_name):
    found = real.families()
    names = [cell.name for family in found for cell in family]
    assert len(names) == len(set(names))
    assert not any(real.cells[name].dont_use for name in names)
    for family in found:
        assert [cell.area for cell in family] == sorted(cell.area for cell in family)
        assert len({(tuple(cell.inputs), tuple(cell.outputs)) for cell in family}) == 1
    form, several, other = KNOWN[real_name]
    members = [form.format(name) for name in several.split()]
    drives = [cell.name for cell in real.drives(real.cells[members[-1]])]
    assert [name for name in drives if name in members] == members
    assert form.format(other) not in drives


def test_delay_cells_of_a_library(real, real_name):
    """All that are named so, and no other buffer."""
    pattern, count = DELAY_CELLS.get(real_name, ("", 0))
    buffers = [cell for cell in real.cells.values() if cell.is_buffer and not cell.dont_use]
    members = {cell.name for family in real.families() for cell in family}
    left = [cell.name for cell in buffers if cell.name not in members]
    assert left == [cell.name for cell in buffers if fnmatchcase(cell.name, pattern)]
    assert len(left) == count


def test_clock_gates_of_a_library(real, real_name):
    name, *pins = GATES[real_name]
    first = real.clock_gates()[0]
    assert first.name == name
    gate = first.clock_gate
    assert [gate.clock, gate.enable, gate.output, gate.test] == pins
    assert first.pins[gate.clock].is_clock
    assert {arc.related_pin for arc in first.pins[gate.output].arcs} == {gate.clock}
    assert "setup_rising" in {arc.kind for arc in first.pins[gate.enable].arcs}
    assert all(cell.clock_gate is not None and cell.sequential is not None for cell in real.clock_gates())
