"""Steps and GEMMs against exact rational arithmetic, bit for bit."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import rational
from hypothesis import given, settings
from hypothesis import strategies as st
from rational import NAN, float_bits

from sim import golden
from sim.golden import parts
from sim.golden.element import E2M1, ElementFormat
from sim.golden.scale import ScaleFormat

UE4M3 = golden.CATALOGUE["nvfp4"].scale
FORMATS = ("nvfp4", "mixfp4", "nvint4")
PAIRS = list(product(FORMATS, repeat=2))


def reference_step(*inputs, a="mixfp4", b="mixfp4", **options):
    """As `golden.step`, but for the bits in place of the numbers."""
    return rational.outputs(*inputs, forms=(a, b), **options)


def assert_bits(ours: np.ndarray, expected: np.ndarray) -> None:
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours.view(np.uint32), expected)


# Distributions of inputs. Each returns codes (rows, 16 G) or scale bytes (rows, G).

ZERO_OR_TINY = [0x00, 0x80, 0x01, 0x07, 0x08, 0x81, 0x88]


def any_codes(rng, rows, groups):
    return rng.integers(0, 16, (rows, 16 * groups), dtype=np.uint8)


def sparse_codes(rng, rows, groups):
    codes = any_codes(rng, rows, groups)
    return np.where(rng.random(codes.shape) < 0.15, codes, rng.choice([0, 8], codes.shape)).astype(np.uint8)


def extreme_codes(rng, rows, groups):
    """Blocks of one code: all largest, all zero, or all smallest."""
    return np.repeat(rng.choice([0, 1, 7, 9, 15], (rows, groups)), 16, axis=1).astype(np.uint8)


def cancelling_codes(rng, rows, groups):
    """The second half of each block is the negative of the first; often one lane is off."""
    half = any_codes(rng, rows * groups, 1)[:, :8]
    codes = np.concatenate([half, half ^ 8], axis=1)
    codes[rng.random(len(codes)) < 0.5, 3] = 1
    return codes.reshape(rows, 16 * groups)


def any_scales(rng, rows, groups):
    """Every byte but NaN, and rarely NaN."""
    scales = rng.integers(0, 256, (rows, groups), dtype=np.uint8)
    rare = rng.random((rows, groups)) < 0.01
    return np.where(rare | (scales & 0x7F != 0x7F), scales, 0x38).astype(np.uint8)


def finite_scales(rng, rows, groups):
    return (rng.integers(0, 127, (rows, groups)) | rng.choice([0, 128], (rows, groups))).astype(np.uint8)


def far_apart_scales(rng, rows, groups):
    """Largest and smallest: the widest alignment shifts there are."""
    return rng.choice([0x7E, 0xFE, 0x78, *ZERO_OR_TINY], (rows, groups)).astype(np.uint8)


def zero_scales(rng, rows, groups):
    return rng.choice([0x00, 0x80, 0x00, 0x7E], (rows, groups)).astype(np.uint8)


def any_c(rng, m, n):
    return rng.integers(0, 1 << 32, (m, n), dtype=np.uint32).view(np.float32)


def near_c(rng, m, n):
    """Exponents at which C and the groups truncate each other or just not."""
    exponents = rng.integers(127 - 60, 127 + 60, (m, n), dtype=np.uint32)
    return (rng.integers(0, 1 << 32, (m, n), dtype=np.uint32) & 0x807FFFFF | exponents << 23).view(np.float32)


def special_c(rng, m, n):
    patterns = [0, 1 << 31, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF]
    patterns += [0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000, NAN, 0x3F800000]
    return rng.choice(np.array(patterns, np.uint32), (m, n)).view(np.float32)


CODES = [any_codes, sparse_codes, extreme_codes, cancelling_codes]
SCALES = [any_scales, finite_scales, far_apart_scales, zero_scales]
CS = [any_c, near_c, special_c]


def draw_step(rng, groups, m=4, n=4):
    codes, scales, c = rng.choice(CODES, 2), rng.choice(SCALES, 2), rng.choice(CS)
    return (
        codes[0](rng, m, groups),
        scales[0](rng, m, groups),
        codes[1](rng, n, groups),
        scales[1](rng, n, groups),
        c(rng, m, n),
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 300),
        ({"a": "nvfp4", "b": "nvfp4"}, 100),
        ({"rounding": "nearest_even"}, 150),
        ({"empty_blocks": "excluded"}, 300),
        ({"empty_blocks": "excluded", "rounding": "nearest_even", "fraction_bits": 40}, 100),
        ({"fraction_bits": 24}, 100),
        ({"fraction_bits": 28, "rounding": "nearest_even", "a": "nvfp4", "b": "nvfp4"}, 100),
        ({"fraction_bits": 40}, 100),
        ({"fraction_bits": 40, "rounding": "nearest_even"}, 100),
        ({"fraction_bits": 1}, 40),
        ({"fraction_bits": 1, "empty_blocks": "excluded"}, 40),
        ({"fraction_bits": 10, "rounding": "nearest_even"}, 40),
    ],
)
def test_step_is_exact(groups, options, count):
    rng = np.random.default_rng(groups)
    for _ in range(count):
        inputs = draw_step(rng, groups)
        assert_bits(golden.step(*inputs, **options), reference_step(*inputs, **options))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("empty_blocks", golden.EMPTY_BLOCKS)
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_step_of_every_pair_is_exact(a, b, empty_blocks):
    rng = np.random.default_rng(3)
    for groups, fraction_bits in product((1, 4), (35, 39, golden.max_fraction_bits(4, a, b))):
        options = {"a": a, "b": b, "empty_blocks": empty_blocks, "fraction_bits": fraction_bits}
        for _ in range(25):
            inputs = draw_step(rng, groups)
            assert_bits(golden.step(*inputs, **options), reference_step(*inputs, **options))


def test_empty_blocks_show_only_where_a_block_is_empty():
    """A block of zeros under a large scale raises emax by 16, and C loses a last bit beside a small product."""
    codes, scales = np.zeros((1, 32), np.uint8), np.array([[0x38, 0x7E]], np.uint8)
    codes[0, 0] = 2  # 1 times 1 in the first block, zeros times 448 * 448 in the second
    c = np.array([[-(2.0**-20)]], np.float32)
    included, excluded = (
        golden.step(codes, scales, codes, scales, c, fraction_bits=35, empty_blocks=which)
        for which in golden.EMPTY_BLOCKS
    )
    assert included[0, 0] == 1  # multiples of 2^(16 - 35) only
    assert excluded[0, 0] == np.float32(1 - 2.0**-20)
    codes[0, 16] = 1  # no longer empty
    assert_bits(
        golden.step(codes, scales, codes, scales, c, empty_blocks="excluded"),
        golden.step(codes, scales, codes, scales, c).view(np.uint32),
    )


@pytest.mark.parametrize("rounding", golden.ROUNDINGS)
def test_c_that_cancels_the_products(rounding):
    """C is the negative of the step's own result, give or take an ulp."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        a, a_scales, b, b_scales, _ = draw_step(rng, 4)
        zero = np.zeros((4, 4), np.float32)
        c = -golden.step(a, a_scales, b, b_scales, zero, rounding=rounding)
        c = np.where(np.isnan(c), zero, c)
        bits = c.view(np.uint32) + rng.integers(-1, 2, c.shape).astype(np.uint32) * (c != 0)
        inputs = a, a_scales, b, b_scales, bits.astype(np.uint32).view(np.float32)
        ours = golden.step(*inputs, rounding=rounding)
        assert_bits(ours, reference_step(*inputs, rounding=rounding))


