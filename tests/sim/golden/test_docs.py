"""docs/golden.md and docs/unscaled.md say what happens."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

from sim import golden

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(("page", "least"), [("golden", 30), ("unscaled", 10)])
def test_the_examples_print_what_they_say(page, least):
    failed, tried = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False, encoding="utf-8")
    assert tried > least
    assert failed == 0


def test_what_the_page_says_of_blocks_of_zeros_without_a_scale_that_is_zero() -> None:
    def cut(a: str, b: str, c: float) -> float:
        one, other = (golden.quantize_padded(np.zeros((1, golden.block_format(each).block)), each) for each in (a, b))
        operands = one.codes, one.scales, other.codes, other.scales
        return float(golden.step(*operands, np.array([[c]], np.float32), a=a, b=b).item())

    page = " ".join((DOCS / "golden.md").read_text().split())
    for a, b, power in (
        ("int8", "int8", 23),
        ("int8", "ternary", 28),
        ("int4", "int4", 33),
        ("blockdialect", "blockdialect", 65),
        ("hif4", "hif4", 133),
    ):
        assert (cut(a, b, 2.0**-power), cut(a, b, 2.0 ** (-power - 1))) == (2.0**-power, 0.0)
        assert re.search(rf"`{b}` (it cuts C to multiples )?of 2\^-{power}\b|2\^-{power} with `{b}`", page), b
    assert f"with `int8` C = 0.1 becomes {cut('int8', 'int8', 0.1):.7f}" in page
    assert cut("mxfp4", "mxfp4", 2.0**-149) == 2.0**-149
