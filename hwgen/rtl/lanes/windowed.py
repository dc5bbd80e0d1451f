"""Products that are aligned to the largest of their exponents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.rtl.arithmetic.carry_save import Register, two_words
from hwgen.rtl.arithmetic.shifters import saturated, shift_right
from hwgen.rtl.arithmetic.truth_table import lookup
from hwgen.rtl.arithmetic.window import Window
from hwgen.rtl.lanes.interface import Lanes, is_negative
from hwgen.rtl.lanes.significand import signed_rows, significand_product

__all__ = ["Windowed"]


class Windowed(Lanes):
    """Floating-point products of a wide range: shifted to the right, by how far each is below the largest.

    ::

        a.significand --[x]------------------> (tree) --> [>>] --> [invert if negative] --+
        b.significand --^                                  ^                              |
        a.shift --[+]--> exponent -----------> (tree) --> [-]        [carry-save tree] <--+
        b.shift --^        +--> [max] -------> (tree) -----^           +--> (sums) --> [+] --> S
                                                +--> exponent

    A product of zero has no say in the largest exponent. Its own is set to the lowest one.

    The register ``tree`` stands behind the products and their largest exponent. With the last two words behind it
    alone, as in other lanes, the path before it takes two cycles of 1 ns on generic7. The register ``sums`` holds
    the last two words.

    Where elements may be infinite, two wires tell what the sum is instead: +Inf and -Inf. NaN is both::

        a.infinite --[or]--> product is infinite --[and]--> [or of all lanes] --> positive, negative
        b.infinite --^           its sign, or both signs beside a zero --^

    Fields of a lane: ``sign``, ``significand``, ``shift``, the exponent above the lowest one, ``live``: the element
    is not zero; and ``infinite`` where it may be that.
    """

    holds_sums = True

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        (element,) = self.config.form(side).elements
        fields = {"significand": element.significand_bits, "shift": max(element.shifts).bit_length()}
        infinite = {"infinite": 1} if element.infinities else {}
        return data.StructLayout({**fields, "live": 1, "sign": 1, **infinite})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        form = self.config.form(side)
        (element,) = form.elements
        infinite = [int(code in element.infinities) for code in range(len(element.values))]
        fields: dict[str, ValueLike] = {
            "significand": lookup(code, element.significands, element.significand_bits),
            "shift": lookup(code, element.shifts, max(element.shifts).bit_length()),
            "live": lookup(code, [int(h != 0) | inf for h, inf in zip(element.integers, infinite, strict=True)], 1),
            "sign": is_negative(form, code, tag),
        }
        if element.infinities:
            fields["infinite"] = lookup(code, infinite, 1)
        return fields

    def product(self, m: Module, x: Any, y: Any, lane: str) -> tuple[Signal, Signal]:
        """Product of the significands of two decoded lanes and its exponent above the lowest; both 0 if one is zero."""
        product = significand_product(m, x, y, name=f"product{lane}")
        exponent = Signal(self.config.bounds.product_span.bit_length(), name=f"exponent{lane}")
        m.d.comb += exponent.eq((x.shift + y.shift) & (x.live & y.live).replicate(len(exponent)))
        return product, exponent

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        return self.total_and_more(m, a, b, register, None)[0]

    def total_and_more(
        self, m: Module, a: Any, b: Any, register: Register | None, last: Register | None
    ) -> tuple[Value, dict[str, Value]]:
        """Sum S, in units of the window's last place, and what else `hwgen.rtl.dot.beside` has, by name.

        If there is a ``register``, everything goes through it; if there is a ``last`` one, the last two words do.
        """
        bounds = self.config.bounds
        pairs = [self.product(m, x, y, f"{index}") for index, (x, y) in enumerate(zip(a, b, strict=True))]
        products, exponents = [product for product, _ in pairs], [exponent for _, exponent in pairs]
        more: dict[str, Value] = {"exponent": self._largest(m, exponents)}
        if bounds.may_be_infinite:
            more |= self._infinities(m, a, b)
        of_lanes: list[list[Value]] = [[*products], [*exponents], [x.sign ^ y.sign for x, y in zip(a, b, strict=True)]]
        if register is not None:
            of_lanes, more = _behind(register, of_lanes, more)

        own = Window(len(products[0]), 0)
        into = own.down_to(-bounds.window_shift)
        magnitudes: list[Value] = []
        for index, (product, exponent, _) in enumerate(zip(*of_lanes, strict=True)):
            distance = Signal(len(exponent), name=f"distance{index}")
            m.d.comb += distance.eq(more["exponent"] - exponent)
            count = saturated(m, distance, into, name=f"saturated{index}")
            word = Signal(into.width, name=f"aligned{index}")
            m.d.comb += word.eq(shift_right(m, product, count, own=own, into=into, name=f"aligned{index}"))
            magnitudes.append(word)
        total, more["below"] = self._added(m, magnitudes, of_lanes[-1], last)
        return total, more

    def _added(
        self, m: Module, magnitudes: list[Value], signs: list[Value], last: Register | None
    ) -> tuple[Value, Value]:
        """The signed sum of all lanes, and what is one less."""
        rows, ones, width = signed_rows(m, magnitudes, signs)
        # With -1 among the words, what is one less is their sum, and the sum itself has a carry in.
        rows.append(Const(-1, width))
        while len(ones) > len(rows) - 2:
            rows.append(ones.pop())
        x, y = (word[1:] for word in two_words(m, rows, ones, width=width, name="total"))
        if last is not None:
            held = last({"x": x, "y": y})
            x, y = held["x"], held["y"]
        found = []
        for name, total in (("total", (Cat(1, x) + Cat(1, y))[1:]), ("below", x + y)):
            word = Signal(width, name=name)
            m.d.comb += word.eq(total)
            found.append(Cat(word[:-1], ~word[-1])[: self.sum_width].as_signed())
        return found[0], found[1]

    def _infinities(self, m: Module, a: Any, b: Any) -> dict[str, Value]:
        """Whether some product is positive infinity, and whether some is negative; infinity times zero is both."""
        sides = [side for side in "ab" if self.config.form(side).may_be_infinite]
        positive, negative = (Signal(self.config.bounds.lanes, name=name) for name in ("positives", "negatives"))
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            lane = {"a": x, "b": y}
            infinite = Cat(*(lane[side].infinite for side in sides)).any()
            sign, both = x.sign ^ y.sign, x.live & y.live
            m.d.comb += [
                positive[index].eq(infinite & ~(sign & both)),
                negative[index].eq(infinite & ~(~sign & both)),
            ]
        return {"positive": positive.any(), "negative": negative.any()}

    @staticmethod
    def _largest(m: Module, exponents: list[Signal]) -> Signal:
        """The largest of some numbers, of a binary tree of comparisons."""
        level = 0
        while len(exponents) > 1:
            level += 1
            following = []
            for index, (x, y) in enumerate(zip(exponents[::2], exponents[1::2], strict=False)):
                larger = Signal.like(x, name=f"larger{level}_{index}")
                m.d.comb += larger.eq(Mux(x > y, x, y))
                following.append(larger)
            exponents = following + exponents[len(exponents) & ~1 :]
        return exponents[0]


def _behind(
    register: Register, of_lanes: list[list[Value]], more: dict[str, Value]
) -> tuple[list[list[Value]], dict[str, Value]]:
    """Lists of one value for each lane, and what else there is, behind a register."""
    named = {f"{index}_{lane}": value for index, values in enumerate(of_lanes) for lane, value in enumerate(values)}
    held = register({**named, **more})
    found = [[held[f"{index}_{lane}"] for lane in range(len(values))] for index, values in enumerate(of_lanes)]
    return found, {name: held[name] for name in more}
