"""FP4 lanes that also multiply significands of FP8: two lanes are a slot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Value, ValueLike
from amaranth.lib import data

from hwgen.formats.unscaled import PRODUCT, SIGNIFICAND
from hwgen.rtl.arithmetic.carry_save import Register
from hwgen.rtl.lanes.interface import Lanes, transposed
from hwgen.rtl.lanes.merged import Merged
from hwgen.rtl.lanes.merged_timed import MergedTimed
from hwgen.rtl.significand_products import multiplied, ripple, side_by_side

__all__ = ["MergedFull", "MergedSplit", "MergedTimedFull", "MergedTimedSplit", "Sharing"]


_LOW_PRODUCT = (15 * 3).bit_length()
"""Bits of a significand times the two low bits of another one."""


class Sharing(Lanes, ABC):
    """Lanes that hand over products of significands, too, in steps at half the rate.

    The decoders put significands into the lanes. What goes to the tree of FP4 is 0 in such steps, and the products are
    0 in others.
    """

    shared = True

    @abstractmethod
    def total_and_products(
        self, m: Module, a: Any, b: Any, words: Mapping[str, Value], half: Value, register: Register | None
    ) -> tuple[Value, Value]:
        """As `total`; and the products of significands, one after the other, which are before any register."""

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `total_and_products`, which has the products, too."""
        raise NotImplementedError


def _gated(columns: list[list[Value]], enable: Value) -> list[list[Value]]:
    """Bits by place, 0 without ``enable``."""
    return [[bit & enable.replicate(len(bit)) for bit in bits] for bits in columns]


class _MergedSharing(Merged, Sharing):
    """What both ways to share the lanes of `Merged` have in common: magnitudes have the bits of a significand."""

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        return data.StructLayout({"magnitude": SIGNIFICAND, "sign": 1})

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Sharing`."""
        return Sharing.total(self, m, a, b, words, register)


class MergedFull(_MergedSharing):
    """Slots of an even and an odd lane of `Merged`: the even one has all sixteen partial products.

    ::

        a, b of lane 2 j     --> [4 x 4] ----+--> [half?] --> product of slot j
                                             +--> [FP4?] --> [^ sign] --+--> [tree] --> S
        a, b of lane 2 j + 1 --> [merged] ------------------> [^ sign] --+

    Significands go to the even lanes, and the odd ones get zeros in steps at half the rate. A product of E1M2 needs no
    correction in an even lane: that of `Merged` is in the odd ones alone.
    """

    def with_significand(self, side: str, index: int, lane: Any, significand: Value) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        return {"magnitude": lane.magnitude if index % 2 else lane.magnitude | significand, "sign": lane.sign}

    def total_and_products(
        self, m: Module, a: Any, b: Any, words: Mapping[str, Value], half: Value, register: Register | None
    ) -> tuple[Value, Value]:
        """See `Sharing`."""
        even, odd = ([[side[index] for index in range(first, len(a), 2)] for side in (a, b)] for first in (0, 1))
        bits = [transposed(side, "magnitude", SIGNIFICAND) for side in even]
        product = multiplied(m, *bits, name="full")
        full = _gated([[bit] for bit in product[: self._full_bits]], ~half)
        columns = self._chained(m, self._corrected_columns(*odd))
        signs = self._signs(m, even[0], even[1], "even_signs"), self._signs(m, odd[0], odd[1], "odd_signs")
        total = self._added(m, [(full, signs[0]), (columns, signs[1])], register)
        return total, side_by_side(product) & half.replicate(len(product) * len(even[0]))

    @property
    def _full_bits(self) -> int:
        """Bits of a product of FP4."""
        return (self.config.a.largest * self.config.b.largest).bit_length()


class MergedSplit(_MergedSharing):
    """Slots of two lanes of `Merged` as they are: one multiplies by the two low bits of B, the other by the high ones.

    ::

        a, b & 0011 --> [merged] --+--> [FP4?] --> [^ sign] --+--> [tree] --> S
        a, b & 1100 --> [merged] --+--> [FP4?] --> [^ sign] --+
                                   +--> [half?] --> [+] --> product of the slot

    Of two bits that are neighbours, or are two places apart, B has one at most in either lane that meets a joined
    partial product. So no place overflows, and the sum of both products is a times b. The decoders have done all that.
    Nothing in a lane knows of it, and the correction of E1M2 is 0 by itself: it takes bits 0 and 2 of B.
    """

    symmetric = False
    _kept = (0b0011, 0b1100)

    def _width(self, side: str) -> int:
        return SIGNIFICAND

    @property
    def _one_at_the_top(self) -> bool:
        return False  # 15 times 12 has two

    def with_significand(self, side: str, index: int, lane: Any, significand: Value) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        own = significand if side == "a" else significand & self._kept[index % 2]
        return {"magnitude": lane.magnitude | own, "sign": lane.sign}

    def total_and_products(
        self, m: Module, a: Any, b: Any, words: Mapping[str, Value], half: Value, register: Register | None
    ) -> tuple[Value, Value]:
        """See `Sharing`."""
        columns = self._chained(m, self._corrected_columns(a, b))
        signs = self._signs(m, a, b, name="signs")
        total = self._added(m, [(_gated(columns, ~half), signs)], register)
        return total, side_by_side(ripple(m, self._products(_gated(columns, half)), name="slot"))

    def _products(self, columns: list[list[Value]]) -> list[list[Value]]:
        """Bits of both lanes of all slots, by place; those that are zero are left out."""
        columns = [*columns, *([] for _ in range(PRODUCT - len(columns)))]
        found = []
        for place, bits in enumerate(columns):
            low = [bit[::2] for bit in bits] if place < _LOW_PRODUCT else []
            high = [bit[1::2] for bit in bits] if place >= SIGNIFICAND // 2 else []
            found.append(low + high)
        return found


class MergedTimedFull(MergedFull, MergedTimed):
    """`MergedFull` on the lanes of `MergedTimed`."""


class MergedTimedSplit(MergedSplit, MergedTimed):
    """`MergedSplit` on the lanes of `MergedTimed`."""
