"""The largest magnitude of a block."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.rtl.hierarchy import Part

__all__ = ["LargestMagnitude"]


_LAST = 4
"""Numbers of which the largest is found in one step."""


class LargestMagnitude(Part):
    """The largest of the magnitudes of 16 numbers, as an integer: a tree of comparisons, three levels deep.

    Magnitudes of FP32 and BF16 are in the order of their bits, subnormals, infinity and NaN included.

    Attributes
    ----------
    magnitudes : In(ArrayLayout(8 + fraction, 16))
        Numbers without their signs.
    largest : Out(8 + fraction)
    """

    module_name = "largest_magnitude"

    def __init__(self, config: QuantiserConfig) -> None:
        width = 8 + config.fraction
        super().__init__(config, {"magnitudes": In(data.ArrayLayout(width, BLOCK)), "largest": Out(width)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level: list[Value] = list(self.magnitudes)
        while len(level) > _LAST:
            stem = f"of{2 * BLOCK // len(level)}"
            above: list[Value] = []
            for index, (x, y) in enumerate(zip(level[::2], level[1::2], strict=True)):
                larger = Signal(len(self.largest), name=f"{stem}_{index}")
                m.d.comb += larger.eq(Mux(x > y, x, y))
                above.append(larger)
            level = above
        a, b, c, d = level
        left, right, leftmost = Signal(), Signal(), Signal()
        m.d.comb += [
            left.eq(a > b),
            right.eq(c > d),
            # All pairs are compared at once: which comparison counts is known when it is there.
            leftmost.eq(Mux(left, Mux(right, a > c, a > d), Mux(right, b > c, b > d))),
            self.largest.eq(Mux(leftmost, Mux(left, a, b), Mux(right, c, d))),
        ]
        return m