@pytest.mark.parametrize("exponent", range(-20, 60))
def test_every_alignment_of_c(exponent):
    rng = np.random.default_rng(exponent + 20)
    bits = rng.integers(0, 1 << 23, (4, 4), dtype=np.uint32) | np.uint32(127 + exponent << 23)
    inputs = any_codes(rng, 4, 2), finite_scales(rng, 4, 2), any_codes(rng, 4, 2), finite_scales(rng, 4, 2)
    assert_bits(
        golden.step(*inputs, bits.view(np.float32)),
        reference_step(*inputs, bits.view(np.float32)),
    )


@pytest.mark.parametrize("fraction_bits", [24, 27, 31, 35, 40])
def test_the_last_bit_of_alignment(fraction_bits):
    """The smallest product, 2^-20, is taken from ever larger powers of two until it no longer counts."""
    codes, scales = np.zeros((1, 64), np.uint8), np.zeros((1, 4), np.uint8)
    codes[0, 16], scales[0, 1] = 1, 0x01
    last = fraction_bits - 20  # exponent of the last C that is changed
    for exponent in range(last - 5, last + 6):
        c = np.array([[-(2.0**exponent)]], np.float32)
        d = golden.step(codes, scales, codes, scales, c, fraction_bits=fraction_bits)
        below = np.nextafter(c, np.float32(0)) if exponent >= 4 else np.float32(2.0**-20) + c
        assert_bits(d, (below if exponent <= last else c).view(np.uint32))


