"""What a floating-point code says, from its fields."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Value

from hwgen.formats.floating import FloatFormat

__all__ = ["FloatFields", "float_fields"]


class FloatFields(NamedTuple):
    """A code taken apart; of infinity and NaN ``significand`` and ``shift`` mean nothing."""

    significand: Value
    """With the hidden bit in front, which subnormal numbers and zero do not have."""
    shift: Value
    """Exponent above the lowest one, that of subnormal numbers."""
    live: Value
    """It is not zero; of NaN it means nothing."""
    infinite: Value
    nan: Value


def float_fields(element: FloatFormat, code: Value) -> FloatFields:
    """Take a code of ``element`` apart. The tests compare it with the table of the format for every code."""
    bits = element.values.fraction_bits
    fraction, field = code[:bits], code[bits:-1]
    normal, special = field.any(), field.all()
    return FloatFields(
        significand=Cat(fraction, normal),
        shift=(field - normal)[: len(field)],
        live=code[:-1].any(),
        infinite=special & ~fraction.any(),
        nan=special & fraction.any(),
    )
