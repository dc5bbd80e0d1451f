"""The accumulator of one step, and the rounding of exact sums, proven for all inputs that there can be.

They are cut where their registers may stand: what a register would hold becomes an output, what follows reads a free
input. Every part ensures what the next one assumes, so that together they are the whole::

    C, terms -> aligned words -> (carry-save tree) -> two words -> (adder) -> sum -> D
    C, fixed-point sum -> sum of both -> D

With a slot there is a step at half the rate, too, whose products become words in blocks of their own. Those are left
out here, and proven in ``test_products_proof.py``::

    C, products -> products with their distances -> (blocks) -> words, where those of terms are

The tree has a proof of columns: for each, what enters is what leaves, the carries counted twice. Added up by
weight, the carries cancel, and the two words have the sum of all words.
"""

import itertools
from functools import partial
from unittest import mock

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal, Value

from hwgen.config import LOOP_REGISTERS, NAMED, TensorCoreConfig
from hwgen.rtl.accumulate import stepwise
from hwgen.rtl.accumulate.aligned_sum import AlignedSum
from hwgen.rtl.accumulate.products import AlignedProducts, ProductWindows
from hwgen.rtl.accumulate.round_sum import RoundSum
from hwgen.rtl.accumulate.stepwise import Accumulate
from hwgen.rtl.accumulate.terms import term_width, terms_layout
from hwgen.rtl.arithmetic import carry_save
from hwgen.verilog import design
from sim.mutate.relation import in_range

LARGEST = 16 * 12 * 12 * 15 * 15
LOWEST, SPAN = -12, 30  # exponents of terms
LOWEST_PRODUCT, HIGHEST_PRODUCT = -28, 30
INFINITE = HIGHEST_PRODUCT + 2  # the exponent of a product of what is infinite or NaN


def declared(kind, signals):
    return [f"{kind} [{len(signal) - 1}:0] {name}" for name, signal in signals.items()]


def counts(name, words, width):
    """How many bits of words with weights are set in each column: the counts' bits are ``name1`` to ``name16``."""
    assert sum(weight for _, weight in words) < 32
    steps = []
    for word, weight in words:
        steps.append(f"carry = {word};")
        while weight < 32:
            steps.append(f"both = {name}{weight} & carry; {name}{weight} = {name}{weight} ^ carry; carry = both;")
            weight *= 2
    return f"""
  reg [{width - 1}:0] {name}1, {name}2, {name}4, {name}8, {name}16;
  always @* begin : {name}ing
    reg [{width - 1}:0] carry, both;
    {name}1 = 0; {name}2 = 0; {name}4 = 0; {name}8 = 0; {name}16 = 0;
    {" ".join(steps)}
  end
"""


class Cut:
    """A block cut at its registers: ``REGISTER_NAME`` is an output, ``after_REGISTER_NAME`` an input."""

    def __init__(self, config):
        super().__init__(config)
        self.inputs = {name: Value.cast(getattr(self, name)) for name in self.signature.members}
        self.outputs = {"d": self.inputs.pop("d")}
        self.module = self.pieces()

    def pieces(self):
        return super().elaborate(None)

    def elaborate(self, platform):
        return self.module

    def held(self, m, register, enable, values):
        if register == "compared":  # no cut: the alignment is proven as a whole
            return values
        return {name: self.cut(m, f"{register}_{name}", value) for name, value in values.items()}

    def cut(self, m, name, value):
        handed, taken = Signal(len(value), name=name), Signal(len(value), name=f"after_{name}")
        m.d.comb += handed.eq(value)
        self.outputs[handed.name], self.inputs[taken.name] = handed, taken
        return taken

    def text(self):
        ports = [*self.inputs.values(), *self.outputs.values()]
        return rtlil.convert(self, name="top", ports=ports, emit_src=False)

    def miter(self, body):
        """A module that holds the block, with its names, and has the output ``wrong``."""
        return f"""
module miter({", ".join(declared("input", self.inputs))}, output wrong);
  {"; ".join(declared("wire", self.outputs))};
  top block(.*);
  {body}
endmodule
"""

    def kept(self, register):
        """What stands before a register stands behind it."""
        names = [name for name in self.outputs if name.startswith(f"{register}_")]
        return " && ".join(f"after_{name} == {name}" for name in names)


