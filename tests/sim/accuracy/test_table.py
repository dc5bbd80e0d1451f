"""The table of errors, and docs/accuracy.md, which states it."""

import doctest
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from sim import accuracy, golden, tensors
from sim.golden import rules

PAGE = Path(__file__).parents[3] / "docs" / "accuracy.md"


def stated(columns):
    """Figures of the page's table with so many columns of them, by format and rule."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"\| `([\w-]+)` \| `([\w-]+)` ((?:\| [\d.]+ )+)\|", line)
        if match and match[3].count("|") == columns:
            found[match[1], match[2]] = [float(cell) for cell in match[3].split("|")[1:]]
    return found


def test_rows_are_what_their_parts_say(small):
    model = accuracy.Model(small, ["one two", "three four"])
    inputs = {"mine": tensors.generate("gaussian", (3, 40), 1), "zero": np.zeros((2, 32)), "exact": np.ones((2, 32))}
    seen = []
    rows = accuracy.table(
        [("mxfp4", "ceil"), ("nvfp4", "four-over-six")], inputs, model, lambda *each: seen.append(each)
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]
    (dialect,) = accuracy.table([("blockdialect", "floor")], {})
    assert dialect.bits == 4.5  # 9 bits of a block of 32, in two bytes
    for row, bits in zip(rows, (4.25, 4.5), strict=True):
        assert row.bits == bits
        assert row.decibels["mine"] == accuracy.energies(inputs["mine"], row.format, row.rule).decibels
        np.testing.assert_array_equal(row.model.similarities, model.errors(row.format, row.rule).similarities)
        found = json.loads(json.dumps(row.as_dict(), allow_nan=False))
        assert found["sqnr_db"]["mine"] == row.decibels["mine"]
        assert found["sqnr_db"]["zero"] is None
        assert found["model"]["weights_sqnr_db"] == {"mean": row.model.weights.mean, "worst": row.model.weights.worst}
        assert found["model"]["embedding_similarity"]["worst"] == min(row.model.similarities)
    assert math.isinf(rows[0].decibels["exact"])
    assert rows[0].as_dict()["sqnr_db"]["exact"] is None
    (row,) = accuracy.table([("nvfp4", "nearest")], {}, model, weights="mixfp4")
    np.testing.assert_array_equal(row.model.similarities, model.errors("nvfp4", None, "mixfp4").similarities)
    assert row.as_dict()["model"]["weights_format"] == "mixfp4"
    assert "model" not in accuracy.table([("nvfp4", "nearest")], inputs)[0].as_dict()


def test_the_page_prints_what_it_says():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried >= 5
    assert failed == 0


def test_the_page_states_the_figures_of_drawn_tensors():
    figures = stated(5)
    assert {*figures} == {*accuracy.CHOICES}
    drawn = accuracy.drawn()
    assert tuple(drawn) == accuracy.KINDS
    for (form, rule), (bits, *decibels) in figures.items():
        # What tries many tables or many scales takes long: one kind of tensors is enough.
        long = len(golden.CATALOGUE[form].elements) > 4 or (rule == "least-error" and form not in ("nvfp4", "mxfp4"))
        kinds = dict([*drawn.items()][:1]) if long else drawn
        (row,) = accuracy.table([(form, rule)], kinds)
        assert row.bits == bits
        for number, found in zip(decibels, row.decibels.values(), strict=kinds is drawn):
            assert found == pytest.approx(number, abs=0.0051)


def test_the_page_states_the_figures_of_the_trained_model(trained):
    figures = stated(7)
    assert {*figures} == {*stated(5)}
    for form in ("nvfp4", "mixfp4"):
        for inputs, start in ((trained.weights, 0), (trained.activations, 2)):
            found = accuracy.Noise({name: accuracy.energies(x, form) for name, x in inputs.items()})
            assert (found.mean, found.worst) == pytest.approx(figures[form, "nearest"][start : start + 2], abs=0.011)
    # One format all the way: products of a whole model take some seconds.
    found, expected = trained.errors("mxfp4", "floor"), figures["mxfp4", "floor"]
    decibels = [number for noise in (found.weights, found.activations) for number in (noise.mean, noise.worst)]
    assert decibels == pytest.approx(expected[:4], abs=0.011)
    # Sums in FP32 may differ in order from machine to machine.
    assert found.similarity == pytest.approx(expected[4], abs=0.001)
    assert found.worst_similarity == pytest.approx(expected[5], abs=0.01)
    assert found.standard_error == pytest.approx(expected[6], abs=0.0005)


def test_the_page_of_the_formats_has_the_tensor_scale_of_every_one():
    """By the default rule; the page of errors refers to it."""
    text = PAGE.with_name("golden.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| `([\w-]+)` \|.*\| (none|mean magnitude|max / \d+) \|[^|]*\|$", text, re.M)
    assert {form for form, _ in lines} == set(golden.CATALOGUE)
    for form, scale in lines:
        rule = rules.rules(golden.CATALOGUE[form])[0]
        divisor = rules.tensor_divisor(golden.CATALOGUE[form], rule)
        assert scale == ("none" if divisor is None else "mean magnitude" if rule == "absmean" else f"max / {divisor:g}")
