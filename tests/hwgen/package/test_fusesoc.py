"""The core file, run by FuseSoC."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.skipif(importlib.util.find_spec("fusesoc") is None, reason="fusesoc is not installed")
NAME = "hwgen:tensor_core:tiny"


def fusesoc(directory, *arguments):
    """FuseSoC with its configuration and caches in ``directory``."""
    private = {name: str(directory / name) for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    command = [sys.executable, "-m", "fusesoc.main", *arguments]
    return subprocess.run(
        command, cwd=directory, env={**os.environ, **private}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("target", ["sim", "sim_axis"])
def test_testbench(target, package, tool, tmp_path):
    for program in ("make", "iverilog", "vvp"):
        tool(program)
    run = fusesoc(tmp_path, "--cores-root", package, "run", "--target", target, NAME, "--steps", "8")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "\nPASS 8 steps, " in run.stdout
    assert "arning" not in run.stdout + run.stderr.replace("WARNING: No trustfile", "")


def test_lint(package, tool, tmp_path):
    tool("make")
    tool("verilator")
    run = fusesoc(tmp_path, "--cores-root", package, "run", "--target", "lint", NAME)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "%Warning" not in run.stdout + run.stderr


@pytest.mark.parametrize("flags", [(), ("--flag", "wrappers")])
def test_constraints_go_with_the_core_alone(flags, package, tmp_path):
    """A design that depends on the core gets its Verilog and, if it is asked for, the wrappers."""
    user = {
        "name": "test::user:1",
        "filesets": {"rtl": {"depend": [NAME]}},
        "targets": {"default": {"filesets": ["rtl"], "toplevel": "tiny", "flow": "lint"}},
    }
    user["targets"]["default"]["flow_options"] = {"tool": "verilator"}
    (tmp_path / "user.core").write_text("CAPI=2:\n" + yaml.safe_dump(user))
    roots = ["--cores-root", package, "--cores-root", tmp_path]
    run = fusesoc(tmp_path, *roots, "run", *flags, "--setup", "test::user:1")
    assert run.returncode == 0, run.stdout + run.stderr
    (description,) = Path(tmp_path, "build").rglob("*.eda.yml")
    files = [file["name"] for file in yaml.safe_load(description.read_text())["files"]]
    wrappers = [f"tiny_{stem}.sv" for stem in ("pkg", "structs", "axis_slice", "axis")]
    assert [Path(name).name for name in files] == ["tiny.v", *(wrappers if flags else [])]
