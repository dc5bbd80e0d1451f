"""A layer through quantiser and core: a small one by hand, and one of all-MiniLM-L6-v2."""

import math

import numpy as np
import pytest

from sim import accuracy, golden
from sim.accuracy.layer import GEMMS, WITHOUT_WEIGHTS, Datapath, Layer, deviation
from sim.accuracy.noise import lost
from sim.golden import ArgumentError

SENTENCES = ["one two three", "four", "three three one four two one"]
HEADS, TOKENS = 2, (5, 3, 8)


@pytest.fixture(scope="module")
def layer(small):
    return Layer(small, SENTENCES, 1)


@pytest.fixture(scope="module")
def path(layer):
    """MixFP4 with all products of one run, and that run."""
    path = Datapath(layer, golden.Quantiser("mixfp4"), kept=GEMMS)
    return path, layer.run(path.multiply)


def test_the_layers_of_an_encoder_are_its_embedding(small, layer):
    """The last layer's output, averaged, is what the encoder gives."""
    means = np.array([layer.reference.output[sum(TOKENS[:i]) :][:count].mean(axis=0) for i, count in enumerate(TOKENS)])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_array_equal(means / lengths, small.embed(SENTENCES))


def test_all_gemms_of_a_layer(layer):
    assert list(layer.reference.gemms) == list(GEMMS)
    shapes = {
        kind: [(*gemm.d.shape, gemm.x.shape[1]) for gemm in gemms] for kind, gemms in layer.reference.gemms.items()
    }
    assert shapes["query"] == shapes["key"] == shapes["value"] == shapes["projection"] == [(16, 8, 8)]
    assert (shapes["intermediate"], shapes["output"]) == ([(16, 12, 8)], [(16, 8, 12)])
    assert shapes["scores"] == [(tokens, tokens, 4) for tokens in TOKENS for _ in range(HEADS)]
    assert shapes["context"] == [(tokens, 4, tokens) for tokens in TOKENS for _ in range(HEADS)]
    for gemms in layer.reference.gemms.values():
        for gemm in gemms:
            np.testing.assert_allclose(gemm.d, gemm.x.astype(np.float64) @ gemm.w.T, atol=1e-5)


def test_only_gemms_go_through_the_hardware(layer):
    """With products in FP32 nothing changes; with one of them zero all that depends on it does."""
    again = layer.run(lambda kind, x, w: x @ w.T)
    np.testing.assert_array_equal(again.output, layer.reference.output)
    without = layer.run(lambda kind, x, w: np.zeros((len(x), len(w)), np.float32) if kind == "output" else x @ w.T)
    np.testing.assert_array_equal(without.gemms["intermediate"][0].d, again.gemms["intermediate"][0].d)
    assert np.abs(without.output - again.output).max() > 0.1


def test_a_product_is_that_of_quantiser_and_core(layer, path):
    """By the definition: hardware quantiser for activations, float64 for weights, the golden GEMM."""
    unit = golden.Quantiser("mixfp4")
    datapath, run = path
    assert list(datapath.products) == list(run.gemms)
    for kind, gemms in run.gemms.items():
        captured = layer.reference.gemms[kind]
        scales = [
            unit.tensor_scale(np.concatenate([np.ravel(each) for each in side])[None])
            for side in ([gemm.x for gemm in captured], [gemm.w for gemm in captured])
        ]
        for gemm, kept in zip(gemms, datapath.products[kind], strict=True):
            x, w = (golden.padded(each) for each in (gemm.x, gemm.w))
            a = unit.quantize(x, scales[0]).tensor
            b = unit.quantize(w, scales[1]).tensor if kind in WITHOUT_WEIGHTS else golden.quantize(w, "mixfp4")
            expected = golden.gemm(a, b, blocks_per_step=1)
            np.testing.assert_array_equal(gemm.d, expected)
            assert (kept.w.values is None) == (kind not in WITHOUT_WEIGHTS)
            np.testing.assert_array_equal(kept.d, expected)
            np.testing.assert_array_equal(kept.x.tensor.codes, a.codes)
            np.testing.assert_array_equal(kept.w.tensor.scales, b.scales)


