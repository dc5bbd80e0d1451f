"""Exact accumulation in two words, whose carries run where a result is wanted."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, signed

from hwgen.rtl.accumulate.exact import ExactAccumulate
from hwgen.rtl.accumulate.fixed_point import sum_width
from hwgen.rtl.accumulate.stepwise import FP32
from hwgen.rtl.accumulate.terms import may_be_nan, term_nan
from hwgen.rtl.arithmetic.carry_save import two_words
from hwgen.rtl.lanes import lanes

__all__ = ["CarrySaveAccumulate"]


class CarrySaveAccumulate(ExactAccumulate):
    """C + the sum of all block sums since the first step, rounded once; as `ExactAccumulate`, by another accumulator.

    ::

        two words of each block sum --> [carry-save tree] --> sum, carry --> [and] --> [+] --> resolved --> [round sum]
                                              ^                  |             ^                   |            |
                                              +------[and]-------+          complete            C, NaN          +--> D
                                                       ^ first

    The idea is that of OPT1 (arXiv 2503.06342): neither products nor block sums nor the accumulator are added up to one
    number in a step. The one addition whose carries run is that of the two words of a whole tile. It has a cycle of
    its own, before C is added. C and NaN wait beside the words, and again beside their sum: the next tile may begin
    while that is made.

    Parameters
    ----------
    config
        ``a``, ``b``, ``groups``, ``dot``, ``largest_depth`` and ``pipeline``.

    Attributes
    ----------
    terms : In(terms_layout(config))
        Two words of each block sum of one step.
    c : In(FP32)
        Addend, where the sum of a step with ``first`` is loaded.
    first : In(1)
        Begin a new sum, with C.
    enable_sum, enable_resolved, enable_total, enable_normal : In(1)
        Load the register; the last two only where there are these. The accumulator takes every step, those behind it
        results.
    complete : In(1)
        The sum is one to be rounded.
    d : Out(FP32)
        Result; NaN is 0x7FFFFFFF, an exact zero +0.
    latency : int
        Registers on the way, 2 to 4.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, width = self.config, sum_width(self.config)
        held = [Signal(width, name=name, reset_less=True) for name in ("sum", "carry")]
        kept = [each & (~self.first).replicate(width) for each in held]
        above = Const(-config.sums * lanes(config).words_above, width)
        # Words as a whole: no carry goes further than a place for each level of the tree.
        following = two_words(m, [*self.terms.words, *kept, above], [], width=width, name="following")
        c = Signal(FP32, name="c_held", reset_less=True)
        with m.If(self.enable_sum):
            m.d.sync += [each.eq(word[1:]) for each, word in zip(held, following, strict=True)]
            with m.If(self.first):
                m.d.sync += c.eq(self.c)
        nan = self._seen(m, term_nan(config, self.terms), self.first) if may_be_nan(config) else None

        total = Signal(signed(width), name="resolved", reset_less=True)
        beside = Signal(FP32, name="c_resolved", reset_less=True)
        x, y = (each & self.complete.replicate(width) for each in held)
        with m.If(self.enable_resolved):
            m.d.sync += [total.eq(x + y), beside.eq(c)]
            if nan is not None:
                came, nan = nan, Signal(name="nan_resolved", reset_less=True)
                m.d.sync += nan.eq(came)
        self._round(m, platform, total, beside, nan)
        return m
