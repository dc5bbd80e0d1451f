"""A scale for each row, or each group of one, of formats whose blocks have none."""

import numpy as np
import pytest

from sim import accuracy, golden
from sim.accuracy.rows import BY_GROUP, BY_ROW, GROUP, OUTSIDE, by_part, of_weights, rules, spread, together

INT8 = golden.CATALOGUE["int8"]


@pytest.mark.parametrize("rule", OUTSIDE)
def test_formats_without_block_scales_have_it(rule):
    assert {name for name, form in golden.CATALOGUE.items() if rule in rules(form)} == {"int8", "int4", "ternary"}
    with pytest.raises(golden.ArgumentError, match="for a tensor scale without block scales; nvfp4 has another"):
        by_part(np.ones((1, 16)), golden.CATALOGUE["nvfp4"], rule)


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_each_row_is_quantised_as_a_tensor_of_its_own(name):
    form = golden.CATALOGUE[name]
    x = np.random.default_rng(1).standard_normal((6, 40)) * 2.0 ** np.arange(-6, 6, 2)[:, None]
    x[3] = 0
    q, scales = by_part(x, form, BY_ROW)
    assert (q.tensor_scale, scales.dtype, scales.shape) == (1, np.float32, (6, 1))
    for row in range(6):
        alone = golden.quantize_padded(x[row : row + 1], name)
        np.testing.assert_array_equal(q.codes[row], alone.codes[0])
        assert scales[row] == alone.tensor_scale
    rows = [accuracy.energies(x[row : row + 1], name) for row in range(6)]
    found = accuracy.energies(x, name, BY_ROW)
    assert found.noise == pytest.approx(sum(each.noise for each in rows))
    assert found.decibels > accuracy.energies(x, name).decibels


@pytest.mark.parametrize("k", [2 * GROUP, 2 * GROUP + 40, 40])
def test_each_group_is_quantised_as_a_tensor_of_its_own(k):
    """The last one of a row may be shorter."""
    form = golden.CATALOGUE["int4"]
    x = np.random.default_rng(1).standard_normal((3, k)) * 2.0 ** np.arange(-3, 3, 2)[:, None]
    x[1, :GROUP] = 0
    q, scales = by_part(x, form, BY_GROUP)
    assert scales.shape == (3, -(-k // GROUP))
    noise = 0.0
    for row, group in np.ndindex(scales.shape):
        own = x[row : row + 1, GROUP * group : GROUP * (group + 1)]
        alone = golden.quantize_padded(own, "int4")
        at = slice(GROUP * group, GROUP * group + alone.codes.shape[1])
        np.testing.assert_array_equal(q.codes[row, at], alone.codes[0])
        assert scales[row, group] == alone.tensor_scale
        noise += accuracy.energies(own, "int4").noise
    assert accuracy.energies(x, "int4", BY_GROUP).noise == pytest.approx(noise)


def test_elements_have_the_scales_of_their_groups():
    scales = np.array([[1, 2], [3, 4]], np.float32)
    np.testing.assert_array_equal(spread(scales, GROUP + 1)[:, [0, GROUP - 1, GROUP]], [[1, 1, 2], [3, 3, 4]])
    np.testing.assert_array_equal(spread(scales[:, :1], 40), [[1], [3]])


@pytest.mark.parametrize("weights", ["int8", "ternary"])
@pytest.mark.parametrize("rule", OUTSIDE)
def test_results_have_the_scales_of_both_operands(rule, weights):
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal((rows, GROUP + 64)).astype(np.float32) for rows in (5, 7))
    d = accuracy.quantised("int8", rule, weights)("layer", x, w)
    (a, rows) = by_part(x, INT8, rule)
    if weights == "int8":
        b, columns = by_part(w, INT8, rule)
    else:
        b, columns = golden.quantize(w, weights), np.ones((7, 1), np.float32)
    exact = (a.form.values(a.codes, a.scales) * spread(rows, a.codes.shape[1])) @ (
        b.form.values(b.codes, b.scales) * b.core_scale * spread(columns, b.codes.shape[1])
    ).T
    np.testing.assert_allclose(d, exact, rtol=1e-5, atol=1e-5)
    assert (np.abs(d - x @ w.T).max() < 1) == (weights == "int8")


def test_weights_that_have_a_scale_for_a_tensor_keep_it():
    """Ternary weights have their mean magnitude as the scale, which is no row's."""
    for rule in OUTSIDE:
        assert of_weights(rule, golden.CATALOGUE["int4"]) == rule
        assert of_weights(rule, golden.CATALOGUE["ternary"]) is None
    assert of_weights("unscaled", golden.CATALOGUE["int4"]) == "unscaled"


def test_two_formats_have_the_rules_of_both():
    """MixFP4 has no four-over-six, so that weights keep their default beside it."""
    nvfp4, mixfp4, int8, ternary = (golden.CATALOGUE[name] for name in ("nvfp4", "mixfp4", "int8", "ternary"))
    assert rules(nvfp4) == ("nearest", "four-over-six", "least-error")
    assert together(nvfp4, mixfp4) == ("least-error",)
    assert [of_weights(rule, mixfp4) for rule in rules(nvfp4)] == ["nearest", None, "least-error"]
    assert together(int8, ternary) == OUTSIDE
    assert together(golden.CATALOGUE["mxfp8-e4m3"], golden.CATALOGUE["mxfp4"]) == ("ceil", "least-error")
    # What is the default of one alone is no rule of both.
    assert together(ternary, int8) == OUTSIDE


def test_rows_too_large_for_a_scale_are_named():
    with pytest.raises(golden.ArgumentError, match="scales of rows must be within the float32 range"):
        by_part(np.full((1, 16), 1e300), INT8, BY_ROW)
