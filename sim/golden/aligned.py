"""Numbers of blocks as a hardware quantiser has them: whole multiples of a unit that follows from the largest one.

The tensor scale is sg * 2^(es - p + 1), sg of p bits. With a the exponent of the least power of two above the largest
number of a block, numbers are cut to multiples of 2^(a - p - 10); a sticky bit says whether that has lost anything. A
block scale is S * 2^(e - 3), S from 0 to 15. So the value of an element is its own times W, W = S * sg * 2^shift, in
four of these units, and its shift is from 0 to 7: all values, and all midpoints between two of them, are whole numbers
of units. Comparisons with midpoints are exact, therefore.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from .checks import Array
from .element import ElementFormat
from .scale import UE4M3

MAGNITUDE = np.uint32(0x7FFFFFFF)
"""All bits of an FP32 number but its sign. Magnitudes are in the order of these as integers."""
INFINITY = 0x7F800000
"""Magnitude of infinity; those above are NaN."""
_FRACTION = 23
"""Bits of an FP32 number behind its leading one."""
_BIAS = 127
_GUARD = 10
"""Bits of a cut number beyond those of the tensor scale: 7 * 15 * 17/16 numbers of 1/4 in twice the largest."""
_LOWEST, _HIGHEST = -7, 13
"""Range of a - es. What is below has no scale, what is above saturates."""


@dataclass(frozen=True)
class TensorScale:
    """A tensor scale taken apart: value = significand * 2^(exponent - bits + 1).

    Parameters
    ----------
    significand, exponent
        From 2^(bits - 1) to 2^bits - 1, and the exponent of the number.
    bits
        Bits of significands.
    """

    significand: int
    exponent: int
    bits: int


def fields(magnitudes: Array) -> tuple[Array, Array]:
    """Return significands and exponent fields, int32, of FP32 magnitudes as integers: value = s * 2^(e - 150).

    Subnormal numbers have significands below 2^23 and the exponent field 1.
    """
    exponents = magnitudes >> _FRACTION
    significands = magnitudes & ((1 << _FRACTION) - 1)
    significands += (exponents > 0).astype(np.int32) << _FRACTION
    return significands, np.maximum(exponents, 1)


@dataclass(frozen=True, eq=False)
class Aligned:
    """Magnitudes of blocks, each as a multiple of a unit of its block.

    Parameters
    ----------
    magnitudes
        Magnitudes of finite FP32 numbers as integers, int32 (16, n): lanes first.
    tensor_scale
        Of all blocks.
    """

    magnitudes: Array
    tensor_scale: TensorScale

    @property
    def bits(self) -> int:
        """Bits of a cut number."""
        return self.tensor_scale.bits + _GUARD

    @property
    def type(self) -> type[np.signedinteger]:
        """Type that holds a midpoint, doubled."""
        return np.int32 if self.bits <= _FRACTION else np.int64

    @cached_property
    def peaks(self) -> Array:
        """Largest magnitude of each block as an integer, (n,)."""
        return self.magnitudes.max(axis=0)

    @cached_property
    def exponents(self) -> Array:
        """The a of each block, less es, int32 (n,)."""
        above = fields(self.peaks)[1] + np.int32(1 - _BIAS - self.tensor_scale.exponent)
        return np.clip(above, _LOWEST, _HIGHEST)

    @cached_property
    def cut(self) -> tuple[Array, Array]:
        """Numbers in units, (16, n), with what is below cut off, saturating; and whether anything was, bool."""
        significands, exponents = fields(self.magnitudes)
        unit = self.exponents + np.int32(self.tensor_scale.exponent - self.bits + _BIAS + _FRACTION)
        right = unit[None] - exponents
        if self.type is np.int64:
            significands = significands.astype(np.int64) << np.clip(-right, 0, self.bits)
        # Narrow ones saturate wherever they would have to be shifted to the left.
        right = np.clip(right, 0, 31)
        whole = significands >> right
        sticky = (whole << right) != significands
        return np.minimum(whole, self.type((1 << self.bits) - 1)), sticky


@dataclass(frozen=True, eq=False)
class Candidate:
    """Blocks quantised with one kind of elements and one scale each.

    Parameters
    ----------
    aligned
        The blocks.
    element
        Their elements.
    scales
        Codes of UE4M3, uint8 (n,).
    """

    aligned: Aligned
    element: ElementFormat
    scales: Array

    @cached_property
    def _integers(self) -> list[int]:
        """Elements in halves that are not negative, by code."""
        return [h << self.element.fold for h in self.element.integers[:8]]

    @cached_property
    def steps(self) -> Array:
        """W, (n,): what an element of 1/4 is in units."""
        shift = np.array(_EXPONENTS, np.int32)[self.scales] + np.int32(6) - self.aligned.exponents
        products = np.array(_SIGNIFICANDS, self.aligned.type) * self.aligned.tensor_scale.significand
        # Where the scale is zero, so is W, whatever the shift.
        return np.asarray(products[self.scales] << np.maximum(shift, 0))

    @cached_property
    def codes(self) -> Array:
        """Codes of the magnitudes, uint8 (16, n): of the nearest value, ties to the even code; 0 if the scale is 0."""
        whole, sticky = self.aligned.cut
        halves = whole << 1
        halves |= sticky
        passed = np.zeros(whole.shape, np.int8)
        for code, (below, above) in enumerate(pairwise(self._integers)):
            # Twice the midpoint. An odd code loses a tie: what is not below goes up.
            bound = self.steps * (2 * (below + above)) - (code & 1)
            passed += (halves > bound).view(np.int8)
        passed *= (self.steps > 0).view(np.int8)
        return passed.view(np.uint8)

    def errors(self, lanes: slice, bits: int) -> Array:
        """Return magnitudes of errors in units of 2^(a - 2 - bits), (lanes, n).

        Parameters
        ----------
        lanes : slice
            Which numbers of each block.
        bits : int
            Bits at which errors saturate; those of evenly spaced elements do at one less, for their steps are less
            than half as large.
        """
        values = np.array(self._integers, self.aligned.type) << 1
        low = self.aligned.bits - 2 - bits
        # The number is cut and the value rounded: so what is cut off is the same on both sides of a value.
        distance = self.aligned.cut[0][lanes] >> low
        distance -= (values[self.codes[lanes]] * self.steps + self.aligned.type(1 << low - 1)) >> low
        np.invert(distance, out=distance, where=distance < 0)
        kept = bits - (len(set(np.diff(self._integers))) == 1)
        return np.minimum(distance, self.aligned.type((1 << kept) - 1), out=distance)


_SIGNIFICANDS = [UE4M3.significand(code) for code in range(1 << UE4M3.width)]
_EXPONENTS = [UE4M3.exponent(code) for code in range(1 << UE4M3.width)]
