"""The last adder of a dot product that holds its last two words in a register."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value, signed, unsigned
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lanes import lanes
from hwgen.rtl.lanes.windowed import Windowed

__all__ = ["LastAdder"]


class LastAdder(Block):
    """Sum of the last two words, and what is one less.

    ::

        x, y --+--[x + y + 1]--> sum
               +--[x + y]------> below

    It is a module of its own: the sum is long, and may have fast carries while the tree before the register has the
    smallest adders.

    Parameters
    ----------
    config
        ``a``, ``b`` and ``dot`` select the lanes, `hwgen.rtl.lanes.windowed.Windowed` or what comes from it.

    Attributes
    ----------
    x, y : In(lanes(config).last_width)
        Their sum is S - 1, modulo 2 to their width, the top bit inverted.
    sum, below : Out(signed)
        S of the contract, and S - 1.
    latency : int
        0, combinational.
    """

    module_name = "last_adder"

    def __init__(self, config: TensorCoreConfig) -> None:
        how = lanes(config)
        assert isinstance(how, Windowed)
        words = {name: In(unsigned(how.last_width)) for name in ("x", "y")}
        super().__init__(config, words | {name: Out(signed(how.sum_width)) for name in ("sum", "below")})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x, y = self.x, self.y
        sums: tuple[tuple[Value, Value], ...] = (self.sum, (Cat(1, x) + Cat(1, y))[1:]), (self.below, x + y)
        for number, total in sums:
            word = Signal(len(x), name=f"{number.name}_word")
            m.d.comb += [word.eq(total), number.eq(Cat(word[:-1], ~word[-1]).as_signed())]
        return m
