"""What every kind of step does with its FP32 numbers, and what it asks of arguments that are not operands."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .checks import ArgumentError, Array, Tensor, as_array

ROUNDINGS = ("toward_zero", "nearest_even")
"""Names of the final roundings of a step to FP32."""
NAN = np.uint32(0x7FFFFFFF)
"""Bits of every NaN that a step puts out."""
MIN_EXPONENT = -126
"""Smallest exponent of FP32, that of subnormal numbers included."""


def exponents_of(c: Array) -> Array:
    """Return expC (int16) of finite float32 values; zero and subnormal numbers have `MIN_EXPONENT`."""
    biased = (c.view(np.uint32) >> 23).astype(np.int16) & 0xFF
    return np.maximum(biased, 1) - np.int16(127)


def powers(exponent: Array) -> tuple[Array, Array]:
    """Return 2^exponent and 2^-exponent, float64, of integers from -1022 to 1022."""
    wide = exponent.astype(np.int64)
    up, down = ((1023 + power << 52).view(np.float64) for power in (wide, -wide))
    return up, down


def truncate(term: Array, top: Array, fraction_bits: int) -> Array:
    """Truncate toward zero to multiples of 2^(top - fraction_bits)."""
    up, down = powers(fraction_bits - top.astype(np.int64))
    return np.trunc(term * up) * down


def narrowed(total: Array, rounding: str) -> Array:
    """Round exact sums, float64, to float32. They are overwritten. Where they are below 2^-126 they must fit."""
    if rounding == "toward_zero":
        bits = total.view(np.int64)
        bits &= -1 << 29  # the significand of FP32 is 29 bits shorter
    return total.astype(np.float32)


def of_any_exponent(total: Array, rounding: str) -> Array:
    """Round exact sums, float64, to float32: subnormal and infinite ones, too. Zeros become +0."""
    if rounding == "toward_zero":
        normal = (total.view(np.int64) & -1 << 29).view(np.float64)
        subnormal = np.trunc(total * 2.0**149) * 2.0**-149
        total = np.where(np.abs(total) < 2.0**MIN_EXPONENT, subnormal, normal)
    with np.errstate(over="ignore", under="ignore"):
        return total.astype(np.float32) + np.float32(0)


def check_c(c: Tensor, shape: tuple[int, ...]) -> Array:
    """Return C as an array once it is known to be float32 of this shape."""
    checked = as_array(c, "c")
    if checked.dtype != np.float32:
        raise ArgumentError(f"c must be float32; got {checked.dtype}")
    if checked.shape != shape:
        raise ArgumentError(f"c must be {shape}, rows of A by rows of B; got {checked.shape}")
    return checked


def check_stacks(a_codes: Array, b_codes: Array) -> None:
    """Raise `ArgumentError` unless codes (..., M, K) and (..., N, K) have one K, and are stacks of as many steps."""
    if a_codes.shape[-1] != b_codes.shape[-1]:
        raise ArgumentError(
            f"a_codes has K = {a_codes.shape[-1]} and b_codes K = {b_codes.shape[-1]}; they must be equal"
        )
    if a_codes.shape[:-2] != b_codes.shape[:-2]:
        raise ArgumentError(
            f"a_codes is a stack of {a_codes.shape[:-2]} and b_codes of {b_codes.shape[:-2]}; they must be equal"
        )


def check_rounding(rounding: str) -> None:
    """Raise `ArgumentError` unless the name is one of `ROUNDINGS`."""
    if rounding not in ROUNDINGS:
        raise ArgumentError(f"rounding must be one of {', '.join(map(repr, ROUNDINGS))}; got {rounding!r}")


def check_integer(value: Any, name: str) -> int:
    """Return an integer of any type as Python's."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be an integer; got {value!r}") from None
