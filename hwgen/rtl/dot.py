"""Dot product of one block, exact, of integers."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Module, Value, signed, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.arithmetic.carry_save import two_words
from hwgen.rtl.hierarchy import Block, add_child
from hwgen.rtl.lanes import Sharing, lanes
from hwgen.rtl.lanes.interface import Lanes
from hwgen.rtl.lanes.windowed import Windowed
from hwgen.rtl.largest_exponent import LargestExponent
from hwgen.rtl.last_adder import LastAdder
from hwgen.rtl.significand_products import products_layout

__all__ = ["DotProduct", "beside"]


def beside(config: TensorCoreConfig) -> dict[str, int]:
    """Names and widths of what a dot product says beside its sum, as late as that.

    ``exponent``: the largest of a product that is not zero, above the lowest there is; only where products are cut to
    a window. ``positive`` and ``negative``: the sum is infinite, of that sign, and NaN where both are set; only where
    elements may be infinite.
    """
    found = {}
    if config.bounds.window is not None:
        found["exponent"] = config.bounds.product_span.bit_length()
    if config.bounds.may_be_infinite:
        found |= {"positive": 1, "negative": 1}
    return found


class DotProduct(Block):
    """Sum of the products of a block's decoded numbers.

    What happens in between is for the micro-architecture to say: ``config.dot``, a module of `hwgen.rtl.lanes`. The
    register ``tree``, if the pipeline has it, stands before the last adder. Where products are cut to a window it
    stands behind them, and ``sums`` before the last adder.

    Parameters
    ----------
    config
        ``a``, ``b`` and ``dot`` select the lanes; ``pipeline`` may have the register.

    Attributes
    ----------
    a, b : In(ArrayLayout(lanes(config).layout(side), lanes))
        Decoded lanes.
    a_word, b_word : In(lanes(config).word_width(side))
        What the decoders say of the block as a whole; only where they do.
    enable_tree : In(1)
        Load the ``tree`` register; only where the pipeline has it.
    enable_sums : In(1)
        Load the ``sums`` register; likewise, and only where the lanes hold it themselves. Else it is behind the sum.
    enable_tree_products : In(1)
        Load what that has of ``products``; only where there are both.
    sum : Out(signed)
        S of the contract: sum of hA * hB, folds not applied; 13 bits for NVFP4.
    words : Out(ArrayLayout(unsigned, 2))
        In the place of ``sum`` where the accumulator holds two words, see `Lanes.two_words`.
    below : Out(signed)
        S - 1; only where `hwgen.rtl.last_adder` has it.
    exponent, positive, negative : Out
        See `beside`; each only where that has it.
    half : In(1)
        The step is at half the rate: the products of significands are wanted, and the sum is 0. Only where slots share
        the lanes.
    products : Out(products_layout(config))
        Products of significands, 0 in steps of FP4; likewise.
    latency : int
        How many of these registers there are; 0 is combinational.
    """

    module_name = "dot_product"

    def __init__(self, config: TensorCoreConfig) -> None:
        how = lanes(config)
        members = {side: In(data.ArrayLayout(how.layout(side), config.bounds.lanes)) for side in "ab"}
        self.sides = [side for side in "ab" if how.word_width(side)]
        members |= {f"{side}_word": In(how.word_width(side)) for side in self.sides}
        own = ("tree", "sums") if how.holds_sums else ("tree",)
        registers = [name for name in own if name in config.pipeline]
        self.registers = bool(registers)
        self.latency = len(registers)
        members |= {f"enable_{name}": In(1) for name in registers}
        members |= {name: Out(width) for name, width in beside(config).items()}
        if how.says_below:
            members["below"] = Out(signed(how.sum_width))
        if how.shared:
            members |= {"half": In(1), "products": Out(products_layout(config))}
            members |= {"enable_tree_products": In(1)} if "tree" in registers else {}
        if config.carry_save:
            members["words"] = Out(data.ArrayLayout(unsigned(how.words_width), 2))
        else:
            members["sum"] = Out(signed(how.sum_width))
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = {side: getattr(self, f"{side}_word") for side in self.sides}
        register = partial(self.held, m, "tree", "enable_tree") if "tree" in self.config.pipeline else None
        how = lanes(self.config)
        if isinstance(how, Windowed):
            self._windowed(m, platform, how)
        elif isinstance(how, Sharing):
            total, products = how.total_and_products(m, self.a, self.b, words, self.half, register)
            held = self.held(m, "tree", "enable_tree_products", {"products": products})
            m.d.comb += [self.sum.eq(total), self.products.as_value().eq(held["products"])]
        elif how.last_width:
            self._added(m, platform, how, "tree", how.last_words(m, self.a, self.b))
        elif self.config.carry_save:
            found = how.two_words(m, self.a, self.b, words, register)
            m.d.comb += [word.eq(value) for word, value in zip(self.words, found, strict=True)]
        else:
            m.d.comb += self.sum.eq(how.total(m, self.a, self.b, words, register))
        return m

    def _windowed(self, m: Module, platform: object, how: Windowed) -> None:
        """Products that are cut to a window, in three parts with a register between each."""
        pairs = list(zip(self.a, self.b, strict=True))
        found = [how.product(m, x, y, f"{index}") for index, (x, y) in enumerate(pairs)]
        largest = add_child(m, platform, "highest", LargestExponent, self.config)
        m.d.comb += [into.eq(exponent) for into, (_, exponent) in zip(largest.exponents, found, strict=True)]
        beside: dict[str, Value] = {"exponent": largest.largest}
        if self.config.bounds.may_be_infinite:
            beside |= how.infinities(m, self.a, self.b)

        lanes_of: dict[str, Value] = {}
        for index, ((x, y), (product, _)) in enumerate(zip(pairs, found, strict=True)):
            lanes_of |= {
                f"product{index}": product,
                f"count{index}": Value.cast(largest.counts[index]),
                f"sign{index}": x.sign ^ y.sign,
            }
        held = self.held(m, "tree", "enable_tree", beside | lanes_of)
        m.d.comb += [getattr(self, name).eq(held[name]) for name in beside]

        products, counts, signs = (
            [held[f"{name}{index}"] for index in range(len(pairs))] for name in ("product", "count", "sign")
        )
        self._added(m, platform, how, "sums", how.aligned(m, products, counts, signs))

    def _added(
        self, m: Module, platform: object, how: Lanes, register: str, left: tuple[list[Value], list[Value]]
    ) -> None:
        """The sum of the last words and single bits, which a register holds if the pipeline has it."""
        words, ones = left
        came = dict(zip("xyuvst"[: len(words)], words, strict=True))
        came |= {f"one{index}": bit for index, bit in enumerate(ones)}
        held = list(self.held(m, register, f"enable_{register}", came).values())
        x, y = two_words(m, held[: len(words)], held[len(words) :], width=how.last_width, name="last")
        last = add_child(m, platform, "last", LastAdder, self.config)
        m.d.comb += [last.x.eq(x[1:]), last.y.eq(y[1:]), self.sum.eq(last.sum)]
        if how.says_below:
            m.d.comb += self.below.eq(last.below)
