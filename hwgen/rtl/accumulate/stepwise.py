"""Alignment, addition, normalisation and rounding: one step of the accumulation loop."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.terms import term_width, terms_layout
from hwgen.rtl.arithmetic.carry_save import two_words
from hwgen.rtl.arithmetic.leading_zeros import anticipate, leading_zeros
from hwgen.rtl.hierarchy import Block

__all__ = ["FP32", "Accumulate"]

FP32 = data.StructLayout({"fraction": 23, "exponent": 8, "sign": 1})
"""Fields of an IEEE 754 binary32 number."""

_BIAS = 127
_NAN = 0x7FFFFFFF


def _shift_right(m: Module, value: Value, distance: Value, extra: int, name: str) -> Signal:
    """``(value << extra) >> distance``; the low bits are dropped, i.e. the magnitude is truncated.

    The window grows stage by stage, small shifts first: the early stages are narrow.
    """
    fraction = 0  # bits below the least significant bit of value, so far
    for stage, select in enumerate(distance):
        step = 1 << stage
        grow = min(step, extra - fraction)
        fraction += grow
        kept = Cat(Value.cast(0).replicate(grow), value)
        shifted = Signal(len(kept), name=f"{name}_by{step}")
        m.d.comb += shifted.eq(Mux(select, kept >> step, kept))
        value = shifted
    assert fraction == extra
    return value


def _normalise(m: Module, value: Value, fill: Value) -> tuple[Value, Value]:
    """Shift the leading one to the top; returns the shifted value and the shift count."""
    stages: list[Signal] = []
    width = len(value)
    for log in reversed(range((width - 1).bit_length())):
        step = 1 << log
        if step >= width:
            continue
        skip = Signal(name=f"skip{step}")
        shifted = Signal(width, name=f"normal{step}")
        m.d.comb += [
            skip.eq(~value[-step:].any()),
            shifted.eq(Mux(skip, Cat(fill.replicate(step), value[:-step]), value)),
        ]
        stages.insert(0, skip)
        value = shifted
    return value, Cat(*stages)


def _shift_left(m: Module, value: Value, fill: Value, zeros: Value) -> tuple[Value, Value]:
    """Shift the leading one to the top, by ``zeros`` or one place more; as `_normalise`."""
    for log in reversed(range(len(zeros))):
        step = 1 << log
        shifted = Signal(len(value), name=f"normal{step}")
        m.d.comb += shifted.eq(Mux(zeros[log], Cat(fill.replicate(step), value)[: len(value)], value))
        value = shifted
    short = Signal(name="short")
    count = Signal(len(zeros) + 1, name="count")
    m.d.comb += [short.eq(~value[-1]), count.eq(zeros + short)]
    return Mux(short, Cat(fill, value[:-1]), value), count


class Accumulate(Block):
    """D = round(C + sum of the terms), as section 3 of the contract says.

    ::

        exponent, C.exponent --> [compare] --> larger exponent, distances
        terms[g].magnitude --> [>> distance + C's lead] --> [^ sign] --+
        C.significand      --> [>> distance]                         --+--> (aligned) --+
        +-------------------------------------------------------------------------------+
        +--> [carry-save tree] --> [add] --> (total) --> [invert if negative] --> [normalise] --> (normal) --+
        +--------------------------------------------------------------------------------------------------+
        +--> [+ 1: negation, rounding] --> [pack] --> D

    Registers in parentheses, each only where the pipeline has it. Four facts keep it small. A term other
    than zero has an exponent of at least -12, so that C below 2^-47 cannot reach the sum and results of
    the adder are never subnormal. When every block has a zero scale the sum is C itself, subnormal
    or not, which a bypass returns. Terms are below 2^32 and vanish beside a C from 2^67 on: a step
    cannot overflow, only C itself can be infinite. The carry of the final negation enters after
    normalisation, where 24 bits remain.

    A bypass across registers would have to hold all of C. With registers, C takes the way of the sum instead:
    where it is the result it counts as the larger, whatever its exponent, and every term is shifted
    out; NaN takes its place. Its exponent leaves as it came, be it a subnormal's or infinity's.

    Normalisation counts the leading zeros of the sum, or anticipates them beside the adder (``leading_zeros``), which
    takes a sixth off the critical path for a quarter more area here.

    ========  ======================================================  =================
    register  holds                                                   bits
    ========  ======================================================  =================
    aligned   words of C and the terms, signs, larger exponent        45 + 47 G
    total     sum, C's sign, larger exponent                          56; 58 with G = 4
    normal    24 leading bits, what to add to them, sign, exponent    34
    ========  ======================================================  =================

    Parameters
    ----------
    config
        ``groups``, ``fraction_bits``, ``rounding``, ``leading_zeros`` and ``pipeline``.

    Attributes
    ----------
    terms : In(terms_layout(config))
        Scaled block sums of one step.
    c : In(FP32)
        Addend.
    enter : In(1)
        Add the terms; else the result is C. Only where the pipeline has registers here.
    enable : In(1)
        Load these registers.
    d : Out(FP32)
        Result; NaN is 0x7FFFFFFF, an exact zero +0.
    latency : int
        Registers on the way, 0 to 3; 0 is combinational.

    Notes
    -----
    Groups of 16, 35 fraction bits and truncation are what MMA-Sim (arXiv 2511.10909) found, bitwise,
    for ``kind::mxf4nvf4`` on Blackwell.
    """

    module_name = "accumulate"

    def __init__(self, config: TensorCoreConfig) -> None:
        self.latency = config.interleave - 1
        self.registers = self.latency > 0
        members = {"terms": In(terms_layout(config)), "c": In(FP32), "d": Out(FP32)}
        if self.registers:
            members |= {"enter": In(1), "enable": In(1)}
        super().__init__(config, members)

    def _replaced(self, m: Module) -> tuple[data.View, Value]:
        """C with NaN and zero in their only form, and whether it is the result."""
        c, nan, alone = self.c, Signal(name="nan"), Signal(name="alone")
        special = c.exponent.all()
        replaced = Signal(FP32, name="replaced")
        m.d.comb += [
            nan.eq((self.terms.nan & self.enter) | (special & c.fraction.any())),
            alone.eq(nan | special | ~(self.terms.active & self.enter)),
            replaced.fraction.eq(c.fraction | nan.replicate(23)),
            replaced.exponent.eq(c.exponent | nan.replicate(8)),
            replaced.sign.eq(c.sign & (c.exponent.any() | c.fraction.any()) & ~nan),
        ]
        return replaced, alone

    def _anticipated(self, m: Module, addends: tuple[Value, Value], width: int) -> Value:
        """Zeros above the leading one of the sum's magnitude of ``width - 1`` bits, or one less."""
        x, y = (Signal(width + 2, name=f"addend{index}") for index in range(2))
        # The sum has its sign inverted.
        m.d.comb += [x.eq(addends[0] ^ (1 << width + 1)), y.eq(addends[1])]
        marked = anticipate(m, x, y, name="anticipated")
        # A mark above the magnitude is one place too high; in its lowest place at last there is one.
        return leading_zeros(m, Cat(1, marked[1 : width - 1], marked[width - 1 :].any()), name="zeros")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, terms, c = self.config, self.terms, self.c
        # |value| of a term is T * 2^(E - 8): the window holds it down to 2^(emax - fraction_bits).
        term_extra = config.fraction_bits - config.bounds.term_fraction
        c_extra = config.fraction_bits - 23
        term_window = term_width(config) + term_extra
        c_window = 24 + c_extra

        # C's exponent over the largest term's, -145 to 140.
        lead = Signal(9)
        c_leads = Signal()
        m.d.comb += [
            lead.eq(c.exponent - (terms.exponent + (_BIAS - config.bounds.exponent_offset))),
            c_leads.eq(~lead[-1]),
        ]
        lifted: Value = lead[:8] & c_leads.replicate(8)
        if self.registers:
            c, alone = self._replaced(m)
            c_leads |= alone
            lifted |= alone << 6  # shifts every term out; no sum of distances passes 255

        def saturated(distance: Value, window: int, name: str) -> Signal:
            """The distance, or one that shifts out the whole window."""
            bits = window.bit_length()
            result = Signal(bits, name=name)
            m.d.comb += result.eq(distance[:bits] | distance[bits:].any().replicate(bits))
            return result

        behind = Signal(8)
        m.d.comb += behind.eq(Mux(c_leads, 0, -lead))
        ahead = Signal(8)
        m.d.comb += ahead.eq(lifted)

        c_significand = Cat(c.fraction, 1)
        c_distance = saturated(behind, c_window, "c_distance")
        aligned = {"c": _shift_right(m, c_significand, c_distance, c_extra, "c")}
        # All signs are relative to C's, which saves negating it.
        for group in range(config.groups):
            term = terms.terms[group]
            if config.groups > 1:
                total = Signal(8, name=f"distance{group}")
                m.d.comb += total.eq(ahead + term.distance)
            else:
                total = ahead
            distance = saturated(total, term_window, f"saturated{group}")
            magnitude = _shift_right(m, term.magnitude, distance, term_extra, f"term{group}")
            subtract = Signal(name=f"subtract{group}")
            m.d.comb += subtract.eq(term.sign ^ c.sign)
            aligned[f"term{group}"] = magnitude ^ subtract.replicate(term_window)
            aligned[f"subtract{group}"] = subtract
        emax = Signal(8, name="base")
        aligned = self.held(m, "aligned", "enable", {**aligned, "base": emax, "sign": c.sign})

        # Every inverted sign is short of -2^term_window. For a power of two of them that is the top
        # bit of the sum; the free bits above C make up the number.
        log = (config.groups - 1).bit_length()
        width = term_window + log + 1
        # The sum may fill its word, which anticipation does not allow.
        adder_width = width + config.anticipated
        missing = (1 << log + config.anticipated) - config.groups
        words = [Cat(aligned["c"], Const(missing << (term_window - c_window), adder_width - c_window))]
        carries = []
        for group in range(config.groups):
            carries.append(aligned[f"subtract{group}"])
            words.append(Cat(aligned[f"term{group}"], ~carries[-1]))
        addends = two_words(m, words, carries, width=adder_width, name="total")
        total = Signal(adder_width, name="total")
        m.d.comb += total.eq((addends[0] + addends[1])[1:])
        found = {"sum": total, "base": aligned["base"], "sign": aligned["sign"]}
        if config.anticipated:
            found["zeros"] = self._anticipated(m, addends, width)

        held = self.held(m, "total", "enable", found)
        total, base = held["sum"], held["base"]
        negative = ~total[-1]
        inverted = Signal(width - 1)
        m.d.comb += inverted.eq(total[: width - 1] ^ negative.replicate(width - 1))
        if config.anticipated:
            normal, count = _shift_left(m, inverted, negative, held["zeros"])
        else:
            normal, count = _normalise(m, inverted, negative)
        # -x = ~x + 1: of the bits below the result only a carry through all of them matters.
        kept, dropped = normal[-24:], normal[:-24]
        increment = Signal()
        if config.rounding == "toward_zero":
            m.d.comb += increment.eq(negative & dropped.all())
        else:
            exact = Signal(len(dropped) + 1)
            m.d.comb += exact.eq(dropped + negative)
            half, sticky, carry = exact[-2], exact[:-2].any(), exact[-1]
            m.d.comb += increment.eq(carry | (half & (sticky | kept[0])))
        # The top bit of the window weighs 2^(width - 2 - fraction_bits) times 2^emax.
        unrounded = base + (width - 2 - config.fraction_bits) - count
        if "normal" in config.pipeline:
            unrounded = unrounded[:8]
        held = self.held(
            m,
            "normal",
            "enable",
            {"kept": kept, "increment": increment, "exponent": unrounded, "sign": held["sign"] ^ negative},
        )
        kept, sign = held["kept"], held["sign"]
        if self.registers:
            # Of all sums only zero has no leading one.
            kept, nonzero = kept[:-1], kept[-1]
        rounded = Signal(len(kept) + 1)
        m.d.comb += rounded.eq(kept + held["increment"])
        exponent = Signal(8)
        m.d.comb += [
            emax.eq(Mux(c_leads, c.exponent, terms.exponent + (_BIAS - config.bounds.exponent_offset))),
            exponent.eq(held["exponent"] + rounded[-1]),
        ]
        if self.registers:
            m.d.comb += self.d.eq(Cat(rounded[:23], Cat(exponent, sign) & nonzero.replicate(9)))
            return m

        zero = Signal()
        m.d.comb += zero.eq(~rounded.any())
        special = c.exponent.all()
        with m.If(terms.nan | (special & c.fraction.any())):
            m.d.comb += self.d.eq(_NAN)
        with m.Elif(special | ~terms.active):
            c_zero = ~(c.exponent.any() | c.fraction.any())
            m.d.comb += self.d.eq(Cat(c.fraction, c.exponent, c.sign & ~c_zero))
        with m.Elif(zero):
            m.d.comb += self.d.eq(0)
        with m.Else():
            m.d.comb += [
                self.d.sign.eq(sign),
                self.d.exponent.eq(exponent),
                self.d.fraction.eq(rounded[:23]),
            ]
        return m
