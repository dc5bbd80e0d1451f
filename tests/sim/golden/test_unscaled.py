"""Steps without block scales, against exact rational arithmetic, parts and words that others measured."""

from functools import cache

import gfloat
import ml_dtypes
import numpy as np
import pytest
import rational
from b200 import EDGES, INFINITY, MEASURED, NAN
from gfloat import formats as gfloat_formats

from sim import golden
from sim.golden import parts

TYPES = tuple(golden.UNSCALED_ELEMENTS)
ONE = {"e4m3": 0x38, "e5m2": 0x3C, "e2m3": 0x08, "e3m2": 0x0C, "e2m1": 0x02}


def words(*bits):
    """FP32 numbers by their bits."""
    return np.array(bits, np.uint32).view(np.float32)


def row(codes):
    return np.frombuffer(bytes(codes), np.uint8)[None]


def one_output(a_codes, b_codes, c=0, **options):
    """FP32 bits of a step with one output."""
    return int(golden.unscaled_step(row(a_codes), row(b_codes), words([c]), **options).view(np.uint32)[0, 0])


def expected_bits(a_codes, b_codes, c, types, **options):
    """FP32 bits (M, N) in rational arithmetic."""
    return np.array(
        [
            [
                rational.unscaled_output(rational.products(x, y, types), bits, **options)
                for y, bits in zip(b_codes.tolist(), line, strict=True)
            ]
            for x, line in zip(a_codes.tolist(), c.view(np.uint32).tolist(), strict=True)
        ],
        np.uint32,
    )


@pytest.mark.parametrize(
    ("name", "theirs", "other"),
    [
        ("e4m3", "float8_e4m3fn", "format_info_ocp_e4m3"),
        ("e5m2", "float8_e5m2", "format_info_ocp_e5m2"),
        ("e2m3", "float6_e2m3fn", "format_info_ocp_e2m3"),
        ("e3m2", "float6_e3m2fn", "format_info_ocp_e3m2"),
        ("e2m1", "float4_e2m1fn", "format_info_ocp_e2m1"),
    ],
)
def test_every_byte_times_one_is_the_value_that_others_give_its_code(name, theirs, other):
    element = golden.UNSCALED_ELEMENTS[name]
    every = np.arange(256, dtype=np.uint8)
    codes = every & (1 << element.width) - 1
    found = golden.unscaled_step(every[:, None], row([ONE[name]]), np.zeros((256, 1), np.float32), a=name, b=name)
    expected = codes.view(getattr(ml_dtypes, theirs)).astype(np.float32)
    np.testing.assert_array_equal(found[:, 0], expected)
    info = getattr(gfloat_formats, other)
    np.testing.assert_array_equal(expected, [gfloat.decode_float(info, int(code)).fval for code in codes])


@pytest.mark.parametrize(
    ("name", "exponent_bits", "bias"), [("e4m3", 4, 7), ("e5m2", 5, 15), ("e2m3", 2, 1), ("e3m2", 3, 3), ("e2m1", 2, 1)]
)
def test_factors_have_the_encoded_exponent(name, exponent_bits, bias):
    element = golden.UNSCALED_ELEMENTS[name]
    for byte in range(256):
        found, code = parts.factor(byte, name), byte % (1 << element.width)
        if found.nan or found.infinite:
            assert (found.significand, element.table[code] == found.infinite * np.inf) == (0, not found.nan)
            continue
        field = code >> element.width - 1 - exponent_bits & (1 << exponent_bits) - 1
        assert found.exponent == max(field, 1) - bias
        assert found.significand * 2.0 ** (found.exponent - 3) == element.table[code]
        assert abs(found.significand) <= 15


@pytest.mark.parametrize("types", [("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2")])
def test_every_pair_of_bytes_as_a_single_product(types):
    @cache
    def output(value, exponent, c):
        return rational.unscaled_output([(value, exponent)], c)

    every = np.arange(256, dtype=np.uint8)
    chosen = words(0, 0x80000000, 0x3F9E0652, 0xC7C35000, 0x2B8CBCCD, 0xB0000001, 0x00000001, 0xDB8CBCCD)
    c = chosen[(every[:, None] * 3 + every) % 8]
    found = golden.unscaled_step(every[:, None], every[:, None], c, a=types[0], b=types[1]).view(np.uint32)
    for x in range(256):
        for y, bits in enumerate(c[x].view(np.uint32).tolist()):
            products = rational.products([x], [y], types)
            if isinstance(products, list) and products:
                assert found[x, y] == output(*products[0], bits), (x, y)
            else:
                assert found[x, y] == rational.unscaled_output(products, bits), (x, y)


