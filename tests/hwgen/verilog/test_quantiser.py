"""Verilog of quantisers, and its manifest."""

import json
import re
import shutil
import subprocess

import pytest
from amaranth.hdl import Shape
from amaranth.lib.wiring import In

from hwgen.config.quantiser import QUANTISERS
from hwgen.package.lint import quantiser_waivers
from hwgen.package.wires import named
from hwgen.rtl.quantiser.quantiser import Quantiser, block_layout, quantised_layout
from hwgen.verilog.quantiser import quantiser_design, quantiser_manifest, quantiser_verilog

NAMES = ("nvfp4-quantiser-bf16", "mixfp4-quantiser", "mixfp4-crest-factor-quantiser")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("rtl")
    for name in NAMES:
        (place / f"{name}.v").write_text(named(quantiser_verilog(QUANTISERS[name])))
        (place / f"{name}.vlt").write_text(quantiser_waivers(name))
    return place


@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_has_the_ports(name):
    config = QUANTISERS[name]
    manifest = json.loads(json.dumps(quantiser_manifest(config).as_dict()))
    _, block = quantiser_design(config).add(Quantiser, config)
    found = {
        "__".join(map(str, path)): ("input" if member.flow == In else "output", Shape.cast(member.shape).width)
        for path, member, _ in block.signature.flatten(block)
    }
    listed = {port["name"]: (port["direction"], port["width"]) for port in manifest["ports"]}
    assert listed == {"clk": ("input", 1), "rst": ("input", 1), **found}
    assert manifest["latency"] == block.latency
    assert manifest["configuration"]["format"] == config.format


@pytest.mark.parametrize("name", NAMES)
def test_fields_are_where_the_layouts_have_them(name):
    config = QUANTISERS[name]
    ports = {port["name"]: port for port in quantiser_manifest(config).as_dict()["ports"]}
    for layout, port in ((block_layout(config), "block__payload"), (quantised_layout(), "result__payload")):
        assert [(field["name"], field["offset"]) for field in ports[port]["fields"]] == [
            (name, field.offset) for name, field in layout
        ]
        last = ports[port]["fields"][-1]
        sizes = [dimension["size"] for dimension in last["dimensions"]]
        assert last["offset"] + last["width"] * (sizes[0] if sizes else 1) == ports[port]["width"]


def test_modules_are_in_the_text(written):
    for name in NAMES:
        modules = re.findall(r"^module (\w+)", (written / f"{name}.v").read_text(), re.MULTILINE)
        assert sorted(modules) == sorted(quantiser_design(QUANTISERS[name]).texts)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(not shutil.which("iverilog"), reason="no iverilog")
def test_icarus_takes_it(name, written, tmp_path):
    command = ["iverilog", "-g2001", "-Wall", "-Wno-timescale", "-o", str(tmp_path / "a"), str(written / f"{name}.v")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(not shutil.which("verilator"), reason="no verilator")
def test_verilator_has_nothing_to_say(name, written):
    command = ["verilator", "--lint-only", "-Wall", str(written / f"{name}.vlt"), str(written / f"{name}.v")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
