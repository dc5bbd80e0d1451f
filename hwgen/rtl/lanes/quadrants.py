"""Textbook lanes that also multiply significands of FP8: four quadrants of two bits by two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike

from hwgen.formats.unscaled import PRODUCT
from hwgen.rtl.arithmetic.carry_save import Register
from hwgen.rtl.lanes.interface import transposed
from hwgen.rtl.lanes.sharing import Sharing
from hwgen.rtl.lanes.significand import Significand, add_products
from hwgen.rtl.significand_products import multiplied, ripple, side_by_side

__all__ = ["Quadrants"]

_HALF = 2
"""Bits of half a significand, which is what a quadrant multiplies."""


class Quadrants(Significand, Sharing):
    """Slots of two lanes of `Significand`: multipliers of 2 x 2 bits, which with two more are one of 4 x 4.

    ::

        low halves of a, b  --> [2 x 2] --+--> [(3 x 3)] --> [FP4?] --> [<< shifts] --> lane 2 j --> [tree] --> S
        low a, high b       --> [2 x 2] --+                                                            ^
        high a, low b       --> [2 x 2] --+--> [+] --> [half?] --> product of slot j                   |
        high halves of a, b --> [2 x 2] --+--> [(3 x 3)] --> [FP4?] --> [<< shifts] --> lane 2 j + 1 --+

    Halves of a significand go to the lanes of a slot, the low one to the even lane. In steps of FP4 the crossed
    multipliers get zeros. Significands of three bits, which E1M2 and INT4 have, take up to five partial products more
    in each lane. Those are zero by themselves at half the rate, as all third bits are.
    """

    def with_significand(self, side: str, index: int, lane: Any, significand: Value) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        fields = {name: getattr(lane, name) for name, _ in lane.shape()}
        own = significand.word_select(index % 2, _HALF)
        return fields | {"significand": lane.significand | own}

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Sharing`."""
        return Sharing.total(self, m, a, b, words, register)

    def total_and_products(
        self, m: Module, a: Any, b: Any, words: Mapping[str, Value], half: Value, register: Register | None
    ) -> tuple[Value, Value]:
        """See `Sharing`."""
        count = len(a) // 2
        bits = {}
        for side, block in (("a", a), ("b", b)):
            width = self.layout(side)["significand"].width
            for parity in (0, 1):
                lanes = [block[index] for index in range(parity, len(block), 2)]
                bits[side, parity] = transposed(lanes, "significand", width)
        quadrants = {
            (x, y): multiplied(
                m,
                [bit if x == y else bit & half.replicate(count) for bit in bits["a", x][:_HALF]],
                bits["b", y][:_HALF],
                name=f"quadrant{x}{y}_",
            )
            for x in (0, 1)
            for y in (0, 1)
        }
        columns: list[list[Value]] = [[] for _ in range(PRODUCT)]
        for (x, y), product in quadrants.items():
            for place, bit in enumerate(product):
                columns[_HALF * (x + y) + place].append(bit)
        products = side_by_side(ripple(m, columns, name="slot")) & half.replicate(PRODUCT * count)

        magnitudes: list[Signal] = []
        of_lanes = [
            self._extended(m, quadrants[parity, parity], bits["a", parity], bits["b", parity], name=f"lane{parity}_")
            for parity in (0, 1)
        ]
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            value = Signal(len(of_lanes[index % 2]), name=f"product{index}")
            m.d.comb += value.eq(Cat(*(bit[index // 2] for bit in of_lanes[index % 2])) & ~half.replicate(len(value)))
            magnitudes.append(self._moved(m, value, x, y, index))
        signs = [x.sign ^ y.sign for x, y in zip(a, b, strict=True)]
        return add_products(m, magnitudes, signs, register), products

    def _extended(self, m: Module, quadrant: list[Value], a: list[Value], b: list[Value], *, name: str) -> list[Value]:
        """Products of significands of FP4, bit by bit: those of the quadrant, and what third bits add."""
        columns = [*([bit] for bit in quadrant), *([] for _ in range(len(a) + len(b) - len(quadrant)))]
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                if max(i, j) >= _HALF:
                    columns[i + j].append(x & y)
        return ripple(m, columns, name=name)
