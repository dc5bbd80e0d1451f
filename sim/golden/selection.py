"""How a hardware quantiser chooses between two candidates of a block, by their errors: rules and their widths.

`magnitudes` has rules that look at the numbers of the block alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from .aligned import Aligned, Candidate
from .checks import ArgumentError, Array
from .fp32 import check_integer


@dataclass(frozen=True)
class Selection(ABC):
    """A rule that chooses between two candidates of a block.

    Parameters
    ----------
    bits : int
        Bits of the numbers that it computes with: of errors 2 to 14, of magnitudes 4 to 11.

    Raises
    ------
    ArgumentError
        On construction: a field is not as above.
    """

    name: ClassVar[str]
    """What the rule is called."""
    pairs: ClassVar[tuple[tuple[str, str], ...]] = (("mixfp4", "nearest"), ("nvfp4", "four-over-six"))
    """Formats, with rules of their scales, between whose candidates it chooses."""
    possible: ClassVar[range]
    """Values of `bits`."""

    bits: int = 8

    def __post_init__(self) -> None:
        if check_integer(self.bits, f"{self.name}: bits") not in self.possible:
            first, last = self.possible[0], self.possible[-1]
            raise ArgumentError(f"{self.name}: bits must be {first} to {last}; got {self.bits}")

    @abstractmethod
    def second(self, aligned: Aligned, candidates: tuple[Candidate, Candidate]) -> tuple[Array, Array]:
        """Return where the second candidate is better, and where neither is, bool (n,) each."""


class ByError(Selection):
    """Rules by the errors of both candidates: the second is taken where its measure is strictly smaller."""

    possible = range(2, 15)
    lanes: ClassVar[slice] = slice(None)
    """Numbers of a block whose errors count."""

    @abstractmethod
    def measure(self, errors: Array) -> Array:
        """Return one number for each block, (n,), of errors of `bits` bits, (lanes, n)."""

    def second(self, aligned: Aligned, candidates: tuple[Candidate, Candidate]) -> tuple[Array, Array]:
        first, second = (self.measure(each.errors(self.lanes, self.bits)) for each in candidates)
        return np.asarray(second < first), np.asarray(second == first)


class SquaredError(ByError):
    """Sum of squared errors: Algorithm 1 of MixFP4 (arXiv 2605.31035), Four-over-Six (arXiv 2512.02010).

    A square is a sum of products of two bits. Those that count less than 2^t are left out, t = bits - 3.
    """

    name = "squared-error"

    def measure(self, errors: Array) -> Array:
        return np.asarray(_squares(self.bits)[errors].sum(axis=0))


class SampledError(SquaredError):
    """Sum of squared errors of the eight lanes of even index. Ours."""

    name = "sampled-error"
    lanes = slice(None, None, 2)


class AbsoluteError(ByError):
    """Sum of magnitudes of errors: ``mae`` of mit-han-lab/fouroversix."""

    name = "absolute-error"

    def measure(self, errors: Array) -> Array:
        return np.asarray(errors.sum(axis=0))


class LargestError(ByError):
    """Largest magnitude of an error: ``abs_max`` of mit-han-lab/fouroversix."""

    name = "largest-error"

    def measure(self, errors: Array) -> Array:
        return np.asarray(errors.max(axis=0))


@lru_cache
def _squares(bits: int) -> Array:
    """Return the squares of all numbers of so many bits without their least products of two bits."""
    numbers = np.arange(1 << bits)
    ones = [numbers >> place & 1 for place in range(bits)]
    least = 1 << max(bits - 3, 0)
    squares = numbers * numbers
    for high, one in enumerate(ones):
        if 1 << 2 * high < least:
            squares -= one << 2 * high
        for low in range(high):
            if 2 << high + low < least:
                squares -= (one & ones[low]) << high + low + 1
    return squares.astype(np.int32)