@pytest.mark.parametrize("fraction_bits", [24, 27, 31, 35, 40])
def test_the_last_bit_of_c(fraction_bits):
    """2^0 or more in the products, and a C that shrinks until it no longer counts."""
    codes, scales = np.zeros((1, 64), np.uint8), np.zeros((1, 4), np.uint8)
    codes[0, 16], scales[0, 1] = 2, 0x38  # 1 times 1, so that emax is 0
    one = np.array([[1]], np.float32)
    for exponent in range(-fraction_bits - 4, -23):
        c = np.array([[-(2.0**exponent)]], np.float32)
        d = golden.step(codes, scales, codes, scales, c, fraction_bits=fraction_bits)
        counts = exponent >= -fraction_bits
        assert_bits(d, (np.nextafter(one, np.float32(0)) if counts else one).view(np.uint32))


def test_an_empty_block_cuts_products_where_c_is_zero():
    """The smallest product, 2^-20, beside a block of zeros under the largest scales: emax is 16, and 16 - 35 = -19."""
    codes, scales = np.zeros((1, 32), np.uint8), np.array([[0x01, 0x7E]], np.uint8)
    codes[0, 0] = 1
    c = np.zeros((1, 1), np.float32)
    q = golden.QuantizedTensor(codes, scales, np.float32(1), "nvfp4")
    for which, expected in zip(golden.EMPTY_BLOCKS, (0, 2.0**-20), strict=True):
        assert golden.step(codes, scales, codes, scales, c, empty_blocks=which)[0, 0] == expected
        assert golden.accumulate(q, q, None, 2, empty_blocks=which)[0, 0] == expected


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_step_is_exact_on_anything(data):
    groups = data.draw(st.sampled_from([1, 2, 4]))
    byte, code = st.integers(0, 255), st.integers(0, 15)
    a, b = (np.array([data.draw(st.lists(code, min_size=16 * groups, max_size=16 * groups))], np.uint8) for _ in "ab")
    a_scales, b_scales = (
        np.array([data.draw(st.lists(byte, min_size=groups, max_size=groups))], np.uint8) for _ in "ab"
    )
    c = np.array([[data.draw(st.integers(0, 2**32 - 1))]], np.uint32).view(np.float32)
    bits = data.draw(st.integers(1, golden.max_fraction_bits(groups)))
    options = {
        "fraction_bits": bits,
        "rounding": data.draw(st.sampled_from(golden.ROUNDINGS)),
        "empty_blocks": data.draw(st.sampled_from(golden.EMPTY_BLOCKS)),
        "a": data.draw(st.sampled_from(FORMATS)),
        "b": data.draw(st.sampled_from(FORMATS)),
    }
    inputs = a, a_scales, b, b_scales, c
    assert_bits(golden.step(*inputs, **options), reference_step(*inputs, **options))


def test_largest_sum_at_the_largest_fraction_bits():
    for groups in (1, 2, 4, 8, 128):
        bits = golden.max_fraction_bits(groups)
        codes, scales = np.full((1, 16 * groups), 7, np.uint8), np.full((1, groups), 0x7F - 8, np.uint8)
        scales[0, -1] = 0x7E
        c = np.array([[2.0**16 - 2.0**-8]], np.float32)
        for rounding in golden.ROUNDINGS:
            options = {"fraction_bits": bits, "rounding": rounding}
            ours = golden.step(codes, scales, codes, scales, c, **options)
            assert_bits(ours, reference_step(codes, scales, codes, scales, c, **options))
    assert golden.max_fraction_bits(4) == golden.max_fraction_bits(4, "nvfp4", "mixfp4") == 40
    assert golden.max_fraction_bits(4, "nvint4", "nvint4") == 41


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_largest_sum_of_every_pair(a, b):
    """Every element at its largest magnitude: the bound on fraction bits is on the sum of such blocks."""
    bits = golden.max_fraction_bits(8, a, b)
    codes, scales = np.full((1, 128), 7, np.uint8), np.full((1, 8), 0x7F - 8, np.uint8)
    scales[0, -1] = 0x7E
    options = {"fraction_bits": bits, "rounding": "nearest_even", "a": a, "b": b}
    c = np.array([[2.0**16 - 2.0**-8]], np.float32)
    assert_bits(
        golden.step(codes, scales, codes, scales, c, **options),
        reference_step(codes, scales, codes, scales, c, **options),
    )


@pytest.mark.parametrize("tag", [0x00, 0x80])
def test_zero_scales_hand_c_through(tag):
    rng = np.random.default_rng(0)
    c = any_c(rng, 8, 8)
    c[np.isnan(c)] = -0.0
    zeros = np.full((8, 4), tag, np.uint8)
    d = golden.step(any_codes(rng, 8, 4), zeros, any_codes(rng, 8, 4), finite_scales(rng, 8, 4), c)
    assert_bits(d, (c + np.float32(0)).view(np.uint32))


