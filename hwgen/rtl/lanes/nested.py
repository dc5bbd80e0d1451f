"""Products of sub-groups, added before they are shifted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike, signed
from amaranth.lib import data

from hwgen.rtl.arithmetic.carry_save import Register
from hwgen.rtl.arithmetic.truth_table import lookup
from hwgen.rtl.lanes.binary import add_signed_in_pairs
from hwgen.rtl.lanes.interface import Lanes, is_negative
from hwgen.rtl.lanes.significand import significand_product

__all__ = ["Nested"]


class Nested(Lanes):
    """Sub-groups that have shifts of their own: a sum of products is shifted, not each of them.

    ::

        4 pairs --[x]--> [add] --> [<< bits of A and B] --+
        4 pairs --[x]--> [add] --> [<< bits of A and B] --+--> [add] --> [<< bits of A and B] --> (all of 8) --> S

    All elements of a sub-group count twice as much where its bit is set, in A and in B alike. So the products of a
    sub-group of 4 are added, and their sum is shifted by none, one or two places; two of those sums are added and
    shifted by the bits of the sub-group of 8. HiF4 has 4 such shifts of short sums and 2 of longer ones in 16 lanes.
    Lanes that got shifted elements would multiply magnitudes of 5 bits in the place of 3.

    Fields of a lane: ``significand``, abs(h) before shifts, and ``sign``. The word of a block sum has the bits of its
    sub-groups, those of the longest lowest.
    """

    shifts_sums = True

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        (element,) = self.config.form(side).elements
        return data.StructLayout({"significand": element.largest.bit_length(), "sign": 1})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        form = self.config.form(side)
        (element,) = form.elements
        magnitudes = [abs(h) for h in element.integers]
        return {
            "significand": lookup(code, magnitudes, element.largest.bit_length()),
            "sign": is_negative(form, code, None),
        }

    def word_width(self, side: str) -> int:
        """See `Lanes`."""
        form = self.config.form(side)
        return form.shift_bits // form.sums

    def word(self, m: Module, side: str, lanes: Any, tag: Value | None) -> Value:
        """The bits of the sub-groups."""
        assert tag is not None
        return tag

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        form, place = self.config.a, self.word_width("a")
        products: list[Value] = [
            significand_product(m, x, y, name=f"product{index}") for index, (x, y) in enumerate(zip(a, b, strict=True))
        ]
        signs: list[Value] = [x.sign ^ y.sign for x, y in zip(a, b, strict=True)]
        rows: list[Value] = []
        for length in reversed(form.shifts):
            count = form.lanes // length
            place -= count
            following: list[Value] = []
            for index in range(count):
                if rows:
                    joined = len(rows) // count
                    total = self._added(rows[joined * index : joined * (index + 1)])
                else:
                    part = slice(length * index, length * (index + 1))
                    total = add_signed_in_pairs(m, products[part], signs[part], None, of=f"{length}_{index}")
                bits = [words[side][place + index] for side in "ab"]
                following.append(self._shifted(m, total, bits, f"shifted{length}_{index}"))
            rows = following
        while len(rows) > 2:
            rows = [self._added(rows[index : index + 2]) for index in range(0, len(rows), 2)]
        if register is not None:
            held = register({f"word{index}": row for index, row in enumerate(rows)})
            rows = [word.as_signed() for word in held.values()]
        return self._added(rows)[: self.sum_width].as_signed()

    @staticmethod
    def _added(rows: list[Value]) -> Value:
        total = rows[0]
        for row in rows[1:]:
            total = total + row
        return total

    @staticmethod
    def _shifted(m: Module, total: Value, bits: list[Value], name: str) -> Value:
        """The sum of a sub-group, shifted to the left for each bit that is set."""
        one, two = Signal(name=f"{name}_one"), Signal(name=f"{name}_two")
        shifted = Signal(signed(len(total) + 2), name=name)
        m.d.comb += [one.eq(bits[0] ^ bits[1]), two.eq(bits[0] & bits[1])]
        m.d.comb += shifted.eq(Mux(two, Cat(0, 0, total).as_signed(), Mux(one, Cat(0, total).as_signed(), total)))
        return shifted
