"""Element formats: a table of values, and the codes nearest to given numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .checks import ArgumentError, Array

WIDTHS = range(2, 17)
"""Bits that an element code may have."""
_FEW = 64
"""Bounds that are sooner counted than searched."""


@dataclass(frozen=True)
class ElementFormat:
    """What the codes of an element mean.

    Hardware computes with integers h, value = h * 2^(fold - point), and carries the fold in the exponent of the block.
    With a fold of 0, and a point of 1, the integers count halves of 1.

    Parameters
    ----------
    name : str
        Name in the literature.
    width : int
        Bits of a code, 2 to 16.
    values : tuple of float
        Value of every code, 2^width of them. Of codes with equal values only the lowest is ever produced; the others
        are read all the same. So a code that has no meaning is one that reads as zero.
    fold : int
        As above.
    point : int
        As above. Where an element's point is the exponent of its smallest value, negated, its fold is 0.
    preference : tuple of int
        The codes that are produced; of two neighbours equally near to a number the one that comes first here is taken.
        If there are none, the even one is.

    silent : tuple of int
        More codes that are read but never produced.

    nans : tuple of int
        Codes that are NaN. Their values are given as 0.

    infinities : tuple of int
        Codes that are infinite, negative where the top bit is set. Their values are given as 0. None is ever produced:
        numbers saturate.

    normal : int or None
        Exponent of the smallest normal number of a floating-point element; None for others. Smaller numbers have that
        exponent, too, and so does zero.

    Raises
    ------
    ArgumentError
        On construction: width or length of the table are not as above, a value is no multiple of 2^(fold - point),
        a NaN or infinite code has a value, `silent` has what is no code, or all numbers but zero, or zero,
        `preference` has other codes than those that are produced, or there is none and two neighbouring values have
        codes that are both odd or both even, so that a tie has no even code to go to.
    """

    name: str
    width: int
    values: tuple[float, ...]
    fold: int = 0
    preference: tuple[int, ...] = ()
    point: int = 1
    silent: tuple[int, ...] = ()
    nans: tuple[int, ...] = ()
    normal: int | None = None
    infinities: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.width not in WIDTHS:
            raise ArgumentError(f"{self.name}: width must be {WIDTHS[0]} to {WIDTHS[-1]}; got {self.width}")
        if len(self.values) != 1 << self.width:
            wanted = 1 << self.width
            raise ArgumentError(f"{self.name}: a code of {self.width} bits has {wanted} values; got {len(self.values)}")
        units = np.array(self.values, np.float64) * 2.0 ** (self.point - self.fold)
        for code in np.flatnonzero(~np.isfinite(units) | (units != np.rint(units))).tolist():
            unit = f"2^{self.fold - self.point}"
            raise ArgumentError(f"{self.name}: the value of code {code}, {self.values[code]}, is no multiple of {unit}")
        for code in self.silent:
            if type(code) is not int or code not in range(len(self.values)):
                raise ArgumentError(f"{self.name}: silent = {self.silent}: must be codes, 0 to {len(self.values) - 1}")
        special = Counter((*self.nans, *self.infinities))
        for code, times in special.items():
            if self.values[code] != 0 or times > 1:
                raise ArgumentError(
                    f"{self.name}: code {code} is NaN or infinite; its value must be 0, and it named once"
                )
        codes = self._sorted
        if self.silent and (0 not in (left := {self.values[code] for code in codes}) or len(left) < 2):
            raise ArgumentError(f"{self.name}: silent = {self.silent}: must leave zero, and a number besides")
        if 0 in self.silent and self.values[0] == 0:
            raise ArgumentError(f"{self.name}: silent = {self.silent}: code 0 is what zeros are filled with")
        if self.preference:
            if sorted(self.preference) != sorted(codes):
                raise ArgumentError(f"{self.name}: preference must have codes {sorted(codes)}; got {self.preference}")
            return
        parities = np.array(codes, np.int64) & 1
        for place in np.flatnonzero(parities[1:] == parities[:-1]).tolist():
            parity = "odd" if parities[place] else "even"
            raise ArgumentError(
                f"{self.name}: codes {codes[place]} and {codes[place + 1]} are neighbours and both {parity}; preference"
                " must say where a tie goes"
            )

    def __hash__(self) -> int:
        return hash((self.name, self.width))  # tables are long

    @property
    def code_type(self) -> np.dtype[Any]:
        """Type of an array of codes: uint8, or uint16 of those of more bits."""
        return np.dtype(np.uint8 if self.width <= 8 else np.uint16)

    @cached_property
    def integers(self) -> tuple[int, ...]:
        """The integer h of every code."""
        return tuple(int(value * 2.0 ** (self.point - self.fold)) for value in self.values)

    @cached_property
    def lowest(self) -> int:
        """The lowest exponent: `normal`, or where there is none that of the longest significand, not shifted.

        So the integers -7 to 7 all have the exponent 2, and of -128 to 127 all but -128, which has 7, have 6.
        """
        if self.normal is not None:
            return self.normal
        odd = max(abs(h) // (h & -h) for h in self.integers if h)
        return self.fold - self.point + odd.bit_length() - 1

    @property
    def mantissa_bits(self) -> int:
        """Bits behind the point of an element of exponent 0."""
        return self.point - self.fold + self.lowest

    @cached_property
    def exponents(self) -> Array:
        """Exponents of elements by code, int16; subnormal numbers and zero have the lowest."""
        own = np.frexp(self.values)[1].astype(np.int16) - np.int16(1)
        return np.where(np.array(self.values) == 0, self.lowest, np.maximum(own, self.lowest)).astype(np.int16)

    @cached_property
    def significands(self) -> tuple[int, ...]:
        """Signed significands of elements by code: value = significand * 2^(exponent - mantissa_bits).

        NaN and infinity have 0.
        """
        numbers = zip(self.values, self.exponents.tolist(), strict=True)
        return tuple(int(value * 2.0 ** (self.mantissa_bits - exponent)) for value, exponent in numbers)

    @property
    def largest(self) -> float:
        """Largest magnitude that is produced."""
        return max(abs(self.values[code]) for code in self._sorted)

    @property
    def reach(self) -> float:
        """Largest magnitude of both signs: the smaller where they differ, as 127 of integers from -128 to 127."""
        produced = [self.values[code] for code in self._sorted]
        return min(side for side in (max(produced), -min(produced)) if side > 0)

    @cached_property
    def table(self) -> Array:
        """The values, float64 (2^width,), NaN and infinity among them."""
        table = np.array(self.values, np.float64)
        table[list(self.nans)] = np.nan
        for code in self.infinities:
            table[code] = -np.inf if code >> self.width - 1 else np.inf
        return _constant(table)

    @cached_property
    def _sorted(self) -> tuple[int, ...]:
        """The codes that are produced, in the order of their values."""
        produced = np.delete(np.arange(len(self.values)), [*self.silent, *self.nans, *self.infinities])
        _, lowest = np.unique(np.array(self.values, np.float64)[produced], return_index=True)  # -0.0 and 0.0 are one
        return tuple(produced[lowest].tolist())

    @cached_property
    def _nearest(self) -> tuple[Array, Array]:
        """Bounds between the values, float64, and the codes between the bounds."""
        codes = self._sorted
        values = self.table[list(codes)]
        bounds = (values[1:] + values[:-1]) / 2
        goes_up = np.array(codes[1:]) & 1 == 0
        if self.preference:
            rank = np.array([self.preference.index(code) for code in codes])
            goes_up = rank[1:] < rank[:-1]
        bounds[goes_up] = np.nextafter(bounds[goes_up], -np.inf)
        return _constant(bounds), np.array(codes, self.code_type)

    def encode(self, x: Array) -> Array:
        """Return the codes (`code_type`) nearest to `x` (float64, no NaN): ties as above, saturating."""
        bounds, codes = self._nearest
        if len(bounds) > _FEW:
            return codes[np.searchsorted(bounds, x, side="left")]
        below = np.zeros(np.shape(x), np.uint8)
        for bound in bounds:
            below += x > bound
        return codes[below]


def _constant(values: object) -> Array:
    table = np.array(values, dtype=np.float64)
    table.flags.writeable = False
    return table


def _sign_magnitude(magnitudes: list[float]) -> tuple[float, ...]:
    return tuple(magnitudes) + tuple(-magnitude for magnitude in magnitudes)


E2M1 = ElementFormat("E2M1", 4, _sign_magnitude([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]), normal=0)
"""OCP Microscaling Formats (MX) Specification v1.0."""
E1M2 = ElementFormat("E1M2", 4, _sign_magnitude([float(i) for i in range(8)]), fold=1)
"""MixFP4 (arXiv 2605.31035), its factor of 2 included."""
S1P2 = ElementFormat("S1P2", 4, _sign_magnitude([i / 4 for i in range(8)]), fold=-1)
"""Sign, one bit before the point, two behind it, none hidden. HiF4 (arXiv 2602.11287) has the name, MSFP12 the same."""
INT4 = ElementFormat(
    "INT4", 4, tuple(float(i) for i in (0, 1, 2, 3, 4, 5, 6, 7, 0, -7, -6, -5, -4, -3, -2, -1)), fold=1
)
"""Two's complement, symmetric: code 8, which would be -8, has no meaning. NVINT4 (arXiv 2510.25602).
"""


def _signed_binades(binades: list[int], steps: int, unit: float) -> tuple[float, ...]:
    """Sign and magnitude: numbers from 0 in the first binade of so many steps, each as wide as said, in a unit."""
    magnitudes = [float(step) for step in range(steps)]
    for width in binades:
        magnitudes += [(steps + step) * float(width) for step in range(steps)]
    return _sign_magnitude([magnitude * unit for magnitude in magnitudes])


_E4M3 = list(_signed_binades([1 << binade for binade in range(15)], 8, 2.0**-9))
_E4M3[0x7F] = _E4M3[0xFF] = 0.0
E4M3 = ElementFormat("E4M3", 8, tuple(_E4M3), point=9, nans=(0x7F, 0xFF), normal=-6)
"""OCP 8-bit Floating Point Specification (OFP8) v1.0: no infinity, and NaN where all bits but the sign are ones."""
_E5M2 = list(_signed_binades([1 << binade for binade in range(31)], 4, 2.0**-16))
for _special in (0x7C, 0x7D, 0x7E, 0x7F):
    _E5M2[_special] = _E5M2[_special + 0x80] = 0.0
E5M2 = ElementFormat(
    "E5M2",
    8,
    tuple(_E5M2),
    point=16,
    nans=(0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF),
    normal=-14,
    infinities=(0x7C, 0xFC),
)
"""The same specification: as in IEEE 754 the highest exponent has infinity, and NaN where the mantissa is not zero."""
E2M3 = ElementFormat("E2M3", 6, _signed_binades([1, 2, 4], 8, 1 / 8), point=3, normal=0)
E3M2 = ElementFormat("E3M2", 6, _signed_binades([1, 2, 4, 8, 16, 32, 64], 4, 1 / 16), point=4, normal=-2)
"""OCP Microscaling Formats (MX) Specification v1.0, FP6: neither infinity nor NaN. In eighths and in sixteenths."""
INT8 = ElementFormat("INT8", 8, tuple(float(i) / 64 for i in (*range(128), *range(-128, 0))), point=6, silent=(128,))
"""The same specification: two's complement in 64ths. Code 128 is -2, which makes a format asymmetric: not produced."""
I8 = ElementFormat("I8", 8, tuple(64 * value for value in INT8.values), fold=6, point=6, silent=(128,))
"""Two's complement as it is, -128 to 127; -128 is not produced."""
_FP16 = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float64)
_NAN, _INFINITE = (tuple(np.flatnonzero(special(_FP16)).tolist()) for special in (np.isnan, np.isinf))
FP16 = ElementFormat(
    "FP16",
    16,
    tuple(np.where(np.isfinite(_FP16), _FP16, 0.0).tolist()),
    point=24,
    nans=_NAN,
    normal=-14,
    infinities=_INFINITE,
)
"""IEEE 754-2019, binary16, as numpy has it."""
TERNARY = ElementFormat("ternary", 2, (0.0, 1.0, 0.0, -1.0), fold=1)
"""Two's complement of two bits without -2, whose code has no meaning. BitNet b1.58 (arXiv 2402.17764)."""


