"""The public interface: a list that grows on purpose, and takes no time to import."""

import subprocess
import sys
from pathlib import Path

import pytest

import hwgen

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"

NAMES = {
    "Estimate",
    "Flow",
    "InputError",
    "TensorCoreConfig",
    "ToolError",
    "default_library",
    "load_library",
    "measure_overhead",
    "named",
    "package_texts",
    "resolve",
}


def test_the_names() -> None:
    assert set(hwgen.__all__) == NAMES
    assert set(dir(hwgen)) >= NAMES
    for name in NAMES:
        assert getattr(hwgen, name).__doc__
    with pytest.raises(AttributeError, match="'hwgen' has no attribute 'nothing'"):
        _ = hwgen.nothing


def test_the_page_lists_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert {name.strip(" `") for cell in table for name in cell.split(",")} == NAMES


def test_the_example_begins_as_it_says() -> None:
    core = hwgen.named("mixfp4-small")
    assert "module mixfp4_small" in hwgen.package_texts(core)["mixfp4-small.v"]
    assert hwgen.load_library(hwgen.default_library("generic7")).name == "generic7"


def test_importing_takes_no_time() -> None:
    code = "import sys; before = set(sys.modules); import hwgen; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "amaranth", "click", "hwgen.config"} & set(done.stdout.split())
