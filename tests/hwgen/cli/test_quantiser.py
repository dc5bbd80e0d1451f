"""``hwgen quantiser``."""

import json
import re

import pytest
from click.testing import CliRunner

from hwgen.cli import cli
from hwgen.errors import InputError
from sim.engines import available


def run(*arguments):
    return CliRunner().invoke(cli, ["quantiser", *map(str, arguments)])


@pytest.mark.skipif(not available(), reason="no C++ compiler")
def test_verify(conforms):
    result = run("verify", "nvfp4-quantiser", "--elements", 1000, "--json")
    found = json.loads(result.stdout)
    conforms("quantiser-verify", found)
    assert found["quantiser"] == "nvfp4-quantiser"
    assert found["elements"] == 1 << 20  # the first batch is whole
    assert "1,048,576" in run("verify", "nvfp4-quantiser", "--elements", 1000).stdout


def test_verilog(tmp_path, conforms):
    result = run("verilog", "nvint4-quantiser-bf16", "--out", tmp_path, "--json")
    conforms("quantiser-verilog", json.loads(result.stdout))
    (entry,) = json.loads(result.stdout)
    assert entry["quantiser"] == "nvint4-quantiser-bf16"
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".svg", ".v", ".vlt"]
    manifest = json.loads((tmp_path / "nvint4-quantiser-bf16.json").read_text())
    conforms("quantiser-manifest", manifest)
    assert manifest["top"] == "nvint4_quantiser_bf16"


def test_diagram(tmp_path):
    result = run("diagram", "nvfp4-quantiser", "mixfp4-gap-quantiser", "--out", tmp_path)
    names = ["nvfp4-quantiser.svg", "mixfp4-gap-quantiser.svg"]
    assert result.stdout.split() == [str(tmp_path / name) for name in names]
    for name in names:
        assert (tmp_path / name).read_text().startswith("<svg ")


def test_no_picture_is_written_where_one_cannot_be(tmp_path):
    (tmp_path / "mixfp4-gap-quantiser.svg").mkdir()
    result = run("diagram", "nvfp4-quantiser", "mixfp4-gap-quantiser", "--out", tmp_path)
    assert "is a directory" in str(result.exception)
    assert not (tmp_path / "nvfp4-quantiser.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nvfp4-quantiser", "--error-bits", 8], "--error-bits 8: nvfp4-quantiser has one candidate"),
        (["nvfp4-quantiser", "--selection", "largest-error"], "selection = 'largest-error': nvfp4 has one candidate"),
        (["mixfp4-quantiser", "--error-bits", 15], "error_bits = 15: must be a whole number from 2 to 14"),
        (["mixfp4-quantiser", "--tensor-scale-bits", 1], "tensor_scale_bits = 1: must be a whole number from 2 to 14"),
    ],
)
def test_bad_input(arguments, words):
    result = run("verify", *arguments)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(words)


def test_unknown_names_list_those_there_are():
    assert "nvfp4-quantiser" in run("verify", "mixfp4").output
    assert "four-over-six-quantiser" in run("verilog", "mixfp4").output


@pytest.mark.skipif(not available(), reason="no C++ compiler")
def test_a_missed_goal_of_a_long_run(monkeypatch):
    """One line says how many there are, and which is the first."""
    monkeypatch.setattr("sim.verify.quantisers.ENOUGH", 1 << 20)
    result = run("verify", "nvfp4-quantiser", "--elements", 1000)
    assert result.exit_code == 1
    assert "missed: blocks: with both" in result.stdout
    assert "more, see --json" in result.stdout
    assert re.fullmatch(
        r"nvfp4-quantiser: \d+ coverage goals were not met, the first: blocks: .*", str(result.exception)
    )
