"""A scale for each row, of formats whose blocks have none."""

import numpy as np
import pytest

from sim import accuracy, golden
from sim.accuracy.rows import BY_ROW, by_row, of_weights, rules, together

INT8 = golden.CATALOGUE["int8"]


def test_formats_without_block_scales_have_it():
    assert {name for name, form in golden.CATALOGUE.items() if BY_ROW in rules(form)} == {"int8", "int4", "ternary"}
    with pytest.raises(golden.ArgumentError, match="for formats without block scales; nvfp4 has them"):
        by_row(np.ones((1, 16)), golden.CATALOGUE["nvfp4"])


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_each_row_is_quantised_as_a_tensor_of_its_own(name):
    form = golden.CATALOGUE[name]
    x = np.random.default_rng(1).standard_normal((6, 40)) * 2.0 ** np.arange(-6, 6, 2)[:, None]
    x[3] = 0
    q, scales = by_row(x, form)
    assert (q.tensor_scale, scales.dtype) == (1, np.float32)
    for row in range(6):
        alone = golden.quantize_padded(x[row : row + 1], name)
        np.testing.assert_array_equal(q.codes[row], alone.codes[0])
        assert scales[row] == alone.tensor_scale
    rows = [accuracy.energies(x[row : row + 1], name) for row in range(6)]
    found = accuracy.energies(x, name, BY_ROW)
    assert found.noise == pytest.approx(sum(each.noise for each in rows))
    assert found.decibels > accuracy.energies(x, name).decibels


def test_results_have_the_scales_of_both_rows():
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal((rows, 64)).astype(np.float32) for rows in (5, 7))
    d = accuracy.quantised("int8", BY_ROW)("layer", x, w)
    (a, rows), (b, columns) = by_row(x, INT8), by_row(w, INT8)
    whole = a.form.values(a.codes, a.scales) @ b.form.values(b.codes, b.scales).T
    np.testing.assert_allclose(d, whole * rows[:, None] * columns, rtol=1e-6)
    assert np.abs(d - x @ w.T).max() < 0.5


def test_weights_that_have_a_scale_for_a_tensor_keep_it():
    """Ternary weights have their mean magnitude as the scale, which is no row's."""
    assert of_weights(BY_ROW, golden.CATALOGUE["int4"]) == BY_ROW
    assert of_weights(BY_ROW, golden.CATALOGUE["ternary"]) is None
    assert of_weights("unscaled", golden.CATALOGUE["int4"]) == "unscaled"


def test_two_formats_have_the_rules_of_both():
    """MixFP4 has no four-over-six, so that weights keep their default beside it."""
    nvfp4, mixfp4, int8, ternary = (golden.CATALOGUE[name] for name in ("nvfp4", "mixfp4", "int8", "ternary"))
    assert rules(nvfp4) == ("nearest", "four-over-six", "least-error")
    assert together(nvfp4, mixfp4) == ("least-error",)
    assert [of_weights(rule, mixfp4) for rule in rules(nvfp4)] == ["nearest", None, "least-error"]
    assert together(int8, ternary) == (BY_ROW,)
    assert together(golden.CATALOGUE["mxfp8-e4m3"], golden.CATALOGUE["mxfp4"]) == ("ceil", "least-error")
    # What is the default of one alone is no rule of both.
    assert together(ternary, int8) == (BY_ROW,)


def test_rows_too_large_for_a_scale_are_named():
    with pytest.raises(golden.ArgumentError, match="scales of rows must be within the float32 range"):
        by_row(np.full((1, 16), 1e300), INT8)
