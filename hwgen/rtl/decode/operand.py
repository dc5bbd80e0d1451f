"""Operand decoders: from stored codes and block scales to what the lanes multiply.

Decoders stand once per row of A and of B at the edge of the array; every element of that row or
column shares what they hand over.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Member, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats import BlockFormat
from hwgen.formats.floating import FloatFormat
from hwgen.formats.unscaled import CONTAINER, SCALE, SELECTOR, SIGNIFICAND, TYPE_BITS
from hwgen.rtl.arithmetic.float_fields import float_fields
from hwgen.rtl.arithmetic.truth_table import lookup
from hwgen.rtl.decode.unscaled import UnscaledDecoder, chosen_kind, slots_layout
from hwgen.rtl.hierarchy import Block, add_child
from hwgen.rtl.lanes import lanes

__all__ = [
    "ElementDecoder",
    "OperandDecoder",
    "ScaleDecoder",
    "codes_layout",
    "decoded_as",
    "element_tag",
    "exponents_layout",
    "late_layout",
    "operand_layout",
    "scale_layout",
    "sum_tag",
    "sum_tag_bits",
    "tag_bits",
]


def codes_layout(config: TensorCoreConfig, side: str) -> data.ArrayLayout:
    """Layout of the codes of one row of a step: ``codes[g][i]``."""
    form = config.form(side)
    return data.ArrayLayout(data.ArrayLayout(unsigned(form.code_width), form.size), config.groups)


def scale_layout(form: BlockFormat) -> data.StructLayout:
    """Layout of one decoded block scale.

    ``significand`` is in units of its last place (UE4M3: eighths, 0..15), times the factor of the block's element
    format, if it has one; ``exponent`` is the scale's plus the fold of
    the block's element format, offset so that it starts at 0 (0..15 at most); ``zero`` marks a scale of zero. Powers of
    two have no significand. What has no subnormals has no zero. Of blocks without a scale nothing is left.
    """
    exponents = form.highest_exponent - form.lowest_exponent
    fields = {"significand": form.significand_bits} if form.significand_bits else {}
    fields["exponent"] = exponents.bit_length()
    if form.scale.subnormals:
        fields["zero"] = 1
    return data.StructLayout(fields)


def exponents_layout(config: TensorCoreConfig, side: str) -> data.ArrayLayout:
    """Layout of the exponents of the block scales of one row of a step."""
    return data.ArrayLayout(scale_layout(config.form(side))["exponent"].shape, config.groups)


def late_layout(config: TensorCoreConfig, side: str) -> data.StructLayout:
    """Layout of what is read of a row behind the register ``factors`` with ``config.early_exponents``.

    Its ``slots``; ``nan``, where it may be; and the ``exponents`` of its scales, where there are several.
    """
    fields: dict[str, object] = {"slots": slots_layout(config)}
    if config.form(side).may_be_nan:
        fields["nan"] = 1
    if config.groups > 1:
        fields["exponents"] = exponents_layout(config, side)
    return data.StructLayout(fields)


def decoded_as(config: TensorCoreConfig, side: str) -> str:
    """The side whose decoders operand ``side`` has: ``a`` for both where they are decoded alike."""
    return "a" if lanes(config).symmetric and config.a == config.b else side


def tag_bits(config: TensorCoreConfig, side: str) -> int:
    """Bits that come with a code: the selector, or the bits of its sub-groups; 0 is none."""
    form = config.form(side)
    return 0 if lanes(config).shifts_sums else form.selector_bits or len(form.shifts)


def sum_tag_bits(form: BlockFormat) -> int:
    """Bits that come with the codes of a block sum: the selector, or the bits of its sub-groups; 0 is none."""
    return form.selector_bits or form.shift_bits // form.sums


def sum_tag(form: BlockFormat, above: Value, part: int) -> Value | None:
    """Those bits, of the bits ``above`` the scale of a block; of sub-groups the longest lowest."""
    if not form.shifts:
        return above if form.tagged else None
    found, place = [], 0
    for length in form.shifts:
        count = form.lanes // length
        found.append(above[place + part * count : place + (part + 1) * count])
        place += form.size // length
    return Cat(*found)


def element_tag(form: BlockFormat, tag: Value, index: int) -> Value:
    """Bits that come with element ``index`` of a block sum, of those of the sum; of sub-groups the longest lowest."""
    if not form.shifts:
        return tag
    found, place = [], 0
    for length in form.shifts:
        found.append(tag[place + index // length])
        place += form.lanes // length
    return Cat(*found)


def operand_layout(config: TensorCoreConfig, side: str) -> data.StructLayout:
    """Layout of one decoded row of a step.

    ``lanes[g][i]`` is element i of block g, ``scales[g]`` its scale, ``words[s]`` what else the micro-architecture of
    the dot product wants of block sum s, if anything; ``nan`` is set when any scale or element of the
    row is NaN, where one may be.

    With a slot there is also ``slots[g][j]``, what element j of group g of a step at half the rate has beside its
    significand. That is in ``significands[g][j]``, or in the lanes, where the slot shares them. With scales at half the
    rate there is ``half_scale``, that of the row, as it is stored; 0 in steps of FP4.
    """
    lane = lanes(config).layout(side)
    fields: dict[str, object] = {
        "lanes": data.ArrayLayout(data.ArrayLayout(lane, config.form(side).size), config.groups),
        "scales": data.ArrayLayout(scale_layout(config.form(side)), config.groups),
    }
    if config.form(side).may_be_nan:
        fields["nan"] = 1
    if width := lanes(config).word_width(side):
        fields["words"] = data.ArrayLayout(unsigned(width), config.sums)
    if config.slotted:
        fields["slots"] = slots_layout(config)
        if not lanes(config).shared:
            significands = data.ArrayLayout(unsigned(SIGNIFICAND), config.slots)
            fields["significands"] = data.ArrayLayout(significands, config.groups)
    if config.half_scaled:
        fields["half_scale"] = SCALE.width
    return data.StructLayout(fields)


class OfOneSide(Block):
    """A block that decodes one operand; where A and B are decoded in two ways, that of B has a name of its own."""

    plain_name: str

    def __init__(self, config: TensorCoreConfig, side: str, members: dict[str, Member]) -> None:
        self.side = side
        self.form = config.form(side)
        self.module_name = self.plain_name if side == "a" else f"{self.plain_name}_b"
        super().__init__(config, members)


class ElementDecoder(OfOneSide):
    """Decoder of one element code.

    Parameters
    ----------
    config
        The formats and ``dot`` select inputs and outputs.
    side
        Operand, ``a`` or ``b``; see `decoded_as`.

    Attributes
    ----------
    code : In(code_width)
        Element code.
    tag : In(tag_bits(config, side))
        Element format of the block, E1M2 is 1; or the bits of the element's sub-groups. Only where there is either.
    lane : Out(lanes(config).layout(side))
        Decoded number, see the micro-architecture in `hwgen.rtl.lanes`. Of no meaning where the element is NaN.
    nan : Out(1)
        The element is NaN; only where elements may be.
    latency : int
        0, combinational.
    """

    plain_name = "element_decoder"

    def __init__(self, config: TensorCoreConfig, side: str) -> None:
        form = config.form(side)
        members = {"code": In(form.code_width), "lane": Out(lanes(config).layout(side))}
        if bits := tag_bits(config, side):
            members["tag"] = In(bits)
        if form.nans:
            members["nan"] = Out(1)
        super().__init__(config, side, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tag = self.tag if tag_bits(self.config, self.side) else None
        decoded = lanes(self.config).decode(self.side, self.code, tag)
        element = self.form.elements[0]
        if isinstance(element, FloatFormat):
            m.d.comb += self.nan.eq(float_fields(element, self.code).nan)
        elif nans := self.form.nans:
            inputs = Cat(self.code, self.tag) if self.form.tagged else self.code
            m.d.comb += self.nan.eq(lookup(inputs, [int(code in nans) for code in range(1 << len(inputs))], 1))
        m.d.comb += [self.lane[name].eq(decoded[name]) for name, _ in self.lane.shape()]
        return m


class ScaleDecoder(OfOneSide):
    """Decoder of one block scale: an unsigned minifloat, the selector of the element format above it, or shifts.

    Parameters
    ----------
    config
        Tensor core configuration.
    side
        Operand, ``a`` or ``b``; see `decoded_as`.

    Attributes
    ----------
    code : In(scale.width + selector_bits)
        Scale and selector; the bits of the scale byte that are not read are missing, and so are shifts.
    scale : Out(scale_layout(form))
        Decoded scale. The exponent holds the fold of the element format, which the contract's ``E_g`` counts.
    nan : Out(1)
        The scale is NaN; only where scales may be.
    latency : int
        0, combinational.

    Notes
    -----
    The exponent above its lowest one is max(field, 1) - 1, see `hwgen.formats.ScaleFormat`. For UE4M3 (OCP OFP8,
    section 5.2) it is 0 to 14; the fold of MixFP4 makes it 15 at most. Without subnormals it is the field.
    """

    plain_name = "scale_decoder"

    def __init__(self, config: TensorCoreConfig, side: str) -> None:
        form = config.form(side)
        members = {"code": In(form.scale.width + form.selector_bits), "scale": Out(scale_layout(form))}
        if form.scale.nan is not None:
            members["nan"] = Out(1)
        super().__init__(config, side, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        form, scale = self.form, self.form.scale
        mantissa, exponent = self.code[: scale.mantissa_bits], self.code[scale.mantissa_bits : scale.width]
        number, selector = self.code[: scale.width], self.code[scale.width :]
        normal: Value = exponent.any() if scale.subnormals else Const(1)
        above_lowest: Value = (exponent - normal)[: scale.exponent_bits] if scale.subnormals else exponent
        if max(form.extra_folds) == 1 and scale.subnormals:
            # One more than max(field, 1) - 1 is max(field, 1).
            clamped = Cat(exponent[0] | ~normal, exponent[1:])
            above_lowest = Mux(lookup(selector, form.extra_folds, 1), clamped, above_lowest)
        elif any(form.extra_folds):
            above_lowest = above_lowest + lookup(selector, form.extra_folds, max(form.extra_folds).bit_length())
        if form.significand_bits:
            significand: Value = Cat(mantissa, normal)
            if form.factors:
                significand *= lookup(selector, form.factors, form.factor_bits)
            m.d.comb += self.scale.significand.eq(significand)
        m.d.comb += self.scale.exponent.eq(above_lowest)
        if scale.subnormals:
            m.d.comb += self.scale.zero.eq(~number.any())
        if scale.nan is not None:
            m.d.comb += self.nan.eq(number.all())
        return m


class OperandDecoder(OfOneSide):
    """Decoder of one row of a step, G blocks of codes with their scales.

    Parameters
    ----------
    config
        Tensor core configuration.
    side
        Operand, ``a`` or ``b``; see `decoded_as`.

    Attributes
    ----------
    codes : In(codes_layout(config, side))
        Codes, element i of block g at ``codes[g][i]``.
    scales : In(ArrayLayout(scale_width, G))
        Scale bytes without the bits that are not read; not where blocks have no scale.
    half : In(1)
        The step is at half the rate: ``codes`` has an element in each pair of codes, the first one lower, and scales
        are ignored. Only with a slot.
    element_type : In(3)
        Type of such elements, a code of `hwgen.formats.unscaled.TYPES`; a row of a reserved one is NaN. In other steps
        only its bit `SELECTOR` is read, as the selector of all blocks, where steps choose the elements. Only with a
        slot.
    half_scale : In(8)
        Scale of the row at half the rate, ignored in other steps. Only with such scales.
    operand : Out(operand_layout(config, side))
        Decoded row.
    latency : int
        0, combinational.
    """

    plain_name = "operand_decoder"

    def __init__(self, config: TensorCoreConfig, side: str) -> None:
        members = {"codes": In(codes_layout(config, side)), "operand": Out(operand_layout(config, side))}
        form = config.form(side)
        if form.has_scales:
            members["scales"] = In(data.ArrayLayout(unsigned(form.scale_width), config.groups))
        if config.slotted:
            members |= {"half": In(1), "element_type": In(TYPE_BITS)}
        if config.half_scaled:
            members["half_scale"] = In(SCALE.width)
        super().__init__(config, side, members)

    def _of_fp4(self, value: Value) -> Value:
        """A code or scale of a step of FP4; 0 in others, which keeps still what is made of it."""
        return value & ~self.half.replicate(len(value)) if self.config.slotted else value

    def _at_half_rate(self, m: Module, platform: object) -> tuple[list[list[Value]], list[Value]]:
        """Decode the elements of a step at half the rate: significands by group, and what makes the row NaN."""
        kind, reserved = chosen_kind(self.element_type, self.half)
        kinds, nans = Signal(len(kind), name="kinds"), [reserved]
        significands: list[list[Value]] = []
        m.d.comb += kinds.eq(kind)
        if self.config.half_scaled:
            own = Signal(SCALE.width, name="own_scale")
            m.d.comb += [own.eq(self.half_scale & self.half.replicate(len(own))), self.operand.half_scale.eq(own)]
            nans.append(own.all())
        for group in range(self.config.groups):
            significands.append([])
            code = Value.cast(self.codes[group])
            for index in range(self.config.slots):
                element = add_child(m, platform, f"unscaled{group}_{index}", UnscaledDecoder, self.config)
                m.d.comb += [
                    element.code.eq(code.word_select(index, CONTAINER)),
                    element.kind.eq(kinds),
                    self.operand.slots[group][index].eq(element.slot),
                ]
                significands[-1].append(element.significand)
                nans.append(element.nan)
                if not lanes(self.config).shared:
                    m.d.comb += self.operand.significands[group][index].eq(element.significand)
        return significands, nans

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, form, how = self.config, self.form, lanes(self.config)
        significands, nans = self._at_half_rate(m, platform) if config.slotted else ([], [])
        for group in range(config.groups):
            tags: list[Value | None] = [None] * form.sums
            if form.has_scales:
                code = self._of_fp4(self.scales[group])
                if form.by_step:
                    code = Cat(code, self._of_fp4(self.element_type[SELECTOR]))
                above = code[form.scale.width :]
                tags = [sum_tag(form, above, part) for part in range(form.sums)]
                scale = add_child(m, platform, f"scale{group}", ScaleDecoder, config, self.side)
                m.d.comb += [
                    scale.code.eq(code[: len(scale.code)]),
                    self.operand.scales[group].eq(scale.scale),
                ]
                if form.scale.nan is not None:
                    nans.append(scale.nan)
            decoded = []
            for index in range(form.size):
                element = add_child(m, platform, f"element{group}_{index}", ElementDecoder, config, self.side)
                lane = element.lane
                if how.shared:
                    lane = Signal.like(element.lane, name=f"lane{group}_{index}")
                    both = how.with_significand(self.side, index, element.lane, significands[group][index // 2])
                    m.d.comb += [getattr(lane, name).eq(value) for name, value in both.items()]
                decoded.append(lane)
                if form.nans:
                    nans.append(element.nan)
                m.d.comb += [
                    element.code.eq(self._of_fp4(self.codes[group][index])),
                    self.operand.lanes[group][index].eq(lane),
                ]
                if tag_bits(config, self.side):
                    tag = tags[index // form.lanes]
                    assert tag is not None
                    m.d.comb += element.tag.eq(element_tag(form, tag, index % form.lanes))
            if how.word_width(self.side):
                # Not from the output's own lanes: a wire that hangs on itself is a loop to simulators.
                for part in range(form.sums):
                    own = decoded[part * form.lanes : (part + 1) * form.lanes]
                    m.d.comb += self.operand.words[group * form.sums + part].eq(how.word(m, self.side, own, tags[part]))
        if nans:
            m.d.comb += self.operand.nan.eq(Cat(*nans).any())
        return m
