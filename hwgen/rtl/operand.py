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

__all__ = [
    "ElementDecoder",
    "OperandDecoder",
    "ScaleDecoder",
    "codes_layout",
    "lane_layout",
    "operand_layout",
    "scale_code_width",
    "scale_layout",
]


def lane_layout(config: TensorCoreConfig) -> data.StructLayout:
    """Layout of one decoded four-bit number.

    ============  ===============================  ========================================
    operand       fields                           magnitude
    ============  ===============================  ========================================
    folded nvfp4  sign, significand 2, shift 2     significand << shift (0..2), half-units
    folded mixfp4 sign, significand 3, shift 1     significand << shift (0..1), half-units
    e2m2          mantissa 2, exponent 2, sign     E2M2 code: (hidden.mantissa) * 2^(max(exponent, 1) - 1)
    ============  ===============================  ========================================
    """
    if config.operand == "e2m2":
        return data.StructLayout({"mantissa": 2, "exponent": 2, "sign": 1})
    if config.block_format.tagged:
        return data.StructLayout({"significand": 3, "shift": 1, "sign": 1})
    return data.StructLayout({"significand": 2, "shift": 2, "sign": 1})


def codes_layout(config: TensorCoreConfig) -> data.ArrayLayout:
    """Layout of the codes of one row of a step: ``codes[g][i]``, four bits each."""
    return data.ArrayLayout(data.ArrayLayout(unsigned(4), BLOCK_SIZE), config.groups)


def scale_code_width(config: TensorCoreConfig) -> int:
    """Bits of a block scale that the datapath reads: 8 with a tag, else 7."""
    return 8 if config.block_format.tagged else 7


def scale_layout() -> data.StructLayout:
    """Layout of one decoded block scale.

    ``significand`` is in eighths (0..15); ``exponent`` is E4M3's plus the fold of the block's element
    format, offset by 6 so that it starts at 0 (0..15); ``zero`` marks a scale of zero.
    """
    return data.StructLayout({"significand": 4, "exponent": 4, "zero": 1})


def operand_layout(config: TensorCoreConfig) -> data.StructLayout:
    """Layout of one decoded row of a step.

    ``lanes[g][i]`` is element i of block g, ``scales[g]`` its scale, ``tags[g]`` its format (``e2m2`` only, whose
    lanes carry the factor 2 of E1M2 themselves), ``nan`` is set when any scale of the row is NaN.
    """
    fields: dict[str, object] = {
        "lanes": data.ArrayLayout(data.ArrayLayout(lane_layout(config), BLOCK_SIZE), config.groups),
        "scales": data.ArrayLayout(scale_layout(), config.groups),
        "nan": 1,
    }
    if config.operand == "e2m2":
        fields["tags"] = data.ArrayLayout(1, config.groups)
    return data.StructLayout(fields)


class ElementDecoder(Block):
    """Decoder of one four-bit code.

    Parameters
    ----------
    config
        ``format`` and ``operand`` select the input and output formats.

    Attributes
    ----------
    code : In(4)
        Sign-magnitude code.
    tag : In(1)
        Element format of the block, 1 = E1M2; only where the block format is tagged.
    lane : Out(lane_layout(config))
        Decoded number.
    latency : int
        0, combinational.

    Notes
    -----
    With codes ``s c2 c1 c0`` the folded form is, for E2M1 in NVFP4, ``significand = {c2|c1, c0}`` and a shift of
    0, 1 or 2. In MixFP4 both formats share ``significand = 1 x 0`` or the code itself: E2M1's
    upper half is 4, 6, 4<<1, 6<<1, E1M2's magnitudes are the codes. ``e2m2`` is the internal format of
    arXiv 2605.31035, where E1M2 keeps its factor 2.
    """

    module_name = "element_decoder"

    def __init__(self, config: TensorCoreConfig) -> None:
        members = {"code": In(4), "lane": Out(lane_layout(config))}
        if config.block_format.tagged:
            members["tag"] = In(1)
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c0, c1, c2, sign = self.code
        lane = self.lane
        m.d.comb += lane.sign.eq(sign)
        if self.config.operand == "e2m2":
            # E1M2 code k is the integer k: 0, 1, 2-3 and 4-7 have E2M2 exponents 0 (zero), 1, 2 and 3.
            e1m2 = Mux(c2, Cat(c0, c1, 1, 1), Mux(c1, Cat(0, c0, 0, 1), Cat(0, 0, c0, 0)))
            m.d.comb += lane.as_value()[:4].eq(Mux(self.tag, e1m2, Cat(0, c0, c1, c2)))
        elif self.config.block_format.tagged:
            upper = c2 & ~self.tag
            m.d.comb += [
                lane.significand.eq(Cat(c0 & ~upper, Mux(upper, c0, c1), c2)),
                lane.shift.eq(upper & c1),
            ]
        else:
            m.d.comb += [
                lane.significand.eq(Cat(c0, c2 | c1)),
                lane.shift.eq(Cat(c2 & ~c1, c2 & c1)),
            ]
        return m


