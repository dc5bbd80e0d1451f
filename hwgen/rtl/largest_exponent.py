"""The largest exponent of a block's products, and by how far each product is below."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Signal, Value, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.arithmetic.shifters import saturated
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lanes import lanes
from hwgen.rtl.lanes.windowed import Windowed

__all__ = ["LargestExponent"]

# Bits of all exponents that are looked at at once. On generic7 at 1 ns a core of mxfp8-e5m2-small takes 5 % more area
# with 2, and is late; with 4 it takes 1 to 3 % more.
_DIGIT = 3


class LargestExponent(Block):
    """The largest of the exponents of all lanes, and how far to the right each product is shifted.

    ::

        exponents --[digit by digit: reached, or of all, left]--+--> largest
                  +--------------------------------------------[-]--> [saturate] --> counts

    Two comparisons after another would take a carry each. A digit takes an OR of all lanes, however many there are.

    It is a module of its own, since its path is the longest before the register ``tree``: there it may be mapped for
    speed, while multipliers, shifters and the tree beside it are mapped for area.

    Parameters
    ----------
    config
        ``a``, ``b`` and ``dot`` select the lanes, `hwgen.rtl.lanes.windowed.Windowed` or what comes from it.

    Attributes
    ----------
    exponents : In(ArrayLayout(unsigned, lanes))
        Of products, above the lowest there is; that of zero is 0.
    largest : Out(unsigned)
        Of them.
    counts : Out(ArrayLayout(unsigned, lanes))
        Places by which each product is shifted: all that it has, where it is too far below the largest.
    latency : int
        0, combinational.
    """

    module_name = "largest_exponent"

    def __init__(self, config: TensorCoreConfig) -> None:
        how = lanes(config)
        assert isinstance(how, Windowed)
        self.window = how.window
        bits, count = config.bounds.product_span.bit_length(), config.bounds.lanes
        super().__init__(
            config,
            {
                "exponents": In(data.ArrayLayout(unsigned(bits), count)),
                "largest": Out(unsigned(bits)),
                "counts": Out(data.ArrayLayout(unsigned(self.window.emptying), count)),
            },
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.largest.eq(_largest(m, list(self.exponents)))
        for index, (exponent, count) in enumerate(zip(self.exponents, self.counts, strict=True)):
            distance = Signal(len(exponent), name=f"distance{index}")
            m.d.comb += distance.eq(self.largest - exponent)
            m.d.comb += count.eq(saturated(m, distance, self.window, name=f"saturated{index}"))
        return m


def _largest(m: Module, numbers: Sequence[Value]) -> Value:
    """The largest of some numbers, digit by digit from the top.

    Each number says of every value whether its digit comes up to that, and an OR over all numbers whether any does. A
    number whose digit is less than the largest has no say in the digits below.
    """
    places = range(0, len(numbers[0]), _DIGIT)
    digits: list[Value] = []
    left: list[Value] = [Const(1)] * len(numbers)
    for place in reversed(places):
        own = [number[place : place + _DIGIT] for number in numbers]
        values = range(1, 1 << len(own[0]))
        reached = [Cat((digit >= value) & its for value in values) for digit, its in zip(own, left, strict=True)]
        largest = Signal(len(values), name=f"reached{place}")
        m.d.comb += largest.eq(reduce(or_, reached))
        digits.insert(0, _count(largest))
        if place:
            following = [Signal(name=f"left{place}_{index}") for index in range(len(numbers))]
            for into, its, before in zip(following, reached, left, strict=True):
                m.d.comb += into.eq((its | ~largest).all() & before)
            left = list(following)
    return Cat(*digits)


def _count(reached: Value) -> Value:
    """The number of values that are reached, as bits; with each all below it are."""
    # Whether the number of values reached is at least so many; none are behind the last.
    least = Cat(1, reached, 0)
    steps = [1 << bit for bit in range(len(reached).bit_length())]
    return Cat(
        Cat(least[at] & ~least[at + step] for at in range(step, len(reached) + 1, 2 * step)).any() for step in steps
    )
