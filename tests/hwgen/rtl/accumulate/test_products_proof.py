"""Products at half the rate proven: their largest exponent, their distances below it, and the words that they become.

The specifications are docs/unscaled.md's: a product of zero takes no part, the exponent of a product is the sum of
both, and what lies below 2^(emax - fraction bits) is cut off, toward zero.

The tree of the words has a proof of columns, as that of the accumulator: for each, what enters is what leaves, the
carries counted twice. Added up by weight, the carries cancel. So both words and both single bits have the sum of all
words, modulo a power of two. `test_the_top_place_of_a_word_is_zero_proven` says that it is no more than that.
"""

from unittest import mock

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Signal, Value

from hwgen.config import TensorCoreConfig
from hwgen.rtl.accumulate import products
from hwgen.rtl.accumulate.products import AlignedProducts, ProductDistances, ProductExponents
from hwgen.rtl.accumulate.terms import TermDistances, TermExponents
from hwgen.rtl.arithmetic import carry_save
from hwgen.rtl.hierarchy import Block
from tests.hwgen.rtl.accumulate.test_stepwise_proof import counts

EARLY = ("tree", "sums", "factors", "compared")


def core(groups, early=False, **further):
    fields = {"slot": "separate", "pipeline": EARLY if early else ()} | further
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, groups, **fields)
    assert config.early_exponents == early
    return config


def through(self, m, register, enable, values):
    """A register that does not wait."""
    return values


def built(block):
    """RTLIL of a block without registers, and its ports."""
    with mock.patch.object(Block, "held", through):
        module = block.elaborate(None)
    block.elaborate = lambda platform: module
    ports = {name: Value.cast(getattr(block, name)) for name in block.signature.members}
    return rtlil.convert(block, name="top", ports=list(ports.values()), emit_src=False), ports


def miter(block, ports, body):
    """A module that holds the block, with its names, and has the output ``wrong``."""
    out = {name for name in ports if not name.startswith("after")}
    out -= {name for name, member in block.signature.members.items() if member.flow.name == "In"}
    inputs = ", ".join(f"input [{len(ports[name]) - 1}:0] {name}" for name in ports if name not in out)
    wires = " ".join(f"wire [{len(ports[name]) - 1}:0] {name};" for name in sorted(out))
    return f"module miter({inputs}, output wrong);\n  {wires}\n  top block(.*);\n{body}\nendmodule\n"


def elements(count):
    """What products are made of: exponent, sign, whether one is zero, and whether one is infinite; of A and of B."""
    fields = ((f"{side}{name}", side, start) for side in "ab" for name, start in (("s", 5), ("z", 6), ("i", 7)))
    lines = [f"wire {name}{k} = {side}[{8 * k + start}];" for name, side, start in fields for k in range(count)]
    for k in range(count):
        lines.append(f"wire live{k} = !(az{k} || bz{k});")
        lines.append(f"wire [5:0] own{k} = a[{8 * k + 4}:{8 * k}] + b[{8 * k + 4}:{8 * k}];")
    return "  " + "\n  ".join(lines)


def each(count, text, between):
    return between.join(text.replace("#", str(k)) for k in range(count))


SHAPES = [
    (1, True),
    *(pytest.param(*shape, marks=pytest.mark.in_full) for shape in ((4, True), (1, False), (2, False))),
]
"""Blocks of a step, and whether the largest exponent is found block by block: the named cores' are early."""


@pytest.mark.parametrize(("groups", "early"), SHAPES)
def test_largest_exponent(groups, early, prover):
    block, count = ProductExponents(core(groups, early)), 8 * groups
    text, ports = built(block)
    sums = "1" if early else each(count, "exponents[6*#+5:6*#] == own#", " && ")
    body = f"""{elements(count)}
  wire any = {each(count, "live#", " || ")};
  wire above = {each(count, "(live# && own# > exponent)", " || ")};
  wire met = {each(count, "(live# && own# == exponent)", " || ")};
  assign wrong = active != any || (any ? above || !met : exponent != 0) || !({sums});
"""
    module = miter(block, ports, body)
    assert prover.proven(text, module)
    assert not prover.proven(text, module.replace("wire any = live0", "wire any = az0"))
    assert not prover.proven(text, module.replace("(live0 && own0 > ", "(own0 > "))


