"""Dot product of one block: 16 lanes, exact, in half-units."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats import BLOCK_SIZE
from hwgen.rtl.carry_save import add_words, multiply
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.operand import lane_layout

__all__ = ["DotProduct", "sum_shape"]


def sum_shape(config: TensorCoreConfig) -> int:
    """Width of the signed block sum S: sign and 16 times the square of the largest half-unit magnitude."""
    return (BLOCK_SIZE * config.block_format.largest**2).bit_length() + 1


class DotProduct(Block):
    """Sum of 16 products of decoded numbers.

    ::

        a.lanes[i] --significand--> [x] --> [<< a.shift + b.shift] --> [invert if negative] --+
        b.lanes[i] --significand-->                                                            |
                                                            16 words, 16 carries --> [carry-save tree] --> sum

    A negative product is inverted and its sign added at weight 1, in the free places of the
    carry-save tree. Instead of extending signs, each word carries its inverted sign one bit above
    the product, and the constant -16 * 2^w this amounts to is an inversion of the sum's top bit.

    With ``operand = "e2m2"`` the lanes multiply the paper's E2M2 numbers in quarter-units; the sum is then a
    multiple of 4 * 2^(tag_a + tag_b), which is divided out by a wire shift of the two tags.

    Parameters
    ----------
    config
        ``format`` and ``operand`` select the lanes.

    Attributes
    ----------
    a, b : In(ArrayLayout(lane_layout(config), 16))
        Decoded lanes.
    a_tag, b_tag : In(1)
        Element formats of the blocks, ``e2m2`` only.
    sum : Out(signed)
        S of the contract: sum of hA * hB in half-units, fold not applied, 13 bits.
    latency : int
        0, combinational.
    """

    module_name = "dot_product"

    def __init__(self, config: TensorCoreConfig) -> None:
        lanes = data.ArrayLayout(lane_layout(config), BLOCK_SIZE)
        members = {"a": In(lanes), "b": In(lanes), "sum": Out(signed(sum_shape(config)))}
        if config.operand == "e2m2":
            members |= {"a_tag": In(1), "b_tag": In(1)}
        super().__init__(config, members)

    def _magnitude(self, m: Module, index: int) -> Signal:
        """Magnitude of product ``index``, in half-units squared (``e2m2``: quarter-units squared)."""
        a, b = self.a[index], self.b[index]
        if self.config.operand == "e2m2":
            significands = [Cat(x.mantissa, x.exponent.any()) for x in (a, b)]
            # Exponents 0 and 1 both mean a shift of 0.
            shifts = [Cat(x.exponent[1] & ~x.exponent[0], x.exponent.all()) for x in (a, b)]
            largest = 4 * (2 * 7) ** 2
        else:
            significands = [a.significand, b.significand]
            shifts = [a.shift, b.shift]
            largest = self.config.block_format.largest**2
        value = multiply(m, *significands, width=2 * len(significands[0]), name=f"product{index}")
        for name, shift in zip("ab", shifts, strict=True):
            if len(shift) == 2:  # one-hot: by 1, by 2
                wide = Mux(shift[1], value << 2, Mux(shift[0], value << 1, value))
            else:
                wide = Mux(shift, value << 1, value)
            shifted = Signal(min(len(wide), largest.bit_length()), name=f"shifted{index}_{name}")
            m.d.comb += shifted.eq(wide)
            value = shifted
        return value

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words, signs = [], []
        for index in range(BLOCK_SIZE):
            magnitude = self._magnitude(m, index)
            sign = Signal(name=f"sign{index}")
            word = Signal(len(magnitude) + 1, name=f"word{index}")
            m.d.comb += [
                sign.eq(self.a[index].sign ^ self.b[index].sign),
                word.eq(Cat(magnitude ^ sign.replicate(len(magnitude)), ~sign)),
            ]
            words.append(word)
            signs.append(sign)
        width = len(words[0]) + BLOCK_SIZE.bit_length() - 1
        total = add_words(m, words, signs, width=width, name="total")
        exact = Cat(total[:-1], ~total[-1]).as_signed()
        if self.config.operand == "e2m2":
            m.d.comb += self.sum.eq(
                Mux(
                    self.a_tag & self.b_tag,
                    exact >> 4,
                    Mux(self.a_tag ^ self.b_tag, exact >> 3, exact >> 2),
                )
            )
        else:
            m.d.comb += self.sum.eq(exact)
        return m