def draw(rng, types, kind):
    """Codes of 2 x K and 3 x K elements."""
    k = int(rng.integers(1, 41))
    a, b = (rng.integers(0, 256, (rows, k), np.uint8) for rows in (2, 3))
    if kind == "gaussian":  # little is cut
        elements = (golden.UNSCALED_ELEMENTS[name] for name in types)
        a, b = (element.encode(rng.standard_normal((rows, k))) for element, rows in zip(elements, (2, 3), strict=True))
    elif kind == "mostly zeros":
        for codes in (a, b):
            codes[rng.random(codes.shape) < 0.8] = 0
    elif kind == "all products are zero":
        a[:, ::2] = 0
        b[:, 1::2] = 0
    elif kind == "products cancel":
        sign = 1 << golden.UNSCALED_ELEMENTS[types[1]].width - 1
        a, b = np.concatenate([a, a], axis=1), np.concatenate([b, b ^ sign], axis=1)
    if kind != "anything":
        for codes, name in ((a, types[0]), (b, types[1])):
            codes[~np.isfinite(values(codes, name))] = ONE[name]
    return a, b


def values(codes, name):
    element = golden.UNSCALED_ELEMENTS[name]
    return element.table[codes & (1 << element.width) - 1]


def draw_c(rng, a, b, types, kind):
    left, right = (np.nan_to_num(values(x, t), posinf=0, neginf=0) for x, t in zip((a, b), types, strict=True))
    sums = left @ right.T
    shape = sums.shape
    if kind == "special":
        return rng.choice(words(0, 0x80000000, INFINITY, 0xFF800000, 0x7FC00000, 0xFF800001), shape)
    if kind == "subnormal":
        return words(*rng.integers(0, 1 << 23, shape) | rng.integers(0, 2, shape) << 31)
    if kind == "any bits":
        return words(*rng.integers(0, 1 << 32, shape))
    scale = {"cancels": 1.0, "far above": 2.0**22, "far below": 2.0**-24, "near": 2.0**3}[kind]
    c = (-sums * scale).astype(np.float32).view(np.uint32)
    return (c + rng.integers(-2, 3, shape) * (c != 0)).astype(np.uint32).view(np.float32)


CODES = ("anything", "finite", "gaussian", "mostly zeros", "all products are zero", "products cancel")
ADDENDS = ("cancels", "near", "far above", "far below", "subnormal", "special", "any bits")