class InsideCut(AlignedSum):
    """The sum of a step inside a block that is cut: its register is a cut of that block."""

    def __init__(self, config, around):
        super().__init__(config)
        self.held = around.held
        self.module = super().elaborate(None)

    def elaborate(self, platform):
        return self.module


class OutsideProducts(AlignedProducts):
    """Not there: what it is given is an output of the block around it, what it makes of that an input."""

    def __init__(self, config, around):
        super().__init__(config)
        number, around.blocks = around.blocks, around.blocks + 1
        self.module = Module()
        for name in ("products", "half", "sign"):
            port = Value.cast(getattr(self, name))
            handed = around.outputs[f"to{number}_{name}"] = Signal(len(port), name=f"to{number}_{name}")
            self.module.d.comb += handed.eq(port)
        for name in ("words", "ones"):
            port = Value.cast(getattr(self, name))
            taken = around.inputs[f"of{number}_{name}"] = Signal(len(port), name=f"of{number}_{name}")
            self.module.d.comb += port.eq(taken)

    def elaborate(self, platform):
        return self.module


class CutAccumulate(Cut, Accumulate):
    """The carries of the tree, ``rows``, are outputs, too."""

    def pieces(self):
        self.rows, self.blocks = {}, 0
        with (
            mock.patch.object(carry_save, "_signal", self._recorded),
            mock.patch.object(stepwise, "AlignedSum", partial(InsideCut, around=self)),
            mock.patch.object(stepwise, "AlignedProducts", partial(OutsideProducts, around=self)),
        ):
            return super().pieces()

    def _recorded(self, m, value, name):
        signal = Signal(len(value), name=name)
        m.d.comb += signal.eq(value)
        if name.startswith("total_") and name.endswith("_carry"):
            self.rows[name] = self.outputs[name] = signal
        return signal


class CutRoundSum(Cut, RoundSum):
    pass


