"""Alignment, addition, normalisation and rounding: one step of the accumulation loop."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate.aligned_sum import AlignedSum, Windows
from hwgen.rtl.accumulate.products import AlignedProducts, ProductWindows
from hwgen.rtl.accumulate.terms import emax_layout, may_be_infinite, may_rest, term_nan, terms_layout
from hwgen.rtl.arithmetic.shifters import normalise, normalise_by, saturated, shift_right
from hwgen.rtl.arithmetic.window import Window
from hwgen.rtl.hierarchy import Block, add_child

__all__ = ["FP32", "Accumulate"]

FP32 = data.StructLayout({"fraction": 23, "exponent": 8, "sign": 1})
"""Fields of an IEEE 754 binary32 number."""

_BIAS = 127
_NAN = 0x7FFFFFFF


class Exponents(NamedTuple):
    """C's exponent against the largest of the terms, which is biased here as FP32 is.

    ``lead`` is C's over it, in two's complement; ``c_leads`` that it is no less.
    """

    largest: Value
    lead: Value
    c_leads: Value


class Term(NamedTuple):
    """A term before it is shifted; ``distance`` as `terms_layout` has it."""

    magnitude: Value
    sign: Value
    distance: Value | None = None


class Products(NamedTuple):
    """Products of a block before they are shifted, as `AlignedProducts` takes them."""

    products: Value


class Compared(NamedTuple):
    """C and the terms of a step, and how far to shift them.

    ``fraction`` and ``sign`` are C's; ``hidden`` its leading bit, where that may be zero. ``behind`` is how far C's
    exponent is below the larger one, ``ahead`` how far it is above the largest of the terms. ``base`` and ``nan`` are
    those of `Aligned`. ``products``, and whether the step is at half the rate, are there with a slot.
    """

    fraction: Value
    sign: Value
    behind: Value
    ahead: Value
    base: Value
    terms: tuple[Term, ...]
    hidden: Value | None = None
    nan: Value | None = None
    products: tuple[Products, ...] = ()
    half: Value | None = None


class Word(NamedTuple):
    """Magnitude of a shifted term, inverted where ``subtract`` is set: where its sign is not C's."""

    term: Value
    subtract: Value


class Further(NamedTuple):
    """Second word of a block's products, and what to add in its lowest place; see `AlignedProducts`."""

    further: Value
    one: Value


class Aligned(NamedTuple):
    """Words of one step in one unit, 2^(emax - fraction_bits); all signs are relative to C's, which saves negating it.

    ``c`` is C's magnitude, ``base`` emax as FP32 has it, ``sign`` C's sign, ``nan`` whether the result is NaN, where
    that goes along (`Unbounded`). ``products``, and whether the step is at half the rate, are there with a slot.
    """

    c: Value
    words: tuple[Word, ...]
    base: Value
    sign: Value
    nan: Value | None = None
    products: tuple[Further, ...] = ()
    half: Value | None = None


class Total(NamedTuple):
    """Sum of the words, its own sign inverted, and what else of them is needed; ``zeros`` where it is anticipated.

    ``low``, where rows have scales: whether the sum must go to the right before it is normalised.
    """

    sum: Value
    base: Value
    sign: Value
    zeros: Value | None = None
    nan: Value | None = None
    low: Value | None = None


class Normal(NamedTuple):
    """The 24 leading bits of a sum, what to add to them, exponent and sign of the result; ``nan`` as before."""

    kept: Value
    increment: Value
    exponent: Value
    sign: Value
    nan: Value | None = None


class Lost(NamedTuple):
    """Of bits that a word lost on the right: what they carry into it when a sum is negated, and whether some is one."""

    carry: Value
    some: Value


class Rounded(NamedTuple):
    """A sum rounded: ``bits`` begin with the fraction and end with the carry; ``leading`` was its leading one.

    ``exponent`` is that of the result, the carry included.
    """

    bits: Value
    leading: Value
    exponent: Value
    sign: Value
    nan: Value | None = None


Stage = TypeVar("Stage", Compared, Aligned, Total, Normal)


def _named(stage: NamedTuple, index: str = "") -> dict[str, Value]:
    """All values of a stage by name; those of words are numbered."""
    found: dict[str, Value] = {}
    for name, value in stage._asdict().items():
        if isinstance(value, tuple):
            for number, word in enumerate(value):
                found |= _named(word, str(number))
        elif value is not None:
            found[name + index] = value
    return found


