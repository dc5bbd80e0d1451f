"""Tables of formats side by side as a picture."""

import dataclasses

import pytest

from hwgen.report import schema
from hwgen.report.beside import beside
from hwgen.report.plots.beside import beside_png, ratios
from hwgen.stats import Ratio


def test_every_core_that_is_compared_has_a_mark(formats_report: schema.FormatsReport) -> None:
    conditions = dataclasses.replace(formats_report.conditions, clock_ns=3.0)
    other = dataclasses.replace(formats_report, conditions=conditions, results=formats_report.results[:3])
    report = beside({"a": formats_report, "b": other})
    first, second = ratios(report, "area per MAC").values()
    assert {name: met for name, (_, met) in first.items()} == {"cheap": True, "beaten": True, "late": False}
    assert first["late"][0] == Ratio(pytest.approx(1.02), pytest.approx(1.018), pytest.approx(1.022))
    assert set(second) == {"cheap"}
    picture = beside_png(report)
    assert picture.startswith(b"\x89PNG")
    assert picture == beside_png(report)
    met = tuple(dataclasses.replace(row, met=row.met is not None or None) for row in formats_report.results)
    assert picture != beside_png(beside({"a": dataclasses.replace(formats_report, results=met), "b": other}))


def test_reports_in_which_nothing_is_compared_say_so(formats_report: schema.FormatsReport, monkeypatch) -> None:
    monkeypatch.setattr("hwgen.report.plots.beside.png", lambda canvas: canvas)
    conditions = dataclasses.replace(formats_report.conditions, clock_ns=3.0)
    both = [dataclasses.replace(formats_report, results=formats_report.results[:1])]
    both.append(dataclasses.replace(both[0], conditions=conditions))
    picture = beside_png(beside(dict(zip("ab", both, strict=True))))
    said = [[each.get_text() for each in axis.texts] for axis in picture.axes]
    assert said == [["no row has a baseline to compare with"]] * 2
