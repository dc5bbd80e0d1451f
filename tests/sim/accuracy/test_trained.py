"""Errors on a model: a small one by hand, and all-MiniLM-L6-v2."""

import math

import numpy as np
import pytest

from sim import accuracy, golden, tensors
from sim.accuracy.trained import DRAWS, quantised

SENTENCES = ["one two three", "four", "three three one four two one"]


@pytest.fixture(scope="module")
def model(small):
    return accuracy.Model(small, SENTENCES)


def test_weights_and_activations_of_linear_layers(model, small, small_weights):
    assert list(model.weights) == list(small.linear)
    assert all(model.weights[name] is small_weights[name] for name in small.linear)
    expected = [name for name in small.linear if not name.endswith(("key.weight", "value.weight"))]
    assert list(model.activations) == expected
    seen = {}
    small.embed(SENTENCES, lambda name, x, w: seen.setdefault(name, x) @ w.T)
    for name in expected:
        np.testing.assert_array_equal(model.activations[name], seen[name])


def test_without_quantisation_nothing_is_lost(model):
    np.testing.assert_allclose(model.similarities(lambda name, x, w: x @ w.T), 1, atol=1e-12)


def test_errors(model):
    found = model.errors("nvfp4")
    for noise, inputs in ((found.weights, model.weights), (found.activations, model.activations)):
        each = [accuracy.energies(x, "nvfp4").decibels for x in inputs.values()]
        assert noise.mean == pytest.approx(sum(each) / len(each))
        assert noise.worst == min(each) < noise.mean

    def product(name, x, w):
        a, b = (golden.dequantize(golden.quantize(golden.padded(each), "nvfp4")) for each in (x, w))
        return a @ b.T

    expected = model.similarities(product)
    np.testing.assert_allclose(found.draws[0], expected, atol=1e-4)  # two ways to add up
    assert found.draws.shape == (DRAWS, 3)
    np.testing.assert_array_equal(found.similarities, found.draws.mean(axis=0))
    assert found.worst_similarity == found.similarities.min() < found.similarity < 0.9999
    sentences, draws = (np.var(found.draws.mean(axis=axis), ddof=1) for axis in (0, 1))
    assert found.standard_error == pytest.approx(math.sqrt(sentences / 3 + draws / DRAWS))
    assert found.spread == pytest.approx(math.sqrt(draws))
    once = model.errors("nvfp4", draws=1)
    np.testing.assert_array_equal(once.draws, found.draws[:1])
    assert once.standard_error == pytest.approx(np.std(once.similarities, ddof=1) / math.sqrt(3))
    assert math.isnan(once.spread)
    alone = accuracy.ModelErrors(found.weights, found.activations, found.draws[:, :1])
    assert math.isnan(alone.standard_error)


@pytest.mark.parametrize(
    ("form", "rule"), [("nvfp4", "four-over-six"), ("mxfp4", "floor"), ("int8", "by-row"), ("mxfp8-e4m3", "ceil")]
)
def test_a_draw_has_scales_that_are_a_little_larger(form, rule):
    """Same arguments, same draw; each has errors of its own, and about as many."""
    x, w = (tensors.generate("gaussian", shape, seed) for seed, shape in enumerate(((64, 256), (96, 256))))
    exact = x.astype(np.float64) @ w.T.astype(np.float64)
    found = [accuracy.quantised(form, rule, None, draw)("layer", x, w) for draw in (0, 1, 1, 2)]
    noise = [np.square(each - exact).sum() for each in found]
    np.testing.assert_array_equal(found[1], found[2])
    assert len({*noise}) == 3
    assert max(noise) < 1.1 * min(noise)
    other = accuracy.quantised(form, rule, None, 1)("another", x, w)
    assert np.square(other - exact).sum() != noise[1]


def test_codes_that_are_added_are_drawn_once(model):
    assert model.errors("l-mul", "floor").draws.shape == (1, 3)


def test_weights_of_another_format(model):
    found = model.errors("nvfp4", "four-over-six", "nvint4")
    four_over_six, nvint4 = model.errors("nvfp4", "four-over-six"), model.errors("nvint4")
    assert found.activations == four_over_six.activations
    assert found.weights == nvint4.weights != four_over_six.weights
    seen = []

    def product(name, x, w):
        a, b = (
            golden.quantize(golden.padded(x), "nvfp4", rule="four-over-six"),
            golden.quantize(golden.padded(w), "nvint4"),
        )
        seen.append(name)
        return golden.gemm(a, b)

    np.testing.assert_array_equal(found.draws[0], model.similarities(product))
    assert len(seen) == 12
    for other, sums in (("mxfp4", 32), ("mxfp4-2x16", 16)):
        with pytest.raises(golden.ArgumentError, match=f"got nvfp4 16 in sums of 16 and {other} 32 in sums of {sums}"):
            model.errors("nvfp4", weights=other)


