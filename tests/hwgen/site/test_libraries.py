import pytest

from hwgen.report.schema import LibrariesReport
from hwgen.site import libraries
from hwgen.site.sources import of_kind, read


@pytest.fixture
def pairs(folder):
    return list(of_kind(read(folder), LibrariesReport))


def test_every_core_that_is_compared_is_a_point(pairs, evil):
    found = [each for each in libraries.chart(pairs).data["libraries"] if each["metric"] == "energy per MAC"]
    assert [(each["name"], each["library"], each["clock"]) for each in found] == [
        (f"{name} (1 x 16)", f"{library}, 1 ns", clock)
        for name, clock in (("cheap", "met"), ("beaten", "met"), ("late", "missed"))
        for library in ("generic7", evil)
    ]
    assert {(each["value"], each["low"], each["high"]) for each in found} == {(1.02, 1.018, 1.022)}


def test_the_table_has_all_rows_and_says_why_some_were_not_measured(pairs, parsed, evil):
    (text,) = libraries.tables(pairs)
    (rows,) = parsed(text).tables
    assert rows[0] == ["row", *(f"{what}, {name}, 1 ns" for what in ("area", "energy") for name in ("generic7", evil))]
    assert len(rows) == 1 + 6
    assert "<li>later on generic7, 1 ns: no configuration later-small.</li>" in text


def test_reports_choose_each_other(pairs):
    again = [*pairs, *pairs]
    assert [" hidden" in text.partition(">")[0] for text in libraries.tables(again)] == [False, True]
