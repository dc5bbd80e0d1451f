"""The largest magnitude of a block."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.rtl.hierarchy import Part

__all__ = ["LargestMagnitude"]


class LargestMagnitude(Part):
    """The largest of the magnitudes of 16 numbers, as an integer: a tree of comparisons.

    Magnitudes of FP32 and BF16 are in the order of their bits, subnormals, infinity and NaN included.

    Attributes
    ----------
    magnitudes : In(ArrayLayout(width - 1, 16))
        Numbers without their signs.
    largest : Out(width - 1)
    """

    module_name = "largest_magnitude"

    def __init__(self, config: QuantiserConfig) -> None:
        width = config.numbers.width - 1
        super().__init__(config, {"magnitudes": In(data.ArrayLayout(width, BLOCK)), "largest": Out(width)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level: list[Value] = list(self.magnitudes)
        while len(level) > 1:
            stem = f"of{2 * BLOCK // len(level)}"
            above: list[Value] = []
            for index, (x, y) in enumerate(zip(level[::2], level[1::2], strict=True)):
                larger = Signal(len(self.largest), name=f"{stem}_{index}")
                m.d.comb += larger.eq(Mux(x > y, x, y))
                above.append(larger)
            level = above
        m.d.comb += self.largest.eq(level[0])
        return m
