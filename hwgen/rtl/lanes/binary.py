"""Significand product and shift, added in a binary tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hwgen.rtl.arithmetic.binary_tree import add_in_pairs
from hwgen.rtl.arithmetic.carry_save import Register
from hwgen.rtl.lanes.significand import Significand, significand_product

__all__ = ["Binary", "add_signed_in_pairs"]


def add_signed_in_pairs(
    m: Module, magnitudes: Sequence[Value], signs: Sequence[Value], register: Register | None, of: str = ""
) -> Value:
    """Signed sum of the products of all lanes, given as magnitudes of one width and signs, in a binary tree.

    Negative products are inverted, and inverted signs stand above them, as in `significand.add_products`. The carry of
    a negation is the carry in of an adder. There is one adder less than words: without a constant among these, the
    last product is negated by itself. ``of`` ends the names on the way, where a module adds several times.
    """
    lanes, width = len(magnitudes), len(magnitudes[0])
    negative = Signal(lanes, name=f"negative{of}")
    m.d.comb += negative.eq(Cat(*signs))
    words: list[Value] = [
        Cat(magnitude ^ sign.replicate(width), ~sign) for magnitude, sign in zip(magnitudes, negative, strict=True)
    ]
    log = (lanes - 1).bit_length()
    ones = list(negative)
    if missing := (1 << log) - lanes:
        words.append(Const(missing << width))
    else:
        ones.pop()
        last = Signal(width + 1, name=f"last{of}")
        m.d.comb += last.eq(Mux(negative[-1], -magnitudes[-1], magnitudes[-1]))
        words[-1] = Cat(last[:-1], ~last[-1])
    total = add_in_pairs(m, words, ones, register=register, name=f"total{of}")
    return Cat(total[: width + log], ~total[width + log]).as_signed()


class Binary(Significand):
    """The plain lane: significands multiplied, the product shifted, negated, and added in a binary tree.

    ::

        a.significand --[x]--> [<< a.shift + b.shift] --> [invert if negative] --> [16 -> 8 -> 4 -> 2 -> 1 words] --> S
        b.significand --^

    Fields of a lane are those of `Significand`. Two shifts by one place are added before the product is shifted.
    Otherwise it is shifted by one after the other, since those of NVFP4 are one-hot.

    A binary tree of adders has about as many cells as a carry-save tree, and is a fifth shorter.
    """

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        width = (self.config.a.largest * self.config.b.largest).bit_length()
        magnitudes: list[Value] = []
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            value: Value = significand_product(m, x, y, name=f"product{index}")
            shifts = [lane.shift for side, lane in (("a", x), ("b", y)) if "shift" in dict(self.layout(side))]
            if [len(shift) for shift in shifts] == [1, 1]:
                shifts = [Cat(shifts[0] ^ shifts[1], shifts[0] & shifts[1])]
            for number, shift in enumerate(shifts):
                by_two = Mux(shift[1], value << 2, value) if len(shift) == 2 else value
                shifted = Signal(min(len(value) + len(shift), width), name=f"shifted{index}_{number}")
                m.d.comb += shifted.eq(Mux(shift[0], value << 1, by_two))
                value = shifted
            magnitudes.append(value)
        return add_signed_in_pairs(m, magnitudes, [x.sign ^ y.sign for x, y in zip(a, b, strict=True)], register)
