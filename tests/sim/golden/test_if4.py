"""IF4: check vectors, the choice between its two kinds of elements, and the factors 6/7 and 36/49 without an error."""

import re
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import rational
from vectors import BLOCK_A, BLOCK_B

from sim import golden
from sim.golden import parts

FORM = golden.block_format("if4")
UE4M3 = [rational.minifloat(code, 4, 3, 7) for code in range(127)]
VALUES = [rational.E2M1, [value * 6 / 7 for value in rational.INT4]]


def error(block, q):
    return np.square(golden.dequantize(q)[0].astype(np.float64) - block).sum()


@pytest.mark.parametrize(
    ("block", "scale", "codes", "wanted"),
    [(BLOCK_A, 0x36, "0923D6017F04B5E1", 0.680356), (BLOCK_B, 0xB9, "7A5B32F069D20F4B", 1.020051)],
)
def test_check_vectors(block, scale, codes, wanted):
    q = golden.quantize([block], "if4", tensor_scale=1)
    assert q.scales.tolist() == [[scale]]
    assert "".join(f"{code:X}" for code in q.codes[0]) == codes
    assert error(block, q) == pytest.approx(wanted, abs=5e-7)


def test_integers_of_the_first_block_are_those_of_nvint4():
    """Its scale is 0.875, and 0.875 * 6/7 is the 0.75 of NVINT4."""
    q = golden.quantize([BLOCK_A], "if4", tensor_scale=1, e1m2=np.array([[True]]))
    other = golden.quantize([BLOCK_A], "nvint4", tensor_scale=1)
    np.testing.assert_array_equal(q.codes, other.codes)
    assert error(BLOCK_A, q) == pytest.approx(0.745200, abs=5e-7)
    np.testing.assert_array_equal(golden.dequantize(q), golden.dequantize(other))


def candidates(block):
    """Scale, and by kind of elements codes and squared error of a block in units of the tensor scale."""
    scale = min(range(127), key=lambda code: (abs(UE4M3[code] - max(map(abs, block)) / 6), code % 2))
    found = []
    for kind, values in enumerate(VALUES):
        codes = [
            min((c for c in range(16) if c != 8), key=lambda c, x=x: (abs(values[c] * UE4M3[scale] - x), c % 2))
            for x in block
        ]
        squares = [(values[c] * UE4M3[scale] - x) ** 2 for c, x in zip(codes, block, strict=True)]
        found.append((sum(squares), kind, codes))
    return scale, found


def test_choices_against_exact_arithmetic():
    """Multiples of 1/64 and of 3/7 of the scale, so ties of either kind occur; equal errors go to E2M1."""
    rng = np.random.default_rng(1)
    x = rng.integers(-640, 641, (200, 16)) / 64
    x[::4] = rng.integers(-24, 25, (50, 16)) * 0.25
    x[:, 0] = rng.choice([6.0, 5.25, 12.0, 9.75], 200)
    q = golden.quantize(x, "if4", tensor_scale=1)
    assert 20 < q.e1m2.sum() < 180
    for row, byte, codes in zip(x.tolist(), q.scales[:, 0].tolist(), q.codes.tolist(), strict=True):
        scale, found = candidates([Fraction(value) for value in row])
        _, kind, wanted = min(found)
        assert (byte, codes) == (scale | kind << 7, wanted)


def test_equal_errors_are_e2m1():
    """6 is 6 and 7 * 6/7."""
    q = golden.quantize([[6.0, -6.0] + [0.0] * 14], "if4", tensor_scale=1)
    assert q.scales.tolist() == [[0x38]]
    forced = golden.quantize([[6.0, -6.0] + [0.0] * 14], "if4", tensor_scale=1, e1m2=np.array([[True]]))
    assert forced.codes[0, :2].tolist() == [7, 9]
    np.testing.assert_array_equal(golden.dequantize(forced), golden.dequantize(q))


def test_terms_are_sums_times_49_42_and_36():
    rng = np.random.default_rng(2)
    for _ in range(200):
        codes, bytes_ = rng.integers(0, 16, (2, 16)).tolist(), rng.integers(0, 256, 2).tolist()
        (term,) = parts.terms(codes[0], [bytes_[0]], codes[1], [bytes_[1]], "if4", "if4")
        plain = [parts.scale(byte & 0x7F, "nvfp4") for byte in bytes_]
        if any(scale.nan for scale in plain):
            continue
        factor = {0: 49, 1: 42, 2: 36}[sum(byte >> 7 for byte in bytes_)]
        assert term.scaled == term.total * plain[0].significand * plain[1].significand * factor


def test_a_product_has_the_error_of_its_two_roundings_alone():
    """D is rounded once, and once more with the tensor scales: no error of 6/7 is among them."""
    rng = np.random.default_rng(3)
    qa, qb = (golden.quantize(rng.uniform(-1, 1, (rows, 64)), "if4") for rows in (9, 8))
    assert qa.e1m2.any()
    assert not qa.e1m2.all()

    def numbers(q):
        scales = [[UE4M3[byte & 0x7F] * Fraction(float(q.tensor_scale)) for byte in row] for row in q.scales.tolist()]
        return [
            [VALUES[q.scales[m, k // 16] >> 7][code] * scales[m][k // 16] for k, code in enumerate(row)]
            for m, row in enumerate(q.codes.tolist())
        ]

    a, b, d = numbers(qa), numbers(qb), golden.gemm(qa, qb, numerics="exact").tolist()
    for m, n in np.ndindex(9, 8):
        wanted = sum(x * y for x, y in zip(a[m], b[n], strict=True))
        assert abs(Fraction(d[m][n]) - wanted) <= abs(wanted) * Fraction(2) ** -23
    values = golden.dequantize(qa).tolist()
    for m, k in np.ndindex(9, 64):
        assert abs(Fraction(values[m][k]) - a[m][k]) <= abs(a[m][k]) * Fraction(2) ** -24


def test_documented_errors_of_constants():
    """What factors rounded to so many bits behind the point would cost, as docs/datapath.md has it."""
    page = (Path(__file__).parents[3] / "docs" / "datapath.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ([\d.e-]+) \| (\d+) \| ([\d.e-]+) \|$", page, re.MULTILINE)
    assert len(rows) >= 5
    for bits, *both in rows:
        for ratio, constant, wanted in zip((Fraction(6, 7), Fraction(36, 49)), both[::2], both[1::2], strict=True):
            assert int(constant) == round(ratio * 2 ** int(bits))
            assert f"{float(abs(Fraction(int(constant), 2 ** int(bits)) / ratio - 1)):.1e}" == wanted
    # The constants of the authors' code are the nearest FP32 numbers.
    for ratio, bits in ((Fraction(6, 7), 0x3F5B6DB7), (Fraction(36, 49), 0x3F3C14E6)):
        assert struct.pack(">f", float(ratio)) == bits.to_bytes(4, "big")
