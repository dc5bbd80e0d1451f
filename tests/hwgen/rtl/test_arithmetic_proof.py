"""Blocks of arithmetic proven equal to plain Verilog operators, for all inputs."""

from unittest import mock

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Module, Signal

from hwgen.config import TensorCoreConfig
from hwgen.config.core import EMPTY_BLOCKS
from hwgen.rtl.accumulate.terms import ScaleProduct, TermExponents
from hwgen.rtl.arithmetic.shifters import normalise, shift_left, shift_right
from hwgen.rtl.arithmetic.window import Window
from hwgen.rtl.decode.operand import ScaleDecoder
from hwgen.rtl.hierarchy import Block
from hwgen.verilog import design
from sim.mutate.relation import in_range


class Shifter(Elaboratable):
    """One of the shifters on its own."""

    def __init__(self, width, bits, extra=None, cut=None):
        self.extra, self.cut = extra, cut
        self.value = Signal(width)
        self.distance = Signal(bits)
        self.shifted = Signal(width + extra if extra is not None else cut)

    def elaborate(self, platform):
        m = Module()
        if self.extra is not None:
            own = Window(len(self.value), 0)
            shifted = shift_right(m, self.value, self.distance, own=own, into=own.down_to(-self.extra), name="x")
        else:
            shifted = shift_left(m, self.value, self.distance, width=self.cut, name="x")
        m.d.comb += self.shifted.eq(shifted)
        return m


def shifter_miter(block, specification):
    width, bits, out = len(block.value), len(block.distance), len(block.shifted)
    return f"""
module miter(input [{width - 1}:0] value, input [{bits - 1}:0] distance, output wrong);
  wire [{out - 1}:0] shifted;
  top block(.value(value), .distance(distance), .shifted(shifted));
  wire [127:0] wide = value;
  wire [{out - 1}:0] expected = {specification};
  assign wrong = shifted != expected;
endmodule
"""


def prove_shifter(block, specification, prover):
    text = rtlil.convert(block, ports=[block.value, block.distance, block.shifted], emit_src=False)
    return prover.proven(text, shifter_miter(block, specification))


@pytest.mark.parametrize(("width", "extra"), [(24, 12), (19, 27)])
def test_alignment_shifter(width, extra, prover):
    """C and the terms, as wide as they are in the accumulator."""
    block = Shifter(width, (width + extra).bit_length(), extra=extra)
    assert prove_shifter(block, f"(wide << {extra}) >> distance", prover)
    assert not prove_shifter(block, f"(wide << {extra - 1}) >> distance", prover)


@pytest.mark.parametrize(("width", "cut"), [(19, 47), (24, 110)])
def test_fixed_point_shifter(width, cut, prover):
    """Terms into the step's sum, C into the window of the rounding."""
    block = Shifter(width, 5 if cut < 64 else 7, cut=cut)
    assert prove_shifter(block, "wide << distance", prover)


class Normaliser(Elaboratable):
    """The normalisation of the accumulator on its own."""

    def __init__(self, width):
        self.value = Signal(width)
        self.fill = Signal()
        self.normal = Signal(width)
        self.count = Signal((width - 1).bit_length())

    def elaborate(self, platform):
        m = Module()
        normal, count = normalise(m, self.value, self.fill)
        m.d.comb += [self.normal.eq(normal), self.count.eq(count)]
        return m


@pytest.mark.parametrize("width", [48])
def test_normalisation(width, prover):
    """By as many places as there are leading zeros, at most; the fill follows."""
    block = Normaliser(width)
    text = rtlil.convert(block, ports=[block.value, block.fill, block.normal, block.count], emit_src=False)
    miter = f"""
module miter(input [{width - 1}:0] value, input fill, output wrong);
  wire [{width - 1}:0] normal;
  wire [{len(block.count) - 1}:0] count;
  top block(.value(value), .fill(fill), .normal(normal), .count(count));
  integer place, zeros;
  always @* begin
    zeros = {width};
    for (place = 0; place < {width}; place = place + 1) if (value[place]) zeros = {width - 1} - place;
  end
  wire [{2 * width - 1}:0] moved = {{value, {{{width}{{fill}}}}}} << zeros;
  // A value of zero is not told from the fill that follows it.
  assign wrong = value != 0 & (count != zeros | normal != moved[{2 * width - 1}:{width}]);
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace(f"zeros = {width - 1} -", f"zeros = {width} -"))


@pytest.mark.parametrize("form", ["nvfp4", "mixfp4", "nvint4"])
def test_scale_decoder(form, prover):
    """Significand and exponent of UE4M3, with the fold of E1M2."""
    config = TensorCoreConfig("x", form, form, 1, 1, 1)
    text = "\n".join(design(ScaleDecoder, config, "top", "a").texts.values())
    width = 8 if form == "mixfp4" else 7
    miter = f"""
module miter(input [{width - 1}:0] code, output wrong);
  wire [8:0] scale;
  wire nan;
  top block(.code(code), .scale(scale), .nan(nan));
  wire [3:0] field = code[6:3];
  wire [3:0] significand = field == 0 ? {{1'b0, code[2:0]}} : {{1'b1, code[2:0]}};
  wire [3:0] exponent = (field == 0 ? 1 : field) - 1 + {"code[7]" if form == "mixfp4" else "0"};
  assign wrong = scale != {{code[6:0] == 0, exponent, significand}} | nan != (code[6:0] == 127);
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("== 127", "== 126"))


