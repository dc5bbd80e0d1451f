"""Operand decoders: from stored codes and block scales to what the lanes multiply.

Decoders stand once per row of A and of B at the edge of the array; every element of that row or
column shares what they hand over.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats import BLOCK_SIZE
from hwgen.rtl.hierarchy import Block, add_child
from hwgen.rtl.lanes import lanes

__all__ = [
    "ElementDecoder",
    "ElementDecoderB",
    "OperandDecoder",
    "OperandDecoderB",
    "ScaleDecoder",
    "ScaleDecoderB",
    "StoredOperand",
    "codes_layout",
    "decoded_layout",
    "decoder",
    "operand_layout",
    "scale_code_width",
    "scale_layout",
]


def codes_layout(config: TensorCoreConfig) -> data.ArrayLayout:
    """Layout of the codes of one row of a step: ``codes[g][i]``, four bits each."""
    return data.ArrayLayout(data.ArrayLayout(unsigned(4), BLOCK_SIZE), config.groups)


def scale_code_width(config: TensorCoreConfig, side: str) -> int:
    """Bits of a block scale that the datapath reads: 8 with a tag, else 7."""
    return 8 if config.tagged(side) else 7


def scale_layout() -> data.StructLayout:
    """Layout of one decoded block scale.

    ``significand`` is in eighths (0..15); ``exponent`` is E4M3's plus the fold of the block's element
    format, offset by 6 so that it starts at 0 (0..15); ``zero`` marks a scale of zero.
    """
    return data.StructLayout({"significand": 4, "exponent": 4, "zero": 1})


def _lane_layout(config: TensorCoreConfig, side: str) -> data.StructLayout:
    """What a decoder hands over of a number: no more than the register behind it holds, where there is one."""
    how = lanes(config)
    return how.stored_layout(side) if "decoded" in config.pipeline else how.layout(side)


def decoded_layout(config: TensorCoreConfig, side: str) -> data.StructLayout:
    """Layout of one decoded row of a step as its decoder hands it over: `operand_layout`, perhaps with fewer fields."""
    return _row_layout(config, side, _lane_layout(config, side))


def operand_layout(config: TensorCoreConfig, side: str) -> data.StructLayout:
    """Layout of one decoded row of a step.

    ``lanes[g][i]`` is element i of block g, ``scales[g]`` its scale, ``words[g]`` what else the micro-architecture of
    the dot product wants of it, if anything; ``nan`` is set when any scale of the row is NaN.
    """
    return _row_layout(config, side, lanes(config).layout(side))


def _row_layout(config: TensorCoreConfig, side: str, lane: data.StructLayout) -> data.StructLayout:
    fields: dict[str, object] = {
        "lanes": data.ArrayLayout(data.ArrayLayout(lane, BLOCK_SIZE), config.groups),
        "scales": data.ArrayLayout(scale_layout(), config.groups),
        "nan": 1,
    }
    if width := lanes(config).word_width(side):
        fields["words"] = data.ArrayLayout(unsigned(width), config.groups)
    return data.StructLayout(fields)


class ElementDecoder(Block):
    """Decoder of one four-bit code of operand A, and of B where it is decoded alike.

    Parameters
    ----------
    config
        ``format``, ``tags`` and ``dot`` select the input and output formats.

    Attributes
    ----------
    code : In(4)
        Sign-magnitude code.
    tag : In(1)
        Element format of the block, 1 = E1M2; only where the operand has tags.
    lane : Out(lanes(config).layout(side)) or Out(lanes(config).stored_layout(side))
        Decoded number, see the micro-architecture in `hwgen.rtl.lanes`; the latter where a register is behind it.
    latency : int
        0, combinational.
    """

    module_name = "element_decoder"
    side = "a"

    def __init__(self, config: TensorCoreConfig) -> None:
        self.tagged = config.tagged(self.side)
        members = {"code": In(4), "lane": Out(_lane_layout(config, self.side))}
        if self.tagged:
            members["tag"] = In(1)
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        decoded = lanes(self.config).decode(self.side, self.code, self.tag if self.tagged else None)
        m.d.comb += [self.lane[name].eq(decoded[name]) for name, _ in _lane_layout(self.config, self.side)]
        return m


class ElementDecoderB(ElementDecoder):
    """As `ElementDecoder`, for an operand B that is decoded in another way."""

    module_name = "element_decoder_b"
    side = "b"


class ScaleDecoder(Block):
    """Decoder of one block scale of operand A, and of B where it is decoded alike: UE4M3 with the format tag in bit 7.

    Parameters
    ----------
    config
        An operand without tags has no bit 7.

    Attributes
    ----------
    code : In(8) or In(7)
        Scale byte; without bit 7 where the operand has no tags.
    scale : Out(scale_layout())
        Decoded scale. The exponent holds the fold of E1M2, which the contract's ``E_g`` counts.
    nan : Out(1)
        The scale is NaN (0x7F).
    latency : int
        0, combinational.

    Notes
    -----
    OCP OFP8, section 5.2: bias 7, exponent field 0 is subnormal with exponent -6, 0x7F is NaN, no
    infinity. exponent + 6 is max(field, 1) - 1, from 0 to 14; the fold makes it 15 at most.
    """

    module_name = "scale_decoder"
    side = "a"

    def __init__(self, config: TensorCoreConfig) -> None:
        width = scale_code_width(config, self.side)
        super().__init__(config, {"code": In(width), "scale": Out(scale_layout()), "nan": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        mantissa, exponent = self.code[:3], self.code[3:7]
        normal = exponent.any()
        # With the fold, max(field, 1) - 1 + 1 is max(field, 1).
        clamped = Cat(exponent[0] | ~normal, exponent[1:])
        less_one = (exponent - normal)[:4]
        m.d.comb += [
            self.scale.significand.eq(Cat(mantissa, normal)),
            self.scale.exponent.eq(Mux(self.code[7], clamped, less_one) if self.config.tagged(self.side) else less_one),
            self.scale.zero.eq(~self.code[:7].any()),
            self.nan.eq(self.code[:7].all()),
        ]
        return m


class ScaleDecoderB(ScaleDecoder):
    """As `ScaleDecoder`, for an operand B that is decoded in another way."""

    module_name = "scale_decoder_b"
    side = "b"


class OperandDecoder(Block):
    """Decoder of one row of a step, G blocks of 16 codes with their scales: of A, and of B where it is decoded alike.

    Parameters
    ----------
    config
        Tensor core configuration.

    Attributes
    ----------
    codes : In(ArrayLayout(ArrayLayout(4, 16), G))
        Codes, element i of block g at ``codes[g][i]``.
    scales : In(ArrayLayout(8 or 7, G))
        Scale bytes; without bit 7 where the operand has no tags.
    operand : Out(decoded_layout(config, side))
        Decoded row.
    latency : int
        0, combinational.
    """

    module_name = "operand_decoder"
    side = "a"
    element_decoder: type[ElementDecoder] = ElementDecoder
    scale_decoder: type[ScaleDecoder] = ScaleDecoder

    def __init__(self, config: TensorCoreConfig) -> None:
        super().__init__(
            config,
            {
                "codes": In(codes_layout(config)),
                "scales": In(data.ArrayLayout(unsigned(scale_code_width(config, self.side)), config.groups)),
                "operand": Out(decoded_layout(config, self.side)),
            },
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, how = self.config, lanes(self.config)
        nans = []
        for group in range(config.groups):
            tag = self.scales[group][7] if config.tagged(self.side) else None
            scale = add_child(m, platform, f"scale{group}", self.scale_decoder, config)
            m.d.comb += [scale.code.eq(self.scales[group]), self.operand.scales[group].eq(scale.scale)]
            nans.append(scale.nan)
            decoded = []
            for index in range(BLOCK_SIZE):
                element = add_child(m, platform, f"element{group}_{index}", self.element_decoder, config)
                decoded.append(element.lane)
                m.d.comb += [
                    element.code.eq(self.codes[group][index]),
                    self.operand.lanes[group][index].eq(element.lane),
                ]
                if tag is not None:
                    m.d.comb += element.tag.eq(tag)
            if how.word_width(self.side):
                # Not from the output's own lanes: a wire that hangs on itself is a loop to simulators.
                m.d.comb += self.operand.words[group].eq(how.word(m, self.side, decoded, tag))
        m.d.comb += self.operand.nan.eq(Cat(*nans).any())
        return m


class OperandDecoderB(OperandDecoder):
    """As `OperandDecoder`, for an operand B that is decoded in another way."""

    module_name = "operand_decoder_b"
    side = "b"
    element_decoder = ElementDecoderB
    scale_decoder = ScaleDecoderB


class StoredOperand(Block):
    """One row behind the register of its decoder, completed by what that register need not hold.

    Only where there is such a thing, and both operands are decoded alike.

    Parameters
    ----------
    config
        Tensor core configuration, with ``decoded`` in its pipeline.

    Attributes
    ----------
    stored : In(decoded_layout(config, "a"))
        The row as the register holds it.
    operand : Out(operand_layout(config, "a"))
        The row as elements take it.
    latency : int
        0, combinational.
    """

    module_name = "stored_operand"

    def __init__(self, config: TensorCoreConfig) -> None:
        assert decoder(config, "a") is decoder(config, "b")
        super().__init__(
            config, {"stored": In(decoded_layout(config, "a")), "operand": Out(operand_layout(config, "a"))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        how = lanes(self.config)
        for field, _ in operand_layout(self.config, "a"):
            if field != "lanes":
                m.d.comb += getattr(self.operand, field).eq(getattr(self.stored, field))
        for group in range(self.config.groups):
            for index in range(BLOCK_SIZE):
                whole = self.operand.lanes[group][index]
                for name, value in how.restored("a", self.stored.lanes[group][index]).items():
                    m.d.comb += getattr(whole, name).eq(value)
        return m


def decoder(config: TensorCoreConfig, side: str) -> type[OperandDecoder]:
    """The decoder of operand ``side``: one class for both where they are decoded alike."""
    alike = lanes(config).symmetric and config.tagged("a") == config.tagged("b")
    return OperandDecoder if side == "a" or alike else OperandDecoderB