def test_nan_wins_over_infinity_and_is_canonical():
    codes, scales = np.ones((2, 16), np.uint8), np.array([[0x38], [0xFF]], np.uint8)
    c = np.array([[np.inf, -np.inf], [np.inf, np.nan]], np.float32)
    d = golden.step(codes, scales, codes, scales, c)
    np.testing.assert_array_equal(d.view(np.uint32), [[0x7F800000, NAN], [NAN, NAN]])


def test_inputs_are_left_alone():
    inputs = draw_step(np.random.default_rng(5), 4)
    before = [x.copy().view(np.uint8) for x in inputs]
    golden.step(*inputs)
    for x, y in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(x.view(np.uint8), y)


def test_an_nvfp4_tensor_is_a_mixfp4_tensor():
    rng = np.random.default_rng(9)
    qa = golden.quantize(rng.standard_normal((16, 64)), "nvfp4")
    qb = golden.quantize(rng.standard_normal((24, 64)), "nvfp4")
    c = rng.standard_normal((16, 24)).astype(np.float32)
    operands = qa.codes, qa.scales, qb.codes, qb.scales, c
    plain = golden.step(*operands, a="nvfp4", b="nvfp4")
    assert_bits(golden.step(*operands), plain.view(np.uint32))
    assert_bits(golden.step(*operands, a="nvfp4"), plain.view(np.uint32))
    # Where there is no tag, bit 7 has no meaning.
    tagged = qa.codes, qa.scales | 0x80, qb.codes, qb.scales, c
    assert_bits(golden.step(*tagged, a="nvfp4", b="nvfp4"), plain.view(np.uint32))
    assert (golden.step(*tagged) != plain).any()


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(
    "options", [{}, {"rounding": "nearest_even", "fraction_bits": 39}, {"a": "nvfp4", "b": "nvint4"}]
)
def test_a_stack_of_steps_is_its_steps(groups, options):
    rng = np.random.default_rng(groups)
    drawn = [draw_step(rng, groups) for _ in range(60)]
    shape = min((step[-1].shape for step in drawn), default=(1, 1))
    steps = [step for step in drawn if step[-1].shape == shape]
    stacked = [np.stack(parts) for parts in zip(*steps, strict=True)]
    expected = np.stack([golden.step(*step, **options) for step in steps])
    assert_bits(golden.step(*stacked, **options), expected.view(np.uint32))
    without = {**options, "empty_blocks": "excluded"}
    expected_without = np.stack([golden.step(*step, **without) for step in steps])
    assert_bits(golden.step(*stacked, **without), expected_without.view(np.uint32))
    nested = [part[None, :, None] for part in stacked]
    assert_bits(golden.step(*nested, **options), expected[None, :, None].view(np.uint32))


def test_long_stacks_of_steps():
    """More steps than are computed at a time."""
    rng = np.random.default_rng(1)
    m, n, count = 70, 60, 40
    codes, right = (rng.integers(0, 16, (count, rows, 32), np.uint8) for rows in (m, n))
    scales, right_scales = (rng.integers(0, 256, (count, rows, 2), np.uint8) for rows in (m, n))
    c = rng.integers(0, 1 << 32, (count, m, n), np.uint32).view(np.float32)
    stacked = golden.step(codes, scales, right, right_scales, c)
    for index in range(count):
        assert_bits(
            stacked[index],
            golden.step(codes[index], scales[index], right[index], right_scales[index], c[index]).view(np.uint32),
        )


# GEMM


def quantized(rng, rows, blocks, codes=any_codes, scales=finite_scales, fmt="mixfp4"):
    mask = 0xFF if fmt == "mixfp4" else 0x7F
    return golden.QuantizedTensor(
        codes(rng, rows, blocks), scales(rng, rows, blocks) & mask, np.float32(rng.uniform(0.5, 2)), fmt
    )


def padded(array, length):
    return np.pad(array, ((0, 0), (0, length - array.shape[1])))


def chain(qa, qb, c, groups, **options):
    """The GEMM as a loop of steps."""
    for k in range(0, qa.scales.shape[1], groups):
        blocks, lanes = slice(k, k + groups), slice(16 * k, 16 * (k + groups))
        c = golden.step(
            padded(qa.codes[:, lanes], 16 * groups),
            padded(qa.scales[:, blocks], groups),
            padded(qb.codes[:, lanes], 16 * groups),
            padded(qb.scales[:, blocks], groups),
            c,
            a=qa.format,
            b=qb.format,
            **options,
        )
    return c


