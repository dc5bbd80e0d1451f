"""Numbers of blocks as a hardware quantiser has them: whole multiples of a unit that follows from the block scale.

A block with scale code c has the scale S * 2^(e - 3), S from 0 to 15. The tensor scale is sg * 2^(es - p + 1), sg of p
bits. So with W = S * sg and U = 2^(e - 3 + es - p + 1) the value of an element is its own times W * U, and all values
and all midpoints between two of them are whole multiples of W * U / 4. A number of the block is cut to a multiple of
U / 4; a sticky bit says whether that has lost anything. So comparisons with midpoints are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from .checks import Array
from .element import ElementFormat
from .scale import UE4M3

_FRACTION = 23
"""Bits of an FP32 number behind its leading one."""
_BIAS = 127
MAGNITUDE = np.uint32(0x7FFFFFFF)
"""All bits of an FP32 number but its sign. Magnitudes are in the order of these as integers."""
INFINITY = 0x7F800000
"""Magnitude of infinity; those above are NaN."""
_MARGIN = 9
"""Bits of a cut number beyond those of the tensor scale: all midpoints, up to 26 * 15 * sg, are below 2^(p + 9)."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Magnitudes of finite FP32 numbers, taken apart.

    Parameters
    ----------
    bits
        Magnitudes as integers, int32 (16, n): lanes first.
    """

    bits: Array

    @cached_property
    def exponents(self) -> Array:
        """Exponent fields, int32; 1 of subnormal numbers and of zero."""
        return np.maximum(self.bits >> _FRACTION, 1)

    @cached_property
    def significands(self) -> Array:
        """Significands, int32: number = significand * 2^(exponent field - 150). Subnormal numbers are below 2^23."""
        fraction = self.bits & ((1 << _FRACTION) - 1)
        fraction += (self.bits > fraction).astype(np.int32) << _FRACTION
        return fraction

    @cached_property
    def peaks(self) -> Array:
        """Largest magnitude of each block as an integer, (n,)."""
        return self.bits.max(axis=0)

    def against_peak(self, bits: int) -> Array:
        """Return numbers cut so that the largest of a block has so many bits, int64 (16, n)."""
        top = np.maximum(self.peaks >> _FRACTION, 1)
        shift = np.minimum(top - self.exponents + _FRACTION + 1 - bits, 31)
        return (self.significands >> shift).astype(np.int64)


@dataclass(frozen=True, eq=False)
class TensorScale:
    """A tensor scale taken apart: value = significand * 2^(exponent - bits + 1).

    Parameters
    ----------
    significand, exponent
        From 2^(bits - 1) to 2^bits - 1, and that of the number.
    bits
        Bits of significands.
    """

    significand: int
    exponent: int
    bits: int


@dataclass(frozen=True, eq=False)
class Candidate:
    """Blocks quantised with one kind of elements and one scale each.

    Parameters
    ----------
    numbers
        The blocks.
    element
        Its elements.
    scales
        Codes of UE4M3, uint8 (n,).
    tensor_scale
        As above.
    """

    numbers: Numbers
    element: ElementFormat
    scales: Array
    tensor_scale: TensorScale

    @cached_property
    def _wide(self) -> type[np.signedinteger]:
        """Type that holds a cut number and its sticky bit, doubled."""
        return np.int32 if self.tensor_scale.bits + _MARGIN < _FRACTION else np.int64

    @cached_property
    def multiples(self) -> Array:
        """W, (n,)."""
        return (np.array(_SIGNIFICANDS, self._wide) * self.tensor_scale.significand)[self.scales]

    @cached_property
    def units(self) -> Array:
        """Exponents of U, int32 (n,)."""
        at_one = self.tensor_scale.exponent - (self.tensor_scale.bits - 1) - UE4M3.mantissa_bits
        return np.array(_EXPONENTS, np.int32)[self.scales] + np.int32(at_one)

    @cached_property
    def cut(self) -> tuple[Array, Array]:
        """Numbers in U / 4, (16, n), with what is below cut off, saturating; and whether anything was, bool."""
        most = self._wide((1 << self.tensor_scale.bits + _MARGIN) - 1)
        # A shift to the left leaves narrow ones above `most` in any case, so it need not be done.
        right = self.units[None] + np.int32(_BIAS + _FRACTION - 2) - self.numbers.exponents
        significands = self.numbers.significands.astype(self._wide, copy=False)
        if self._wide is np.int64:
            significands = significands << np.clip(-right, 0, self.tensor_scale.bits + _MARGIN)
        right = np.clip(right, 0, 31)
        whole = significands >> right
        sticky = (whole << right) != significands
        return np.minimum(whole, most), sticky

    @cached_property
    def codes(self) -> Array:
        """Codes of the magnitudes, uint8 (16, n), as the nearest value, ties to the even code; 0 where the scale is."""
        whole, sticky = self.cut
        halves = whole << 1
        halves |= sticky
        passed = np.zeros(whole.shape, np.int8)
        for code, (below, above) in enumerate(pairwise(self._magnitudes)):
            # Twice the midpoint. An odd code loses a tie: what is not below goes up.
            bound = self.multiples * ((below + above) << 1 + self.element.fold) - (code & 1)
            passed += (halves > bound).view(np.int8)
        passed *= (self.multiples > 0).view(np.int8)
        return passed.view(np.uint8)

    @cached_property
    def _magnitudes(self) -> tuple[int, ...]:
        """Integers of the elements that are not negative, in the order of their codes."""
        return self.element.integers[:8]

    def errors(self, lanes: slice, top: Array, bits: int) -> Array:
        """Return magnitudes of errors, cut, (lanes, n).

        Parameters
        ----------
        lanes : slice
            Which numbers of each block.
        top : numpy.ndarray of int32, (n,)
            Exponents of the U that they count, of which this one's is lower by a few at most.
        bits : int
            Bits that are kept, of p + 6: they count U / 4 * 2^(p + 6 - bits), and saturate.
        """
        own = np.array([h << 1 + self.element.fold for h in self._magnitudes], self._wide)
        distance = self.cut[0][lanes] - own[self.codes[lanes]] * self.multiples
        np.abs(distance, out=distance)
        distance >>= (self.tensor_scale.bits + 6 - bits) + (top - self.units)[None].astype(self._wide)
        return np.minimum(distance, self._wide((1 << bits) - 1), out=distance)


_SIGNIFICANDS = [UE4M3.significand(code) for code in range(1 << UE4M3.width)]
_EXPONENTS = [UE4M3.exponent(code) for code in range(1 << UE4M3.width)]
