"""Decoder of an element without a block scale: FP8, FP6 and E2M1 in a container of eight bits."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats import ElementFormat
from hwgen.formats.unscaled import CONTAINER, HIGHEST_PRODUCT, LOWEST, SIGNIFICAND, TYPES
from hwgen.rtl.hierarchy import Block

__all__ = ["KINDS", "SLOT", "UnscaledDecoder", "chosen_kind", "slots_layout"]

KINDS = tuple(TYPES.values())
"""Types in the order of their wires."""

# The exponent of an element that is infinite or NaN is one more than those of numbers.
_EXPONENT_BITS = (HIGHEST_PRODUCT // 2 + 1 - LOWEST).bit_length()

SLOT = data.StructLayout({"exponent": _EXPONENT_BITS, "sign": 1, "zero": 1, "infinite": 1})
"""What a slot takes of an element beside its significand; the exponent has an offset with which the lowest is 0."""


def slots_layout(config: TensorCoreConfig) -> data.ArrayLayout:
    """Layout of what slots take of a row of a step beside significands: ``slots[g][j]``."""
    return data.ArrayLayout(data.ArrayLayout(SLOT, config.slots), config.groups)


def chosen_kind(element_type: Value, enable: Value) -> tuple[Value, Value]:
    """One wire for each of `KINDS`, all 0 without ``enable``; and whether the type is a reserved code."""
    kinds = []
    for code in TYPES:
        matches = (bit if code >> place & 1 else ~bit for place, bit in enumerate(element_type))
        kinds.append(Cat(enable, *matches).all())
    return Cat(*kinds), enable & ~Cat(*kinds).any()


def _fields(element: ElementFormat, code: Value) -> tuple[Value, Value, Value]:
    """Sign, exponent field and mantissa of a code."""
    mantissa = element.mantissa_bits
    return code[element.width - 1], code[mantissa : element.width - 1], code[:mantissa]


class UnscaledDecoder(Block):
    """Decoder of one element of a step at half the rate.

    All types become one: E5M3 with the exponents of E5M2. Shorter significands are shifted to the left, and the lowest
    exponent of a type is that of its subnormal numbers. So value = significand * 2^(exponent + lowest - 3).

    Parameters
    ----------
    config
        Not read; decoders of all cores with a slot are alike.

    Attributes
    ----------
    code : In(8)
        Element; bits above those of its type are ignored.
    kind : In(5)
        Its type, one wire for each of `KINDS`. All are 0 in steps of FP4: the number is then +0 and changes no more.
    significand : Out(4)
        In eighths. Of no meaning where the element is no number.
    slot : Out(SLOT)
        Exponent, sign, and whether it is zero or infinite. Of no meaning where the element is NaN.
    nan : Out(1)
        It is NaN.
    latency : int
        0, combinational.

    Notes
    -----
    OCP OFP8 v1.0, section 5 (E4M3 and E5M2), and OCP MX v1.0, section 5.3 (the shorter ones).
    """

    module_name = "unscaled_decoder"

    def __init__(self, config: TensorCoreConfig) -> None:
        members = {"code": In(CONTAINER), "kind": In(len(KINDS)), "significand": Out(SIGNIFICAND), "slot": Out(SLOT)}
        super().__init__(config, members | {"nan": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wires = dict(zip((element.name for element in KINDS), self.kind, strict=True))

        def chosen(values: dict[str, Value]) -> Value:
            return reduce(or_, (value & wires[name].replicate(len(value)) for name, value in values.items()))

        fields = {element.name: _fields(element, self.code) for element in KINDS}
        sign = chosen({name: field[0] for name, field in fields.items()})
        exponent = chosen({name: field[1] for name, field in fields.items()})
        mantissa = chosen(
            {name: Cat(Const(0, SIGNIFICAND - 1 - len(field[2])), field[2]) for name, field in fields.items()}
        )
        normal = exponent.any()
        # max(field, 1) - 1 above the lowest exponent of the type, of which the 1 is in the constant.
        above = {element.name: element.lowest_exponent - LOWEST - 1 for element in KINDS}
        offset = chosen({name: Const(value % (1 << _EXPONENT_BITS), _EXPONENT_BITS) for name, value in above.items()})
        clamped = Cat(exponent[0] | ~normal, exponent[1:])
        full = fields["E5M2"][1].all() & wires["E5M2"]
        m.d.comb += [
            self.significand.eq(Cat(mantissa, normal)),
            self.slot.sign.eq(sign),
            self.slot.exponent.eq(clamped + offset),
            self.slot.zero.eq(~(normal | mantissa.any())),
            self.slot.infinite.eq(full),  # or NaN, which counts more
            self.nan.eq((full & mantissa.any()) | (self.code[:-1].all() & wires["E4M3"])),
        ]
        return m
