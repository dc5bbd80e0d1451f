"""Processing element: one output of the array."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import ELEMENT_REGISTERS, TensorCoreConfig
from hwgen.formats.unscaled import LOWEST_PRODUCT, PRODUCT, SCALE
from hwgen.rtl.accumulate.carry_save_sum import CarrySaveAccumulate
from hwgen.rtl.accumulate.exact import ExactAccumulate, exact_controls
from hwgen.rtl.accumulate.products import ProductDistances, ProductExponents
from hwgen.rtl.accumulate.stepwise import FP32, Accumulate
from hwgen.rtl.accumulate.terms import (
    ScaleProduct,
    TermDistances,
    TermExponents,
    TermPlaces,
    emax_layout,
    may_be_infinite,
    may_rest,
    scaled_sides,
    terms_layout,
)
from hwgen.rtl.decode.operand import late_layout, operand_layout
from hwgen.rtl.dot import DotProduct, beside
from hwgen.rtl.hierarchy import Block, add_child, held_apart
from hwgen.rtl.lanes import lanes
from hwgen.rtl.significand_products import SignificandProducts

__all__ = ["Element"]


class Element(Block):
    """Multiplies one decoded row of A by one of B and accumulates.

    ::

        lanes  --> [dot product] x G --> (sums) --> [scale product] x G --+
        scales --> [term exponents] --------------------------------------+--> (terms) --> [accumulate] --> (result)
        first, or taking ------------------------------------------------------> (terms) --> [mux] --^        |
        c --> addend --------------------------------------------------------------------------^  ^-----------+

        [dot product] holds (tree), [scale product] (factors), [accumulate] holds (aligned), (total) and (normal).
        Lanes that cut products to a window hold (sums), too.

    With a slot, the products of significands of a step at half the rate come from multipliers of their own, or from
    those of the lanes::

        significands --> [significand products] x G --> (sums) --> (factors) --+
        slots ---------> [product exponents] ----> [product distances] --------+--> (terms) --> [accumulate]

    The other inputs of either way are zero then. With ``config.early_exponents`` registers stand between exponents and
    distances: beside ``tree`` and ``sums`` the largest exponents of blocks, beside ``factors`` that of the step.

    With exact numerics the accumulator is not the result; it comes before, and nothing goes back::

        terms, first, addend --> [exact accumulate: (aligned), sum, (resolved), (total), (normal)] --> result

    Sums of blocks without scales go there as they are, past the scale product.

    Registers in parentheses, and ``addend``; each but that and ``result`` only where the pipeline has it. Everything
    but lanes and C arrives behind ``tree`` and ``sums``: the scales are shared by a whole row, the core delays them
    once for all. All of them but the significands, which are factors, arrive behind ``factors``. C comes once per tile
    and waits in ``addend`` until the first step of its tile enters the loop.

    The accumulation loop of T = ``config.interleave`` cycles takes a step in every cycle: T tiles go round
    in it, a slot each, and a step finds the accumulator of its own tile in the result register. A slot
    that comes by without a step goes round as it is.

    Parameters
    ----------
    config
        Tensor core configuration.

    Attributes
    ----------
    a, b : In(operand_layout(config, side))
        Decoded rows. Their scales and ``nan`` are a step behind their lanes for each of ``tree`` and ``sums``; but for
        the significands, also for ``factors``. So are slots, but with
        ``config.early_exponents``, where they come with the lanes.
    a_late, b_late : In(late_layout(config, side))
        Only with ``config.early_exponents``: what else is read of them behind ``factors``, where nothing of the above
        is.
    c : In(32)
        FP32 addend of a tile, before its register.
    first : In(1)
        The step takes C, not the result before it; goes with ``nan``. Not where there is ``taking``.
    half, half_terms : In(1)
        The step is at half the rate; the former goes with the lanes, the latter with the terms. Only with a slot.
    half_exponents : In(1)
        The same, with the exponents; only with ``config.early_exponents``.
    enable_addend : In(1)
        Load ``c``, for the next first step that enters the loop.
    enable_tree, enable_sums, enable_factors, enable_terms : In(1)
        Load the register; each only where the pipeline has it.
    enable_tree_products, enable_sums_products, enable_factors_products, enable_terms_products : In(1)
        Load what the register has of steps at half the rate alone; likewise, and only with a slot.
    enable_products : In(1)
        The same of the register ``compared``.
    enable_aligned, enable_sum, enable_resolved, enable_total, enable_normal, complete : In(1)
        Of `ExactAccumulate` or `CarrySaveAccumulate`; only with exact numerics, and each only where that has it.
    enter : In(1)
        A step enters the loop; else its slot goes round as it is. Only where T > 1 and no register is before the loop.
    entering, taking : In(1)
        A step enters the loop in the next cycle, and it takes C. Only where T > 1 and a register is before the loop.
    enable_result : In(1)
        Load the result register and the others of the loop; for the step that is in the ``terms`` register
        (or at the inputs); with exact numerics for the one whose result is to come.
    result : Out(32)
        FP32 result in the last slot; with T = 1, of the last step loaded.
    latency : int
        Registers from the lanes to the result, 1 to 10.
    """

    module_name = "element"
    registers = True

    def __init__(self, config: TensorCoreConfig) -> None:
        self.latency = config.latency - sum(register in config.pipeline for register in ("operands", "decoded"))
        members = {
            "a": In(operand_layout(config, "a")),
            "b": In(operand_layout(config, "b")),
            "c": In(32),
            "enable_addend": In(1),
            "enable_result": In(1),
            "result": Out(32),
        }
        for register in ELEMENT_REGISTERS:
            if register in config.pipeline:
                members[f"enable_{register}"] = In(1)
                if config.slotted:
                    members[f"enable_{register}_products"] = In(1)
        if config.slotted and "compared" in config.pipeline:
            members["enable_products"] = In(1)
        if config.exact:
            members |= {name: In(1) for name in exact_controls(config)}
        if config.foresees:
            members |= {"entering": In(1), "taking": In(1)}
        else:
            members |= {"first": In(1), **({"enter": In(1)} if config.interleave > 1 else {})}
        if config.slotted:
            members |= {"half": In(1), "half_terms": In(1)}
        if config.early_exponents:
            members |= {f"{side}_late": In(late_layout(config, side)) for side in "ab"} | {"half_exponents": In(1)}
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, how = self.config, lanes(self.config)
        computed = Signal(terms_layout(config))
        aligns = bool(config.bounds.exponent_bits)  # else all terms have one exponent
        if aligns or (may_rest(config) and not config.exact):
            exponents = add_child(m, platform, "exponents", TermPlaces if config.exact else TermExponents, config)
        if aligns:
            m.d.comb += [getattr(exponents, side).eq(getattr(self, side).scales) for side in scaled_sides(config)]
        late = {side: getattr(self, f"{side}_late" if config.early_exponents else side) for side in "ab"}
        nans = [late[side].nan for side in "ab" if config.form(side).may_be_nan]
        infinite: dict[str, list[Value]] = {"positive": [], "negative": []}
        if nans and not may_be_infinite(config):
            m.d.comb += computed.nan.eq(reduce(or_, nans))
        if not config.exact:
            if config.slotted:
                found = self._products(m, platform, computed, exponents, late)
                for name, value in found.items():
                    infinite[name].append(value)
            elif aligns:
                m.d.comb += computed.exponent.eq(exponents.exponent)
            if may_rest(config) and not config.slotted:
                m.d.comb += computed.active.eq(exponents.active)
        for group in range(config.sums):
            dot = add_child(m, platform, f"dot{group}", DotProduct, config)
            self._lanes_of_block(m, dot, group)
            self._loads(m, dot, "enable_tree", *(["enable_tree_products"] if how.shared else []))
            if config.carry_save:
                m.d.comb += [computed.words[2 * group + index].eq(word) for index, word in enumerate(dot.words)]
                continue
            total, below = dot.sum, dot.below if how.says_below else None
            if "sums" in config.pipeline and not how.holds_sums:
                total = self._held_sum(m, total, f"sums{group}")
                below = None if below is None else self._held_sum(m, below, f"sums_below{group}")
            if config.adds_sums:
                m.d.comb += computed.words[group].eq(total)
                continue
            scale = add_child(m, platform, f"scale{group}", ScaleProduct, config)
            term, owner = computed.terms[group], group // config.a.sums
            if config.bounds.window is not None:
                m.d.comb += exponents.products[group].eq(self._behind_the_sum(m, dot, "exponent", group))
            for name in [name for name in infinite if name in beside(config)]:
                infinite[name].append(self._behind_the_sum(m, dot, name, group))
            if config.slotted:
                self._slots(m, platform, dot, computed, group)
            if how.holds_sums:
                self._loads(m, dot, "enable_sums")
            if below is not None:
                m.d.comb += scale.below.eq(below)
            self._loads(m, scale, "enable_factors")
            m.d.comb += scale.sum.eq(total)
            for side, operand in (("a", self.a), ("b", self.b)):
                if config.form(side).scale.significand_bits:
                    m.d.comb += getattr(scale, side).eq(operand.scales[owner].significand)
            m.d.comb += [term.sign.eq(scale.sign), term.magnitude.eq(scale.magnitude)]
            if config.excludes_empty:
                m.d.comb += exponents.empty[group].eq(scale.empty)
            if aligns and config.exact:
                m.d.comb += term.place.eq(exponents.places[owner])
            elif aligns and config.groups > 1 and not config.early_exponents:
                m.d.comb += term.distance.eq(exponents.distances[owner])

        if may_be_infinite(config):
            for name, signs in infinite.items():
                m.d.comb += getattr(computed, name).eq(reduce(or_, [*signs, *nans]))

        terms = self._terms(m, computed)
        addend = Signal(32, reset_less=True)
        with m.If(self.enable_addend):
            m.d.sync += addend.eq(self.c)

        exact = CarrySaveAccumulate if config.carry_save else ExactAccumulate
        accumulate = add_child(m, platform, "accumulate", exact if config.exact else Accumulate, config)
        result = Signal(FP32, reset_less=True)
        takes, enters = self._entrance(m)
        if config.exact:
            m.d.comb += accumulate.first.eq(takes)
            for name in exact_controls(config):
                m.d.comb += getattr(accumulate, name).eq(getattr(self, name))
        elif config.interleave > 1:
            m.d.comb += [accumulate.enter.eq(enters), accumulate.enable.eq(self.enable_result)]
            if config.slotted and "compared" in config.pipeline:
                m.d.comb += accumulate.enable_products.eq(self.enable_products)
        m.d.comb += [
            accumulate.terms.eq(terms),
            accumulate.c.eq(addend if config.exact else Mux(takes, addend, result)),
            self.result.eq(result),
        ]
        with m.If(self.enable_result):
            m.d.sync += result.eq(accumulate.d)
        return m

    def _lanes_of_block(self, m: Module, dot: Any, group: int) -> None:
        """Hand the lanes of a block sum to its dot product, and what the decoders say of the block as a whole."""
        parts, size = self.config.a.sums, self.config.a.lanes
        owner, first = group // parts, group % parts * size
        for side, operand in (("a", self.a), ("b", self.b)):
            own, block = getattr(dot, side), operand.lanes[owner]
            if parts == 1:
                m.d.comb += own.eq(block)
            else:
                m.d.comb += [own[index].eq(block[first + index]) for index in range(size)]
            if lanes(self.config).word_width(side):
                m.d.comb += getattr(dot, f"{side}_word").eq(operand.words[group])

    def _products(
        self, m: Module, platform: object, computed: Any, terms: Any, late: dict[str, Any]
    ) -> dict[str, Value]:
        """What products at half the rate have beside their magnitudes; returns whether one is infinite, by sign."""
        config = self.config
        half = self.half_exponents if config.early_exponents else self.half_terms
        products = add_child(m, platform, "product_exponents", ProductExponents, config)
        m.d.comb += [products.a.eq(self.a.slots), products.b.eq(self.b.slots)]
        if config.early_exponents:
            self._loads(m, products, "enable_tree_products", "enable_sums_products")
        bits, lowest = emax_layout(config)
        active, exponent = Signal(name="active"), Signal(bits, name="exponent")
        of_products, of_terms = Signal(bits, name="of_products"), Signal(bits, name="of_terms")
        raised: Value = products.exponent + (LOWEST_PRODUCT - lowest)
        if config.half_scaled:
            # Bytes count from the lowest scale, as does the exponent.
            raised = products.exponent + self.a.half_scale + self.b.half_scale
            raised += LOWEST_PRODUCT - 2 * SCALE.bias - lowest
        m.d.comb += [
            of_products.eq(raised),
            of_terms.eq(terms.exponent + (config.bounds.lowest_exponent - lowest)),
            active.eq(terms.active | products.active),
            exponent.eq(Mux(half, of_products, of_terms)),
        ]
        found: dict[str, Value] = {"active": active, "exponent": exponent}
        distances = add_child(m, platform, "product_distances", ProductDistances, config)
        if config.early_exponents:
            if config.half_scaled:
                found["largest"] = products.exponent  # which is 0 in steps of FP4
            found = self.held(m, "factors", "enable_factors", found)
            if config.half_scaled:
                largest = found["largest"]
            else:
                # What the other kind of steps has is kept out: there nothing is to move.
                largest = (found["exponent"] + (lowest - LOWEST_PRODUCT))[: len(products.exponent)]
                largest &= self.half_terms.replicate(len(largest))
            if config.groups > 1:
                above = found["exponent"] + (lowest - config.bounds.lowest_exponent)
                above &= ~self.half_terms.replicate(len(above))
                self._distances(m, platform, computed, above, late)
        else:
            largest = products.exponent
            m.d.comb += distances.exponents.eq(products.exponents)
        m.d.comb += [distances.a.eq(late["a"].slots), distances.b.eq(late["b"].slots), distances.largest.eq(largest)]
        m.d.comb += [
            computed.half.eq(self.half_terms),
            computed.active.eq(found["active"]),
            computed.exponent.eq(found["exponent"]),
        ]
        for group in range(config.groups):
            for index in range(config.slots):
                product = computed.products[group][index]
                m.d.comb += [
                    product.sign.eq(distances.signs[group][index]),
                    product.distance.eq(distances.distances[group][index]),
                ]
        return {"positive": distances.positive, "negative": distances.negative}

    def _distances(self, m: Module, platform: object, computed: Any, largest: Value, late: dict[str, Any]) -> None:
        """Distances of the terms below the largest exponent, which is known a register before."""
        distances = add_child(m, platform, "term_distances", TermDistances, self.config)
        m.d.comb += [distances.a.eq(late["a"].exponents), distances.b.eq(late["b"].exponents)]
        m.d.comb += distances.largest.eq(largest)
        m.d.comb += [
            term.distance.eq(distance) for term, distance in zip(computed.terms, distances.distances, strict=True)
        ]

    def _slots(self, m: Module, platform: object, dot: Any, computed: Any, group: int) -> None:
        """Magnitudes of the products of a block at half the rate."""
        config = self.config
        if lanes(config).shared:
            m.d.comb += dot.half.eq(self.half)
            multipliers = dot
        else:
            multipliers = add_child(m, platform, f"significands{group}", SignificandProducts, config)
            for side in "ab":
                m.d.comb += getattr(multipliers, side).eq(getattr(self, side).significands[group])
            self._loads(m, multipliers, "enable_tree_products")
        held = self._behind_the_sum(m, multipliers, "products", group)
        for index in range(config.slots):
            m.d.comb += computed.products[group][index].magnitude.eq(held.word_select(index, PRODUCT))

    def _behind_the_sum(self, m: Module, dot: Any, name: str, group: int) -> Value:
        """What a dot product says beside its sum, as late as what the scale product makes of that."""
        value: Value = Value.cast(getattr(dot, name))
        for register in ("sums", "factors"):
            if register in self.config.pipeline:
                held = Signal(len(value), name=f"{register}_{name}{group}", reset_less=True)
                with m.If(getattr(self, f"enable_{register}{'_products' if name == 'products' else ''}")):
                    m.d.sync += held.eq(value)
                value = held
        return value

    def _held_sum(self, m: Module, value: Value, name: str) -> Value:
        """A sum behind the register ``sums``."""
        held = Signal.like(value, name=name, reset_less=True)
        with m.If(self.enable_sums):
            m.d.sync += held.eq(value)
        return held

    def _loads(self, m: Module, block: Any, *enables: str) -> None:
        """Hand on what loads registers of a block, those that there are."""
        for enable in enables:
            if enable.split("_")[1] in self.config.pipeline:
                m.d.comb += getattr(block, enable).eq(getattr(self, enable))

    def _terms(self, m: Module, computed: data.View) -> data.View:
        """Terms behind their register, if there is one."""
        config = self.config
        if "terms" not in config.pipeline:
            return computed
        if config.slotted:
            return held_apart(m, computed, "terms", self.enable_terms, ("products",), self.enable_terms_products)
        terms = Signal(terms_layout(config), reset_less=True)
        with m.If(self.enable_terms):
            m.d.sync += terms.eq(computed)
        return terms

    def _entrance(self, m: Module) -> tuple[Value, Value]:
        """Whether the step before the loop takes C, and whether it enters."""
        takes = Signal(name="takes", reset_less=True)
        if self.config.foresees:
            enters = Signal(name="enters", reset_less=True)
            m.d.sync += [takes.eq(self.taking), enters.eq(self.entering)]
            return takes, enters
        if "terms" in self.config.pipeline:
            with m.If(self.enable_terms):
                m.d.sync += takes.eq(self.first)
            return takes, Const(1)
        if self.config.interleave > 1:
            return self.first & self.enter, self.enter
        return self.first, Const(1)