def test_in_float64(layer, path):
    """The other quantiser, with the tensor scales of the hardware."""
    exact = Datapath(layer, golden.Quantiser("mixfp4"), kept=["query"], in_float64=True)
    (gemm,) = layer.reference.gemms["query"]
    exact.multiply("query", gemm.x, gemm.w)
    ((x, w, d),) = exact.products["query"]
    scale = golden.Quantiser("mixfp4").tensor_scale(gemm.x)
    expected = golden.quantize(golden.padded(gemm.x), "mixfp4", tensor_scale=scale)
    np.testing.assert_array_equal(x.tensor.codes, expected.codes)
    assert x.tensor.tensor_scale == scale
    assert (x.values, exact.blocks) == (None, 0)
    np.testing.assert_array_equal(d, golden.gemm(expected, w.tensor, blocks_per_step=1))


def test_a_calibrated_scale_may_saturate(layer):
    """What is larger than all of the calibration has the largest scale, and is counted."""
    datapath = Datapath(layer, golden.Quantiser("nvfp4"))
    gemm = layer.reference.gemms["query"][0]
    datapath.multiply("query", gemm.x, gemm.w)
    assert (datapath.blocks, datapath.saturated) == (16, 0)
    datapath.multiply("query", gemm.x * np.float32(1.2), gemm.w)
    assert datapath.blocks == 32
    assert 1 <= datapath.saturated < 16
    assert datapath.products == {}


def test_deviation():
    one = np.array([[3, 4], [0, 0]], np.float32)
    found = deviation([one, one[:1]], [np.array([[4, 3], [0, 0]], np.float32), one[:1]])
    assert found.energies == accuracy.Energies(50.0, 2.0)
    assert found.similarity == pytest.approx((24 / 25 + 1 + 1) / 3)
    assert found.worst == pytest.approx(24 / 25)
    # Columns of energy 9 and 16 with noise of 1; the others have none.
    assert found.median == math.inf
    wide = np.array([[1, 2, 3, 0]], np.float32)
    assert deviation([wide], [wide + np.array([1, 1, 1, 0])]).median == pytest.approx(10 * math.log10(4))
    beside_zeros = deviation([one], [np.array([[3, 4], [1, 0]], np.float32)])
    assert beside_zeros.worst == 0


def test_no_such_layer(small):
    with pytest.raises(ArgumentError, match="layer must be 0 to 1; got 2"):
        Layer(small, SENTENCES, 2)
    with pytest.raises(ArgumentError, match="a sentence or more"):
        Layer(small, [], 0)


@pytest.fixture(scope="module")
def first(trained):
    """The first layer of the trained model."""
    return Layer(accuracy.minilm(), accuracy.SENTENCES, 0)


def test_one_channel_has_nearly_all_of_the_energy(first):
    """As docs/layer.md says; so the ratio of energies says little of the other channels."""
    (gemm,) = first.reference.gemms["output"]
    energies = np.square(gemm.d.astype(np.float64)).sum(axis=0)
    assert energies.max() / energies.sum() == pytest.approx(0.985, abs=5e-4)


@pytest.mark.parametrize(("kind", "ratio", "median"), [("query", 1.22, 0.79), ("output", 0.97, 0.36)])
def test_noise_of_a_trained_layers_product_is_that_of_its_operands(first, kind, ratio, median):
    """Errors of activations and of weights know nothing of each other, nor of the terms: their energies add up.

    The signal is that of terms with random signs times what docs/layer.md states of how they cancel out.
    """
    (gemm,) = first.reference.gemms[kind]
    x, w, d = (np.square(each.astype(np.float64)) for each in gemm)
    terms = x @ w.T
    assert d.sum() / terms.sum() == pytest.approx(ratio, abs=0.006)
    assert np.median(d.sum(axis=0) / terms.sum(axis=0)) == pytest.approx(median, abs=0.006)
    found = {}
    for form in ("nvfp4", "mixfp4"):
        path = Datapath(first, golden.Quantiser(form), kept=[kind])
        path.multiply(kind, gemm.x, gemm.w)
        (product,) = path.products[kind]
        pairs = ((gemm.x, product.x.tensor), (gemm.w, product.w.tensor))
        noise = sum(10 ** (-lost(*pair).decibels / 10) for pair in pairs)
        alone = found[form] = deviation([gemm.d], [product.d])
        if kind == "query":
            assert alone.energies.decibels == pytest.approx(10 * math.log10(ratio / noise), abs=0.3)
        assert alone.median == pytest.approx(10 * math.log10(median / noise), abs=1.5)
    assert found["nvfp4"].median < found["mixfp4"].median
