"""Rows of the table of formats, by name."""

import pytest

from hwgen.config import NAMED
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS
from hwgen.measure.formats import rows as module
from hwgen.measure.formats.rows import BASELINE, NOT_BUILT, RULES, TWICE, every, known, row_name, rows_of, with_products
from hwgen.measure.requests import Row


def test_every_small_core_has_a_row() -> None:
    assert {f"{name}-small" for name in known()} == {
        name for name, core in NAMED.items() if name.endswith("-small") and not core.slotted
    }
    assert [row.config for row in rows_of(known())] == [NAMED[f"{name}-small"] for name in known()]


def test_rows_stand_in_the_order_of_their_kinds() -> None:
    """As issue 17 lists them, variants of a row behind it."""
    kinds = (
        "nvfp4 mixfp4 mixfp4-2x16 mixfp4-weights four-over-six nvint4 nvint4-2x16 mxfp4 mxfp4-2x16",
        "fp4-ue5m3-b16 fp4-ue5m3-b32 if4 if4-2x16 razer razer-2x16 blockdialect hif4 msfp12 msfp12-2x16",
        "mxfp8-e4m3 mxfp8-e5m2 mxfp6-e2m3 mxfp6-e3m2 mxint8 w4a8",
        "int4 int4-2x16 int8 int8-2x16 int8-exact opt1 w4a8-int ternary bipolar int4-fp16 l-mul",
    )
    assert [row.name for row in rows_of()] == list(every()) == [name for kind in kinds for name in kind.split()]
    assert {*every()} == {*known(), *TWICE, *RULES, *NOT_BUILT}
    assert set(known()) < set(every())
    # Who names rows has them in that order.
    assert [row.name for row in rows_of(["l-mul", "mixfp4", "nvfp4"])] == ["l-mul", "mixfp4", "nvfp4"]


def test_a_core_of_a_format_that_is_new_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMED", {"later-small": NAMED["if4-small"], **NAMED})
    assert every()[-2:] == ("l-mul", "later")


def test_rows_that_no_core_computes_say_why() -> None:
    for row in rows_of(NOT_BUILT):
        assert row.config is None
        # What a core here gives is in every reason, and what their hardware does instead.
        assert "; a core here " in row.reason
        assert "arXiv" in row.reason
    assert not {*NOT_BUILT, *RULES} & {*known(), *BLOCK_FORMATS}


def test_a_rule_has_the_core_of_another_row() -> None:
    assert rows_of(["four-over-six"]) == (Row("four-over-six", None, "its hardware is that of nvfp4"),)
    assert {*RULES.values()} <= {*known()}


def test_more_blocks_of_a_format_are_a_row_of_their_own() -> None:
    (row,) = rows_of(["mixfp4-2x16"])
    assert row.config is not None
    assert (row.config.name, row.config.depth, row.config.a.name) == ("mixfp4-2x16-small", 32, "mixfp4")
    assert row_name(row.config.name) == row.name
    # A format of that name comes before two blocks of another.
    assert rows_of(["mxfp4-2x16"])[0].config is NAMED["mxfp4-2x16-small"]


def test_as_many_products_need_whole_blocks() -> None:
    assert with_products(BASELINE, 16) is BASELINE
    twice = with_products(BASELINE, 32)
    assert twice is not None
    assert (twice.groups, twice.depth) == (2, 32)
    assert with_products(BASELINE, 24) is None
    assert with_products(BASELINE, 9 * 16) is None


def test_a_format_without_a_core_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find", lambda name: None)
    assert rows_of(["if4"]) == (Row("if4", None, "no configuration if4-small"),)
    (weights,) = rows_of(["razer-weights"])
    assert weights.reason == "no configuration razer-weights-small; it is one format of razer"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["mixfp"], "unknown row 'mixfp'; did you mean 'mixfp4'?"),
        (["mxfp4-2x8"], "unknown row 'mxfp4-2x8'"),
        (["mixfp4", ""], "has an empty name"),
        (["mixfp-small"], "unknown row 'mixfp-small'; did you mean 'mixfp4'?"),
        (["l-mull"], "unknown row 'l-mull'; did you mean 'l-mul'?"),
        (["hif4-8x64"], "configuration 'hif4-8x64-small': fraction_bits = 35"),
        (["nvfp4", "mixfp4", "nvfp4"], "'nvfp4' is given twice"),
        (["nvfp4-multi"], "'nvfp4-multi' has slot = 'full': it multiplies FP8, too, and a row does not"),
    ],
)
def test_what_is_no_row(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(names)
