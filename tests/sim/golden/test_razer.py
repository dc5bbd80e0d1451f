"""RaZeR: check vectors, its roundings, and the choice of the special value, for activations and for weights."""

from fractions import Fraction

import numpy as np
import pytest
import rational
from vectors import BLOCK_A, BLOCK_B

from sim import golden

FORMS = ("razer-activations", "razer-weights")
SPECIAL = {FORMS[0]: (5, -5), FORMS[1]: (5, -5, 8, -8)}
"""By selector."""
SCALES = {
    FORMS[0]: [rational.minifloat(code, 4, 3, 7) for code in range(127)],
    FORMS[1]: [rational.minifloat(code, 3, 3, 3) for code in range(63)],
}
GRID = rational.E2M1


@pytest.mark.parametrize(
    ("form", "block", "scale", "codes", "error"),
    [
        (FORMS[0], BLOCK_A, 0x36, "0923D6018F04B5E1", 0.483481),
        (FORMS[0], BLOCK_B, 0xB9, "786E54A17FD3095E", 1.801094),
        (FORMS[1], BLOCK_A, 0x16, "0923D6018F04B5E1", 0.483481),
        (FORMS[1], BLOCK_B, 0x59, "786E54A17FD3095E", 1.801094),
    ],
)
def test_check_vectors(form, block, scale, codes, error):
    """Scales of weights, 0.875 and 1.125, are E3M3; which bits say +5 and -5 is ours."""
    q = golden.quantize([block], form, tensor_scale=1)
    assert q.scales.tolist() == [[scale]]
    assert "".join(f"{code:X}" for code in q.codes[0]) == codes
    assert np.square(golden.dequantize(q)[0].astype(np.float64) - block).sum() == pytest.approx(error, abs=5e-7)


def activation(number, special):
    """Code of a number: E2M1, a tie to less magnitude; then the special value, if it is no farther."""
    code = min((c for c in range(16) if c != 8), key=lambda c: (abs(GRID[c] - number), abs(GRID[c])))
    return 8 if abs(number - special) <= abs(number - GRID[code]) else code


def weight(number, special):
    """Code of a number: the nearest of 16 values, a midpoint to the lower one."""
    values = [*GRID[:8], Fraction(special), *GRID[9:]]
    return min(range(16), key=lambda c: (abs(values[c] - number), values[c]))


def candidate(form, block, special):
    """Squared error, scale and codes of a block with one special value, in units of the tensor scale."""
    top = max(6, abs(special))
    scales = SCALES[form]
    scale = min(range(1, len(scales)), key=lambda c: (abs(scales[c] - max(map(abs, block)) / top), c % 2))
    codes = [(activation if form == FORMS[0] else weight)(x / scales[scale], special) for x in block]
    values = [Fraction(special) if code == 8 else GRID[code] for code in codes]
    error = sum((value * scales[scale] - x) ** 2 for value, x in zip(values, block, strict=True))
    return error, scale, codes


@pytest.mark.parametrize(("form", "trial"), [(FORMS[0], (1, 0)), (FORMS[1], (0, 1, 2, 3))])
def test_choices_against_exact_arithmetic(form, trial):
    """Quarters under scales that are often 1, so ties of every kind; of equal errors the first that is tried."""
    rng = np.random.default_rng(1)
    x = rng.integers(-32, 33, (100, 16)) / 4
    x[::2] = np.clip(x[::2], -6, 6)
    x[::2, 0] = rng.choice([6.0, -6.0], 50)
    x[::5] = rng.integers(-512, 513, (20, 16)) / 64
    x[::7, 2:] = 0
    x[:, 1] = np.where(rng.random(100) < 0.5, 5.0, x[:, 1])
    q = golden.quantize(x, form, tensor_scale=1)
    width = q.form.scale.width
    assert set((q.scales >> width).ravel().tolist()) == set(range(len(trial)))
    equal = 0
    for row, byte, codes in zip(x.tolist(), q.scales[:, 0].tolist(), q.codes.tolist(), strict=True):
        block = [Fraction(number) for number in row]
        found = [(*candidate(form, block, SPECIAL[form][selector]), selector) for selector in trial]
        _, scale, wanted, selector = min(found, key=lambda each: each[0])
        equal += [each[0] for each in found].count(min(found)[0]) > 1
        assert (byte, codes) == (scale | selector << width, wanted)
    assert equal > 5


@pytest.mark.parametrize(("form", "smallest"), [(FORMS[0], 2.0**-9), (FORMS[1], 2.0**-5)])
def test_scales_are_not_rounded_to_zero(form, smallest):
    x = np.zeros((3, 16))
    x[0, 0], x[1, 0] = smallest * 2.5, smallest * 0.25
    q = golden.quantize(x, form, tensor_scale=1)
    assert (q.scales[:, 0] & (1 << q.form.scale.width) - 1).tolist() == [1, 0, 0]  # a block of zeros has scale 0
    assert golden.dequantize(q)[0, 0] == 2 * smallest
    x[1, 0] = smallest * 0.75
    assert golden.dequantize(golden.quantize(x, form, tensor_scale=1))[1, 0] == smallest / 2


def test_scales_of_weights():
    scale = golden.block_format(FORMS[1]).scale
    assert (scale.smallest, scale.largest, scale.nan) == (2.0**-5, 28, 0x3F)
    q = golden.quantize(np.linspace(-3, 3, 64).reshape(2, 32), FORMS[1])
    assert q.tensor_scale == np.float32(3 / 168)


def test_products():
    rng = np.random.default_rng(4)
    qx, qy = (golden.quantize(rng.standard_t(3, (rows, 96)), form) for rows, form in zip((5, 7), FORMS, strict=True))
    wanted = golden.dequantize(qx).astype(np.float64) @ golden.dequantize(qy).astype(np.float64).T
    np.testing.assert_allclose(golden.gemm(qx, qy), wanted, rtol=1e-5, atol=1e-5)
