"""Steps at half the rate with UE8M0 scales, against exact rational arithmetic, parts and words that others measured."""

import numpy as np
import pytest
import rational

from sim import golden
from sim.golden import parts

TYPES = tuple(golden.UNSCALED_ELEMENTS)
NAN, INFINITY = 0x7FFFFFFF, 0x7F800000

MEASURED = [
    (
        bytes.fromhex("0e020809030e04050606010a030e0a0209020c080d07000a0c070b040900090a"),
        bytes.fromhex("0a01020b0209050700070a02070b0e0108060b0202020c0a0c070f090d030e00"),
        (119, 127),
        0x3F094000,
    ),
    (bytes([1] * 32), bytes([1] * 32), (255, 127), NAN),
]
"""A, B, their scales and D of steps of 32 products of E2M1 with C = 0 on a B200, as sf-tensor/tcgen05 reports them.

D is from tcgen05_model/validation.py of that repository, commit 6f19f22 (MIT licence), where these are the words of
``kind::mxf8f6f4``. A, B and the scales of the first one are drawn there by Python's `random` from the seed 910. Here
are the same draws.
"""


def words(*bits):
    """FP32 numbers by their bits."""
    return np.array(bits, np.uint32).view(np.float32)


def row(codes):
    return np.frombuffer(bytes(codes), np.uint8)[None]


def one_output(a_codes, b_codes, scales=(127, 127), c=0, **options):
    """FP32 bits of a step of at most 32 products with one output, of golden model and parts."""
    found = golden.unscaled_step(
        row(a_codes), row(b_codes), words([c]), a_scales=row([scales[0]]), b_scales=row([scales[1]]), **options
    ).view(np.uint32)
    same = parts.unscaled_step(a_codes, b_codes, c, a_scales=[scales[0]], b_scales=[scales[1]], **options)
    assert int(found[0, 0]) == same
    return same


def bits_of(value):
    return int(np.float32(value).view(np.uint32))


def test_the_words_that_others_measured_on_hardware():
    for a, b, scales, d in MEASURED:
        assert one_output(a, b, scales, a="e2m1", b="e2m1") == d
    for name in TYPES:  # from commit 8fce64d on
        assert one_output(bytes(32), bytes(32), c=0x80000000, a=name, b=name) == 0


def test_scales_of_one_are_steps_without_scales():
    rng = np.random.default_rng(1)
    for count in range(20):
        a, b = (rng.integers(0, 256, (2, 3, 40), np.uint8) for _ in "ab")
        c = words(*rng.integers(0, 1 << 32, (2, 3, 3)))
        types = {"a": rng.choice(TYPES, 2).tolist(), "b": rng.choice(TYPES, 2).tolist()}
        ones = np.full((2, 3, 2), 127, np.uint8)
        with_scales = golden.unscaled_step(a, b, c, **types, a_scales=ones, b_scales=ones)
        np.testing.assert_array_equal(
            with_scales.view(np.uint32), golden.unscaled_step(a, b, c, **types).view(np.uint32), str(count)
        )


def draw_scales(rng, kind, blocks):
    """Bytes of 2 and of 3 rows: any; such that results are near either end of FP32; far apart; or one of them NaN."""
    a, b = (rng.integers(0, 255, (rows, blocks)) for rows in (2, 3))
    if kind in ("low", "high", "middle"):
        total = {"low": -140, "high": 105, "middle": 0}[kind] + 254 + int(rng.integers(-24, 25))
        first = rng.integers(max(0, total - 250), min(255, total))
        a[:], b[:] = first, total - first
        b += rng.integers(-1, 2, b.shape)
    elif kind == "apart":
        a = rng.choice([100, 127, 140], a.shape)
        b = rng.choice([100, 127, 140], b.shape)
    elif kind == "NaN":
        a[0, -1] = 255
    return np.clip(a, 0, 255).astype(np.uint8), np.clip(b, 0, 255).astype(np.uint8)