@pytest.mark.parametrize(
    ("m", "n", "blocks"),
    [(3, 5, 7), (1, 1, 9), (1, 40, 1), (33, 2, 6), (130, 70, 5), (1, 2000, 4), (700, 300, 8)],
)
@pytest.mark.parametrize(
    ("groups", "options"),
    [
        (1, {}),
        (4, {}),
        (4, {"rounding": "nearest_even"}),
        (3, {"fraction_bits": 24}),
        (16, {}),
        (4, {"empty_blocks": "excluded"}),
    ],
)
def test_gemm_is_a_chain_of_steps(m, n, blocks, groups, options):
    rng = np.random.default_rng(m + n + blocks)
    codes, scales = rng.choice(CODES), rng.choice(SCALES)
    qa, qb = (quantized(rng, rows, blocks, codes, scales) for rows in (m, n))
    for c in (np.zeros((m, n), np.float32), rng.choice(CS)(rng, m, n)):
        ours = golden.accumulate(qa, qb, c, groups, **options)
        assert_bits(ours, chain(qa, qb, c, groups, **options).view(np.uint32))


@pytest.mark.parametrize("groups", [1, 4])
def test_gemm_without_empty_blocks_where_they_abound(groups):
    """Blocks of zeros and sums that cancel, under scales far apart; C is what the steps before left."""
    rng = np.random.default_rng(21)
    options, differ = {"fraction_bits": 28}, 0
    for codes, scales in product((extreme_codes, cancelling_codes), (far_apart_scales, finite_scales)):
        qa, qb = (quantized(rng, rows, 13, codes, scales) for rows in (9, 11))
        for c in (np.zeros((9, 11), np.float32), near_c(rng, 9, 11)):
            ours = golden.accumulate(qa, qb, c, groups, empty_blocks="excluded", **options)
            assert_bits(ours, chain(qa, qb, c, groups, empty_blocks="excluded", **options).view(np.uint32))
            differ += (ours != golden.accumulate(qa, qb, c, groups, **options)).sum()
    assert differ > 0


@pytest.mark.parametrize("fmts", PAIRS)
def test_gemm_on_quantised_tensors_against_fractions(fmts):
    rng = np.random.default_rng(0)
    qa, qb = (golden.quantize(rng.standard_t(2, (4, 16 * 21)), fmt) for fmt in fmts)
    a, a_scales, b, b_scales = (x.tolist() for x in (qa.codes, qa.scales, qb.codes, qb.scales))
    expected = np.zeros((4, 4), np.uint32)
    for (m, n), _ in np.ndenumerate(expected):
        groups = rational.terms(a[m], a_scales[m], b[n], b_scales[n], fmts)
        for k in range(0, 21, 4):
            expected[m, n] = rational.step_output(groups[k : k + 4], int(expected[m, n]))
    d = golden.accumulate(qa, qb)
    assert_bits(d, expected)
    scale = float(qa.tensor_scale) * float(qb.tensor_scale)
    scaled = np.array([[np.float32(float(v) * scale) for v in row] for row in d])
    assert_bits(golden.gemm(qa, qb), scaled.view(np.uint32))


def test_gemm_takes_c_in_the_units_of_the_core():
    rng = np.random.default_rng(4)
    qa, qb = quantized(rng, 3, 4), quantized(rng, 2, 4)
    c = near_c(rng, 3, 2)
    d = golden.step(qa.codes, qa.scales, qb.codes, qb.scales, c)
    assert_bits(golden.accumulate(qa, qb, c), d.view(np.uint32))
    scaled = d.astype(np.float64) * (np.float64(qa.tensor_scale) * np.float64(qb.tensor_scale))
    assert_bits(golden.gemm(qa, qb, c), scaled.astype(np.float32).view(np.uint32))


def test_tensor_scales_can_overflow_and_keep_nan_canonical():
    codes, scales = np.full((2, 16), 7, np.uint8), np.array([[0x7E], [0x7F]], np.uint8)
    q = golden.QuantizedTensor(codes, scales, np.float32(1e30), "nvfp4")
    np.testing.assert_array_equal(golden.gemm(q, q).view(np.uint32), [[0x7F800000, NAN], [NAN, NAN]])


def exact_reference(qa, qb, c):
    forms = qa.format, qb.format
    return rational.outputs(qa.codes, qa.scales, qb.codes, qb.scales, c, output=rational.exact_output, forms=forms)


@pytest.mark.parametrize("draw_c", CS)
@pytest.mark.parametrize("draw_scales", SCALES)
@pytest.mark.parametrize("draw_codes", CODES)
def test_exact_gemm(draw_codes, draw_scales, draw_c):
    rng = np.random.default_rng(11)
    for blocks in (1, 5, 33):
        qa, qb = (quantized(rng, 4, blocks, draw_codes, draw_scales) for _ in "ab")
        c = draw_c(rng, 4, 4)
        assert_bits(golden.accumulate(qa, qb, c, numerics="exact"), exact_reference(qa, qb, c))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_exact_gemm_of_every_pair(a, b):
    rng = np.random.default_rng(16)
    for codes, scales, draw_c in product((any_codes, extreme_codes), (finite_scales, far_apart_scales), CS):
        qa, qb = (quantized(rng, 3, 40, codes, scales, fmt) for fmt in (a, b))
        c = draw_c(rng, 3, 3)
        assert_bits(golden.accumulate(qa, qb, c, numerics="exact"), exact_reference(qa, qb, c))


