"""Exact accumulation: one fixed-point number per element for a whole GEMM, rounded once."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.fixed_point import StepSum, sum_width
from hwgen.rtl.accumulate.round_sum import RoundSum
from hwgen.rtl.accumulate.stepwise import FP32
from hwgen.rtl.accumulate.terms import may_be_nan, term_nan, terms_layout
from hwgen.rtl.arithmetic.carry_save import add_words
from hwgen.rtl.hierarchy import Block, add_child

__all__ = ["ExactAccumulate", "exact_controls", "exact_registers"]


def exact_registers(config: TensorCoreConfig) -> tuple[str, ...]:
    """The registers between the terms and the result; ``sum`` is the accumulator, ``resolved`` the sum of its words."""
    there = (*config.pipeline, "sum", *(["resolved"] if config.carry_save else []))
    return tuple(name for name in ("aligned", "sum", "resolved", "total", "normal") if name in there)


def exact_controls(config: TensorCoreConfig) -> tuple[str, ...]:
    """Names of the control inputs of `ExactAccumulate` that do not come with the terms."""
    return (*(f"enable_{register}" for register in exact_registers(config)), "complete")


class ExactAccumulate(Block):
    """C + the sum of all terms since the first step, rounded once to nearest even.

    ::

        terms --> [step sum] --> (aligned) --> [+] --> sum --> [and] --> [round sum: (total), (normal)] --> D
                                                ^       |        ^               ^
                                                +-[and]-+        complete        |
                                                    ^ first                      |
        c, where first is set ----------------> C -------------------------------+
        nan ----------------------> (aligned) --> [or] --> NaN -----------------+

    Registers: ``sum`` and C always, NaN where there may be some, those in parentheses where the pipeline has them.
    The loop is one addition, of a fixed-point number that no GEMM of ``config.largest_depth`` elements can make
    overflow. Longer ones would wrap around; who feeds the core must not send them. Sums on the way may be anything:
    only that of the whole counts.

    C is no part of the loop, since it may lie anywhere from 2^-149 to 2^128. It is read where the sum begins, and waits
    beside it, in 32 bits, until the sum is complete. Rounding stands in every element, though it is the largest part
    and most steps do not need it: so a step with ``last`` may come in every cycle, and nothing waits but for a result
    that is not taken. One for each column would need a copy of sum and C in every element, to leave from by turns. In
    cycles without a result the sum is kept from its gates, which then rest.

    A carry-save sum shortens the loop (`hwgen.rtl.accumulate.carry_save_sum`), but not the clock where the addition of
    C is longer. It costs as many registers again.

    ==========  ===========================================  ======================
    register    holds                                        bits, G = 1 and NVFP4
    ==========  ===========================================  ======================
    aligned     step's sum, NaN, first                       50
    sum         accumulator, C, NaN                          93
    total       see `RoundSum`                               144
    normal      see `RoundSum`                               33
    ==========  ===========================================  ======================

    Parameters
    ----------
    config
        ``a``, ``b``, ``groups``, ``largest_depth`` and ``pipeline``.

    Attributes
    ----------
    terms : In(terms_layout(config))
        Scaled block sums of one step.
    c : In(FP32)
        Addend, where the sum of a step with ``first`` is loaded.
    first : In(1)
        Begin a new sum, with C.
    enable_aligned, enable_sum, enable_total, enable_normal : In(1)
        Load the register; each only where there is one. The accumulator takes every step, those behind it results.
    complete : In(1)
        The sum is one to be rounded.
    d : Out(FP32)
        Result; NaN is 0x7FFFFFFF, an exact zero +0.
    latency : int
        Registers on the way, 1 to 4.
    """

    module_name = "accumulate"
    registers = True

    def __init__(self, config: TensorCoreConfig) -> None:
        self.latency = len(exact_registers(config))
        members = {"terms": In(terms_layout(config)), "c": In(FP32), "first": In(1), "d": Out(FP32)}
        super().__init__(config, members | {name: In(1) for name in exact_controls(config)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        step = add_child(m, platform, "step", StepSum, config)
        m.d.comb += step.terms.eq(self.terms.words if config.adds_sums else self.terms.terms)
        came = {"sum": step.sum, "first": self.first}
        if may_be_nan(config):
            came["nan"] = term_nan(config, self.terms)
        held = self.held(m, "aligned", "enable_aligned", came)
        word, first, nan = held["sum"].as_signed(), held["first"], held.get("nan")

        width = sum_width(config)
        total = Signal(signed(width), name="sum", reset_less=True)
        c = Signal(FP32, name="c_held", reset_less=True)
        extended = Signal(signed(width))
        m.d.comb += extended.eq(word)
        carries = [word[-1]] if config.sums == 1 and not config.adds_sums else []
        before = total & (~first).replicate(width).as_signed()
        with m.If(self.enable_sum):
            m.d.sync += total.eq(add_words(m, [before, extended], carries, width=width, name="following"))
            with m.If(first):
                m.d.sync += c.eq(self.c)

        seen = None if nan is None else self._seen(m, nan, first)
        self._round(m, platform, total & self.complete.replicate(width).as_signed(), c, seen)
        return m

    def _seen(self, m: Module, nan: Value, first: Value) -> Value:
        """Register beside the accumulator: whether there was NaN since the first step."""
        seen = Signal(name="nan_seen", reset_less=True)
        with m.If(self.enable_sum):
            m.d.sync += seen.eq(nan | (seen & ~first))
        return seen

    def _round(self, m: Module, platform: object, total: Value, c: Any, nan: Value | None) -> None:
        """The result, of the sum of a tile, of C, and of whether there was NaN; None where there is none."""
        rounding = add_child(m, platform, "round", RoundSum, self.config)
        for register in exact_registers(self.config):
            if register in ("total", "normal"):
                m.d.comb += getattr(rounding, f"enable_{register}").eq(getattr(self, f"enable_{register}"))
        m.d.comb += [rounding.sum.eq(total), rounding.c.eq(c), self.d.eq(rounding.d)]
        if nan is not None:
            m.d.comb += rounding.nan.eq(nan)
