"""The AXI4-Stream wrapper computes what the golden model does, however streams are held up; faulty ones are found."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from hwgen.config import REGISTERS, TensorCoreConfig
from hwgen.package import contents

EXACT = TensorCoreConfig("exact", "nvfp4", "mixfp4", 2, 1, 1, numerics="exact", pipeline=REGISTERS["exact"][:1])
BARE = TensorCoreConfig("bare", "int8", "int8", 1, 2, 1, dot="shifted", pipeline=())


def run(directory, name, target, *arguments):
    command = ["make", "-s", "-C", str(directory / name), target, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["tiny", "slotted"])
def test_icarus(name, package, slotted, tool, tmp_path):
    for program in ("make", "iverilog", "vvp"):
        tool(program)
    shutil.copytree({"tiny": package, "slotted": slotted}[name], tmp_path, dirs_exist_ok=True)
    done = run(tmp_path, name, "axis-icarus")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"PASS 64 steps, [1-9]\d* results compared\n", done.stdout)


@pytest.mark.parametrize("config", [EXACT, BARE], ids=lambda config: config.name)
def test_other_cores_in_icarus(config, tool, tmp_path):
    """Without interleaved tiles; without scales, and without registers before the loop, where ready follows valid."""
    for program in ("make", "iverilog", "vvp"):
        tool(program)
    contents.write(config, tmp_path)
    done = run(tmp_path, config.name, "axis-icarus")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"PASS \d+ steps, [1-9]\d* results compared\n", done.stdout)


def test_verilator(slotted, tool, tmp_path):
    """``-Wall`` is silent on wrappers and testbench, and they run."""
    for program in ("make", "verilator", "g++"):
        tool(program)
    version = subprocess.run(["verilator", "--version"], capture_output=True, text=True, check=True).stdout
    if [int(part) for part in re.findall(r"\d+", version)[:2]] < [5, 6]:
        pytest.skip(f"{version.strip()}: the testbench needs 5.006 for --binary")
    shutil.copytree(slotted, tmp_path, dirs_exist_ok=True)
    done = run(tmp_path, "slotted", "axis-verilator", "VERILATOR_FLAGS=-j 1 -CFLAGS -O0")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^PASS 64 steps, [1-9]\d* results compared$", done.stdout, re.M)


FAULTS = {
    "a path from an input to an output": (
        "axis",
        {"m_axis_d_tlast = 1'b1": "m_axis_d_tlast = m_axis_d_tready"},
        r"cycle \d+: an output follows an input within the cycle",
    ),
    "a beat that is lost": (
        "axis_slice",
        {"!move && (spare_valid || take);": "1'b0;"},
        r"(result \d+ is|cycle \d+: |\d+ steps taken) ",
    ),
    "a beat that is taken twice": (
        "axis_slice",
        {"if (take) spare": "if (in_valid) spare"},
        r"(result|cycle) \d+",
    ),
    "a result that changes": (
        "axis_slice",
        {"if (move && (spare_valid || take))": "if (spare_valid || take)"},
        r"(result|cycle) \d+",
    ),
    "first and last exchanged": (
        "axis",
        {"a_last, a_user.first": "a_user.first, a_last"},
        r"(result \d+ is|cycle \d+: |\d+ steps taken) ",
    ),
    "steps without B": ("axis", {"a_valid && b_valid;": "a_valid;"}, r"(result \d+ is|cycle \d+: |\d+ steps taken) "),
    "no TLAST": ("axis", {"m_axis_d_tlast = 1'b1": "m_axis_d_tlast = 1'b0"}, r"result 0 is (\w+), not \1$"),
    "no reset": ("axis_slice", {"      out_valid <= 1'b0;\n": ""}, "TREADY or TVALID is not 0 in reset"),
    "another latency": ("axis_tb", {"LATENCY = 5": "LATENCY = 6"}, "result 0: after 5 cycles, not 6"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault, package, tool, tmp_path):
    iverilog, vvp = tool("iverilog"), tool("vvp")
    stem, changes, message = FAULTS[fault]
    folder = package / "tiny"
    for name in ("steps.hex", "addends.hex", "results.hex", *(path.name for path in folder.glob("*.sv"))):
        text = (folder / name).read_text()
        if name == f"tiny_{stem}.sv":
            for old, new in changes.items():
                assert text.count(old) == 1
                text = text.replace(old, new)
        (tmp_path / name).write_text(text)
    sources = [line for line in (folder / "axis_sim.f").read_text().split() if line.endswith(".sv")]
    command = [iverilog, "-g2012", "-s", "tiny_axis_tb", "-o", "tb.vvp", package / "tiny.v", *sources]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    command = [vvp, "-n", "tb.vvp", "+steps=40"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.match(message, done.stdout, re.M), done.stdout
    assert re.search(r"^FAIL [1-9]\d* failures$", done.stdout, re.M)


def bits(fields):
    """The places of all elements of fields."""
    for field in fields:
        for index in np.ndindex(*(dimension["size"] for dimension in field["dimensions"])):
            low = field["offset"] + sum(i * d["stride"] for i, d in zip(index, field["dimensions"], strict=True))
            yield from range(low, low + field["width"])


@pytest.mark.parametrize("name", ["tiny", "slotted"])
def test_the_manifest_has_ports_and_fields(name, package, slotted):
    directory = {"tiny": package, "slotted": slotted}[name]
    manifest = json.loads((directory / f"{name}.json").read_text())
    wrapper = manifest["wrappers"]["axi_stream"]
    assert wrapper["latency"] == manifest["latency"] + 2
    files = (directory / name / "axis.f").read_text().split()
    assert files == [f"../{manifest['file']}", *(file.removeprefix(f"{name}/") for file in wrapper["files"])]
    text = (directory / wrapper["files"][-1]).read_text()
    head = text[: text.index(");")]
    declared = {
        port: (direction, int(high or 0) + 1)
        for direction, high, port in re.findall(r"^    (input|output) +logic (?:\[(\d+):0\] )?(\w+),?$", head, re.M)
    }
    ports = {port["name"]: port for port in wrapper["ports"]}
    assert {port: (entry["direction"], entry["width"]) for port, entry in ports.items()} == declared
    assert {port for roles in wrapper["streams"].values() for port in roles.values()} == {*ports} - {"aclk", "aresetn"}
    for entry in ports.values():
        if entry["name"].endswith(("tdata", "tuser")):
            assert sorted(bits(entry["fields"])) == list(range(entry["width"]))
            assert entry["name"].endswith("tuser") or entry["width"] % 8 == 0
    users = {port: [field["name"] for field in ports[port]["fields"]] for port in ports if port.endswith("tuser")}
    more = {"s_axis_b_tuser": ["b_type"]} if name == "slotted" else {}
    assert users == {"s_axis_a_tuser": ["first", *(["mode", "a_type"] if more else [])], **more}