def _razer(special: float, lower: bool) -> ElementFormat:
    """E2M1 whose code 8 is a special value; a tie goes to the lower number, or to that value and less magnitude."""
    values = (*E2M1.values[:8], special, *E2M1.values[9:])
    codes = sorted(range(16), key=lambda code: values[code] if lower else (code != 8, abs(values[code])))
    return ElementFormat(f"E2M1{special:+g}", 4, values, preference=tuple(codes))


def _dialect(index: int, *half_units: int) -> ElementFormat:
    """A dialect, by its magnitudes in halves."""
    return ElementFormat(f"D{index}", 4, _sign_magnitude([h / 2 for h in half_units]))


RAZER_ACTIVATIONS = tuple(_razer(special, lower=False) for special in (5.0, -5.0))
RAZER_WEIGHTS = tuple(_razer(special, lower=True) for special in (5.0, -5.0, 8.0, -8.0))
"""RaZeR (arXiv 2501.04052) and its code (abdelfattah-lab/NVFP4-RaZeR): a number in the place of -0."""
_LARGE = (
    *((11, 15), (9, 15), (11, 14), (9, 14), (10, 13), (8, 13), (10, 12), (8, 12)),
    *((9, 11), (7, 11), (9, 10), (7, 10), (8, 9), (7, 9), (7, 8)),
)
DIALECTS = (
    *(_dialect(index, 0, 1, 2, 3, 4, 6, *large) for index, large in enumerate(_LARGE)),
    _dialect(15, 0, 1, 2, 3, 4, 5, 6, 8),
)
"""BlockDialect (arXiv 2501.01144): sixteen tables. D7 is E2M1."""
