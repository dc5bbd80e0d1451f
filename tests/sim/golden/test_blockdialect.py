"""BlockDialect: its tables, its scale, and the dialect of least error, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import rational

from sim import golden

FORM = golden.block_format("blockdialect")


def test_tables():
    """The top falls by a half every second dialect; one of them is E2M1, and none has a number twice."""
    tops = [element.largest for element in FORM.elements]
    assert tops == [(15 - index // 2) / 2 for index in range(16)]
    assert FORM.elements[7].values == golden.block_format("nvfp4").elements[0].values
    for element in FORM.elements:
        assert len(set(element.values)) == 15
    for element, table in zip(FORM.elements, rational.DIALECTS, strict=True):
        assert list(element.values) == table


def candidate(block, exponent, table):
    """Squared error and codes of a block in one dialect; a tie goes to the even code."""
    unit = Fraction(2) ** exponent
    grid = [abs(value) * unit for value in table[:8]]
    codes = [min(range(8), key=lambda c, x=x: (abs(grid[c] - abs(x)), c % 2)) for x in block]
    error = sum((grid[c] - abs(x)) ** 2 for c, x in zip(codes, block, strict=True))
    return error, [c + 8 if x < 0 and c else c for c, x in zip(codes, block, strict=True)]


def test_choices_against_exact_arithmetic():
    rng = np.random.default_rng(1)
    x = rng.integers(-63, 64, (60, 32)) / 8
    x[::3] = rng.integers(-15, 16, (20, 32)) / 2  # many equal errors
    x[::4, 3:] = 0
    x[:, 0] = rng.choice([7.5, 4.0, 7.99, 5.5, 6.0], 60)
    x *= 2.0 ** rng.integers(-12, 12, (60, 1))
    q = golden.quantize(x, "blockdialect")
    assert (q.scales.dtype, q.tensor_scale) == (np.uint16, 1)
    assert len(set((q.scales >> 5).ravel().tolist())) > 8
    equal = 0
    for row, word, codes in zip(x.tolist(), q.scales[:, 0].tolist(), q.codes.tolist(), strict=True):
        block = [Fraction(number) for number in row]
        exponent = int(np.floor(np.log2(max(map(abs, row))))) - 2
        found = [candidate(block, exponent, table) for table in rational.DIALECTS]
        best = min(range(16), key=lambda index: found[index][0])  # the first of equal ones
        equal += sum(error == found[best][0] for error, _ in found) > 1
        assert (word, codes) == (exponent + 15 | best << 5, found[best][1])
    assert equal > 5


def test_numbers_beyond_the_scales():
    x = np.zeros((4, 32))
    x[1:, 0] = 2.0**-20, 7.5 * 2.0**16, 2.0**20
    q = golden.quantize(x, "blockdialect")
    assert (q.scales[:, 0] & 31).tolist() == [0, 0, 31, 31]
    assert golden.dequantize(q)[:, 0].tolist() == [0, 0, 7.5 * 2.0**16, 7.5 * 2.0**16]
    with pytest.raises(
        golden.ArgumentError, match="rule must be one of 'floor', 'least-error' for blockdialect; got 'ceil'"
    ):
        golden.quantize(x, "blockdialect", rule="ceil")


def test_storage_and_products():
    rng = np.random.default_rng(2)
    qx, qy = (golden.quantize(rng.standard_normal((rows, 96)), "blockdialect") for rows in (5, 7))
    wanted = golden.dequantize(qx).astype(np.float64) @ golden.dequantize(qy).astype(np.float64).T
    np.testing.assert_allclose(golden.gemm(qx, qy, blocks_per_step=2), wanted, rtol=1e-6, atol=1e-5)
    with pytest.raises(golden.ArgumentError, match="numerics 'exact': the products of one block of blockdialect"):
        golden.gemm(qx, qy, numerics="exact")
    again = golden.QuantizedTensor.from_packed(qx.packed, qx.scales, 1.0, "blockdialect")
    np.testing.assert_array_equal(again.codes, qx.codes)
    with pytest.raises(golden.ArgumentError, match="scales must be uint16; got uint8"):
        golden.QuantizedTensor(qx.codes, qx.scales.astype(np.uint8), np.float32(1), "blockdialect")
    with pytest.raises(
        golden.ArgumentError, match=r"scales\[0, 0\] has bit 9 set, which has no meaning in blockdialect"
    ):
        golden.QuantizedTensor(qx.codes, qx.scales | np.uint16(1 << 9), np.float32(1), "blockdialect")