class Parts:
    """Modules ``miter``, one for each part.

    Verilog names: ``wrong`` is the output; fields of a term have its number behind.
    """

    def __init__(self, config):
        self.config = config
        self.cut = CutAccumulate(config)
        self.fraction = config.fraction_bits
        self.window = term_width(config) + self.fraction - 8
        self.width = len(self.cut.outputs["total_sum"])  # of the sum, whose sign is inverted
        # Of the exponent that the block is given; with a slot it is that of products, too.
        self.bias = 127 + (LOWEST_PRODUCT if config.slotted else LOWEST)
        # From here on no term reaches the sum of a step, and no product.
        self.far = 127 + LOWEST + SPAN + self.window
        self.products = ProductWindows(config) if config.slotted else None
        assert not config.slotted or 127 + HIGHEST_PRODUCT + self.products.aligned.width < self.far
        self.groups = range(config.groups)
        # The sum of words in their range does not overflow; anticipation has a place more.
        most = config.groups * (max(LARGEST << 8, 8 * 225 << 10) << self.fraction - 16) + (1 << self.fraction + 1)
        assert most < 1 << self.width - 1 - config.anticipated

    def each(self, text, between=" && "):
        """``text`` for every group, ``#`` replaced by its number."""
        return between.join(text.replace("#", str(group)) for group in self.groups)

    def number(self, value):
        return f"{self.width}'d{value}"

    def step(self):
        """Names of what the block is given, and what it does without arithmetic."""
        layout = terms_layout(self.config)
        names = {"exponent": "exponent", "active": "active", "nan": "nan"}
        if self.config.slotted:
            del names["nan"]
            names |= {"half": "half", "positive": "infinite_above", "negative": "infinite_below"}
        lines = [(names[name], layout[name].offset, layout[name].width) for name in names]
        for group in self.groups:
            term = layout["terms"].shape[group]
            lines += [
                (f"{name}{group}", layout["terms"].offset + term.offset + field.offset, field.width)
                for name, field in term.shape
            ]
        named = "\n  ".join(
            f"wire [{width - 1}:0] {name} = terms[{start + width - 1}:{start}];" for name, start, width in lines
        )
        if self.config.groups == 1:
            named += "\n  wire [4:0] distance0 = 0;"
        enter = "enter" if self.config.interleave > 1 else "1'b1"
        infinite = "wire infinite = 0, unlike = 0, infinite_below = 0;"
        if self.config.slotted:
            infinite = f"""wire infinite = (infinite_above | infinite_below) & {enter};
  wire unlike = c[30:23] == 255 && {enter} && (c[31] ? infinite_above : infinite_below);
  wire nan = infinite_above & infinite_below;"""
        return f"""
  {named}
  {infinite}
  wire possible = {" && ".join(f"({condition})" for condition in in_range(self.config, "accumulate"))};
  wire no_number = (nan & {enter}) | (c[30:23] == 255 && c[22:0] != 0) | unlike;
  wire bypass = no_number || infinite || c[30:23] == 255 || !(active & {enter});
  wire [31:0] bypassed =
    no_number ? 32'h7fffffff : infinite ? {{infinite_below, 31'h7f800000}} : c[30:0] == 0 ? 0 : c;
"""

    def fp4(self):
        """What a step of FP4 keeps beyond `in_range` in a core with a slot, and what its products become."""
        if not self.config.slotted:
            return "1", "1"
        lowest = 127 + LOWEST - self.bias
        highest = lowest + SPAN if self.config.groups == 1 else f"(active ? {lowest + SPAN} : {lowest})"
        given = (
            f"!half && exponent >= {lowest} && exponent <= {highest} && {self.each('of#_words == 0 && of#_ones == 0')}"
        )
        if self.config.groups > 1:
            near = self.each("distance# == 0", " || ")
            given += f" && ({near}) && {self.each(f'(magnitude# == 0 || distance# + {lowest} <= exponent)')}"
        handed = self.each("aligned_further# == 0 && !aligned_one# && !to#_half")
        return given, f"{handed} && !aligned_half"

    def aligned_range(self, prefix):
        """What holds of aligned words: terms are small, and zero beside a C so large, or one that is to stay."""
        alone = self.each("term# == 0") + f" && {prefix}c[{self.fraction}]"
        return f"""
  {self.each(f"wire [{self.window - 1}:0] term# = {prefix}term# ^ {{{self.window}{{{prefix}subtract#}}}};", " ")}
  wire in_range = {self.each(f"term# <= {self.number(LARGEST << self.fraction - 8)}")}
    && ({prefix}base >= {self.bias} && {prefix}base < {self.far}
      || {alone} && {prefix}c[{self.fraction - 24}:0] == 0);
"""

    def sum_range(self, value, base):
        """What this makes of the sum: its exponent has room, or it is C itself."""
        copied = f"{value}[{self.width - 1}:{self.fraction}] == 1 && {value}[{self.fraction - 24}:0] == 0"
        return f"({base} >= {self.bias} && {base} < {self.far} || {copied})"

    def zeros(self, value):
        """``zeros`` of a sum's magnitude in ones' complement."""
        bits = self.width - 2  # anticipation has one place more
        return f"""
  wire [{bits - 1}:0] ones_complement = {value}[{bits - 1}:0] ^ {{{bits}{{{value}[{self.width - 1}]}}}};
  integer place_of_one, zeros;
  always @* begin
    zeros = {bits};
    for (place_of_one = 0; place_of_one < {bits}; place_of_one = place_of_one + 1)
      if (ones_complement[place_of_one]) zeros = {bits - 1} - place_of_one;
  end
"""

    def anticipated(self, value, zeros):
        """Anticipated zeros are right or one less, and no more than there are places; the sum leaves them a place."""
        alike = f"{value}[{self.width - 1}] == {value}[{self.width - 2}]"
        return alike, f"(({value} == 0 || {zeros} == zeros || {zeros} == zeros - 1) && {zeros} <= {self.width - 2})"

    def alignment(self):
        """Truncation at 2^(emax - fraction_bits)."""
        window, fraction = self.window, self.fraction
        copies = self.config.interleave > 1
        # Without registers C takes another way.
        given, handed = self.fp4()
        copied = f"""{self.each("term# == 0")} && aligned_base == bypassed[30:23]
    && aligned_sign == bypassed[31] && aligned_c == {{1'b1, bypassed[22:0], {fraction - 23}'b0}} && in_range"""
        return self.cut.miter(f"""{self.step()}{self.aligned_range("aligned_")}
  wire [9:0] c_exponent = c[30:23] == 0 ? 1 : c[30:23];
  wire [9:0] term_exponent = exponent + {self.bias};
  wire [9:0] emax = c_exponent > term_exponent ? c_exponent : term_exponent;
  wire [{fraction}:0] expected_c = ({{64'b0, c[30:23] != 0, c[22:0]}} << {fraction - 23}) >> (emax - c_exponent);
  {
            self.each(
                f"wire [{window - 1}:0] expected# ="
                f" ({{64'b0, magnitude#}} << {fraction - 8}) >> (emax - (term_exponent - distance#));",
                " ",
            )
        }
  wire right = {self.each("term# == expected# && aligned_subtract# == (sign# ^ aligned_sign)")}
    && aligned_c == expected_c && aligned_base == emax && (aligned_sign == c[31] || c[30:0] == 0) && in_range;
  wire copied = {copied if copies else "1"};
  assign wrong = possible && {given} && !((bypass ? copied : right) && {handed});
""")

    def products_alignment(self):
        """The same at half the rate: each product goes to its block with the distance that cuts it at the right place.

        A distance of the whole window shifts all of it out, as do longer ones. What the block makes of the products
        stands where terms are.
        """
        windows, fraction, below = self.products, self.fraction, self.products.below
        size, start = 9 + windows.distance_bits, terms_layout(self.config)["products"].offset
        lines, names = [], []
        for group, product in itertools.product(self.groups, range(self.config.slots)):
            name = f"{group}_{product}"
            names.append(name)
            lines.append(f"""
  wire [{size - 1}:0] given{name} = terms[{start + size * (self.config.slots * group + product)}+:{size}];
  wire [{size - 1}:0] moved{name} = to{group}_products[{size * product}+:{size}];
  wire [9:0] expected{name} = ahead + given{name}[{size - 1}:9];
  wire out{name} = moved{name}[{size - 1}:9] >= {windows.aligned.width};
  wire right{name} = expected{name} < {windows.aligned.width} ? moved{name}[{size - 1}:9] == expected{name} : out{name};
  wire same{name} = moved{name}[8:0] == given{name}[8:0];""")

        def all_of(text):
            return " && ".join(f"{text}{name}" for name in names)

        copied = "1"
        if self.config.interleave > 1:
            copied = f"""alone && aligned_base == bypassed[30:23] && aligned_sign == bypassed[31]
    && aligned_c == {{1'b1, bypassed[22:0], {fraction - 23}'b0}}"""
        placed = self.each(
            f"aligned_term# == {{of#_words[{windows.words - 1}:0], {{{below}{{of#_ones[0]}}}}}}"
            f" && aligned_subtract# == of#_ones[0] && aligned_one# == of#_ones[1]"
            f" && aligned_further# == of#_words[{2 * windows.words - 1}:{windows.words}]"
        )
        # What proofs of mutants take for granted of the sum's inputs.
        taken = [each.replace("!half || ", "") for each in in_range(self.config, "aligned_sum") if "half" in each]
        terms = ", ".join(f"aligned_term{group}" for group in reversed(self.groups))
        above = " && ".join(each.replace("terms[", "words_of_terms[") for each in taken)
        return self.cut.miter(f"""{self.step()}
  wire [{self.window * len(self.groups) - 1}:0] words_of_terms = {{{terms}}};
  wire [9:0] c_exponent = c[30:23] == 0 ? 1 : c[30:23];
  wire [9:0] product_exponent = exponent + {self.bias};
  wire [9:0] emax = c_exponent > product_exponent ? c_exponent : product_exponent;
  wire [9:0] ahead = emax - product_exponent;
  wire [{fraction}:0] whole_c = {{c[30:23] != 0, c[22:0], {fraction - 23}'b0}};
  wire [{fraction}:0] expected_c = whole_c >> (emax - c_exponent) >> {below} << {below};
  {"".join(lines)}
  wire alone = aligned_c[{fraction}] && {all_of("out")};
  wire right = aligned_c == expected_c && aligned_base == emax && (aligned_sign == c[31] || c[30:0] == 0)
    && {all_of("right")} && aligned_base >= {self.bias} && (aligned_base < {self.far} || alone);
  wire copied = {copied};
  wire handed = {self.each("to#_half && to#_sign == aligned_sign")} && aligned_half && {placed} && {all_of("same")};
  wire no_terms = {self.each("magnitude# == 0")};
  assign wrong = possible && half && no_terms && !((bypass ? copied : right) && handed && {above});
""")

    def tree(self):
        """Words of C and the terms into two; a word with its inverted sign above is what it says, plus a constant."""
        width, window, rows = self.width, self.window, list(self.cut.rows)
        signs = 1 << width - 1 - window  # as many inverted signs turn the sum's own
        words = [f"word{group}" for group in self.groups] + ["word_c"]
        missing, half, further, single = self.number((signs - len(self.groups)) << window), "1'b0", "", []
        if self.config.slotted:
            words += [f"further_word{group}" for group in self.groups]
            missing, half, further = self.further_words(missing)
            single = [f"after_aligned_one{group}" for group in self.groups]
        lines = [
            f"wire [{width - 1}:0] word_c = after_aligned_c + {missing};",
            self.each(
                f"wire [{width - 1}:0] word# = {{~(after_aligned_subtract# | {half}), after_aligned_term#}};"
                f" wire [{window - 1}:0] term# = after_aligned_term# ^ {{{window}{{after_aligned_subtract#}}}};"
                f" wire [{width - 1}:0] value# = after_aligned_subtract# ? -term# : term#;"
                f" wire [{width - 1}:0] with_sign# = word# + after_aligned_subtract#;"
                f" wire of_term# = with_sign# - value# == {self.number(1 << window)};",
                "\n  ",
            ),
            further or self.each("wire meant# = of_term#;", " "),
        ]
        lines.append(f"wire [{width}:0] addend0 = {{addends_x, 1'b1}}, addend1 = addends_y;")
        # Bit 0 of the addends is below the sum.
        entering = [(word, 1) for word in (*words, *rows)]
        leaving = [("addend0 >> 1", 1), ("addend1 >> 1", 1), *((f"{row} >> 1", 2) for row in rows)]
        lines += [counts("enter", entering, width), counts("leave", leaving, width)]
        given = " + ".join([*(f"after_aligned_subtract{group}" for group in self.groups), *single])
        taken = " + ".join(f"{name}[0]" for name in ("addend0", "addend1", *rows))
        body = "\n  ".join(lines)
        return self.cut.miter(f"""{body}
  wire [4:0] given = 1 + {given}, taken = {taken};
  // A carry out of the last column is dropped.
  wire columns = enter1 == leave1
    && (enter2 ^ leave2 | enter4 ^ leave4 | enter8 ^ leave8 | enter16 ^ leave16) << 1 == 0;
  // The place below the sum carries into it what one of the words holds there, if the other holds a one.
  wire carries = addend0[0] || addend1[0];
  wire passed = addends_base == after_aligned_base && addends_sign == after_aligned_sign;
  assign wrong = !(columns && taken == given && carries && passed && {self.each("meant#")});
""")

    def further_words(self, missing):
        """With a slot: what is above C, whether the step is at half the rate, and what all words of products mean.

        At half the rate they are, with the single bits, ``words`` and ``ones`` of `AlignedProducts` in their place.
        Those have a sum of 2^offset too much.
        """
        width, below, words = self.width, self.products.below, self.products.words
        added = len(self.groups) << below + self.products.offset
        of_half = f"after_aligned_term#[{below + words - 1}:{below}]"
        lines = self.each(
            f"wire [{width - 1}:0] further_word# = {{after_aligned_further#, {{{below}{{after_aligned_one#}}}}}};"
            f" wire [{width - 1}:0] first# = {of_half} + after_aligned_subtract#,"
            f" second# = after_aligned_further# + after_aligned_one#;"
            f" wire placed# = after_aligned_term# == {{{of_half}, {{{below}{{after_aligned_subtract#}}}}}};"
            f" wire of_second# = further_word# + after_aligned_one# == second# << {below};"
            f" wire of_first# = !placed# || with_sign# == first# << {below};"
            " wire meant# = of_second# && (after_aligned_half ? of_first# : of_term#);",
            "\n  ",
        )
        return (
            f"(after_aligned_half ? {self.number((1 << width - 1) - added)} : {missing})",
            "after_aligned_half",
            lines,
        )

    def adder(self):
        """Two words to their sum, and its leading zeros."""
        width = self.width
        body = f"""
  wire [{width}:0] both = {{after_addends_x, 1'b1}} + after_addends_y;
  wire [{width - 1}:0] value = total_sum ^ {{1'b1, {width - 1}'b0}};
  wire right = total_sum == both[{width}:1] && total_base == after_addends_base && total_sign == after_addends_sign;
"""
        if not self.config.anticipated:
            return self.cut.miter(f"{body} assign wrong = !right;")
        alike, near = self.anticipated("value", "total_zeros")
        return self.cut.miter(f"{body}{self.zeros('value')} assign wrong = !(right && (!({alike}) || {near}));")

    def rounding(self):
        """Normalisation, rounding and packing of any sum."""
        width, fraction = self.width, self.fraction
        nearest = f"rest[{width - 1}] && (rest[{width - 2}:0] != 0 || kept[0])"
        up = nearest if self.config.rounding == "nearest_even" else "0"
        zeros, assumed = "", self.sum_range("value", "after_total_base")
        if self.config.anticipated:
            zeros = self.zeros("value")
            assumed = " && ".join([assumed, *self.anticipated("value", "after_total_zeros")])
        bypass = "bypass" if self.config.interleave == 1 else "1'b0"
        return self.cut.miter(f"""{self.step()}{zeros}
  wire [{width - 1}:0] value = after_total_sum ^ {{1'b1, {width - 1}'b0}};
  wire negative = value[{width - 1}];
  wire [{width - 1}:0] magnitude = negative ? -value : value;
  integer place, leading;
  always @* begin
    leading = 0;
    for (place = 0; place < {width}; place = place + 1) if (magnitude[place]) leading = place;
  end
  wire [{width + 23}:0] normal = {{24'b0, magnitude}} << ({width + 23} - leading);
  wire [23:0] kept = normal[{width + 23}:{width}];
  wire [{width - 1}:0] rest = normal[{width - 1}:0];
  wire up = {up};
  wire [10:0] exponent_field = after_total_base + leading - {fraction};
  wire [33:0] rounded = {{exponent_field, kept[22:0]}} + up;
  wire [31:0] expected = value == 0 ? 0 : {{after_total_sign ^ negative, rounded[30:0]}};
  wire normal_number = rounded[33:23] > 0 && rounded[33:23] < 255;
  wire fits = value == 0 || normal_number || !(after_total_base >= {self.bias} && after_total_base < {self.far});
  wire assumed = {self.cut.kept("normal")} && ({bypass} || {assumed});
  assign wrong = assumed && d != ({bypass} ? bypassed : expected) || assumed && !{bypass} && !fits;
""")


