import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.cells.library import Library
from hwgen.errors import InputError, ToolError
from hwgen.mapping.yosys import CARRIES, RECIPES, Recipe, recipe, synthesise, tool_version
from hwgen.netlist.link import link
from hwgen.power.activity import simulate

ADDER = """
module adder(input [7:0] a, input [7:0] b, output [8:0] y);
  assign y = a + b;
endmodule
module top(input clk, input [7:0] a, input [7:0] b, output reg [8:0] y);
  wire [8:0] sum;
  adder adder (.a(a), .b(b), .y(sum));
  always @(posedge clk) y <= sum;
endmodule
"""


@pytest.fixture(scope="module")
def cells() -> Library:
    return reader.load(libraries.path("generic7"))


def _bits(values: np.ndarray, width: int) -> np.ndarray:
    return ((values[..., None] >> np.arange(width)) & 1).astype(np.uint8)


def test_a_module_is_mapped_and_means_the_same(cells: Library) -> None:
    body = synthesise(ADDER, "adder", cells, RECIPES["area"])
    netlist = link({"adder": body}, "adder", cells)
    a, b = np.meshgrid(np.arange(256), np.arange(256))
    stimulus = {"a": _bits(a.reshape(64, -1), 8), "b": _bits(b.reshape(64, -1), 8)}
    answer = simulate(netlist, stimulus).outputs["y"] @ (1 << np.arange(9))
    np.testing.assert_array_equal(answer, (a + b).reshape(64, -1))


SUMS = """
module sums(input [12:0] a, input [12:0] b, input c, output [13:0] sum, output [12:0] difference, output one);
  assign sum = a + b + c;
  assign difference = a - b;
  assign one = a[0] + b[0];
endmodule
"""


@pytest.mark.parametrize("carry", CARRIES)
def test_carry_networks_add_and_subtract(cells: Library, carry: str) -> None:
    how = Recipe(f"with {carry}", carry, RECIPES["speed"].abc, "a test")
    netlist = link({"sums": synthesise(SUMS, "sums", cells, how)}, "sums", cells)
    random = np.random.default_rng(1)
    a, b = random.integers(0, 1 << 13, (2, 64, 640))
    b[:, ::4] = (1 << 13) - 1 - a[:, ::4]  # carries all the way
    c = random.integers(0, 2, a.shape)
    stimulus = {"a": _bits(a, 13), "b": _bits(b, 13), "c": _bits(c, 1)}
    outputs = simulate(netlist, stimulus).outputs
    for name, wanted in (("sum", a + b + c), ("difference", (a - b) % (1 << 13)), ("one", (a ^ b) & 1)):
        np.testing.assert_array_equal(outputs[name] @ (1 << np.arange(outputs[name].shape[-1])), wanted)


def test_boxes_stay_instances_and_link_to_the_flat_area(cells: Library) -> None:
    parent = synthesise(ADDER, "top", cells, RECIPES["area"], boxes=["adder"])
    assert [cell["type"] for cell in parent["cells"].values()].count("adder") == 1
    child = synthesise(ADDER, "adder", cells, RECIPES["area"])
    netlist = link({"top": parent, "adder": child}, "top", cells)
    assert netlist.area_by_block().keys() == {"top", "top/adder"}
    assert sum(netlist.area_by_block().values()) == pytest.approx(netlist.area)


def test_paths_with_spaces_quotes_and_semicolons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: Library
) -> None:
    odd = tmp_path / "a b'; touch injected; \"$(touch injected)"
    odd.mkdir()
    liberty = odd / "cells; touch injected.lib"
    liberty.write_bytes(libraries.path("generic7").read_bytes())
    monkeypatch.setenv("TMPDIR", str(odd))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    body = synthesise(ADDER, "adder", reader.load(liberty), RECIPES["area"])
    assert body == synthesise(ADDER, "adder", cells, RECIPES["area"])
    assert sorted(os.listdir(tmp_path)) == [odd.name]
    assert os.listdir(odd) == [liberty.name]


def test_a_failure_has_the_tools_last_words(cells: Library) -> None:
    with pytest.raises(ToolError, match=r"synthesis of missing failed: .*missing"):
        synthesise(ADDER, "missing", cells, RECIPES["area"])


def test_the_time_limit_ends_the_run(cells: Library) -> None:
    with pytest.raises(ToolError, match=r"ran over its limit of 0\.01 s"):
        synthesise(ADDER, "top", cells, RECIPES["area"], time_limit=0.01)


def test_unknown_recipe() -> None:
    with pytest.raises(InputError, match=r"unknown recipe 'speedy'; did you mean 'speed'"):
        recipe("speedy")
    assert recipe("area") is RECIPES["area"]


def test_the_version_names_the_tool() -> None:
    assert tool_version().startswith("Yosys 0.")


KILLED = """
import signal, sys
from pathlib import Path
from hwgen.mapping import yosys

# A shell that starts the tests in the background lets all of them ignore this.
signal.signal(signal.SIGINT, signal.default_int_handler)
yosys._RUNNER = '''
import os, subprocess
tool = subprocess.Popen(["sleep", "1000"])
with open("begun", "w") as file:
    print(os.getpid(), tool.pid, file=file)
os.replace("begun", "pids")
tool.wait()
'''
yosys._run(Path(sys.argv[1]), 0, 1000.0, "synthesis")
"""


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_process_leaves_no_tool_behind(by, tmp_path):
    caller = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        pids = tmp_path / "pids"
        until(pids.exists)
        tools = [int(pid) for pid in pids.read_text(encoding="utf-8").split()]
        assert all(map(runs, tools))
        caller.send_signal(by)
        assert caller.wait(60) != 0
        until(lambda: not any(map(runs, tools)))
    finally:
        caller.kill()
        caller.wait()


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    return found.stdout.strip()[:1] not in ("", "Z")


def until(reached, seconds=60.0):
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)
