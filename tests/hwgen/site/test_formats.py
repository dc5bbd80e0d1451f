import dataclasses

import pytest

from hwgen.report.schema import FormatsReport, Similarity
from hwgen.site import formats
from hwgen.site.charts import COLOURS, compiled
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
    assert {each["name"]: (each["cost"], each["accuracy"], each["front"]) for each in found} == {
        "nvfp4": (30.0, 20.0, False),
        "nvfp4, four-over-six": (30.0, 21.0, True),
        "cheap": (28.0, 18.0, True),
        "beaten": (31.0, 17.0, False),
    }


def test_points_far_below_stand_at_the_edge_with_their_figure(pairs):
    ((source, report), *_) = pairs
    rows = list(report.results)
    poor = dataclasses.replace(rows[2].errors[0], decibels={"gaussian": 2.0, "heavy-tailed": 17.0})
    rows[2] = dataclasses.replace(rows[2], errors=(poor,))
    found = formats.chart([(source, dataclasses.replace(report, results=tuple(rows)))]).data["formats"]
    (cheap,) = (
        each for each in found if (each["kind"], each["metric"], each["cost"]) == ("gaussian", "area per MAC", 28.0)
    )
    assert (cheap["name"], cheap["accuracy"]) == ("cheap: 2", 2.0)
    assert 16 < cheap["place"] < 17
    assert all(each["place"] == each["accuracy"] for each in found if each["name"] != "cheap: 2")


def test_a_trained_models_output_can_be_chosen(pairs):
    source, report = pairs[0]
    first, *others = report.results
    similar = {"nearest": Similarity(0.96, 0.9, 0.01)}
    known = dataclasses.replace(
        report,
        conditions=dataclasses.replace(report.conditions, model="minilm"),
        results=(dataclasses.replace(first, similarities=similar), *others),
    )
    chart = formats.chart([(source, known)])
    found = [each for each in chart.data["formats"] if each["kind"] == "similarity"]
    assert {(each["name"], each["metric"], each["accuracy"]) for each in found} == {
        ("nvfp4", metric, 0.96) for metric in ("area per MAC", "energy per MAC")
    }
    assert any('value="similarity"' in control for control in chart.controls)
    assert not any('value="similarity"' in control for control in formats.chart(pairs).controls)


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


def test_the_chart_has_a_list_of_what_is_added_up(pairs):
    chart = formats.chart(pairs)
    (control,) = (each for each in chart.controls if 'data-param="products"' in each)
    assert [control.index(words) for words in ("all", "16 products", "32 products")] == sorted(
        control.index(words) for words in ("all", "16 products", "32 products")
    )
    for spec in chart.specs.values():
        line, points, _ = spec["layer"]
        assert points["encoding"]["color"]["scale"]["domain"] == ["16 products", "32 products"]
        # The line of a front has the colour of its points.
        assert [each["value"] for each in line["encoding"]["color"]["condition"]] == list(COLOURS[:2])


def test_a_report_without_points_has_its_table(pairs):
    source, report = pairs[0]
    rows = tuple(dataclasses.replace(row, met=False) for row in report.results)
    late = [(source, dataclasses.replace(report, results=rows))]
    chart = formats.chart(late)
    assert chart.data["formats"] == []
    assert all(compiled(spec) for spec in chart.specs.values())
    assert len(formats.tables(late)) == 1
