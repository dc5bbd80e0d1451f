"""Products that are cut to a window below the largest of them, see `golden.mma`."""

from __future__ import annotations

import numpy as np

from . import additive
from .block import BlockFormat
from .checks import ArgumentError, Array
from .fp32 import truncate

_NONE = -(1 << 12)  # exponent of a product of zero: below that of every other


def cut_sums(products: Array, exponents: Array, lowest: int, window: int) -> tuple[Array, Array]:
    """Add up products along the last axis, each cut by the largest exponent of those that are not zero.

    Parameters
    ----------
    products : numpy.ndarray of float64, (..., lanes)
        Without NaN and infinity.
    exponents : numpy.ndarray of int16, (..., lanes)
        Theirs.
    lowest : int
        The exponent where all products are zero.
    window : int
        Bits behind the point of the largest exponent that are kept.

    Returns
    -------
    sums : numpy.ndarray of float64, (...)
    largest : numpy.ndarray of int16, (...)
    """
    largest = np.where(products != 0, exponents, np.int16(_NONE)).max(axis=-1)
    largest = np.where(largest == _NONE, np.int16(lowest), largest)
    return truncate(products, largest[..., None], window).sum(axis=-1), largest


def common_window(a: BlockFormat, b: BlockFormat) -> int | None:
    """Return the window that products of two formats are cut to; None if they are not.

    Raises
    ------
    ArgumentError
        Both have one, and they differ; or a format has several kinds of elements, or sums; or products of significands
        have more bits behind the point than the window.
    """
    if None not in (a.window, b.window) and a.window != b.window:
        raise ArgumentError(f"a has a window of {a.window} bits and b of {b.window}; they must be equal")
    if None in (a.window, b.window) and not (a.always_cut or b.always_cut):
        return None
    for form in (a, b):
        if len(form.elements) > 1 or form.sums > 1 or form.shifts:
            raise ArgumentError(
                f"a = {a.name!r} with b = {b.name!r}: products are cut to a window, and {form.name} has not one kind of"
                " elements, in one sum"
            )
    window = b.window if a.window is None else a.window
    assert window is not None
    behind = a.elements[0].mantissa_bits + b.elements[0].mantissa_bits
    if behind > window:
        raise ArgumentError(
            f"a = {a.name!r} with b = {b.name!r}: products have {behind} bits behind the point, and their window"
            f" {window}"
        )
    return window


def window_sums(a_codes: Array, b_codes: Array, a: BlockFormat, b: BlockFormat) -> tuple[Array, Array]:
    """Return S_g and r of blocks whose products are cut to a window; NaN and infinity count as zero.

    Parameters
    ----------
    a_codes, b_codes : numpy.ndarray of uint8, (..., block)
        Element codes of A and of B.
    a, b : BlockFormat
        Their formats, whose products are cut, see `common_window`.

    Returns
    -------
    sums : numpy.ndarray of int64, (...)
        S_g, in units of 2^(r - window).
    exponents : numpy.ndarray of int64, (...)
        r, the largest exponent of a product that is not zero.

    Raises
    ------
    ArgumentError
        Their products are not cut to a window, or codes are added of one alone.
    """
    window = common_window(a, b)
    if window is None or a.additive != b.additive:
        raise ArgumentError(f"a = {a.name!r} with b = {b.name!r}: have no common window that products are cut to")
    (left,), (right,) = a.elements, b.elements
    if a.additive:
        lowest = additive.lowest_exponent(left)
        products, exponents = additive.from_codes(left, a_codes, b_codes)
    else:
        values = [np.array(element.values) for element in (left, right)]
        products = values[0][a_codes] * values[1][b_codes]
        lowest = int(left.exponents.min()) + int(right.exponents.min())
        exponents = left.exponents[a_codes] + right.exponents[b_codes]
    sums, largest = cut_sums(products, exponents, lowest, window)
    wide = largest.astype(np.int64)
    return np.ldexp(sums, window - wide).astype(np.int64), wide
