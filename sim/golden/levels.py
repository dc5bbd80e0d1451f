"""Quantisation to formats whose sub-groups have a shift of their own: one scale, then a bit for each sub-group.

With b the largest magnitude of a block, top the largest element with all bits set, n the lengths of sub-groups, p the
power of two above the largest element and a unit the value of h = 1. Scales with a mantissa have the rule of HiF4
(arXiv 2602.11287; the order of the roundings is that of its code, global-computing-consortium/HiFloat4), with bf16()
and cast() to nearest, ties to even::

    scale = cast(bf16(clip(b * bf16(1 / top))))          clip: to the smallest and the largest scale
    r     = bf16(1 / scale)                              all below is multiplied by it, nothing is divided
    bit of a sub-group of level i = 1, 2 .. n: 1 if its largest magnitude * r / 2^(outer bits) >= p 2^(n - i)
    h     = min(largest h, floor(|x| * r / 2^(bits) / unit + 1/2))

In HiF4 top is 7, n is 2, a unit is 1/4, h is from 0 to 7, and p is 2. Products are float64; those of FP32 numbers are
exact.

Scales that are powers of two have the rule of MX6 (arXiv 2302.08007): that called ``floor``, with 1 / scale in the
place of r. Ties of h go to the even one. In MX6 top is 30, n is 1, h is from 0 to 15, and p is 16. A pair's
*microexponent* there is 1 where its bit here is 0.
"""

from __future__ import annotations

import numpy as np

from .block import BlockFormat
from .checks import Array
from .rules import scale_codes

_BF16 = 8
"""Bits of a BF16 significand."""


def bf16(x: Array | float) -> Array:
    """Round numbers, float64, to BF16: to nearest, ties to even. They are within its normal range, or zero."""
    fraction, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, _BF16)), exponent - _BF16))


def by_reciprocal(blocks: Array, form: BlockFormat) -> tuple[Array, Array]:
    """Quantise blocks to a format with shifts whose scales have a mantissa.

    Parameters
    ----------
    blocks : numpy.ndarray of float64, (n, block)
        In units of the tensor scale.
    form : BlockFormat

    Returns
    -------
    scales : numpy.ndarray, (n,)
        Scales with the bits of the sub-groups above. 0 where all codes are zero.
    codes : numpy.ndarray of uint8, (n, block)
    """
    scale, magnitudes = form.scale, np.abs(blocks)
    wanted = np.clip(magnitudes.max(axis=1) * bf16(1 / _top(form)), scale.smallest, scale.largest)
    scales = scale.encode(bf16(wanted))
    words, steps = _shifted(magnitudes * bf16(1 / scale.table[scales])[:, None], scales, form)
    return _coded(blocks, words, np.floor(steps + 0.5), form)


def by_power(blocks: Array, form: BlockFormat) -> tuple[Array, Array]:
    """Quantise blocks to a format with shifts whose scales are powers of two; as `by_reciprocal`.

    The scale may be NaN, where the largest number is beyond all others.
    """
    magnitudes = np.minimum(np.abs(blocks), np.finfo(np.float64).max)  # a given tensor scale may make them infinite
    scales = scale_codes(form.scale, _top(form), magnitudes.max(axis=1), 1.0, "floor")
    unit = form.scale.table[scales]
    # A scale of zero or NaN makes every code zero.
    words, steps = _shifted(magnitudes / np.where(unit > 0, unit, np.inf)[:, None], scales, form)
    return _coded(blocks, words, np.rint(steps), form)


def _top(form: BlockFormat) -> float:
    """The largest element with all bits set."""
    (element,) = form.elements
    return element.largest * 2.0 ** len(form.shifts)


def _shifted(magnitudes: Array, scales: Array, form: BlockFormat) -> tuple[Array, Array]:
    """Words of scales with the bits of sub-groups, and magnitudes in units of h, not rounded yet.

    Parameters
    ----------
    magnitudes : numpy.ndarray of float64, (n, block)
        In units of the block's scale.
    scales : numpy.ndarray, (n,)
        Codes of scales.
    form : BlockFormat
    """
    (element,), levels, count = form.elements, len(form.shifts), len(magnitudes)
    above, shape = 2.0 ** np.frexp(element.largest)[1], magnitudes.shape
    words, place = scales.astype(form.scale_type), form.scale.width
    for level, length in enumerate(form.shifts):
        groups = magnitudes.reshape(count, -1, length)
        bits = groups.max(axis=2) >= above * 2.0 ** (levels - 1 - level)
        magnitudes = np.where(bits[..., None], groups / 2, groups).reshape(shape)
        places = np.arange(place, place + bits.shape[1], dtype=form.scale_type)
        words |= np.bitwise_or.reduce(bits.astype(form.scale_type) << places, axis=1)
        place += bits.shape[1]
    return words, magnitudes * 2.0 ** (element.point - element.fold)


def _coded(blocks: Array, words: Array, steps: Array, form: BlockFormat) -> tuple[Array, Array]:
    """Words and codes of blocks whose magnitudes are so many units; what is beyond the largest saturates."""
    (element,) = form.elements
    largest = max(element.integers)
    integers = np.minimum(steps, largest).astype(np.intp)
    lowest = [element.integers.index(h) for h in range(-largest, largest + 1)]
    codes = np.array(lowest, np.uint8)[np.where(blocks < 0, -integers, integers) + largest]
    words[~codes.any(axis=1) & ~np.isnan(form.scale.table[form.scale_codes(words)])] = 0
    return words, codes
