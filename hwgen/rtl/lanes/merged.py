"""Half-unit integers whose partial products share places."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.config.dots import FIVES, PLACES, TENS, can_collide
from hwgen.rtl.arithmetic.carry_save import Register, add_columns, full_adders, half_adders
from hwgen.rtl.lanes.interface import Lanes, is_negative, magnitude_of, transposed

__all__ = ["Merged"]

# Levels of full adders: from one place of a chain to the next, and until the negative lanes are counted.
_CARRY = 0.5
_COUNTED = 2.0


def _signed_digits(value: int) -> list[tuple[int, int]]:
    """Places and signs of the fewest powers of two that sum to ``value`` (canonical signed digits)."""
    digits = []
    place = 0
    while value:
        if value & 1:
            digit = 2 - (value & 3)
            digits.append((place, digit))
            value -= digit
        value >>= 1
        place += 1
    return digits


class Merged(Lanes):
    """Products of 4-bit magnitudes in which partial products that exclude one another share a place.

    A half-unit magnitude of E2M1 (0 1 2 3 4 6 8 12) has one bit set, or two neighbours: bits 0 and 2 exclude one
    another, and so do 1 and 3. Of the up to four partial products of a column at most two can be set, and those
    that exclude one another are joined by OR instead of by an adder::

        place   6      5            4                 3                         2                  1            0
              a3 b3  a3 b2  a2 b2               a3 b0 | a1 b2             a2 b0 | a0 b2         a1 b0        a0 b0
                     a2 b3  a3 b1 | a1 b3       a2 b1 | a0 b3             a1 b1                 a0 b1

    which is 12 bits; one chain of adders makes them 8. E1M2 adds the magnitudes 5 and 7, where bits 0 and 2 are both
    set. Yet a place of two products overflows only where both operands are 5 or 7: then ``a2 b0`` and ``a0 b2`` are
    one each. One more bit at place 2 makes up for that, and is all that MixFP4 adds to a lane; where one operand only
    has tags not even that. The bit is ``a0 a2 b0 b2``: the decoders need not say which numbers are 5 or 7.

    The product's bits are inverted where it is negative. That leaves ``W - p`` for ``-p``, with W the sum of the
    weights: the negative lanes are counted, and ``-W`` times that number is added once for all lanes.

    Integers of three bits, such as INT4's, have no bit 3: nothing is joined then, and the products are those of a plain
    multiplier.

    RaZeR adds the magnitude 10 to E2M1, with bits 1 and 3: two such numbers make ``a3 b1`` and ``a1 b3`` one each. What
    is missing then is ``a1 a3 b1 b3``, one at place 4. There ``a2 b2`` is zero, since 10 has no bit 2: what is missing
    is joined to it, and no adder is needed. RaZeR's weights have 16, too. Bit 4 is never set beside another one, so its
    products are joined to others as well::

        place   8      7              6                       5                       4
              a4 b4  a4 b3 | a3 b4  a4 b2 | a2 b4 | a3 b3   a4 b1 | a1 b4 | a3 b2   a4 b0 | a0 b4 | a2 b2 | a1 a3 b1 b3

    Fields of a lane: ``magnitude`` and ``sign``.
    """

    # Whether the tree asks when bits are there, see `add_columns`.
    _timed = False

    def _width(self, side: str) -> int:
        return self.config.form(side).largest.bit_length()

    @property
    def _joins(self) -> bool:
        """Whether partial products share places at all."""
        return max(map(self._width, "ab")) > 3

    def _collides(self, group: tuple[tuple[int, int], ...]) -> bool:
        """Whether both partial products of a group that share a place can be one."""
        a, b = self.config.formats
        return self._joins and can_collide(a, b, *group)

    @property
    def _corrected(self) -> bool:
        """Whether a bit at place 2 makes up for products of two fives."""
        return self._collides(FIVES)

    @property
    def _chained_from(self) -> int:
        """The first place with three bits, or that with a half adder before it."""
        return 2 if self._corrected or not self._joins else 1

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        return data.StructLayout({"magnitude": self._width(side), "sign": 1})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        form = self.config.form(side)
        return {"magnitude": magnitude_of(form, code, tag), "sign": is_negative(form, code, tag)}

    def _bits(self, a: Any, b: Any) -> tuple[list[Value], list[Value]]:
        """Magnitudes of all lanes, bit by bit."""
        return transposed(a, "magnitude", self._width("a")), transposed(b, "magnitude", self._width("b"))

    def _collided(self, group: tuple[tuple[int, int], ...], lanes_a: Any, lanes_b: Any) -> Value:
        """For all lanes whether both partial products of a group are one."""
        a, b = self._bits(lanes_a, lanes_b)
        first, second = group[0]
        # The two products ``a[i] & b[i]`` are there, too, but would be a little later.
        return (a[first] & a[second]) & (b[first] & b[second])

    def _columns(self, lanes_a: Any, lanes_b: Any) -> list[list[Value]]:
        """Partial products of all lanes, by place; what makes up for the collision of two tens is among them."""
        a, b = self._bits(lanes_a, lanes_b)
        columns: list[list[Value]] = []
        for groups in PLACES[: len(a) + len(b) - 1]:
            products = [[a[i] & b[j] for i, j in group if i < len(a) and j < len(b)] for group in groups]
            if self._joins:
                columns.append([reduce(or_, group) for group in products if group])
            else:
                columns.append([product for group in products for product in group])
        if self._collides(TENS):
            columns[4][0] |= self._collided(TENS, lanes_a, lanes_b)
        return columns

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        columns = self._chained(m, self._corrected_columns(a, b))
        return self._added(m, [(columns, self._signs(m, a, b))], register)

    def _corrected_columns(self, a: Any, b: Any) -> list[list[Value]]:
        """Partial products of all lanes, by place, with all that makes up for collisions."""
        columns = self._columns(a, b)
        if self._corrected:
            columns[2].insert(0, self._collided(FIVES, a, b))
        return columns

    @property
    def _one_at_the_top(self) -> bool:
        """Whether no product has two ones in the last place."""
        return self.config.a.largest * self.config.b.largest < 1 << sum(map(self._width, "ab")) - 1

    def _chained(self, m: Module, columns: list[list[Value]]) -> list[list[Value]]:
        """Products of all lanes, by place: a chain of full adders leaves one bit each."""
        for place in range(self._chained_from, len(columns) - 1):
            name = f"product{place}"
            match columns[place]:
                case [x, y]:
                    total, carry = half_adders(m, x, y, name=name)
                case [x, y, z]:
                    total, carry = full_adders(m, x, y, z, name=name)
                case _:
                    continue
            columns[place] = [total]
            columns[place + 1].append(carry)
        if self._one_at_the_top:
            columns[-1] = [reduce(or_, columns[-1])]
        return columns

    def _signs(self, m: Module, a: Any, b: Any, name: str = "signs") -> Signal:
        """Signs of the products of lanes."""
        signs = Signal(len(a), name=name)
        m.d.comb += signs.eq(Cat(*(x.sign ^ y.sign for x, y in zip(a, b, strict=True))))
        return signs

    def _added(self, m: Module, parts: list[tuple[list[list[Value]], Signal]], register: Register | None) -> Value:
        """Sum of all products: for lanes that are alike their bits by place, and their signs."""
        heap: dict[int, list[Value]] = {}
        levels: dict[int, list[float]] = {}
        weights = []
        for part, (columns, signs) in enumerate(parts):
            weight = 0
            for place, bits in enumerate(columns):
                for index, bit in enumerate(bits):
                    inverted = Signal(len(signs), name=f"{'word' if part == 0 else f'part{part}_'}{place}_{index}")
                    m.d.comb += inverted.eq(bit ^ signs)
                    heap.setdefault(place, []).extend(inverted)
                    late = [max(place - self._chained_from, 0) * _CARRY] * len(signs)
                    levels.setdefault(place, []).extend(late)
                    weight += 1 << place
            weights.append(weight)

        constant = 0
        for weight, negative in self._counted(m, weights, [signs for _, signs in parts]):
            for place, digit in _signed_digits(-weight):
                for index, bit in enumerate(negative):
                    # -x is ~x - 1.
                    heap.setdefault(place + index, []).append(bit if digit > 0 else ~bit)
                    levels.setdefault(place + index, []).append(_COUNTED + index * _CARRY)
                    constant -= 0 if digit > 0 else 1 << place + index
        total = add_columns(
            m,
            heap,
            width=self.sum_width,
            constant=constant,
            register=register,
            height=self._height,
            levels=levels if self._timed else None,
            name="total",
        )
        return total.as_signed()

    def _counted(self, m: Module, weights: list[int], signs: list[Signal]) -> list[tuple[int, Signal]]:
        """Numbers of negative lanes, and the weight of each.

        All lanes count with the weight of the first kind; those of another kind count once more, with the difference.
        """
        counts = []
        for part, (weight, own) in enumerate(zip(weights, signs, strict=True)):
            if part and weight != weights[0]:
                name = f"negative{part}"
                count = add_columns(m, {0: list(own)}, width=len(own).bit_length(), name=name)
                counts.append((weight - weights[0], count))
        every = [sign for own in signs for sign in own]
        negative = add_columns(m, {0: every}, width=len(every).bit_length(), name="negative")
        return [(weights[0], negative), *counts]
