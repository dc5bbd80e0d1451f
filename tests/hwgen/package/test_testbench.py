"""The testbench: the cores pass it, faulty ones do not."""

import dataclasses
import os
import re
import subprocess
from pathlib import Path

import pytest

from hwgen.config import PIPELINE_REGISTERS, REGISTERS, TensorCoreConfig
from hwgen.package import contents
from hwgen.package.testbench import testbench as bench
from hwgen.package.vectors import Vectors
from hwgen.verilog import describe

RTL_OUT = Path(__file__).parents[3] / "rtl_out"
DEEP = TensorCoreConfig("nvfp4-deep", "nvfp4", "nvfp4", rows=2, columns=2, groups=1, pipeline=PIPELINE_REGISTERS)


def make(folder, build, *arguments):
    """Run a target of a package's makefile; the committed packages are built elsewhere."""
    command = ["make", "-s", "-C", str(folder), *arguments]
    if build is not None:
        os.symlink(folder.parent / f"{folder.name}.v", build / f"{folder.name}.v")
        (build / folder.name).mkdir()
        for path in folder.iterdir():
            if path.is_file():
                os.symlink(path, build / folder.name / path.name)
        command[3] = str(build / folder.name)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def passed(run, steps):
    assert (run.returncode, run.stderr) == (0, "")
    return re.fullmatch(rf"PASS {steps} steps, [1-9]\d* results of \d+ words compared\n(- .*\$finish\n)?", run.stdout)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("mixfp4-small", 64),
        *((f"{name}-small", 16) for name in ("if4", "razer")),
        ("nvfp4-small", 64),
        *((f"{name}-small", 16) for name in ("msfp12", "blockdialect", "w4a8", "mxint8", "mxfp6-e3m2")),
        ("nvint4-small", 24),
        ("mixfp4-weights-small", 24),
        ("mixfp4-blackwell", 2),
    ],
)
def test_named_cores_in_icarus(name, steps, tool, tmp_path):
    for program in ("make", "iverilog", "vvp"):
        tool(program)
    assert passed(make(RTL_OUT / name, tmp_path, "icarus", f"ARGS=+steps={steps}"), steps)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"numerics": "exact", "pipeline": REGISTERS["exact"]},
        {"a": "mixfp4", "b": "mixfp4", "groups": 2, "columns": 3, "pipeline": ()},
    ],
    ids=["interleaved", "exact", "without registers"],
)
def test_other_cores_in_icarus(changes, tool, tmp_path):
    for program in ("make", "iverilog", "vvp"):
        tool(program)
    # Nothing in the name of the directory may matter.
    directory = tmp_path / """a 'b' "c";$d"""
    config = dataclasses.replace(DEEP, **changes)
    contents.write(config, directory)
    steps = len((directory / config.name / "steps.hex").read_text().split())
    assert passed(make(directory / config.name, None, "icarus"), steps)


def test_lint(package, tool):
    tool("make")
    tool("verilator")
    run = make(package / "tiny", None, "lint")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_verilator(tiny, tool, tmp_path):
    for program in ("make", "verilator", "g++"):
        tool(program)
    version = subprocess.run(["verilator", "--version"], capture_output=True, text=True, check=True).stdout
    if [int(part) for part in re.findall(r"\d+", version)[:2]] < [5, 6]:
        pytest.skip(f"{version.strip()}: the testbench needs 5.006 for --binary")
    # Verilator builds with make, which cannot do it in a directory with spaces in its name.
    directory = tmp_path / "a'b'"
    contents.write(tiny, directory)
    run = make(directory / "tiny", None, "verilator", "ARGS=+steps=40", "VERILATOR_FLAGS=-j 1")
    assert run.returncode == 0, run.stderr
    assert "\nPASS 40 steps, " in run.stdout
    # The same executable, one wrong bit later.
    results = directory / "tiny" / "results.hex"
    words = results.read_text().split()
    words[3] = f"{int(words[3], 16) ^ 1 << 32:0{len(words[3])}x}"
    results.write_text("\n".join(words) + "\n")
    run = make(directory / "tiny", None, "verilator")
    assert run.returncode != 0
    assert re.search(r"^result 3: d\[0\]\[1\] is [0-9a-f]{8}, not [0-9a-f]{8}\nFAIL 2 failures\n", run.stdout, re.M)


# Faults. A wrapper takes the name of the core, and does something to its ports.

FAULTS = {
    "a wrong bit": (
        "assign result__payload = payload ^ (count == 10);",
        r"result \d+: d\[0\]\[0\] is \w{8}, not \w{8}",
    ),
    "an unknown bit": (
        "assign result__payload = count == 10 ? {payload[63:33], 1'bx, payload[31:0]} : payload;",
        r"result \d+: d\[0\]\[1\] is \w{7}X, not \w{8}",
    ),
    "an unknown valid": ("assign result__valid = count == 9 ? 1'bx : valid;", "cycle 9: .* is unknown"),
    "C that is taken again": ("assign addend__ready = 1'b0;", r"result 1: d\[0\]\[0\] is \w{8}, not \w{8}"),
    "C that is lost": ("assign addend__ready = room || count == 9;", r"(result|cycle) \d+: "),
    "unknown room for C": ("assign addend__ready = count == 9 ? 1'bx : room;", "cycle 9: .* is unknown"),
    "an unknown ready": ("assign step__ready = count == 9 ? 1'bx : ready;", "cycle 9: .* is unknown"),
    "a pause": ("assign step__ready = ready && count != 6;", r"cycle 6: step \d+ has to wait, at full speed"),
    "no results": ("assign result__valid = 1'b0;", r"8 steps taken of 8, 0 results of \d, after 132 cycles"),
    "nothing taken": ("assign step__ready = 1'b0;", "cycle .*: step 0 has to wait, at full speed"),
    "a result too many": ("assign result__valid = valid || count == 15;", "cycle 15: a result that no step has asked"),
    "a change while waiting": (
        "assign result__payload = payload ^ (valid && !result__ready && count[0]);",
        r"cycle \d+: result \d+ changed before it was taken",
    ),
    "valid withdrawn": (
        "reg late; always @(posedge clk) late <= valid && !result__ready;"
        " assign result__valid = valid && (result__ready || !late);",
        r"cycle \d+: result \d+ changed before it was taken",
    ),
    "no reset": ("assign reset = rst && !was;", r"(result \d+|cycle \d+): "),
}


