"""The types: members lie where the manifest says. ``test_axi_stream.py`` simulates the module."""

import itertools
import json
import subprocess

import pytest


def masks(manifest):
    """By member, as SystemVerilog names it: the bits of the payload that it has; first and last elements of fields."""
    found = {}
    for stream in ("step", "addend", "result"):
        (port,) = (port for port in manifest["ports"] if port["name"] == manifest["streams"][stream]["payload"])
        for field in port["fields"]:
            dimensions = field["dimensions"]
            for index in itertools.product(*({0, dimension["size"] - 1} for dimension in dimensions)):
                low = field["offset"] + sum(i * d["stride"] for i, d in zip(index, dimensions, strict=True))
                member = f"{stream}.{field['name']}" + "".join(f"[{i}]" for i in index)
                found[member] = (stream, (1 << field["width"]) - 1 << low)
    return found


@pytest.mark.parametrize("name", ["tiny", "slotted"])
def test_members_are_the_fields(name, package, slotted, tool, tmp_path):
    iverilog, vvp = tool("iverilog"), tool("vvp")
    directory = {"tiny": package, "slotted": slotted}[name]
    manifest = json.loads((directory / f"{name}.json").read_text())
    members = masks(manifest)
    assert len(members) > 8
    assert ("step.a_type" in members) == (name == "slotted")
    widths = {port["name"].removesuffix("__payload"): port["width"] for port in manifest["ports"]}
    lines = []
    for member, (stream, mask) in members.items():
        width = widths[stream]
        lines.append(f"{stream} = {width}'h0; {member} = {{{width}{{1'b1}}}};")
        lines.append(f'if ({stream} !== {width}\'h{mask:x}) $display("{member}");')
    # Icarus 11 takes types of a package in declarations of variables only where it is imported.
    types = f"  import {name}_pkg::*;\n" + "".join(
        f"  {stream}_t {stream};\n" for stream in ("step", "addend", "result")
    )
    text = f"module check;\n{types}  initial begin\n" + "\n".join(lines) + '\n$display("done"); end\nendmodule\n'
    (tmp_path / "check.sv").write_text(text)
    sources = [directory / name / f"{name}_pkg.sv", tmp_path / "check.sv"]
    subprocess.run([iverilog, "-g2012", "-s", "check", "-o", tmp_path / "check", *sources], check=True)
    run = subprocess.run([vvp, "-n", tmp_path / "check"], capture_output=True, text=True, check=True)
    assert run.stdout == "done\n"


def test_the_manifest_has_the_ports(slotted):
    manifest = json.loads((slotted / "slotted.json").read_text())
    wrapper = manifest["wrappers"]["structs"]
    assert wrapper["latency"] == manifest["latency"]
    assert wrapper["types"] == {stream: f"slotted_pkg::{stream}_t" for stream in ("step", "addend", "result")}
    text = (slotted / wrapper["files"][-1]).read_text()
    for port in wrapper["ports"]:
        assert f" {port['direction'] + ' ':7}{wrapper['types'].get(port['name'], 'logic')} {port['name']}" in text
    assert wrapper["streams"] == {
        stream: {"payload": stream, "valid": f"{stream}_valid", "ready": f"{stream}_ready"}
        for stream in manifest["streams"]
    }
