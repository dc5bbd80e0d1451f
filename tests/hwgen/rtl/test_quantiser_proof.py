"""Parts of the quantiser proven, for all inputs."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Module, Mux, Signal

from hwgen.config.quantiser import TARGETS, QuantiserConfig
from hwgen.rtl.quantiser.block_scale import BlockScale
from hwgen.rtl.quantiser.lane import compared
from hwgen.rtl.quantiser.magnitudes import MagnitudeChoice
from hwgen.rtl.quantiser.multiples import odd_midpoints, stand_ins
from hwgen.verilog import design

BITS = 3
"""Of the tensor scale."""


@pytest.mark.parametrize(
    ("form", "rule", "which"),
    [("mixfp4", "nearest", 0), ("mixfp4", "nearest", 1), ("nvfp4", "four-over-six", 1)],
    ids=["top7", "top6", "top4"],
)
def test_the_code_is_the_nearest(form, rule, which, prover):
    """Of every BF16 significand over tensor scales of a few bits: to nearest, ties to even, saturating."""
    config = QuantiserConfig("x", form, rule, "bfloat16", tensor_scale_bits=BITS, pipeline=())
    text = "\n".join(design(BlockScale, config, "top", str(which)).texts.values())
    top = TARGETS[form, rule][which].top
    miter = f"""
module miter(input [6:0] fraction, input signed [4:0] place, input [{BITS - 2}:0] tensor_fraction, input empty,
    output wrong);
  wire [6:0] code;
  wire [2:0] under;
  wire saturated;
  top block(.fraction(fraction), .exponent(place), .tensor_fraction(tensor_fraction), .empty(empty),
    .code(code), .saturated(saturated), .place(under));
  function [19:0] value(input [7:0] c);
    value = c < 8 ? c : (8 + c[2:0]) << (c[6:3] - 1);
  endfunction
  // Twice the quotient in units of 2^-9 is dividend / divisor, both times 32.
  wire [4:0] shift = place + {BITS + 5};
  wire [39:0] dividend = {{1'b1, fraction, 1'b0}} << shift;
  wire [15:0] divisor = {{1'b1, tensor_fraction}} * {32 * top};
  wire [39:0] above = (value(code) + value(code + 1)) * divisor;
  wire [39:0] below = (value(code) + value(code - 1)) * divisor;
  wire beyond = code == 126 & dividend > above;
  wire low = code != 0 & (dividend < below | dividend == below & code[0]);
  wire high = !beyond & (dividend > above | dividend == above & code[0]);
  wire nearest = !low & !high & saturated == beyond;
  wire right = empty ? code == 0 & !saturated : nearest;
  assign wrong = place >= -7 & place <= 14 & (!right | code == 0 & under != 0);
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("dividend == below & code[0]", "dividend == below & !code[0]"))


@pytest.mark.parametrize(
    ("rule", "counts", "least"),
    [
        ("second-largest", "(4 * {0} >= 3 * largest)", 2),
        ("gap", "(4 * {0} >= 3 * largest && 16 * {0} < 15 * largest)", 1),
    ],
    ids=["second-largest", "gap"],
)
def test_rules_by_magnitudes(rule, counts, least, prover):
    """For all magnitudes of 16 numbers, and all largest ones: E2M1 where fewer count than that."""
    bits = 8
    config = QuantiserConfig("x", selection=rule, error_bits=bits, pipeline=())
    text = "\n".join(design(MagnitudeChoice, config, "top").texts.values())
    words = "\n".join(
        f"wire [{bits + 4}:0] y{lane} = magnitudes[{bits * lane + bits - 1}:{bits * lane}];" for lane in range(16)
    )
    miter = f"""
module miter(input [{bits - 2}:0] fraction, input [{16 * bits - 1}:0] magnitudes, output wrong);
  wire second;
  top block(.largest({{1'b1, fraction}}), .magnitudes(magnitudes), .second(second));
  wire [{bits + 4}:0] largest = {{1'b1, fraction}};
  {words}
  assign wrong = second != ({" + ".join(counts.format(f"y{lane}") for lane in range(16))} < {least});
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("4 * y7 >=", "4 * y7 >"))


class Counted(Elaboratable):
    """The code of a number from the multiples of a step of six bits, its leading one at the top.

    With a stand-in it is that of the second candidate of MixFP4, its multiples in the place of the first one's.
    """

    def __init__(self, candidate, stand_in=None):
        self.candidate = candidate
        self.stand_in = stand_in or {}
        self.step = Signal(6)
        self.place = Signal(3)
        self.below = Signal(3)
        self.fraction = Signal(10)
        self.code = Signal(3)

    def elaborate(self, platform):
        m = Module()
        bounds = {"place": self.place}
        for odd in odd_midpoints(self.candidate):
            other, up = self.stand_in.get(odd, (odd, 0))
            product = Signal(6 + (other.bit_length() if other > 1 else 0), name=f"times{odd}")
            m.d.comb += product.eq(self.step * other)
            bounds[f"high{odd}"] = (product[-1] + up)[: 1 + up]
            bounds[f"bound{odd}"] = Mux(product[-1], product, product << 1)[: len(product) - 1]
        m.d.comb += self.code.eq(compared(m, self.candidate, bounds, self.below, self.fraction, "of"))
        return m


@pytest.mark.parametrize(
    ("which", "stand_in", "midpoints"),
    [
        (0, {}, (1, 3, 5, 7, 9, 11, 13)),
        (1, {}, (1, 3, 5, 7, 10, 14, 20)),
        (0, stand_ins(QuantiserConfig("x", selection="gap")), (1, 3, 5, 7, 10, 14, 20)),
    ],
    ids=["E1M2", "E2M1", "E2M1 in the place of E1M2"],
)
def test_the_code_is_the_number_of_midpoints_below(which, stand_in, midpoints, prover):
    """For all numbers of ten bits and a sticky one, and all steps; a tie goes to the even code."""
    block = Counted(TARGETS["mixfp4", "nearest"][which], stand_in)
    ports = [block.step, block.place, block.below, block.fraction, block.code]
    text = rtlil.convert(block, ports=ports, emit_src=False)
    counted = " + ".join(f"(number {'>=' if code & 1 else '>'} {times} * unit)" for code, times in enumerate(midpoints))
    miter = f"""
module miter(input [4:0] low, input [2:0] place, input [2:0] below, input [9:0] fraction, output wrong);
  wire [2:0] code;
  wire [5:0] step = {{1'b1, low}};
  top block(.step(step), .place(place), .below(below), .fraction(fraction), .code(code));
  // Both with their leading ones at place 10, shifted.
  wire [29:0] number = {{1'b1, fraction}} << (7 - below);
  wire [29:0] unit = step << (5 + 8 - place);
  wire [2:0] count = {counted};
  assign wrong = code != (place == 0 ? 0 : count);
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("number >= 3", "number > 3"))
