"""Integers without block scales: their tensor scale alone makes them numbers."""

import numpy as np
import pytest

from sim import golden


@pytest.mark.parametrize(("form", "largest"), [("int8", 127), ("int4", 7)])
def test_the_largest_magnitude_becomes_the_largest_integer(form, largest):
    x = np.random.default_rng(1).standard_normal((4, 64))
    q = golden.quantize(x, form)
    assert q.tensor_scale == np.float32(np.abs(x).max() / largest)
    assert not q.scales.any()
    expected = np.clip(np.rint(x / np.float64(q.tensor_scale)), -largest, largest)
    np.testing.assert_array_equal(q.form.table[0][q.codes], expected)
    np.testing.assert_array_equal(golden.dequantize(q), (expected * np.float64(q.tensor_scale)).astype(np.float32))


def test_ternary_weights_have_their_mean_magnitude_as_scale():
    x = np.random.default_rng(2).standard_normal((4, 64))
    q = golden.quantize(x, "ternary")
    assert q.tensor_scale == np.float32(np.abs(x).mean())
    expected = np.clip(np.rint(x / np.float64(q.tensor_scale)), -1, 1)
    np.testing.assert_array_equal(q.form.table[0][q.codes], expected)
    assert 0.2 < (expected == 0).mean() < 0.45
    assert golden.quantize(x, "ternary", rule="unscaled").tensor_scale == np.float32(np.abs(x).max())


def test_gemms_are_those_of_integers():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 256, (8, 64), np.uint8)
    zeros = np.zeros((8, 4), np.uint8)
    a = golden.QuantizedTensor(codes, zeros, np.float32(1), "int8")
    ternary = golden.QuantizedTensor(codes & 3, zeros, np.float32(1), "ternary")
    wanted = codes.view(np.int8).astype(np.int64)
    weights = np.array([0, 1, 0, -1])[codes & 3]
    for b, other in ((a, wanted), (ternary, weights)):
        for numerics in golden.NUMERICS:
            np.testing.assert_array_equal(golden.gemm(a, b, numerics=numerics), wanted @ other.T)


def test_a_scale_where_there_is_none_is_refused():
    with pytest.raises(golden.ArgumentError, match=r"scales\[0, 1\] has bit 3 set, which has no meaning in int4"):
        golden.QuantizedTensor(np.zeros((1, 32), np.uint8), np.array([[0, 8]], np.uint8), np.float32(1), "int4")
    for form, rule in (("int8", "absmean"), ("ternary", "floor"), ("nvfp4", "unscaled")):
        with pytest.raises(golden.ArgumentError, match="rule must be one of"):
            golden.quantize(np.ones((1, 16)), form, rule=rule)
    with pytest.raises(
        golden.ArgumentError, match="scale_bytes must be 1, 2 or 4, or 0 where there is no scale; got 0"
    ):
        golden.BlockFormat("x", golden.CATALOGUE["nvfp4"].elements, golden.CATALOGUE["nvfp4"].scale, 1.0, scale_bytes=0)
