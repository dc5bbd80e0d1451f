import pytest

from hwgen.report.schema import FormatsReport
from hwgen.site import formats
from hwgen.site.sources import of_kind, read


@pytest.fixture
def pairs(folder):
    return list(of_kind(read(folder), FormatsReport))


def test_points_know_whether_they_are_beaten(pairs):
    found = [
        each
        for each in formats.chart(pairs).data["formats"]
        if (each["kind"], each["metric"], each["products"]) == ("gaussian", "area per MAC", "16 products")
    ]
    assert {each["name"]: (each["cost"], each["worth"], each["front"]) for each in found} == {
        "nvfp4": (30.0, 20.0, False),
        "nvfp4, four-over-six": (30.0, 21.0, True),
        "cheap": (28.0, 18.0, True),
        "beaten": (31.0, 17.0, False),
    }


def test_the_table_has_all_rows_and_says_what_is_wrong_with_some(pairs, parsed):
    (text,) = formats.tables(pairs)
    found = parsed(text)
    (rows,) = found.tables
    assert [row[0] for row in rows[1:]] == ["nvfp4", "nvfp4-2x16", "cheap", "beaten", "late", "later"]
    assert "late: misses 1 ns: takes 1.04 ns, held by dot products" in text
    assert "later: not measured: no configuration later-small" in text


def test_reports_choose_each_other(pairs):
    again = [*pairs, *pairs]
    assert [" hidden" in text.partition(">")[0] for text in formats.tables(again)] == [False, True]
