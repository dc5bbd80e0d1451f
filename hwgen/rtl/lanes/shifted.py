"""Product of long significands, shifted by a binary number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.rtl.arithmetic.carry_save import Register
from hwgen.rtl.arithmetic.shifters import shift_left
from hwgen.rtl.arithmetic.truth_table import lookup
from hwgen.rtl.lanes.binary import add_signed_in_pairs
from hwgen.rtl.lanes.interface import Lanes, is_negative
from hwgen.rtl.lanes.significand import significand_product

__all__ = ["Shifted"]


class Shifted(Lanes):
    """Floating-point multiplication of elements with a long range: significands multiplied, the product shifted.

    ::

        a.significand --[x]--> [<< sum of shifts] --> [invert if negative] --> [32 -> 16 -> ... -> 1 words] --> S
        b.significand --^              ^
        a.shift + b.shift -------------+

    The integers of such elements are long and have few bits that matter: E3M2 has magnitudes of 9 bits and significands
    of 3. INT8 has significands of 7. Of its numbers -128 alone is shifted: 64 by one.

    Fields of a lane: ``sign``, ``significand``, and ``shift`` where there is one: abs(h) = significand << shift.
    """

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        (element,) = self.config.form(side).elements
        longest = element.longest_shift.bit_length()
        shift = {"shift": longest} if longest else {}
        return data.StructLayout({"significand": element.significand_bits, **shift, "sign": 1})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        form = self.config.form(side)
        (element,) = form.elements
        fields: dict[str, ValueLike] = {
            "significand": lookup(code, element.significands, element.significand_bits, form.nans),
            "sign": is_negative(form, code, tag),
        }
        if longest := element.longest_shift.bit_length():
            fields["shift"] = lookup(code, element.shifts, longest, form.nans)
        return fields

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        magnitudes, signs = self.products(m, a, b)
        return add_signed_in_pairs(m, magnitudes, signs, register)

    def products(self, m: Module, a: Any, b: Any) -> tuple[list[Value], list[Value]]:
        """Magnitudes and signs of the products of all lanes."""
        sides = [side for side in "ab" if "shift" in dict(self.layout(side))]
        magnitudes: list[Value] = []
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            value: Value = significand_product(m, x, y, name=f"product{index}")
            if sides:
                value = self._shifted(
                    m, value, [lane.shift for lane, side in ((x, "a"), (y, "b")) if side in sides], index
                )
            magnitudes.append(value[: self._width])
        return magnitudes, [x.sign ^ y.sign for x, y in zip(a, b, strict=True)]

    @property
    def _width(self) -> int:
        """Bits of the magnitude of a product."""
        return (self.config.a.largest * self.config.b.largest).bit_length()

    def _shifted(self, m: Module, value: Value, shifts: list[Value], index: int) -> Value:
        """The product of a lane, shifted."""
        most = sum(self.config.form(side).elements[0].longest_shift for side in "ab")
        count = Signal(most.bit_length(), name=f"shift{index}")
        m.d.comb += count.eq(sum(shifts[1:], start=shifts[0]))
        return shift_left(m, value, count, width=self._width, name=f"shifted{index}")