def draw_c(rng, kind, a, b, scales, types):
    """C of two rows by three: zero, any, special, subnormal, or near the negative sum."""
    shape = (2, 3)
    if kind == "zero":
        return rng.choice(words(0, 0x80000000), shape)
    if kind == "any":
        return words(*rng.integers(0, 1 << 32, shape))
    if kind == "special":
        return rng.choice(words(INFINITY, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x00800000, 0x80000001), shape)
    if kind == "subnormal":
        return words(*rng.integers(0, 1 << 23, shape) | rng.integers(0, 2, shape) << 31)
    numbers = []
    for codes, of, name in ((a, scales[0], types[0]), (b, scales[1], types[1])):
        element = golden.UNSCALED_ELEMENTS[name]
        own = np.nan_to_num(element.table[codes & (1 << element.width) - 1], posinf=0, neginf=0)
        numbers.append(np.ldexp(own, of.astype(np.int64)[:, np.arange(codes.shape[1]) // 32] - 127))
    with np.errstate(over="ignore", under="ignore"):
        c = (-numbers[0] @ numbers[1].T).astype(np.float32)
    return (c.view(np.uint32) + rng.integers(-2, 3, shape) * (c != 0)).astype(np.uint32).view(np.float32)


SCALES = ("any", "low", "high", "middle", "apart", "NaN")
ADDENDS = ("zero", "any", "special", "subnormal", "opposite")


@pytest.mark.parametrize("b_type", TYPES)
@pytest.mark.parametrize("a_type", TYPES)
def test_steps_are_those_of_rational_arithmetic(a_type, b_type):
    types = a_type, b_type
    rng = np.random.default_rng([7, TYPES.index(a_type), TYPES.index(b_type)])
    kinds = set()
    for count in range(2 * len(SCALES) * len(ADDENDS)):
        k = int(rng.choice([1, 8, 32, 40, 64]))
        a, b = (rng.integers(0, 256, (rows, k), np.uint8) for rows in (2, 3))
        for codes, name in ((a, a_type), (b, b_type)):
            element = golden.UNSCALED_ELEMENTS[name]
            special = ~np.isfinite(element.table[codes & (1 << element.width) - 1])
            codes[special & (rng.random((len(codes), 1)) < 0.9)] = 1
            codes[:, rng.random(k) < 0.3 * (count % 3)] = 0
        scales = draw_scales(rng, SCALES[count % len(SCALES)], -(-k // 32))
        c = draw_c(rng, ADDENDS[count // len(SCALES) % len(ADDENDS)], a, b, scales, types)
        options = {"fraction_bits": (25, 35, 23)[count % 5 % 3], "rounding": golden.ROUNDINGS[count // 7 % 2]}
        found = golden.unscaled_step(
            a, b, c, a=a_type, b=b_type, a_scales=scales[0], b_scales=scales[1], **options
        ).view(np.uint32)
        for m in range(2):
            for n in range(3):
                rows = a[m].tolist(), b[n].tolist()
                own = scales[0][m].tolist(), scales[1][n].tolist()
                bits = int(c.view(np.uint32)[m, n])
                expected = rational.unscaled_output(rational.products(*rows, types, own), bits, **options)
                assert found[m, n] == expected, (count, m, n)
                assert expected == parts.unscaled_step(
                    *rows, bits, a=a_type, b=b_type, a_scales=own[0], b_scales=own[1], **options
                )
                kinds.add("Inf" if expected & 0x7FFFFFFF == INFINITY else "subnormal" if 0 < expected < 1 << 23 else "")
    assert kinds >= {"Inf", "subnormal"}


def test_ends():
    one = [0x38]
    # 2^127 x 2^1 is beyond FP32; rounding is toward zero, and it is infinite.
    assert one_output(one, one, (254, 128)) == INFINITY
    assert one_output([0xB8], one, (254, 128)) == 0xFF800000
    assert one_output(one, one, (254, 127)) == bits_of(2.0**127)
    # Only a result overflows: 2^128 - 2^127.
    assert one_output(one, one, (254, 128), bits_of(-(2.0**127))) == bits_of(2.0**127)
    assert one_output([0x38, 0xB8], [0x38, 0x38], (254, 254)) == 0
    # The last place of subnormal numbers, and what is below it.
    assert one_output(one, one, (0, 105)) == 1
    assert one_output([0x3F], one, (0, 105)) == 1  # 1.875
    assert one_output([0xBF], one, (0, 104)) == 0  # -0.9375
    assert one_output([0xBF], one, (0, 104), rounding="nearest_even") == 0x80000001
    assert one_output(one, one, (0, 0)) == 0
    # The sum is cut, not each product: 2 x 0.75 of the last place.
    assert one_output([0x34, 0x34], [0x38, 0x38], (0, 105)) == 1
    # A C of zero takes no part: eight times 2^-152 are the last place. Its exponent would cut each of them, and so does
    # that of a C of 2^-149.
    assert one_output([0x38] * 8, [0x38] * 8, (0, 102)) == 1
    assert one_output([0x38] * 8, [0x38] * 8, (0, 102), 1) == 1
    # Products of zero take no part, whatever the scales; nor does a C that is not zero become another.
    assert one_output([0, 0x38], [0x38, 0], (254, 254), 1) == 1
    assert one_output([0], [0], (0, 0), 0x80000000) == 0


def test_nan_scales_win():
    for scales in ((255, 0), (127, 255), (255, 255)):
        assert one_output([0], [0], scales) == NAN
        assert one_output([0x7C], [0x3C], scales, INFINITY, a="e5m2", b="e5m2") == NAN
    # Infinity has no exponent that a scale could change.
    assert one_output([0x7C], [0xBC], (0, 0), a="e5m2", b="e5m2") == 0xFF800000
    assert one_output([0x7C], [0x00], (0, 0), a="e5m2", b="e5m2") == NAN


def test_blocks_of_a_gemm_begin_where_its_elements_do():
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 0x70, (rows, 72), np.uint8) for rows in (5, 4))
    scales = [rng.integers(100, 150, (rows, 3), np.uint8) for rows in (5, 4)]
    found = golden.unscaled_gemm(a, b, None, 8, a_scales=scales[0], b_scales=scales[1])
    c = np.zeros((5, 4), np.float32)
    for k in range(0, 72, 8):
        own = [each[:, k // 32 : k // 32 + 1] for each in scales]
        c = golden.unscaled_step(a[:, k : k + 8], b[:, k : k + 8], c, a_scales=own[0], b_scales=own[1])
    np.testing.assert_array_equal(found.view(np.uint32), c.view(np.uint32))


@pytest.mark.parametrize(("element", "form"), [("e4m3", "mxfp8-e4m3"), ("e3m2", "mxfp6-e3m2"), ("e2m1", "mxfp4")])
def test_quantised_tensors_are_operands(element, form):
    """What the formats of MX quantise to is multiplied as it is; where nothing is cut it is the product of matrices."""
    rng = np.random.default_rng(4)
    a, b = (golden.quantize(rng.standard_normal((rows, 128)), form) for rows in (6, 5))
    found = golden.unscaled_gemm(a.codes, b.codes, a=element, b=element, a_scales=a.scales, b_scales=b.scales)
    np.testing.assert_allclose(found, golden.dequantize(a) @ golden.dequantize(b).T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ({"a_scales": np.zeros((1, 1), np.uint8)}, "b_scales is missing; give scales of both operands, or of neither"),
        ({"b_scales": np.zeros((1, 1), np.uint8)}, "a_scales is missing"),
        (
            {"a_scales": np.zeros((1, 1), np.uint8), "b_scales": np.zeros((1, 2), np.uint8)},
            r"b_scales must be \(1, 1\), one for 32 elements; got \(1, 2\)",
        ),
        ({"a_scales": np.zeros((1, 1)), "b_scales": np.zeros((1, 1))}, "a_scales must be uint8; got float64"),
    ],
)
def test_bad_scales_are_refused(scales, message):
    codes = np.zeros((1, 8), np.uint8)
    with pytest.raises(golden.ArgumentError, match=message):
        golden.unscaled_step(codes, codes, np.zeros((1, 1), np.float32), **scales)
