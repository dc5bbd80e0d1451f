"""The largest of many numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Signal, Value

__all__ = ["largest"]


def largest(
    m: Module, numbers: Sequence[Value], *, digit: int, live: Sequence[Value] | None = None, name: str = ""
) -> Value:
    """The largest of some unsigned numbers of one width, digit by digit from the top.

    Each number says of every value whether its digit comes up to that, and an OR over all numbers whether any does. A
    number whose digit is less than the largest has no say in the digits below. No carry runs: a digit takes as long as
    an OR, however many numbers there are. Combinational.

    Parameters
    ----------
    m
        Module that receives the logic.
    numbers
        At least one.
    digit
        Bits of a digit; the top one may have fewer. With 1 it takes the least area, with more fewer digits wait for one
        another.
    live
        Which numbers count, all if not given. The largest of none is 0.
    name
        Beginning of the names on the way.
    """
    digits: list[Value] = []
    left: Sequence[Value] = live or [Const(1)] * len(numbers)
    for place in reversed(range(0, len(numbers[0]), digit)):
        own = [number[place : place + digit] for number in numbers]
        values = range(1, 1 << len(own[0]))
        reached = [Cat((each >= value) & its for value in values) for each, its in zip(own, left, strict=True)]
        some = Signal(len(values), name=f"{name}reached{place}")
        m.d.comb += some.eq(reduce(or_, reached))
        digits.insert(0, _count(some))
        if place:
            following = [Signal(name=f"{name}left{place}_{index}") for index in range(len(numbers))]
            for into, its, before in zip(following, reached, left, strict=True):
                m.d.comb += into.eq((its | ~some).all() & before)
            left = following
    return Cat(*digits)


def _count(reached: Value) -> Value:
    """The number of values that are reached, as bits; with each all below it are."""
    # Whether the number of values reached is at least so many; none are behind the last.
    least = Cat(1, reached, 0)
    steps = [1 << bit for bit in range(len(reached).bit_length())]
    return Cat(
        Cat(least[at] & ~least[at + step] for at in range(step, len(reached) + 1, 2 * step)).any() for step in steps
    )
