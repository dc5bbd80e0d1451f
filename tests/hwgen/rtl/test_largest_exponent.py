"""The largest exponent proven equal to plain Verilog operators, for all inputs."""

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.lanes import lanes
from hwgen.rtl.largest_exponent import LargestExponent
from hwgen.verilog import design


@pytest.mark.parametrize(
    ("a", "b", "dot"),
    [
        ("mxfp8-e4m3", "mxfp8-e4m3", "windowed"),
        ("mxfp8-e5m2", "mxfp8-e5m2", "windowed"),
        ("fp16", "int4", "windowed"),
        ("l-mul", "l-mul", "additive"),
    ],
)
def test_largest_exponent(a, b, dot, prover):
    """It is one of all and none is above it; each product is shifted by how far it is below, at most by all it has."""
    config = TensorCoreConfig("x", a, b, 1, 1, 1, dot=dot, pipeline=())
    count, bits = config.bounds.lanes, config.bounds.product_span.bit_length()
    window = lanes(config).window
    places = window.emptying
    text = "\n".join(design(LargestExponent, config, "top").texts.values())
    miter = f"""
module miter(input [{count * bits - 1}:0] exponents, output wrong);
  wire [{bits - 1}:0] largest;
  wire [{count * places - 1}:0] counts;
  top block(.exponents(exponents), .largest(largest), .counts(counts));
  wire [{places - 1}:0] most = -1;
  wire [{count - 1}:0] above, equal, off;
  genvar i;
  generate for (i = 0; i < {count}; i = i + 1) begin
    wire [{bits - 1}:0] own = exponents[{bits} * i +: {bits}];
    wire [{bits - 1}:0] distance = largest - own;
    assign above[i] = own > largest;
    assign equal[i] = own == largest;
    assign off[i] = counts[{places} * i +: {places}] != (distance > most ? most : distance);
  end endgenerate
  assign wrong = above || !equal || off;
endmodule
"""
    assert (1 << places) - 1 >= window.width
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("own > largest", f"own > largest || own == {(1 << bits) - 1}"))
