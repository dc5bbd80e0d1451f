"""Error against cost as a picture."""

import dataclasses
from pathlib import Path

import pytest

from hwgen.report import schema
from hwgen.report.plots.errors import SIMILARITY, errors_png, floor, points


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


def test_tensors_say_too_little_of_products_that_are_inexact() -> None:
    """L-Mul has the tensors of MXFP8, and would beat it by them."""
    report = schema.load(Path(__file__).parents[4] / "reports" / "formats.json")
    assert isinstance(report, schema.FormatsReport)
    for kind, there in (("gaussian", False), (SIMILARITY, True)):
        names = {name for each in points(report, "area per MAC", kind).values() for name in each}
        assert "mxfp8-e4m3" in names
        assert ("l-mul" in names) == there


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


@pytest.mark.parametrize(
    ("values", "lowest"),
    [
        ([0.31, 0.20, 0.92, 0.93, 0.95, 0.96, 0.97, 1.0], 0.92),
        ([0.31, 0.92, 0.93, 0.95, 0.96, 0.97, 1.0], 0.92),
        # Not more than one of four; and none where the others are as far apart.
        ([0.1, 0.2, 0.3, 0.92, 0.93, 0.95, 0.96, 0.97], 0.1),
        ([16.0, 18.0, 20.0, 22.0, 24.0, 30.0], 16.0),
        ([0.7, 3.5, 5.5, 13.5, *range(16, 30), 38.0], 0.7),
        ([0.9, 0.95, 0.95, 0.95, 0.95], 0.9),
        ([0.5], 0.5),
    ],
)
def test_a_few_points_far_below_do_not_squash_the_others(values: list[float], lowest: float) -> None:
    assert floor(values) == floor(values[::-1]) == lowest


def test_what_is_far_below_is_marked_at_the_edge(formats_report: schema.FormatsReport, monkeypatch) -> None:
    monkeypatch.setattr("hwgen.report.plots.errors.png", lambda canvas: canvas)
    usual = errors_png(formats_report)
    assert "at the lower edge" not in usual.get_suptitle()
    row = formats_report.results[2]
    poor = dataclasses.replace(
        row, errors=(dataclasses.replace(row.errors[0], decibels={"gaussian": 2.0, "heavy-tailed": 17.0}),)
    )
    rows = (*formats_report.results[:2], poor, *formats_report.results[3:])
    canvas = errors_png(dataclasses.replace(formats_report, results=rows))
    assert "v at the lower edge: below what is shown, by the figure beside its name" in canvas.get_suptitle()
    axes = canvas.axes
    for axis in axes[:2]:
        low, high = axis.get_ylim()
        (mark,) = (line for line in axis.lines if line.get_marker() == "v")
        assert 2.0 < low < mark.get_ydata()[0] < 17.0
        assert high - low < 5
        assert "cheap: 2" in [each.get_text() for each in axis.texts]
    assert [axis.get_ylim() for axis in axes[2:]] == [axis.get_ylim() for axis in usual.axes[2:]]