def _active(block: Accumulate) -> Value:
    """Whether a block takes part in the step."""
    active: Value = block.terms.active if may_rest(block.config) else Const(1)
    return active


def _in_fp4(value: Value, half: Value | None) -> Value:
    """A value in steps of FP4, 0 in those at half the rate."""
    return value if half is None else value & ~half.replicate(len(value))


def _infinite(c: data.View, terms: Any) -> tuple[Value, Value]:
    """Whether a product is infinite or NaN, and whether one has the other sign than an infinite C."""
    return terms.positive | terms.negative, Mux(c.sign, terms.positive, terms.negative) & c.exponent.all()


class Bypassed:
    """Without registers C is there all the time: NaN, infinity, and C where no block takes part, pass by the datapath.

    Attributes
    ----------
    c : View of FP32
        C as the datapath takes it.
    """

    def __init__(self, m: Module, block: Accumulate) -> None:
        self.c, self.terms, self.active = block.c, block.terms, _active(block)
        self.config = block.config
        self.nan: Value | None = None

    def exponent(self, normal: Normal, carry: Value) -> Value:
        """The result's exponent: the sum's, and the carry of its rounding."""
        return normal.exponent + carry

    def leads(self, c_leads: Value) -> Value:
        """Whether C counts as the larger: where it is."""
        return c_leads

    def ahead(self, lead: Value, window: Window) -> Value:
        """How far C's exponent moves the terms, whose words are those of ``window``."""
        return lead

    def rounded(self, normal: Normal) -> Value:
        """The bits that are rounded: all, for without a leading one they are zero."""
        return normal.kept

    def finish(self, m: Module, d: data.View, rounded: Rounded) -> None:
        """Choose between NaN, C, zero and the sum."""
        c, terms = self.c, self.terms
        zero = Signal()
        m.d.comb += zero.eq(~rounded.bits.any())
        special = c.exponent.all()
        nan = term_nan(self.config, terms) | (special & c.fraction.any())
        if may_be_infinite(self.config):
            infinite, unlike = _infinite(c, terms)
            nan |= unlike
        with m.If(nan):
            m.d.comb += d.eq(_NAN)
        if may_be_infinite(self.config):
            with m.Elif(infinite):
                m.d.comb += d.eq(Cat(Const(0, 23), Const(0xFF, 8), terms.negative))
        with m.Elif(special | ~self.active):
            c_zero = ~(c.exponent.any() | c.fraction.any())
            m.d.comb += d.eq(Cat(c.fraction, c.exponent, c.sign & ~c_zero))
        with m.Elif(zero):
            m.d.comb += d.eq(0)
        with m.Else():
            m.d.comb += [
                d.sign.eq(rounded.sign),
                d.exponent.eq(rounded.exponent),
                d.fraction.eq(rounded.bits[:23]),
            ]


class Carried:
    """With registers C takes the way of the sum: a bypass across them would have to hold all of it.

    Where C is the result it counts as the larger, whatever its exponent, and every term is shifted out; NaN takes its
    place. Its exponent leaves as it came, be it a subnormal's or infinity's. Attributes as of `Bypassed`.
    """

    def __init__(self, m: Module, block: Accumulate) -> None:
        c, terms, enter = block.c, block.terms, block.enter
        nan, alone = Signal(name="nan"), Signal(name="alone")
        special = c.exponent.all()
        replaced = Signal(FP32, name="replaced")
        fraction, exponent, sign = c.fraction, c.exponent, c.sign & (c.exponent.any() | c.fraction.any())
        found: Value = term_nan(block.config, terms)
        if may_be_infinite(block.config):
            infinite, unlike = _infinite(c, terms)
            infinite &= enter
            found |= unlike
            special |= infinite
            fraction &= ~infinite.replicate(23)
            exponent |= infinite.replicate(8)
            sign = Mux(infinite, terms.negative, sign)
        m.d.comb += [
            nan.eq((found & enter) | (c.exponent.all() & c.fraction.any())),
            alone.eq(nan | special | ~(_active(block) & enter)),
            replaced.fraction.eq(fraction | nan.replicate(23)),
            replaced.exponent.eq(exponent | nan.replicate(8)),
            replaced.sign.eq(sign & ~nan),
        ]
        self.c, self.alone = replaced, alone
        self.nan: Value | None = None

    def exponent(self, normal: Normal, carry: Value) -> Value:
        """The result's exponent: the sum's, and the carry of its rounding."""
        return normal.exponent + carry

    def leads(self, c_leads: Value) -> Value:
        """Whether C counts as the larger: where it is, or is the result."""
        return c_leads | self.alone

    def ahead(self, lead: Value, window: Window) -> Value:
        """How far C's exponent moves the terms: where C is the result, out of their window at least."""
        return lead | self.alone << window.emptying

    def rounded(self, normal: Normal) -> Value:
        """The bits that are rounded: all but the leading one, which tells whether the sum is zero."""
        return normal.kept[:-1]

    def finish(self, m: Module, d: data.View, rounded: Rounded) -> None:
        """Clear sign and exponent of zero: of all sums only that has no leading one."""
        nonzero = rounded.leading.replicate(9)
        m.d.comb += d.eq(Cat(rounded.bits[:23], Cat(rounded.exponent, rounded.sign) & nonzero))


