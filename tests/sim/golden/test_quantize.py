"""The quantiser against a scalar reference, one block and one element at a time."""

import bisect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from vectors import BLOCK_A, BLOCK_B, BLOCK_C

from sim import golden

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E1M2 = [float(i) for i in range(8)]
UE4M3 = [(b & 7) / 8 * 2.0**-6 if b < 8 else (1 + (b & 7) / 8) * 2.0 ** ((b >> 3) - 7) for b in range(127)]
SMALLEST = 2.0**-149
KINDS = {  # magnitudes by code and the tag, of every element format
    "nvfp4": [(E2M1, 0)],
    "mixfp4": [(E2M1, 0), (E1M2, 0x80)],
    "nvint4": [(E1M2, 0)],  # the integers, as two's complement
}


def nearest_code(value: float, grid: list[float]) -> int:
    """Nearest in exact arithmetic, ties to the even code; saturates because the grid ends."""
    above = bisect.bisect_left(grid, value)
    neighbours = [code for code in (above - 1, above) if 0 <= code < len(grid)]
    return min(neighbours, key=lambda code: (abs(Fraction(grid[code]) - Fraction(value)), code % 2))


def with_sign(code: int, fmt: str) -> int:
    """The code of the negative of a positive element."""
    if code == 0:
        return 0
    return 16 - code if fmt == "nvint4" else code + 8


def reference(x: np.ndarray, fmt: str, s32: float | None = None):
    peak = max(abs(float(v)) for v in x.ravel())
    if s32 is None:
        s32 = 1.0 if peak == 0 else max(float(np.float32(peak / (3136 if fmt == "nvint4" else 2688))), SMALLEST)
    codes, scales = np.zeros(x.shape, np.uint8), np.zeros((x.shape[0], x.shape[1] // 16), np.uint8)
    for row in range(x.shape[0]):
        for b in range(x.shape[1] // 16):
            block = [float(v) for v in x[row, 16 * b : 16 * b + 16]]
            candidates = []
            for grid, tag in KINDS[fmt]:
                byte = nearest_code(max(map(abs, block)) / (grid[-1] * s32), UE4M3)
                scale, chosen, error = UE4M3[byte], [], 0.0
                for v in block:
                    code = nearest_code(abs(v) / (scale * s32), grid) if scale else 0
                    sign = -1.0 if v < 0 else 1.0
                    difference = v - sign * grid[code] * scale * s32
                    error += difference * difference
                    chosen.append(with_sign(code, fmt) if v < 0 else code)
                candidates.append((byte | tag, chosen, error))
            first, last = candidates[0], candidates[-1]
            best = first if first[2] < last[2] else last
            if any(best[1]):
                scales[row, b], codes[row, 16 * b : 16 * b + 16] = best[0], best[1]
    return codes, scales, np.float32(s32)


def check(x: np.ndarray, fmt: str, s32: float | None = None) -> golden.QuantizedTensor:
    q = golden.quantize(x, fmt, tensor_scale=s32)
    codes, scales, tensor_scale = reference(x, fmt, s32)
    np.testing.assert_array_equal(q.scales, scales)
    np.testing.assert_array_equal(q.codes, codes)
    assert q.tensor_scale == tensor_scale
    assert q.tensor_scale.dtype == np.float32
    assert not (q.codes == 8).any()
    return q


formats = pytest.mark.parametrize("fmt", KINDS)


@formats
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.standard_normal((8, 64)),
        lambda rng: rng.standard_t(1.2, (8, 64)),
        lambda rng: rng.standard_normal((8, 64)) * 2.0 ** rng.integers(-30, 30, (8, 1)),
        lambda rng: rng.integers(-24, 25, (8, 64)) / 2.0,  # ties, in values and in errors
        lambda rng: rng.integers(-6, 7, (8, 64)) * 448.0 * (rng.random((8, 64)) < 0.3),
        lambda rng: rng.standard_normal((8, 64)) * 2.0**-148,
        lambda rng: rng.standard_normal((8, 64)) * 3e38,
        lambda rng: rng.standard_normal((8, 64)).astype(np.float32),
        lambda rng: rng.standard_normal((8, 64)).astype(np.float16),
        lambda rng: rng.integers(-128, 128, (8, 64), np.int8),
        lambda rng: rng.integers(0, 1 << 16, (8, 64), np.uint16),
        lambda rng: rng.integers(-(1 << 53), (1 << 53) + 1, (8, 64)),
    ],
)
def test_matches_the_scalar_reference(fmt, draw):
    for seed in range(4):
        check(draw(np.random.default_rng(seed)), fmt)


@formats
@settings(max_examples=30, deadline=None)
@given(
    x=hnp.arrays(
        np.float64,
        (2, 32),
        elements=st.floats(-1e30, 1e30, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.5]),
    )
)
def test_matches_the_scalar_reference_on_anything(fmt, x):
    check(x, fmt)


