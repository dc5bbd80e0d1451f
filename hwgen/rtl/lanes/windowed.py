"""Products that are aligned to the largest of their exponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.formats.floating import FloatFormat
from hwgen.rtl.arithmetic.float_fields import float_fields
from hwgen.rtl.arithmetic.shifters import shift_right
from hwgen.rtl.arithmetic.truth_table import lookup
from hwgen.rtl.arithmetic.window import Window
from hwgen.rtl.lanes.interface import Lanes, is_negative
from hwgen.rtl.lanes.significand import last_words, signed_width, significand_product

__all__ = ["Windowed"]


class Windowed(Lanes):
    """Floating-point products of a wide range: shifted to the right, by how far each is below the largest.

    ::

        a.significand --[x]--> product -----------------> (tree) --> [>>] --> [invert if negative] --+
        b.significand --^                                             ^                              |
        a.shift --[+]--> exponent --[largest exponent]--> (tree) -----+        [carry-save tree] <---+
        b.shift --^                     +---------------> (tree) --> exponent         +--> (sums) --> [last adder] --> S

    A product of zero has no say in the largest exponent. Its own is set to the lowest one.

    The register ``tree`` stands behind the products and the places by which each is to be shifted. With the last two
    words behind it alone, as in other lanes, the path before it takes two cycles of 1 ns on generic7. The register
    ``sums`` holds the last two words. `hwgen.rtl.largest_exponent` finds the places, and `hwgen.rtl.last_adder` is
    behind ``sums``; `hwgen.rtl.dot` puts the parts together.

    Where elements may be infinite, two wires tell what the sum is instead: +Inf and -Inf. NaN is both::

        a.infinite --[or]--> product is infinite --[and]--> [or of all lanes] --> positive, negative
        b.infinite --^           its sign, or both signs beside a zero --^

    Fields of a lane: ``sign``, ``significand``, ``shift``, the exponent above the lowest one, where there are several;
    ``live``: the element is not zero; and ``infinite`` where it may be that.
    """

    holds_sums = True

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        (element,) = self.config.form(side).elements
        fields = {"significand": element.significand_bits}
        if element.longest_shift:
            fields["shift"] = element.longest_shift.bit_length()
        infinite = {"infinite": 1} if element.infinities else {}
        return data.StructLayout({**fields, "live": 1, "sign": 1, **infinite})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        form = self.config.form(side)
        (element,) = form.elements
        if isinstance(element, FloatFormat):
            found = float_fields(element, code)
            return {
                **{name: getattr(found, name) for name in ("significand", "shift", "live", "infinite")},
                "sign": code[-1],
            }
        infinite = [int(code in element.infinities) for code in range(len(element.values))]
        live = [int(h != 0) | inf for h, inf in zip(element.integers, infinite, strict=True)]
        fields: dict[str, ValueLike] = {
            "significand": lookup(code, element.significands, element.significand_bits, form.nans),
            "live": lookup(code, live, 1, form.nans),
            "sign": is_negative(form, code, tag),
        }
        if longest := element.longest_shift.bit_length():
            fields["shift"] = lookup(code, element.shifts, longest, form.nans)
        if element.infinities:
            fields["infinite"] = lookup(code, infinite, 1, form.nans)
        return fields

    def product(self, m: Module, x: Any, y: Any, lane: str) -> tuple[Signal, Signal]:
        """Product of the significands of two decoded lanes and its exponent above the lowest; both 0 if one is zero."""
        product = significand_product(m, x, y, name=f"product{lane}")
        exponent = Signal(self.config.bounds.product_span.bit_length(), name=f"exponent{lane}")
        shifts: list[Value] = [word.shift for word in (x, y) if "shift" in dict(word.shape())]
        shift = reduce(add, shifts) if shifts else Const(0, 0)
        m.d.comb += exponent.eq(shift & (x.live & y.live).replicate(len(exponent)))
        return product, exponent

    @property
    def window(self) -> Window:
        """Where a product lies before it is shifted: at the top."""
        bounds = self.config.bounds
        return Window(bounds.largest_product.bit_length(), 0).down_to(-bounds.window_shift)

    @property
    def last_width(self) -> int:  # type: ignore[override]
        """See `Lanes`."""
        return signed_width(self.window.width, self.config.bounds.lanes)

    def aligned(
        self, m: Module, products: Sequence[Value], counts: Sequence[Value], signs: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """The last two words, in units of the window's last place; no single bit is left.

        Of the products of all lanes, the places by which each is shifted to the right, and signs.
        """
        magnitudes: list[Value] = []
        for index, (product, count) in enumerate(zip(products, counts, strict=True)):
            own = Window(len(product), 0)
            word = Signal(self.window.width, name=f"aligned{index}")
            m.d.comb += word.eq(shift_right(m, product, count, own=own, into=self.window, name=f"aligned{index}"))
            magnitudes.append(word)
        return last_words(m, magnitudes, signs, 2)

    def infinities(self, m: Module, a: Any, b: Any) -> dict[str, Value]:
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
