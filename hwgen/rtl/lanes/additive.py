"""Codes of floating-point numbers that are added in the place of products: L-Mul."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.rtl.arithmetic.truth_table import lookup
from hwgen.rtl.lanes.interface import is_negative
from hwgen.rtl.lanes.windowed import Windowed

__all__ = ["Additive"]


class Additive(Windowed):
    """L-Mul (arXiv 2410.00907): the product of two numbers is the sum of their codes, and 1.

    ::

        a.fields --[+ 1]--> exponent ---------------------> as in `Windowed`
        b.fields --^   +--> 1.mantissa
        a.live --[and]--> both are 0 where a number is
        b.live --^

    A sum of codes is again an exponent, of one bit more, and a mantissa of as many bits. The exponent has the carry of
    the mantissas in it. From there on lanes are those of `Windowed`.

    Fields of a lane: ``sign``, ``fields``, the code without its sign, and ``live``: the element is not zero.
    """

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        return data.StructLayout({"fields": self.config.form(side).code_width - 1, "live": 1, "sign": 1})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        form = self.config.form(side)
        (element,) = form.elements
        live = lookup(code, [int(h != 0) for h in element.integers], 1, form.nans)
        return {"fields": code[:-1], "live": live, "sign": is_negative(form, code, tag)}

    def product(self, m: Module, x: Any, y: Any, lane: str) -> tuple[Signal, Signal]:
        """See `Windowed`."""
        bounds, bits = self.config.bounds, self.config.bounds.product_fraction
        exponent = Signal(bounds.product_span.bit_length(), name=f"exponent{lane}")
        fields = Signal(bits + len(exponent), name=f"fields{lane}")
        product = Signal(bits + 1, name=f"product{lane}")
        live = x.live & y.live
        m.d.comb += [
            # With a one behind both, the second carries into the last place: one adder, whose carry in is 1.
            fields.eq((Cat(1, x.fields) + Cat(1, y.fields))[1:]),
            product.eq(Cat(fields[:bits], Const(1, 1)) & live.replicate(bits + 1)),
            exponent.eq(fields[bits:] & live.replicate(len(exponent))),
        ]
        return product, exponent
