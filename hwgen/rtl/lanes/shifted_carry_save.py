"""Product of long significands, shifted, and added in a carry-save tree."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Value

from hwgen.rtl.lanes.shifted import Shifted
from hwgen.rtl.lanes.significand import last_words, signed_width

__all__ = ["ShiftedCarrySave"]


class ShiftedCarrySave(Shifted):
    """The lanes of `shifted`, whose products are added in a carry-save tree, with one adder at its end.

    ::

        a.significand --[x]--> [<< sum of shifts] --> [invert if negative] --> [carry-save tree] --+
        b.significand --^              ^                                                           |
        a.shift + b.shift -------------+                        S <-- [last adder] <-- (tree) <----+

    A sum of long products has one chain of carries, not one for each level of a binary tree. For MXFP8 times MXFP4 at
    1 ns on generic7 an element takes 12 % less area, and meets the clock, which `shifted` misses by a fifth. With that
    chain in a module of its own it takes another 13 % less: the tree may have the smallest adders then.

    The register ``tree`` holds four words, or six of 32 products, not two: what is before it decides on the clock.
    """

    # Products are shifted and negated before the tree, too.
    held = 4, 6

    @property
    def last_width(self) -> int:  # type: ignore[override]
        """See `Lanes`."""
        return signed_width(self._width, self.config.bounds.lanes)

    def last_words(self, m: Module, a: Any, b: Any) -> tuple[list[Value], list[Value]]:
        """See `Lanes`."""
        return last_words(m, *self.products(m, a, b), self._height)