@pytest.mark.parametrize("early", [True, pytest.param(False, marks=pytest.mark.in_full)])
def test_distances(early, prover):
    """Of each product by itself, so that one block says all; the sums of exponents are handed over, or made here."""
    block, count = ProductDistances(core(1, early)), 8
    text, ports = built(block)
    width = block.windows.aligned.width
    taken = "1" if early else each(count, "exponents[6*#+5:6*#] == own#", " && ")
    far = (
        f"(live# && own# <= largest && (largest - own# < {width}"
        f" ? distances[5*#+4:5*#] != largest - own# : distances[5*#+4:5*#] < {width}))"
    )
    infinite = "(ai#&bz# || az#&bi# || (ai#|bi#) && {}(as#^bs#))"
    body = f"""{elements(count)}
  wire far = {each(count, far, " || ")};
  wire [{count - 1}:0] negated = {{{", ".join(f"as{k} ^ bs{k}" for k in reversed(range(count)))}}};
  wire plus = {each(count, infinite.format("!"), " || ")};
  wire minus = {each(count, infinite.format(""), " || ")};
  assign wrong = {taken} && (far || signs != negated || positive != plus || negative != minus);
"""
    module = miter(block, ports, body)
    assert prover.proven(text, module)
    for planted in ((f"largest - own3 < {width}", "largest - own3 < 33"), ("ai2&bz2 ||", "0 ||")):
        assert planted[0] in module
        assert not prover.proven(text, module.replace(*planted))


def test_terms_whose_largest_exponent_is_found_early(prover):
    """Those of FP4 in the named cores with a slot and several blocks: their distances are made a register later."""
    config = core(4, early=True)
    block = TermExponents(config)
    text, ports = built(block)
    both = "{side}[9*#+7:9*#+4]"
    own = f"{both.format(side='a')} + {both.format(side='b')}"
    body = f"""
  {each(4, f"wire live# = !(a[9*#+8] || b[9*#+8]); wire [4:0] own# = {own};", " ")}
  wire any = {each(4, "live#", " || ")};
  wire above = {each(4, "(live# && own# > exponent)", " || ")};
  wire met = {each(4, "(live# && own# == exponent)", " || ")};
  assign wrong = active != any || (any ? above || !met : exponent != 0);
"""
    module = miter(block, ports, body)
    assert prover.proven(text, module)
    assert not prover.proven(text, module.replace("(live0 && own0 > ", "(own0 > "))
    block = TermDistances(config)
    text, ports = built(block)
    far = each(4, "distances[5*#+4:5*#] != (largest - a[4*#+3:4*#] - b[4*#+3:4*#]) % 32", " || ")
    module = miter(block, ports, f"  assign wrong = {far};")
    assert prover.proven(text, module)
    assert not prover.proven(text, module.replace("a[4*0+3:4*0]", "a[4*1+3:4*1]"))


class CutProducts(AlignedProducts):
    """Cut before its tree: words and single bits are outputs, what the tree adds is inputs, its carries are outputs."""

    def __init__(self, config):
        super().__init__(config)
        self.further = {}
        with mock.patch.object(products, "two_words", self._cut):
            self.module = super().elaborate(None)

    def _cut(self, m, words, ones, *, width, name):
        taken = []
        for index, value in enumerate([*words, *ones]):
            handed, after = Signal(len(value), name=f"word{index}"), Signal(len(value), name=f"after{index}")
            m.d.comb += handed.eq(value)
            self.further |= {handed.name: handed, after.name: after}
            taken.append(after)
        with mock.patch.object(carry_save, "_signal", self._recorded):
            return carry_save.two_words(m, taken[: len(words)], taken[len(words) :], width=width, name=name)

    def _recorded(self, m, value, name):
        signal = Signal(len(value), name=name)
        m.d.comb += signal.eq(value)
        if name.endswith("_carry"):
            self.further[name] = signal
        return signal

    def elaborate(self, platform):
        return self.module


