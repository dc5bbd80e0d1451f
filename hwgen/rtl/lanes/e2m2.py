"""The internal format of the MixFP4 paper, taken literally."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data

from hwgen.rtl.arithmetic.carry_save import Register, multiply
from hwgen.rtl.lanes.interface import Lanes
from hwgen.rtl.lanes.significand import add_products

__all__ = ["E2M2"]


class E2M2(Lanes):
    """Products of E2M2 numbers, arXiv 2605.31035: both formats decode to one, E1M2 with its factor of 2.

    The lanes multiply in quarter-units; the sum is then a multiple of ``4 * 2^(tag_a + tag_b)``, which is divided out
    by a shift of the sum. Kept as the reference of the paper: it is larger than ``significand``, which leaves the
    factor of 2 to the block exponent.

    Fields of a lane: ``mantissa``, ``exponent`` and ``sign`` of an E2M2 code,
    (hidden.mantissa) * 2^(max(exponent, 1) - 1). The word of a block is its tag.
    """

    def layout(self, side: str) -> data.StructLayout:
        """See `Lanes`."""
        return data.StructLayout({"mantissa": 2, "exponent": 2, "sign": 1})

    def decode(self, side: str, code: Value, tag: Value | None) -> Mapping[str, ValueLike]:
        """See `Lanes`."""
        c0, c1, c2, sign = code
        # E1M2 code k is the integer k: 0, 1, 2-3 and 4-7 have E2M2 exponents 0 (zero), 1, 2 and 3.
        e1m2 = Mux(c2, Cat(c0, c1, 1, 1), Mux(c1, Cat(0, c0, 0, 1), Cat(0, 0, c0, 0)))
        e2m2 = Mux(tag, e1m2, Cat(0, c0, c1, c2))
        return {"mantissa": e2m2[:2], "exponent": e2m2[2:], "sign": sign}

    def word_width(self, side: str) -> int:
        """See `Lanes`."""
        return 1

    def word(self, m: Module, side: str, lanes: Any, tag: Value | None) -> Value:
        """The tag."""
        assert tag is not None
        return tag

    def total(self, m: Module, a: Any, b: Any, words: Mapping[str, Value], register: Register | None) -> Value:
        """See `Lanes`."""
        magnitudes = []
        for index, pair in enumerate(zip(a, b, strict=True)):
            significands = [Cat(x.mantissa, x.exponent.any()) for x in pair]
            value = multiply(m, *significands, width=6, name=f"product{index}")
            for name, x in zip("ab", pair, strict=True):
                # Exponents 0 and 1 both mean a shift of 0.
                moved = Mux(x.exponent.all(), value << 2, Mux(x.exponent[1] & ~x.exponent[0], value << 1, value))
                shifted = Signal(min(len(moved), (4 * (2 * 7) ** 2).bit_length()), name=f"shifted{index}_{name}")
                m.d.comb += shifted.eq(moved)
                value = shifted
            magnitudes.append(value)
        exact = add_products(m, magnitudes, [x.sign ^ y.sign for x, y in zip(a, b, strict=True)], register)
        folds = {"both": words["a"] & words["b"], "either": words["a"] ^ words["b"]}
        if register is not None:
            folds = register(folds)
        return Mux(folds["both"], exact >> 4, Mux(folds["either"], exact >> 3, exact >> 2))