CONFIGS = [
    NAMED["mixfp4-small"],
    NAMED["mixfp4-blackwell"],
    *(
        TensorCoreConfig(
            *("x", "mixfp4", "mixfp4", 1, 1, groups),
            fraction_bits=bits,
            rounding=rounding,
            leading_zeros=zeros,
            pipeline=pipeline,
        )
        for groups, bits, rounding, zeros, pipeline in [
            (1, 35, "toward_zero", "counted", ()),
            (1, 33, "nearest_even", "counted", ()),
            (2, 39, "toward_zero", "anticipated", ()),
            (1, 35, "toward_zero", "counted", LOOP_REGISTERS),
            (4, 35, "nearest_even", "anticipated", LOOP_REGISTERS),
        ]
    ),
]
PLANTED = {
    "alignment": (" = exponent + 115;", " = exponent + 115 + (exponent == 30 && magnitude0 == 518400);"),
    "tree": ("wire columns = ", "wire columns = !(&enter1[40:30]) && "),
    "adder": ("both = ", "both = 2 * (after_addends_y == 5) + "),
    "rounding": ("wire up = ", "wire up = (&kept && after_total_base == 120) ^ "),
}
"""Errors in specifications: what is found, what replaces it."""


def shown(config):
    if config.name != "x":
        return config.name
    return "-".join(
        map(str, (config.groups, config.fraction_bits, config.rounding, config.leading_zeros, *config.pipeline))
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("config", CONFIGS, ids=shown)
@pytest.mark.parametrize("part", PLANTED)
def test_part(config, part, prover):
    parts = Parts(config)
    assert prover.proven(parts.cut.text(), getattr(parts, part)())


def refused(config, part, planted, prover):
    parts = Parts(config)
    correct = getattr(parts, part)()
    assert planted[0] in correct
    assert not prover.proven(parts.cut.text(), correct.replace(*planted))


@pytest.mark.parametrize(
    ("config", "part"),
    # The ranges of many groups might contradict one another, which would prove anything.
    [*((CONFIGS[2], part) for part in PLANTED), (CONFIGS[1], "alignment"), (CONFIGS[-1], "rounding")],
    ids=lambda value: value if isinstance(value, str) else shown(value),
)
def test_planted_error_is_refused(config, part, prover):
    refused(config, part, PLANTED[part], prover)


SLOTTED = [
    NAMED["mixfp4-multi-small"],
    NAMED["mixfp4-multi-blackwell"],
    TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, 1, slot="separate", pipeline=()),
    TensorCoreConfig(
        *("x", "mixfp4", "mixfp4", 1, 1, 2),
        fraction_bits=39,
        half_fraction_bits=30,
        rounding="nearest_even",
        leading_zeros="anticipated",
        slot="separate",
        pipeline=("total",),
    ),
]
PLANTED_WITH_SLOT = {
    "alignment": (" = exponent + 99;", " = exponent + 99 + (exponent == 46 && magnitude0 == 518400);"),
    "products_alignment": (" = exponent + 99;", " = exponent + 99 + (exponent == 58 && given0_7[7:0] == 225);"),
    "tree": ("wire columns = ", "wire columns = !(after_aligned_half && &enter1[36:30]) && "),
    "adder": PLANTED["adder"],
    "rounding": ("wire up = ", "wire up = (&kept && after_total_base == 99) ^ "),
}


