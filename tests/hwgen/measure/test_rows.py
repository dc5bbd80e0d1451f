"""Rows of the table of formats, by name."""

import pytest

from hwgen.config import NAMED
from hwgen.errors import InputError
from hwgen.formats import BLOCK_FORMATS
from hwgen.measure import rows as module
from hwgen.measure.requests import Row
from hwgen.measure.rows import BASELINE, NOT_BUILT, TWICE, known, row_name, rows_of, with_products


def test_every_small_core_has_a_row() -> None:
    assert {f"{name}-small" for name in known()} == {
        name for name, core in NAMED.items() if name.endswith("-small") and not core.slotted
    }
    cores = tuple(Row(name, NAMED[f"{name}-small"]) for name in known())
    assert rows_of()[: len(cores)] == cores
    assert [row.name for row in rows_of()[len(cores) :]] == [*TWICE, *NOT_BUILT]


def test_rows_that_no_core_computes_say_why() -> None:
    (row,) = rows_of(["l-mul"])
    assert row.config is None
    assert "every product is inexact" in row.reason
    assert not set(NOT_BUILT) & {*known(), *BLOCK_FORMATS}


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
    monkeypatch.setattr(module, "NAMED", {"nvfp4-small": BASELINE})
    assert rows_of(["if4"]) == (Row("if4", None, "no configuration if4-small"),)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["mixfp"], "unknown row 'mixfp': known are nvfp4, .*; did you mean 'mixfp4'?"),
        (["mxfp4-2x8"], "unknown row 'mxfp4-2x8'"),
        (["nvfp4", "mixfp4", "nvfp4"], "'nvfp4' is given twice"),
        ([""], "unknown row ''"),
    ],
)
def test_what_is_no_row(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(names)
