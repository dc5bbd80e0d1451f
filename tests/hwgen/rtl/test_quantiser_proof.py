"""Parts of the quantiser proven, for all inputs."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Module, Signal

from hwgen.config.quantiser import TARGETS, QuantiserConfig
from hwgen.rtl.quantiser.block_scale import BlockScale
from hwgen.rtl.quantiser.lane import _compared, _two_levels
from hwgen.rtl.quantiser.multiples import midpoints
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
  wire saturated, live;
  top block(.fraction(fraction), .place(place), .tensor_fraction(tensor_fraction), .empty(empty),
    .code(code), .saturated(saturated), .live(live));
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
  assign wrong = place >= -7 & place <= 14 & (!right | live != (code != 0));
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("dividend == below & code[0]", "dividend == below & !code[0]"))


class Counted(Elaboratable):
    """The codes of E1M2 by seven comparisons, and by a cut and three."""

    def __init__(self):
        self.candidate = TARGETS["mixfp4", "nearest"][0]
        # As wide as with a tensor scale of two bits.
        self.step = Signal(9)
        self.whole = Signal(12)
        self.sticky = Signal()
        self.seven = Signal(3)
        self.three = Signal(3)
        self.rest = Signal(13)

    def elaborate(self, platform):
        m = Module()
        steps = {odd: Signal(13, name=f"w{odd}") for odd in (1, 3, 5, 7, 9, 11, 13)}
        m.d.comb += [value.eq(self.step * odd) for odd, value in steps.items()]
        code, _ = _compared(m, self.candidate, steps, self.whole, self.sticky, "all")
        m.d.comb += self.seven.eq(code)
        code, rest = _two_levels(m, self.candidate, steps, self.whole, self.sticky, "cut")
        m.d.comb += [self.three.eq(code), self.rest.eq(rest)]
        return m


def test_a_cut_and_three_comparisons_count_as_seven(prover):
    block = Counted()
    assert midpoints(block.candidate) == (2, 6, 10, 14, 18, 22, 26)
    ports = [block.step, block.whole, block.sticky, block.seven, block.three, block.rest]
    text = rtlil.convert(block, ports=ports, emit_src=False)
    miter = """
module miter(input [8:0] step, input [11:0] whole, input sticky, output wrong);
  wire [2:0] seven, three;
  wire [12:0] rest;
  top block(.step(step), .whole(whole), .sticky(sticky), .seven(seven), .three(three), .rest(rest));
  // In halves of a unit; a tie goes to the even code, so that an odd one goes up.
  wire [16:0] number = {whole, sticky};
  wire [2:0] count = (number > 4 * step) + (number >= 12 * step) + (number > 20 * step) + (number >= 28 * step)
    + (number > 36 * step) + (number >= 44 * step) + (number > 52 * step);
  wire [12:0] left = whole - (count > 3 ? 16 * step : 0);
  // Without a step the scale is 0, and so are all codes, whatever is counted.
  assign wrong = step != 0 & (seven != count | three != count | rest != left);
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("number > 36", "number >= 36"))