def run_tiny(package, tool, directory, steps=8, core=None):
    """The tiny core's testbench, compiled and run in ``directory``."""
    iverilog, vvp = tool("iverilog"), tool("vvp")
    core = core or (package / "tiny.v").read_text()
    (directory / "core.v").write_text(core)
    for name in ("steps.hex", "addends.hex", "results.hex", "tiny_tb.sv"):
        if not (directory / name).exists():
            (directory / name).write_text((package / "tiny" / name).read_text())
    command = [iverilog, "-g2012", "-s", "tiny_tb", "-o", "tb.vvp", "core.v", "tiny_tb.sv"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return subprocess.run(
        [vvp, "-n", "tb.vvp", f"+steps={steps}"], cwd=directory, capture_output=True, text=True, check=False
    )


def wrapped(text, fault):
    """The core below a module of its name that hands on every port, except for what ``fault`` assigns."""
    ports = {
        name: int(high or 0) + 1
        for high, name in re.findall(r"^  (?:input|output) (?:\[(\d+):0\] )?(\w+);$", text.split("endmodule")[0], re.M)
    }
    defaults = {
        "result__payload": "payload",
        "result__valid": "valid",
        "step__ready": "ready",
        "addend__ready": "room",
        "reset": "rst",
    }
    assigned = re.findall(r"assign (\w+)", fault)
    hand_on = "".join(f"  assign {name} = {wire};\n" for name, wire in defaults.items() if name not in assigned)
    return f"""module tiny(
  input clk, input rst, input result__ready, input step__valid, input [{ports["step__payload"] - 1}:0] step__payload,
  input addend__valid, input [{ports["addend__payload"] - 1}:0] addend__payload, output addend__ready,
  output [{ports["result__payload"] - 1}:0] result__payload, output result__valid, output step__ready);
  wire [{ports["result__payload"] - 1}:0] payload;
  wire valid, ready, room, reset;
  reg was = 0;
  reg [15:0] count = 0;
  always @(posedge clk) begin
    count <= rst ? 1 : count + 1;
    if (valid) was <= 1;
  end
  {fault}
{hand_on}
  inner core(.clk(clk), .rst(reset), .result__ready(result__ready), .step__valid(step__valid),
    .addend__valid(addend__valid), .addend__payload(addend__payload), .addend__ready(room),
    .step__payload(step__payload), .result__payload(payload), .result__valid(valid), .step__ready(ready));
endmodule
{re.sub(r"^module tiny", "module inner", text, count=1, flags=re.M)}"""


def test_a_wrapper_alone_is_no_fault(package, tool, tmp_path):
    run = run_tiny(package, tool, tmp_path, core=wrapped((package / "tiny.v").read_text(), ""))
    assert passed(run, 8)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault, package, tool, tmp_path):
    text, message = FAULTS[fault]
    steps = 24 if fault == "C that is lost" else 8  # few steps show C
    run = run_tiny(package, tool, tmp_path, steps, core=wrapped((package / "tiny.v").read_text(), text))
    assert run.returncode == 1
    assert re.match(message, run.stdout), run.stdout
    assert re.search(r"^FAIL [1-9]\d* failures$", run.stdout, re.M)
    assert "PASS" not in run.stdout
    # The first failure alone is told.
    assert run.stdout.count("\n") <= 5


@pytest.mark.parametrize("change", [-1, 1])
def test_another_latency_is_found(change, package, tiny, tool, tmp_path):
    texts = [(package / "tiny" / name).read_text() for name in ("steps.hex", "addends.hex", "results.hex")]
    vectors = Vectors(*texts, *(text.count("\n") for text in texts))
    latency = tiny.latency
    text = bench(dataclasses.replace(describe(tiny), latency=latency + change), vectors)
    (tmp_path / "tiny_tb.sv").write_text(text)
    run = run_tiny(package, tool, tmp_path)
    assert run.returncode == 1
    assert re.search(rf"^result 0: after {latency} cycles, not {latency + change}$", run.stdout, re.M)


def test_first_wrong_word_is_named(package, tool, tmp_path):
    words = (package / "tiny" / "results.hex").read_text().split()
    right = words[2][:8]
    wrong = f"{int(right, 16) ^ 0x80000000:08x}"
    words[2] = wrong + words[2][8:]
    (tmp_path / "results.hex").write_text("\n".join(words))
    run = run_tiny(package, tool, tmp_path)
    assert run.returncode == 1
    assert run.stdout.splitlines()[:2] == [f"result 2: d[0][1] is {right}, not {wrong}", "FAIL 2 failures"]