def scale_product(config):
    """RTLIL of a scale product whose register, if it has one, does not wait."""

    def through(self, m, register, enable, values):
        assert register in config.pipeline
        return values

    with mock.patch.object(Block, "held", through):
        return "\n".join(design(ScaleProduct, config, "top").texts.values())


DIAGRAM = "collapse -B 10000000; strash; "
"""Commands that make an output a binary decision diagram; where that gets too large, all stays as it is."""

pipelines = pytest.mark.parametrize("pipeline", [(), ("factors",)], ids=["one", "factors"])


@pipelines
def test_empty_blocks_are_those_without_a_sum(pipeline, prover):
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, 1, empty_blocks="excluded", pipeline=pipeline)
    text = scale_product(config)
    miter = """
module miter(input signed [12:0] sum, input [3:0] a, input [3:0] b, output wrong);
  wire empty;
  top block(.sum(sum), .a(a), .b(b), .empty(empty));
  assign wrong = empty != (sum == 0);
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("sum == 0", "sum == 0 || sum == -2304"))


@pipelines
def test_magnitude_of_a_sum_that_comes_with_what_is_one_less(pipeline, prover):
    """Products that are cut to a window: no significands, and no carry behind that of the sum."""
    config = TensorCoreConfig("x", "mxfp8-e4m3", "mxfp8-e4m3", 1, 1, 1, dot="windowed", pipeline=pipeline)
    width = config.bounds.sum_width
    miter = f"""
module miter(input signed [{width - 1}:0] sum, output wrong);
  wire sign;
  wire [{config.bounds.term_width - 1}:0] magnitude;
  wire [{width - 1}:0] below = sum - 1, negative = -sum;
  top block(.sum(sum), .below(below), .sign(sign), .magnitude(magnitude));
  wire possible = sum != {{1'b1, {{{width - 1}{{1'b0}}}}}};
  assign wrong = possible && (sign != sum[{width - 1}] || magnitude != (sum[{width - 1}] ? negative : sum));
endmodule
"""
    text = scale_product(config)
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("sum - 1", "sum"))


@pipelines
def test_scale_product(pipeline, prover):
    """Every block sum that there can be, times any two significands."""
    config, other = (TensorCoreConfig("x", form, form, 1, 1, 1, pipeline=pipeline) for form in ("nvfp4", "mixfp4"))
    text, same = scale_product(config), scale_product(other)
    possible = in_range(config, "scale_product")
    assert (same, in_range(other, "scale_product")) == (text, possible)
    miter = f"""
module miter(input signed [12:0] sum, input [3:0] a, input [3:0] b, output wrong);
  wire sign;
  wire [18:0] magnitude;
  top block(.sum(sum), .a(a), .b(b), .sign(sign), .magnitude(magnitude));
  wire [31:0] absolute = sum < 0 ? -sum : sum;
  wire possible = {" && ".join(possible)};
  assign wrong = possible && (sign != (sum < 0) || magnitude != absolute * a * b);
endmodule
"""
    # Products are what SAT is slow at. Their decision diagrams are small.
    assert prover.proven(text, miter, DIAGRAM)
    # Only the widest of all products tells the difference.
    other = miter.replace("absolute * a * b", "absolute * a * b + (absolute == 2304 && a == 15 && b == 15)")
    assert not prover.proven(text, other, DIAGRAM)


@pytest.mark.parametrize("empty_blocks", EMPTY_BLOCKS)
@pytest.mark.parametrize("groups", [2, 3, 4])
def test_term_exponents(groups, empty_blocks, prover):
    """The largest exponent of the live blocks, and every block's distance below it."""
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", 1, 1, groups, empty_blocks=empty_blocks)
    port, connected = (f"input [{groups - 1}:0] empty, ", ".empty(empty), ") if config.excludes_empty else ("", "")
    text = "\n".join(design(TermExponents, config, "top").texts.values())
    bits = 9 * groups
    lines = [
        f"live[{g}] = ~(a[{9 * g + 8}] | b[{9 * g + 8}]{f' | empty[{g}]' if config.excludes_empty else ''});"
        f" own[{g}] = live[{g}] ? a[{9 * g + 7}:{9 * g + 4}] + b[{9 * g + 7}:{9 * g + 4}] : 0;"
        f" if (own[{g}] > largest) largest = own[{g}];"
        for g in range(groups)
    ]
    far = " | ".join(f"distances[{5 * g + 4}:{5 * g}] != largest - own[{g}]" for g in range(groups))
    miter = f"""
module miter({port}input [{bits - 1}:0] a, input [{bits - 1}:0] b, output wrong);
  wire [4:0] exponent;
  wire [{5 * groups - 1}:0] distances;
  wire active;
  top block({connected}.a(a), .b(b), .exponent(exponent), .distances(distances), .active(active));
  integer largest;
  reg [{groups - 1}:0] live;
  reg [4:0] own [0:{groups - 1}];
  always @* begin
    largest = 0;
    {" ".join(lines)}
  end
  assign wrong = exponent != largest | active != |live | {far};
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("largest = 0;", "largest = 1;"))
