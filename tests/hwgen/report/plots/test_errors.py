"""Error against cost as a picture."""

import dataclasses

from hwgen.report import schema
from hwgen.report.plots.errors import SIMILARITY, errors_png, points


def test_points_are_of_rows_that_meet_the_clock_by_products_and_rule(formats_report: schema.FormatsReport) -> None:
    assert points(formats_report, "area per MAC", "gaussian") == {
        16: {
            "nvfp4": (30.0, 20.0),
            "nvfp4, four-over-six": (30.0, 21.0),
            "cheap": (28.0, 18.0),
            "beaten": (31.0, 17.0),
        },
        32: {"nvfp4-2x16": (25.0, 20.0), "nvfp4-2x16, four-over-six": (25.0, 21.0)},
    }
    assert points(formats_report, "energy per MAC", "heavy-tailed")[16]["cheap"] == (95.0, 17.0)


def test_a_rule_that_is_a_row_has_one_point(with_rule: schema.FormatsReport, formats_report) -> None:
    """That of its row takes the place of the small mark."""
    found, without = (points(report, "area per MAC", "gaussian") for report in (with_rule, formats_report))
    assert found[16]["four-over-six"] == without[16].pop("nvfp4, four-over-six")
    assert found[32] == without[32]
    del found[16]["four-over-six"]
    assert found == without


def test_a_trained_models_output_has_a_panel_of_its_own(formats_report: schema.FormatsReport, monkeypatch) -> None:
    monkeypatch.setattr("hwgen.report.plots.errors.png", lambda canvas: canvas)
    first, *others = formats_report.results
    likeness = {rule: schema.Similarity(mean, 0.9, 0.01) for rule, mean in (("nearest", 0.96), ("floor", 0.97))}
    report = dataclasses.replace(
        formats_report,
        conditions=dataclasses.replace(formats_report.conditions, model="minilm"),
        results=(dataclasses.replace(first, similarities=likeness), *others),
    )
    assert points(report, "area per MAC", SIMILARITY) == {16: {"nvfp4": (30.0, 0.96), "nvfp4, floor": (30.0, 0.97)}}
    labels = [axis.get_ylabel() for axis in errors_png(report).axes]
    assert labels[-2:] == ["similarity of embeddings"] * 2
    assert len(labels) == len(errors_png(formats_report).axes) + 2


def test_the_picture_is_drawn(formats_report: schema.FormatsReport) -> None:
    """The same report gives the same bytes, and another error other ones."""
    content = errors_png(formats_report)
    assert content.startswith(b"\x89PNG")
    assert content == errors_png(formats_report)
    row = formats_report.results[2]
    other = dataclasses.replace(row, errors=(dataclasses.replace(row.errors[0], decibels={"gaussian": 19.0}),))
    rows = (*formats_report.results[:2], other, *formats_report.results[3:])
    assert content != errors_png(dataclasses.replace(formats_report, results=rows))


def test_a_picture_without_a_row_says_why(formats_report: schema.FormatsReport, monkeypatch) -> None:
    """All rows miss the clock: each panel says so, and the title names them."""
    monkeypatch.setattr("hwgen.report.plots.errors.png", lambda canvas: canvas)
    rows = tuple(dataclasses.replace(row, met=False) for row in formats_report.results[:2])
    late = errors_png(dataclasses.replace(formats_report, results=rows))
    said = [[each.get_text() for each in axis.texts] for axis in late.axes]
    assert said == [["no row meets the clock"]] * 4
    assert "nvfp4, nvfp4-2x16" in late.get_suptitle()
    drawn = [each.get_text() for axis in errors_png(formats_report).axes for each in axis.texts]
    assert "no row meets the clock" not in drawn
