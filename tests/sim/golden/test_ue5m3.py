"""Blocks with UE5M3 scales: codes, quantiser, check vectors, and steps against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import rational
from vectors import BLOCK_A, BLOCK_B

from sim import golden
from sim.golden import parts

FORMS = ("fp4-ue5m3-b16", "fp4-ue5m3-b32")
forms = pytest.mark.parametrize("form", FORMS)
SCALE = golden.block_format(FORMS[0]).scale


def test_every_scale_is_what_its_fields_say():
    """No library has the format: the definition once more, and E4M3's values, which are the same but for the bias."""
    for code in range(255):
        exponent, mantissa = code >> 3, Fraction(code & 7, 8)
        expected = (1 + mantissa) * Fraction(2) ** (exponent - 15) if exponent else mantissa * Fraction(2) ** -14
        assert SCALE.table[code] == expected
    assert np.isnan(SCALE.table[255])
    np.testing.assert_array_equal(SCALE.table[:127] * 2.0**8, golden.decode_ue4m3(np.arange(127, dtype=np.uint8)))


def test_scales_are_rounded_to_the_nearest_ties_to_even_and_clamped():
    numbers = SCALE.table[:255]
    ties = (numbers[1:] + numbers[:-1]) / 2
    codes = np.arange(254)
    np.testing.assert_array_equal(SCALE.encode(numbers), np.arange(255))
    np.testing.assert_array_equal(SCALE.encode(ties), codes + codes % 2)
    np.testing.assert_array_equal(SCALE.encode(np.nextafter(ties, 0)), codes)
    np.testing.assert_array_equal(SCALE.encode(np.nextafter(ties, np.inf)), codes + 1)
    assert SCALE.encode(np.array([114689.0, 1e30])).tolist() == [0xFE, 0xFE]


@pytest.mark.parametrize(
    ("block", "scale", "codes"),
    [(BLOCK_A, 0x76, "0923D6017F04B5E1"), (BLOCK_B, 0x79, "7F6E54A17FD3095E")],
)
def test_check_vectors(block, scale, codes):
    """Those of NVFP4 with a tensor scale of 1, but for the bias of the scale."""
    q = golden.quantize([block], FORMS[0])
    assert q.tensor_scale == 1
    assert q.scales.tolist() == [[scale]]
    assert "".join(f"{code:X}" for code in q.codes[0]) == codes
    nvfp4 = golden.quantize([block], "nvfp4", tensor_scale=1)
    np.testing.assert_array_equal(golden.dequantize(q), golden.dequantize(nvfp4))


@forms
def test_quantised_as_defined(form):
    """A scalar quantiser: scale and code nearest in exact arithmetic, of two the even one."""
    size = golden.block_format(form).block
    rng = np.random.default_rng(size)
    x = rng.standard_t(2, (6, 2 * size)) * 2.0 ** np.array([-24, -17, -5, 0, 12, 23])[:, None]
    q = golden.quantize(x, form)
    assert {0x00, 0xFE} < set(q.scales.ravel().tolist())  # too small, and beyond the largest
    scales = [Fraction(float(v)) for v in SCALE.table[:255]]
    grid = [abs(v) for v in rational.E2M1[:8]]

    def nearest(value, table):
        return min(range(len(table)), key=lambda code: (abs(table[code] - value), code % 2))

    for row, column in np.ndindex(q.scales.shape):
        block = [Fraction(float(v)) for v in x[row, size * column : size * (column + 1)]]
        # The division is one of float64.
        byte = nearest(Fraction(float(max(map(abs, block))) / 6), scales)
        unit = scales[byte]
        codes = [nearest(Fraction(float(abs(v)) / float(unit)), grid) if unit else 0 for v in block]
        codes = [code + 8 * (v < 0) if code else 0 for code, v in zip(codes, block, strict=True)]
        assert q.scales[row, column] == (byte if any(codes) else 0)
        assert q.codes[row, size * column : size * (column + 1)].tolist() == codes


def draw(form, rng, groups):
    """Steps that meet zero, NaN, subnormal and largest scales, blocks of zeros, and C of every kind."""
    size = golden.block_format(form).block
    codes = rng.integers(0, 16, (2, 3, groups, size), np.uint8)
    codes[rng.random(codes.shape[:3]) < 0.2] = 0
    any_scale = rng.integers(0, 255, (2, 3, groups), np.uint8)
    ends = rng.choice(np.array([0, 0, 1, 7, 8, 0xF0, 0xFE], np.uint8), any_scale.shape)
    scales = np.where(rng.random() < 0.5, any_scale, ends)
    scales[rng.random(scales.shape) < 0.02] = 0xFF
    c = rng.integers(0, 1 << 32, (3, 3), np.uint32)
    near = c & 0x807FFFFF | rng.integers(127 - 70, 127 + 60, c.shape, np.uint32) << 23
    # The exponents at which a zero scale would show if it had one, 126 below its partner's.
    small = c & 0x807FFFFF | rng.integers(0, 20, c.shape, np.uint32) << 23
    c = np.choose(rng.integers(0, 3, c.shape), [c, near, small]).astype(np.uint32)
    codes = codes.reshape(2, 3, -1)
    return codes[0], scales[0], codes[1], scales[1], c.view(np.float32)


@forms
@pytest.mark.parametrize("empty_blocks", golden.EMPTY_BLOCKS)
def test_steps_are_those_of_rational_arithmetic(form, empty_blocks):
    rng = np.random.default_rng(2)
    for count in range(24):
        groups = 1 + count % 3
        options = {
            "empty_blocks": empty_blocks,
            "fraction_bits": (35, 23, 38)[count % 3],
            "rounding": golden.ROUNDINGS[count % 2],
        }
        inputs = draw(form, rng, groups)
        expected = rational.outputs(*inputs, forms=(form, form), **options)
        np.testing.assert_array_equal(golden.step(*inputs, a=form, b=form, **options).view(np.uint32), expected)
        a, a_scales, b, b_scales, c = (x.tolist() for x in (*inputs[:4], inputs[4].view(np.uint32)))
        assert parts.step(a[0], a_scales[0], b[1], b_scales[1], c[0][1], a=form, b=form, **options) == expected[0, 1]


@forms
def test_a_zero_scale_takes_no_part(form):
    """The smallest C passes by a block of zero scale, whatever its partner."""
    size = golden.block_format(form).block
    codes, zero, largest = np.full((1, size), 7, np.uint8), np.array([[0x00]], np.uint8), np.array([[0xFE]], np.uint8)
    for bits in (0x00000001, 0x807FFFFF, 0x00800001, 0x02FFFFFF):
        c = np.array([[bits]], np.uint32)
        d = golden.step(codes, zero, codes, largest, c.view(np.float32), a=form, b=form)
        assert d.view(np.uint32)[0, 0] == bits


def test_exact_sums_are_beyond_the_model():
    q = golden.quantize(np.ones((1, 16)), FORMS[0])
    with pytest.raises(golden.ArgumentError, match="numerics 'exact': the products of one block of fp4-ue5m3-b16"):
        golden.gemm(q, q, numerics="exact")


def test_blocks_of_two_sizes_do_not_meet():
    left, right = (golden.quantize(np.ones((1, 32)), form) for form in FORMS)
    with pytest.raises(golden.ArgumentError, match="a has blocks of 16 and b of 32; they must be equal"):
        golden.gemm(left, right)
