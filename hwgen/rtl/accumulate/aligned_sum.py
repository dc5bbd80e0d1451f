"""The sum of one step: C and all terms, once they are aligned."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.products import ProductWindows
from hwgen.rtl.arithmetic.carry_save import two_words
from hwgen.rtl.arithmetic.leading_zeros import anticipate, leading_zeros
from hwgen.rtl.arithmetic.window import Window
from hwgen.rtl.hierarchy import Block

__all__ = ["AlignedSum", "Windows"]


@dataclass(frozen=True)
class Windows:
    """Where the words of a step have their bits.

    Parameters
    ----------
    significand, term
        C's significand and a term, each by its own exponent.
    aligned_c, aligned_term
        Both by the larger exponent, down to the lowest place that the contract keeps.
    sum
        Magnitude of the sum.
    growth
        How many places the sum has above those of a term.
    """

    significand: Window
    term: Window
    aligned_c: Window
    aligned_term: Window
    sum: Window
    growth: int

    @classmethod
    def of(cls, config: TensorCoreConfig) -> Windows:
        """The windows of a configuration."""
        # By their own exponents C counts units of 2^-23 and a term of 2^-term_fraction. The contract keeps both down to
        # 2^-fraction_bits of the larger exponent.
        unit, bounds = -config.fraction_bits, config.bounds
        significand, term = Window(24, -23), Window(bounds.term_width, -bounds.term_fraction)
        aligned_c, aligned_term = significand.down_to(unit), term.down_to(unit)
        # All terms may add up, and C with them.
        growth = bounds.sum_growth(config.sums, config.fraction_bits)
        return cls(significand, term, aligned_c, aligned_term, Window(aligned_term.width + growth, unit), growth)


class AlignedSum(Block):
    """Sum of C and all terms, in one unit, 2^(emax - fraction_bits).

    Two names, of which `hwgen.mapping.area` maps one on its own. ``aligned_sum`` has a tree, which the library's full
    adders make small by a recipe that does not suit the shifters on either side. ``aligned_pair`` is mapped as a part
    of what holds it, where the mapper sees the gates around the adder and what time it has. That is better with one
    group, which has no tree, and with ``addends``, which is for clocks that take parallel-prefix carries.

    ::

        c, terms, subtract --> [carry-save tree] --> (addends) --> [add] --> sum
                                                        |
                                                        +--> [anticipate] --> zeros

    The register in parentheses, where the pipeline has it. Terms come inverted where they are subtracted, and carry
    their inverted sign above them: two's complement without a word for each sign.

    With a slot each block has one word more. In a step at half the rate it is one of the two that the products of a
    block are, and the other one stands in the place of the term. Both are a sum with a fixed number added, which the
    free bits above C take off, as they make up for inverted signs in other steps.

    Parameters
    ----------
    config
        ``groups``, ``fraction_bits``, ``leading_zeros``, ``pipeline`` and ``slot``.

    Attributes
    ----------
    c : In(Windows.aligned_c.width)
        C's magnitude. All signs are relative to C's.
    terms : In(ArrayLayout(Windows.aligned_term.width, G))
        Magnitudes of the terms, inverted where ``subtract`` is set.
    subtract : In(G)
        The term's sign is not C's.
    further : In(ArrayLayout(ProductWindows.words, G))
        Second words of the products; only with a slot.
    ones : In(G)
        Of weight 1 in the lowest place of those words. Only with a slot.
    half : In(1)
        The step is at half the rate; only with a slot.
    enable : In(1)
        Load the register; only where there is one.
    sum : Out(Windows.sum.width + 1)
        The sum in two's complement, its sign inverted; one bit more with anticipation.
    zeros : Out
        Zeros above the leading one of the sum's magnitude, or one less; only with anticipation.
    latency : int
        1 with the register; 0, combinational, without.
    """

    def __init__(self, config: TensorCoreConfig) -> None:
        self.windows = windows = Windows.of(config)
        self.registers = "addends" in config.pipeline
        tree = config.sums > 1 or config.slotted
        self.module_name = "aligned_sum" if tree and not self.registers else "aligned_pair"
        self.latency = int(self.registers)
        self.width = windows.sum.width + 1 + config.anticipated
        members = {
            "c": In(windows.aligned_c.width),
            "terms": In(data.ArrayLayout(windows.aligned_term.width, config.sums)),
            "subtract": In(config.sums),
            "sum": Out(self.width),
        }
        if config.slotted:
            words = data.ArrayLayout(unsigned(ProductWindows(config).words), config.groups)
            members |= {"further": In(words), "ones": In(config.groups), "half": In(1)}
        if self.registers:
            members["enable"] = In(1)
        if config.anticipated:
            members["zeros"] = Out(windows.sum.width.bit_length())
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, windows = self.config, self.windows
        top, above_c = windows.aligned_term.width, windows.aligned_c.width
        # Every inverted sign above a term is short of -2^top. For a power of two of them that is the top bit of the
        # sum; the free bits above C make up the number. The sum may fill its word, which anticipation does not allow.
        missing = (1 << windows.growth + config.anticipated) - config.sums
        words: list[Value] = [Cat(self.c, Const(missing << (top - above_c), self.width - above_c))]
        words += [Cat(term, ~subtract) for term, subtract in zip(self.terms, self.subtract, strict=True)]
        ones = list(self.subtract)
        if config.slotted:
            words, ones = self._with_products(missing << (top - above_c))
        x, y = two_words(m, words, ones, width=self.width, name="total")
        # The place below the last has a one in the first word.
        held = self.held(m, "addends", "enable", {"x": x[1:], "y": y})
        x, y = Cat(1, held["x"]), held["y"]
        m.d.comb += self.sum.eq((x + y)[1:])
        if config.anticipated:
            m.d.comb += self.zeros.eq(self._anticipated(m, x, y))
        return m

    def _with_products(self, missing: int) -> tuple[list[Value], list[Value]]:
        """Words and single bits with a slot; above C there is ``missing`` in steps of FP4."""
        above_c, products = self.windows.aligned_c.width, ProductWindows(self.config)
        added = self.config.groups << products.below + products.offset
        bits = self.width - above_c
        above = Mux(self.half, Const((1 << self.width - 1) - added >> above_c, bits), Const(missing, bits))
        words: list[Value] = [Cat(self.c, above)]
        words += [Cat(term, ~(minus | self.half)) for term, minus in zip(self.terms, self.subtract, strict=True)]
        # Ones all the way down carry a one of weight 1 to where it belongs.
        words += [Cat(one.replicate(products.below), word) for word, one in zip(self.further, self.ones, strict=True)]
        return words, [*self.subtract, *self.ones]

    def _anticipated(self, m: Module, x: Value, y: Value) -> Value:
        """Zeros above the leading one of the magnitude of x + y, or one less."""
        width = self.windows.sum.width
        addends = [Signal(width + 3, name=f"addend{index}") for index in range(2)]
        # The sum has its sign inverted.
        m.d.comb += [addends[0].eq(x ^ (1 << width + 2)), addends[1].eq(y)]
        marked = anticipate(m, *addends, name="anticipated")
        # A mark above the magnitude is one place too high; in its lowest place at last there is one.
        return leading_zeros(m, Cat(1, marked[1:width], marked[width:].any()), name="zeros")