class ScaleDecoder(Block):
    """Decoder of one block scale, UE4M3 with the format tag in bit 7.

    Parameters
    ----------
    config
        Tagged formats read bit 7; an NVFP4-only decoder has no such input.

    Attributes
    ----------
    code : In(8) or In(7)
        Scale byte; without bit 7 where the block format has no tag.
    scale : Out(scale_layout())
        Decoded scale. The fold of E1M2 is in the exponent, but not with ``operand = "e2m2"``,
        whose lanes carry it: there the exponent of alignment needs it all the same (contract,
        ``E_g``), so it is added likewise and the dot product divides it out.
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

    def __init__(self, config: TensorCoreConfig) -> None:
        super().__init__(config, {"code": In(scale_code_width(config)), "scale": Out(scale_layout()), "nan": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        mantissa, exponent = self.code[:3], self.code[3:7]
        normal = exponent.any()
        # With the fold, max(field, 1) - 1 + 1 is max(field, 1).
        clamped = Cat(exponent[0] | ~normal, exponent[1:])
        less_one = (exponent - normal)[:4]
        m.d.comb += [
            self.scale.significand.eq(Cat(mantissa, normal)),
            self.scale.exponent.eq(
                Mux(self.code[7], clamped, less_one) if self.config.block_format.tagged else less_one
            ),
            self.scale.zero.eq(~self.code[:7].any()),
            self.nan.eq(self.code[:7].all()),
        ]
        return m


class OperandDecoder(Block):
    """Decoder of one row of a step: G blocks of 16 codes with their scales.

    Parameters
    ----------
    config
        Tensor core configuration.

    Attributes
    ----------
    codes : In(ArrayLayout(ArrayLayout(4, 16), G))
        Codes, element i of block g at ``codes[g][i]``.
    scales : In(ArrayLayout(8 or 7, G))
        Scale bytes; without bit 7 where the block format has no tag.
    operand : Out(operand_layout(config))
        Decoded row.
    latency : int
        0, combinational.
    """

    module_name = "operand_decoder"

    def __init__(self, config: TensorCoreConfig) -> None:
        super().__init__(
            config,
            {
                "codes": In(codes_layout(config)),
                "scales": In(data.ArrayLayout(unsigned(scale_code_width(config)), config.groups)),
                "operand": Out(operand_layout(config)),
            },
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tagged = self.config.block_format.tagged
        nans = []
        for group in range(self.config.groups):
            scale = add_child(m, platform, f"scale{group}", ScaleDecoder, self.config)
            m.d.comb += [scale.code.eq(self.scales[group]), self.operand.scales[group].eq(scale.scale)]
            nans.append(scale.nan)
            if self.config.operand == "e2m2":
                m.d.comb += self.operand.tags[group].eq(self.scales[group][7])
            for index in range(BLOCK_SIZE):
                element = add_child(m, platform, f"element{group}_{index}", ElementDecoder, self.config)
                m.d.comb += [
                    element.code.eq(self.codes[group][index]),
                    self.operand.lanes[group][index].eq(element.lane),
                ]
                if tagged:
                    m.d.comb += element.tag.eq(self.scales[group][7])
        m.d.comb += self.operand.nan.eq(Cat(*nans).any())
        return m
