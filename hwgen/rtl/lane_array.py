"""Lane array: a dot product with operand decoders of its own, the smallest scope that shows a format's cost."""

from __future__ import annotations

from dataclasses import replace

from amaranth.hdl import Module, signed, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.config.core import DEFAULT_HALF_FRACTION_BITS
from hwgen.config.slots import NO_HALF_SCALE, NO_SLOT
from hwgen.rtl.decode.operand import ElementDecoder, decoded_as, element_tag, sum_tag_bits, tag_bits
from hwgen.rtl.dot import DotProduct, beside
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
        ``a``, ``b`` and ``dot`` select decoders and lanes; there are no registers, whatever the pipeline, and no slots.

    Attributes
    ----------
    a_codes, b_codes : In(ArrayLayout(code_width, lanes))
        Codes of one block sum each.
    a_tag, b_tag : In(sum_tag_bits(form))
        Element formats of the blocks, where a selector chooses them; or the bits of all sub-groups.
    sum : Out(signed)
        S of the contract.
    exponent, positive, negative : Out
        See `hwgen.rtl.dot.beside`; each only where that has it.
    latency : int
        0, combinational.
    """

    module_name = "lane_array"

    def __init__(self, config: TensorCoreConfig) -> None:
        config = replace(
            config,
            a=config.a.by_block,
            b=config.b.by_block,
            pipeline=(),
            slot=NO_SLOT,
            half_fraction_bits=DEFAULT_HALF_FRACTION_BITS,
            half_scale=NO_HALF_SCALE,
        )
        forms = {side: config.form(side) for side in "ab"}
        members = {
            f"{side}_codes": In(data.ArrayLayout(unsigned(form.code_width), form.lanes)) for side, form in forms.items()
        }
        members["sum"] = Out(signed(lanes(config).sum_width))
        members |= {f"{side}_tag": In(bits) for side, form in forms.items() if (bits := sum_tag_bits(form))}
        members |= {name: Out(width) for name, width in beside(config).items()}
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, how = self.config, lanes(self.config)
        dot = add_child(m, platform, "dot", DotProduct, config)
        for side, codes in (("a", self.a_codes), ("b", self.b_codes)):
            form = config.form(side)
            tag = getattr(self, f"{side}_tag") if sum_tag_bits(form) else None
            block = getattr(dot, side)
            for index in range(form.lanes):
                element = add_child(m, platform, f"{side}{index}", ElementDecoder, config, decoded_as(config, side))
                m.d.comb += [element.code.eq(codes[index]), block[index].eq(element.lane)]
                if tag is not None and tag_bits(config, side):
                    m.d.comb += element.tag.eq(element_tag(form, tag, index))
            if how.word_width(side):
                m.d.comb += getattr(dot, f"{side}_word").eq(how.word(m, side, block, tag))
        m.d.comb += self.sum.eq(dot.words[0] + dot.words[1] - how.words_above if config.carry_save else dot.sum)
        m.d.comb += [getattr(self, name).eq(getattr(dot, name)) for name in beside(config)]
        return m
