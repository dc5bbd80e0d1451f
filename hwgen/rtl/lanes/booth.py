"""Long integers multiplied by Booth's digits, all rows of all lanes in one carry-save tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.config import TensorCoreConfig
from hwgen.rtl.arithmetic.carry_save import Register, add_columns, two_rows
from hwgen.rtl.arithmetic.truth_table import lookup
from hwgen.rtl.lanes.interface import Lanes, tabled_integer, transposed

__all__ = ["Booth", "booth_digits"]


def booth_digits(number: int, count: int) -> list[int]:
    """Digits from -2 to 2, the lowest first, with the sum of ``digit * 4 ** place``: radix 4, as Booth has them.

    Parameters
    ----------
    number
        From -2 ** (2 count - 1) to 2 ** (2 count - 1) - 1.
    count
        How many digits.
    """
    doubled = number << 1
    triples = [doubled >> 2 * place & 7 for place in range(count)]
    return [(triple & 1) + (triple >> 1 & 1) - 2 * (triple >> 2) for triple in triples]


class Booth(Lanes):
    """Rows of one operand in two's complement, chosen by digits of the other: none, once or twice, or the negative.

    ::

        digits of one operand ---> [0, value, 2 value] --> [invert if negative] --+
        value of the other one --^                     a row for each digit       +--> [carry-save tree] --> S
        word: sum of all 4^place whose digit is negative -------------------------+

    The digits are those of Booth's recoding in radix 4. Half as many rows are added as with bits: four for integers of
    8 bits. The decoders make them once for a row of the array. They also add up what inversion leaves missing, which
    does not depend on the other operand. The operand is taken by its digits for which the rows have fewer bits: with
    INT8 times INT4 that is INT4.

    No product is added up by itself. On generic7 at 1 ns an element for INT8 takes a fifth less area than by
    `shifted`, which multiplies magnitudes first.

    Fields of a lane: ``one``, ``two`` and ``minus``, a bit for each digit; or ``value``.
    """

    symmetric = False
    # Choosing rows takes time before the tree, too.
    held = 2, 6

    def __init__(self, config: TensorCoreConfig) -> None:
        super().__init__(config)
        rows = {side: self._digits(side) * (self._width(other) + 1) for side, other in ("ab", "ba")}
        self.recoded, self.other = sorted("ab", key=lambda side: rows[side])

    def _width(self, side: str) -> int:
        """Bits of an integer in two's complement."""
        return self.config.form(side).signed_width

    def _digits(self, side: str) -> int:
        return -(-self._width(side) // 2)

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        if side != self.recoded:
            return data.StructLayout({"value": self._width(side)})
        return data.StructLayout(dict.fromkeys(("one", "two", "minus"), self._digits(side)))

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        form = self.config.form(side)
        if side != self.recoded:
            return {"value": tabled_integer(form, code, tag)}
        count = self._digits(side)
        digits = [booth_digits(h, count) for integers in form.integers for h in integers]
        address = code if tag is None else Cat(code, tag)

        def bits(*which: int) -> Value:
            table = [sum((digit in which) << place for place, digit in enumerate(each)) for each in digits]
            return lookup(address, table, count, form.nans)

        return {"one": bits(-1, 1), "two": bits(-2, 2), "minus": bits(-2, -1)}

    def word_width(self, side: str) -> int:
        """See `Lanes`."""
        most = self.config.form(side).lanes * ((4 ** self._digits(side) - 1) // 3)
        return most.bit_length() if side == self.recoded else 0

    def word(self, m: Module, side: str, lanes: Any, tag: Value | None) -> Value:
        """Sum over all lanes of 4^place for each negative digit."""
        columns = {2 * place: list(bits) for place, bits in enumerate(transposed(lanes, "minus", self._digits(side)))}
        return add_columns(m, columns, width=self.word_width(side), name="negative")

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        rows, constant = self._rows(m, a, b, words), -self.words_above
        total = add_columns(
            m,
            rows,
            width=self.sum_width,
            constant=constant,
            register=register,
            height=self._height,
            name="total",
        )
        return total.as_signed()

    def two_words(
        self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None
    ) -> tuple[Value, Value]:
        """See `Lanes`."""
        return two_rows(m, self._rows(m, a, b, words), width=self.words_width, register=register, name="total")

    @property
    def words_above(self) -> int:
        """See `Lanes`; the inverted sign bit of each row weighs as much as the sign bit less 2^top."""
        top = self._width(self.other)
        return sum(self.config.bounds.lanes << 2 * digit + top for digit in range(self._digits(self.recoded)))

    @property
    def words_width(self) -> int:  # type: ignore[override]
        """See `Lanes`."""
        return (self.config.bounds.largest_sum + self.words_above).bit_length()

    def _rows(self, m: Module, a: Any, b: Any, words: Mapping[str, Value]) -> dict[int, list[Value]]:
        """Bits that are added, by their place; together they are above S by `words_above`."""
        recoded, other = (a, b) if self.recoded == "a" else (b, a)
        top, count = self._width(self.other), self._digits(self.recoded)
        value = transposed(other, "value", top)
        one, two, minus = (transposed(recoded, field, count) for field in ("one", "two", "minus"))
        rows: dict[int, list[Value]] = {place: [bit] for place, bit in enumerate(words[self.recoded])}
        for digit in range(count):
            for place in range(top + 1):
                # Twice the value has one bit more than the value, which repeats its sign there.
                chosen = value[min(place, top - 1)] & one[digit]
                if place:
                    chosen |= value[place - 1] & two[digit]
                bits = Signal(len(a), name=f"row{digit}_{place}")
                m.d.comb += bits.eq(chosen ^ (minus[digit] if place < top else ~minus[digit]))
                rows.setdefault(2 * digit + place, []).extend(bits)
        return rows
