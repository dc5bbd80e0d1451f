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
        ("nvfp4", "six", "rule must be one of 'nearest', 'four-over-six', 'least-error' for nvfp4; got 'six'"),
        ("mixfp4", "four-over-six", "rule must be one of 'nearest', 'least-error' for mixfp4; got 'four-over-six'"),
        ("hif4", "least-error", "rule must be one of 'reciprocal' for hif4; got 'least-error'"),
        ("int8", "least-error", "rule must be one of 'unscaled' for int8"),
        ("nvint4", 4, "rule must be one of 'nearest', 'least-error' for nvint4; got 4"),
    ],
)
def test_rules_that_a_format_has_not_are_refused(form, rule, message):
    with pytest.raises(golden.ArgumentError, match=message):
        golden.quantize(np.ones((1, 32)), form, rule=rule)


def squared(x, form, rule):
    """Squared error of each block."""
    q = golden.quantize(x, form, rule=rule)
    values = q.form.values(q.codes, q.scales) * q.core_scale
    return np.square(values - x).reshape(-1, q.form.block).sum(axis=1)


SCALED = [name for name, form in golden.CATALOGUE.items() if form.scale.width and not form.shifts]


@pytest.mark.parametrize("form", SCALED)
def test_least_error_is_the_least_of_all_scales_nearby(form):
    """Compared with every scale that there is within the bounds, by a search that knows nothing of the rule's own."""
    record = golden.block_format(form)
    x = np.random.default_rng(6).standard_t(3, (12 if len(record.elements) < 5 else 3, 2 * record.block))
    default = golden.quantize(x, form)
    q = golden.quantize(x, form, rule="least-error")
    assert q.tensor_scale == default.tensor_scale
    found = squared(x, form, "least-error")
    assert found.sum() <= squared(x, form, None).sum()
    if record.by_tensor:
        return
    if record.scale.mantissa_bits:
        assert found.sum() < squared(x, form, None).sum()
        assert (found <= squared(x, form, None) * (1 + 1e-12)).all()
    for number, block in enumerate(x.reshape(-1, record.block)):
        errors = []
        for index, element in enumerate(record.elements):
            weight = record.factors[index] / record.factors[0] if record.factors else 1.0
            ideal = np.abs(block).max() / element.largest / weight / default.tensor_scale
            for scale in record.scale.table[: record.scale.last + 1]:
                # Half a code within the bounds: the rule's are about the nearest scale, not about the ideal.
                if 2**-0.4 < scale / ideal < 2**0.65:
                    unit = scale * weight * default.tensor_scale
                    errors.append(np.square(element.table[element.encode(block / unit)] * unit - block).sum())
        assert errors
        assert found[number] <= min(errors) * (1 + 1e-9) + 1e-12


def test_ties_of_least_error_go_to_the_nearest_scale():
    """6 is exact under scales of 1, of 1.5 and of 2."""
    block = np.zeros((1, 16))
    block[0, 3] = 6
    q = golden.quantize(block, "nvfp4", tensor_scale=1, rule="least-error")
    assert (q.scales[0, 0], q.codes[0, 3]) == (0x38, 7)
    zeros = golden.quantize(np.zeros((1, 16)), "nvfp4", rule="least-error")
    assert (zeros.tensor_scale, zeros.scales[0, 0]) == (1, 0)


@pytest.mark.parametrize("form", ["nvfp4", "mixfp4", "razer-weights", "mxfp4"])
def test_scales_of_least_error_end_with_the_format(form):
    """The largest block of a tensor has the largest scale by the nearest, and what is above that is NaN."""
    x = np.random.default_rng(7).standard_normal((64, 64)) * 2.0**120
    assert np.isfinite(golden.dequantize(golden.quantize(x, form, rule="least-error"))).all()


def test_four_over_six_needs_no_tensor_scale():
    """UE5M3 has room for the scale that is 1.5 times as large."""
    x = np.random.default_rng(8).standard_normal((64, 64))
    assert golden.quantize(x, "fp4-ue5m3-b16", rule="four-over-six").tensor_scale == 1
    four, plain = (squared(x, "fp4-ue5m3-b16", rule) for rule in ("four-over-six", "nearest"))
    assert (four <= plain).all()
    assert 0.2 < (four < plain).mean() < 0.6


def test_four_over_six_is_for_the_tensor_scale_of_nvfp4_alone():
    plain = golden.block_format("nvfp4")
    other = golden.BlockFormat("other", plain.elements, plain.scale, 100.0)
    with pytest.raises(golden.ArgumentError, match="rule must be one of 'nearest', 'least-error' for other; got"):
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
