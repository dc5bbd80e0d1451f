"""Scale formats: what the scale of a block means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .checks import ArgumentError, Array


@dataclass(frozen=True)
class ScaleFormat:
    """An unsigned floating-point format of at most 8 bits: exponent field above, mantissa field below.

    A code with exponent field e and mantissa field m is (2^M + m) * 2^(e - bias - M), M the bits of the mantissa;
    with subnormals, e = 0 is m * 2^(1 - bias - M). Without any bits the only value is 2^-bias.

    Parameters
    ----------
    name : str
        Name in the literature.
    exponent_bits, mantissa_bits : int
        Widths of the fields.
    bias : int
        As above.
    subnormals : bool
        As above. Without them there is no zero.
    nan : int or None
        The code that is NaN.

    Raises
    ------
    ArgumentError
        On construction: the fields have more than 8 bits, or `nan` is not the last code, above all numbers, or there
        are no bits and yet subnormals or a NaN.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    subnormals: bool = True
    nan: int | None = None

    def __post_init__(self) -> None:
        if self.width and not (self.exponent_bits > 0 <= self.mantissa_bits and self.width <= 8):
            raise ArgumentError(
                f"{self.name}: must have an exponent and at most 8 bits;"
                f" got {self.exponent_bits} + {self.mantissa_bits}"
            )
        if not self.width and (self.subnormals or self.nan is not None):
            raise ArgumentError(f"{self.name}: a scale without bits is one number, and neither zero nor NaN")
        if self.nan not in (None, (1 << self.width) - 1):
            raise ArgumentError(
                f"{self.name}: nan must be None or the last code, {(1 << self.width) - 1}; got {self.nan}"
            )

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self.exponent_bits + self.mantissa_bits

    @property
    def zero(self) -> int | None:
        """The code that is zero, if there is one."""
        return 0 if self.subnormals else None

    @property
    def last(self) -> int:
        """The last code that is a number, of the largest value."""
        return (1 << self.width) - 1 - (self.nan is not None)

    @property
    def smallest(self) -> float:
        """Smallest value above zero."""
        return float(self.table[1 if self.subnormals else 0])

    @property
    def largest(self) -> float:
        """Largest value."""
        return float(self.table[-1 if self.nan is None else -2])

    def significand(self, code: int) -> int:
        """Significand of a code that is not NaN, an integer below 2^(M + 1)."""
        mantissa = code & ((1 << self.mantissa_bits) - 1)
        normal = code >> self.mantissa_bits or not self.subnormals
        return mantissa | (1 << self.mantissa_bits if normal else 0)

    def exponent(self, code: int) -> int:
        """Exponent of a code that is neither NaN nor zero: value = significand * 2^(exponent - M)."""
        field = code >> self.mantissa_bits
        return (max(field, 1) if self.subnormals else field) - self.bias

    @cached_property
    def table(self) -> Array:
        """Values by code, float64 (2^width,), NaN among them."""
        values = [
            np.nan if code == self.nan else self.significand(code) * 2.0 ** (self.exponent(code) - self.mantissa_bits)
            for code in range(1 << self.width)
        ]
        table = np.array(values)
        table.flags.writeable = False
        return table

    @cached_property
    def _bounds(self) -> Array:
        values = self.table if self.nan is None else self.table[:-1]
        bounds = (values[1:] + values[:-1]) / 2
        bounds[1::2] = np.nextafter(bounds[1::2], 0)  # above an odd code a tie goes up
        return bounds

    def encode(self, x: Array) -> Array:
        """Return the codes (uint8) nearest to `x` (float64, not negative): ties to the even code, saturating."""
        return np.searchsorted(self._bounds, x, side="left").astype(np.uint8)


UE4M3 = ScaleFormat("UE4M3", exponent_bits=4, mantissa_bits=3, bias=7, nan=0x7F)
"""OCP 8-bit Floating Point Specification (OFP8) v1.0, E4M3 without its sign."""
UE5M3 = ScaleFormat("UE5M3", exponent_bits=5, mantissa_bits=3, bias=15, nan=0xFF)
"""arXiv 2601.19026: E4M3's sign bit becomes the highest exponent bit. Codes as in AMD-AGI/ALTO, ue5m3_ops.py."""
E3M3 = ScaleFormat("E3M3", exponent_bits=3, mantissa_bits=3, bias=3, nan=0x3F)
"""RaZeR's weights, arXiv 2501.04052: 2^-5 to 28. Bias and NaN follow from that range; the paper names neither."""
E5M0 = ScaleFormat("E5M0", exponent_bits=5, mantissa_bits=0, bias=15, subnormals=False)
"""BlockDialect, arXiv 2501.01144: the exponent of an FP16 number, all codes powers of two."""
E6M2 = ScaleFormat("E6M2", exponent_bits=6, mantissa_bits=2, bias=48, subnormals=False, nan=0xFF)
"""HiF4, arXiv 2602.11287: 2^-48 to 1.5 * 2^15, no zero."""
NONE = ScaleFormat("none", exponent_bits=0, mantissa_bits=0, bias=0, subnormals=False)
"""No scale: always 1."""
E8M0 = ScaleFormat("E8M0", exponent_bits=8, mantissa_bits=0, bias=127, subnormals=False, nan=0xFF)
"""OCP Microscaling Formats (MX) Specification v1.0: powers of two, no zero, no infinity."""
