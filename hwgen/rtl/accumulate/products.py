"""Products at half the rate: the exponents to align them by, and the words that they add up to."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats.unscaled import HIGHEST_PRODUCT, LOWEST_PRODUCT, PRODUCT, SIGNIFICAND
from hwgen.rtl.arithmetic.carry_save import two_words
from hwgen.rtl.arithmetic.largest import largest
from hwgen.rtl.arithmetic.shifters import saturated, shift_right
from hwgen.rtl.arithmetic.window import Window
from hwgen.rtl.decode.unscaled import slots_layout
from hwgen.rtl.hierarchy import Block

__all__ = [
    "EXPONENT_BITS",
    "AlignedProducts",
    "ProductDistances",
    "ProductExponents",
    "ProductWindows",
    "product_layout",
]

EXPONENT_BITS = (HIGHEST_PRODUCT + 2 - LOWEST_PRODUCT).bit_length()
"""Bits of a product's exponent above the lowest one; those of infinity and NaN are two more than of numbers."""


class ProductWindows:
    """Where products at half the rate have their bits.

    Attributes
    ----------
    product, aligned : Window
        A product by its own exponent, and by the largest.
    distance_bits : int
        Bits of a distance between exponents, of which the largest shifts everything out.
    words : int
        Bits of the two words that the products of a block become.
    offset : int
        Logarithm of what those are above the products' sum, in the lowest place of ``aligned``.
    below : int
        Places of the FP4 terms' window below that.
    top : int
        Exponent of the first place above the sum of all products of a step, by the largest.
    """

    def __init__(self, config: TensorCoreConfig) -> None:
        self.product = Window(PRODUCT, -2 * (SIGNIFICAND - 1))
        self.aligned = self.product.down_to(-config.half_fraction_bits)
        self.distance_bits = self.aligned.emptying
        growth = (config.slots - 1).bit_length()
        self.words = self.aligned.width + growth + 1
        self.offset = self.aligned.width + growth
        self.below = config.fraction_bits - config.half_fraction_bits
        self.top = self.product.top + (config.slots * config.groups - 1).bit_length()


def product_layout(config: TensorCoreConfig) -> data.StructLayout:
    """Layout of a product as the accumulation loop takes it; ``distance`` is that below the largest exponent."""
    bits = ProductWindows(config).distance_bits
    return data.StructLayout({"magnitude": PRODUCT, "sign": 1, "distance": bits})


def _exponents_layout(config: TensorCoreConfig) -> data.ArrayLayout:
    return data.ArrayLayout(data.ArrayLayout(unsigned(EXPONENT_BITS), config.slots), config.groups)


def _exponents(m: Module, config: TensorCoreConfig, a: Any, b: Any) -> list[Signal]:
    """Exponents of all products."""
    found = []
    for group in range(config.groups):
        for index in range(config.slots):
            exponent = Signal(EXPONENT_BITS, name=f"exponent{group}_{index}")
            m.d.comb += exponent.eq(a[group][index].exponent + b[group][index].exponent)
            found.append(exponent)
    return found


class ProductExponents(Block):
    """Exponents of the products of one step at half the rate, and the largest of them.

    Products of zero take no part in the largest. It is found bit by bit (`hwgen.rtl.arithmetic.largest`). That takes
    less than half the gates of a tree of comparators, and less than digits of more bits: it does not hold the clock.

    With ``config.early_exponents`` they come with the lanes. The largest of each block is found then before ``tree``
    and ``sums``, and the largest of those behind these registers, each where the pipeline has it::

        a, b --> [+] --> [largest of a block] x G --> (tree) --> (sums) --> [largest] --> exponent

    Parameters
    ----------
    config
        ``groups``; ``pipeline`` says whether the sums of exponents are handed over.

    Attributes
    ----------
    a, b : In(slots_layout(config))
        What the elements of the row of A and the row of B have beside their significands.
    enable_tree_products, enable_sums_products : In(1)
        Load these registers; each only where there is one.
    exponent : Out(6)
        The largest exponent, offset so that the lowest is 0; 0 if all products are zero.
    active : Out(1)
        Some product is not zero.
    exponents : Out(ArrayLayout(ArrayLayout(6, slots), G))
        Those of all products, with the same offset. Not with ``config.early_exponents``, where nobody holds them.
    latency : int
        Registers on the way, 0 to 2; 0 is combinational.
    """

    module_name = "product_exponents"

    def __init__(self, config: TensorCoreConfig) -> None:
        members = {side: In(slots_layout(config)) for side in "ab"}
        members |= {"exponent": Out(EXPONENT_BITS), "active": Out(1)}
        held = [name for name in ("tree", "sums") if config.early_exponents and name in config.pipeline]
        members |= {f"enable_{name}_products": In(1) for name in held}
        self.latency, self.registers = len(held), bool(held)
        if not config.early_exponents:
            members["exponents"] = Out(_exponents_layout(config))
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        exponents = _exponents(m, config, self.a, self.b)
        live = [
            ~(a.zero | b.zero)
            for of_a, of_b in zip(self.a, self.b, strict=True)
            for a, b in zip(of_a, of_b, strict=True)
        ]
        if config.early_exponents:
            blocks: dict[str, Value] = {}
            for group in range(config.groups):
                own = slice(group * config.slots, (group + 1) * config.slots)
                blocks[f"live{group}"] = Cat(*live[own]).any()
                blocks[f"largest{group}"] = largest(
                    m, exponents[own], digit=1, live=live[own], name=f"of_block{group}_"
                )
            for register in ("tree", "sums"):
                blocks = self.held(m, register, f"enable_{register}_products", blocks)
            live = [blocks[f"live{group}"] for group in range(config.groups)]
            exponents = [blocks[f"largest{group}"] for group in range(config.groups)]
        else:
            m.d.comb += self.exponents.as_value().eq(Cat(*exponents))
        m.d.comb += [self.active.eq(Cat(*live).any()), self.exponent.eq(largest(m, exponents, digit=1, live=live))]
        return m


