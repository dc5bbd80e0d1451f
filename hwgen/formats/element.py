"""Element formats: tables of values by code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from hwgen.errors import InputError

__all__ = ["WIDTHS", "ElementFormat"]

WIDTHS = range(2, 9)
"""Widths in bits of a code that a table describes."""

LONGEST = 32
"""Most bits of an integer."""


@dataclass(frozen=True)
class ElementFormat:
    """One element format, described by its table.

    Parameters
    ----------
    name
        Name in the literature.
    values
        Value of every code, 2^width of them. A code that no encoder writes has the value that decoders give it. The
        top bit of a code is its sign; but the code with no other bit, -0 of sign-magnitude, may have any value.
    source
        Where the table is defined.
    point
        Bits behind the point of the integers that hardware multiplies, see Notes. It says what the exponent of a block
        counts: those of MX have the exponent of the scale alone.
    nans
        Codes that are NaN. Their values are given as 0; lanes multiply anything, since the result is NaN.
    infinities
        Codes that are infinite, of the sign that their top bit is. Their values are given as 0, too; wires of their own
        say what they are.

    Raises
    ------
    InputError
        The table is no table of a number format; the message names the format and the code.

    Notes
    -----
    Hardware multiplies integers. Let 2^u be the largest power of two of which all values are multiples. Then the
    integer h of a code is its value over 2^u, and ``fold`` is u + point: value = h * 2^(fold - point). For E2M1 h
    counts half-units and the fold is 0. The power of two travels in the exponent of the block, where it costs no width
    in the lanes ("folded").

    An integer is also a *significand*, shifted to the left. Significands have as many bits as the longest that is odd.
    """

    name: str
    values: Sequence[float]
    source: str
    point: int = 1
    nans: tuple[int, ...] = field(default=(), repr=False)
    infinities: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) not in [1 << width for width in WIDTHS]:
            raise InputError(
                f"element format {self.name}: has {len(self.values)} values; a table has one for every code of"
                f" {WIDTHS[0]} to {WIDTHS[-1]} bits"
            )
        for code, value in enumerate(self.values):
            if not isinstance(value, (int, float)):
                raise InputError(f"element format {self.name}: code {code:#x} is {value!r}; must be a number")
            if not math.isfinite(value):
                raise InputError(f"element format {self.name}: code {code:#x} is {value:g}; no lane takes such values")
        if self.values[0] != 0:
            raise InputError(f"element format {self.name}: code 0 is {self.values[0]:g}; padding needs it to be 0")
        for kind in ("nans", "infinities"):
            for code in getattr(self, kind):
                if code not in range(1, len(self.values)) or self.values[code]:
                    raise InputError(
                        f"element format {self.name}: {kind} = {getattr(self, kind)}: {code:#x} must be a code of"
                        " value 0"
                    )
        if both := set(self.nans) & set(self.infinities):
            raise InputError(f"element format {self.name}: infinities = {self.infinities}: {min(both):#x} is NaN")
        if not any(self.values):
            raise InputError(f"element format {self.name}: all values are 0")
        half = len(self.values) // 2
        for code, value in enumerate(self.values):
            if value and code != half and (value < 0) != (code > half):
                raise InputError(
                    f"element format {self.name}: code {code:#x} is {value:g}; the top bit of a code must be its sign"
                )

        if (bits := self.largest.bit_length()) > LONGEST:
            raise InputError(
                f"element format {self.name}: values of {bits} bits in units of the smallest; the most are {LONGEST}"
            )

    @cached_property
    def width(self) -> int:
        """Bits of a code."""
        return len(self.values).bit_length() - 1

    @cached_property
    def fold(self) -> int:
        """Power of two that the block's exponent carries, see Notes."""
        # A float is an integer over a power of two, its denominator; the integers may share more twos.
        values = [Fraction(value) for value in self.values]
        denominator = max(value.denominator for value in values)
        common = math.gcd(*(int(value * denominator) for value in values))
        return (common & -common).bit_length() - denominator.bit_length() + self.point

    @cached_property
    def integers(self) -> tuple[int, ...]:
        """The integer h of every code, see Notes."""
        unit = Fraction(2) ** (self.fold - self.point)
        return tuple(int(Fraction(value) / unit) for value in self.values)

    @cached_property
    def significand_bits(self) -> int:
        """Bits of a significand."""
        return max((h // (h & -h)).bit_length() for h in self.magnitudes if h)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """How far the significand of every code is shifted; its integer is significand << shift."""
        return tuple(max(abs(h).bit_length() - self.significand_bits, 0) for h in self.integers)

    @property
    def longest_shift(self) -> int:
        """How far the significand of the largest code is shifted."""
        return max(self.shifts)

    @property
    def mantissa_bits(self) -> int:
        """Bits of a significand behind its first one."""
        return self.significand_bits - 1

    @property
    def lowest_exponent(self) -> int:
        """Exponent of a significand that is not shifted; value = significand * 2^(exponent - mantissa_bits)."""
        return self.fold - self.point + self.mantissa_bits

    @cached_property
    def significands(self) -> tuple[int, ...]:
        """The significand of every code, without its sign."""
        return tuple(abs(h) >> shift for h, shift in zip(self.integers, self.shifts, strict=True))

    @property
    def largest_significand(self) -> int:
        """The largest significand of a code."""
        return max(self.significands)

    @property
    def coded_as_float(self) -> bool:
        """Whether the bits of a code are sign, exponent field and mantissa field, of all numbers but subnormal ones."""
        bits = self.mantissa_bits
        normal = [code for code in range(1 << bits, len(self.values) // 2) if self.values[code]]
        fields = [(code & (1 << bits) - 1 | 1 << bits, (code >> bits) - 1) for code in normal]
        signed = all(self.values[len(self.values) // 2 + code] == -self.values[code] for code in normal)
        found = [(self.significands[code], self.shifts[code]) for code in normal]
        return signed and self.signed_by_top_bit and bool(normal) and found == fields

    @property
    def largest_code(self) -> int:
        """Highest code of a positive number."""
        return max(code for code, value in enumerate(self.values[: len(self.values) // 2]) if value)

    @property
    def signed_by_top_bit(self) -> bool:
        """Whether the top bit of every code that is not zero is its sign."""
        return self.values[len(self.values) // 2] <= 0

    @cached_property
    def magnitudes(self) -> frozenset[int]:
        """All abs(h)."""
        return frozenset(abs(h) for h in self.integers)

    @cached_property
    def largest(self) -> int:
        """Largest abs(h)."""
        return max(self.magnitudes)
