"""Significand product and shift."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.config.dots import SIGNIFICAND_TABLES
from hwgen.formats import E1M2, E2M1
from hwgen.rtl.arithmetic.carry_save import Register, add_words, fewer_words, multiply
from hwgen.rtl.lanes.interface import Lanes, is_negative, magnitude_of

__all__ = ["Significand", "add_products", "last_words", "signed_width", "significand_product"]


def significand_product(m: Module, x: Any, y: Any, *, name: str) -> Signal:
    """Product of the significands of two decoded lanes; the shorter one chooses the rows."""
    wide, narrow = (x, y) if len(x.significand) >= len(y.significand) else (y, x)
    # One bit times any number is no longer than that.
    largest = math.prod((1 << len(word.significand)) - 1 for word in (wide, narrow))
    width = largest.bit_length()
    return multiply(m, wide.significand, narrow.significand, width=width, name=name)


def add_products(m: Module, magnitudes: Sequence[Value], signs: Sequence[Value], register: Register | None) -> Value:
    """Signed sum of the products of all lanes, given as magnitudes and signs.

    A negative product is inverted and its sign added at weight 1, in the free places of the carry-save
    tree. Instead of extending signs, each word carries its inverted sign one bit above the product. That adds
    2^w for each lane; for a power of two of them, to which a constant makes up, it inverts the sum's top bit.
    """
    rows, ones, width = _signed_rows(m, magnitudes, signs)
    total = add_words(m, rows, ones, width=width, register=register, name="total")
    return Cat(total[:-1], ~total[-1]).as_signed()


def last_words(
    m: Module, magnitudes: Sequence[Value], signs: Sequence[Value], count: int
) -> tuple[list[Value], list[Value]]:
    """Words and single bits whose sum is one less than that of `add_products`, its top bit inverted.

    They are for `hwgen.rtl.last_adder`: as `fewer_words` leaves them, so many words.
    """
    rows, ones, width = _signed_rows(m, magnitudes, signs)
    # With -1 among the words, their sum is what is one less, and the sum itself has a carry in.
    rows.append(Const(-1, width))
    while len(ones) > len(rows) - 2:
        rows.append(ones.pop())
    return fewer_words(m, rows, ones, count, width=width, name="total")


def signed_width(magnitude: int, count: int) -> int:
    """Bits of the sum of so many signed numbers, whose magnitudes have so many bits."""
    return magnitude + (count - 1).bit_length() + 1


def _signed_rows(
    m: Module, magnitudes: Sequence[Value], signs: Sequence[Value]
) -> tuple[list[Value], list[Value], int]:
    """Words and single bits that `add_products` adds up, and the width of their sum, whose top bit is inverted."""
    words: list[tuple[Value, Value]] = []
    for index, (magnitude, negative) in enumerate(zip(magnitudes, signs, strict=True)):
        sign = Signal(name=f"sign{index}")
        word = Signal(len(magnitude) + 1, name=f"word{index}")
        m.d.comb += [sign.eq(negative), word.eq(Cat(magnitude ^ sign.replicate(len(magnitude)), ~sign))]
        words.append((word, sign))
    log = (len(magnitudes) - 1).bit_length()
    width = signed_width(len(magnitudes[0]), len(magnitudes))
    rows = [word for word, _ in words]
    if missing := (1 << log) - len(magnitudes):
        rows.append(Const(missing << len(magnitudes[0]), width))
    return rows, [sign for _, sign in words], width


class Significand(Lanes):
    """Floating-point multiplication as textbooks have it: significands multiplied, the product shifted.

    ::

        a.significand --[x]--> [<< a.shift + b.shift] --> [invert if negative] --> [carry-save tree] --> S
        b.significand --^

    In MixFP4 both formats share a significand of three bits: E2M1's upper half is 4, 6, 4 << 1, 6 << 1, E1M2's
    magnitudes are the codes. A fifth to a third larger than ``merged``, on a shorter path.

    =======  ===============================  ======================================
    format   fields of a lane                 magnitude in half-units
    =======  ===============================  ======================================
    nvfp4    sign, significand 2, shift 2     significand << shift (0..2), one-hot
    mixfp4   sign, significand 3, shift 1     significand << shift (0..1)
    others   sign, significand of 3 at most   significand
    =======  ===============================  ======================================
    """

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        form = self.config.form(side)
        if form.elements == (E2M1, E1M2):
            return data.StructLayout({"significand": 3, "shift": 1, "sign": 1})
        if form.elements == (E2M1,):
            return data.StructLayout({"significand": 2, "shift": 2, "sign": 1})
        return data.StructLayout({"significand": form.largest.bit_length(), "sign": 1})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        form = self.config.form(side)
        if form.elements not in SIGNIFICAND_TABLES:
            return {"significand": magnitude_of(form, code, tag), "sign": is_negative(form, code, tag)}
        c0, c1, c2, sign = code
        if tag is None:
            return {"significand": Cat(c0, c2 | c1), "shift": Cat(c2 & ~c1, c2 & c1), "sign": sign}
        upper = c2 & ~tag
        return {"significand": Cat(c0 & ~upper, Mux(upper, c0, c1), c2), "shift": upper & c1, "sign": sign}

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        magnitudes = []
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            value = significand_product(m, x, y, name=f"product{index}")
            magnitudes.append(self._moved(m, value, x, y, index))
        return add_products(m, magnitudes, [x.sign ^ y.sign for x, y in zip(a, b, strict=True)], register)

    def _moved(self, m: Module, value: Signal, x: Any, y: Any, index: int) -> Signal:
        """The product of the significands of lane ``index``, shifted by what both of its numbers say."""
        largest = self.config.a.largest * self.config.b.largest
        for side, lane in (("a", x), ("b", y)):
            if "shift" not in dict(self.layout(side)):
                continue
            shift = lane.shift
            if len(shift) == 2:  # one-hot: by 1, by 2
                moved = Mux(shift[1], value << 2, Mux(shift[0], value << 1, value))
            else:
                moved = Mux(shift, value << 1, value)
            shifted = Signal(min(len(moved), largest.bit_length()), name=f"shifted{index}_{side}")
            m.d.comb += shifted.eq(moved)
            value = shifted
        return value
