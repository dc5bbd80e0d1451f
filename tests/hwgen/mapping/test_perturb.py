import re

from hwgen.config import NAMED
from hwgen.mapping.perturb import reordered, shuffled
from hwgen.rtl.dot import DotProduct
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


RTLIL = """module \\m
  wire width 1 output 1 \\y
  attribute \\src "x.v:1.1-1.2"
  cell $_AND_ $1
    connect \\A \\a
    connect \\Y \\b
  end
  cell $_NOT_ $2
    connect \\A \\b
    connect \\Y \\y
  end
  connect \\z \\y
end
"""


def test_cells_change_places_and_nothing_else() -> None:
    orders = {reordered(RTLIL, variant) for variant in range(1, 9)}
    swapped = RTLIL.replace(
        "".join(RTLIL.splitlines(True)[2:7]) + "".join(RTLIL.splitlines(True)[7:11]),
        "".join(RTLIL.splitlines(True)[7:11]) + "".join(RTLIL.splitlines(True)[2:7]),
    )
    assert swapped != RTLIL
    assert orders == {RTLIL, swapped}
    assert reordered(RTLIL, 3) == reordered(RTLIL, 3)
