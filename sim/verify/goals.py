"""Coverage goals: what a verification run must have seen, bin by bin, and what nobody can see.

Every group of goals is an array of bins; an event counts in one bin of it. Goals follow from the contract
(`sim.golden.mma`) and from the configuration, never from how the hardware is built. With half-units h, S, T and E as
there, F = ``fraction_bits`` and all words in units of 2^(emax - F)::

    C      = sigC << (F - 23), shifted right by emax - expC
    term g = T_g  << (F - 8),  shifted right by emax - E_g

|T_g| < 2^19 and E_g is from -12 to 16 plus the tags. An operand counts as *seen* only where a change of its block
sum by one half-unit changes the result: its scales are neither zero nor NaN, the result is finite, and a unit of T_g
is not below the last place of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.config import LOOP_REGISTERS, TensorCoreConfig

__all__ = ["CLASSES", "DEEPEST_CHAIN", "LARGEST_CANCELLATION", "Goals", "exponent_span", "goals", "largest_sum"]

CLASSES = (
    *("+0", "-0", "+subnormal", "-subnormal", "+normal", "-normal", "+largest", "-largest"),
    *("+Inf", "-Inf", "+quiet NaN", "-quiet NaN", "+signalling NaN", "-signalling NaN"),
)
"""Kinds of FP32 numbers; "largest" is the largest finite one."""

LARGEST_CANCELLATION = 24
"""Most leading places that one block sum and C can lose by cancelling, see `goals`."""

DEEPEST_CHAIN = 4096
"""Most steps of one tile that a run draws: the depth of 65536 at G = 1."""

_FIRST_LAST = ("neither", "first", "last", "first and last")
_Axis = tuple[str, tuple[str, ...]]
_LARGEST_TERM = 16 * 12 * 12 * 15 * 15


@dataclass(frozen=True)
class Goals:
    """A group of bins.

    Parameters
    ----------
    name
        Unique.
    axes
        Name and labels of every axis.
    reachable
        bool, as many axes as there are: the bins that are goals.
    reason
        Why the others cannot be hit; empty if there are none.
    """

    name: str
    axes: tuple[_Axis, ...]
    reachable: NDArray[np.bool_]
    reason: str = ""

    def missed(self, counts: NDArray[np.int64]) -> list[str]:
        """The goals without an event, in words."""
        return [self.label(tuple(index)) for index in np.argwhere(self.reachable & (counts == 0))]

    def label(self, index: tuple[int, ...]) -> str:
        """One bin, in words."""
        words = (f"{name} {labels[i]}".strip() for (name, labels), i in zip(self.axes, index, strict=True))
        return ", ".join(words)


def _numbers(values: range, *more: str) -> tuple[str, ...]:
    return (*map(str, values), *more)


def exponent_span(config: TensorCoreConfig) -> int:
    """Largest E_g minus smallest E_g of scales that are not zero."""
    return 28 + config.tagged("a") + config.tagged("b")


def largest_sum(config: TensorCoreConfig) -> int:
    """Largest sum of the chains that a run draws, in units of 2^-20; exact numerics only."""
    a, b = (14 if config.tagged(side) else 12 for side in "ab")  # half-units, a tag's factor of 2 included
    steps = min(config.largest_steps or 1, DEEPEST_CHAIN)
    return steps * config.groups * (16 * a * b * 14 * 14 << 28)  # the largest scale is 448, 14 eighths of 2^8


def goals(config: TensorCoreConfig) -> dict[str, Goals]:
    """All goals of a configuration, by name."""
    found: dict[str, Goals] = {}

    def add(
        name: str,
        *axes: _Axis,
        reachable: NDArray[np.bool_] | None = None,
        reason: str = "",
    ) -> None:
        shape = tuple(len(labels) for _, labels in axes)
        found[name] = Goals(name, axes, np.ones(shape, np.bool_) if reachable is None else reachable, reason)

    groups = ("block", _numbers(range(config.groups)))
    tags = [(f"tag {side.upper()}", ("E2M1", "E1M2")[: 1 + config.tagged(side)]) for side in "ab"]
    signs = ("", ("positive", "negative"))
    operation = ("", ("effective addition", "effective subtraction"))

    # Operands, where they are seen. Every byte and every code is free, so every bin is reachable.
    lanes = ("lane", _numbers(range(config.depth)))
    codes = [(side, _numbers(range(16))) for side in "AB"]
    add("code pairs", lanes, *tags, *codes)
    add("tag pairs", groups, *tags)
    for side, tag in zip("AB", tags, strict=True):
        add(f"scales of {side}", groups, tag, ("byte", tuple(f"0x{byte:02x}" for byte in range(1, 127))))
    exponents = _numbers(range(-6, 9))
    add("scale exponents", groups, ("A", exponents), ("B", exponents))
    add("scale exponent differences", groups, ("A - B", _numbers(range(-14, 15))))
    significands = _numbers(range(1, 16))
    add("scale significands", groups, ("A", significands), ("B", significands))
    kinds = ("finite", "zero", "NaN", "finite, bit 7 set", "zero, bit 7 set", "NaN, bit 7 set")
    add("kinds of scales", groups, ("A", kinds), ("B", kinds))

    # C by where it comes from, and by the scales that it meets.
    reachable = np.ones((2, len(CLASSES), 3), np.bool_)
    reachable[1] = _results()[:, None]
    add(
        "C",
        ("from", ("the payload", "the accumulator")),
        ("", CLASSES),
        ("with", ("usable scales", "a zero scale", "a NaN scale")),
        reachable=reachable,
        reason="an accumulator holds results: an exact zero is +0, and every NaN is 0x7fffffff",
    )
    if config.exact:
        # A chain adds up before it meets C, so there is no C from an accumulator.
        reachable = reachable.copy()
        reachable[1] = False
        found["C"] = Goals("C", found["C"].axes, reachable, "an exact accumulator holds no C: it meets the sum once")
    add("results", ("", CLASSES), reachable=_results(), reason=found["C"].reason if not config.exact else _NO_RESULT)

    if config.exact:
        _exact(config, add, groups, signs, operation)
    else:
        _rounded(config, add, groups, signs, operation)

    # A rounding decision needs a place behind the last one; 24 ones with a one behind carry out if rounded up.
    bits = ("0", "1")
    add("rounding", signs, ("last place", bits), ("next", bits), ("rest", ("zero", "not zero")))
    add("24 ones and a one behind", signs)
    _streams(config, add)
    return found


_NO_RESULT = "an exact zero is +0, and every NaN is 0x7fffffff"


def _results() -> NDArray[np.bool_]:
    """Kinds of FP32 numbers that are results."""
    never = ("-0", "-quiet NaN", "+signalling NaN", "-signalling NaN")
    return np.array([kind not in never for kind in CLASSES])


def _rounded(config: TensorCoreConfig, add: Callable[..., None], groups: _Axis, signs: _Axis, operation: _Axis) -> None:
    """Goals of the alignment, the sum and its normalisation where every step is rounded."""
    fraction = config.fraction_bits
    # expC is at most 127 and at least -126, E_g at most 18 and at least -12: every distance is reachable, and what
    # lies further behind than a word is long is lost whole, however far.
    add("shift of C", ("by", _numbers(range(fraction + 1), "more")), operation)
    add("shift of terms", groups, ("by", _numbers(range(fraction + 11), "more")), operation)
    if config.groups > 1:
        # No two terms are more than 30 apart, and a term is lost F + 11 behind the largest exponent, at least 44:
        # terms do not push each other out of the window, only C does that.
        span = exponent_span(config)
        first, second = np.triu_indices(config.groups, 1)
        pairs = tuple(f"{g} and {h}" for g, h in zip(first, second, strict=True))
        add("distance of terms", ("blocks", pairs), ("", _numbers(range(-span, span + 1))))
    add("largest exponent", ("of", ("C", "C and a term", "a term", "a block whose sum is zero, C cut")))

    top = (config.groups * (_LARGEST_TERM << fraction - 8) + ((1 << 24) - 1 << fraction - 23)).bit_length()
    add("leading place of the sum", ("", _numbers(range(top))), signs)

    # Let x be the term's word and y C's, F = 35, p the place that leads their difference, P that of the larger one.
    # If C has the largest exponent, 2^35 <= y < 2^36 is a multiple of 2^12, and x, to come near it, is at least 2^34
    # and so a multiple of 2^15: p >= 12, and P <= 36 or nothing cancels. Otherwise x is a multiple of 2^27, and y,
    # whose first place is 35 - d, one of 2^(12 - d): p >= 12 - d, P <= 36 - d. Either way P - p <= 24; more
    # fraction bits move all places alike. With more terms a sum can be longer than C and cancel further.
    lost = ("grows", *_numbers(range(LARGEST_CANCELLATION + 1)), "more", "all")
    reachable = np.ones(len(lost), np.bool_)
    reachable[-2] = config.groups > 1
    reason = "" if config.groups > 1 else f"one term and C share at most {LARGEST_CANCELLATION} leading places"
    add("places cancelled", ("", lost), reachable=reachable, reason=reason)

    zeros = (
        *("C and all terms zero", "terms zero, C not", "C zero, terms not", "a block sum zero, its products not"),
        *("C and terms cancel", "nothing left after alignment", "terms cancel, C zero"),
    )
    reachable = np.ones(len(zeros), np.bool_)
    reachable[-1] = config.groups > 1
    add("zeros", ("", zeros), reachable=reachable, reason="" if config.groups > 1 else "a single term has no other")


def _exact(config: TensorCoreConfig, add: Callable[..., None], groups: _Axis, signs: _Axis, operation: _Axis) -> None:
    """Goals where all of a tile is summed up in fixed point; places count from 2^-20, the unit of all terms."""
    add("place of terms", groups, ("", _numbers(range(exponent_span(config) + 1))), signs)
    add("leading place of the sum", ("", _numbers(range(largest_sum(config).bit_length()))), signs)
    add("C against the sum", ("exponents differ by", ("less", *_numbers(range(-26, 27)), "more")), operation)
    lost = ("grows", *_numbers(range(LARGEST_CANCELLATION + 1)), "more", "all")
    add("places cancelled", ("", lost))
    add(
        "zeros",
        ("", ("C and sum zero", "sum zero, C not", "C zero, sum not", "a block sum zero, its products not")),
    )


def _streams(config: TensorCoreConfig, add: Callable[..., None]) -> None:
    """Goals of the streams: of what is fed, and of the handshakes at the ports."""
    add("steps of a slot", ("step with", _FIRST_LAST), ("behind one with", _FIRST_LAST))
    lengths = ("1", "2", "3", "4", "5 to 8", "9 to 16", "17 and more")
    add("steps of a tile", ("", lengths))
    add("cycles in a row", ("without", ("a step", "a taker")), ("", ("1", "2", "3", "4 to 7", "8 and more")))

    bits = ("0", "1")
    reachable = np.ones((2, 2, 2, 2), np.bool_)
    reachable[:, 1, 1, 0] = False
    turns, front = config.interleave, sum(register not in LOOP_REGISTERS for register in config.pipeline)
    if turns == 1:
        reachable[:, 0, 0, :] = reachable[:, 0, 1, 1] = False
        reason = "step.ready is low while a result is not taken, and then only"
    else:
        # A step may have to wait for its turn. One behind registers can do so while none is offered; the ring is out
        # of place while there is no result only if a bubble brings nothing to its end, that is with T > 2.
        reason = "step.ready is low while a result is not taken, and while a step waits for its turn"
        if turns == 2:
            reachable[:, 0, 0, :] = False
        if not front:
            reachable[0, 0, 0, :] = reachable[0, 0, 1, 1] = False
    ports = ("step.valid", "step.ready", "result.valid", "result.ready")
    add("handshakes", *((port, bits) for port in ports), reachable=reachable, reason=reason)
