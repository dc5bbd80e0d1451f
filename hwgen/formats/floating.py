"""Floating-point formats with all the encodings of IEEE 754, by their widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import overload

from hwgen.formats.element import ElementFormat

__all__ = ["FloatFormat", "FloatValues"]


@dataclass(frozen=True)
class FloatValues(Sequence[float]):
    """Value of every code: sign, exponent field and fraction, with subnormals; 0 of infinity and NaN.

    The table of a long format takes too long to be made at every start, so a value is found when it is asked for.

    Parameters
    ----------
    exponent_bits, fraction_bits
        Bits of both fields, the fraction lowest.
    """

    exponent_bits: int
    fraction_bits: int

    def __len__(self) -> int:
        return 2 << self.exponent_bits + self.fraction_bits

    @overload
    def __getitem__(self, code: int) -> float: ...
    @overload
    def __getitem__(self, code: slice) -> tuple[float, ...]: ...
    def __getitem__(self, code: int | slice) -> float | tuple[float, ...]:
        if isinstance(code, slice):
            return tuple(self[each] for each in range(*code.indices(len(self))))
        code = index(code)  # numpy's integers would overflow
        if code not in range(len(self)):
            raise IndexError(f"{code} is no code of {len(self)}")
        unit = 1 << self.fraction_bits
        rest, fraction = divmod(code, unit)
        negative, field = divmod(rest, 1 << self.exponent_bits)
        if field == (1 << self.exponent_bits) - 1:
            return 0.0
        magnitude = (fraction + unit * (field > 0)) * 2.0 ** (max(field, 1) - self.bias - self.fraction_bits)
        return -magnitude if negative else magnitude

    @property
    def bias(self) -> int:
        """Exponent field of 1."""
        return (1 << self.exponent_bits - 1) - 1


@dataclass(frozen=True)
class FloatFormat(ElementFormat):
    """A format whose highest exponent field is infinity and NaN, as IEEE 754 has it; see `of`.

    What `ElementFormat` looks for in its table follows from two widths here.
    """

    values: FloatValues

    @classmethod
    def of(cls, name: str, exponent_bits: int, fraction_bits: int, source: str) -> FloatFormat:
        """The format of these widths and a sign; its integers count the smallest number, and its fold is 0."""
        values = FloatValues(exponent_bits, fraction_bits)
        half, size = len(values) // 2, 1 << fraction_bits
        infinities = (half - size, len(values) - size)
        nans = tuple(first + rest for first in infinities for rest in range(1, size))
        return cls(name, values, source, values.bias - 1 + fraction_bits, nans, infinities)

    def __post_init__(self) -> None:
        """Nothing is to be checked: the table is what it is."""

    @property
    def fold(self) -> int:
        """See `ElementFormat`."""
        return self.point - self.values.bias + 1 - self.values.fraction_bits

    @cached_property
    def integers(self) -> tuple[int, ...]:
        """See `ElementFormat`."""
        unit, fields = 1 << self.values.fraction_bits, (1 << self.values.exponent_bits) - 1
        numbers = [(rest | unit * (field > 0)) << max(field, 1) - 1 for field in range(fields) for rest in range(unit)]
        magnitudes = (*numbers, *(0,) * unit)
        return (*magnitudes, *(-magnitude for magnitude in magnitudes))

    @property
    def significand_bits(self) -> int:
        """See `ElementFormat`."""
        return self.values.fraction_bits + 1

    @property
    def longest_shift(self) -> int:
        """See `ElementFormat`."""
        return (1 << self.values.exponent_bits) - 3

    @property
    def largest_significand(self) -> int:
        """See `ElementFormat`."""
        return (1 << self.significand_bits) - 1

    @property
    def largest(self) -> int:
        """See `ElementFormat`."""
        return self.largest_significand << self.longest_shift
