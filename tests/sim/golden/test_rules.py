"""Rules of quantisation, against scalar references and published vectors."""

from fractions import Fraction

import numpy as np
import pytest
import rational
from vectors import BLOCK_A, BLOCK_B, BLOCK_C

from sim import golden

GRID = [abs(value) for value in rational.E2M1[:8]]
UE4M3 = [rational.minifloat(code, 4, 3, 7) for code in range(127)]


def nearest(value, table):
    return min(range(len(table)), key=lambda code: (abs(table[code] - value), code % 2))


def error(block, scale, codes):
    return sum((Fraction(x) - rational.E2M1[code] * UE4M3[scale]) ** 2 for x, code in zip(block, codes, strict=True))


def candidate(block, top):
    """Scale and codes of a block, in units of the tensor scale."""
    scale = nearest(Fraction(max(map(abs, block))) / top, UE4M3)
    if not UE4M3[scale]:
        return 0, [0] * 16
    codes = [nearest(abs(Fraction(x)) / UE4M3[scale], GRID) for x in block]
    return scale, [code + 8 if x < 0 and code else code for code, x in zip(codes, block, strict=True)]


@pytest.mark.parametrize(
    ("block", "scale", "codes", "six", "four"),
    [
        (BLOCK_A, 0x36, "0923D6017F04B5E1", 0.680356, 0.803325),
        (BLOCK_B, 0x39, "7F6E54A17FD3095E", 2.447969, 2.842500),
        (BLOCK_C, 0x3C, "65D43B215C0953E2", 1.312500, 0),
    ],
)
def test_check_vectors_of_four_over_six(block, scale, codes, six, four):
    q = golden.quantize([block], "nvfp4", tensor_scale=1, rule="four-over-six")
    assert q.scales.tolist() == [[scale]]
    assert "".join(f"{code:X}" for code in q.codes[0]) == codes
    assert np.square(golden.dequantize(q) - block).sum() == pytest.approx(min(six, four), abs=5e-7)
    for top, expected in ((6, six), (4, four)):
        assert float(error(block, *candidate(block, top))) == pytest.approx(expected, abs=5e-7)


def test_four_over_six_is_the_better_of_two():
    """With numbers of few bits and a tensor scale of a power of two, all arithmetic is exact but the divisions."""
    rng = np.random.default_rng(1)
    x = rng.integers(-96, 97, (40, 32)) / 16.0
    x[:, 16:] *= 64
    q = golden.quantize(x, "nvfp4", tensor_scale=1, rule="four-over-six")
    fours = 0
    for row, half in np.ndindex(40, 2):
        block = x[row, 16 * half : 16 * half + 16].tolist()
        six, four = candidate(block, 6), candidate(block, 4)
        better = error(block, *four) < error(block, *six)
        fours += better
        scale, codes = four if better else six
        assert q.scales[row, half] == scale
        assert q.codes[row, 16 * half : 16 * half + 16].tolist() == codes
    assert 20 < fours < 60


def test_ties_of_four_over_six_go_to_six():
    """One number is exact both ways: 6 under a scale of 1, 4 under 1.5."""
    block = np.zeros((1, 16))
    block[0, 3] = 6
    q = golden.quantize(block, "nvfp4", tensor_scale=1, rule="four-over-six")
    assert (q.scales[0, 0], q.codes[0, 3]) == (0x38, 7)


def test_tensor_scale_of_four_over_six():
    """The block of the largest number has a scale of 256 for 6, or 384 for 4; others may have others between."""
    x = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
    q = golden.quantize(x, "nvfp4", rule="four-over-six")
    assert q.tensor_scale == np.float32(np.abs(x).max() / np.float64(1536))
    row, column = np.unravel_index(np.abs(x).argmax(), x.shape)
    scales = golden.decode_ue4m3(q.scales)
    assert scales[row, column // 16] in (256, 384)
    assert scales.max() <= 384
    plain = golden.quantize(x, "nvfp4")
    errors = [np.square(golden.dequantize(each) - x).sum() for each in (q, plain)]
    assert errors[0] < 0.95 * errors[1]
    zeros = golden.quantize(np.zeros((1, 16)), "nvfp4", rule="four-over-six")
    assert (zeros.tensor_scale, zeros.scales[0, 0]) == (1, 0)


def test_the_default_is_the_first_rule():
    x = np.random.default_rng(3).standard_normal((4, 64))
    for form, rule in (("nvfp4", "nearest"), ("mixfp4", "nearest"), ("fp4-ue5m3-b32", "nearest")):
        plain, named = golden.quantize(x, form), golden.quantize(x, form, rule=rule)
        np.testing.assert_array_equal(plain.scales, named.scales)
        np.testing.assert_array_equal(plain.codes, named.codes)


@pytest.mark.parametrize(
    ("form", "rule", "message"),
    [
        ("nvfp4", "six", "rule must be one of 'nearest', 'four-over-six' for nvfp4; got 'six'"),
        ("mixfp4", "four-over-six", "rule must be one of 'nearest' for mixfp4; got 'four-over-six'"),
        ("fp4-ue5m3-b16", "four-over-six", "rule must be one of 'nearest' for fp4-ue5m3-b16"),
        ("nvint4", 4, "rule must be one of 'nearest' for nvint4; got 4"),
    ],
)
def test_rules_that_a_format_has_not_are_refused(form, rule, message):
    with pytest.raises(golden.ArgumentError, match=message):
        golden.quantize(np.ones((1, 32)), form, rule=rule)


def test_four_over_six_is_for_the_tensor_scale_of_nvfp4_alone():
    plain = golden.block_format("nvfp4")
    other = golden.BlockFormat("other", plain.elements, plain.scale, 100.0)
    with pytest.raises(golden.ArgumentError, match="rule must be one of 'nearest' for other; got 'four-over-six'"):
        golden.quantize(np.ones((1, 16)), other, rule="four-over-six")


def test_the_mean_magnitude_takes_a_tensor_scale():
    plain = golden.block_format("ternary")
    other = golden.BlockFormat("other", plain.elements, plain.scale, None, scale_bytes=0)
    with pytest.raises(golden.ArgumentError, match="rule must be one of 'unscaled' for other; got 'absmean'"):
        golden.quantize(np.ones((1, 16)), other, rule="absmean")


@pytest.mark.parametrize(("rule", "scale"), [("floor", 0xFF), ("ceil", 0xFE)])
def test_numbers_beyond_all_scales_have_the_last_one_though_float64_does_not_hold_their_ratio(rule, scale):
    x = np.zeros((1, 32))
    x[0, 0] = 1e300
    with np.errstate(all="raise"):
        q = golden.quantize(x, "mxfp4", tensor_scale=np.float32(2.0**-40), rule=rule)
    assert q.scales[0, 0] == scale