@formats
@pytest.mark.parametrize("s32", [1.0, 2.0**-10, 0.3125, 2.0**-128])
def test_a_given_tensor_scale(fmt, s32):
    rng = np.random.default_rng(5)
    check(rng.standard_normal((4, 64)), fmt, s32)
    check(rng.standard_normal((4, 64)) * 1e4, fmt, s32)  # beyond 448 * 6 * s32: saturates
    for form in (np.float32(s32), np.array([s32])):
        np.testing.assert_array_equal(golden.quantize(np.ones((1, 16)), fmt, tensor_scale=form).tensor_scale, s32)


# A tensor scale of 1: a block, then scale, codes and error.
@pytest.mark.parametrize(
    ("fmt", "block", "scale", "codes", "error"),
    [
        ("nvfp4", BLOCK_A, 0x36, "0923D6017F04B5E1", 0.680356),
        ("nvfp4", BLOCK_B, 0x39, "7F6E54A17FD3095E", 2.447969),
        ("nvfp4", BLOCK_C, 0x38, "76E54C326D0A64F3", 1.312500),
        ("nvint4", BLOCK_A, 0x34, "0012D4016903F4B0", 0.745200),
        ("nvint4", BLOCK_B, 0x38, "7A5C32F069D20F4B", 0.830000),
    ],
)
def test_check_vectors(fmt, block, scale, codes, error):
    x = np.array([block])
    q = golden.quantize(x, fmt, tensor_scale=1)
    assert q.scales.tolist() == [[scale]]
    assert "".join(f"{code:X}" for code in q.codes[0]) == codes
    assert np.square(golden.dequantize(q) - x).sum() == pytest.approx(error, abs=1e-6)


def test_integers_are_quantised_as_the_numbers_they_are():
    x = np.random.default_rng(4).integers(-9, 10, (4, 32))
    expected = golden.quantize(x.astype(np.float64), "mixfp4")
    for integers in (x, x.tolist(), x.astype(np.int8), x.astype(">i2")):
        q = golden.quantize(integers, "mixfp4")
        np.testing.assert_array_equal(q.codes, expected.codes)
        np.testing.assert_array_equal(q.scales, expected.scales)