class Unbounded:
    """Where sums may be subnormal, or beyond FP32: C takes the way of the sum, registers or not, and NaN goes along.

    C is normalised no further than its exponent allows, as is every sum. So a subnormal C comes out as it went in, and
    an infinite one has the exponent 255. Where products may be infinite, an infinite C takes the place of C then, or
    NaN where the two have unlike signs. Attributes as of `Bypassed`.
    """

    def __init__(self, m: Module, block: Accumulate) -> None:
        c, terms = block.c, block.terms
        enter: Value = block.enter if block.registers else Const(1)
        nan, alone = Signal(name="nan"), Signal(name="alone")
        special = c.exponent.all()
        m.d.comb += [
            nan.eq((term_nan(block.config, terms) & enter) | (special & c.fraction.any())),
            alone.eq(special | ~(_active(block) & enter)),
        ]
        self.c, self.alone = c, alone
        self.nan: Value | None = nan
        if may_be_infinite(block.config):
            self._meet_infinities(m, terms, enter)

    def _meet_infinities(self, m: Module, terms: Any, enter: Value) -> None:
        """Put the infinity that a product is in the place of C."""
        c, replaced = self.c, Signal(FP32, name="replaced")
        infinite, unlike = Signal(name="infinite"), Signal(name="unlike")
        m.d.comb += [
            infinite.eq((terms.positive | terms.negative) & enter),
            unlike.eq(Mux(c.sign, terms.positive, terms.negative) & enter & c.exponent.all()),
            replaced.fraction.eq(c.fraction),
            replaced.exponent.eq(c.exponent | infinite.replicate(8)),
            replaced.sign.eq(Mux(infinite, terms.negative, c.sign)),
        ]
        assert self.nan is not None
        self.c, self.alone, self.nan = replaced, self.alone | infinite, self.nan | unlike

    def exponent(self, normal: Normal, carry: Value) -> Value:
        """The result's exponent: that of subnormal numbers is 0, and 1 once a carry makes them normal."""
        return Mux(normal.kept[-1], normal.exponent, 0) + carry

    def leads(self, c_leads: Value) -> Value:
        """Whether C counts as the larger: where it is, or is the result."""
        return c_leads | self.alone

    def ahead(self, lead: Value, window: Window) -> Value:
        """How far C's exponent moves the terms: where C is the result, out of their window at least."""
        return lead | self.alone << window.emptying

    def rounded(self, normal: Normal) -> Value:
        """The bits that are rounded: all but the leading one, which subnormal numbers lack."""
        return normal.kept[:-1]

    def finish(self, m: Module, d: data.View, rounded: Rounded) -> None:
        """Choose between NaN, infinity and the sum. Whatever is zero after rounding is +0."""
        assert rounded.nan is not None
        infinite, fraction, exponent = Signal(), Signal(23), Signal(8, name="exponent")
        m.d.comb += [
            infinite.eq(rounded.exponent[:8].all() | rounded.exponent[8:].any()),
            fraction.eq(rounded.bits[:23] & ~infinite.replicate(23)),
            exponent.eq(rounded.exponent[:8] | infinite.replicate(8)),
        ]
        with m.If(rounded.nan):
            m.d.comb += d.eq(_NAN)
        with m.Else():
            m.d.comb += d.eq(Cat(fraction, exponent, rounded.sign & (fraction.any() | exponent.any())))


Special = Bypassed | Carried | Unbounded


