"""Lane array: a dot product with operand decoders of its own, the smallest scope that shows a format's cost."""

from __future__ import annotations

from dataclasses import replace

from amaranth.hdl import Module, signed, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats import BLOCK_SIZE
from hwgen.rtl.decode.operand import decoder
from hwgen.rtl.dot import DotProduct
from hwgen.rtl.hierarchy import Block, add_child
from hwgen.rtl.lanes import lanes

__all__ = ["LaneArray"]


class LaneArray(Block):
    """16 lanes from stored codes to the block sum.

    ::

        a_codes, a_tag --> [element decoder] x 16 --+
        b_codes, b_tag --> [element decoder] x 16 --+--> [dot product] --> sum

    Not part of a core, where decoders stand at the edge of the array: this is the unit that
    published overheads of dot products compare.

    Parameters
    ----------
    config
        ``format``, ``tags`` and ``dot`` select decoders and lanes; there are no registers, whatever the pipeline.

    Attributes
    ----------
    a_codes, b_codes : In(ArrayLayout(4, 16))
        Codes of one block each.
    a_tag, b_tag : In(1)
        Element formats of the blocks, where the operand has tags.
    sum : Out(signed)
        S of the contract, in half-units.
    latency : int
        0, combinational.
    """

    module_name = "lane_array"

    def __init__(self, config: TensorCoreConfig) -> None:
        config = replace(config, pipeline=())
        codes = data.ArrayLayout(unsigned(4), BLOCK_SIZE)
        members = {"a_codes": In(codes), "b_codes": In(codes), "sum": Out(signed(lanes(config).sum_width))}
        members |= {f"{side}_tag": In(1) for side in "ab" if config.tagged(side)}
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, how = self.config, lanes(self.config)
        dot = add_child(m, platform, "dot", DotProduct, config)
        for side, codes in (("a", self.a_codes), ("b", self.b_codes)):
            tag = getattr(self, f"{side}_tag") if config.tagged(side) else None
            block = getattr(dot, side)
            for index in range(BLOCK_SIZE):
                element = add_child(m, platform, f"{side}{index}", decoder(config, side).element_decoder, config)
                m.d.comb += [element.code.eq(codes[index]), block[index].eq(element.lane)]
                if tag is not None:
                    m.d.comb += element.tag.eq(tag)
            if how.word_width(side):
                m.d.comb += getattr(dot, f"{side}_word").eq(how.word(m, side, block, tag))
        m.d.comb += self.sum.eq(dot.sum)
        return m
