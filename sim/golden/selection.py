"""How a hardware quantiser chooses between two candidates of a block, by their errors: rules and their widths.

`magnitudes` has rules that look at the numbers of the block alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
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
    def second(self, aligned: Aligned, candidates: tuple[Candidate, Candidate]) -> Array:
        """Return where the second candidate is taken, bool (n,)."""


class ByError(Selection):
    """Rules by the errors of both candidates: the second is taken where its measure is strictly smaller."""

    possible = range(2, 15)
    lanes: ClassVar[slice] = slice(None)
    """Numbers of a block whose errors count."""

    @abstractmethod
    def measure(self, errors: Array) -> Array:
        """Return one number for each block, (n,), of errors of `bits` bits, (lanes, n)."""

    def second(self, aligned: Aligned, candidates: tuple[Candidate, Candidate]) -> Array:
        first, second = (self.measure(each.errors(self.lanes, self.bits)) for each in candidates)
        return np.asarray(second < first)


class SquaredError(ByError):
    """Sum of squared errors: Algorithm 1 of MixFP4 (arXiv 2605.31035), Four-over-Six (arXiv 2512.02010)."""

    name = "squared-error"

    def measure(self, errors: Array) -> Array:
        wide = errors.astype(np.int32 if 2 * self.bits + 4 < 32 else np.int64, copy=False)
        return np.asarray(np.einsum("ij,ij->j", wide, wide))


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
