import hashlib
import re

import pytest

from hwgen.config import NAMED
from hwgen.errors import ToolError
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


# Every committed figure depends on the order that a seed gives.

ASSIGNMENTS = "".join(
    f"module m{module}(x, y);\n  wire w;\n"
    + "".join(f"  assign y[{bit}] =\n    x[{bit}] ^ w;\n  reg r{bit};\n" for bit in range(20))
    + "endmodule\n"
    for module in range(3)
)
CELLS = (
    "module \\m\n"
    + "".join(
        f'  attribute \\src "x.v:{i}"\n  cell $_AND_ ${i}\n    connect \\A \\a{i}\n    connect \\Y \\y{i}\n  end\n'
        f"  wire \\w{i}\n"
        for i in range(40)
    )
    + "end\n"
)


@pytest.mark.parametrize(
    ("variant", "assignments", "cells"),
    [
        (1, "41d4b455dfb0978c", "07a810adeebc88a5"),
        (2, "5ce465860236ea64", "2cc64b5a26bb7fa4"),
        (17, "83e6cf53c30c8300", "219576bf96bea996"),
    ],
)
def test_a_seed_gives_the_order_that_it_always_gave(variant: int, assignments: str, cells: str) -> None:
    assert hashlib.sha256(shuffled(ASSIGNMENTS, variant).encode()).hexdigest().startswith(assignments)
    assert hashlib.sha256(reordered(CELLS, variant).encode()).hexdigest().startswith(cells)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (shuffled, ASSIGNMENTS.replace("w;\n  reg r3;", "w; // 1\n  reg r3;")),
        (shuffled, ASSIGNMENTS.replace("endmodule\nmodule m1", "endmodule \nmodule m1")),
        (shuffled, ASSIGNMENTS.replace("module m2", "module \\m2 ")),
        (reordered, CELLS.replace("    connect \\Y \\y3\n", "\tconnect \\Y \\y3\n")),
        (reordered, CELLS.replace("  end\n  wire \\w3\n", "  end # 3\n  wire \\w3\n")),
    ],
)
def test_text_of_another_shape_is_refused(function, text: str) -> None:
    assert text not in (ASSIGNMENTS, CELLS)
    with pytest.raises(ToolError, match="cannot perturb: of"):
        function(text, 1)
