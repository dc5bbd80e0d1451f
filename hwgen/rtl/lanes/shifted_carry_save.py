"""Product of long significands, shifted, and added in a carry-save tree."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Value

from hwgen.rtl.arithmetic.carry_save import Register
from hwgen.rtl.lanes.shifted import Shifted
from hwgen.rtl.lanes.significand import add_products

__all__ = ["ShiftedCarrySave"]


class ShiftedCarrySave(Shifted):
    """The lanes of `shifted`, whose products are added in a carry-save tree, with one adder at its end.

    ::

        a.significand --[x]--> [<< sum of shifts] --> [invert if negative] --> [carry-save tree] --> S
        b.significand --^              ^
        a.shift + b.shift -------------+

    A sum of long products has one chain of carries, not one for each level of a binary tree. For MXFP8 times MXFP4 at
    1 ns on generic7 an element takes 12 % less area, and meets the clock, which `shifted` misses by a fifth.
    """

    def _added(
        self, m: Module, magnitudes: Sequence[Value], signs: Sequence[Value], register: Register | None
    ) -> Value:
        return add_products(m, magnitudes, signs, register)
