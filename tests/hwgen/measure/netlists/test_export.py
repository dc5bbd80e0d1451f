"""Cores that are placed and sized for a clock, as OpenSTA reads them from what `hwgen compare --export` writes."""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping import area
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.energy import core_activities, core_activity
from hwgen.measure.netlists.export import as_built, built, texts
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.power.estimate import estimate
from hwgen.power.opensta_script import FILES
from hwgen.report import schema
from hwgen.rtl.tensor_core import TensorCore
from tests.hwgen.power.test_opensta import internal_2019, uniform

STA = os.environ.get("HWGEN_STA", "sta")
PIPELINE = ("decoded", "sums", "terms", "aligned", "total", "normal")
# Also built by tests of the comparison at a clock.
CONFIG = TensorCoreConfig(
    "nvfp4-fast", "nvfp4", "nvfp4", rows=1, columns=1, groups=1, pipeline=PIPELINE, clock_gating=True
)
DESIGN = Design(CONFIG, TensorCore)
CLOCKS = {"generic7": 2.0, "sky130hd": 13.0}
STIMULUS = Stimulus(streams=16, tiles=2, steps_per_tile=8)
TOGGLES = 0.3


def closing(clock):
    recipes = dict.fromkeys(area.counts(DESIGN.source), "speed")
    return schema.Closing(CONFIG.dot, recipes, clock, 0.0, "", 0.0, 0.0, 0, 0, ())


@pytest.fixture(scope="module")
def cores(real, real_name, cache):
    closings = dict.fromkeys(PURPOSES, closing(CLOCKS[real_name]))
    return built(CONFIG, closings, Physical(), Flow(real, cache, workers=1), STIMULUS)


@pytest.fixture(scope="module")
def core(cores):
    return cores["area"][1]


@pytest.fixture
def release():
    """The release of OpenSTA."""
    if shutil.which(STA) is None:
        pytest.skip("OpenSTA (sta) is not installed; HWGEN_STA may name it")
    version = subprocess.run([STA, "-version"], capture_output=True, text=True, timeout=30).stdout.strip()
    return tuple(int(part) for part in version.split(".")[:2])


def read(place, script):
    """What OpenSTA prints of a script, beside its files."""
    (place / "run.tcl").write_text(script)
    command = [STA, "-no_init", "-no_splash", "-exit", "run.tcl"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=240)
    if done.returncode < 0:
        pytest.skip(f"this release of OpenSTA ends by signal {-done.returncode}; HWGEN_STA may name another")
    text = done.stdout + done.stderr
    assert "rror" not in text, text[:2000]
    return text


def of_the_clocks(gates, toggles, mhz):
    """Power in mW of the nets behind clock gates, without wires, which SPEF leaves out; of all clock nets with them."""
    netlist, volts = gates.netlist, gates.netlist.library.voltage
    pins = np.zeros(netlist.n_nets)
    for group in netlist.groups:
        if group.cell.clock_pin is not None:
            nets = group.inputs[:, group.cell.inputs.index(group.cell.clock_pin)]
            np.add.at(pins, nets, group.cell.pins[group.cell.clock_pin].capacitance)
    scale = 0.5 * volts**2 * mhz * 1e-6
    wires = gates.timing.wires.capacitance
    behind = scale * float((toggles * pins)[netlist.gated_nets].sum())
    return behind, scale * float((toggles * (pins + wires))[netlist.clock_nets].sum())


