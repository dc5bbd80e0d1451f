"""E4M3 of a quotient of whole numbers: exact, without a division that goes on for ever.

A block scale is b / (top * s), rounded to four bits. Five bits of the quotient, and whether anything is left over, say
all that rounding asks for. In hardware that is five steps of a restoring division.
"""

from __future__ import annotations

import numpy as np

from .checks import Array
from .scale import UE4M3

_QUOTIENT_BITS = 5
"""Bits of a quotient below its leading one, or one fewer: the four of a significand, and one to round by."""


def ue4m3(numerator: Array, denominator: Array | int, exponent: Array) -> tuple[Array, Array]:
    """Round numerator / denominator * 2^exponent to UE4M3: to nearest, ties to the even code, saturating.

    Parameters
    ----------
    numerator : numpy.ndarray of int64, (n,)
        0 to 2^48 - 1.
    denominator : int or numpy.ndarray of int64
        1 to 2^27 - 1.
    exponent : numpy.ndarray of int64, (n,)

    Returns
    -------
    codes : numpy.ndarray of uint8, (n,)
        0x00 to 0x7E.
    saturated : numpy.ndarray of bool, (n,)
        Where the nearest would be above the largest, 448.
    """
    shift = _bit_length(np.asarray(denominator, np.int64)) - _bit_length(numerator) + _QUOTIENT_BITS
    dividend = numerator << np.maximum(shift, 0)
    divisor = denominator << np.maximum(-shift, 0)
    quotient = dividend // divisor
    sticky = quotient * divisor != dividend
    unit = exponent - shift  # the quotient counts 2^unit
    # A code counts 2^last: the smallest normal scale is 8 * 2^-9, and smaller ones count the same.
    last = np.maximum(_bit_length(quotient) - 1 + unit, 1 - UE4M3.bias) - UE4M3.mantissa_bits
    dropped = np.minimum(last - unit, _QUOTIENT_BITS + 2)
    kept = quotient >> dropped
    twice = (quotient - (kept << dropped)) * 2
    half = 1 << dropped
    up = (twice > half) | (twice == half) & (sticky | (kept & 1 > 0))
    codes = kept + up + ((last - (1 - UE4M3.bias - UE4M3.mantissa_bits)) << UE4M3.mantissa_bits)
    codes = np.where(numerator > 0, codes, 0)
    largest = (1 << UE4M3.width) - 2
    return np.minimum(codes, largest).astype(np.uint8), codes > largest


def _bit_length(number: Array) -> Array:
    """Bits of whole numbers below 2^53; 0 of zero."""
    return np.frexp(number.astype(np.float64))[1].astype(np.int64)