class ProductDistances(Block):
    """How far the exponent of each product is below the largest of the step, and what its signs make of it.

    Parameters
    ----------
    config
        ``groups``, and ``half_fraction_bits`` for the longest distance.

    Attributes
    ----------
    a, b : In(slots_layout(config))
        What the elements of the row of A and the row of B have beside their significands.
    largest : In(6)
        The largest exponent, of `ProductExponents`.
    exponents : In(ArrayLayout(ArrayLayout(6, slots), G))
        Those of all products. Not with ``config.early_exponents``: they are added here once more.
    distances : Out(ArrayLayout(ArrayLayout(distance_bits, slots), G))
        The largest exponent less that of the product, or a distance that shifts out all of it. Of no meaning where the
        product is zero.
    signs : Out(ArrayLayout(slots, G))
        Signs of the products.
    positive, negative : Out(1)
        Some product is infinite, of that sign; infinity times zero sets both.
    latency : int
        0, combinational.
    """

    module_name = "product_distances"

    def __init__(self, config: TensorCoreConfig) -> None:
        self.windows = ProductWindows(config)
        distances = data.ArrayLayout(unsigned(self.windows.distance_bits), config.slots)
        members = {side: In(slots_layout(config)) for side in "ab"} | {"largest": In(EXPONENT_BITS)}
        if not config.early_exponents:
            members["exponents"] = In(_exponents_layout(config))
        members |= {
            "distances": Out(data.ArrayLayout(distances, config.groups)),
            "signs": Out(data.ArrayLayout(unsigned(config.slots), config.groups)),
            "positive": Out(1),
            "negative": Out(1),
        }
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots, early = self.config.slots, self.config.early_exponents
        own = _exponents(m, self.config, self.a, self.b) if early else []
        infinite: dict[str, list[Value]] = {"positive": [], "negative": []}
        for group in range(self.config.groups):
            signs = []
            for index in range(slots):
                a, b = self.a[group][index], self.b[group][index]
                sign = a.sign ^ b.sign
                signs.append(sign)
                wrong, either = (a.infinite & b.zero) | (a.zero & b.infinite), a.infinite | b.infinite
                infinite["positive"].append(wrong | (either & ~sign))
                infinite["negative"].append(wrong | (either & sign))
                exponent = own[group * slots + index] if early else self.exponents[group][index]
                behind = Signal(EXPONENT_BITS, name=f"behind{group}_{index}")
                m.d.comb += behind.eq(self.largest - exponent)
                distance = saturated(m, behind, self.windows.aligned, name=f"distance{group}_{index}")
                m.d.comb += self.distances[group][index].eq(distance)
            m.d.comb += self.signs[group].eq(Cat(*signs))
        m.d.comb += [getattr(self, name).eq(Cat(*found).any()) for name, found in infinite.items()]
        return m


class AlignedProducts(Block):
    """The products of one block, each shifted to the largest exponent, C's included, and cut, as two words.

    ::

        magnitude --> [>> distance] --> [^ sign] --> [carry-save tree] --> two words, two single bits

    A product is negated by inversion, and carries its inverted sign above itself: two's complement with 2^width more.
    The ones of the negations go where the rows of the tree have room, but for two. In steps of FP4 all outputs are 0,
    and nothing moves.

    Parameters
    ----------
    config
        Gives the windows, see `ProductWindows`.

    Attributes
    ----------
    products : In(ArrayLayout(product_layout(config), slots))
        Products; zeros in steps of FP4. Their distances include how far C is ahead.
    half : In(1)
        The step is at half the rate.
    sign : In(1)
        Sign of C: the words have signs relative to it.
    words : Out(ArrayLayout(words, 2))
        Words that add up, with ``ones``, to the sum of the products plus 2^offset.
    ones : Out(2)
        Of weight 1 each.
    latency : int
        0, combinational.
    """

    module_name = "aligned_products"

    def __init__(self, config: TensorCoreConfig) -> None:
        self.windows = windows = ProductWindows(config)
        super().__init__(
            config,
            {
                "products": In(data.ArrayLayout(product_layout(config), config.slots)),
                "half": In(1),
                "sign": In(1),
                "words": Out(data.ArrayLayout(unsigned(windows.words), 2)),
                "ones": Out(2),
            },
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        windows = self.windows
        words, subtracts = [], []
        for index in range(self.config.slots):
            product = self.products[index]
            shifted = shift_right(
                m,
                product.magnitude,
                product.distance,
                own=windows.product,
                into=windows.aligned,
                name=f"product{index}",
            )
            differs, subtract = product.sign ^ self.sign, Signal(name=f"subtract{index}")
            m.d.comb += subtract.eq(differs & self.half)
            words.append(Cat(shifted ^ subtract.replicate(len(shifted)), ~differs & self.half))
            subtracts.append(subtract)
        x, y = two_words(m, words, subtracts[:-1], width=windows.words, name="tree")
        # Below the lowest place: a one in the first word, the carry in in the other.
        m.d.comb += [self.words[0].eq(x[1:]), self.words[1].eq(y[1:]), self.ones.eq(Cat(subtracts[-1], y[0]))]
        return m
