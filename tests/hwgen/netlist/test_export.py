"""The exported Verilog: read by Yosys, it is the netlist that was written, whatever its names."""

import json
import re
import subprocess
import sys

import numpy as np

from hwgen.cells import reader
from hwgen.netlist.export import cell_names, net_names, netlist_verilog
from hwgen.netlist.link import link

READ = """
from pyosys import libyosys as ys

design = ys.Design()
for command in ("read_verilog -icells top.v", "hierarchy -libdir . -auto-top", "write_json top.json"):
    ys.run_pass(command, design)
"""
ODD = """
library (odd) {
  time_unit : "1ns"; voltage_unit : "1V"; leakage_power_unit : "1nW"; capacitive_load_unit (1, ff); nom_voltage : 1;
  cell (NOT.2[x]) {
    pin ("A[0]") { direction : input; capacitance : 1; }
    pin ("Y.out") { direction : output; function : "!A[0]"; }
  }
}
"""


def read_back(found, place):
    """The exported module as Yosys reads it."""
    (place / "top.v").write_text(netlist_verilog(found, ["a header"]))
    # Stubs of the cells, so that Yosys knows the directions of their pins.
    stubs = []
    for group in found.groups:
        cell = group.cell
        pins = [f"input \\{pin} " for pin in cell.inputs] + [f"output \\{pin} " for pin in cell.outputs]
        stubs.append(f"(* blackbox *) module \\{cell.name} ({', '.join(pins)});")
        stubs.append("endmodule")
    with (place / "top.v").open("a") as file:
        file.write("\n".join(stubs) + "\n")
    (place / "read.py").write_text(READ)
    done = subprocess.run([sys.executable, "read.py"], cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads((place / "top.json").read_text())["modules"]


def same(found, again):
    """Whether both netlists have the same cells between the same nets, by their exported names."""
    names = net_names(found)
    assert again.n_cells == found.n_cells
    wires = {}
    for group in again.groups:
        pins = group.cell.inputs + group.cell.outputs
        for cell, *nets in zip(group.cells.tolist(), *group.inputs.T.tolist(), *group.outputs.T.tolist(), strict=True):
            wires[again.cell_name(cell)] = (group.cell.name, dict(zip(pins, nets, strict=True)))
    of_name = {}
    for group in found.groups:
        pins = group.cell.inputs + group.cell.outputs
        for cell, *nets in zip(group.cells.tolist(), *group.inputs.T.tolist(), *group.outputs.T.tolist(), strict=True):
            kind, wired = wires[cell_names(found)[cell]]
            assert kind == group.cell.name
            for pin, net in zip(pins, nets, strict=True):
                # Every name stands for one net, and every net for one name.
                assert of_name.setdefault(names[net], wired[pin]) == wired[pin]
    assert len(set(of_name.values())) == len(of_name)
    for name, port in found.ports.items():
        assert again.ports[name].direction == port.direction
        for mine, theirs in zip(port.nets.tolist(), again.ports[name].nets.tolist(), strict=True):
            assert of_name.get(names[mine], theirs) == theirs


def test_the_verilog_is_the_netlist(mac, tmp_path):
    same(mac, link(read_back(mac, tmp_path), "mac", mac.library))


def test_names_that_need_a_backslash(make, tmp_path):
    (tmp_path / "odd.lib").write_text(ODD)
    cells = reader.load(tmp_path / "odd.lib")
    body = make(
        {"in.a[x]": ("input", [2, 3]), "out+": ("output", [4, 5, 2])},
        {"i": ("NOT.2[x]", {"A[0]": 2, "Y.out": 4}), "j": ("NOT.2[x]", {"A[0]": 3, "Y.out": 5})},
    )
    found = link({"top.0": body}, "top.0", cells)
    text = netlist_verilog(found)
    assert "module \\top.0  (\\in.a[x] , \\out+ );" in text
    assert "  \\NOT.2[x]  c0 (.\\A[0] (\\in.a[x] [0]), .\\Y.out (\\out+ [0]));" in text
    same(found, link(read_back(found, tmp_path), "top.0", cells))


def test_names_are_those_of_the_ports(mac):
    names = net_names(mac)
    assert len(set(names)) == len(names)
    assert [names[net] for net in mac.ports["a"].nets] == [f"a[{place}]" for place in range(32)]
    assert all(re.fullmatch(r"1'b[01]|\w+(\[\d+\])?", name) for name in names)
    assert np.unique(cell_names(mac)).size == mac.n_cells