@pytest.mark.parametrize(("form", "rule"), [("nvfp4", None), ("mxfp4", "ceil"), ("if4", None)])
def test_a_product_is_the_golden_models(form, rule):
    """Of independent numbers, the relative noise of a product is the sum of those of its operands."""
    x, w = (tensors.generate("gaussian", shape, seed) for seed, shape in enumerate(((64, 768), (96, 768))))
    d = accuracy.quantised(form, rule)("layer", x, w).astype(np.float64)
    qx, qw = (golden.quantize(each, form, rule=rule) for each in (x, w))
    groups = 64 // golden.block_format(form).lanes
    np.testing.assert_array_equal(d.astype(np.float32), golden.gemm(qx, qw, blocks_per_step=groups))
    exact = x.astype(np.float64) @ w.T.astype(np.float64)
    noise = np.square(d - exact).sum() / np.square(exact).sum()
    expected = sum(10 ** (-accuracy.energies(each, form, rule).decibels / 10) for each in (x, w))
    assert noise == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        *(("int4", rule) for rule in (None, "by-row", "by-group")),
        *(("nvfp4", rule) for rule in (None, "four-over-six", "least-error")),
        *(("mixfp4", None), ("mxfp4", None), ("mxfp4", "ceil")),
    ],
)
def test_weights_alone_are_quantised(form, rule):
    """Beside FP16, which has no scale whatever the weights have; some of these no core takes, and sums are exact."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 200), (7, 200)))
    found = quantised("fp16", rule, form)("layer", x, w)
    assert found.dtype == np.float32
    # What quantised weights are is what the error of the format says: with activations of 1 at one place it is they.
    weights = quantised("fp16", rule, form)("layer", np.eye(200, dtype=np.float32), w).T.astype(np.float64)
    noise = np.square(weights - w).sum()
    assert noise == pytest.approx(accuracy.energies(w, form, rule).noise, rel=1e-4)
    np.testing.assert_allclose(found, x.astype(np.float16).astype(np.float64) @ weights.T, rtol=1e-4, atol=1e-4)
    other = quantised("fp16", rule, form, draw=1)("layer", x, w)
    assert (other != found).any()
    np.testing.assert_allclose(other, found, atol=0.3 * np.abs(found).max())


def test_a_rule_is_that_of_what_has_scales():
    x = np.random.default_rng(4).standard_normal((3, 64)).astype(np.float32)
    assert quantised("int8", "by-row", "fp16")("layer", x, x).shape == (3, 3)
    for rule, weights, said in (
        ("typo", "int4", "rule must be one of 'unscaled' for int4; got 'typo'"),
        ("by-row", "nvfp4", "rule 'by-row' is for a tensor scale without block scales; nvfp4 has another"),
    ):
        with pytest.raises(golden.ArgumentError, match=said):
            quantised("fp16", rule, weights)("layer", x, x)


def test_errors_of_weights_alone(model):
    found = model.errors("fp16", "by-row", "int4")
    assert found.weights.mean == model.errors("int4", "by-row").weights.mean
    # Eleven bits of significand: uniform errors of up to half a unit would give 6.02 * 11 + 7.4 dB.
    assert 73 < found.activations.mean < 74.5
    # Of two sources of error one is left.
    assert model.errors("int4", "by-row").similarity < found.similarity < 1


def test_the_sentences():
    assert len(accuracy.SENTENCES) == len(set(accuracy.SENTENCES)) == 20


def test_a_layer_of_the_trained_model_in_two_arithmetics(trained):
    """The golden model against sums in float64: what rounds to FP32 on the way is far below quantisation."""
    name = "encoder.layer.0.output.dense.weight"  # the largest outliers are here
    x, w = trained.activations[name], trained.weights[name]
    d = accuracy.quantised("mixfp4")(name, x, w).astype(np.float64)
    a, b = (golden.dequantize(golden.quantize(each, "mixfp4")).astype(np.float64) for each in (x, w))
    difference = np.linalg.norm(d - a @ b.T) / np.linalg.norm(d)
    assert 0 < difference < 1e-6


def test_the_trained_model(trained):
    assert len(trained.weights) == 36
    assert len(trained.activations) == 24
    np.testing.assert_allclose(np.linalg.norm(trained.embeddings, axis=1), 1, atol=1e-6)
    # The two pairs that say the same are nearest to each other.
    close = trained.embeddings @ trained.embeddings.T - 2 * np.eye(20)
    for one, other in ((0, 1), (6, 7)):
        assert close[one].argmax() == other
        assert close[other].argmax() == one
