"""Products of significands at half the rate: multipliers of four bits, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats.unscaled import PRODUCT, SIGNIFICAND
from hwgen.rtl.arithmetic.carry_save import full_adders, half_adders
from hwgen.rtl.hierarchy import Block

__all__ = ["SignificandProducts", "multiplied", "products_layout", "ripple", "side_by_side"]


def products_layout(config: TensorCoreConfig) -> data.ArrayLayout:
    """Layout of the products of significands of one block."""
    return data.ArrayLayout(unsigned(PRODUCT), config.slots)


def multiplied(m: Module, a: Sequence[Value], b: Sequence[Value], *, name: str) -> list[Value]:
    """Multiply many pairs of numbers, each by itself.

    Parameters
    ----------
    m
        Module that receives the logic.
    a, b
        Factors bit by bit, the lowest first: one word with that bit of all pairs each.
    name
        Beginning of the names on the way.

    Returns
    -------
    list of Value
        Products bit by bit. Combinational; of two factors of four bits it takes eight full and four half adders each.
    """
    columns: list[list[Value]] = [[] for _ in range(len(a) + len(b))]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            columns[i + j].append(x & y)
    return ripple(m, columns, name=name)


def ripple(m: Module, columns: list[list[Value]], *, name: str) -> list[Value]:
    """Add many heaps of bits, each by itself, from the lowest place up.

    Parameters
    ----------
    m
        Module that receives the logic.
    columns
        Bits by place, words with that bit of all heaps each; they are used up. No sum has a carry out of the last one.
    name
        Beginning of the names on the way.

    Returns
    -------
    list of Value
        Sums, one bit a place. Combinational.
    """
    for place, bits in enumerate(columns):
        # Partial products first: carries come last.
        while len(bits) > 1:
            stem = f"{name}{place}_{len(bits)}"
            if len(bits) == 2:
                total, carry = half_adders(m, *bits, name=stem)
                del bits[:2]
            else:
                total, carry = full_adders(m, *bits[:3], name=stem)
                del bits[:3]
            bits.append(total)
            if place + 1 < len(columns):
                columns[place + 1].append(carry)
    return [bits[0] for bits in columns]


def side_by_side(bits: Sequence[Value]) -> Value:
    """The numbers one after the other, of which ``bits`` has one word for each bit."""
    return Cat(*(word[index] for index in range(len(bits[0])) for word in bits))


class SignificandProducts(Block):
    """Multipliers of a block at half the rate that stand beside its FP4 lanes.

    Decoders give zeros in steps of FP4, so that nothing moves here then.

    Parameters
    ----------
    config
        Gives the number of slots; ``pipeline`` may have the register ``tree``.

    Attributes
    ----------
    a, b : In(ArrayLayout(4, slots))
        Significands.
    enable_tree_products : In(1)
        Load the ``tree`` register; only where the pipeline has it.
    products : Out(products_layout(config))
        Their products.
    latency : int
        1 with the register; 0, combinational, without.
    """

    module_name = "significand_products"

    def __init__(self, config: TensorCoreConfig) -> None:
        members = {side: In(data.ArrayLayout(unsigned(SIGNIFICAND), config.slots)) for side in "ab"}
        self.registers = "tree" in config.pipeline
        self.latency = int(self.registers)
        if self.registers:
            members["enable_tree_products"] = In(1)
        super().__init__(config, members | {"products": Out(products_layout(config))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = ([Cat(*(word[place] for word in side)) for place in range(SIGNIFICAND)] for side in (self.a, self.b))
        product = Signal(PRODUCT * self.config.slots)
        m.d.comb += product.eq(side_by_side(multiplied(m, a, b, name="place")))
        held = self.held(m, "tree", "enable_tree_products", {"products": product})
        m.d.comb += self.products.as_value().eq(held["products"])
        return m
