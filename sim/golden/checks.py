"""What an argument must be, and the one line that says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Tensor = npt.ArrayLike | Any
"""An array, what numpy makes one of, or a tensor of another library; see `as_array`."""

_LARGEST_INTEGER = 1 << 53  # float64 holds every integer up to it


class ArgumentError(ValueError):
    """An argument is unusable; the message is one line that names it and says what would be right."""


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
    ArgumentError
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
        raise ArgumentError(f"{name} must be an array; {type(x).__name__} cannot become one: {reason}") from None
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def check_numbers(x: Tensor, name: str) -> Array:
    """Return `x` as an array once it is known to hold numbers that float64 holds exactly.

    Parameters
    ----------
    x : array or tensor
        float16, bfloat16, float32, float64 or any integer type, in either byte order.
    name : str
        For messages.

    Raises
    ------
    ArgumentError
        Another type, or an integer beyond +-2^53.
    """
    values = as_array(x, name)
    if values.dtype.kind not in "fiu" or values.dtype.itemsize > 8:
        raise ArgumentError(f"{name} must be float16, bfloat16, float32, float64 or integers; got {values.dtype}")
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        beyond = values > _LARGEST_INTEGER
        if values.dtype.kind == "i":
            beyond |= values < -_LARGEST_INTEGER
        if beyond.any():
            where = first_true(beyond)
            raise ArgumentError(f"{name}{where} is {values[tuple(where)]}; integers must be within -2^53 and 2^53")
    return values


def check_unsigned(integers: Tensor, name: str, octets: int = 1) -> Array:
    """Return `integers` as an array once it is known to be unsigned integers of so many bytes."""
    checked = as_array(integers, name)
    if checked.dtype.kind != "u" or checked.dtype.itemsize != octets:
        raise ArgumentError(f"{name} must be uint{8 * octets}; got {checked.dtype}")
    return checked


def check_codes(codes: Tensor, name: str, width: int = 4) -> Array:
    """Return `codes` as an array once it is known to be uint8, or uint16 of more bits, and to fit `width` bits."""
    checked = check_unsigned(codes, name, 1 if width <= 8 else 2)
    top = (1 << width) - 1
    if checked.size and checked.max() > top:
        where = first_true(checked > top)
        each = "one per byte" if width <= 8 else "one in two bytes"
        raise ArgumentError(f"{name}{where} is {checked[tuple(where)]}; codes are 0 to {top}, {each} (see unpack)")
    return checked


def reject_nan(values: Array, name: str) -> None:
    """Raise `ArgumentError` where there is a NaN; the message names the first."""
    if np.isnan(values).any():
        raise ArgumentError(f"{name}{first_true(np.isnan(values))} is NaN, which this format cannot hold")


def first_true(mask: Array) -> list[int]:
    """Return the index, last axis fastest, of the first True."""
    return [int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape)]
