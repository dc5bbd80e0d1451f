"""Tables of formats side by side as Markdown, CSV and for the terminal."""

import dataclasses
import io

import pandas as pd
import pytest

from hwgen.report import schema
from hwgen.report.beside import beside
from hwgen.report.markdown.beside import csv, markdown, summary

OVER = "+2.00 % [+1.80, +2.20]"


@pytest.fixture
def report(formats_report: schema.FormatsReport) -> schema.LibrariesReport:
    conditions = dataclasses.replace(formats_report.conditions, clock_ns=5.0)
    rows = tuple(row for row in formats_report.results if row.row != "cheap")
    other = dataclasses.replace(formats_report, conditions=conditions, results=rows)
    return beside({"b.json": other, "a.json": formats_report})


def cells(text: str, name: str) -> list[list[str]]:
    """Cells of a row in each of the tables."""
    return [line.strip("| ").split(" | ")[1:] for line in text.splitlines() if line.startswith(f"| {name} ")]


def test_a_column_for_each_library(report: schema.LibrariesReport) -> None:
    text = markdown(report, "both.png")
    assert text.count("| row | generic7, 5 ns | generic7, 1 ns |") == 3
    assert cells(text, "cheap (1 x 16)") == [["not measured", OVER], ["not measured", OVER], ["not measured", "0.99"]]
    assert cells(text, "late (1 x 16)") == [[f"{OVER} (clock missed)"] * 2] * 2 + [["1.04 (missed)"] * 2]
    area, energy, longest = cells(text, "nvfp4 (1 x 16)")
    assert area == ["baseline, 30 um2"] * 2
    assert energy == ["baseline, 100 fJ"] * 2
    assert longest == ["0.99"] * 2
    assert "| nvfp4-2x16 (2 x 16) |" in text
    assert "\n- cheap on generic7, 5 ns: not in this report.\n" in text
    assert "\n- later: no configuration later-small.\n" in text
    assert "- generic7, 5 ns: `b.json`, library generic7, " in text
    assert ", 6 runs of a row, hwgen" in text


def test_the_terminal_has_area_and_energy(report: schema.LibrariesReport) -> None:
    header, rows = summary(report)
    assert header == [
        "row",
        *(f"{what}, generic7, {clock} ns" for what in ("area", "energy") for clock in (5, 1)),
    ]
    assert {len(row) for row in rows} == {len(header)}
    assert ["cheap (1 x 16)", "not measured", OVER, "not measured", OVER] in rows


def test_csv_has_every_figure(report: schema.LibrariesReport) -> None:
    found = pd.read_csv(io.StringIO(csv(report)))
    figures = sum(len(core.figures) for row in report.results for core in row.cores.values())
    assert found["value"].notna().sum() == figures
    (late,) = found[
        (found["row"] == "late") & (found["clock_ns"] == 5.0) & (found["metric"] == "area per MAC")
    ].to_dict("records")
    assert (late["value"], late["overhead_value"], late["overhead_low"], late["overhead_high"]) == (
        20,
        0.02,
        0.018,
        0.022,
    )
    assert (late["clock_met"], late["slowest_ns"], late["runs"], late["report"]) == (False, 1.04, 6, "b.json")
    assert set(found[found["row"] == "later"]["note"]) == {"no configuration later-small"}
    assert list(found[found["row"] == "cheap"]["note"].fillna("")) == ["not in this report", "", ""]
