"""Codes and block scales against ml_dtypes and gfloat, which share nothing with the golden model."""

import math

import gfloat
import ml_dtypes
import numpy as np
import pytest
from gfloat.formats import format_info_ocp_e2m1, format_info_ocp_e4m3, format_info_ocp_int8
from hypothesis import given
from hypothesis import strategies as st

from sim import golden
from sim.golden.element import E1M2, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, INT4, S1P2, ElementFormat
from sim.golden.scale import UE4M3, ScaleFormat

NIBBLES = np.arange(16, dtype=np.uint8)
BYTES = np.arange(256, dtype=np.uint8)


def probes(values: np.ndarray) -> np.ndarray:
    """Every value, every tie, their float32 neighbours, and what lies beyond both ends."""
    values = np.sort(values.astype(np.float32))
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, [1e-9, values[-1] * 1.01, 1e9]])
    points = points.astype(np.float32)
    around = [points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf))]
    return np.maximum(np.concatenate(around), 0)


def test_e2m1_decodes_as_ml_dtypes_and_gfloat():
    ours = golden.decode_e2m1(NIBBLES)
    np.testing.assert_array_equal(ours, NIBBLES.view(ml_dtypes.float4_e2m1fn).astype(np.float64))
    np.testing.assert_array_equal(ours, [gfloat.decode_float(format_info_ocp_e2m1, int(code)).fval for code in NIBBLES])
    assert np.signbit(ours[8])


def test_e1m2_is_the_integers_0_to_7():
    expected = []
    for code in range(16):
        sign, exponent, mantissa = code >> 3, code >> 2 & 1, code & 3
        significand = (4 + mantissa) / 4 if exponent else mantissa / 4  # both with exponent 1: bias 0
        expected.append((-1) ** sign * significand * 2**1 * 2)
    np.testing.assert_array_equal(golden.decode_e1m2(NIBBLES), expected)
    np.testing.assert_array_equal(np.abs(golden.decode_e1m2(NIBBLES)), NIBBLES & 7)


def test_int4_decodes_as_ml_dtypes_but_for_the_code_without_meaning():
    ours = golden.decode_int4(NIBBLES)
    theirs = NIBBLES.view(ml_dtypes.int4).astype(np.float64)
    assert (theirs[8], ours[8]) == (-8, 0)
    np.testing.assert_array_equal(np.delete(ours, 8), np.delete(theirs, 8))
    # gfloat's INT8 counts 64ths; four bits of it, shifted to the top, count 4ths.
    wide = [gfloat.decode_float(format_info_ocp_int8, int(code) << 4).fval * 4 for code in NIBBLES]
    np.testing.assert_array_equal(np.delete(ours, 8), np.delete(wide, 8))


def test_int4_encodes_to_the_nearest_integer():
    x = probes(np.arange(8))
    x = np.concatenate([x, -x])
    expected = np.clip(np.rint(x), -7, 7)  # rint rounds ties to even, as the codes do
    ours = golden.encode_int4(x)
    np.testing.assert_array_equal(ours, expected.astype(ml_dtypes.int4).view(np.uint8) & 15)
    np.testing.assert_array_equal(golden.decode_int4(ours), expected)
    assert not (ours == 8).any()


def test_ue4m3_decodes_as_ml_dtypes_and_gfloat():
    ours = golden.decode_ue4m3(BYTES)
    np.testing.assert_array_equal(ours, np.abs(BYTES.view(ml_dtypes.float8_e4m3fn).astype(np.float64)))
    np.testing.assert_array_equal(
        ours, [abs(gfloat.decode_float(format_info_ocp_e4m3, int(byte)).fval) for byte in BYTES]
    )


