"""Activations in FP16, beside weights that are quantised."""

import numpy as np
import pytest

from sim import accuracy, golden
from sim.accuracy.half import half, half_energies, half_signal_to_noise
from sim.accuracy.noise import Part
from sim.accuracy.trained import DRAWS, weights_alone


@pytest.mark.parametrize(
    ("x", "wanted"),
    [
        (1 + 2.0**-11, 1.0),  # a tie goes to the even one
        (1 + 3 * 2.0**-11, 1 + 2 * 2.0**-10),
        (-(1 + 1.01 * 2.0**-11), -(1 + 2.0**-10)),
        (65504.0, 65504.0),
        (65519.0, 65504.0),
        (3 * 2.0**-25, 2 * 2.0**-24),  # subnormal
        (2.0**-25, 0.0),
        (0.0, 0.0),
    ],
)
def test_numbers_are_rounded_once(x, wanted):
    assert half(np.array([x])) == wanted


def test_what_fp16_does_not_reach():
    with pytest.raises(golden.ArgumentError, match="x has magnitude 65520: FP16 has numbers below 65520"):
        half(np.array([1.0, -65520.0]))


def test_energies_are_of_what_rounding_changes():
    x = np.array([[1 + 2.0**-12, 3.0], [0.5, -1 - 2.0**-12]])
    found = half_energies(x)
    assert found == accuracy.Energies(np.square(x).sum(), 2 * 2.0**-24)
    assert half_energies(Part(x, np.array([False, True]))) == accuracy.Energies(np.square(x[:, 1]).sum(), 2.0**-24)


def test_eleven_bits_of_significand_have_as_much_whatever_the_tensor():
    """Uniform rounding errors of up to half a unit would give 6.02 * 11 + 7.4 dB, scales of two to the power apart."""
    found = [half_signal_to_noise(kind) for kind in accuracy.KINDS]
    assert 73 < min(found) <= max(found) < 74.5


@pytest.mark.parametrize(
    ("form", "rule"), [("int4", "unscaled"), ("int4", "by-row"), ("int4", "by-group"), ("nvfp4", None)]
)
def test_weights_alone_are_quantised(form, rule):
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 200), (7, 200)))
    found = weights_alone(form, rule)("layer", x, w)
    assert found.dtype == np.float32
    # What quantised weights are is what the error of the format says: with activations of 1 at one place it is they.
    eye = np.eye(200, dtype=np.float32)
    weights = weights_alone(form, rule)("layer", eye, w).T.astype(np.float64)
    noise = np.square(weights - w).sum()
    assert noise == pytest.approx(accuracy.energies(w, form, rule).noise, rel=1e-4)
    np.testing.assert_allclose(found, half(x) @ weights.T, rtol=1e-4, atol=1e-4)
    other = weights_alone(form, rule, draw=1)("layer", x, w)
    assert (other != found).any()
    np.testing.assert_allclose(other, found, atol=0.3 * np.abs(found).max())


def test_errors_of_weights(small):
    model = accuracy.Model(small, ["one two three", "four"])
    found = model.errors_of_weights("int4", "by-row")
    assert found.draws.shape == (DRAWS, 2)
    assert found.weights.mean == model.errors("int4", "by-row").weights.mean
    assert found.activations.mean > 60
    np.testing.assert_array_equal(found.draws[0], model.similarities(weights_alone("int4", "by-row")))
    # Of two sources of error one is left.
    assert model.errors("int4", "by-row").similarity < found.similarity < 1
