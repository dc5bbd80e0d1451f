"""Codes and block scales against ml_dtypes and gfloat, which share nothing with the golden model."""

import gfloat
import ml_dtypes
import numpy as np
import pytest
from gfloat.formats import format_info_ocp_e2m1, format_info_ocp_e4m3
from hypothesis import given
from hypothesis import strategies as st

from sim import golden
from sim.golden.element import E1M2, E2M1
from sim.golden.scale import UE4M3

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
        (lambda: golden.pack(np.zeros(3, np.uint8)), "codes must have an even last dimension"),
        (lambda: golden.pack(np.zeros(4, np.int64)), "codes must be uint8; got int64"),
        (lambda: golden.unpack(np.uint8(3)), "data must have at least one dimension"),
        (lambda: golden.decode_ue4m3(np.zeros(4)), "scales must be uint8; got float64"),
        (lambda: golden.encode_e2m1([1.0, np.nan]), r"x\[1\] is NaN"),
        (lambda: golden.encode_ue4m3([1.0, -2.0]), "x must not be negative"),
        (lambda: golden.encode_e1m2(["1"]), "x must be .* float64 or integers; got <U1"),
    ],
)
def test_errors_name_the_culprit(call, message):
    with pytest.raises(golden.InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
