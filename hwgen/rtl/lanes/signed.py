"""One operand in two's complement, the other as sparse digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.formats import BLOCK_SIZE
from hwgen.rtl.arithmetic.carry_save import add_columns
from hwgen.rtl.lanes.interface import Lanes, half_units, signed_half_units, transposed

__all__ = ["Signed"]


class Signed(Lanes):
    """Rows of a two's-complement operand, chosen by the bits of the other one's magnitude.

    B comes in two's complement, 5 bits, and is inverted where A is negative, before anything is multiplied. An E2M1
    magnitude of A has at most one of the bits 0 and 2 set and at most one of 1 and 3, so that a product is two rows::

        b ^ sign of a --> [<< 0 or 2] --> 7 bits --+
                      --> [<< 1 or 3] --> 7 bits --+--> (all lanes) --> [carry-save tree] --> S
        word of A: sum of |a| where a < 0 ---------+

    Inversion leaves ``-b - 1`` for ``-b``: what is missing is the sum of A's negative magnitudes, which does not depend
    on B, so that the decoders of A add it up once per row. Where blocks of A may be E1M2, bits 0 and 2 are rows of
    their own.

    Five exclusive-OR gates a lane instead of the eight or nine of ``merged``, for two bits more to add: smaller where
    full adders are cheap beside XOR (ASAP7, generic7) and the array is wide enough to share the decoders of A.

    Fields of a lane: ``magnitude`` in half-units and ``sign`` for A, ``value`` for B.
    """

    symmetric = False

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        return data.StructLayout({"magnitude": 4, "sign": 1} if side == "a" else {"value": 5})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        if side == "a":
            return {"magnitude": half_units(code, tag), "sign": code[3]}
        return {"value": signed_half_units(code, tag)}

    def word_width(self, side: str) -> int:
        """See `Lanes`."""
        return (BLOCK_SIZE * self.config.block_format.largest).bit_length() if side == "a" else 0

    def word(self, m: Module, side: str, lanes: Any, tag: Value | None) -> Value:
        """Sum of the magnitudes of the negative lanes."""
        signs = Cat(*(lane.sign for lane in lanes))
        columns = {place: list(bits & signs) for place, bits in enumerate(transposed(lanes, "magnitude", 4))}
        return add_columns(m, columns, width=self.word_width(side), name="negative")

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value]) -> Value:
        """See `Lanes`."""
        signs = Cat(*(lane.sign for lane in a))
        factor = []
        for place, bits in enumerate(transposed(b, "value", 5)):
            factor.append(Signal(len(a), name=f"factor{place}"))
            m.d.comb += factor[-1].eq(bits ^ signs)
        select = transposed(a, "magnitude", 4)
        rows = [(0, 2), (1, 3)] if not self.config.tagged("a") else [(0,), (2,), (1, 3)]
        heap: dict[int, list[Value]] = {place: [bit] for place, bit in enumerate(words["a"])}
        constant = 0
        for row in rows:
            top = row[-1] + 4
            for place in range(row[0], top):
                # Beyond its own top bit a number in two's complement repeats it.
                terms = [factor[min(place - shift, 4)] & select[shift] for shift in row if place >= shift]
                bits = Signal(len(a), name=f"row{row[0]}_{place}")
                m.d.comb += bits.eq(terms[0] if len(terms) == 1 else terms[0] | terms[1])
                heap.setdefault(place, []).extend(bits)
            chosen = select[row[0]] if len(row) == 1 else select[row[0]] | select[row[1]]
            # The sign bit weighs -2^top; inverted, it weighs as much less 2^top in every lane.
            negative = Signal(len(a), name=f"row{row[0]}_sign")
            m.d.comb += negative.eq(~(factor[4] & chosen))
            heap.setdefault(top, []).extend(negative)
            constant -= len(a) << top
        return add_columns(m, heap, width=self.sum_width, constant=constant, name="total").as_signed()
