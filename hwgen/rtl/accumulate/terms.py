"""Scale product: block sums times their block scales, and the exponents to align them by."""

from __future__ import annotations

from functools import reduce
from operator import add, or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Member, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats.unscaled import LOWEST_PRODUCT, SCALE
from hwgen.rtl.accumulate.products import EXPONENT_BITS, product_layout
from hwgen.rtl.arithmetic.carry_save import multiply
from hwgen.rtl.decode.operand import exponents_layout, scale_layout
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lanes import lanes

__all__ = [
    "ScaleProduct",
    "TermDistances",
    "TermExponents",
    "TermPlaces",
    "emax_layout",
    "may_be_infinite",
    "may_be_nan",
    "may_rest",
    "scaled_sides",
    "term_nan",
    "term_width",
    "terms_layout",
]


def term_width(config: TensorCoreConfig) -> int:
    """Width of a term's magnitude |T| = |S| sigA sigB."""
    return config.bounds.term_width


def terms_layout(config: TensorCoreConfig) -> data.StructLayout:
    """Layout of what the accumulation loop takes from one step.

    ``terms[g]``: sign and magnitude of T_g and its ``distance`` below the largest term exponent;
    ``exponent``: that largest exponent, offset so that the lowest is 0; ``active``: at least one block takes part in
    it, see `TermExponents`, only where there may be none; ``nan``: some scale or element is
    NaN, only where one may be. Where elements may be infinite, ``positive`` and ``negative`` in its place: some product
    is infinite, of that sign. NaN is both.

    Where blocks without scales are added exactly, there are ``words`` in the place of ``terms``: their sums; or, for an
    accumulator of two words, two for each sum, see `hwgen.rtl.lanes.interface.Lanes.two_words`.

    With exact numerics nothing depends on the largest exponent: ``terms[g]`` has sign, magnitude and ``place``, its
    own exponent with the same offset, and there is ``nan``.

    With a slot: ``half``, the step is at half the rate; ``products[g][j]``, its products, see
    `hwgen.rtl.accumulate.products`; ``positive`` and ``negative``. ``exponent`` and ``active`` are those of the terms
    or of the products. In steps of FP4 the products are zero, and in others the terms are.
    """
    nan = {"nan": 1} if may_be_nan(config) else {}
    if may_be_infinite(config):
        nan = {"positive": 1, "negative": 1}
    if config.adds_sums:
        how = lanes(config)
        word, count = (unsigned(how.words_width), 2) if config.carry_save else (signed(how.sum_width), 1)
        return data.StructLayout({"words": data.ArrayLayout(word, config.sums * count), **nan})
    if config.exact:
        term = data.StructLayout({"sign": 1, "magnitude": term_width(config), "place": config.bounds.exponent_bits})
        return data.StructLayout({"terms": data.ArrayLayout(term, config.sums), **nan})
    fields: dict[str, object] = {"sign": 1, "magnitude": term_width(config)}
    if config.groups > 1:
        fields["distance"] = config.bounds.exponent_bits
    return data.StructLayout(
        {
            "terms": data.ArrayLayout(data.StructLayout(fields), config.sums),
            "exponent": emax_layout(config)[0],
            **({"active": 1} if may_rest(config) else {}),
            **nan,
            **_products(config),
        }
    )


def _products(config: TensorCoreConfig) -> dict[str, object]:
    if not config.slotted:
        return {}
    of_block = data.ArrayLayout(product_layout(config), config.slots)
    return {"half": 1, "products": data.ArrayLayout(of_block, config.groups)}


def emax_layout(config: TensorCoreConfig) -> tuple[int, int]:
    """Bits of the largest exponent of a step, and the lowest exponent, which is its 0: terms', or products', too."""
    bounds = config.bounds
    if not config.slotted:
        return bounds.exponent_bits, bounds.lowest_exponent
    least, above = LOWEST_PRODUCT, (1 << EXPONENT_BITS) - 1
    if config.half_scaled:
        # Two bytes are added. That of NaN is one above the highest.
        least, above = least - 2 * SCALE.bias, above + 2 * ((1 << SCALE.width) - 1)
    lowest, highest = min(bounds.lowest_exponent, least), max(bounds.highest_exponent, least + above)
    return (highest - lowest).bit_length(), lowest


