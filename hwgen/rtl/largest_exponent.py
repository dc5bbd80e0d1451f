"""The largest exponent of a block's products, and by how far each product is below."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.arithmetic.shifters import saturated
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lanes import lanes
from hwgen.rtl.lanes.windowed import Windowed

__all__ = ["LargestExponent"]

# So many are compared in pairs all at once. More cost area, fewer two comparisons more on the longest path there is.
_AT_ONCE = 8


class LargestExponent(Block):
    """The largest of the exponents of all lanes, and how far to the right each product is shifted.

    ::

        exponents --[max of two] ... --[max of 8]--+--> largest
                  +-------------------------------[-]--> [saturate] --> counts

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
    """The largest of some numbers: of two each by a tree, of the last few all at once."""
    level = 0
    while len(numbers) > _AT_ONCE:
        level += 1
        following: list[Value] = []
        for index, (x, y) in enumerate(zip(numbers[::2], numbers[1::2], strict=False)):
            larger = Signal(len(x), name=f"larger{level}_{index}")
            m.d.comb += larger.eq(Mux(x > y, x, y))
            following.append(larger)
        numbers = [*following, *numbers[len(numbers) & ~1 :]]
    above = [[Signal(name=f"above{i}_{j}") for j in range(len(numbers))] for i in range(len(numbers))]
    chosen = []
    for i, x in enumerate(numbers):
        for j in range(i):
            # Of equal numbers the first is the largest.
            m.d.comb += [above[i][j].eq(x > numbers[j]), above[j][i].eq(~above[i][j])]
        rest = [above[i][j] for j in range(len(numbers)) if j != i]
        chosen.append(x & reduce(and_, rest).replicate(len(x)) if rest else x)
    return reduce(or_, chosen)