@pytest.mark.parametrize("b_type", TYPES)
@pytest.mark.parametrize("a_type", TYPES)
def test_steps_are_those_of_rational_arithmetic(a_type, b_type):
    types = a_type, b_type
    rng = np.random.default_rng([TYPES.index(a_type), TYPES.index(b_type)])
    cut = 0
    for count in range(2 * len(CODES) * len(ADDENDS)):
        a, b = draw(rng, types, CODES[count % len(CODES)])
        c = draw_c(rng, a, b, types, ADDENDS[count % len(ADDENDS)])
        most = golden.max_unscaled_fraction_bits(a.shape[1], *types)
        options = {
            "fraction_bits": (25, 13, 25, 23, most, 25, 1)[count // 3 % 7],
            "rounding": golden.ROUNDINGS[count // len(CODES) % 2],
        }
        expected = expected_bits(a, b, c, types, **options)
        found = golden.unscaled_step(a, b, c, a=a_type, b=b_type, **options).view(np.uint32)
        np.testing.assert_array_equal(found, expected)
        bits = int(c.view(np.uint32)[1, 2])
        assert parts.unscaled_step(a[1], b[2], bits, a=a_type, b=b_type, **options) == expected[1, 2]
        whole = {**options, "fraction_bits": most}
        cut += (found != golden.unscaled_step(a, b, c, a=a_type, b=b_type, **whole).view(np.uint32)).sum()
    assert cut > 5


def test_a_step_by_hand():
    # 1.5 x -2 + 0.5 x 0.5 + 10 = 7.25
    assert one_output([0x3C, 0x30], [0xC0, 0x30], 0x41200000) == 0x40E80000
    # FP6 and FP4, with bits above the code: 7.5 x 6 - 0.125 x 0.5
    assert one_output([0x1F | 0x40, 0x21], [0x07 | 0x30, 0x01 | 0xC0], a="e2m3", b="e2m1") == 0x4233C000


def test_products_are_cut_25_places_below_the_largest_exponent():
    # 2^8 x 2^5 has exponent 13; of 2^-6 x 2^-6 = 2^-12 nothing is cut there. One place higher it is.
    for largest, left in ((0x60, 2.0**-12), (0x68, 0.0)):
        found = one_output([0x78, 0x08, 0xF8], [largest, 0x08, largest])
        assert found == int(np.float32(left).view(np.uint32)), largest
    # The exponent is that of the codes: 1.75 x 1.75 = 3.0625 counts as 2^0.
    with_product = one_output([0x78, 0x08, 0xF8, 0x00], [0x67, 0x08, 0x67, 0x00])
    assert with_product == 0x39800000
    # C says where to cut, too, and is cut: 2^-12 beside 2^13 as before, then one place higher.
    assert one_output([0x08, 0xF8], [0x08, 0x60], 0x46000000) == 0x39800000
    assert one_output([0x08], [0x08], 0x46800000) == 0x46800000
    # Toward zero on the magnitude: 2^14 - (2^-12 cut to 0), not 2^14 - 2^-11.
    assert one_output([0x88], [0x08], 0x46800000) == 0x46800000
    # A C 26 places below the largest product is gone. The lowest exponent of all is -28, that of 2^-32.
    assert one_output([0x01], [0x01], 0xA5000000, a="e5m2", b="e5m2") == 0x2F7FFFF8
    assert one_output([0x01], [0x01], 0xA4800000, a="e5m2", b="e5m2") == 0x2F800000
    assert one_output([0x38, 0xB8], [0x38, 0x38], 0x33000000) == 0x33000000
    assert one_output([0x38, 0xB8], [0x38, 0x38], 0x32800000) == 0


def test_zeros():
    for c, expected in ((0, 0), (0x80000000, 0), (1, 1), (0x80000001, 0x80000001), (0x7F7FFFFF, 0x7F7FFFFF)):
        assert one_output([0x00, 0x80, 0x78], [0xB8, 0x38, 0x80], c) == expected
    # A product of zero has no say, however large its other factor is.
    assert one_output([0x7B, 0x01], [0x80, 0x01], 1, a="e5m2", b="e5m2") == 0x2F800000
    # What cancels is +0, and still says where to cut.
    assert one_output([0x38, 0xB8], [0x38, 0x38], 0x80000001) == 0
    assert one_output([0x38], [0x38], 0xBF800000) == 0


def test_specials():
    infinite, one, zero = 0x7C, 0x3C, 0x00
    cases = [
        ([infinite, 0x7B], [0xBC, 0x7B], 0, 0xFF800000),
        ([infinite, infinite], [one, one], 0, INFINITY),
        ([infinite, infinite], [one, 0xBC], 0, NAN),
        ([infinite], [one], 0xFF800000, NAN),
        ([infinite], [0xFC], 0xFF800000, 0xFF800000),
        ([infinite], [0x80], INFINITY, NAN),
        ([zero, one], [zero, one], 0xFF800000, 0xFF800000),
        ([0xFE], [zero], 0, NAN),
        ([zero], [zero], 0x7F800001, NAN),
        ([zero], [zero], 0xFFFFFFFF, NAN),
        ([0x7B] * 32, [0x7B] * 32, 0x7F7FFFFF, 0x7F7FFFFF),
    ]
    for a, b, c, expected in cases:
        assert one_output(a, b, c, a="e5m2", b="e5m2") == expected
        assert parts.unscaled_step(a, b, c, a="e5m2", b="e5m2") == expected
    # NaN in one row leaves the others alone.
    codes = np.full((3, 4), 0x38, np.uint8)
    codes[1, 2] = 0x7F
    found = golden.unscaled_step(codes, codes[::2], np.zeros((3, 2), np.float32)).view(np.uint32)
    assert found.tolist() == [[0x40800000] * 2, [NAN] * 2, [0x40800000] * 2]


def test_the_words_that_others_measured_on_hardware():
    for name, a, b, c, d in MEASURED:
        assert one_output(a, b, c, a=name, b=name) == parts.unscaled_step(a, b, c, a=name, b=name) == d
    for name, x, y, c, d in EDGES:
        a, b = bytes([x, *[0] * 31]), bytes([y, *[0] * 31])
        assert one_output(a, b, c, a=name, b=name) == parts.unscaled_step(a, b, c, a=name, b=name) == d
    fits = [
        bits
        for bits in range(13, 47)
        if all(one_output(a, b, c, a=name, b=name, fraction_bits=bits) == d for name, a, b, c, d in MEASURED)
    ]
    assert fits == [24, 25]  # all that these words alone say of it


def test_gemms_are_chains_of_steps_whatever_the_tiles():
    rng = np.random.default_rng(7)
    a, b = (rng.integers(0, 256, (rows, 70), np.uint8) for rows in (70, 600))
    for codes in (a, b):
        codes[~np.isfinite(values(codes, "e5m2"))] = 0
    a[3, 5], b[590, 40] = 0x7C, 0x7E
    c = rng.standard_normal((70, 600)).astype(np.float32)
    types = {"a": "e5m2", "b": "e5m2"}
    expected = c[:, None]
    for k in (slice(0, 32), slice(32, 64), slice(64, 70)):  # a stack of steps with one row of A each
        right = np.broadcast_to(b[:, k], (70, *b[:, k].shape))
        expected = golden.unscaled_step(a[:, None, k], right, expected, **types)
    found = golden.unscaled_gemm(a, b, c, **types)
    np.testing.assert_array_equal(found.view(np.uint32), expected[:, 0].view(np.uint32))
    assert (found.view(np.uint32)[:, 590] == NAN).all()
    whole = golden.unscaled_gemm(a, b, c, 70, **types)
    np.testing.assert_array_equal(whole.view(np.uint32), golden.unscaled_step(a, b, c, **types).view(np.uint32))
    assert (whole != found).mean() > 0.1
    zeros = np.zeros((70, 600), np.float32)
    np.testing.assert_array_equal(
        golden.unscaled_gemm(a, b, **types).view(np.uint32), golden.unscaled_gemm(a, b, zeros, **types).view(np.uint32)
    )


def test_every_step_of_a_stack_may_have_types_of_its_own():
    rng = np.random.default_rng(9)
    a, b = (rng.integers(0, 256, (500, rows, 6), np.uint8) for rows in (3, 2))
    c = rng.integers(0, 1 << 32, (500, 3, 2)).astype(np.uint32).view(np.float32)
    left, right = ([TYPES[index] for index in rng.integers(0, len(TYPES), 500)] for _ in "ab")
    found = golden.unscaled_step(a, b, c, a=left, b=right).view(np.uint32)
    mixed = golden.unscaled_step(a, b, c, a=left, b="e3m2").view(np.uint32)
    for step in range(500):
        own = (a[step], b[step], c[step])
        alone = golden.unscaled_step(*own, a=left[step], b=right[step]).view(np.uint32)
        np.testing.assert_array_equal(found[step], alone)
        alone = golden.unscaled_step(*own, a=left[step], b="e3m2").view(np.uint32)
        np.testing.assert_array_equal(mixed[step], alone)


def test_types_of_a_stack_that_make_no_sense_are_refused():
    codes, c = np.zeros((2, 1, 4), np.uint8), np.zeros((2, 1, 1), np.float32)
    with pytest.raises(golden.ArgumentError, match=r"^b must have one type for each of 2 steps; got 3$"):
        golden.unscaled_step(codes, codes, c, b=["e4m3"] * 3)
    with pytest.raises(golden.ArgumentError, match=r"^a must be one of 'e4m3', .*; got 'fp8'$"):
        golden.unscaled_step(codes, codes, c, a=["e4m3", "fp8"])


def test_stacks_are_steps_that_know_nothing_of_each_other():
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 256, (3, 2000, rows, 5), np.uint8) for rows in (4, 2))
    c = rng.integers(0, 1 << 32, (3, 2000, 4, 2)).astype(np.uint32).view(np.float32)
    found = golden.unscaled_step(a, b, c, a="e5m2", b="e3m2")
    for index in ((0, 0), (0, 1999), (1, 77), (2, 1999)):
        alone = golden.unscaled_step(a[index], b[index], c[index], a="e5m2", b="e3m2")
        np.testing.assert_array_equal(found[index].view(np.uint32), alone.view(np.uint32))
    at = 2, 1500
    expected = expected_bits(a[at], b[at], c[at], ("e5m2", "e3m2"))
    np.testing.assert_array_equal(found[at].view(np.uint32), expected)