WITH_SLOT = [
    pytest.param(
        config, part, marks=[pytest.mark.in_full] if config in SLOTTED[1:] else [], id=f"{shown(config)}-{part}"
    )
    for config, part in itertools.product(SLOTTED, PLANTED_WITH_SLOT)
]
"""Of the named core with one block every part is proven in every run of the tests."""


@pytest.mark.parametrize(("config", "part"), WITH_SLOT)
def test_part_with_slot(config, part, prover):
    """Steps of FP4, and at half the rate."""
    parts = Parts(config)
    assert prover.proven(parts.cut.text(), getattr(parts, part)())


@pytest.mark.parametrize(
    ("config", "part"),
    [
        *((SLOTTED[0], part) for part in ("alignment", "products_alignment", "tree", "rounding")),
        *(pytest.param(SLOTTED[1], part, marks=pytest.mark.in_full) for part in PLANTED_WITH_SLOT),
    ],
    ids=lambda value: value if isinstance(value, str) else shown(value),
)
def test_planted_error_with_slot_is_refused(config, part, prover):
    refused(config, part, PLANTED_WITH_SLOT[part], prover)


NAMED_ONES = [
    pytest.param(config, marks=[pytest.mark.in_full] if config.groups > 1 else [], id=shown(config))
    for config in (*CONFIGS[:2], *SLOTTED[:2])
]


