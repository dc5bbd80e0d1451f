"""Scale formats: unsigned minifloats."""

from __future__ import annotations

from dataclasses import dataclass

from hwgen.errors import InputError

__all__ = ["ScaleFormat"]


@dataclass(frozen=True)
class ScaleFormat:
    """The format of a block scale: exponent field above mantissa field, no sign.

    The value of a code is significand * 2^(exponent - mantissa_bits), see `significand` and `exponent`. With
    subnormals, which have exponent field 0, code 0 is zero. Without them there is no zero. Without mantissa bits, too,
    all scales are powers of two, and there is no significand to multiply by. Without any bits the scale is always 1.

    Parameters
    ----------
    name
        Name in the literature.
    exponent_bits, mantissa_bits
        Field widths; together at most 8.
    bias
        Exponent bias.
    nan
        The code that is NaN, the highest one; None if there is none. There is no infinity.
    source
        Where it is defined.
    subnormals
        Whether exponent field 0 holds subnormals. A format without mantissa bits has none.

    Raises
    ------
    InputError
        A field is out of range; the message names it.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    nan: int | None
    source: str
    subnormals: bool = True

    def __post_init__(self) -> None:
        if not self.width and (self.subnormals or self.nan is not None):
            raise InputError(
                f"scale format {self.name}: has no bits, so it is always 1: subnormals must be false, and nan left out"
            )
        least = int(self.subnormals)
        if self.width and (self.exponent_bits < 2 or self.mantissa_bits < least or self.width > 8):
            raise InputError(
                f"scale format {self.name}: exponent_bits = {self.exponent_bits}, mantissa_bits = {self.mantissa_bits}:"
                f" at least 2 and {least}, and 8 together at most"
                + (" (without mantissa: subnormals = false)" if self.subnormals and not self.mantissa_bits else "")
            )
        if self.nan not in (None, (1 << self.width) - 1):
            raise InputError(
                f"scale format {self.name}: nan = {self.nan:#x}: must be the highest code, {(1 << self.width) - 1:#x}"
            )

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self.exponent_bits + self.mantissa_bits

    def significand(self, code: int) -> int:
        """Significand of a code, hidden bit included, in units of 2^-mantissa_bits."""
        hidden = 1 << self.mantissa_bits if code >> self.mantissa_bits or not self.subnormals else 0
        return code & (1 << self.mantissa_bits) - 1 | hidden

    def exponent(self, code: int) -> int:
        """Exponent of a code; that of subnormals and zero is the lowest."""
        return max(code >> self.mantissa_bits, int(self.subnormals)) - self.bias

    def value(self, code: int) -> float:
        """Value of a code; NaN if it is that."""
        if code == self.nan:
            return float("nan")
        return self.significand(code) * 2.0 ** (self.exponent(code) - self.mantissa_bits)

    @property
    def highest(self) -> int:
        """The code of the largest value."""
        return (1 << self.width) - (1 if self.nan is None else 2)

    @property
    def highest_binade(self) -> int:
        """The first code with the exponent of the largest value."""
        return self.highest >> self.mantissa_bits << self.mantissa_bits

    @property
    def largest(self) -> float:
        """Largest value."""
        return self.value(self.highest)

    @property
    def largest_significand(self) -> int:
        """Largest significand."""
        return (2 << self.mantissa_bits) - 1

    @property
    def significand_bits(self) -> int:
        """Bits of a significand; 0 where all of them are 1, so that nothing is multiplied."""
        return self.mantissa_bits and self.largest_significand.bit_length()

    @property
    def exponents(self) -> range:
        """All exponents, lowest first."""
        return range(self.exponent(0), self.exponent(self.highest) + 1)
