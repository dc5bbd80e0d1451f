"""Half-unit integers whose partial products share places, added in a binary tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Value

from hwgen.config.dots import FIVES
from hwgen.rtl.arithmetic.carry_save import Register, full_adders, half_adders
from hwgen.rtl.lanes.binary import add_signed_in_pairs
from hwgen.rtl.lanes.merged import Merged

__all__ = ["MergedBinary"]


class MergedBinary(Merged):
    """The products of `Merged`, made whole and added in a binary tree.

    ::

        lanes --> [partial products] --> [chain of adders] --> [invert if negative] --> [16 -> 8 -> 4 -> 2 -> 1] --> S

    A binary tree takes words, so that no place may be left with two bits: the chain of adders begins a place earlier
    than that of `Merged`. Low bits of a product are there first, where the adders of the tree begin.

    Where two numbers are 5 or 7, what is missing in `Merged` takes no place of its own. Place 2 has ``a2 b0 | a0 b2``
    = 1, ``a1 b1`` and a carry that equals it, and one more is to be added::

        a1 b1 = 0 (5 x 5, 5 x 7)   1 + 0 + 0 + 1 = 2: as if a1 b1 were set
        a1 b1 = 1 (7 x 7)          1 + 1 + 1 + 1 = 4: as if the carry were not, and one more at place 3

    In 7 x 7 all of place 3 is set, too: its sum bit is cleared, and one more goes to place 4, where ``a3 b1 | a1 b3``
    is zero. These are six gates a lane.

    Fields of a lane are those of `Merged`.
    """

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        columns = self._columns(a, b)
        products: list[Value] = []
        carry: list[Value] = []
        fives = sevens = None
        if self._corrected:
            fives = self._collided(FIVES, a, b)
            sevens = fives & columns[2][-1]
        for place, bits in enumerate(columns):
            if fives is not None and sevens is not None:
                if place == 2:
                    bits, carry = [bits[0], bits[1] | fives], [carry[0] & ~fives]
                elif place == 4:
                    bits = [bits[0], bits[-1] | sevens]
            match [*bits, *carry]:
                case [x]:
                    total, carry = x, []
                case [x, y]:
                    total, upper = half_adders(m, x, y, name=f"product{place}")
                    carry = [upper]
                case [x, y, z]:
                    total, upper = full_adders(m, x, y, z, name=f"product{place}")
                    carry = [upper]
            products.append(total & ~sevens if sevens is not None and place == 3 else total)
        products += carry
        products = products[: (self.config.a.largest * self.config.b.largest).bit_length()]
        magnitudes: list[Value] = [Cat(*(bits[lane] for bits in products)) for lane in range(len(a))]
        return add_signed_in_pairs(m, magnitudes, [x.sign ^ y.sign for x, y in zip(a, b, strict=True)], register)