def test_exact_gemm_rounds_once_with_any_c():
    """C near the sum, half an ulp of it, and its ties: double rounding would show."""
    rng = np.random.default_rng(12)
    for _ in range(60):
        qa, qb = quantized(rng, 4, 3), quantized(rng, 4, 3)
        d = golden.accumulate(qa, qb, numerics="exact")
        half_ulp = np.spacing(np.abs(d)) / 2 * rng.choice([-1, 1], d.shape)
        nudge = rng.choice([0, 2.0**-40, -(2.0**-60)], d.shape)
        for c in (half_ulp, half_ulp * (1 + 2.0**-23), -d, nudge - d, d * 2.0**24, d * 2.0**-24):
            c = c.astype(np.float32)
            assert_bits(golden.accumulate(qa, qb, c, numerics="exact"), exact_reference(qa, qb, c))


def test_exact_gemm_does_not_depend_on_order():
    rng = np.random.default_rng(13)
    qa, qb = quantized(rng, 5, 100), quantized(rng, 6, 100)
    order = rng.permutation(100)

    def reordered(q):
        codes = q.codes.reshape(len(q.codes), -1, 16)[:, order].reshape(q.codes.shape)
        return golden.QuantizedTensor(codes, q.scales[:, order], q.tensor_scale, q.format)

    d = golden.gemm(qa, qb, numerics="exact")
    assert_bits(golden.gemm(reordered(qa), reordered(qb), numerics="exact"), d.view(np.uint32))
    assert (golden.gemm(reordered(qa), reordered(qb)) != golden.gemm(qa, qb)).any()


