"""One operand in two's complement, the other as sparse digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.config.dots import joined_places
from hwgen.rtl.arithmetic.carry_save import Register, add_columns
from hwgen.rtl.lanes.interface import Lanes, is_negative, magnitude_of, signed_integer, transposed

__all__ = ["Signed"]


class Signed(Lanes):
    """Rows of a two's-complement operand, chosen by the bits of the other one's magnitude.

    B comes in two's complement, 5 bits for E2M1, and is inverted where A is negative, before anything is multiplied. An
    E2M1 magnitude of A has at most one of the bits 0 and 2 set and at most one of 1 and 3: a product is two rows::

        b ^ sign of a --> [<< 0 or 2] --> 7 bits --+
                      --> [<< 1 or 3] --> 7 bits --+--> (all lanes) --> [carry-save tree] --> S
        word of A: sum of |a| where a < 0 ---------+

    Inversion leaves ``-b - 1`` for ``-b``: what is missing is the sum of A's negative magnitudes, which does not depend
    on B, so that the decoders of A add it up once per row. Where magnitudes of A have both bits 0 and 2 set, as those
    of E1M2 do, these are rows of their own.

    Five exclusive-OR gates a lane instead of the eight or nine of ``merged``, for two bits more to add: smaller where
    full adders are cheap beside XOR (ASAP7, generic7) and the array is wide enough to share the decoders of A.

    Fields of a lane: ``magnitude`` and ``sign`` for A, ``value`` for B.
    """

    symmetric = False

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        width = self.config.form(side).largest.bit_length()
        return data.StructLayout({"magnitude": width, "sign": 1} if side == "a" else {"value": width + 1})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        if side == "a":
            return {"magnitude": magnitude_of(self.config.a, code, tag), "sign": is_negative(self.config.a, code, tag)}
        return {"value": signed_integer(self.config.b, code, tag)}

    def word_width(self, side: str) -> int:
        """See `Lanes`."""
        form = self.config.form(side)
        return (form.lanes * form.largest).bit_length() if side == "a" else 0

    def word(self, m: Module, side: str, lanes: Any, tag: Value | None) -> Value:
        """Sum of the magnitudes of the negative lanes."""
        signs = Cat(*(lane.sign for lane in lanes))
        width = self.config.form(side).largest.bit_length()
        columns = {place: list(bits & signs) for place, bits in enumerate(transposed(lanes, "magnitude", width))}
        return add_columns(m, columns, width=self.word_width(side), name="negative")

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        signs = Cat(*(lane.sign for lane in a))
        factor = []
        top_a, top_b = (self.config.form(side).largest.bit_length() for side in "ab")
        for place, bits in enumerate(transposed(b, "value", top_b + 1)):
            factor.append(Signal(len(a), name=f"factor{place}"))
            m.d.comb += factor[-1].eq(bits ^ signs)
        select = transposed(a, "magnitude", top_a)
        heap: dict[int, list[Value]] = {place: [bit] for place, bit in enumerate(words["a"])}
        constant = 0
        for row in joined_places(self.config.a):
            top = row[-1] + top_b
            for place in range(row[0], top):
                # Beyond its own top bit a number in two's complement repeats it.
                terms = [factor[min(place - shift, top_b)] & select[shift] for shift in row if place >= shift]
                bits = Signal(len(a), name=f"row{row[0]}_{place}")
                m.d.comb += bits.eq(terms[0] if len(terms) == 1 else terms[0] | terms[1])
                heap.setdefault(place, []).extend(bits)
            chosen = select[row[0]] if len(row) == 1 else select[row[0]] | select[row[1]]
            # The sign bit weighs -2^top; inverted, it weighs as much less 2^top in every lane.
            negative = Signal(len(a), name=f"row{row[0]}_sign")
            m.d.comb += negative.eq(~(factor[top_b] & chosen))
            heap.setdefault(top, []).extend(negative)
            constant -= len(a) << top
        total = add_columns(
            m, heap, width=self.sum_width, constant=constant, register=register, height=self._height, name="total"
        )
        return total.as_signed()
