import re

from hwgen.config import NAMED
from hwgen.rtl.dot import DotProduct
from hwgen.synth.perturb import shuffled
from hwgen.verilog import design, verilog

TEXT = verilog(design(DotProduct, NAMED["nvfp4-small"], "dot_product"))


def test_variant_0_is_the_text_itself() -> None:
    assert shuffled(TEXT, 0) is TEXT


def test_a_variant_is_the_same_statements_in_another_order() -> None:
    one, again, other = shuffled(TEXT, 1), shuffled(TEXT, 1), shuffled(TEXT, 2)
    assert one == again
    assert len({TEXT, one, other}) == 3
    assert sorted(TEXT.splitlines()) == sorted(one.splitlines()) == sorted(other.splitlines())
    # Everything but assignments stays where it is.
    keep = [line for line in TEXT.splitlines() if not line.startswith("  assign ")]
    assert keep == [line for line in one.splitlines() if not line.startswith("  assign ")]
    assert len(re.findall("^  assign ", TEXT, re.MULTILINE)) > 100


def test_statements_stay_in_their_module() -> None:
    text = "module a(x, y);\n  assign x = 1;\n  assign y = 2;\nendmodule\nmodule b(z);\n  assign z = 3;\nendmodule\n"
    for variant in range(1, 6):
        first, second = shuffled(text, variant).split("module b")
        assert {"  assign x = 1;", "  assign y = 2;"} < set(first.splitlines())
        assert "  assign z = 3;" in second