def may_be_infinite(config: TensorCoreConfig) -> bool:
    """Whether a product can be infinite."""
    return config.bounds.may_be_infinite or config.slotted


def may_be_nan(config: TensorCoreConfig) -> bool:
    """Whether the sum of a step can be NaN."""
    return may_be_infinite(config) or any(form.may_be_nan for form in config.formats)


def may_rest(config: TensorCoreConfig) -> bool:
    """Whether there are steps in which no block takes part in the largest exponent, so that C is the result."""
    return config.excludes_empty or any(form.scale.subnormals for form in config.formats)


def term_nan(config: TensorCoreConfig, terms: Any) -> Value:
    """Whether some scale or element is NaN, or some infinite product; never, where none may be."""
    if may_be_infinite(config):
        return terms.positive & terms.negative
    return terms.nan if may_be_nan(config) else Const(0)


def _scales_of_both(config: TensorCoreConfig) -> dict[str, Member]:
    return {side: In(data.ArrayLayout(scale_layout(config.form(side)), config.groups)) for side in scaled_sides(config)}


def scaled_sides(config: TensorCoreConfig) -> str:
    """Operands whose blocks have scales."""
    return "".join(side for side in "ab" if scale_layout(config.form(side)).size)


class ScaleProduct(Block):
    """T = S * sigA * sigB, in sign and magnitude.

    ::

        sum --> [absolute value] --> |S| --[x]--> |S| sigA --[x]--> magnitude
                                    sigA ---^        sigB ----^

    Magnitude because the contract truncates every term toward zero when it aligns it. One significand after the
    other has eight rows to add, ``sigA * sigB`` first would have twelve, of which four are short.

    With the register ``factors`` that is what is done: the significands meet while the absolute value is made, and one
    multiplication is left of the path::

        sum --> [absolute value] --> |S| --------> (factors) --[x]--> magnitude
        sigA --[x]--> sigA sigB -----------------> (factors) ---^
        sigB ---^

    Scales that are powers of two have no significand. Where one operand has such scales one factor is left out; where
    both have, the absolute value is the term.

    Parameters
    ----------
    config
        Gives the widths; ``pipeline`` may have the register.

    Attributes
    ----------
    sum : In(signed)
        Block sum S.
    below : In(signed)
        S - 1; only where the dot product says it.
    a, b : In(unsigned)
        Significands of the two block scales; of UE4M3 4 bits, in eighths. Each only where its scales have any. The
        factor of the elements is in it, where they have one: 7 bits in IF4.
    enable_factors : In(1)
        Load the ``factors`` register, 21 bits for NVFP4; only where the pipeline has it.
    sign : Out(1)
        Sign of T; may be set for T = 0.
    magnitude : Out(term_width(config))
        abs(T); 19 bits for NVFP4.
    empty : Out(1)
        S is zero; only where ``config.empty_blocks`` is ``excluded``.
    latency : int
        1 with the register; 0, combinational, without.
    """

    module_name = "scale_product"

    def __init__(self, config: TensorCoreConfig) -> None:
        widths = {side: config.form(side).significand_bits for side in "ab"}
        members = {
            "sum": In(signed(lanes(config).sum_width)),
            **{side: In(unsigned(width)) for side, width in widths.items() if width},
            "sign": Out(1),
            "magnitude": Out(unsigned(term_width(config))),
        }
        if lanes(config).says_below:
            members["below"] = In(signed(lanes(config).sum_width))
        if config.excludes_empty:
            members["empty"] = Out(1)
        self.sides = [side for side, width in widths.items() if width]
        self.registers = "factors" in config.pipeline
        self.latency = int(self.registers)
        if self.registers:
            members["enable_factors"] = In(1)
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.registers:
            self._of_factors(m)
            return m
        product: Value = self._absolute(m)
        m.d.comb += self.sign.eq(self.sum[-1])
        for side, name in zip(self.sides, ("product", "scaled"), strict=False):
            factor = getattr(self, side)
            width = len(self.magnitude) if side == self.sides[-1] else len(product) + len(factor)
            product = multiply(m, product, factor, width=width, name=name)
        m.d.comb += self.magnitude.eq(product)
        if self.config.excludes_empty:
            m.d.comb += self.empty.eq(~self.sum.any())
        return m

    def _absolute(self, m: Module) -> Signal:
        """abs(S)."""
        absolute = Signal(len(self.sum) - 1)
        sign = self.sum[-1]
        if lanes(self.config).says_below:
            m.d.comb += absolute.eq(Mux(sign, ~self.below[:-1], self.sum[:-1]))
        else:
            m.d.comb += absolute.eq((self.sum[:-1] ^ sign.replicate(len(absolute))) + sign)
        return absolute

    def _of_factors(self, m: Module) -> None:
        """Both factors, their register, and their product."""
        factors: dict[str, Value] = {"sign": self.sum[-1], "magnitude": self._absolute(m)}
        if len(self.sides) == 2:
            width = len(self.a) + len(self.b)
            factors["significands"] = multiply(m, self.a, self.b, width=width, name="significands")
        elif self.sides:
            factors["significands"] = getattr(self, self.sides[0])
        if self.config.excludes_empty:
            factors["empty"] = ~self.sum.any()
        held = self.held(m, "factors", "enable_factors", factors)
        product = held["magnitude"]
        if self.sides:
            product = multiply(m, product, held["significands"], width=len(self.magnitude), name="product")
        m.d.comb += [self.sign.eq(held["sign"]), self.magnitude.eq(product)]
        if self.config.excludes_empty:
            m.d.comb += self.empty.eq(held["empty"])


