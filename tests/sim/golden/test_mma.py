"""Steps and GEMMs against exact rational arithmetic, bit for bit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import golden

E2M1_HALVES = [0, 1, 2, 3, 4, 6, 8, 12]
E1M2_HALVES = [0, 1, 2, 3, 4, 5, 6, 7]  # the factor of 2 is in the exponent
NAN = 0x7FFFFFFF


def float_bits(value: Fraction, rounding: str) -> int:
    """FP32 bits of an exact value; an exact zero is +0."""
    if value == 0:
        return 0
    sign, magnitude = (1 << 31 if value < 0 else 0), abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    quantum = Fraction(2) ** (max(exponent, -126) - 23)
    units = magnitude // quantum if rounding == "toward_zero" else round(magnitude / quantum)
    biased_minus_hidden = (max(exponent, -126) + 126) << 23
    return sign | min(biased_minus_hidden + int(units), 0x7F800000)  # a carry moves into the exponent


def scale_fields(byte: int, tags: bool) -> tuple[int, int, int]:
    """Significand in eighths, exponent, tag."""
    exponent, mantissa, tag = byte >> 3 & 15, byte & 7, byte >> 7 if tags else 0
    if exponent == 0:
        return mantissa, -6 if mantissa else -126, tag
    return 8 + mantissa, exponent - 7, tag


def half_units(code: int, tag: int) -> int:
    magnitude = (E1M2_HALVES if tag else E2M1_HALVES)[code & 7]
    return -magnitude if code & 8 else magnitude


def c_fields(bits: int) -> tuple[int, int]:
    """Signed significand and exponent of a finite C."""
    exponent, mantissa = bits >> 23 & 255, bits & 0x7FFFFF
    significand = mantissa | (1 << 23 if exponent else 0)
    return -significand if bits >> 31 else significand, max(exponent, 1) - 127 if significand else -126


def group_terms(a, a_scales, b, b_scales, tags=True):
    """(T_g, E_g) of one output; None for a NaN scale."""
    terms = []
    for g, (byte_a, byte_b) in enumerate(zip(a_scales, b_scales, strict=True)):
        if byte_a & 0x7F == 0x7F or byte_b & 0x7F == 0x7F:
            return None
        (sig_a, exp_a, tag_a), (sig_b, exp_b, tag_b) = scale_fields(byte_a, tags), scale_fields(byte_b, tags)
        lanes = range(16 * g, 16 * g + 16)
        total = sum(half_units(a[k], tag_a) * half_units(b[k], tag_b) for k in lanes)
        terms.append((total * sig_a * sig_b, exp_a + exp_b + tag_a + tag_b))
    return terms


def step_output(terms, c: int, fraction_bits: int, rounding: str) -> int:
    exponent, mantissa = c >> 23 & 255, c & 0x7FFFFF
    if terms is None or (exponent == 255 and mantissa):
        return NAN
    if exponent == 255:
        return c
    significand, exp_c = c_fields(c)
    emax = max([exp_c] + [e for _, e in terms])
    unit = Fraction(2) ** (emax - fraction_bits)
    total = Fraction(0)
    for integer, power in [*((t, e - 8) for t, e in terms), (significand, exp_c - 23)]:
        value = integer * Fraction(2) ** power
        truncated = abs(value) // unit * unit
        total += -truncated if value < 0 else truncated
    return float_bits(total, rounding)


def reference_step(a, a_scales, b, b_scales, c, fraction_bits, rounding, tags):
    a, a_scales, b, b_scales = (x.tolist() for x in (a, a_scales, b, b_scales))
    c = c.view(np.uint32).tolist()
    return np.array(
        [
            [
                step_output(group_terms(a[m], a_scales[m], b[n], b_scales[n], tags), c[m][n], fraction_bits, rounding)
                for n in range(len(b))
            ]
            for m in range(len(a))
        ],
        np.uint32,
    )


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


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(
    ("fraction_bits", "rounding", "tags", "count"),
    [
        (35, "toward_zero", True, 300),
        (35, "toward_zero", False, 100),
        (35, "nearest_even", True, 150),
        (24, "toward_zero", True, 100),
        (28, "nearest_even", False, 100),
        (40, "toward_zero", True, 100),
        (40, "nearest_even", True, 100),
        (1, "toward_zero", True, 40),
        (10, "nearest_even", True, 40),
    ],
)
def test_step_is_exact(groups, fraction_bits, rounding, tags, count):
    rng = np.random.default_rng(groups)
    for _ in range(count):
        inputs = draw_step(rng, groups)
        ours = golden.step(*inputs, fraction_bits=fraction_bits, rounding=rounding, tags=tags)
        assert_bits(ours, reference_step(*inputs, fraction_bits, rounding, tags))


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
        assert_bits(ours, reference_step(*inputs, 35, rounding, True))


@pytest.mark.parametrize("exponent", range(-20, 60))
def test_every_alignment_of_c(exponent):
    rng = np.random.default_rng(exponent + 20)
    bits = rng.integers(0, 1 << 23, (4, 4), dtype=np.uint32) | np.uint32(127 + exponent << 23)
    inputs = any_codes(rng, 4, 2), finite_scales(rng, 4, 2), any_codes(rng, 4, 2), finite_scales(rng, 4, 2)
    assert_bits(
        golden.step(*inputs, bits.view(np.float32)),
        reference_step(*inputs, bits.view(np.float32), 35, "toward_zero", True),
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
    rounding = data.draw(st.sampled_from(golden.ROUNDINGS))
    ours = golden.step(a, a_scales, b, b_scales, c, fraction_bits=bits, rounding=rounding)
    assert_bits(ours, reference_step(a, a_scales, b, b_scales, c, bits, rounding, True))


def test_largest_sum_at_the_largest_fraction_bits():
    for groups in (1, 2, 4, 8, 128):
        bits = golden.max_fraction_bits(groups)
        codes, scales = np.full((1, 16 * groups), 7, np.uint8), np.full((1, groups), 0x7F - 8, np.uint8)
        scales[0, -1] = 0x7E
        c = np.array([[2.0**16 - 2.0**-8]], np.float32)
        for rounding in golden.ROUNDINGS:
            ours = golden.step(codes, scales, codes, scales, c, fraction_bits=bits, rounding=rounding)
            assert_bits(ours, reference_step(codes, scales, codes, scales, c, bits, rounding, True))
    assert golden.max_fraction_bits(4) == 40


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


def test_nvfp4_gives_the_same_with_tags_on_and_off():
    rng = np.random.default_rng(9)
    qa = golden.quantize(rng.standard_normal((16, 64)), "nvfp4")
    qb = golden.quantize(rng.standard_normal((24, 64)), "nvfp4")
    c = rng.standard_normal((16, 24)).astype(np.float32)
    operands = qa.codes, qa.scales, qb.codes, qb.scales, c
    on, off = (golden.step(*operands, tags=tags) for tags in (True, False))
    assert_bits(on, off.view(np.uint32))
    tagged = qa.codes, qa.scales | 0x80, qb.codes, qb.scales, c
    assert_bits(golden.step(*tagged, tags=False), off.view(np.uint32))
    assert (golden.step(*tagged) != off).any()


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("options", [{}, {"rounding": "nearest_even", "fraction_bits": 39}, {"tags": False}])
def test_a_stack_of_steps_is_its_steps(groups, options):
    rng = np.random.default_rng(groups)
    drawn = [draw_step(rng, groups) for _ in range(60)]
    shape = min((step[-1].shape for step in drawn), default=(1, 1))
    steps = [step for step in drawn if step[-1].shape == shape]
    stacked = [np.stack(parts) for parts in zip(*steps, strict=True)]
    expected = np.stack([golden.step(*step, **options) for step in steps])
    assert_bits(golden.step(*stacked, **options), expected.view(np.uint32))
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


def quantized(rng, rows, blocks, codes=any_codes, scales=finite_scales):
    return golden.QuantizedTensor(
        codes(rng, rows, blocks), scales(rng, rows, blocks), np.float32(rng.uniform(0.5, 2)), "mixfp4"
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
            **options,
        )
    return c


@pytest.mark.parametrize(
    ("m", "n", "blocks"),
    [(3, 5, 7), (1, 1, 9), (1, 40, 1), (33, 2, 6), (130, 70, 5), (1, 2000, 4), (700, 300, 8)],
)
@pytest.mark.parametrize(
    ("groups", "options"),
    [(1, {}), (4, {}), (4, {"rounding": "nearest_even"}), (3, {"fraction_bits": 24}), (16, {})],
)
def test_gemm_is_a_chain_of_steps(m, n, blocks, groups, options):
    rng = np.random.default_rng(m + n + blocks)
    codes, scales = rng.choice(CODES), rng.choice(SCALES)
    qa, qb = (quantized(rng, rows, blocks, codes, scales) for rows in (m, n))
    for c in (np.zeros((m, n), np.float32), rng.choice(CS)(rng, m, n)):
        ours = golden.accumulate(qa, qb, c, groups, **options)
        assert_bits(ours, chain(qa, qb, c, groups, **options).view(np.uint32))


@pytest.mark.parametrize("fmts", [("nvfp4", "nvfp4"), ("mixfp4", "mixfp4"), ("mixfp4", "nvfp4")])
def test_gemm_on_quantised_tensors_against_fractions(fmts):
    rng = np.random.default_rng(0)
    qa, qb = (golden.quantize(rng.standard_t(2, (4, 16 * 21)), fmt) for fmt in fmts)
    a, a_scales, b, b_scales = (x.tolist() for x in (qa.codes, qa.scales, qb.codes, qb.scales))
    expected = np.zeros((4, 4), np.uint32)
    for (m, n), _ in np.ndenumerate(expected):
        terms = group_terms(a[m], a_scales[m], b[n], b_scales[n])
        for k in range(0, 21, 4):
            expected[m, n] = step_output(terms[k : k + 4], int(expected[m, n]), 35, "toward_zero")
    d = golden.accumulate(qa, qb)
    assert_bits(d, expected)
    product = float(qa.tensor_scale) * float(qb.tensor_scale)
    scaled = np.array([[np.float32(float(v) * product) for v in row] for row in d])
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
    a, a_scales, b, b_scales = (x.tolist() for x in (qa.codes, qa.scales, qb.codes, qb.scales))
    bits = c.view(np.uint32).tolist()
    expected = np.zeros(c.shape, np.uint32)
    for (m, n), _ in np.ndenumerate(expected):
        terms = group_terms(a[m], a_scales[m], b[n], b_scales[n])
        if terms is None or np.isnan(c[m, n]):
            expected[m, n] = NAN
        elif np.isinf(c[m, n]):
            expected[m, n] = bits[m][n]
        else:
            significand, exp_c = c_fields(bits[m][n])
            total = significand * Fraction(2) ** (exp_c - 23)
            total += sum(t * Fraction(2) ** (e - 8) for t, e in terms)
            expected[m, n] = float_bits(total, "nearest_even")
    return expected


@pytest.mark.parametrize("draw_c", CS)
@pytest.mark.parametrize("draw_scales", SCALES)
@pytest.mark.parametrize("draw_codes", CODES)
def test_exact_gemm(draw_codes, draw_scales, draw_c):
    rng = np.random.default_rng(11)
    for blocks in (1, 5, 33):
        qa, qb = (quantized(rng, 4, blocks, draw_codes, draw_scales) for _ in "ab")
        c = draw_c(rng, 4, 4)
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
        (lambda: call_step(rounding="up"), "rounding must be one of 'toward_zero', 'nearest_even'; got 'up'"),
        (lambda: call_gemm(numerics="hopper"), "numerics must be one of 'blackwell', 'exact'; got 'hopper'"),
        (lambda: call_gemm(blocks_per_step=0), "blocks_per_step must be at least 1; got 0"),
        (lambda: call_gemm(blocks_per_step="4"), "blocks_per_step must be an integer; got '4'"),
        (lambda: call_gemm(fraction_bits=41), "fraction_bits must be 1 to 40 for 4 blocks per step; got 41"),
        (lambda: call_gemm(c=np.zeros((2, 3), np.float32)), r"c must be \(2, 2\)"),
        (lambda: call_gemm(np.zeros((2, 32)), None), "qa must be a QuantizedTensor, .* got ndarray"),
        (
            lambda: call_gemm(golden.quantize(np.zeros((2, 32)), "nvfp4"), golden.quantize(np.zeros((2, 16)), "nvfp4")),
            "qa has K = 32 and qb K = 16; they must be equal",
        ),
    ],
)
def test_errors_name_the_culprit(call, message):
    with pytest.raises(golden.InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
