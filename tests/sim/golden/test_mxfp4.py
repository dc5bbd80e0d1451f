"""MXFP4: E8M0 scales, the rules floor and ceil, check vectors, and steps whose exponents leave those of FP32."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import rational
from vectors import BLOCK_A, BLOCK_B

from sim import golden
from sim.golden import parts

FORMS = ("mxfp4", "mxfp4-2x16")
SCALE = golden.block_format("mxfp4").scale


def test_every_scale_is_that_of_ml_dtypes():
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(SCALE.table, codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64))
    assert (SCALE.smallest, SCALE.largest, SCALE.zero) == (2.0**-127, 2.0**127, None)


@pytest.mark.parametrize(
    ("rule", "block", "scale", "codes", "error"),
    [
        ("floor", BLOCK_A, 0x7F, "0922C5016F04A5E1", 1.717700),
        ("floor", BLOCK_B, 0x7F, "7F7E54A17FD30A6E", 3.630000),
        ("ceil", BLOCK_A, 0x7F, "0922C5016F04A5E1", 1.717700),
        ("ceil", BLOCK_B, 0x80, "6D5C32905DB2094C", 3.830000),
    ],
)
def test_check_vectors(rule, block, scale, codes, error):
    """The other 16 numbers of the block are zero."""
    q = golden.quantize([block + [0.0] * 16], "mxfp4", rule=rule)
    assert (q.scales.tolist(), q.tensor_scale) == ([[scale]], 1)
    assert "".join(f"{code:X}" for code in q.codes[0]) == codes + "0" * 16
    assert np.square(golden.dequantize(q)[0, :16].astype(np.float64) - block).sum() == pytest.approx(error, abs=5e-7)


@pytest.mark.parametrize("rule", ["floor", "ceil"])
def test_rules_against_their_definitions(rule):
    """Exact arithmetic; among the largest numbers are powers of two, 6 times those, and their neighbours."""
    rng = np.random.default_rng(1)
    tops = np.array([1.0, 4.0, 6.0, 7.99, 3.0, 5.0])[np.arange(60) % 6] * 2.0 ** rng.integers(-100, 100, 60)
    tops = np.where(rng.random(60) < 0.5, tops, np.nextafter(tops, np.where(rng.random(60) < 0.5, 0, np.inf)))
    x = rng.uniform(-1, 1, (60, 32)) * tops[:, None]
    x[np.arange(60), rng.integers(0, 32, 60)] = tops
    q = golden.quantize(x, "mxfp4", rule=rule)
    grid = [abs(value) for value in rational.E2M1[:8]]
    for row, scale, codes in zip(x.tolist(), q.scales[:, 0].tolist(), q.codes.tolist(), strict=True):
        largest = Fraction(max(map(abs, row)))
        unit = Fraction(2) ** (scale - 127)
        if rule == "floor":
            assert 4 <= largest / unit < 8
        else:
            assert 3 < largest / unit <= 6
        nearest = [
            min(range(8), key=lambda code, v=v: (abs(grid[code] - abs(Fraction(v)) / unit), code % 2)) for v in row
        ]
        assert codes == [code + 8 * (v < 0) if code else 0 for code, v in zip(nearest, row, strict=True)]


def test_numbers_beyond_the_scales():
    """Floor has NaN for what no scale reaches, ceil saturates; below the smallest both have that."""
    x = np.zeros((5, 32))
    x[:, 0] = 0.0, 2.0**-140, 1.75 * 2.0**-125, 1.5 * 2.0**129, 2.0**130
    floor, ceil = (golden.quantize(x, "mxfp4", rule=rule) for rule in ("floor", "ceil"))
    assert floor.scales[:, 0].tolist() == [0, 0, 0, 254, 255]
    assert floor.codes[:, 0].tolist() == [0, 0, 7, 7, 0]
    assert ceil.scales[:, 0].tolist() == [0, 0, 1, 254, 254]
    assert ceil.codes[:, 0].tolist() == [0, 0, 6, 7, 7]
    assert np.isnan(golden.dequantize(floor)[4]).all()


def test_the_default_is_floor():
    x = np.random.default_rng(2).standard_normal((8, 64))
    for form in FORMS:
        default, floor, ceil = (golden.quantize(x, form, rule=rule) for rule in (None, "floor", "ceil"))
        np.testing.assert_array_equal(default.scales, floor.scales)
        assert (floor.scales != ceil.scales).any()
    with pytest.raises(
        golden.ArgumentError, match="rule must be one of 'floor', 'ceil', 'least-error' for mxfp4; got 'nearest'"
    ):
        golden.quantize(x, "mxfp4", rule="nearest")


def draw(rng, groups):
    """Steps whose sums lie anywhere, many about the smallest and the largest FP32 numbers, and C near them."""
    codes = rng.integers(0, 16, (2, 2, groups, 32), np.uint8)
    codes[rng.random(codes.shape[:3]) < 0.2] = 0
    total = rng.choice([rng.integers(-160, -115), rng.integers(105, 135), rng.integers(-254, 255)]) + 254
    first = rng.integers(max(0, total - 254), min(254, total) + 1)
    scales = np.array([first, total - first])[:, None, None] + rng.integers(-20, 21, (2, 2, groups))
    scales = np.clip(scales, 0, 254).astype(np.uint8)
    scales[rng.random(scales.shape) < 0.01] = 0xFF
    c = rng.integers(0, 1 << 32, (2, 2), np.uint32)
    near = np.clip(total - 127 + rng.integers(-30, 30, c.shape), 0, 254).astype(np.uint32)
    c = np.where(rng.random(c.shape) < 0.3, c, c & 0x807FFFFF | near << 23).astype(np.uint32)
    codes = codes.reshape(2, 2, -1)
    return codes[0], scales[0], codes[1], scales[1], c.view(np.float32)


@pytest.mark.parametrize("form", FORMS)
def test_steps_are_those_of_rational_arithmetic(form):
    rng = np.random.default_rng(3)
    kinds = set()
    for count in range(90):
        groups = 1 + count % 3
        options = {
            "empty_blocks": golden.EMPTY_BLOCKS[count // 6 % 2],
            "fraction_bits": (35, 23, 38)[count // 3 % 3],
            "rounding": golden.ROUNDINGS[count % 2],
        }
        inputs = draw(rng, groups)
        expected = rational.outputs(*inputs, forms=(form, form), **options)
        np.testing.assert_array_equal(golden.step(*inputs, a=form, b=form, **options).view(np.uint32), expected)
        stack = golden.step(*(x[None] for x in inputs), a=form, b=form, **options)[0]
        np.testing.assert_array_equal(stack.view(np.uint32), expected)
        a, a_scales, b, b_scales, c = (x.tolist() for x in (*inputs[:4], inputs[4].view(np.uint32)))
        assert parts.step(a[0], a_scales[0], b[1], b_scales[1], c[0][1], a=form, b=form, **options) == expected[0, 1]
        magnitude = expected & 0x7FFFFFFF
        kinds |= {"subnormal"} if ((magnitude > 0) & (magnitude < 1 << 23)).any() else set()
        kinds |= {"infinite"} if (magnitude == 0x7F800000).any() else set()
        kinds |= {"normal"} if ((magnitude >> 23 > 0) & (magnitude >> 23 < 255)).any() else set()
        assert not (expected == 1 << 31).any()
    assert kinds == {"subnormal", "infinite", "normal"}


def test_a_chain_that_overflows_stays_infinite():
    codes = np.full((1, 64), 7, np.uint8)
    scales = np.array([[254, 100]], np.uint8)
    q = golden.QuantizedTensor(codes, scales, np.float32(1), "mxfp4")
    one = golden.QuantizedTensor(codes, np.full((1, 2), 127, np.uint8), np.float32(1), "mxfp4")
    assert golden.accumulate(q, one, blocks_per_step=1).view(np.uint32)[0, 0] == 0x7F800000
    assert golden.accumulate(q, one, blocks_per_step=2).view(np.uint32)[0, 0] == 0x7F800000


def test_parts_of_a_block_are_truncated_each_for_itself():
    """Two halves whose sum is a last place kept, beside C: together they count, apart they do not."""
    codes, ones = np.zeros((1, 32), np.uint8), np.full((1, 32), 2, np.uint8)
    codes[0, [0, 16]] = 1
    scale, one = np.array([[127 - 35]], np.uint8), np.array([[127]], np.uint8)
    c = np.array([[-1.0]], np.float32)
    # One half-unit each: 2^-36, with emax 0 and 35 bits kept.
    found = [golden.step(codes, scale, ones, one, c, a=form, b=form)[0, 0] for form in FORMS]
    assert found == [-1 + 2.0**-24, -1]


def test_gemm_and_its_storage():
    """Where nothing leaves FP32 a product is what float64 says, rounded."""
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal((rows, 96)) for rows in (5, 7))
    for form in FORMS:
        qx, qy = golden.quantize(x, form), golden.quantize(y, form, rule="ceil")
        wanted = golden.dequantize(qx).astype(np.float64) @ golden.dequantize(qy).astype(np.float64).T
        np.testing.assert_allclose(golden.gemm(qx, qy, blocks_per_step=2), wanted, rtol=1e-6, atol=1e-6)
        again = golden.QuantizedTensor.from_packed(qx.packed, qx.scales, 1.0, form)
        np.testing.assert_array_equal(again.codes, qx.codes)
        # A step may have more blocks than the last one fills: what it is filled with has scales of 2^-127.
        np.testing.assert_array_equal(golden.gemm(qx, qy, blocks_per_step=4), golden.gemm(qx, qy, blocks_per_step=3))
    with pytest.raises(golden.ArgumentError, match="a adds up blocks in 1 sums and b in 2; they must be equal"):
        golden.gemm(golden.quantize(x, "mxfp4"), golden.quantize(y, "mxfp4-2x16"))
    assert math.isinf(float(golden.gemm(*[golden.quantize(np.full((1, 32), 2.0**100), "mxfp4")] * 2)[0, 0]))
