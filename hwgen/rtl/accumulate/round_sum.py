"""The exact sum of a fixed-point number and an FP32 number, rounded once."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.fixed_point import sum_width
from hwgen.rtl.accumulate.stepwise import FP32
from hwgen.rtl.accumulate.terms import may_be_nan
from hwgen.rtl.arithmetic.carry_save import add_words
from hwgen.rtl.arithmetic.leading_zeros import leading_zeros
from hwgen.rtl.arithmetic.shifters import shift_left
from hwgen.rtl.hierarchy import Block

__all__ = ["RoundSum"]

_BIAS = 127
_SIGNIFICAND = 24
_BELOW = 25
"""Bits of the window below the unit of the sum: what 24 bits and one for rounding need beside a C that is smaller."""
_GROUP = 3
"""A group that is compared with the sign as a whole has 2^3 bits."""


class RoundSum(Block):
    """D = FP32 of sum + C, to nearest even, whatever the two are.

    ::

        C.significand --> [<< exponent] --> window --> [+] --> (total) --> [normalise] --> (normal) --> [+ 1] --> D
                                  |                     ^                   ^    |           ^
        sum --> [^ C.sign] -------|---------------------+                   |    +-- count --+-- C instead?
                                  +-- below the window: sticky -------------+

    The window of the adder::

        2^(a + 24)              2^a        2^-20                  2^-45
        |  the sum's sign        |   sum     |    C's bits alone     |  sticky
        |  C, wherever it lies: 24 bits at 2^(exponent - 23)         |

    With sums below 2^a in magnitude it need be no wider. From 2^(a + 25) on C is the result: the sum is less
    than half of its last place. C below 2^-21 may lie beneath the window, sticky; unless the sum is zero both
    have their leading one at 2^-21 or above, and if it is zero, as that leading one tells, C is the result again.
    The sum cannot make FP32 overflow: only an infinite C gives infinity.

    All signs are relative to C's, so that the 25 low bits are C's own. A negative total is negated only when 24 bits
    are left: -x has the trailing zeros of x, so whether there are ones below the last place is known without it.

    ========  ==========================================  ==============
    register  holds                                       bits
    ========  ==========================================  ==============
    total     sum of both, sticky, C, NaN                 a + 105
    normal    D before the rounding, what to add to it    33
    ========  ==========================================  ==============

    Parameters
    ----------
    config
        Formats and ``largest_depth`` give the sum's width, and with it a = width - 21 (for a unit of 2^-20, that of
        NVFP4 and MixFP4); ``pipeline`` has the registers.

    Attributes
    ----------
    sum : In(signed(sum_width(config)))
        Fixed-point number in units of 2^-20.
    c : In(FP32)
        Addend.
    nan : In(1)
        The result is NaN; only where the sum may be.
    enable_total, enable_normal : In(1)
        Load the register; each only where the pipeline has it.
    d : Out(FP32)
        Result; NaN is 0x7FFFFFFF, an exact zero +0, subnormals are kept.
    latency : int
        Registers on the way, 0 to 2; 0 is combinational.
    """

    module_name = "round_sum"

    def __init__(self, config: TensorCoreConfig) -> None:
        registers = [register for register in ("total", "normal") if register in config.pipeline]
        self.latency = len(registers)
        self.registers = self.latency > 0
        members = {"sum": In(signed(sum_width(config))), "c": In(FP32), "d": Out(FP32)}
        if may_be_nan(config):
            members["nan"] = In(1)
        super().__init__(config, members | {f"enable_{register}": In(1) for register in registers})

    def _normalised(self, m: Module, value: Value, negative: Value) -> tuple[Value, Value, Value]:
        """Shift the first bit that is not the sign to the top.

        All groups of eight bits are compared with the sign at once. So shifts by eight and more need not wait for one
        another. The last three look at what the shift before leaves.

        Returns the 25 leading bits, whether there are ones below them, and the shift count.
        """
        coarse = self._groups_of_sign(m, value, negative)
        skips: list[Signal] = []
        sticky: Value = Value.cast(0)
        for log in reversed(range((len(value) - 1).bit_length())):
            step = 1 << log
            skip = Signal(name=f"skip{step}")
            top = value[-step:]
            m.d.comb += skip.eq(coarse[log - _GROUP] if log >= _GROUP else Mux(negative, top.all(), ~top.any()))
            # What is left to come shifts by less than this step; no lower bit can get among the leading ones.
            width = min(len(value), _SIGNIFICAND + step)
            low = len(value) - width
            lowest = max(low - step, 0)
            dropped = Signal(name=f"dropped{step}")
            shifted = Signal(width, name=f"normal{step}")
            m.d.comb += [
                dropped.eq(value[:lowest].any() | (~skip & value[lowest:low].any())),
                shifted.eq(Mux(skip, value << step, value)[low : len(value)]),
            ]
            sticky |= dropped
            skips.insert(0, skip)
            value = shifted
        return value, sticky, Cat(*skips)

    def _groups_of_sign(self, m: Module, value: Value, negative: Value) -> Value:
        """How many groups of eight bits are the sign alone, from the top down, in binary."""
        size = 1 << _GROUP
        groups = [value[high - size : high] for high in range(len(value), size, -size)]
        unlike = Signal(len(groups), name="unlike")
        m.d.comb += unlike.eq(Cat(Mux(negative, ~group.all(), group.any()) for group in reversed(groups)))
        # The last group counts as unlike: the count is never more than all others.
        return leading_zeros(m, Cat(Const(1, 1), unlike), name="groups")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = len(self.sum) - 1
        unit = self.config.bounds.exact_unit
        top = bits - unit + 24  # exponent of the window's highest bit
        width = top + 1 + unit + _BELOW

        # C's significand starts below the window, where all of it is sticky.
        lowest = _BIAS - unit - _BELOW - 1
        above = self.c.exponent - lowest
        significand = Cat(self.c.fraction, self.c.exponent.any())
        shift = width.bit_length()
        distance = above[:shift] & (~above[-1]).replicate(shift)
        placed = shift_left(m, significand, distance, width=width + _SIGNIFICAND, name="c")
        beneath, window = placed[:_SIGNIFICAND], placed[_SIGNIFICAND:]
        high = window[_BELOW:]
        relative = self.sum.as_unsigned() ^ self.c.sign.replicate(bits + 1)
        upper = add_words(
            m,
            [high, Cat(relative, relative[-1].replicate(len(high) - bits))],
            [self.c.sign],
            width=len(high) + 1,
            name="upper",
        )
        held = self.held(
            m,
            "total",
            "enable_total",
            {
                "sum": Cat(window[:_BELOW], upper),
                "beneath": beneath.any(),
                "c": self.c.as_value(),
                **({"nan": self.nan} if may_be_nan(self.config) else {}),
            },
        )
        became_nan = held.get("nan", Const(0))
        negative, c = held["sum"][-1], FP32(held["c"])
        leading, sticky, count = self._normalised(m, held["sum"][:-1], negative)

        rest, half = Signal(), Signal()
        kept = Signal(_SIGNIFICAND)
        m.d.comb += [
            kept.eq(leading[1:] ^ negative.replicate(_SIGNIFICAND)),
            rest.eq(sticky | held["beneath"]),
            half.eq(leading[0] ^ (negative & rest)),
        ]
        # Without a bit below, the negation carries into what is kept.
        increment = Mux(rest | half, half & (rest | kept[0]), negative)
        small, alone, nonzero = Signal(), Signal(), kept[-1]
        m.d.comb += [
            small.eq((c.exponent - (_BIAS - unit - 1))[-1] & (count > Const(top + unit + 1, len(count)))),
            alone.eq(small | (c.exponent > Const(_BIAS + top, 8)) | became_nan),
        ]
        nan = Signal()
        m.d.comb += nan.eq(became_nan | (c.exponent.all() & c.fraction.any()))
        fraction = Mux(alone, c.fraction, kept[:-1])
        exponent = Mux(alone, c.exponent, (_BIAS + top - count)[:8] & nonzero.replicate(8))
        zero = ~(c.exponent.any() | c.fraction.any())
        sign = Mux(alone, c.sign & ~zero, (c.sign ^ negative) & nonzero)
        held = self.held(
            m,
            "normal",
            "enable_normal",
            {
                "magnitude": Cat(fraction, exponent) | nan.replicate(31),
                "sign": sign & ~nan,
                "increment": increment & ~alone,
            },
        )
        # A carry out of the fraction is one into the exponent.
        m.d.comb += self.d.eq(Cat((held["magnitude"] + held["increment"])[:31], held["sign"]))
        return m
