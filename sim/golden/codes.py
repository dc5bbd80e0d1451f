"""Element codes and block scales one by one, and their packed storage."""

from __future__ import annotations

from math import gcd

import numpy as np

from .checks import ArgumentError, Array, Tensor, check_codes, check_numbers, check_unsigned, reject_nan
from .element import E1M2, E2M1, INT4, WIDTHS, ElementFormat
from .scale import UE4M3


def _encode(x: Tensor, element: ElementFormat) -> Array:
    values = check_numbers(x, "x").astype(np.float64)
    reject_nan(values, "x")
    return element.encode(values)


def encode_e2m1(x: Tensor) -> Array:
    """Round to E2M1: nearest, ties to the even code, saturating at 6.

    Parameters
    ----------
    x : array or tensor of float or integers, any shape
        Must hold no NaN: E2M1 has none.

    Returns
    -------
    numpy.ndarray of uint8, the shape of `x`
        Codes 0 to 15. What rounds to zero is code 0, never 8.
    """
    return _encode(x, E2M1)


def encode_e1m2(x: Tensor) -> Array:
    """Round to E1M2 (the integers 0 to 7 and their negatives); otherwise as `encode_e2m1`."""
    return _encode(x, E1M2)


def encode_int4(x: Tensor) -> Array:
    """Round to INT4 (-7 to 7, two's complement); otherwise as `encode_e2m1`."""
    return _encode(x, INT4)


def decode_e2m1(codes: Tensor) -> Array:
    """Return the values (float64) of E2M1 codes 0 to 15; code 8 is -0."""
    return E2M1.table[check_codes(codes, "codes")]


def decode_e1m2(codes: Tensor) -> Array:
    """Return the values (float64), factor of 2 included, of E1M2 codes 0 to 15; code 8 is -0."""
    return E1M2.table[check_codes(codes, "codes")]


def decode_int4(codes: Tensor) -> Array:
    """Return the values (float64) of INT4 codes 0 to 15; code 8, which is never produced, reads as zero."""
    return INT4.table[check_codes(codes, "codes")]


def encode_ue4m3(x: Tensor) -> Array:
    """Round to a block scale without tag: nearest, ties to the even code, saturating at 448.

    Parameters
    ----------
    x : array or tensor of float or integers, any shape
        Must be zero or positive, and not NaN.

    Returns
    -------
    numpy.ndarray of uint8, the shape of `x`
        Bytes 0x00 to 0x7E.
    """
    values = check_numbers(x, "x").astype(np.float64)
    reject_nan(values, "x")
    if (values < 0).any():
        raise ArgumentError(f"x must not be negative, a block scale has no sign; got {values.min()}")
    return UE4M3.encode(values)


def decode_ue4m3(scales: Tensor) -> Array:
    """Return the values (float64) of block-scale bytes; the tag, bit 7, is ignored and 0x7F is NaN."""
    return UE4M3.table[check_unsigned(scales, "scales") & (1 << UE4M3.width) - 1]


def pack(codes: Tensor, width: int = 4) -> Array:
    """Store codes side by side, the first ones lowest.

    Of two codes of 4 bits element 2i is in the low nibble, as CUDA's ``__nv_fp4x2_storage_t`` has it.

    Parameters
    ----------
    codes : array or tensor of uint8, (..., K)
        Codes 0 to 2^width - 1; uint16 where they have more than 8 bits. K of them fill whole bytes.
    width : int
        Bits of a code, 2 to 16.

    Returns
    -------
    numpy.ndarray of uint8, (..., width K / 8)

    Raises
    ------
    ArgumentError
        A code is above 2^width - 1, K codes do not fill whole bytes, or `width` is not 2 to 16.
    """
    count, octets = _word(width)
    checked = check_codes(codes, "codes", width)
    if checked.ndim == 0 or checked.shape[-1] % count:
        raise ArgumentError(
            f"codes of {width} bits must fill whole bytes along the last dimension; got {checked.shape}"
        )
    words = np.zeros((*checked.shape[:-1], checked.shape[-1] // count), np.uint64)
    for index in range(count):
        words |= checked[..., index::count].astype(np.uint64) << np.uint64(width * index)
    stored = [(words >> np.uint64(8 * index)).astype(np.uint8) for index in range(octets)]
    return np.stack(stored, axis=-1).reshape(*checked.shape[:-1], -1)


def unpack(data: Tensor, width: int = 4) -> Array:
    """Undo `pack`: uint8 (..., n) to codes, uint8 or uint16 (..., 8 n / width).

    Raises
    ------
    ArgumentError
        n bytes hold no whole number of codes, or `width` is not 2 to 16.
    """
    count, octets = _word(width)
    checked = check_unsigned(data, "data")
    if checked.ndim == 0:
        raise ArgumentError("data must have at least one dimension; got a scalar")
    if checked.shape[-1] % octets:
        raise ArgumentError(f"data must hold whole codes of {width} bits along its last dimension; got {checked.shape}")
    words = np.zeros((*checked.shape[:-1], checked.shape[-1] // octets), np.uint64)
    for index in range(octets):
        words |= checked[..., index::octets].astype(np.uint64) << np.uint64(8 * index)
    mask = np.uint64((1 << width) - 1)
    kind = np.uint8 if width <= 8 else np.uint16
    codes = [(words >> np.uint64(width * index) & mask).astype(kind) for index in range(count)]
    return np.stack(codes, axis=-1).reshape(*checked.shape[:-1], -1)


def _word(width: int) -> tuple[int, int]:
    """Return the fewest codes that fill whole bytes, and those bytes."""
    if width not in WIDTHS:
        raise ArgumentError(f"width must be {WIDTHS[0]} to {WIDTHS[-1]}; got {width!r}")
    common = gcd(width, 8)
    return 8 // common, width // common
