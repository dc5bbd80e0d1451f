"""The default cell libraries: their files, their figures, and every tool that reads them."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.cells.boolean import parse_expression
from hwgen.cells.libraries import generate
from hwgen.errors import InputError

NAMES = libraries.names()

# The functions that decide what the mapper can do, by what both real libraries have.
FUNCTIONS = {
    "INV", "BUF", "NAND2", "NAND3", "NAND4", "NOR2", "NOR3", "NOR4", "AND2", "AND3", "OR2", "OR3",
    "AOI21", "AOI22", "OAI21", "OAI22", "AO21", "OA21", "XOR2", "XNOR2", "MAJ3", "TIEHI", "TIELO",
}  # fmt: skip
# Where full and half adders are small enough to pay (asap7: 0.6 of two XOR and a majority gate), they are there.
ADDERS = {"generic7": {"FA", "HA"}, "generic130": set()}
FLOPS = {"generic7": {"DFF", "DFFQN", "DFFSRQN"}, "generic130": {"DFF", "DFFR", "DFFE"}}
# In one size only: constants need no drive, and ASAP7's only flip-flop with a plain output is the quadruple one.
SINGLE = {"generic7": {"TIEHI", "TIELO", "DFF"}, "generic130": {"TIEHI", "TIELO"}}
FIGURES = ("leakage_nw", "energy_fj", "max_load_ff", "rise_ns_per_ff", "fall_transition_ns_per_ff")

DESIGN = """
module top (input clk, input reset_n, input enable, input [15:0] a, b, output reg [11:0] q,
            output reg [3:0] count, output reg nonzero);
  // No signed wire: OpenSTA 2.0.17 cannot read its declaration in a netlist.
  wire [11:0] sum = $signed(a[3:0]) * $signed(b[3:0]) + $signed(a[7:4]) * $signed(b[7:4])
                         + $signed(a[11:8]) * $signed(b[11:8]) + $signed(a[15:12]) * $signed(b[15:12]);
  always @(posedge clk or negedge reset_n) if (!reset_n) q <= 12'd5; else q <= q + sum;
  always @(posedge clk) if (enable) count <= count + 1;
  always @(posedge clk) nonzero <= |a;
endmodule
"""

# ABC's script of the synthesis flow, with a timing report.
ABC = "&get -n\n&st\n&dch\n&nf -a 10\n&put\nbuffer -c\ntopo\ndnsize\nstime -p\n"

SYNTHESIS = """
import sys
from pyosys import libyosys as ys
liberty, folder = sys.argv[1:]
design = ys.Design()
for command in (
    f"read_liberty -lib {liberty}",
    f"read_verilog {folder}/top.v",
    "synth -flatten -top top",
    "log MAPPING BEGINS",
    f"dfflibmap -liberty {liberty}",
    f"abc -liberty {liberty} -script {folder}/abc.script",
    "opt_clean",
    "hilomap -hicell TIEHI_X1 Y -locell TIELO_X1 Y",
    f"stat -liberty {liberty}",
    f"write_verilog -noattr {folder}/mapped.v",
):
    ys.run_pass(command, design)
