"""The last adder proven equal to plain Verilog operators, for all inputs."""

import re

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.lanes import lanes
from hwgen.rtl.last_adder import LastAdder
from hwgen.verilog import design


@pytest.mark.parametrize(
    ("a", "b", "dot"),
    [
        ("mxfp8-e4m3", "mxfp8-e4m3", "windowed"),
        ("mxfp8-e5m2", "mxfp8-e5m2", "windowed"),
        ("fp16", "int4", "windowed"),
        ("l-mul", "l-mul", "additive"),
        ("mxfp6-e3m2", "mxfp6-e3m2", "shifted-carry-save"),
        ("mxfp8-e4m3", "mxfp4", "shifted-carry-save"),
    ],
)
def test_last_adder(a, b, dot, prover):
    """Two words of any bits, whose top bit is inverted."""
    config = TensorCoreConfig("x", a, b, 1, 1, 1, dot=dot, pipeline=())
    text = "\n".join(design(LastAdder, config, "top").texts.values())
    width, long = config.bounds.sum_width, lanes(config).last_width
    miter = f"""
module miter(input [{long - 1}:0] x, input [{long - 1}:0] y, output wrong);
  wire signed [{width - 1}:0] sum, below;
  top block(.x(x), .y(y), .sum(sum), .below(below));
  wire [{long - 1}:0] half = 1 << {long - 1};
  wire [{long - 1}:0] less = x + y ^ half, whole = x + y + 1 ^ half;
  assign wrong = below != less[{width - 1}:0] || sum != whole[{width - 1}:0];
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("x + y + 1", "x + y"))


def test_what_is_one_less_is_for_sums_that_are_scaled():
    unscaled = TensorCoreConfig("x", "int8", "int8", 1, 1, 1, dot="shifted-carry-save", numerics="exact", pipeline=())
    scaled = TensorCoreConfig("x", "mxint8", "mxint8", 1, 1, 1, dot="shifted-carry-save", pipeline=())
    texts = [design(LastAdder, each, "top").texts["top"] for each in (unscaled, scaled)]
    outputs = [set(re.findall(r"output \d+ +(?:signed )?\\(\w+)", text)) for text in texts]
    assert outputs == [{"sum"}, {"sum", "below"}]