@pytest.mark.parametrize(("k", "a", "b", "most"), [(1, "e4m3", "e4m3", 50), (32, "e4m3", "e5m2", 46)])
def test_the_most_fraction_bits_keep_the_largest_sum_exact(k, a, b, most):
    assert golden.max_unscaled_fraction_bits(k, a, b) == most
    # The largest significands of a binade, in all lanes: an odd sum beside the largest C of that exponent.
    largest = {"e4m3": 0x77, "e5m2": 0x7B}
    left, right = [largest[a]] * k, [largest[b]] * k
    exponent = sum(parts.factor(largest[name], name).exponent for name in (a, b))
    bits = exponent + 127 << 23 | 0x7FFFFF
    for rounding in golden.ROUNDINGS:
        options = {"a": a, "b": b, "fraction_bits": most, "rounding": rounding}
        assert one_output(left, right, bits, **options) == parts.unscaled_step(left, right, bits, **options)


CODES_OK, C_OK = np.zeros((2, 32), np.uint8), np.zeros((2, 2), np.float32)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((CODES_OK.astype(int), CODES_OK, C_OK), {}, "a_codes must be uint8; got int64"),
        ((CODES_OK, CODES_OK[0], C_OK), {}, r"b_codes must be (..., rows, K), all positive; got (32,)"),
        ((CODES_OK[:, :0], CODES_OK, C_OK), {}, "a_codes must be (..., rows, K), all positive; got (2, 0)"),
        ((CODES_OK, CODES_OK[:, :8], C_OK), {}, "a_codes has K = 32 and b_codes K = 8; they must be equal"),
        ((CODES_OK[None], CODES_OK, C_OK), {}, "a_codes is a stack of (1,) and b_codes of (); they must be equal"),
        ((CODES_OK, CODES_OK, C_OK[0]), {}, "c must be (2, 2), rows of A by rows of B; got (2,)"),
        ((CODES_OK, CODES_OK, C_OK.astype(float)), {}, "c must be float32; got float64"),
        (
            (CODES_OK, CODES_OK, C_OK),
            {"b": "fp8"},
            "b must be one of 'e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'; got 'fp8'",
        ),
        ((CODES_OK, CODES_OK, C_OK), {"a": ["e4m3"]}, "a must be one of 'e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'; got"),
        ((CODES_OK, CODES_OK, C_OK), {"rounding": "up"}, "rounding must be one of 'toward_zero', 'nearest_even'; got"),
        (
            (CODES_OK, CODES_OK, C_OK),
            {"fraction_bits": 47},
            "fraction_bits must be 1 to 46 for 32 products per step; got 47",
        ),
        (
            (CODES_OK, CODES_OK, C_OK),
            {"fraction_bits": 0},
            "fraction_bits must be 1 to 46 for 32 products per step; got 0",
        ),
        ((CODES_OK, CODES_OK, C_OK), {"fraction_bits": 25.0}, "fraction_bits must be an integer; got 25.0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(arguments, options, message):
    for function in (golden.unscaled_step, golden.unscaled_gemm):
        with pytest.raises(golden.ArgumentError) as caught:
            function(*arguments, **options)
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def test_a_step_without_products_is_refused():
    with pytest.raises(golden.ArgumentError, match=r"^k_per_step must be at least 1; got 0$"):
        golden.unscaled_gemm(CODES_OK, CODES_OK, k_per_step=0)
    with pytest.raises(golden.ArgumentError, match=r"^k must be an integer; got 'x'$"):
        golden.max_unscaled_fraction_bits("x")


@pytest.mark.parametrize("name", golden.UNSCALED_ELEMENTS)
def test_quantising_is_that_of_ml_dtypes(name):
    types = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m3": "float6_e2m3fn", "e3m2": "float6_e3m2fn"}
    dtype = getattr(ml_dtypes, types.get(name, "float4_e2m1fn"))
    x = np.random.default_rng(3).normal(size=(4, 64)).astype(np.float32)
    codes, scale = golden.quantize_unscaled(x, name)
    assert codes.shape == x.shape
    largest = float(ml_dtypes.finfo(dtype).max)
    assert scale == np.float32(float(np.abs(x).max()) / largest)
    expected = (x.astype(np.float64) / float(scale)).astype(dtype).astype(np.float64)
    np.testing.assert_array_equal(golden.UNSCALED_ELEMENTS[name].table[codes], expected)
    assert np.abs(expected).max() == largest


def test_quantising_zeros_and_what_is_no_number():
    codes, scale = golden.quantize_unscaled(np.zeros((2, 3)))
    assert not codes.any()
    assert scale == 1
    for x, message in (
        (np.array([[1.0, np.nan]]), "x[0, 1] is nan; every element must be finite"),
        (np.zeros((0, 4)), "x must have elements; got (0, 4)"),
        ("x", "x must be"),
    ):
        with pytest.raises(golden.ArgumentError) as caught:
            golden.quantize_unscaled(x)
        assert str(caught.value).startswith(message)
    with pytest.raises(golden.ArgumentError, match=r"^element must be one of 'e4m3'"):
        golden.quantize_unscaled(np.ones((1, 1)), "fp8")
