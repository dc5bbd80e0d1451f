"""Plain integer multiplication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Value, ValueLike, signed
from amaranth.lib import data

from hwgen.rtl.arithmetic.carry_save import Register
from hwgen.rtl.lanes.interface import Lanes, tabled_integer

__all__ = ["Multiplier"]


class Multiplier(Lanes):
    """Products and sum as ``*`` and ``+``, of integers in two's complement.

    What synthesis makes of the formula when nobody helps it: multipliers and adder tree are its own. The measure that
    the others are held against.

    Field of a lane: ``value``, the integer h.
    """

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        return data.StructLayout({"value": signed(self.config.form(side).signed_width)})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        return {"value": tabled_integer(self.config.form(side), code, tag)}

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        products = [x.value * y.value for x, y in zip(a, b, strict=True)]
        while len(products) > 2:
            odd = products[len(products) & ~1 :]
            products = [x + y for x, y in zip(products[::2], products[1::2], strict=False)] + odd
        if register is not None:
            held = register({f"word{index}": product for index, product in enumerate(products)})
            products = [word.as_signed() for word in held.values()]
        total = products[0] + products[1] if len(products) > 1 else products[0]
        return total[: self.sum_width].as_signed()
