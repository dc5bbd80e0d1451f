"""Here only the miter; proofs of mutants are in test_quantisers.py."""

from sim.mutate.transparent import _miter


def test_every_output_is_compared():
    scope = "module \\scope\n  wire width 74 output 1 \\result__payload\n  wire output 2 \\block__ready\n"
    scope += "  wire width 8 input 3 \\tensor_exponent\n  wire width 16 input 4 \\mutant\n"
    scope += "  wire width 3 output 5 \\seen0\nend\n"
    text = _miter(scope)
    assert "module miter(input [7:0] tensor_exponent, output differ);" in text
    for name in ("result__payload", "block__ready"):
        assert f"(faultless_{name} != faulty_{name})" in text
    assert "scope faulty(.mutant(16'd1), .tensor_exponent(tensor_exponent)" in text
    # What the fault comes to first need not be a result.
    assert "&& ((faultless_seen0 != faulty_seen0)) && (" in text
