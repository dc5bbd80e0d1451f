"""The largest exponent of a block's products, and by how far each product is below."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.arithmetic.largest import largest
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
        m.d.comb += self.largest.eq(largest(m, list(self.exponents), digit=_DIGIT))
        for index, (exponent, count) in enumerate(zip(self.exponents, self.counts, strict=True)):
            distance = Signal(len(exponent), name=f"distance{index}")
            m.d.comb += distance.eq(self.largest - exponent)
            m.d.comb += count.eq(saturated(m, distance, self.window, name=f"saturated{index}"))
        return m
