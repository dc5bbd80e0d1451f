"""Quantisation to formats whose sub-groups have a shift of their own: one scale, then a bit for each sub-group.

The rule is that of HiF4 (arXiv 2602.11287; the order of the roundings is that of its code,
global-computing-consortium/HiFloat4). With b the largest magnitude of a block, top the largest element with all bits
set, n the lengths of sub-groups, bf16() and cast() to nearest, ties to even::

    scale = cast(bf16(clip(b * bf16(1 / top))))          clip: to the smallest and the largest scale
    r     = bf16(1 / scale)                              all below is multiplied by it, nothing is divided
    bit of a sub-group of level i = 1, 2 .. n: 1 if its largest magnitude * r / 2^(outer bits) >= p 2^(n - i)
    h     = min(largest h, floor(|x| * r / 2^(bits) / unit + 1/2))      unit: the value of h = 1

p is the power of two above the largest element. In HiF4 top is 7, n is 2, a unit is 1/4, h is from 0 to 7, and p is 2.
Products are float64; those of FP32 numbers are exact.
"""

from __future__ import annotations

import numpy as np

from .block import BlockFormat
from .checks import Array

_BF16 = 8
"""Bits of a BF16 significand."""


def bf16(x: Array | float) -> Array:
    """Round numbers, float64, to BF16: to nearest, ties to even. They are within its normal range, or zero."""
    fraction, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, _BF16)), exponent - _BF16))


def by_reciprocal(blocks: Array, form: BlockFormat) -> tuple[Array, Array]:
    """Quantise blocks to a format with shifts.

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
    (element,), scale, levels = form.elements, form.scale, len(form.shifts)
    magnitudes, above = np.abs(blocks), 2.0 ** np.frexp(element.largest)[1]
    inverse = bf16(1 / (element.largest * 2.0**levels))
    wanted = np.clip(magnitudes.max(axis=1) * inverse, scale.smallest, scale.largest)
    codes_of_scales = scale.encode(bf16(wanted))
    magnitudes *= bf16(1 / scale.table[codes_of_scales])[:, None]
    words, place = codes_of_scales.astype(form.scale_type), scale.width
    for level, length in enumerate(form.shifts):
        groups = magnitudes.reshape(len(blocks), -1, length)
        bits = groups.max(axis=2) >= above * 2.0 ** (levels - 1 - level)
        magnitudes = np.where(bits[..., None], groups / 2, groups).reshape(blocks.shape)
        places = np.arange(place, place + bits.shape[1], dtype=form.scale_type)
        words |= np.bitwise_or.reduce(bits.astype(form.scale_type) << places, axis=1)
        place += bits.shape[1]
    largest = max(element.integers)
    integers = np.minimum(np.floor(magnitudes * 2.0 ** (element.point - element.fold) + 0.5), largest).astype(np.intp)
    lowest = [element.integers.index(h) for h in range(-largest, largest + 1)]
    codes = np.array(lowest, np.uint8)[np.where(blocks < 0, -integers, integers) + largest]
    words[~codes.any(axis=1)] = 0
    return words, codes
