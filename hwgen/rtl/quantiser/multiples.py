"""Multiples of W, the step of a block: what midpoints and values of elements are made of.

W is what an element of 1/4 is, docs/quantiser.md, step 4. Midpoints are floating-point numbers, for numbers are
compared with them as such. Values are cut to half the unit of an error.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add

from amaranth.hdl import Value

from hwgen.config.quantiser import Candidate, QuantiserConfig

__all__ = [
    "bound_bits",
    "midpoints",
    "odd_midpoints",
    "odd_part",
    "odd_values",
    "stand_ins",
    "times",
    "value_bits",
    "values",
]


def odd_part(number: int) -> tuple[int, int]:
    """A number as an odd one, and how often that is doubled."""
    twos = (number & -number).bit_length() - 1
    return number >> twos, twos


def midpoints(candidate: Candidate) -> list[tuple[int, int]]:
    """Multiples half-way between the values of codes c and c + 1, by `odd_part`: of W, or of 2 W if evenly spaced."""
    unit = 2 if candidate.evenly_spaced else 1
    return [odd_part((below + above) // unit) for below, above in pairwise(candidate.halves)]


def odd_midpoints(candidate: Candidate) -> list[int]:
    """The odd multiples that numbers are compared with."""
    return sorted({odd for odd, _ in midpoints(candidate)})


def stand_ins(config: QuantiserConfig) -> dict[int, tuple[int, int]]:
    """What stands in the place of the first candidate's odd multiples where the second is taken: an odd one, places up.

    Places are counted from that of the first. Quantisers that choose before they compare have one set of comparisons.
    """
    found: dict[int, tuple[int, int]] = {}
    first, second = config.candidates
    for (odd, twos), (other, further) in zip(midpoints(first), midpoints(second), strict=True):
        found[odd] = other, other.bit_length() + further - odd.bit_length() - twos
    return found


def bound_bits(config: QuantiserConfig, odd: int) -> int:
    """Bits of an odd multiple behind its leading one; of those that no number has one says whether all are 0.

    W has ``tensor_scale_bits`` + 4 of them with its leading one.
    """
    exact = config.tensor_scale_bits + 3 + (odd.bit_length() if odd > 1 else 0)
    return min(exact, config.numbers.fraction + 1)


def values(candidate: Candidate) -> list[int]:
    """Values of codes as multiples of W."""
    return [2 * each for each in candidate.halves]


def odd_values(candidate: Candidate) -> dict[int, int]:
    """The odd multiples of W that values are made of, each with how often it is doubled at most."""
    found: dict[int, int] = {}
    for value in values(candidate)[1:]:
        odd, twos = odd_part(value)
        found[odd] = max(found.get(odd, 0), twos)
    return dict(sorted(found.items()))


def value_bits(config: QuantiserConfig, candidate: Candidate, odd: int) -> int:
    """Bits of an odd multiple of W that values are made of: its least is half the unit of an error, undone doublings.

    W is less than an eighth of the power of two above the largest number.
    """
    return config.error_bits + odd_values(candidate)[odd] + (odd - 1).bit_length()


def times(one: Value, odd: int) -> Value:
    """An odd multiple, of at most three words."""
    if odd == 7:
        return (one << 3) - one
    words = [one << place for place in range(odd.bit_length()) if odd >> place & 1]
    return reduce(add, words)