def words_miter(block, ports):
    """Words of the products, and all of them into two."""
    windows, config = block.windows, block.config
    count, cut, width, extra = config.slots, windows.aligned.width, windows.words, config.half_fraction_bits - 6
    # What the words have more than the products is 2^offset, and they have room for it.
    assert count << cut == 1 << windows.offset
    assert count * 255 << extra < 1 << windows.offset == 1 << width - 1
    size = 9 + windows.distance_bits
    lines = each(
        count,
        f"wire [{cut - 1}:0] cut# = ({{64'b0, products[{size}*#+7:{size}*#]}} << {extra})"
        f" >> products[{size}*#+{size - 1}:{size}*#+9];"
        f" wire minus# = half && (products[{size}*#+8] ^ sign);"
        f" wire [{width - 1}:0] value# = minus# ? -cut# : cut#;"
        f" wire right# = half ? word# + minus# == value# + {width}'d{1 << cut} : word# == cut#;",
        "\n  ",
    )
    rows = [name for name in block.further if name.endswith("_carry")]
    entering = [(f"after{k}", 1) for k in range(count)] + [(row, 1) for row in rows]
    leaving = [(f"words[{width - 1}:0]", 1), (f"words[{2 * width - 1}:{width}]", 1)]
    leaving += [(f"{row} >> 1", 2) for row in rows]
    single = range(count, 2 * count - 1)
    given = " + ".join(["minus7", *(f"after{k}" for k in single)])
    taken = " + ".join(["ones[0]", "ones[1]", *(f"{row}[0]" for row in rows)])
    passed = " && ".join(f"word{k} == minus{k - count}" for k in single)
    return miter(
        block,
        ports,
        f"""  {lines}
{counts("enter", entering, width)}{counts("leave", leaving, width)}
  wire [3:0] given = {given}, taken = {taken};
  // A carry out of the last column is dropped.
  wire columns = enter1 == leave1 && (enter2 ^ leave2 | enter4 ^ leave4 | enter8 ^ leave8) << 1 == 0;
  wire still = half || {each(2 * count - 1, "after# != 0", " || ")} || words == 0 && ones == 0;
  assign wrong = !(columns && taken == given && still && {passed} && {each(count, "right#", " && ")});
""",
    )


def cut_products(bits):
    block = CutProducts(core(1, half_fraction_bits=bits))
    ports = {name: Value.cast(getattr(block, name)) for name in block.signature.members} | block.further
    return rtlil.convert(block, name="top", ports=list(ports.values()), emit_src=False), words_miter(block, ports)


@pytest.mark.parametrize("bits", [25, pytest.param(35, marks=pytest.mark.in_full)])
def test_words(bits, prover):
    """Cut toward zero at 2^(emax - fraction bits), and added up; in steps of FP4, in which they are zero, all is 0."""
    assert prover.proven(*cut_products(bits))


@pytest.mark.parametrize(
    "planted",
    [
        ("wire columns = ", "wire columns = !(&enter1[20:10]) && "),
        pytest.param(("given = ", "given = (&after7[12:5]) + "), marks=pytest.mark.in_full),
        pytest.param(("cut0 = (", "cut0 = products[13:9] == 26 ? 0 : ("), marks=pytest.mark.in_full),
    ],
)
def test_planted_error_in_words_is_refused(planted, prover):
    text, module = cut_products(25)
    assert planted[0] in module
    assert not prover.proven(text, module.replace(*planted))
