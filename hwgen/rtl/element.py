"""Processing element: one output of the array."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate import FP32, Accumulate
from hwgen.rtl.dot import DotProduct
from hwgen.rtl.hierarchy import Block, add_child
from hwgen.rtl.operand import operand_layout
from hwgen.rtl.scale import ScaleProduct, TermExponents, terms_layout

__all__ = ["Element"]


class Element(Block):
    """Multiplies one decoded row of A by one of B and accumulates.

    ::

        a, b --> [dot product] x G --> [scale product] x G --> (terms) --> [accumulate] --> (result)
        a, b scales --> [term exponents] ----------------------^               ^              |
        c, first ----------------------------------------------(terms)--> [mux] <-------------+

    Registers in parentheses; ``terms`` only where the pipeline has it. The accumulation loop takes one
    cycle, so that any step may follow any other at one per cycle.

    Parameters
    ----------
    config
        Tensor core configuration.

    Attributes
    ----------
    a, b : In(operand_layout(config))
        Decoded rows.
    c : In(32)
        FP32 addend of a first step.
    first : In(1)
        The step takes ``c``, not the result before it; goes with the terms.
    enable_terms : In(1)
        Load the ``terms`` register; only where the pipeline has it.
    enable_result : In(1)
        Load the result register; for the step that is in the ``terms`` register (or at the inputs).
    result : Out(32)
        FP32 result of the last step loaded.
    latency : int
        2 with the ``terms`` register, else 1.
    """

    module_name = "element"
    registers = True

    def __init__(self, config: TensorCoreConfig) -> None:
        self.staged = "terms" in config.pipeline
        self.latency = 1 + self.staged
        members = {
            "a": In(operand_layout(config)),
            "b": In(operand_layout(config)),
            "c": In(32),
            "first": In(1),
            "enable_result": In(1),
            "result": Out(32),
        }
        if self.staged:
            members["enable_terms"] = In(1)
        super().__init__(config, members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        exponents = add_child(m, platform, "exponents", TermExponents, config)
        computed = Signal(terms_layout(config))
        m.d.comb += [
            exponents.a.eq(self.a.scales),
            exponents.b.eq(self.b.scales),
            computed.exponent.eq(exponents.exponent),
            computed.active.eq(exponents.active),
            computed.nan.eq(self.a.nan | self.b.nan),
        ]
        for group in range(config.groups):
            dot = add_child(m, platform, f"dot{group}", DotProduct, config)
            scale = add_child(m, platform, f"scale{group}", ScaleProduct, config)
            term = computed.terms[group]
            m.d.comb += [
                dot.a.eq(self.a.lanes[group]),
                dot.b.eq(self.b.lanes[group]),
                scale.sum.eq(dot.sum),
                scale.a.eq(self.a.scales[group].significand),
                scale.b.eq(self.b.scales[group].significand),
                term.sign.eq(scale.sign),
                term.magnitude.eq(scale.magnitude),
            ]
            if config.groups > 1:
                m.d.comb += term.distance.eq(exponents.distances[group])
            if config.operand == "e2m2":
                m.d.comb += [dot.a_tag.eq(self.a.tags[group]), dot.b_tag.eq(self.b.tags[group])]

        terms, c, first = computed, self.c, self.first
        if self.staged:
            terms = Signal(terms_layout(config), reset_less=True)
            c = Signal(32, name="terms_c", reset_less=True)
            first = Signal(name="terms_first", reset_less=True)
            with m.If(self.enable_terms):
                m.d.sync += [terms.eq(computed), first.eq(self.first)]
                with m.If(self.first):
                    m.d.sync += c.eq(self.c)

        accumulate = add_child(m, platform, "accumulate", Accumulate, config)
        result = Signal(FP32, reset_less=True)
        m.d.comb += [
            accumulate.terms.eq(terms),
            accumulate.c.eq(Mux(first, c, result)),
            self.result.eq(result),
        ]
        with m.If(self.enable_result):
            m.d.sync += result.eq(accumulate.d)
        return m