class TermExponents(Block):
    """Exponents of the terms of one step: the largest, and every term's distance below it.

    Only where there are several, or a block may take no part; without the former there is ``active`` alone.

    Blocks with a zero scale take no part; nor do those whose sums are zero, where ``config.empty_blocks`` says so. That
    is known when the scale products begin, which take longer than all there is here: the sums may come last.

    Parameters
    ----------
    config
        ``groups`` and ``empty_blocks``.

    Attributes
    ----------
    a, b : In(ArrayLayout(scale_layout(form), G))
        Decoded block scales of the row of A and the row of B; each only where it has any.
    empty : In(sums)
        Block sums that are zero; only where such blocks take no part.
    products : In(ArrayLayout(unsigned, G))
        Largest exponents of the blocks' products; only where those are cut to a window.
    exponent : Out(exponent_bits)
        max E_g, offset so that the lowest is 0, over the groups that take part. If there are none it is 0 or, with one
        group, of no meaning: that group's term is zero, and C alone is the result.
    distances : Out(ArrayLayout(exponent_bits, G))
        max E_g - E_g; only with more than one group, and not with ``config.early_exponents``, see `TermDistances`. A
        group that takes no part counts as the lowest E_g: its term is zero, and no other group lies lower.
    active : Out(1)
        Some group takes part; only where there may be none, see `may_rest`.
    latency : int
        0, combinational.
    """

    module_name = "term_exponents"

    def __init__(self, config: TensorCoreConfig) -> None:
        bits = config.bounds.exponent_bits
        members = {**_scales_of_both(config), "exponent": Out(bits)} if bits else {}
        if may_rest(config):
            members["active"] = Out(1)
        if bits and config.groups > 1 and not config.early_exponents:
            members["distances"] = Out(data.ArrayLayout(bits, config.groups))
        if config.bounds.window is not None:
            width = config.bounds.product_span.bit_length()
            members["products"] = In(data.ArrayLayout(unsigned(width), config.groups))
        if config.excludes_empty:
            members["empty"] = In(config.sums)
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.config.bounds.exponent_bits
        exponents, live = [], []
        for group in range(self.config.groups):
            nonzero = Signal(name=f"nonzero{group}")
            zero = self._zero(group)
            live.append(nonzero)
            if zero is not None:
                m.d.comb += nonzero.eq(~zero)
            if not bits:
                continue
            exponent = Signal(bits, name=f"exponent{group}")
            parts: list[Value] = [getattr(self, side)[group].exponent for side in scaled_sides(self.config)]
            if self.config.bounds.window is not None:
                parts.append(self.products[group])
            own = reduce(add, parts)
            if self.config.groups > 1 and zero is not None:
                own &= nonzero.replicate(bits)
            m.d.comb += exponent.eq(own)
            exponents.append(exponent)
        if may_rest(self.config):
            m.d.comb += self.active.eq(Cat(*live).any())
        if not bits:
            return m
        largest = exponents
        while len(largest) > 1:
            pairs = zip(largest[::2], largest[1::2], strict=False)
            following: list[Signal] = []
            for x, y in pairs:
                winner = Signal(bits, name=f"max{len(largest)}_{len(following)}")
                m.d.comb += winner.eq(Mux(x > y, x, y))
                following.append(winner)
            largest = following + largest[len(largest) & ~1 :]
        m.d.comb += self.exponent.eq(largest[0])
        if self.config.groups > 1 and not self.config.early_exponents:
            for group, exponent in enumerate(exponents):
                m.d.comb += self.distances[group].eq(self.exponent - exponent)
        return m

    def _zero(self, group: int) -> Value | None:
        """Whether a group takes no part; None if all do."""
        sides = [side for side in "ab" if self.config.form(side).scale.subnormals]
        found: list[Value] = [getattr(self, side)[group].zero for side in sides]
        if self.config.excludes_empty:
            sums = self.config.a.sums
            empty = self.empty[group * sums : (group + 1) * sums]
            found.append(empty if sums == 1 else empty.all())
        return reduce(or_, found) if found else None


