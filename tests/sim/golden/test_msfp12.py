"""MSFP12: one exponent for 16 numbers, by its definition in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from sim import golden


def blocks(rng):
    """Blocks whose largest numbers are powers of two, 1.75 times those, and their neighbours, among others."""
    tops = np.array([1.0, 1.75, 1.875, 1.99, 1.5, 1.25])[np.arange(60) % 6] * 2.0 ** rng.integers(-100, 100, 60)
    tops = np.where(rng.random(60) < 0.5, tops, np.nextafter(tops, np.where(rng.random(60) < 0.5, 0, np.inf)))
    x = rng.uniform(-1, 1, (60, 16)) * tops[:, None]
    x[:, 3] = tops * 0.375  # often a tie
    x[np.arange(60), rng.integers(0, 16, 60)] = tops
    return x


@pytest.mark.parametrize(("rule", "low", "high"), [("floor", 1, 2), ("ceil", Fraction(7, 8), Fraction(7, 4))])
def test_rules_against_their_definitions(rule, low, high):
    x = blocks(np.random.default_rng(1))
    q = golden.quantize(x, "msfp12", rule=rule)
    assert q.tensor_scale == 1
    for row, scale, codes in zip(x.tolist(), q.scales[:, 0].tolist(), q.codes.tolist(), strict=True):
        unit = Fraction(2) ** (scale - 127)
        largest = Fraction(max(map(abs, row))) / unit
        assert low <= largest < high if rule == "floor" else low < largest <= high
        for number, code in zip(row, codes, strict=True):
            quarters = min(round(abs(Fraction(number)) / unit * 4), 7)  # round() takes ties to the even integer
            assert code == quarters + 8 * (number < 0 < quarters)


def test_storage_and_values():
    x = np.array([[1.75, -1.0, 0.25, -0.25] * 4, [0.0] * 16])
    q = golden.quantize(x, "msfp12")
    assert q.scales.tolist() == [[127], [0]]
    assert q.packed.shape == (2, 8)
    np.testing.assert_array_equal(golden.dequantize(q), x)
    again = golden.QuantizedTensor.from_packed(q.packed, q.scales, 1.0, "msfp12")
    np.testing.assert_array_equal(again.codes, q.codes)
    np.testing.assert_array_equal(golden.gemm(q, q), (x @ x.T).astype(np.float32))
