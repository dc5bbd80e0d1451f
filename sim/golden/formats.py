"""Four-bit element codes, block scales and their packed storage.

Element codes are sign-magnitude, bit 3 the sign.

======  =====================  ==============================
format  bits                   magnitudes of codes 0 to 7
======  =====================  ==============================
E2M1    s e1 e0 m, bias 1      0, 0.5, 1, 1.5, 2, 3, 4, 6
E1M2    s e m1 m0, times 2     0, 1, 2, 3, 4, 5, 6, 7
======  =====================  ==============================

A block is 16 consecutive elements along K. Its scale is one byte: bits 6..0 are UE4M3 (bias 7, subnormals
kept, largest value 448, 0x7F is NaN) and bit 7 is the format tag of MixFP4, 0 for E2M1 and 1 for E1M2.

Sources: E2M1, OCP Microscaling Formats (MX) Specification v1.0; E4M3, OCP 8-bit Floating Point Specification
(OFP8) v1.0; blocks of 16 with UE4M3 scales, NVIDIA's NVFP4; E1M2 and its factor of 2, MixFP4 (arXiv 2605.31035).
The polarity of the tag is this model's: MixFP4's text leaves it open.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Tensor = npt.ArrayLike | Any
"""An array, what numpy makes one of, or a tensor of another library; see `as_array`."""

BLOCK = 16
"""Elements that share one block scale."""
TAG = 0x80
"""Bit of the block scale that marks a block of E1M2."""
SCALE_NAN = 0x7F
"""Bits 6..0 of a block scale that is NaN."""
SIGN = 8
"""Sign bit of an element code."""


class InputError(ValueError):
    """An argument is unusable; the message is one line that names it and says what would be right."""


def _constant(values: Any) -> Array:
    table = np.array(values, dtype=np.float64)
    table.flags.writeable = False
    return table


def _ue4m3(byte: int) -> float:
    exponent, mantissa = byte >> 3, byte & 7
    significand = mantissa + (8 if exponent else 0)
    return significand / 8 * 2.0 ** (max(exponent, 1) - 7)


E2M1_VALUES = _constant([0, 0.5, 1, 1.5, 2, 3, 4, 6])
"""Magnitudes of E2M1 by code, float64 (8,)."""
E1M2_VALUES = _constant(range(8))
"""Magnitudes of E1M2 by code, the factor of 2 included, float64 (8,)."""
UE4M3_VALUES = _constant([_ue4m3(byte) for byte in range(SCALE_NAN)] + [np.nan])
"""Values of bits 6..0 of a block scale, float64 (128,); the last is NaN."""


def _thresholds(values: Array) -> Array:
    """Bounds b such that the number of b below x is the code nearest to x, ties to the even code."""
    bounds = (values[1:] + values[:-1]) / 2
    bounds[1::2] = np.nextafter(bounds[1::2], 0)  # above an odd code a tie goes up
    return bounds


E2M1_BOUNDS = _thresholds(E2M1_VALUES)
E1M2_BOUNDS = _thresholds(E1M2_VALUES)
UE4M3_BOUNDS = _thresholds(UE4M3_VALUES[:SCALE_NAN])


def nearest(magnitude: Array, bounds: Array) -> Array:
    """Return the code (uint8) nearest to each magnitude, ties to the even code, saturating."""
    return np.searchsorted(bounds, magnitude, side="left").astype(np.uint8)


def _encode_element(x: Tensor, bounds: Array) -> Array:
    values = check_float(x, "x").astype(np.float64)
    _reject_nan(values, "x")
    magnitude = nearest(np.abs(values), bounds)
    return magnitude | np.where((values < 0) & (magnitude > 0), SIGN, 0).astype(np.uint8)


def _decode_element(codes: Tensor, values: Array) -> Array:
    checked = check_codes(codes, "codes")
    magnitude = values[checked & 7]
    return np.where(checked >= SIGN, -magnitude, magnitude)


def encode_e2m1(x: Tensor) -> Array:
    """Round to E2M1: nearest, ties to the even code, saturating at 6.

    Parameters
    ----------
    x : array or tensor of float, any shape
        Must hold no NaN: E2M1 has none.

    Returns
    -------
    numpy.ndarray of uint8, the shape of `x`
        Codes 0 to 15. What rounds to zero is code 0, never 8.
    """
    return _encode_element(x, E2M1_BOUNDS)


def encode_e1m2(x: Tensor) -> Array:
    """Round to E1M2 (the integers 0 to 7 and their negatives); otherwise as `encode_e2m1`."""
    return _encode_element(x, E1M2_BOUNDS)


def decode_e2m1(codes: Tensor) -> Array:
    """Return the values (float64) of E2M1 codes 0 to 15; code 8 is -0."""
    return _decode_element(codes, E2M1_VALUES)


def decode_e1m2(codes: Tensor) -> Array:
    """Return the values (float64), factor of 2 included, of E1M2 codes 0 to 15; code 8 is -0."""
    return _decode_element(codes, E1M2_VALUES)


def encode_ue4m3(x: Tensor) -> Array:
    """Round to a block scale without tag: nearest, ties to the even code, saturating at 448.

    Parameters
    ----------
    x : array or tensor of float, any shape
        Must be zero or positive, and not NaN.

    Returns
    -------
    numpy.ndarray of uint8, the shape of `x`
        Bytes 0x00 to 0x7E.
    """
    values = check_float(x, "x").astype(np.float64)
    _reject_nan(values, "x")
    if (values < 0).any():
        raise InputError(f"x must not be negative, a block scale has no sign; got {values.min()}")
    return nearest(values, UE4M3_BOUNDS)


def decode_ue4m3(scales: Tensor) -> Array:
    """Return the values (float64) of block-scale bytes; the tag, bit 7, is ignored and 0x7F is NaN."""
    return UE4M3_VALUES[_check_bytes(scales, "scales") & SCALE_NAN]


def pack(codes: Tensor) -> Array:
    """Store two codes per byte, element 2i in the low nibble (as CUDA's ``__nv_fp4x2_storage_t`` does).

    Parameters
    ----------
    codes : array or tensor of uint8, (..., K)
        Codes 0 to 15; K even.

    Returns
    -------
    numpy.ndarray of uint8, (..., K / 2)

    Raises
    ------
    InputError
        A code is above 15, or K is odd.
    """
    checked = check_codes(codes, "codes")
    if checked.ndim == 0 or checked.shape[-1] % 2:
        raise InputError(f"codes must have an even last dimension, two codes per byte; got {checked.shape}")
    return checked[..., 0::2] | (checked[..., 1::2] << 4)


def unpack(data: Tensor) -> Array:
    """Undo `pack`: uint8 (..., n) to codes, uint8 (..., 2 n)."""
    checked = _check_bytes(data, "data")
    if checked.ndim == 0:
        raise InputError("data must have at least one dimension; got a scalar")
    return np.stack([checked & 15, checked >> 4], axis=-1).reshape(*checked.shape[:-1], -1)


def as_array(x: Tensor, name: str) -> Array:
    """Return `x` as a numpy array, of whatever type.

    Parameters
    ----------
    x : array_like or tensor
        What `numpy.asarray` takes, JAX arrays among it; or a PyTorch tensor on any device, with or without gradient.
        bfloat16 becomes float32, which is exact.
    name : str
        For messages.

    Raises
    ------
    InputError
        `x` has no such form.
    """
    try:
        if callable(getattr(x, "detach", None)):
            tensor = x.detach().cpu()  # type: ignore[union-attr]
            # numpy has no bfloat16 of its own, so torch hands none over.
            x = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
        array = np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{name} must be an array; {type(x).__name__} cannot become one: {reason}") from None
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _check_bytes(array: Tensor, name: str) -> Array:
    checked = as_array(array, name)
    if checked.dtype != np.uint8:
        raise InputError(f"{name} must be uint8; got {checked.dtype}")
    return checked


def check_codes(codes: Tensor, name: str) -> Array:
    """Return `codes` as an array once it is known to be uint8 and at most 15."""
    checked = _check_bytes(codes, name)
    if checked.size and checked.max() > 15:
        where = first_true(checked > 15)
        raise InputError(f"{name}{where} is {checked[tuple(where)]}; codes are 0 to 15, one per byte (see unpack)")
    return checked


def check_blocks(codes: Tensor, scales: Tensor, names: tuple[str, str]) -> tuple[Array, Array]:
    """Return codes (rows, K) and scales (rows, K/16) as arrays once types, range and shapes agree."""
    checked, bytes_ = check_codes(codes, names[0]), _check_bytes(scales, names[1])
    if checked.ndim != 2 or 0 in checked.shape or checked.shape[1] % BLOCK:
        raise InputError(f"{names[0]} must be (rows, K), K a positive multiple of {BLOCK}; got {checked.shape}")
    expected = (checked.shape[0], checked.shape[1] // BLOCK)
    if bytes_.shape != expected:
        raise InputError(f"{names[1]} must be {expected}, one per {BLOCK} codes of {names[0]}; got {bytes_.shape}")
    return checked, bytes_


def check_float(x: Tensor, name: str) -> Array:
    """Return `x` as an array once it is known to be float16, bfloat16, float32 or float64, in either byte order."""
    values = as_array(x, name)
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        raise InputError(f"{name} must be float16, bfloat16, float32 or float64; got {values.dtype}")
    return values


def _reject_nan(values: Array, name: str) -> None:
    if np.isnan(values).any():
        raise InputError(f"{name}{first_true(np.isnan(values))} is NaN, which this format cannot hold")


def first_true(mask: Array) -> list[int]:
    """Return the index, last axis fastest, of the first True."""
    return [int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape)]