class TermDistances(Block):
    """How far the exponent of each term is below the largest, where that is known a register before.

    Parameters
    ----------
    config
        Several ``groups``.

    Attributes
    ----------
    a, b : In(exponents_layout(config, side))
        Exponents of the block scales of the row of A and the row of B.
    largest : In(exponent_bits)
        The largest exponent, of `TermExponents`.
    distances : Out(ArrayLayout(exponent_bits, G))
        max E_g - E_g; of no meaning where a scale is zero, as is then the term.
    latency : int
        0, combinational.
    """

    module_name = "term_distances"

    def __init__(self, config: TensorCoreConfig) -> None:
        bits = config.bounds.exponent_bits
        members = {side: In(exponents_layout(config, side)) for side in "ab"}
        members |= {"largest": In(bits), "distances": Out(data.ArrayLayout(bits, config.groups))}
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for group in range(self.config.groups):
            m.d.comb += self.distances[group].eq(self.largest - (self.a[group] + self.b[group]))
        return m


class TermPlaces(Block):
    """Exponents of the terms of one step, each for itself: how far it is shifted into a fixed-point accumulator.

    Parameters
    ----------
    config
        Gives the number of groups.

    Attributes
    ----------
    a, b : In(ArrayLayout(scale_layout(form), G))
        Decoded block scales of the row of A and the row of B; each only where it has any.
    places : Out(ArrayLayout(exponent_bits, G))
        E_g with that offset; of no meaning where a scale is zero, as is then the term.
    latency : int
        0, combinational.
    """

    module_name = "term_exponents"

    def __init__(self, config: TensorCoreConfig) -> None:
        places = data.ArrayLayout(config.bounds.exponent_bits, config.groups)  # those of a block's sums are equal
        super().__init__(config, {**_scales_of_both(config), "places": Out(places)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for group in range(self.config.groups):
            parts: list[Value] = [getattr(self, side)[group].exponent for side in scaled_sides(self.config)]
            m.d.comb += self.places[group].eq(reduce(add, parts))
        return m
