"""Dot product of one block, exact, of integers."""

from __future__ import annotations

from amaranth.hdl import Module, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lanes import lanes

__all__ = ["DotProduct"]


class DotProduct(Block):
    """Sum of the products of a block's decoded numbers.

    What happens in between is for the micro-architecture to say: ``config.dot``, a module of `hwgen.rtl.lanes`.

    Parameters
    ----------
    config
        ``a``, ``b`` and ``dot`` select the lanes.

    Attributes
    ----------
    a, b : In(ArrayLayout(lanes(config).layout(side), lanes))
        Decoded lanes.
    a_word, b_word : In(lanes(config).word_width(side))
        What the decoders say of the block as a whole; only where they do.
    sum : Out(signed)
        S of the contract: sum of hA * hB, folds not applied; 13 bits for NVFP4.
    latency : int
        0, combinational.
    """

    module_name = "dot_product"

    def __init__(self, config: TensorCoreConfig) -> None:
        how = lanes(config)
        members = {side: In(data.ArrayLayout(how.layout(side), config.bounds.lanes)) for side in "ab"}
        self.sides = [side for side in "ab" if how.word_width(side)]
        members |= {f"{side}_word": In(how.word_width(side)) for side in self.sides}
        super().__init__(config, members | {"sum": Out(signed(how.sum_width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = {side: getattr(self, f"{side}_word") for side in self.sides}
        m.d.comb += self.sum.eq(lanes(self.config).total(m, self.a, self.b, words))
        return m
