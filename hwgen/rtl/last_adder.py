"""The last adder of a dot product whose sums are long."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value, signed, unsigned
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lanes import lanes

__all__ = ["LastAdder"]


class LastAdder(Block):
    """Sum of the last two words, and what is one less, with which abs(S) needs no carry of its own.

    ::

        x, y --+--[x + y + 1]--> sum
               +--[x + y]------> below

    It is a module of its own, so that it may have fast carries while the tree before it has the smallest adders.

    Parameters
    ----------
    config
        ``a``, ``b`` and ``dot`` select the lanes, of those with a `hwgen.rtl.lanes.interface.Lanes.last_width`.

    Attributes
    ----------
    x, y : In(lanes(config).last_width)
        Their sum is S - 1, modulo 2 to their width, the top bit inverted.
    sum : Out(signed)
        S of the contract.
    below : Out(signed)
        S - 1; only where sums are scaled, which takes abs(S).
    latency : int
        0, combinational.
    """

    module_name = "last_adder"

    def __init__(self, config: TensorCoreConfig) -> None:
        how = lanes(config)
        words = {name: In(unsigned(how.last_width)) for name in ("x", "y")}
        sums = ("sum", "below") if how.says_below else ("sum",)
        super().__init__(config, words | {name: Out(signed(how.sum_width)) for name in sums})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x, y = self.x, self.y
        sums: list[tuple[Value, Value]] = [(self.sum, (Cat(1, x) + Cat(1, y))[1:])]
        if lanes(self.config).says_below:
            sums.append((self.below, x + y))
        for number, total in sums:
            word = Signal(len(x), name=f"{number.name}_word")
            m.d.comb += [word.eq(total), number.eq(Cat(word[:-1], ~word[-1]).as_signed())]
        return m