def test_errors_are_added_first_to_last():
    """Blocks whose two errors have the same 16 squares in different lanes: only rounding tells them apart."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-112, 112, (200, 16))  # zero in both formats
    offset = rng.integers(0, 1 << 50, (200, 4)) * 2.0**-44  # below 64, and exact in what follows
    lanes = rng.permuted(np.tile(np.arange(1, 16), (200, 1)), axis=1)[:, :8]
    # 448 is a value of E2M1, 384 one of E1M2.
    np.put_along_axis(x, lanes, np.concatenate([384 + offset, 448 - offset], axis=1), axis=1)
    x[:, 0] = 2688
    tags = check(x, "mixfp4").scales >> 7
    assert 0.1 < tags.mean() < 0.9
    backwards = golden.quantize(np.ascontiguousarray(x[:, ::-1]), "mixfp4").scales >> 7
    assert (backwards != tags).any()


@formats
def test_chunks_do_not_show(fmt):
    x = np.random.default_rng(0).standard_normal((600, 1024))
    x[0, 0] = x[-1, -1] = 30  # the same tensor scale for the parts
    whole, parts = golden.quantize(x, fmt), [golden.quantize(x[:1], fmt), golden.quantize(x[-1:], fmt)]
    for part, row in zip(parts, (slice(1), slice(-1, None)), strict=True):
        np.testing.assert_array_equal(whole.codes[row], part.codes)
        np.testing.assert_array_equal(whole.scales[row], part.scales)


@formats
def test_memory_layout_does_not_matter(fmt):
    x = np.random.default_rng(3).standard_normal((32, 64))
    expected = golden.quantize(x, fmt)
    strided = np.zeros((64, 192))
    strided[::2, ::3] = x
    for other in (np.asfortranarray(x), strided[::2, ::3], x.astype(">f8")):
        q = golden.quantize(other, fmt)
        np.testing.assert_array_equal(q.codes, expected.codes)
        np.testing.assert_array_equal(q.scales, expected.scales)


@formats
def test_all_zero_tensor(fmt):
    q = golden.quantize(np.full((2, 32), -0.0), fmt)
    assert q.tensor_scale == 1
    assert not q.codes.any()
    assert not q.scales.any()


@pytest.mark.parametrize("fmt", golden.CATALOGUE)
def test_zeros_of_either_sign_are_zero_in_every_format(fmt):
    x = np.zeros((2, 64))
    x[1] = -0.0
    q = golden.quantize(x, fmt)
    assert not q.codes.any()
    assert not golden.dequantize(q).any()


@formats
def test_the_largest_element_is_never_the_code_without_meaning(fmt):
    x = -np.abs(np.random.default_rng(6).standard_t(1.5, (64, 64)))
    assert not (golden.quantize(x, fmt).codes == 8).any()


@formats
@pytest.mark.parametrize("peak", [5e-324, 1e-300, 1e-44])
def test_tiny_tensor_takes_the_smallest_subnormal_scale(fmt, peak):
    x = np.zeros((1, 32))
    x[0, 5] = -peak
    assert check(x, fmt).tensor_scale == np.float32(SMALLEST)


@formats
def test_scale_that_rounds_to_zero_gives_a_zero_block(fmt):
    x = np.zeros((1, 32))
    x[0, 0], x[0, 20] = 2688.0, 7 * 2.0**-11
    q = check(x, fmt)
    assert q.scales[0, 1] == 0
    assert not q.codes[0, 16:].any()


def test_block_that_only_e2m1_can_hold_is_not_lost():
    # The E2M1 scale rounds up to the smallest subnormal where the E1M2 scale rounds to zero.
    x = np.zeros((1, 32))
    x[0, 0], x[0, 20] = 2688.0, 6.5 * 2.0**-10
    q = check(x, "mixfp4")
    assert q.scales[0, 1] == 0x01
    assert q.codes[0, 20] == 5


def test_ties_go_to_e1m2():
    x = np.zeros((1, 16))
    x[0, :2] = [2688.0, 0.0]  # both formats hold 448 * 6 = 384 * 7 exactly
    q = check(x, "mixfp4")
    assert q.scales[0, 0] == 0x80 | golden.encode_ue4m3(384.0)
    assert q.codes[0, 0] == 7


def test_nvfp4_sets_no_tag():
    x = np.random.default_rng(1).standard_normal((16, 256))
    assert golden.quantize(x, "nvfp4").scales.max() < 0x80
    assert 0.1 < (golden.quantize(x, "mixfp4").scales >= 0x80).mean() < 0.9


@formats
def test_dequantize_is_the_exact_product_rounded_once(fmt):
    rng = np.random.default_rng(2)
    q = golden.quantize(rng.standard_normal((4, 64)) * 2.0 ** rng.integers(-9, 1, (4, 1)), fmt)
    values = golden.dequantize(q)
    assert values.dtype == np.float32
    for (row, column), value in np.ndenumerate(values):
        byte, code = int(q.scales[row, column // 16]), int(q.codes[row, column])
        grid = E1M2 if byte & 0x80 or fmt == "nvint4" else E2M1
        magnitude = 16 - code if fmt == "nvint4" and code & 8 else code & 7
        exact = Fraction(grid[magnitude]) * Fraction(UE4M3[byte & 0x7F]) * Fraction(float(q.tensor_scale))
        assert value == np.float32(float(-exact if code & 8 else exact))  # 31 bits: float() is exact


def test_dequantize_restores_what_fits():
    x = np.zeros((1, 16))
    x[0] = [2688 * v / 6 for v in (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)]
    np.testing.assert_array_equal(golden.dequantize(golden.quantize(x, "mixfp4")), x)


def test_dequantize_marks_nan_blocks_and_overflows_to_infinity():
    codes = np.full((1, 32), 7, np.uint8)
    q = golden.QuantizedTensor(codes, np.array([[0x7F, 0x7E]], np.uint8), np.float32(3e38), "nvfp4")
    values = golden.dequantize(q)
    assert np.isnan(values[0, :16]).all()
    assert np.isposinf(values[0, 16:]).all()


def broken(**changes) -> golden.QuantizedTensor:
    fields = {
        "codes": np.zeros((2, 32), np.uint8),
        "scales": np.zeros((2, 2), np.uint8),
        "tensor_scale": np.float32(1),
        "format": "mixfp4",
    }
    return golden.QuantizedTensor(**{**fields, **changes})


def with_value(value: float) -> np.ndarray:
    x = np.zeros((3, 32))
    x[1, 7] = x[2, 0] = value
    return x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: golden.quantize(with_value(np.nan), "nvfp4"), r"x\[1, 7\] is nan"),
        (lambda: golden.quantize(np.asfortranarray(with_value(-np.inf)), "nvfp4"), r"x\[1, 7\] is -inf"),
        (
            lambda: golden.quantize(np.zeros((2, 24)), "nvfp4"),
            r"K a positive multiple of 16 \(see padded\); got \(2, 24\)",
        ),
        (lambda: golden.quantize(np.zeros(16), "nvfp4"), r"x must be \(rows, K\)"),
        (lambda: golden.quantize(np.zeros((0, 16)), "nvfp4"), r"x must be \(rows, K\)"),
        (lambda: golden.quantize(np.zeros((1, 16), bool), "nvfp4"), "x must be .* float64 or integers; got bool"),
        (
            lambda: golden.quantize(np.zeros((1, 16)), "mxfp5"),
            "one of 'nvfp4', 'mixfp4', 'nvfp4-e0m3', .*; got 'mxfp5'",
        ),
        (lambda: golden.quantize(with_value(1e300), "nvfp4"), "within the float32 range"),
        (
            lambda: golden.quantize(np.full((1, 16), 2**53 + 1), "nvfp4"),
            r"x\[0, 0\] is 9007199254740993; integers must be within -2\^53 and 2\^53",
        ),
        (
            lambda: golden.quantize(np.full((1, 16), 2**64 - 1, np.uint64), "nvfp4"),
            r"x\[0, 0\] is 18446744073709551615; integers must be",
        ),
        (lambda: golden.quantize(np.zeros((1, 16)), None), "one of 'nvfp4', 'mixfp4', 'nvfp4-e0m3', .*; got None"),
        (lambda: golden.quantize(np.zeros((1, 16)), "nvfp4", tensor_scale=0.1), "that float32 holds; got 0.1"),
        (lambda: golden.quantize(np.zeros((1, 16)), "nvfp4", tensor_scale=-1), "must be positive and finite; got -1.0"),
        (lambda: golden.quantize(np.zeros((1, 16)), "nvfp4", tensor_scale=np.inf), "must be positive and finite"),
        (lambda: golden.quantize(np.zeros((1, 16)), "nvfp4", tensor_scale=[1, 1]), "tensor_scale must be one number"),
        (lambda: golden.dequantize(np.zeros((1, 16))), "q must be a QuantizedTensor"),
        (lambda: broken(codes=np.full((2, 32), 99, np.uint8)), r"codes\[0, 0\] is 99"),
        (lambda: broken(scales=np.zeros((2, 3), np.uint8)), r"scales must be \(2, 2\), one per 16 codes"),
        (lambda: broken(scales=np.zeros((2, 2), np.int8)), "scales must be uint8; got int8"),
        (lambda: broken(tensor_scale=np.float32(0)), "tensor_scale must be a positive finite"),
        (lambda: broken(tensor_scale=np.float32(math.nan)), "tensor_scale must be a positive finite"),
        (lambda: broken(tensor_scale=np.float32(math.inf)), "tensor_scale must be a positive finite"),
        (lambda: broken(tensor_scale=1.0), "tensor_scale must be a positive finite"),
        (
            lambda: broken(format="nvfp4", scales=np.full((2, 2), 0x81, np.uint8)),
            r"scales\[0, 0\] has bit 7 set, which",
        ),
        (lambda: broken(format="nvint4", scales=np.full((2, 2), 0xFF, np.uint8)), "bit 7 set, .* no meaning in nvint4"),
    ],
)
def test_errors_name_the_culprit(call, message):
    with pytest.raises(golden.ArgumentError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


E2M1_TIMES = [golden.block_format("nvfp4").elements[0].values, tuple(2.0 * v for v in (*range(8), *range(0, -8, -1)))]
E2M1_TIMES += [tuple(4.0 * v for v in E2M1_TIMES[0]), tuple(float(v) for v in (*range(8), *range(0, -8, -1)))]


def test_the_best_of_four_elements() -> None:
    """Each in turn is taken, unless an earlier one has strictly less error: four formats of one element as judges."""
    scale = golden.ScaleFormat("E3M3", 3, 3, 3)
    elements = tuple(
        golden.ElementFormat(f"T{i}", 4, values, fold)
        for i, (values, fold) in enumerate(zip(E2M1_TIMES, (0, 2, 2, 1), strict=True))
    )
    form = golden.BlockFormat("four", elements, scale, 1.0, tag_bit=6)
    alone = [golden.BlockFormat(element.name, (element,), scale, 1.0) for element in elements]
    rng = np.random.default_rng(9)
    x = np.concatenate(
        [rng.standard_t(2, (40, 64)), rng.integers(-6, 7, (40, 64)) * 2.0 ** rng.integers(-3, 4, (40, 1))]
    )
    q = golden.quantize(x, form, tensor_scale=0.25)
    candidates = [golden.quantize(x, each, tensor_scale=0.25) for each in alone]
    squares = [np.square(x - golden.dequantize(each)).reshape(80, 4, 16) for each in candidates]
    # Codes of a scale that rounds to zero are all zero, and such a block selects nothing.
    errors = np.array([[[sum(block) for block in row] for row in each.tolist()] for each in squares])
    best = 3 - np.argmin(errors[::-1], axis=0)
    best[~q.codes.reshape(80, 4, 16).any(axis=2)] = 0
    np.testing.assert_array_equal(q.scales >> 6, best)
    assert set(best.ravel().tolist()) >= {0, 2, 3}
    for index, each in enumerate(candidates):
        chosen = best == index
        np.testing.assert_array_equal((q.scales & 63)[chosen], each.scales[chosen])
        np.testing.assert_array_equal(q.codes.reshape(80, 4, 16)[chosen], each.codes.reshape(80, 4, 16)[chosen])
    with pytest.raises(golden.ArgumentError, match="e1m2 chooses between two kinds of elements; four has 4"):
        golden.quantize(x, form, e1m2=np.zeros((80, 4), bool))


def test_blocks_of_a_given_format() -> None:
    x = np.random.default_rng(8).standard_normal((4, 64))
    free, plain = golden.quantize(x, "mixfp4"), golden.quantize(x, "nvfp4")
    tagged = free.scales >= 128
    given = golden.quantize(x, "mixfp4", e1m2=tagged)
    np.testing.assert_array_equal(given.codes, free.codes)
    np.testing.assert_array_equal(given.scales, free.scales)
    none = golden.quantize(x, "mixfp4", e1m2=np.zeros((4, 4), bool))
    np.testing.assert_array_equal(none.codes, plain.codes)
    np.testing.assert_array_equal(none.scales, plain.scales)
    assert (golden.quantize(x, "mixfp4", e1m2=np.ones((4, 4), bool)).scales >= 128).all()
    with pytest.raises(golden.ArgumentError, match="nvfp4 has no E1M2 blocks"):
        golden.quantize(x, "nvfp4", e1m2=tagged)
    for wrong in (tagged[:2], tagged.astype(int)):
        with pytest.raises(golden.ArgumentError, match=r"array of bool, \(4, 4\)"):
            golden.quantize(x, "mixfp4", e1m2=wrong)