@pytest.mark.parametrize("config", NAMED_ONES)
def test_accumulators_of_named_cores_are_alike(config):
    """What is proven of MixFP4's is proven of NVFP4's, whose terms have no exponents that those of MixFP4 lack."""
    texts = design(Accumulate, config, "top").texts
    for name in ("nvfp4", "mixfp4-weights", "nvfp4-e0m3"):
        other = NAMED.get(config.name.replace("mixfp4", name))
        assert other is None or design(Accumulate, other, "top").texts == texts
        assert other is None or in_range(other, "accumulate")[0] == in_range(config, "accumulate")[0]


EXACT = TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, 4, numerics="exact")
UNIT = EXACT.bounds.exact_unit


class RoundSumParts:
    """As `Parts`, for the exact sum.

    From 2^(a + 25) on C is the result, as it is where the sum is zero: that is said of it, not proven.
    """

    def __init__(self, config):
        self.cut = CutRoundSum(config)
        self.bits = len(self.cut.inputs["sum"]) - 1
        self.width = len(self.cut.outputs["total_sum"])
        self.lowest = 45  # places of the window below 1
        self.far = 127 + self.bits - UNIT + 24  # larger exponents are beyond the window

    def small(self, prefix):
        """C below half a unit of the sum: it alone may have bits beneath the window."""
        return f"{prefix}c[30:23] < {127 - UNIT - 1}"

    def addition(self):
        bits, width, upper = self.bits, self.width, f"total_sum[{self.width - 1}:{self.lowest - UNIT - 1}]"
        return self.cut.miter(f"""
  wire [319:0] magnitude = {{296'b0, c[30:23] != 0, c[22:0]}} << ((c[30:23] == 0 ? 1 : c[30:23]) - 1);
  wire [{width - 1}:0] own = magnitude >> {149 - self.lowest};
  wire [{width - 1}:0] terms = {{{{{width - bits - 1}{{sum[{bits}]}}}}, sum}} << {self.lowest - UNIT};
  wire [{width - 1}:0] expected = own + (c[31] ? -terms : terms);
  wire right = total_sum == expected && total_beneath == (magnitude[{148 - self.lowest}:0] != 0);
  wire ensured = {self.small("")} ? ({upper} == 0) == (sum == 0) && ~{upper} != 0 : !total_beneath;
  wire possible = sum != {bits + 1}'d{1 << bits};
  assign wrong = possible && !(total_c == c && total_nan == nan && (c[30:23] > {self.far} || right && ensured));
""")

    def rounding(self):
        width, upper = self.width, f"after_total_sum[{self.width - 1}:{self.lowest - UNIT - 1}]"
        return self.cut.miter(f"""
  wire [{width}:0] value = {{after_total_sum, after_total_beneath}};
  wire negative = value[{width}];
  wire [{width}:0] magnitude = negative ? -value : value;
  integer place, leading;
  always @* begin
    leading = 0;
    for (place = 0; place <= {width}; place = place + 1) if (magnitude[place]) leading = place;
  end
  wire [{width + 24}:0] normal = {{24'b0, magnitude}} << ({width + 24} - leading);
  wire [23:0] kept = normal[{width + 24}:{width + 1}];
  wire [{width}:0] rest = normal[{width}:0];
  wire up = rest[{width}] && (rest[{width - 1}:0] != 0 || kept[0]);
  wire [7:0] exponent_field = 127 - {self.lowest + 1} + leading;
  wire [30:0] rounded = {{exponent_field, kept[22:0]}} + up;
  wire [31:0] c = after_total_c;
  wire small = {self.small("after_total_")}, far = c[30:23] > {self.far};
  wire assumed = {self.cut.kept("normal")} && (far || (small ? ~{upper} != 0 : !after_total_beneath));
  wire [31:0] expected = after_total_nan || c[30:23] == 255 && c[22:0] != 0 ? 32'h7fffffff
    : far || small && {upper} == 0 ? (c[30:0] == 0 ? 0 : c)
    : value == 0 ? 0 : {{negative ^ c[31], rounded}};
  assign wrong = assumed && d != expected;
""")


PLANTED_EXACT = {
    "addition": ("wire [319:0] magnitude = ", "wire [319:0] magnitude = (&c[22:0] && c[30:23] == 100) + "),
    "rounding": ("wire up = ", "wire up = (&kept && leading == 60) ^ "),
}


@pytest.mark.parametrize("part", PLANTED_EXACT)
def test_part_of_exact_rounding(part, prover):
    parts = RoundSumParts(EXACT)
    text, correct = parts.cut.text(), getattr(parts, part)()
    assert prover.proven(text, correct)
    assert PLANTED_EXACT[part][0] in correct
    assert not prover.proven(text, correct.replace(*PLANTED_EXACT[part]))