@pytest.mark.parametrize("blocks", [1 << 15, (1 << 17) + 3])
def test_exact_gemm_of_the_largest_terms(blocks):
    """The longer sum is beyond int64 in units of 2^-20; its last, smallest term decides the rounding."""
    codes = np.full((1, 16 * blocks), 7, np.uint8)
    scales = np.full((1, blocks), 0xFE, np.uint8)
    codes[0, -16:], scales[0, -1] = [1] + [0] * 15, 0x01
    q = golden.QuantizedTensor(codes, scales, np.float32(1), "mixfp4")
    total = (blocks - 1) * 16 * Fraction(7 * 448) ** 2 + Fraction(1, 4) * Fraction(1, 512) ** 2
    quantum = Fraction(2) ** (int(total).bit_length() - 24)
    # Brings the sum to a tie but for the last term.
    rest = total - Fraction(1, 4) * Fraction(1, 512) ** 2
    c = np.array([[float(rest // quantum * quantum + quantum / 2 - rest)]], np.float32)
    assert Fraction(float(c[0, 0])) == rest // quantum * quantum + quantum / 2 - rest
    expected = float_bits(total + Fraction(float(c[0, 0])), "nearest_even")
    assert_bits(golden.accumulate(q, q, c, numerics="exact"), np.array([[expected]], np.uint32))
    negative = golden.QuantizedTensor(codes ^ 8, scales, np.float32(1), "mixfp4")
    assert_bits(golden.accumulate(q, negative, -c, numerics="exact"), np.array([[expected | 1 << 31]], np.uint32))


def test_exact_is_close_to_blackwell():
    rng = np.random.default_rng(14)
    qa, qb = (golden.quantize(rng.standard_normal((32, 1024)), "mixfp4") for _ in "ab")
    exact, blackwell = (golden.gemm(qa, qb, numerics=numerics) for numerics in ("exact", "blackwell"))
    np.testing.assert_allclose(blackwell, exact, rtol=1e-4, atol=1e-4)
    product = golden.dequantize(qa).astype(np.float64) @ golden.dequantize(qb).astype(np.float64).T
    np.testing.assert_allclose(exact, product, rtol=1e-5, atol=1e-5)


# Formats of other widths, scales and blocks, which no core has yet: the bounds follow from the records.

E2M3_VALUES = [float(v) / 8 for v in (*range(17), *range(18, 32, 2), *range(32, 64, 4))]
E2M3 = ElementFormat("E2M3", 6, (*E2M3_VALUES, *(-v for v in E2M3_VALUES)), fold=-2)
INT8 = ElementFormat("INT8", 8, tuple(float(code - 256 if code > 127 else code) for code in range(256)), fold=1)
UE5M3 = ScaleFormat("UE5M3", 5, 3, 15, nan=0xFF)
E5M1 = ScaleFormat("E5M1", 5, 1, 15, subnormals=False)
OTHERS = [
    golden.BlockFormat("E2M3 under UE5M3", (E2M3,), UE5M3, 1.0, block=32),
    golden.BlockFormat("INT8 under E5M1", (INT8,), E5M1, 1.0, block=32),
]


@pytest.mark.parametrize("empty_blocks", golden.EMPTY_BLOCKS)
@pytest.mark.parametrize(("a", "b"), list(product(OTHERS, repeat=2)), ids=lambda form: form.name.replace(" ", "-"))
def test_steps_of_other_formats(a, b, empty_blocks):
    rng = np.random.default_rng(17)
    bits = golden.max_fraction_bits(2, a, b)
    for fraction_bits in (min(bits, 20), bits):
        for index in range(6):
            codes = [rng.integers(0, 1 << form.width, (3, 64), np.uint8) for form in (a, b)]
            scales = [rng.integers(0, 256, (3, 2), np.uint8) for _ in "ab"]
            if index % 2:
                codes[0][:, :32] = 0
            c = near_c(rng, 3, 3)
            options = {"a": a, "b": b, "fraction_bits": fraction_bits, "empty_blocks": empty_blocks}
            stacked = golden.step(codes[0], scales[0], codes[1], scales[1], c, **options)
            for (m, n), found in np.ndenumerate(stacked.view(np.uint32)):
                sides = [x.tolist() for x in (codes[0][m], scales[0][m], codes[1][n], scales[1][n])]
                assert found == parts.step(*sides, int(c.view(np.uint32)[m, n]), **options)


FOUR = golden.BlockFormat(
    "four",
    tuple(
        ElementFormat(f"E2M1 * {1 << fold}", 4, tuple(v * 2.0**fold for v in E2M1.values), fold) for fold in range(4)
    ),
    ScaleFormat("E3M3", 3, 3, 3),
    30.0 * 48,
    tag_bit=6,
)
"""The format of that name in `rational`."""


@pytest.mark.parametrize("empty_blocks", golden.EMPTY_BLOCKS)
@pytest.mark.parametrize(("a", "b"), [(FOUR, FOUR), (FOUR, "mixfp4"), ("nvint4", FOUR)], ids=["both", "a", "b"])
def test_steps_of_four_elements(a, b, empty_blocks):
    """A selector of two bits: every scale byte, against rational arithmetic."""
    rng = np.random.default_rng(19)
    names = tuple(golden.block_format(form).name for form in (a, b))
    options = {"fraction_bits": golden.max_fraction_bits(4, a, b), "empty_blocks": empty_blocks}
    seen = set()
    for _ in range(40):
        inputs = draw_step(rng, 4)
        seen |= {int(byte) >> 6 for byte in (inputs[1] if a is FOUR else inputs[3]).ravel()}
        expected = rational.outputs(*inputs, forms=names, **options)
        assert_bits(golden.step(*inputs, a=a, b=b, **options), expected)
        m, n = 3, 2
        sides = [x.tolist() for x in (inputs[0][m], inputs[1][m], inputs[2][n], inputs[3][n])]
        assert parts.step(*sides, int(inputs[4].view(np.uint32)[m, n]), a=a, b=b, **options) == expected[m, n]
    assert seen == {0, 1, 2, 3}


def test_exact_gemm_of_other_formats():
    rng = np.random.default_rng(18)
    form = golden.BlockFormat("E2M3 under UE4M3", (E2M3,), UE4M3, 1.0, block=32)
    codes, scales = rng.integers(0, 64, (2, 320), np.uint8), rng.integers(0, 127, (2, 10), np.uint8)
    q = golden.QuantizedTensor(codes, scales, np.float32(1), form)
    values = [[Fraction(v) for v in row] for row in golden.dequantize(q).astype(np.float64).tolist()]
    expected = [
        [float_bits(sum(x * y for x, y in zip(r, s, strict=True)), "nearest_even") for s in values] for r in values
    ]
    assert_bits(golden.accumulate(q, q, numerics="exact"), np.array(expected, np.uint32))


# Errors


def call_step(**changes):
    arguments = {
        "a_codes": np.zeros((2, 32), np.uint8),
        "a_scales": np.zeros((2, 2), np.uint8),
        "b_codes": np.zeros((3, 32), np.uint8),
        "b_scales": np.zeros((3, 2), np.uint8),
        "c": np.zeros((2, 3), np.float32),
    }
    return golden.step(**{**arguments, **changes})


BLOCKS_OF_32 = golden.BlockFormat("blocks of 32", (E2M1,), UE4M3, 2688.0, block=32)
WIDE = golden.BlockFormat("wide", (golden.ElementFormat("W", 2, (0.0, 2.0**45, 0.0, -(2.0**45))),), UE4M3, 1.0)


def call_gemm(*arguments, **options):
    q = golden.quantize(np.zeros((2, 32)), "nvfp4")
    return golden.gemm(*(arguments or (q, q)), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: call_step(a_codes=np.full((2, 32), 16, np.uint8)),
            r"a_codes\[0, 0\] is 16; codes are 0 to 15",
        ),
        (lambda: call_step(b_codes=np.zeros((3, 32))), "b_codes must be uint8; got float64"),
        (lambda: call_step(b_codes=np.zeros((3, 30), np.uint8)), "b_codes must be .* multiple of 16"),
        (lambda: call_step(a_codes=np.zeros((2, 0), np.uint8)), "a_codes must be .* multiple of 16"),
        (lambda: call_step(a_scales=np.zeros((2, 3), np.uint8)), r"a_scales must be \(2, 2\)"),
        (
            lambda: call_step(b_codes=np.zeros((3, 16), np.uint8), b_scales=np.zeros((3, 1), np.uint8)),
            "a_codes has K = 32 and b_codes K = 16",
        ),
        (lambda: call_step(a_codes=np.zeros((5, 2, 32), np.uint8)), r"a_scales is \(2, 2\) and a_codes \(5, 2, 32\)"),
        (
            lambda: call_step(a_codes=np.zeros((5, 2, 32), np.uint8), a_scales=np.zeros((5, 2, 2), np.uint8)),
            r"a_codes is a stack of \(5,\) and b_codes of \(\)",
        ),
        (lambda: call_step(c=np.zeros((3, 2), np.float32)), r"c must be \(2, 3\), rows of A by rows of B"),
        (lambda: call_step(c=np.zeros((2, 3))), "c must be float32; got float64"),
        (lambda: call_step(fraction_bits=42), "fraction_bits must be 1 to 41 for 2 blocks per step; got 42"),
        (lambda: call_step(fraction_bits=0), "fraction_bits must be 1 to 41"),
        (lambda: call_step(fraction_bits=35.0), "fraction_bits must be an integer; got 35.0"),
        (
            lambda: call_step(a="nvint4", b="nvint4", fraction_bits=43),
            "fraction_bits must be 1 to 42 for 2 blocks per step; got 43",
        ),
        (lambda: call_step(a="mxfp5"), "a must be one of 'nvfp4', 'mixfp4', 'nvfp4-e0m3', .*; got 'mxfp5'"),
        (lambda: call_step(b=None), "b must be one of 'nvfp4', 'mixfp4', 'nvfp4-e0m3', .*; got None"),
        (lambda: call_step(b=BLOCKS_OF_32), "a has blocks of 16 and b of 32; they must be equal"),
        (lambda: call_step(b=WIDE), "a = 'mixfp4' with b = 'wide': their products are beyond what this model"),
        (
            lambda: call_gemm(*[golden.quantize(np.ones((2, 32)), OTHERS[0])] * 2, numerics="exact"),
            "'exact': the products of one block of E2M3 under UE5M3 are beyond what this model adds exactly",
        ),
        (lambda: call_step(empty_blocks="none"), "empty_blocks must be one of 'included', 'excluded'; got 'none'"),
        (lambda: call_gemm(empty_blocks=True), "empty_blocks must be one of 'included', 'excluded'; got True"),
        (lambda: call_step(rounding="up"), "rounding must be one of 'toward_zero', 'nearest_even'; got 'up'"),
        (lambda: call_gemm(numerics="hopper"), "numerics must be one of 'blackwell', 'exact'; got 'hopper'"),
        (lambda: call_gemm(blocks_per_step=0), "blocks_per_step must be at least 1; got 0"),
        (lambda: call_gemm(blocks_per_step="4"), "blocks_per_step must be an integer; got '4'"),
        (lambda: call_gemm(fraction_bits=41), "fraction_bits must be 1 to 40 for 4 blocks per step; got 41"),
        (lambda: call_gemm(c=np.zeros((2, 3), np.float32)), r"c must be \(2, 2\)"),
        (
            lambda: call_gemm(np.zeros((2, 32)), None),
            "qa must be a sim.golden.quantize.QuantizedTensor; got numpy.ndarray",
        ),
        (
            lambda: call_gemm(golden.quantize(np.zeros((2, 32)), "nvfp4"), golden.quantize(np.zeros((2, 16)), "nvfp4")),
            "qa has K = 32 and qb K = 16; they must be equal",
        ),
    ],
)
def test_errors_name_the_culprit(call, message):
    with pytest.raises(golden.ArgumentError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
