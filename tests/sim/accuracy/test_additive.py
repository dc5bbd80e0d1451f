"""Products by adding codes: against scalar arithmetic, and what the page says they lose."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sim import accuracy
from sim.golden.element import E4M3

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


def scalar(x: int, y: int) -> Fraction:
    """Mantissas and exponents of two codes added, and an eighth; from two on the exponent takes the carry."""
    if not x % 128 or not y % 128:
        return Fraction(0)
    mantissa = Fraction(x % 8 + y % 8 + 1, 8)
    exponent = x % 128 // 8 + y % 128 // 8 - 14
    while mantissa >= 1:
        mantissa, exponent = mantissa - 1, exponent + 1
    return (1 + mantissa) * Fraction(2) ** exponent * (-1 if (x ^ y) & 128 else 1)


def test_products_are_those_of_scalar_arithmetic():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (2, 3000), np.uint8)
    codes[:, :40] &= 128
    codes[(codes & 127) == 127] = 5
    found = accuracy.additive_products(*codes)
    assert [Fraction(value) for value in found] == [scalar(x, y) for x, y in codes.T.tolist()]


def test_powers_of_two_are_off_by_an_eighth_and_nothing_by_more():
    two = int(np.flatnonzero(E4M3.table == 2)[0])
    codes = np.array([two], np.uint8)
    assert accuracy.additive_products(codes, codes) == 4.5
    assert accuracy.additive_error(count=1000).largest == 0.125


def test_the_page_says_what_is_measured():
    found = accuracy.additive_error()
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"off by {100 * found.mean:.1f} % in the mean and by {100 * found.largest:.1f} % at most" in text
    assert f"mostly upwards ({100 * found.bias:+.1f} %)" in text
    assert f"have {found.decibels:.1f} dB against the exact ones" in text
    assert accuracy.additive_error(seed=1).decibels == pytest.approx(found.decibels, abs=0.05)