def test_e2m1_encodes_as_ml_dtypes_and_gfloat():
    x = probes(E2M1.table[:8])
    x = np.concatenate([x, -x])
    ours = golden.encode_e2m1(x)
    theirs = np.clip(x, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    np.testing.assert_array_equal(ours, np.where(theirs == 8, 0, theirs))
    rounded = [gfloat.round_float(format_info_ocp_e2m1, float(v), sat=True) for v in x]
    np.testing.assert_array_equal(golden.decode_e2m1(ours), rounded)


def test_e1m2_encodes_to_the_nearest_integer():
    x = probes(E1M2.table[:8])
    ours = golden.encode_e1m2(np.concatenate([x, -x]))
    expected = np.minimum(np.rint(x), 7).astype(np.uint8)  # rint rounds ties to even, as the codes do
    np.testing.assert_array_equal(ours, np.concatenate([expected, np.where(expected, expected + 8, 0)]))


def test_ue4m3_encodes_as_ml_dtypes_and_gfloat():
    x = probes(UE4M3.table[:127])
    ours = golden.encode_ue4m3(x)
    np.testing.assert_array_equal(ours, np.minimum(x, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8))
    rounded = [gfloat.round_float(format_info_ocp_e4m3, float(v), sat=True) for v in x]
    np.testing.assert_array_equal(golden.decode_ue4m3(ours), rounded)


@pytest.mark.parametrize(
    ("decode", "encode", "codes"),
    [
        (golden.decode_e2m1, golden.encode_e2m1, np.delete(NIBBLES, 8)),
        (golden.decode_e1m2, golden.encode_e1m2, np.delete(NIBBLES, 8)),
        (golden.decode_int4, golden.encode_int4, np.delete(NIBBLES, 8)),
        (golden.decode_ue4m3, golden.encode_ue4m3, BYTES[:127]),
    ],
)
def test_every_code_encodes_to_itself(decode, encode, codes):
    np.testing.assert_array_equal(encode(decode(codes)), codes)


@given(st.lists(st.integers(0, 15), max_size=40).map(lambda codes: codes + codes))
def test_pack_puts_even_elements_in_the_low_nibble(codes):
    array = np.array(codes, np.uint8)
    packed = golden.pack(array)
    assert packed.tolist() == [codes[i] + 16 * codes[i + 1] for i in range(0, len(codes), 2)]
    np.testing.assert_array_equal(golden.unpack(packed), array)


@pytest.mark.parametrize("width", range(2, 9))
def test_codes_of_any_width_stand_side_by_side(width):
    """As the bits of one long integer, the first code lowest."""
    codes = np.random.default_rng(width).integers(0, 1 << width, (2, 3, 40), np.uint8)
    packed = golden.pack(codes, width)
    assert packed.shape == (2, 3, 5 * width)
    for row, octets in zip(codes.reshape(-1, 40).tolist(), packed.reshape(-1, 5 * width), strict=True):
        assert int.from_bytes(octets.tobytes(), "little") == sum(code << width * i for i, code in enumerate(row))
    np.testing.assert_array_equal(golden.unpack(packed, width), codes)


def test_pack_agrees_with_ml_dtypes_nibbles():
    codes = np.random.default_rng(0).integers(0, 16, (3, 5, 32), dtype=np.uint8)
    packed = golden.pack(codes)
    assert packed.shape == (3, 5, 16)
    np.testing.assert_array_equal(packed & 15, codes[..., ::2])
    np.testing.assert_array_equal(golden.unpack(packed), codes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: golden.pack(np.full((2, 4), 16, np.uint8)), r"codes\[0, 0\] is 16; codes are 0 to 15"),
        (lambda: golden.pack(np.zeros(3, np.uint8)), "codes of 4 bits must fill whole bytes along the last"),
        (lambda: golden.pack(np.zeros(12, np.uint8), 3), r"codes of 3 bits must fill whole bytes .* got \(12,\)"),
        (lambda: golden.pack(np.full(8, 8, np.uint8), 3), r"codes\[0\] is 8; codes are 0 to 7"),
        (lambda: golden.pack(np.zeros(8, np.uint8), 17), "width must be 2 to 16; got 17"),
        (lambda: golden.unpack(np.zeros(4, np.uint8), 6), r"data must hold whole codes of 6 bits .* got \(4,\)"),
        (lambda: golden.pack(np.zeros(4, np.int64)), "codes must be uint8; got int64"),
        (lambda: golden.unpack(np.uint8(3)), "data must have at least one dimension"),
        (lambda: golden.decode_ue4m3(np.zeros(4)), "scales must be uint8; got float64"),
        (lambda: golden.encode_e2m1([1.0, np.nan]), r"x\[1\] is NaN"),
        (lambda: golden.encode_ue4m3([1.0, -2.0]), "x must not be negative"),
        (lambda: golden.encode_e1m2(["1"]), "x must be .* float64 or integers; got <U1"),
    ],
)
def test_errors_name_the_culprit(call, message):
    with pytest.raises(golden.ArgumentError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# Records of other formats than those of the catalogue: the elements and scales of OCP's MX, and others.


def minifloats(exponent_bits, mantissa_bits, bias):
    """Values of a sign-magnitude format without infinity and NaN."""
    scale = ScaleFormat("", exponent_bits, mantissa_bits, bias)
    return (*scale.table.tolist(), *(-scale.table).tolist())


@pytest.mark.parametrize(
    ("element", "theirs"),
    [
        (ElementFormat("E2M1", 4, minifloats(2, 1, 1)), ml_dtypes.float4_e2m1fn),
        (ElementFormat("E2M3", 6, minifloats(2, 3, 1), fold=-2), ml_dtypes.float6_e2m3fn),
        (ElementFormat("E3M2", 6, minifloats(3, 2, 3), fold=-3), ml_dtypes.float6_e3m2fn),
        (E2M3, ml_dtypes.float6_e2m3fn),
        (E3M2, ml_dtypes.float6_e3m2fn),
        (E4M3, ml_dtypes.float8_e4m3fn),
        (E5M2, ml_dtypes.float8_e5m2),
        (FP16, np.float16),
        (ElementFormat("INT2", 2, (0.0, 1.0, -2.0, -1.0), fold=1), ml_dtypes.int2),
        (ElementFormat("INT8", 8, tuple(np.arange(256).astype(np.int8).astype(float).tolist()), fold=1), np.int8),
    ],
    ids=lambda x: x.name if isinstance(x, ElementFormat) else "",
)
def test_elements_of_other_widths(element, theirs):
    codes = np.arange(1 << element.width).astype(element.code_type)
    values = codes.view(theirs).astype(np.float64)
    np.testing.assert_array_equal(element.table, values)
    assert [*np.flatnonzero(np.isnan(values))] == [*element.nans]
    assert [*np.flatnonzero(np.isinf(values))] == [*element.infinities]
    values = np.where(np.isfinite(values), values, 0)
    np.testing.assert_array_equal(np.array(element.integers) * 2.0 ** (element.fold - element.point), values)
    assert element.largest == np.abs(values).max()
    x = probes(np.unique(np.abs(values)))
    x = np.clip(np.concatenate([x, -x]), values.min(), values.max())
    expected = np.rint(x) if np.dtype(theirs).kind == "i" or "int" in np.dtype(theirs).name else x
    np.testing.assert_array_equal(element.table[element.encode(x)], expected.astype(theirs).astype(np.float64))


@pytest.mark.parametrize(
    ("scale", "theirs", "smallest", "largest"),
    [
        (UE4M3, ml_dtypes.float8_e4m3fn, 2.0**-9, 448),
        (ScaleFormat("UE8M0", 8, 0, 127, subnormals=False, nan=0xFF), ml_dtypes.float8_e8m0fnu, 2.0**-127, 2.0**127),
        (ScaleFormat("UE5M3", 5, 3, 15, nan=0xFF), None, 2.0**-17, 114688),
        (ScaleFormat("E6M2", 6, 2, 48, subnormals=False, nan=0xFF), None, 2.0**-48, 1.5 * 2**15),
    ],
    ids=lambda x: x.name if isinstance(x, ScaleFormat) else "",
)
def test_scales_of_other_kinds(scale, theirs, smallest, largest):
    assert (scale.smallest, scale.largest) == (smallest, largest)
    assert scale.zero == (0 if scale.table[0] == 0 else None)
    codes = np.arange(1 << scale.width, dtype=np.uint8)
    if theirs is not None:
        np.testing.assert_array_equal(scale.table, codes.view(theirs).astype(np.float64))
    numbers = codes[:-1]
    np.testing.assert_array_equal(scale.encode(scale.table[numbers]), numbers)
    for code in numbers[scale.table[numbers] > 0].tolist():
        value = scale.significand(code) * 2.0 ** (scale.exponent(code) - scale.mantissa_bits)
        assert value == scale.table[code]


def test_ties_go_where_the_preference_says():
    values = (0.0, 1.0, 3.0, 4.0)
    up, down, ends = (ElementFormat("x", 2, values, 1, order) for order in ((3, 2, 1, 0), (0, 1, 2, 3), (3, 0, 2, 1)))
    ties = np.array([0.5, 2.0, 3.5])
    assert [element.encode(ties).tolist() for element in (up, down, ends)] == [[1, 2, 3], [0, 1, 2], [0, 2, 3]]
    for element in (up, down, ends):
        assert element.encode(np.nextafter(ties, 9)).tolist() == [1, 2, 3]
        assert element.encode(np.nextafter(ties, -9)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("bit", [5, 6, 7])
def test_the_tag_may_be_any_bit_above_the_scale(bit):
    """MixFP4 with a scale of five bits: both kinds of elements come back, whatever bit tells them apart."""
    narrow = ScaleFormat("E3M2", 3, 2, 3)
    form = golden.BlockFormat("narrow", (E2M1, E1M2), narrow, 28 * 6, tag_bit=bit)
    x = np.array([[28.0 * v for v in (0, 1, 2, 3, 4, 5, 6, 7) * 2 + (0, 0.5, 1, 1.5, 2, 3, 4, 6) * 2]])
    q = golden.quantize(x, form, tensor_scale=1)
    assert (q.scales >> bit).tolist() == [[1, 0]]
    np.testing.assert_array_equal(golden.dequantize(q), x)
    assert q.format == "narrow"
    assert golden.gemm(q, q, numerics="exact")[0, 0] == np.float32((x @ x.T)[0, 0])


def shifted(elements=(S1P2,), shifts=(8, 4), scale_bytes=2, **more):
    """A format with shifts; the arguments make it one that means nothing."""
    return golden.BlockFormat("x", elements, UE4M3, 1.0, shifts=shifts, scale_bytes=scale_bytes, **more)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ElementFormat("x", 17, (0.0,) * 512), "x: width must be 2 to 16; got 17"),
        (lambda: ElementFormat("x", 2, (0.0, 1.0, 2.0)), "x: a code of 2 bits has 4 values; got 3"),
        (
            lambda: ElementFormat("x", 2, (0.0, 0.25, 0.5, 0.75)),
            r"x: the value of code 1, 0.25, is no multiple of 2\^-1",
        ),
        (lambda: ElementFormat("x", 2, (0.0, 1.0, math.inf, -1.0)), "x: the value of code 2, inf, is no multiple"),
        (lambda: ElementFormat("x", 2, (0.0, math.nan, 0.0, 0.0)), "x: the value of code 1, nan, is no multiple"),
        (lambda: ElementFormat("x", 2, (0.0, 2.0, 1.0, 3.0)), "x: codes 0 and 2 are neighbours and both even"),
        (
            lambda: ElementFormat("x", 2, (0.0, 2.0, 1.0, 3.0), preference=(0, 1, 2)),
            r"x: preference must have codes \[0, 1, 2, 3\]; got \(0, 1, 2\)",
        ),
        (lambda: ScaleFormat("x", 5, 4, 7), r"x: must have an exponent and at most 8 bits; got 5 \+ 4"),
        (lambda: ScaleFormat("x", 0, 4, 7), "x: must have an exponent"),
        (lambda: ScaleFormat("x", 0, 0, 0), "x: a scale without bits is one number, and neither zero nor NaN"),
        (lambda: ScaleFormat("x", 0, 0, 0, subnormals=False, nan=0), "x: a scale without bits is one number"),
        (lambda: ScaleFormat("x", 4, 3, 7, nan=0x7E), "x: nan must be None or the last code, 127; got 126"),
        (lambda: golden.BlockFormat("x", (E2M1, E1M2), UE4M3, 1.0), "x: must have one element format; got E2M1 of 4"),
        (lambda: golden.BlockFormat("x", (), UE4M3, 1.0), "x: must have one element format; got none"),
        (
            lambda: golden.BlockFormat("x", (E2M1, ElementFormat("y", 2, (0.0, 1.0, 2.0, 3.0))), UE4M3, 1.0, tag_bit=7),
            "x: must have 2, 4, 8 ... element formats of equal width; got E2M1 of 4 bits, y of 2 bits",
        ),
        (lambda: golden.BlockFormat("x", (E2M1, E1M2), UE4M3, 1.0, tag_bit=6), "x: tag_bit = 6: a selector of 1 bits"),
        (lambda: golden.BlockFormat("x", (E2M1,) * 3, UE4M3, 1.0, tag_bit=7), "x: must have 2, 4, 8 ... element"),
        (lambda: golden.BlockFormat("x", (E2M1,) * 4, UE4M3, 1.0, tag_bit=7), "tag_bit = 7: a selector of 2 bits .* 7"),
        (
            lambda: golden.BlockFormat("x", (E2M1, E1M2), UE4M3, 1.0, tag_bit=16, scale_bytes=2),
            "tag_bit = 16: a selector of 1 bits .* within the 16 that are stored",
        ),
        (
            lambda: golden.BlockFormat("x", (E2M1,), UE4M3, 1.0, scale_bytes=3),
            "scale_bytes must be 1, 2 or 4, or 0 where .*; got 3",
        ),
        (
            lambda: golden.BlockFormat("x", (E2M1,), UE4M3, 1.0, scale_bytes=4),
            "scale_bytes must be 1 or 2 without shifts; got 4",
        ),
        (lambda: shifted(elements=(E2M1,)), r"x: shifts = \(8, 4\): take elements that are all whole numbers"),
        (lambda: shifted(elements=(S1P2, S1P2), tag_bit=8), r"x: shifts = \(8, 4\): take elements of one kind"),
        (lambda: shifted(factors=(2,)), r"x: shifts = \(8, 4\): take elements of one kind"),
        (lambda: shifted(shifts=(4, 8)), r"x: shifts = \(4, 8\): must divide one another and the 16 products of a sum"),
        (lambda: shifted(shifts=(8, 8)), r"x: shifts = \(8, 8\): must divide one another"),
        (lambda: shifted(shifts=(32,)), r"x: shifts = \(32,\): must divide one another"),
        (lambda: shifted(scale_bytes=1), r"x: shifts = \(8, 4\): 6 bits have no room above the 7 bits of the scale"),
        (lambda: golden.BlockFormat("x", (E2M1,), UE4M3, 1.0, tag_bit=7), "x: must have 2, 4, 8 ... element"),
        (
            lambda: golden.BlockFormat("x", (E2M1,), UE4M3, 1.0, block=0),
            "x: the codes of a block must fill whole bytes",
        ),
        (lambda: golden.BlockFormat("x", (E2M1,), UE4M3, 1.0, block=9), "whole bytes; got 9 of 4 bits"),
        (
            lambda: golden.BlockFormat("x", (E2M1, E1M2), UE4M3, 1.0, tag_bit=7, factors=(1,)),
            r"x: factors must be positive, one for each element; got \(1,\)",
        ),
        (lambda: golden.BlockFormat("x", (E2M1,), UE4M3, 1.0, factors=(0,)), "x: factors must be positive"),
        (lambda: golden.BlockFormat("x", (E2M1,), UE4M3, 1.0, trial=(1,)), "x: trial must have the index of every"),
        (lambda: golden.BlockFormat("x", (E5M2,), UE4M3, 1.0), "x: infinite elements take a scale without zero; UE4M3"),
        (
            lambda: ElementFormat("x", 2, (0.0, 1.0, 0.0, -1.0), 1, infinities=(1, 2)),
            "x: code 1 is NaN or infinite; its value must be 0",
        ),
        (
            lambda: ElementFormat("x", 2, (0.0, 0.0, 0.0, -1.0), 1, infinities=(1, 2), nans=(1,)),
            "x: code 1 is NaN or infinite; its value must be 0, and it named once",
        ),
        (lambda: golden.BlockFormat("x", (E1M2,), UE4M3, 1.0, window=25), "x: a window takes floating-point elements"),
        (lambda: golden.BlockFormat("x", (E2M1,), UE4M3, 1.0, sums=3), "x: sums must divide the block of 16; got 3"),
    ],
)
def test_records_that_mean_nothing_are_refused(make, message):
    with pytest.raises(golden.ArgumentError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_the_catalogue():
    names = "nvfp4 mixfp4 nvfp4-e0m3 nvint4 fp4-ue5m3-b16 fp4-ue5m3-b32 mxfp4 mxfp4-2x16 msfp12 if4"
    names += " razer-activations razer-weights blockdialect mxint8 mxfp6-e2m3 mxfp6-e3m2"
    names += " mxfp8-e4m3 mxfp8-e5m2 l-mul hif4 int8 int4 ternary fp16"
    assert list(golden.FORMATS) == names.split()
    for name, form in golden.CATALOGUE.items():
        assert form.name == name
        assert golden.block_format(name) is golden.block_format(form) is form
        # The largest element under the largest scales is the largest magnitude of a tensor.
        largest = form.scale.largest * form.elements[0].largest
        divided = not form.scale.width or (form.scale.mantissa_bits and form.scale.width < 8)
        assert form.tensor_divisor == (largest if divided and name != "fp16" else None)
    assert INT4.integers == (0, 1, 2, 3, 4, 5, 6, 7, 0, -7, -6, -5, -4, -3, -2, -1)
