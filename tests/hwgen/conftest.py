"""Real libraries, if they are there, and the embedded ones; a test netlist mapped to each; the command line."""

import dataclasses
import functools
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastjsonschema
import pytest

from hwgen import cli
from hwgen.cells import libraries, reader
from hwgen.netlist.link import link
from hwgen.report.json_schema import CONFIGURATION

if TYPE_CHECKING:
    from hwgen.measure.netlists.flow import Design, Flow
    from hwgen.measure.overhead import Overhead

DIRECTORY = Path(os.environ.get("HWGEN_LIBERTY_DIR", Path(__file__).parents[2] / os.pardir / "shared" / "liberty"))
FILES = {
    "sky130hd": ["sky130hd_tt.lib.gz"],
    "sg13g2": ["sg13g2_stdcell_typ_1p20V_25C.lib.gz"],
    "asap7": ["asap7_simple.lib.gz", "asap7_invbuf.lib.gz", "asap7_seq.lib.gz"],
    **{name: [str(libraries.path(name))] for name in libraries.names()},
}

SCHEMAS = Path(__file__).parents[2] / "hwgen" / "report" / "schemas"


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _dicts(each)


def _closed(schema: Any) -> Any:
    """The schema with no other keys allowed than those that it names; parts of a whole stay open."""
    wholes = [each["allOf"] for each in _dicts(schema) if len(each.get("allOf", ())) > 1]
    # A report may be older than the fields of a configuration.
    still_open = {CONFIGURATION, *(part["$ref"].rpartition("/")[2] for whole in wholes for part in whole)}

    def closed(value: Any, name: str = "") -> Any:
        if isinstance(value, list):
            return [closed(each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {key: closed(each, key) for key, each in value.items()}
        return found if name in still_open or "required" not in value else {**found, "additionalProperties": False}

    return closed(schema)


@functools.cache
def _validator(name: str) -> Callable[[Any], Any]:
    (path,) = SCHEMAS.glob(f"{name}-[0-9]*.json")
    check: Callable[[Any], Any] = fastjsonschema.compile(_closed(json.loads(path.read_text(encoding="utf-8"))))
    return check


@pytest.fixture(scope="session")
def conforms() -> Callable[[str, Any], None]:
    """Check a JSON document by the schema of a name, and that it has no key that the schema does not know."""

    def check(name: str, content: Any) -> None:
        _validator(name)(content)

    return check


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    conforms: Callable[[str, Any], None],
) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in an empty directory; gives exit status, standard output and standard error.

    What it prints as JSON is checked by its schema.
    """
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hwgen", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        if "--json" in arguments and out:
            content = json.loads(out)
            command = "replay" if "--replay" in arguments else str(arguments[0])
            conforms(content.get("kind", command) if isinstance(content, dict) else command, content)
        return int(caught.value.code or 0), out, err

    return call


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are written with pictures that take no time: most of that of a command is drawing them."""
    from hwgen.report import kinds

    for kind, form in kinds.FORMS.items():
        monkeypatch.setitem(kinds.FORMS, kind, dataclasses.replace(form, png=lambda report: b"a picture"))


# Registers around signed products, an adder tree and an accumulator with reset.
MAC = """
module mac(input clk, input rst, input [31:0] a, input [31:0] b, output reg [15:0] acc, output any);
  reg [31:0] ra, rb;
  reg signed [11:0] s;
  integer i;
  always @* begin
    s = 0;
    for (i = 0; i < 8; i = i + 1) s = s + $signed(ra[4*i +: 4]) * $signed(rb[4*i +: 4]);
  end
  always @(posedge clk) begin
    ra <= a;
    rb <= b;
    if (rst) acc <= 0; else acc <= acc + {{4{s[11]}}, s};
  end
  assign any = (|acc) ^ a[0];
endmodule
"""
MAP = """
import sys
from pyosys import libyosys as ys

design = ys.Design()
libraries = " ".join(f"-liberty {name}" for name in sys.argv[1:])
for command in (
    "read_verilog mac.v",
    "synth -flatten -top mac",
    f"dfflibmap {libraries}",
    f"abc {libraries} -script abc.script",
    "opt_clean",
    "write_json mac.json",
):
    ys.run_pass(command, design)
"""
ABC = "&get -n; &st; &dch; &nf -a 10; &put; buffer -c; topo; dnsize; stime -p\n"


TINY = """
/* units: ns, fF, nW; every table is linear */
library (tiny) {
  time_unit : "1ns"; voltage_unit : "1V"; leakage_power_unit : "1nW";
  capacitive_load_unit (1, ff);
  nom_voltage : 2;
  lu_table_template (delay) {
    variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1 ("0, 1"); index_2 ("0, 10");
  }
  lu_table_template (setup) {
    variable_1 : constrained_pin_transition; variable_2 : related_pin_transition;
    index_1 ("0, 1"); index_2 ("0, 1");
  }
  power_lut_template (energy) { variable_1 : input_transition_time; index_1 ("0, 1"); }
  cell (INV) {
    area : 1; cell_leakage_power : 3;
    leakage_power () { when : "A"; value : 1; }
    leakage_power () { when : "!A"; value : 5; }
    pin (A) { direction : input; capacitance : 2; }
    pin (Y) {
      direction : output; function : "!A";
      timing () {
        related_pin : "A"; timing_sense : negative_unate;
        cell_rise (delay) { values ("0.1, 0.3", "0.2, 0.4"); }
        cell_fall (delay) { values ("0.2, 0.5", "0.3, 0.6"); }
        rise_transition (delay) { values ("0.1, 0.5", "0.1, 0.5"); }
        fall_transition (delay) { values ("0.2, 0.4", "0.2, 0.4"); }
      }
      internal_power () {
        related_pin : "A";
        rise_power (delay) { values ("4, 4", "6, 6"); }
        fall_power (delay) { values ("2, 2", "2, 2"); }
      }
    }
  }
  cell (NAND2) {
    area : 1.5; cell_leakage_power : 7;
    pin (A) {
      direction : input; rise_capacitance : 2; fall_capacitance : 4;
      internal_power () {
        when : "!B"; rise_power (energy) { values ("1, 2"); } fall_power (energy) { values ("3, 3"); }
      }
    }
    pin (B) { direction : input; capacitance : 3; }
    pin (Y) {
      direction : output; function : "(A * B)'";
      timing () {
        related_pin : "A B"; timing_sense : negative_unate;
        cell_rise (delay) { values ("0.1, 0.3", "0.2, 0.4"); }
        cell_fall (delay) { values ("0.1, 0.3", "0.2, 0.4"); }
        rise_transition (delay) { values ("0.1, 0.5", "0.1, 0.5"); }
        fall_transition (delay) { values ("0.1, 0.5", "0.1, 0.5"); }
      }
      internal_power () {
        related_pin : "A";
        rise_power (scalar) { values ("10"); } fall_power (scalar) { values ("20"); }
      }
      internal_power () {
        related_pin : "B";
        rise_power (scalar) { values ("30"); } fall_power (scalar) { values ("40"); }
      }
    }
  }
  cell (DFF) {
    area : 4; cell_leakage_power : 11;
    ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; clear : "!RN"; }
    pin (CK) {
      direction : input; clock : true; capacitance : 1;
      internal_power () { rise_power (scalar) { values ("6"); } fall_power (scalar) { values ("8"); } }
    }
    pin (RN) { direction : input; capacitance : 1; }
    pin (D) {
      direction : input; capacitance : 2;
      timing () {
        related_pin : "CK"; timing_type : setup_rising;
        rise_constraint (setup) { values ("0.1, 0.2", "0.3, 0.4"); }
        fall_constraint (setup) { values ("0.2, 0.3", "0.4, 0.5"); }
      }
    }
    pin (Q) {
      direction : output; function : "IQ";
      timing () {
        related_pin : "CK"; timing_sense : non_unate; timing_type : rising_edge;
        cell_rise (delay) { values ("0.5, 0.7", "0.6, 0.8"); }
        cell_fall (delay) { values ("0.4, 0.6", "0.5, 0.7"); }
        rise_transition (delay) { values ("0.1, 0.3", "0.1, 0.3"); }
        fall_transition (delay) { values ("0.1, 0.3", "0.1, 0.3"); }
      }
    }
  }
  cell (ICG) {
    area : 3; cell_leakage_power : 13; clock_gating_integrated_cell : "latch_posedge_precontrol";
    leakage_power () { when : "GCK"; value : 21; }
    leakage_power () { when : "!GCK"; value : 9; }
    statetable ("CK E SE", "M") { table : "L L L : - : L, L H - : - : H, L - H : - : H, H - - : - : N"; }
    pin (M) { direction : internal; internal_node : "M"; }
    pin (CK) {
      direction : input; clock : true; capacitance : 1.5; clock_gate_clock_pin : true;
      internal_power () { rise_power (scalar) { values ("2"); } fall_power (scalar) { values ("3"); } }
    }
    pin (E) {
      direction : input; capacitance : 2; clock_gate_enable_pin : true;
      internal_power () { rise_power (scalar) { values ("1"); } fall_power (scalar) { values ("2"); } }
      timing () {
        related_pin : "CK"; timing_type : setup_rising;
        rise_constraint (setup) { values ("0.3, 0.4", "0.5, 0.6"); }
        fall_constraint (setup) { values ("0.4, 0.5", "0.6, 0.7"); }
      }
    }
    pin (SE) { direction : input; capacitance : 1; clock_gate_test_pin : true; }
    pin (GCK) {
      direction : output; clock_gate_out_pin : true; state_function : "CK * M";
      timing () {
        related_pin : "CK"; timing_sense : positive_unate;
        cell_rise (delay) { values ("0.2, 0.4", "0.3, 0.5"); }
        cell_fall (delay) { values ("0.2, 0.4", "0.3, 0.5"); }
        rise_transition (delay) { values ("0.1, 0.3", "0.1, 0.3"); }
        fall_transition (delay) { values ("0.1, 0.3", "0.1, 0.3"); }
      }
      internal_power () {
        related_pin : "CK";
        rise_power (delay) { values ("5, 7", "5, 7"); } fall_power (delay) { values ("4, 4", "4, 4"); }
      }
    }
  }
  cell (TRI) {
    area : 3;
    pin (A) { direction : input; } pin (E) { direction : input; }
    pin (Z) { direction : output; function : "A"; three_state : "!E"; }
  }
  cell (LATCH) {
    area : 3;
    latch (IQ, IQN) { enable : "G"; data_in : "D"; }
    pin (G) { direction : input; } pin (D) { direction : input; }
    pin (Q) { direction : output; function : "IQ"; }
  }
}
"""


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A library small enough to compute with by hand."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.lib"
    path.write_text(TINY)
    return reader.load(path)


FOLLOWING = """
/* units: ns, fF; every table is linear. SN follows CON wherever both change, as in adders of ASAP7. */
library (following) {
  time_unit : "1ns"; voltage_unit : "1V"; capacitive_load_unit (1, ff); nom_voltage : 1;
  lu_table_template (delay) {
    variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1 ("0, 1"); index_2 ("0, 10");
  }
  cell (INV) {
    area : 1; pin (A) { direction : input; capacitance : 1; }
    pin (Y) {
      direction : output; function : "!A";
      timing () {
        related_pin : "A"; timing_sense : negative_unate;
        cell_rise (scalar) { values ("0.1"); } cell_fall (scalar) { values ("0.1"); }
        rise_transition (scalar) { values ("0.2"); } fall_transition (scalar) { values ("0.2"); }
      }
    }
  }
HALF_ADDERS
  cell (DFF) {
    area : 4; ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; }
    pin (CK) { direction : input; clock : true; capacitance : 1; }
    pin (D) {
      direction : input; capacitance : 1;
      timing () {
        related_pin : "CK"; timing_type : setup_rising;
        rise_constraint (scalar) { values ("0.1"); } fall_constraint (scalar) { values ("0.2"); }
      }
    }
    pin (Q) {
      direction : output; function : "IQ";
      timing () {
        related_pin : "CK"; timing_type : rising_edge;
        cell_rise (delay) { values ("0.5, 0.7", "0.5, 0.7"); } cell_fall (delay) { values ("0.4, 0.6", "0.4, 0.6"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.3"); }
      }
    }
    pin (QN) {
      direction : output; function : "IQN";
      timing () {
        related_pin : "Q"; timing_sense : negative_unate;
        cell_rise (delay) { values ("0.1, 0.2", "0.3, 0.4"); } cell_fall (delay) { values ("0.2, 0.3", "0.4, 0.5"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.1"); }
      }
    }
  }
}
"""
HALF_ADDER = """
  cell (NAME) {
    area : AREA;
    pin (A) { direction : input; capacitance : 2; } pin (B) { direction : input; capacitance : 2; }
    pin (CON) {
      direction : output; function : "!(A * B)";
      timing () {
        related_pin : "A B"; timing_sense : negative_unate;
        cell_rise (delay) { values ("0.1, 0.1+", "0.2, 0.2+"); }
        cell_fall (delay) { values ("0.1, 0.1+", "0.2, 0.2+"); }
        rise_transition (delay) { values ("0.1, 0.6", "0.1, 0.6"); }
        fall_transition (delay) { values ("0.1, 0.4", "0.1, 0.4"); }
      }
    }
    pin (SN) {
      direction : output; function : "!(A ^ B)";
      timing () {
        related_pin : "A"; timing_sense : positive_unate; when : "B";
        cell_rise (scalar) { values ("0.25"); } cell_fall (scalar) { values ("0.25"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.1"); }
      }
      timing () {
        related_pin : "A"; timing_sense : negative_unate; when : "!B";
        cell_rise (scalar) { values ("0.33"); } cell_fall (scalar) { values ("0.34"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.1"); }
      }
      timing () {
        related_pin : "A"; timing_sense : non_unate;
        cell_rise (scalar) { values ("0.4"); } cell_fall (scalar) { values ("0.4"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.1"); }
      }
      timing () {
        related_pin : "B"; timing_sense : non_unate;
        cell_rise (scalar) { values ("0.31"); } cell_fall (scalar) { values ("0.32"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.1"); }
      }
      timing () {
        related_pin : "CON"; timing_sense : negative_unate; timing_type : combinational_rise; when : "A * !B";
        cell_rise (delay) { values ("0.2, 0.4", "0.3, 0.5"); } rise_transition (scalar) { values ("0.1"); }
      }
      timing () {
        related_pin : "CON"; timing_sense : negative_unate; timing_type : combinational_rise; when : "!A * B";
        cell_rise (delay) { values ("0.21, 0.41", "0.31, 0.51"); } rise_transition (scalar) { values ("0.1"); }
      }
      timing () {
        related_pin : "CON"; timing_sense : negative_unate;
        cell_rise (delay) { values ("0.3, 0.5", "0.4, 0.6"); } cell_fall (delay) { values ("0.2, 0.3", "0.4, 0.5"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.15"); }
      }
    }
  }
"""


@pytest.fixture(scope="session")
def following(tmp_path_factory):
    """A library in which outputs follow other outputs of the same cell: half adders of two sizes, and a flip-flop.

    A half adder of size 1 has delays of 0.02 ns for a fF on its carry CON, one of size 2 has 0.01 ns.
    """
    adders = ""
    for size, (once, twice) in {1: ("0.3", "0.4"), 2: ("0.2", "0.3")}.items():
        text = HALF_ADDER.replace("NAME", f"HA_X{size}").replace("AREA", str(size))
        adders += text.replace("0.1+", once).replace("0.2+", twice)
    path = tmp_path_factory.mktemp("following") / "following.lib"
    path.write_text(FOLLOWING.replace("HALF_ADDERS", adders))
    return reader.load(path)


def module(ports, cells):
    """A module body as Yosys writes it; ports: (direction, nets), cells: (type, {pin: net})."""
    return {
        "ports": {name: {"direction": way, "bits": bits} for name, (way, bits) in ports.items()},
        "cells": {
            name: {
                "type": kind,
                "connections": {p: b if isinstance(b, list) else [b] for p, b in pins.items()},
            }
            for name, (kind, pins) in cells.items()
        },
        "netnames": {name: {"bits": bits, "hide_name": 0} for name, (_, bits) in ports.items()},
    }


@pytest.fixture(scope="session")
def make():
    """The function `module`."""
    return module


@pytest.fixture(scope="session")
def gated(tiny):
    """Three flip-flops that load ``d``: in every cycle, where ``e`` is 1, and where ``e`` is 1 and ``f`` is 0.

    The last has its clock through two gates, one behind the other.
    """
    ports = {
        "ck": ("input", [2]),
        "d": ("input", [3]),
        "e": ("input", [4]),
        "f": ("input", [5]),
        "q": ("output", [6, 7, 8]),
    }
    cells = {
        "f0": ("DFF", {"CK": 2, "RN": "1", "D": 3, "Q": 6}),
        "f1": ("DFF", {"CK": 9, "RN": "1", "D": 3, "Q": 7}),
        "f2": ("DFF", {"CK": 10, "RN": "1", "D": 3, "Q": 8}),
        "g1": ("ICG", {"CK": 2, "E": 4, "SE": "0", "GCK": 9}),
        "g2": ("ICG", {"CK": 9, "E": 11, "SE": "0", "GCK": 10}),
        "u": ("INV", {"A": 5, "Y": 11}),
    }
    return link({"t": module(ports, cells)}, "t", tiny)


@pytest.fixture(scope="session", params=list(FILES))
def real_name(request):
    """Name of a library that is there."""
    missing = [name for name in FILES[request.param] if not (DIRECTORY / name).is_file()]
    if missing:
        pytest.skip(f"no {missing[0]}; set HWGEN_LIBERTY_DIR to the directory of the real libraries")
    return request.param


@pytest.fixture(scope="session")
def real_paths(real_name):
    return [DIRECTORY / name for name in FILES[real_name]]


@pytest.fixture(scope="session")
def real(real_paths):
    """A real library."""
    return reader.load(real_paths)


@pytest.fixture(scope="session")
def workplace(real_paths, tmp_path_factory):
    """Directory with the library's files, unpacked, as 0.lib, 1.lib, ..."""
    place = tmp_path_factory.mktemp("mapped")
    for i, path in enumerate(real_paths):
        content = path.read_bytes()
        (place / f"{i}.lib").write_bytes(gzip.decompress(content) if path.suffix == ".gz" else content)
    return place


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that all workers of a run have in common."""
    own = tmp_path_factory.getbasetemp()
    place = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "common"
    place.mkdir(exist_ok=True)
    return place


@pytest.fixture(scope="session")
def mac(real, real_name, real_paths, workplace, common):
    """The test netlist, mapped to the real library and linked.

    ``HWGEN_MAPPED`` may name a directory that keeps it for runs with the same flow, as those of mutants.
    """
    pytest.importorskip("pyosys")
    kept = Path(os.environ.get("HWGEN_MAPPED", common)) / f"{real_name}.json"
    if not kept.exists():
        _map(real_paths, workplace)
        own = shutil.copy(workplace / "mac.json", kept.with_suffix(f".{os.getpid()}"))
        os.replace(own, kept)
    return link(json.loads(kept.read_text())["modules"], "mac", real)


def _map(real_paths, workplace):
    """Synthesise the test netlist to mac.json."""
    (workplace / "mac.v").write_text(MAC)
    (workplace / "map.py").write_text(MAP)
    (workplace / "abc.script").write_text(ABC)
    names = [f"{i}.lib" for i in range(len(real_paths))]
    done = subprocess.run(
        [sys.executable, "map.py", *names], cwd=workplace, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.fixture(scope="session")
def cache(common: Path) -> Path:
    """Where measurements of one and the same core find its syntheses."""
    return common / "cache"


@pytest.fixture(scope="session")
def mapped() -> "Callable[..., dict[str, Any]]":
    """Netlists of a design's modules, all of them mapped by one recipe, the draw of which is 0."""
    from hwgen.mapping.yosys import RECIPES

    def modules(design: "Design", flow: "Flow", recipe: str = "area") -> dict[str, Any]:
        how = RECIPES[recipe]
        jobs = design.plan([how], [0])
        return design.assembled(flow.synthesise(jobs, "test"), {job.module: how for job in jobs}, 0, flow.library)

    return modules


@pytest.fixture(scope="session")
def overhead(cache: Path) -> "Overhead":
    """A measurement of the smallest pair of cores."""
    # Here, since it takes a second that most tests do not need.
    from hwgen.config import TensorCoreConfig
    from hwgen.mapping.yosys import RECIPES
    from hwgen.measure.netlists.flow import Flow
    from hwgen.measure.overhead import Stimulus, measure

    pair = [TensorCoreConfig(f"{name}-single", name, name, rows=1, columns=1, groups=1) for name in ("nvfp4", "mixfp4")]
    cells = reader.load(libraries.path("generic7"))
    return measure(
        *pair,
        Flow(cells, cache, workers=1),
        [RECIPES["area"]],
        stimulus=Stimulus(streams=16, tiles=2, steps_per_tile=8),
        runs=6,
        vectors=2000,
    )
