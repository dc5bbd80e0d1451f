"""L-Mul: products against scalar arithmetic, and which formats may have them."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
import rational

from sim import golden
from sim.golden.catalogue import L_MUL, MXFP8_E5M2
from sim.golden.element import E2M3, E4M3, E5M2, INT8


def test_products_are_those_of_scalar_arithmetic():
    """Of all pairs of codes but NaN, whose products are 0."""
    x, y = (codes.ravel() for codes in np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2))
    found = golden.additive_products(E4M3, x, y)
    nan = (x % 128 == 127) | (y % 128 == 127)
    assert not found[nan].any()
    wanted = [rational.l_mul(*pair) for pair in zip(x[~nan].tolist(), y[~nan].tolist(), strict=True)]
    assert [Fraction(value) for value in found[~nan]] == wanted


def test_powers_of_two_are_off_by_an_eighth():
    two = np.flatnonzero(E4M3.table == 2).astype(np.uint8)
    assert golden.additive_products(E4M3, two, two) == 4.5


def test_a_gemm_adds_codes():
    """One number in each block, so that nothing is cut."""
    codes = np.zeros((2, 1, 64), np.uint8)
    codes[:, 0, 3], codes[:, 0, 40] = [56, 60], [184, 61]
    scales = np.full((1, 2), 127, np.uint8)
    found = {}
    for form in ("l-mul", "mxfp8-e4m3"):
        a, b = (golden.QuantizedTensor(one, scales, np.float32(1), form) for one in codes)
        found[form] = golden.gemm(a, b)[0, 0]
    assert found["l-mul"] == rational.l_mul(56, 60) + rational.l_mul(184, 61)
    assert found["mxfp8-e4m3"] == E4M3.table[56] * E4M3.table[60] + E4M3.table[184] * E4M3.table[61]


def test_codes_are_added_of_one_kind():
    ones = np.ones((1, 32))
    a = golden.quantize(ones, "l-mul")
    for other in ("mxfp8-e4m3", "mxfp4"):
        for pair in ((a, golden.quantize(ones, other)), (golden.quantize(ones, other), a)):
            with pytest.raises(golden.ArgumentError, match="codes are added of two formats of the same elements"):
                golden.gemm(*pair)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": None}, "l-mul: additive takes a window"),
        ({"elements": MXFP8_E5M2.elements}, "E5M2: codes are added of finite floating-point elements of at most 3"),
    ],
)
def test_formats_whose_codes_do_not_add_up(change, words):
    with pytest.raises(golden.ArgumentError, match=words):
        dataclasses.replace(L_MUL, **change)


@pytest.mark.parametrize("element", [INT8, E5M2])
def test_elements_whose_codes_do_not_add_up(element):
    with pytest.raises(golden.ArgumentError, match=f"{element.name}: codes are added of finite floating-point"):
        golden.additive_products(element, np.uint8([1]), np.uint8([1]))


def test_codes_of_another_width():
    with pytest.raises(golden.ArgumentError, match="y"):
        golden.additive_products(E2M3, np.uint8([1]), np.uint8([64]))