"""


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    return tuple(generate.read_table(name))


def base(cell: str) -> str:
    return cell.rsplit("_", 1)[0]


@pytest.fixture(scope="module", params=NAMES)
def mapped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, str]:
    """(library, folder with ``mapped.v``, log) of a small design."""
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    (folder / "top.v").write_text(DESIGN)
    (folder / "abc.script").write_text(ABC)
    # Yosys prints to file descriptor 1 and may call exit.
    run = subprocess.run(
        [sys.executable, "-c", SYNTHESIS, str(libraries.path(name)), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr
    return name, folder, run.stdout + run.stderr


def test_names_and_paths() -> None:
    assert NAMES == ("generic7", "generic130")
    for name in NAMES:
        assert libraries.path(name).is_file()
        assert libraries.path(name).name == f"{name}.lib"
    assert set(libraries.WIRE_FF_PER_FANOUT) == set(NAMES)


def test_unknown_library_is_named_with_what_exists() -> None:
    with pytest.raises(InputError, match=r"'generic45'.*generic7, generic130"):
        libraries.path("generic45")


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_is_current(name: str) -> None:
    cells = reader.load(libraries.path(name))
    assert libraries.__doc__ is not None
    (row,) = re.findall(rf"^{name} +(\d+) .* (\S+) V, .* (\S+) fF$", libraries.__doc__, re.MULTILINE)
    assert [float(number) for number in row] == [
        len(cells.cells),
        cells.voltage,
        libraries.WIRE_FF_PER_FANOUT[name],
    ]
    assert cells.wire_load == pytest.approx(libraries.WIRE_FF_PER_FANOUT[name], rel=0.002)
    adders = any(len(cell.outputs) > 1 for cell in cells.cells.values())
    assert adders == (name == "generic7")


@pytest.mark.parametrize("name", NAMES)
def test_committed_file_is_what_the_table_gives(name: str) -> None:
    assert libraries.path(name).read_bytes() == generate.liberty(name).encode()


def test_check_fails_on_a_stale_file_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main(["--check"]) == 0
    for name in NAMES:
        shutil.copy(libraries.path(name).with_suffix(".csv"), tmp_path)
        shutil.copy(libraries.path(name), tmp_path)
    (tmp_path / "generic7.lib").write_text("library (generic7) {}\n")
    monkeypatch.setattr(generate, "_HERE", tmp_path)
    assert generate.main(["--check"]) == 1
    assert "generic7.lib" in capsys.readouterr().err
    assert (tmp_path / "generic7.lib").read_text() == "library (generic7) {}\n"
    assert generate.main([]) == 0
    assert (tmp_path / "generic7.lib").read_bytes() == libraries.path("generic7").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_sourced_and_complete(name: str) -> None:
    cells = [row["cell"] for row in rows(name) if row["area_um2"]]
    assert 100 <= len(cells) == len(set(cells)) <= 140
    for row in rows(name):
        assert ("ASAP7, BSD-3-Clause" if name == "generic7" else "SkyWater PDK, Apache-2.0") in row["source"]
        kind = "constant" if base(row["cell"]) in {"TIEHI", "TIELO"} else row["source"].rsplit(": ", 1)[-1]
        assert kind in {"constant", "linear fit"} or row["source"].startswith("no such cell: ")
        if row["area_um2"]:
            assert float(row["area_um2"]) > 0
            assert float(row["leakage_nw"]) > 0
        else:
            assert row["cell"] in cells
            assert not row["pins_ff"]
        if row["energy_fj"]:
            numbers = [float(row[column]) for column in row if column.startswith(("rise_", "fall_"))]
            assert len(numbers) == 12
            assert min(numbers) >= 0
            assert float(row["energy_fj"]) > 0
            assert float(row["max_load_ff"]) > 0
        assert bool(row["state"]) == bool(row["clock_energy_fj"]) == bool(row["setup_ns"])


@pytest.mark.parametrize("name", NAMES)
def test_functions_and_flip_flops_are_there(name: str) -> None:
    flops = {base(row["cell"]) for row in rows(name) if row["state"].startswith("next")}
    assert flops == FLOPS[name]
    assert {base(row["cell"]) for row in rows(name) if row["state"]} == flops | {"ICG"}
    assert {base(row["cell"]) for row in rows(name)} >= FUNCTIONS | ADDERS[name]
    several = {row["cell"] for row in rows(name) if not row["area_um2"]}
    assert {base(cell) for cell in several} == ADDERS[name]
    for row in rows(name):
        pins = {item.split("=")[0] for item in row["pins_ff"].split()}
        if not row["state"] and row["area_um2"]:
            assert set(parse_expression(row["function"]).names) == pins


@pytest.mark.parametrize("name", NAMES)
def test_every_gate_has_three_drives_that_may_take_its_place(name: str) -> None:
    cells = reader.load(libraries.path(name))
    drives = {base(family[0].name): [cell.name for cell in family] for family in cells.families()}
    assert drives.keys() == {base(cell) for cell in cells.cells}  # a family is a name
    assert all({base(member) for member in family} == {gate} for gate, family in drives.items())
    assert {gate for gate, family in drives.items() if len(family) < 3} == SINGLE[name]
    assert all(len(family) == 1 for gate, family in drives.items() if gate in SINGLE[name])


@pytest.mark.parametrize("name", NAMES)
def test_bigger_drive_is_faster_under_load_and_bigger(name: str) -> None:
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows(name):
        # In ASAP7 the wider XOR and XNOR has two stages: it is smaller than the narrower one and drives more.
        if row["area_um2"] and row["max_load_ff"] != "0" and row["cell"] not in {"XOR2_X1", "XNOR2_X1"}:
            groups.setdefault(base(row["cell"]), []).append(row)
    groups = {gate: group for gate, group in groups.items() if not gate.startswith("TIE")}
    for group in groups.values():
        for edge in ("rise", "fall"):
            slopes = [float(row[f"{edge}_ns_per_ff"]) for row in group]
            assert slopes == sorted(slopes, reverse=True)
        areas = [float(row["area_um2"]) for row in group]
        assert areas == sorted(areas)


@pytest.mark.parametrize("name", NAMES)
def test_drives_that_the_source_does_not_have_follow_from_a_step_between_two_others(name: str) -> None:
    first = {row["cell"]: row for row in reversed(rows(name))}
    site = {"generic7": 0.054 * 0.27, "generic130": 0.46 * 2.72}[name]
    derived = [row for row in rows(name) if row["source"].startswith("no such cell")]
    assert derived
    for row in derived:
        found = re.match(r"no such cell: (\w+) by the step from (\w+) to (\w+) \(", row["source"])
        assert found is not None
        start, low, high = (first[cell] for cell in found.groups())
        assert base(start["cell"]) == base(row["cell"])
        if not row["area_um2"]:
            (start,) = (other for other in rows(name) if other["cell"] == start["cell"] and not other["area_um2"])
        for figure in FIGURES:
            if row[figure]:
                ratio = float(high[figure]) / float(low[figure])
                assert float(row[figure]) == pytest.approx(float(start[figure]) * ratio, rel=1e-3)
        for figure in ("rise_ns", "fall_per_slew"):
            changed = float(start[figure]) + float(high[figure]) - float(low[figure])
            assert float(row[figure]) == pytest.approx(max(0, changed), abs=1e-4)
        if row["area_um2"]:
            sites = float(start["area_um2"]) * float(high["area_um2"]) / float(low["area_um2"]) / site
            assert float(row["area_um2"]) / site == pytest.approx(round(sites), abs=1e-3)


@pytest.mark.parametrize(
    ("name", "start", "low", "high", "cell"),
    [
        ("generic7", "NAND3_X1", "NOR3_X1", "NOR3_X2", "NAND3_X2"),
        ("generic7", "NAND4_XP25", "NOR4_XP25", "NOR4_XP75", "NAND4_XP75"),
        ("generic7", "AOI22_XP5", "AOI21_XP5", "AOI21_X1", "AOI22_X1"),
        ("generic7", "OR4_X1", "OR3_X1", "OR3_X2", "OR4_X2"),
        ("generic7", "AO21_X1", "OR3_X1", "OR3_X2", "AO21_X2"),
        ("generic130", "AOI221_X1", "AOI22_X1", "AOI22_X2", "AOI221_X2"),
        ("generic130", "DFFR_X1", "DFF_X1", "DFF_X2", "DFFR_X2"),
    ],
)
def test_the_step_gives_drives_that_exist(name: str, start: str, low: str, high: str, cell: str) -> None:
    first = {row["cell"]: row for row in reversed(rows(name))}
    for figure in ("area_um2", "energy_fj", "rise_ns_per_ff", "fall_ns_per_ff"):
        ratio = float(first[high][figure]) / float(first[low][figure])
        assert float(first[start][figure]) * ratio == pytest.approx(float(first[cell][figure]), rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_clock_gates_are_read(name: str) -> None:
    cells = reader.load(libraries.path(name))
    found = cells.clock_gates()
    assert [cell.name for cell in found] == ["ICG_X1", "ICG_X2", "ICG_X4"]
    for cell in found:
        gate = cell.clock_gate
        assert gate is not None
        assert (gate.clock, gate.enable, gate.output) == ("CLK", "E", "GCLK")
        assert gate.test == ("TE" if name == "generic7" else None)
        assert cell.pins["CLK"].is_clock
        (arc,) = cell.pins["GCLK"].arcs
        assert (arc.related_pin, arc.kind, arc.sense) == ("CLK", "combinational", "positive_unate")
        assert {arc.kind for arc in cell.pins["E"].arcs} == {"setup_rising"}


@pytest.mark.parametrize("name", NAMES)
def test_yosys_finds_the_clock_gate(name: str, tmp_path: Path) -> None:
    (tmp_path / "top.v").write_text(
        "module top (input clk, input e, input [7:0] d, output reg [7:0] q);\n"
        "  always @(posedge clk) if (e) q <= d;\nendmodule\n"
    )
    commands = (
        "read_verilog top.v",
        "synth -top top",
        f"clockgate -liberty {libraries.path(name)}",
        "write_json m.json",
    )
    script = "from pyosys import libyosys as ys\ndesign = ys.Design()\n"
    script += "".join(f"ys.run_pass({command!r}, design)\n" for command in commands)
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr
    modules = json.loads((tmp_path / "m.json").read_text())["modules"]
    (gate,) = (cell for cell in modules["top"]["cells"].values() if cell["type"].startswith("ICG"))
    bits = {port: found["bits"] for port, found in modules["top"]["ports"].items()}
    assert gate["type"] == "ICG_X1"
    assert (gate["connections"]["E"], gate["connections"]["CLK"]) == (bits["e"], bits["clk"])
    assert gate["connections"].get("TE", ["0"]) == ["0"]
    registers = [cell for cell in modules["top"]["cells"].values() if cell is not gate]
    assert len(registers) == 8
    assert all(gate["connections"]["GCLK"] in cell["connections"].values() for cell in registers)


@pytest.mark.parametrize("name", NAMES)
def test_delay_and_slew_grow_with_load_and_slew(name: str) -> None:
    text = libraries.path(name).read_text()
    tables = []
    for head in ("cell_rise", "cell_fall", "rise_transition", "fall_transition"):
        for part in text.split(f"{head} (delay) {{")[1:]:
            values = part.split("values (", 1)[1].split(");", 1)[0]
            lines = [line.strip(' "\\,') for line in values.splitlines()]
            tables.append([[float(number) for number in line.split(",")] for line in lines])
    table = np.array(tables)
    inputs = {row["cell"]: len(row["pins_ff"].split()) for row in rows(name) if row["area_um2"]}
    arcs = sum(1 if row["state"] else inputs[row["cell"]] for row in rows(name))
    assert table.shape == (4 * arcs, 3, 3)
    assert (table > 0).all()
    assert (np.diff(table, axis=2) > 0).all()
    assert (np.diff(table, axis=1) >= 0).all()


def test_yosys_and_abc_map_a_design_without_a_warning(mapped: tuple[str, Path, str]) -> None:
    name, folder, log = mapped
    before, after = log.split("MAPPING BEGINS\n")[-2:]
    assert "arning" not in before.split("synth -flatten")[0]
    # What ABC calls a warning is its word for every library with full or half adders.
    notices = ['ABC: Warning: Detected 6 multi-output cells (for example, "FA_X1").'] if ADDERS[name] else []
    assert [line for line in after.splitlines() if "arning" in line] == notices
    assert "skipped" not in after
    netlist = (folder / "mapped.v").read_text()
    cells = {row["cell"] for row in rows(name)}
    used = {line.split()[0] for line in netlist.splitlines() if line.endswith("(") and "module" not in line}
    assert used <= cells
    flop, reset = ("DFF_X4", "DFFSRQN_X1") if name == "generic7" else ("DFF_X1", "DFFR_X1")
    assert {flop, reset} <= used
    assert len(used) > 15


@pytest.mark.skipif(shutil.which("sta") is None, reason="OpenSTA (sta) is not installed")
def test_opensta_reads_library_and_netlist_without_a_warning(mapped: tuple[str, Path, str]) -> None:
    name, folder, _ = mapped
    period = 2000 if name == "generic7" else 12  # in the unit of the library
    script = folder / "sta.tcl"
    script.write_text(
        f"read_liberty {libraries.path(name)}\nread_verilog {folder}/mapped.v\nlink_design top\n"
        f"create_clock -name clk -period {period} [get_ports clk]\n"
        "set_input_delay 0 -clock clk [get_ports {a* b* enable reset_n}]\n"
        "set_output_delay 0 -clock clk [all_outputs]\n"
        "report_checks -path_delay max\nset_wire_load_model -name per_fanout\nreport_checks -path_delay max\n"
        "report_power\n"
    )
    command = ["sta", "-no_splash", "-exit", str(script)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    log = run.stdout + run.stderr
    assert "arning" not in log
    assert "rror" not in log
    slacks = [float(line.split()[0]) for line in log.splitlines() if line.endswith("slack (MET)")]
    assert len(slacks) == 2
    # The wire load is heard: it makes the path slower.
    assert 0 < slacks[1] < slacks[0]


def test_tables_are_plain_csv() -> None:
    for name in NAMES:
        with libraries.path(name).with_suffix(".csv").open(newline="") as file:
            assert {len(line) for line in csv.reader(file)} == {26}
