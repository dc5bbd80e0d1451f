"""E4M3 of a quotient, against the nearest of all codes in exact arithmetic."""

from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rational import minifloat

from sim.golden.quotient import ue4m3

VALUES = [minifloat(code, 4, 3, 7) for code in range(127)]


def nearest(value):
    """Code and whether a longer table would have a nearer one."""
    if value > 464:  # half-way to 480; a tie goes to 448, which is even
        return 126, True
    above = bisect_left(VALUES, value)
    neighbours = range(max(above - 1, 0), min(above, 126) + 1)
    return min(neighbours, key=lambda code: (abs(VALUES[code] - value), code & 1)), False


def check(numerators, denominators, exponents):
    numerators, exponents = np.array(numerators, np.int64), np.array(exponents, np.int64)
    codes, saturated = ue4m3(numerators, np.array(denominators, np.int64), exponents)
    assert codes.dtype == np.uint8
    for n, d, e, code, beyond in zip(
        numerators.tolist(), denominators, exponents.tolist(), codes.tolist(), saturated.tolist(), strict=True
    ):
        assert (code, beyond) == nearest(Fraction(n, d) * Fraction(2) ** e), (n, d, e)


@pytest.mark.parametrize("denominator", [1, 3, 6, 7, 1530, (1 << 24) - 1, 7 * ((1 << 24) - 1)])
def test_both_sides_of_every_midpoint_and_the_midpoint(denominator):
    bounds = [(low + high) / 2 for low, high in pairwise(VALUES)] + [Fraction(464)]
    shift = 14
    exact = [int(bound * denominator * 2**shift) for bound in bounds]
    assert all(Fraction(n, denominator * 2**shift) == bound for n, bound in zip(exact, bounds, strict=True))
    numerators = [n + step for n in exact for step in (-1, 0, 1) if 0 <= n + step < 1 << 48]
    assert len(numerators) > 300
    check(numerators, [denominator] * len(numerators), [-shift] * len(numerators))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, (1 << 48) - 1), st.integers(1, (1 << 27) - 1), st.integers(-300, 300)),
        min_size=1,
        max_size=20,
    )
)
def test_anything(cases):
    check(*zip(*cases, strict=True))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, (1 << 24) - 1), st.integers(1, 2047), st.integers(-35, 15)), min_size=1, max_size=20
    )
)
def test_quotients_within_the_range(cases):
    check(*zip(*cases, strict=True))