class Accumulate(Block):
    """D = round(C + sum of the terms), as section 3 of the contract says.

    One step of the accumulation loop. Without registers D follows the inputs. With some, a step enters where ``enter``
    is set and D is its result ``latency`` cycles of ``enable`` later; where ``enter`` is not set, C comes out, as an
    accumulator holds it.

    ::

        exponent, C.exponent --> [compare] --> larger exponent, distances --> (compared)
        terms[g].magnitude --> (compared) --> [>> distance + C's lead] --> [^ sign] --+
        C.significand      --> (compared) --> [>> distance] --------------------------+--> (aligned) --+
        +----------------------------------------------------------------------------------------------+
        +--> [aligned sum: carry-save tree, (addends), add] --> (total) -------------------------------+
        +----------------------------------------------------------------------------------------------+
        +--> [invert if negative] --> [normalise] --> (normal) --> [+ 1: negation, rounding] --> [pack] --> D

    Registers in parentheses, each only where the pipeline has it. A method for each stage: `_compared`, `_align`,
    `_add`, `_normalise` and `_round`; the sum itself is a block of its own, `AlignedSum`. What is no sum passes by
    (`Bypassed`) or, where there are registers, goes along (`Carried`). With scales such as E8M0 sums may have any
    exponent; then subnormal and infinite results are made, too (`Unbounded`). Normalisation counts the leading zeros of
    the sum, or anticipates them beside the adder (``leading_zeros``).

    ========  ======================================================  =================
    register  holds                                                   bits
    ========  ======================================================  =================
    compared  C, terms, distances, larger exponent                    64; 144 with G = 4
    aligned   words of C and the terms, signs, larger exponent        45 + 47 G
    addends   two words, C's sign, larger exponent                    93; 108 with G = 4
    total     sum, C's sign, larger exponent                          56; 58 with G = 4
    normal    24 leading bits, what to add to them, sign, exponent    34
    ========  ======================================================  =================

    Cost: of all blocks of an element but the dot product this is the largest; reports/overhead.md has its area,
    docs/datapath.md what anticipation takes off the path and adds to the area.

    Why it is right: four facts keep it small. `hwgen.formats.Bounds` has them for any formats. `Unbounded` is for pairs
    for which one does not hold. The figures here are those of MixFP4. A term other than zero has an exponent of at
    least -12, so that C below 2^-47 cannot reach the sum and results of the adder are never subnormal. When every
    block has a zero scale the sum is C itself, subnormal or not. Terms are below 2^32 and vanish beside a C from 2^67
    on: a step cannot overflow, only C itself can be infinite. The carry of the final negation enters after
    normalisation, where 24 bits remain. docs/proofs.md lists what is proven of it.

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
    enable_products : In(1)
        Load what ``compared`` has of products; only where there are both.
    d : Out(FP32)
        Result; NaN is 0x7FFFFFFF, an exact zero +0.
    latency : int
        Registers on the way, 0 to 5; 0 is combinational.

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
        if config.slotted and "compared" in config.pipeline:
            members["enable_products"] = In(1)
        super().__init__(config, members)
        self.windows = Windows.of(config)
        self.bits, highest = config.bounds.distance_bits(config.fraction_bits), config.bounds.highest_exponent
        if config.half_scaled:
            bits, lowest = emax_layout(config)
            highest = lowest + (1 << bits) - 1
            ahead, behind = _BIAS + 1 - lowest + (1 << self.windows.aligned_term.emptying), highest + _BIAS
            self.bits = max(self.bits, ahead.bit_length(), behind.bit_length())
        # Of a sum, which may be as long as its window above the largest exponent.
        highest = _BIAS + highest + self.windows.sum.top
        self.exponent_bits = max(highest.bit_length(), 9) if config.unbounded else 8

    def elaborate(self, platform: object) -> Module:
        m = Module()
        exponents = self._compare(m)
        special: Special = Bypassed(m, self)
        if self.config.unbounded:
            special = Unbounded(m, self)
        elif self.registers:
            special = Carried(m, self)
        compared = self._behind(m, "compared", self._compared(m, exponents, special))
        aligned = self._align(m, compared)
        if self.config.slotted:
            aligned = self._with_products(m, platform, aligned, compared)
        aligned = self._behind(m, "aligned", aligned)
        total = self._behind(m, "total", self._add(m, platform, aligned))
        normal = self._behind(m, "normal", self._normalise(m, total))
        rounded = self._round(m, normal, special)
        special.finish(m, self.d, rounded)
        return m

    def _behind(self, m: Module, register: str, stage: Stage) -> Stage:
        """What a stage hands on, behind its register, if there is one."""
        named = _named(stage)
        products = {name: value for name, value in named.items() if isinstance(stage, Compared) and "products" in name}
        held = self.held(m, register, "enable", {name: named[name] for name in named if name not in products})
        if products:
            held |= self.held(m, register, "enable_products", products)
        values = iter([held[name] for name in named])
        fields: list[Any] = []
        for value in stage:
            if isinstance(value, tuple):
                words = ((part if part is None else next(values) for part in word) for word in value)
                fields.append(tuple(type(word)(*parts) for word, parts in zip(value, words, strict=True)))
            else:
                fields.append(None if value is None else next(values))
        return type(stage)(*fields)

    def _compare(self, m: Module) -> Exponents:
        """Subtract exponents."""
        largest = self.terms.exponent + (_BIAS + emax_layout(self.config)[1])
        lead = Signal(self.bits + 1)  # for MixFP4 from -145 to 140
        c_leads = Signal()
        leads: Value = ~lead[-1]
        if self.config.half_scaled:  # a C of zero takes no part; in steps of FP4 it never leads
            leads &= self.c.exponent.any() | self.c.fraction.any()
        m.d.comb += [lead.eq(self._exponent_of(self.c) - largest), c_leads.eq(leads)]
        return Exponents(largest, lead, c_leads)

    def _exponent_of(self, c: data.View) -> Value:
        """C's exponent; subnormal numbers have that of the smallest normal one, if they count."""
        if not self.config.unbounded:
            return c.exponent
        return Cat(c.exponent[0] | ~c.exponent.any(), c.exponent[1:])

    def _compared(self, m: Module, exponents: Exponents, special: Special) -> Compared:
        """Say how far C and all terms are from the larger exponent."""
        config, terms, c, lead, windows = self.config, self.terms, special.c, exponents.lead, self.windows
        c_leads = special.leads(exponents.c_leads)
        # Of products with scales the largest exponent may lie below all that FP32 has.
        shape = signed(self.bits + 1) if config.half_scaled else self.bits
        # Which names Amaranth finds by itself on such a line depends on the version of Python.
        base, behind = Signal(shape), Signal(self.bits, name="behind")
        m.d.comb += [
            base.eq(Mux(c_leads, self._exponent_of(special.c), exponents.largest)),
            behind.eq(Mux(c_leads, 0, -lead)),
        ]
        ahead = Signal(self.bits)
        m.d.comb += ahead.eq(special.ahead(lead[:-1] & exponents.c_leads.replicate(self.bits), windows.aligned_term))
        if "compared" in config.pipeline:  # no more bits than it takes
            ahead = saturated(m, ahead, windows.aligned_term, name="ahead_of_terms")
        return Compared(
            fraction=c.fraction,
            sign=c.sign,
            behind=saturated(m, behind, windows.aligned_c, name="c_distance"),
            ahead=ahead,
            base=base,
            terms=tuple(
                Term(term.magnitude, term.sign, term.distance if config.groups > 1 else None) for term in terms.terms
            ),
            hidden=c.exponent.any() if config.unbounded else None,
            nan=special.nan,
            products=self._products(m, ahead) if config.slotted else (),
            half=terms.half if config.slotted else None,
        )

    def _products(self, m: Module, ahead: Value) -> tuple[Products, ...]:
        """Products of all blocks, with distances below the larger exponent, of which C may have ``ahead`` more."""
        terms, windows = self.terms, ProductWindows(self.config)
        ahead = saturated(m, ahead & terms.half.replicate(len(ahead)), windows.aligned, name="ahead_of_products")
        found = []
        for group, products in enumerate(terms.products):
            moved = Signal.like(products, name=f"products{group}")
            for index, product in enumerate(products):
                total = Signal(windows.distance_bits + 1, name=f"total{group}_{index}")
                m.d.comb += [
                    total.eq(ahead + product.distance),
                    moved[index].magnitude.eq(product.magnitude),
                    moved[index].sign.eq(product.sign),
                    moved[index].distance.eq(saturated(m, total, windows.aligned, name=f"moved{group}_{index}")),
                ]
            found.append(Products(Value.cast(moved)))
        return tuple(found)

    def _align(self, m: Module, compared: Compared) -> Aligned:
        """Shift C and all terms to the larger exponent."""
        windows, ahead = self.windows, compared.ahead
        significand = Cat(compared.fraction, Const(1) if compared.hidden is None else compared.hidden)
        magnitude = shift_right(
            m, significand, compared.behind, own=windows.significand, into=windows.aligned_c, name="c"
        )
        words = []
        for group, term in enumerate(compared.terms):
            distance = ahead
            if term.distance is not None:
                distance = Signal(self.bits, name=f"distance{group}")
                m.d.comb += distance.eq(ahead + term.distance)
            distance = saturated(m, distance, windows.aligned_term, name=f"saturated{group}")
            shifted = shift_right(
                m, term.magnitude, distance, own=windows.term, into=windows.aligned_term, name=f"term{group}"
            )
            subtract = Signal(name=f"subtract{group}")
            m.d.comb += subtract.eq(_in_fp4(term.sign ^ compared.sign, compared.half))
            words.append(Word(shifted ^ subtract.replicate(len(shifted)), subtract))
        return Aligned(magnitude, tuple(words), compared.base, compared.sign, compared.nan)

    def _with_products(self, m: Module, platform: object, aligned: Aligned, compared: Compared) -> Aligned:
        """Put words of products where those of terms are, which are zero at half the rate, and cut C as they are."""
        config, windows, half = self.config, ProductWindows(self.config), compared.half
        assert half is not None
        words, products = [], []
        for group, word in enumerate(aligned.words):
            block = add_child(m, platform, f"products{group}", AlignedProducts, config)
            m.d.comb += [
                block.products.eq(compared.products[group].products),
                block.half.eq(half),
                block.sign.eq(aligned.sign),
            ]
            # Ones all the way down carry a one of weight 1 to where it belongs.
            placed = Cat(block.ones[0].replicate(windows.below), block.words[0])
            words.append(Word(word.term | placed, word.subtract | block.ones[0]))
            products.append(Further(block.words[1], block.ones[1]))
        cut = Signal(windows.below, name="c_cut")  # without it a netlist has bits of C that nobody reads
        m.d.comb += cut.eq(_in_fp4(aligned.c[: windows.below], half))
        c = Cat(cut, aligned.c[windows.below :])
        return aligned._replace(c=c, words=tuple(words), products=tuple(products), half=half)

    def _add(self, m: Module, platform: object, aligned: Aligned) -> Total:
        """Add all words, and anticipate the leading zeros of their sum if that is asked for."""
        block = add_child(m, platform, "step_sum", AlignedSum, self.config)
        m.d.comb += block.c.eq(aligned.c)
        for index, word in enumerate(aligned.words):
            m.d.comb += [block.terms[index].eq(word.term), block.subtract[index].eq(word.subtract)]
        for index, product in enumerate(aligned.products):
            m.d.comb += [block.further[index].eq(product.further), block.ones[index].eq(product.one)]
        if aligned.half is not None:
            m.d.comb += block.half.eq(aligned.half)
        if "addends" in self.config.pipeline:
            m.d.comb += block.enable.eq(self.enable)
        nan = {} if aligned.nan is None else {"nan": aligned.nan}
        beside = self.held(m, "addends", "enable", {"base": aligned.base, "sign": aligned.sign, **nan})
        total = Total(block.sum, beside["base"], beside["sign"], nan=beside.get("nan"))
        if self.config.anticipated:
            return total._replace(zeros=block.zeros)
        if self.config.half_scaled:
            return total._replace(low=self._places(total)[-1])
        return total

    def _normalise(self, m: Module, total: Total) -> Normal:
        """Shift the leading one of the magnitude to the top, and decide on the rounding of what lies below 24 bits."""
        negative = ~total.sum[-1]
        inverted = Signal(self.windows.sum.width)
        m.d.comb += inverted.eq(total.sum[: self.windows.sum.width] ^ negative.replicate(self.windows.sum.width))
        top = self.windows.sum.top - 1
        base = total.base.as_signed() if self.config.half_scaled else total.base
        lost = Lost(negative, Const(0))
        if total.zeros is not None:
            normal, count = normalise_by(m, inverted, negative, total.zeros)
        elif self.config.half_scaled:
            assert total.low is not None
            moved, lost = self._moved(m, inverted, negative, total.low)
            normal, count = normalise(m, moved, negative, self._limit_of_low(m, total.low, self._places(total)))
        else:
            limit = self._limit(m, base + (top - 1), len(inverted)) if self.config.wide else None
            normal, count = normalise(m, inverted, negative, limit)
        # -x = ~x + 1: of the bits below the result only a carry through all of them matters.
        kept, dropped = normal[-24:], normal[:-24]
        increment = Signal()
        if self.config.rounding == "toward_zero":
            m.d.comb += increment.eq(lost.carry & dropped.all())
        else:
            exact = Signal(len(dropped) + 1)
            m.d.comb += exact.eq(dropped + lost.carry)
            half, sticky, carry = exact[-2], exact[:-2].any(), exact[-1]
            if self.config.half_scaled:
                sticky |= lost.some
            m.d.comb += increment.eq(carry | (half & (sticky | kept[0])))
        # The window's unit is relative to emax, and so is its highest place.
        exponent = base + top - count
        if "normal" in self.config.pipeline or self.config.unbounded:
            exponent = exponent[: self.exponent_bits]
        return Normal(kept, increment, exponent, total.sign ^ negative, total.nan)

    @property
    def _right(self) -> tuple[int, int]:
        """How far a sum below FP32 goes to the right, and how many places more its word has for that.

        Its first place is some below that of the word. So it need not go to the right by all 24 places of a result:
        what lies further below is zero as it is. A result and one bit more stay in the word.
        """
        right = 25 - (self.windows.sum.top - ProductWindows(self.config).top)
        return right, max(0, right - (self.windows.sum.width - 24))

    def _places(self, total: Total) -> Value:
        """How far a sum may go to the left; where that is negative, how far it must go to the right.

        Only sums of products must, with a C of zero: others have its exponent at least.
        """
        return total.base.as_signed() + (self.windows.sum.top - 2)

    def _limit_of_low(self, m: Module, low: Value, places: Value) -> Value:
        """As `_limit`, once what is ``low`` has gone to the right."""
        right, further = self._right
        bits = (self.windows.sum.width + further - 1).bit_length()
        # Below 0, down from the lowest exponent there is, nothing is left of the sum.
        least = _BIAS + emax_layout(self.config)[1] + self.windows.sum.top - 2 + right
        back, limit = Signal(max((-least - 1).bit_length(), bits) + 1, name="back"), Signal(bits, name="limit")
        above, beyond = Signal(name="above"), Signal(name="beyond")
        m.d.comb += [
            back.eq(places + right),
            above.eq(places[bits:-1].any()),
            beyond.eq(back[bits:].any()),
            limit.eq(Mux(low, back[:bits] & ~beyond.replicate(bits), places[:bits] | above.replicate(bits))),
        ]
        return limit

    def _moved(self, m: Module, inverted: Value, negative: Value, low: Value) -> tuple[Value, Lost]:
        """The word to normalise: where a sum lies below FP32's subnormal numbers, it goes to the right, all at once.

        Returns what was lost on the right, too.
        """
        right, further = self._right
        word, moved = Cat(negative.replicate(further), inverted), Signal(len(inverted) + further, name="moved")
        m.d.comb += moved.eq(Mux(low, word >> right, word))
        # A product has no places below its window; words of `AlignedSum` have zeros there.
        lost = word[ProductWindows(self.config).below + further : right]
        ones, some = lost.all(), Mux(negative, ~lost.all(), lost.any())
        return moved, Lost(negative & (ones | ~low), some & low)

    def _limit(self, m: Module, places: Value, width: int) -> Value:
        """At most as many places as there are to the exponent of subnormal numbers, in the bits of a count."""
        wanted = Signal(len(places), name="places")
        m.d.comb += wanted.eq(places)
        bits = (width - 1).bit_length()
        limit = Signal(bits, name="limit")
        m.d.comb += limit.eq(wanted[:bits] | wanted[bits:].any().replicate(bits))
        return limit

    def _round(self, m: Module, normal: Normal, special: Special) -> Rounded:
        """Add the increment; a carry out of it is one into the exponent."""
        kept = special.rounded(normal)
        rounded = Signal(len(kept) + 1)
        m.d.comb += rounded.eq(kept + normal.increment)
        exponent = Signal(self.exponent_bits)
        m.d.comb += exponent.eq(special.exponent(normal, rounded[-1]))
        return Rounded(rounded, normal.kept[-1], exponent, normal.sign, normal.nan)