@pytest.mark.parametrize("real_name", list(CLOCKS), indirect=True)
def test_opensta_finds_our_slack_and_power(core, real_name, workplace, tmp_path, release):
    period = 1.2 * core.timing.delay
    assert core.timing.wires.kind == "placed"
    assert len(core.netlist.gated_nets)
    assert core.timing.delay <= CLOCKS[real_name]
    files = texts(CONFIG, core, period, STIMULUS)
    assert files.keys() == FILES.keys()
    assert "// Wires of its placement" in files["v"]
    for suffix, text in files.items():
        (tmp_path / FILES[suffix]).write_text(text)
    script = re.sub(r"^read_liberty .*$", f"read_liberty {workplace / '0.lib'}", files["tcl"], flags=re.MULTILINE)
    if release < (3, 0) and real_name == "generic7":
        # Its default calculator makes slews longer at the least resistance of a wire; this one dies on some netlists.
        script = script.replace("report_checks", "set_delay_calculator arnoldi\nreport_checks", 1)
    if release < (3, 0):
        script += f"set_power_activity -global -activity {TOGGLES} -duty 0.5\nreport_power -digits 9\n"
    text = read(tmp_path, script)
    slack = float(re.search(r"worst slack (?:max )?(-?[\d.]+)", text)[1]) * core.netlist.library.units["time"]
    ours = period - core.timing.delay
    assert slack == pytest.approx(ours, rel=0.02)
    internal, switching, leakage, total = (
        float(value) * 1e3 for value in re.search(r"^Total +(\S+) +(\S+) +(\S+) +(\S+)", text, re.MULTILINE).groups()
    )
    mhz = 1e3 / period
    if release < (3, 0):
        # Activity of its own making, and internal power by its own rules: what both have in common are loads and slews.
        seen = uniform(core.netlist, TOGGLES)
        seen.toggles[core.netlist.gated_nets] = 2.0
        found = estimate(core.netlist, core.timing, seen, mhz)
        behind, _ = of_the_clocks(core, seen.toggles, mhz)
        own = internal_2019(core.netlist, core.timing, seen.toggles, seen.ones).sum() * mhz * 1e-6
        charged = found.mw["switching"] + found.mw["wires"] + behind
        print(real_name, release, slack / ours, own / internal, charged / switching, found.mw["leakage"] / leakage)
        assert charged == pytest.approx(switching, rel=0.05)
        assert own + charged + found.mw["leakage"] == pytest.approx(total, rel=0.05)
        return
    assert int(re.search(r"^unannotated +(\d+)", text, re.MULTILINE)[1]) == 0
    said = float(re.search(r"total (\S+) mW", files["v"])[1])
    behind, clocks = of_the_clocks(core, core_activity(core, CONFIG, CONFIG.formats, STIMULUS).toggles, mhz)
    print(real_name, release, slack / ours, (said - clocks + behind) / total)
    assert said - clocks + behind == pytest.approx(total, rel=0.05)


@pytest.mark.parametrize("real_name", ["generic7"], indirect=True)
def test_the_core_for_least_energy_is_exported_too(cores):
    """The same modules, with sizes of its own; both meet the clock."""
    (small, of_area), (frugal, of_energy) = (cores[purpose] for purpose in PURPOSES)
    assert small.config == frugal.config == CONFIG
    assert max(each.timing.delay for each in (of_area, of_energy)) <= CLOCKS["generic7"]
    area_of = [sum(each.netlist.area_by_block().values()) for each in (of_area, of_energy)]
    assert area_of[0] < area_of[1]
    totals = []
    for gates in (of_area, of_energy):
        _, timed = core_activities(gates, CONFIG, CONFIG.formats, STIMULUS)
        totals.append(estimate(gates.netlist, gates.timing, timed, 500.0).total_mw)
    assert totals[1] < totals[0]


def test_a_period_that_the_netlist_misses(cache):
    """It is built by the lanes of the report, here with wires by fanout."""
    flow = Flow(reader.load(libraries.path("generic7")), cache, workers=1)
    closings = dict.fromkeys(PURPOSES, closing(2.0))
    with pytest.raises(InputError, match=r"clock of 0.5 ns: the netlist to export takes 1\.\d+ ns; choose a longer"):
        as_built(CONFIG, closings, Physical("fanout"), flow, 0.5, STIMULUS)
    found = as_built(CONFIG, closings, Physical("fanout"), flow, 2.0, STIMULUS, waves=True)
    assert list(found) == [*PURPOSES]
    for files in found.values():
        assert files.keys() == {*FILES, "vcd"}
        assert "// Wires 0.374622 fF per fanout" in files["v"]
