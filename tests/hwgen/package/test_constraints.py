"""SDC: read by OpenSTA on a netlist that has the ports of the core."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hwgen.cells import libraries
from hwgen.measure.netlists.clock import USUAL
from hwgen.package.constraints import DEFAULT_CLOCK, IO_FRACTION, Clock, constraints
from hwgen.package.platform import DEFAULT_PLATFORM, platform_of
from hwgen.verilog import describe

REPORTS = Path(__file__).parents[3] / "reports"


def registered(manifest, flop, gate):
    """A netlist with a register at every input and output, and the paths from ``result__ready``."""
    ports = [port for port in manifest["ports"] if port["name"] != "clk"]
    lines = [f"module {manifest['top']}(clk, {', '.join(port['name'] for port in ports)});", "  input clk;"]
    for port in ports:
        size = f"[{port['width'] - 1}:0] " if port["width"] > 1 else ""
        lines.append(f"  {port['direction']} {size}{port['name']};")
    lines.append("  wire link;")
    for port in ports:
        for bit in range(port["width"]):
            pin = f"{port['name']}[{bit}]" if port["width"] > 1 else port["name"]
            name = f"r_{port['name']}_{bit}"
            if port["name"] in ("step__ready", "addend__ready"):
                lines.append(f"  {gate} {name} (.A(result__ready), .Y({pin}));")
            elif port["direction"] == "input":
                lines += [f"  wire {name}_q;", f"  {flop} {name} (.CLK(clk), .D({pin}), .Q({name}_q));"]
            else:
                lines.append(f"  {flop} {name} (.CLK(clk), .D(r_rst_0_q), .Q({pin}));")
    return "\n".join([*lines, "endmodule", ""])


def opensta(directory, library, commands):
    script = (
        f"read_liberty {libraries.path(library)}\nread_verilog ports.v\nlink_design tiny\n"
        f"read_sdc constraint.sdc\n{commands}"
    )
    (directory / "run.tcl").write_text(script)
    command = ["sta", "-no_init", "-no_splash", "-exit", "run.tcl"]
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    return run.stdout + run.stderr


@pytest.fixture
def ports(package, tmp_path):
    if shutil.which("sta") is None:
        pytest.skip("OpenSTA (sta) is not installed")
    manifest = json.loads((package / "tiny.json").read_text())
    (tmp_path / "ports.v").write_text(registered(manifest, "DFF_X1", "INV_X1"))
    shutil.copy(package / "tiny" / "constraint.sdc", tmp_path)
    return tmp_path


def test_opensta_reads_the_constraints(ports):
    log = opensta(
        ports,
        "generic130",
        "check_setup -verbose\nreport_checks -from [get_ports result__ready] -to [get_ports step__ready]\n"
        "report_checks -from [get_ports rst]\n",
    )
    # No port without a delay, no endpoint without a clock.
    assert "arning" not in log
    assert "rror" not in log
    assert log.startswith("Startpoint: result__ready (input port clocked by clk)")
    period, delay = DEFAULT_CLOCK.period_ns, IO_FRACTION * DEFAULT_CLOCK.period_ns
    assert re.search(rf"^ *{delay:.2f} +{delay:.2f} . input external delay$", log, re.M)
    assert re.search(rf"^ *-{delay:.2f} +{period - delay:.2f} +output external delay$", log, re.M)
    assert log.count("slack (MET)") == 2
    assert "Startpoint: rst (input port clocked by clk)" in log


def test_opensta_misses_a_delay_that_is_not_there(ports):
    """What the test above relies on."""
    file = ports / "constraint.sdc"
    file.write_text(file.read_text().replace(" rst ", " ").replace("{rst ", "{"))
    assert "rst" in opensta(ports, "generic130", "check_setup -verbose\n")


def test_opensta_warns_of_a_library_in_ps(ports):
    assert re.search(r"time scale .*does not match", opensta(ports, "generic7", ""))


def test_constraints_are_in_the_unit_of_their_library(ports, tiny):
    clock = Clock(1.25, "as given", platform_of("generic7"))
    (ports / "constraint.sdc").write_text(constraints(describe(tiny), clock))
    netlist = (ports / "ports.v").read_text()
    (ports / "ports.v").write_text(netlist.replace("DFF_X1", "DFF_X4"))
    log = opensta(ports, "generic7", "report_checks -from [get_ports rst]\n")
    assert "arning" not in log
    assert re.search(r"^ *1250.00 +1250.00 +clock clk", log, re.M), log


@pytest.mark.parametrize("library", [*USUAL, "another"])
def test_a_platform_has_the_unit_of_its_library(library):
    platform = platform_of(library)
    assert platform.name == {"asap7": "asap7", "generic7": "asap7", "sg13g2": "ihp-sg13g2"}.get(library, "sky130hd")
    if library in ("generic7", "generic130"):
        (unit,) = re.findall(r'time_unit : "1(.s)"', libraries.path(library).read_text())
        assert platform.time_unit == unit


def test_the_default_clock_is_that_of_reports_on_the_default_platform():
    assert DEFAULT_PLATFORM.name == "sky130hd"
    assert DEFAULT_CLOCK.period_ns == USUAL["sky130_fd_sc_hd"]
    conditions = json.loads((REPORTS / "overhead-sky130hd.json").read_text())["conditions"]
    assert DEFAULT_CLOCK.period_ns == conditions["clock_ns"]


def test_period_and_its_source(tiny):
    text = constraints(describe(tiny), Clock(3.25, "measured\nexec rm [exec ls] \\"))
    assert "\nset clk_period 3.25\n" in text
    # Whatever the source's words are, they stay in the comment.
    commands = [line for line in text.splitlines() if line and not line.startswith("#")]
    allowed = ("set_units", "set", "create_clock", "set_input_delay", "set_output_delay")
    assert [line.split()[0] for line in commands if line.split()[0] not in allowed] == []
    assert not any(line.endswith("\\") for line in text.splitlines())
