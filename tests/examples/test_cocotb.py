"""The cocotb example, run as its user would."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / "examples" / "cocotb" / "run.py"


def run(manifest, directory):
    if importlib.util.find_spec("cocotb") is None:
        pytest.skip("cocotb is not installed")
    if shutil.which("iverilog") is None:
        pytest.skip("iverilog is not installed")
    from find_libpython import find_libpython

    if find_libpython() is None:
        pytest.skip("this Python has no shared library, which a simulator could load")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, RUN, manifest]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def test_example(tmp_path):
    done = run(ROOT / "rtl_out" / "nvfp4-small.json", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 x 8 x 48: 72 results are those of the golden model" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_example_finds_a_wrong_bit(tmp_path):
    for suffix in ("v", "json"):
        shutil.copy(ROOT / "rtl_out" / f"nvfp4-small.{suffix}", tmp_path)
    manifest = tmp_path / "nvfp4-small.json"
    content = json.loads(manifest.read_text())
    (field,) = (field for port in content["ports"] for field in port.get("fields", ()) if field["name"] == "b.codes")
    field["dimensions"][0]["stride"], field["dimensions"][1]["stride"] = 0, 0  # every row of B where the first is
    manifest.write_text(json.dumps(content))
    done = run(manifest, tmp_path)
    assert done.returncode != 0
    assert "not" in done.stdout + done.stderr


@pytest.mark.parametrize("content", [None, "{", "[]", '{"file": "tiny.v"}', '{"file": 1, "top": "tiny"}'])
def test_example_names_a_bad_manifest(content, tmp_path):
    manifest = tmp_path / "a core.json"
    if content is not None:
        manifest.write_text(content)
    done = run(manifest, tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"run.py: error: {str(manifest)!r}: not a manifest that hwgen wrote")
    assert "Traceback" not in done.stderr
