"""Rules that choose a candidate by the magnitudes of a block alone, before anything is quantised.

They need no error, so one datapath for codes is enough: it quantises with the candidate that was chosen. Magnitudes are
cut so that the largest of a block, B, has `bits` bits; Y is any of them.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from .aligned import Aligned, Candidate
from .checks import Array
from .selection import Selection


class ByMagnitude(Selection):
    """Rules by magnitudes: `spread` says that a block has more large numbers than its largest, and wants a finer top.

    Where it holds, MixFP4 takes E1M2 and Four-over-Six takes 4.
    """

    possible = range(4, 12)

    @abstractmethod
    def spread(self, magnitudes: Array, largest: Array) -> Array:
        """Return bool (n,) of magnitudes, int64 (16, n), and the largest of each block, (n,)."""

    def second(self, aligned: Aligned, candidates: tuple[Candidate, Candidate]) -> tuple[Array, Array]:
        magnitudes = (aligned.cut[0] >> aligned.bits - self.bits).astype(np.int64)
        spread = self.spread(magnitudes, magnitudes.max(axis=0))
        # Of E1M2 and E2M1 the second is the coarser at the top; of 6 and 4 it is the finer.
        finer = candidates[0].element.fold > 0
        return ~spread if finer else spread, np.zeros(len(spread), np.bool_)


class CrestFactor(ByMagnitude):
    """Crest factor, B over the root mean square: spread where it is 2.22 or less, so that 4 sum(Y^2) >= 13 B^2.

    MixFP4 (arXiv 2605.31035) has 2.2243 as the crossover of E1M2 and E2M1, and 16 / 2.2243^2 is 3.23.
    """

    name = "crest-factor"
    pairs = (("mixfp4", "nearest"),)

    def spread(self, magnitudes: Array, largest: Array) -> Array:
        return np.asarray(4 * np.einsum("ij,ij->j", magnitudes, magnitudes) >= 13 * largest * largest)


class SecondLargest(ByMagnitude):
    """Second largest magnitude, equal to the largest if two are: spread where it is 3/4 of that or more. Ours."""

    name = "second-largest"
    pairs = (("mixfp4", "nearest"),)

    def spread(self, magnitudes: Array, largest: Array) -> Array:
        return np.asarray((4 * magnitudes >= 3 * largest).sum(axis=0) >= 2)


class Gap(ByMagnitude):
    """Spread where any magnitude is from 12 to less than 15 sixteenths of the largest. Ours.

    With a top of 6 that is from 4.5 to 5.6: E2M1 has nothing between 4 and 6.
    """

    name = "gap"

    def spread(self, magnitudes: Array, largest: Array) -> Array:
        return np.asarray(((16 * magnitudes >= 12 * largest) & (16 * magnitudes < 15 * largest)).any(axis=0))
