import csv as csv_module
import dataclasses
import io
import json
from pathlib import Path

import matplotlib.image
import pytest

from hwgen.measure.overhead import Overhead
from hwgen.report import schema
from hwgen.report.markdown import overhead as tables
from hwgen.report.plots.overhead import overhead_png
from hwgen.report.schema import SCOPES


def test_a_report_is_read_back(overhead: Overhead, tmp_path: Path) -> None:
    report = overhead.report()
    path = tmp_path / "report.json"
    path.write_text(schema.as_text(report), encoding="utf-8")
    assert schema.load(path) == report
    assert tables.markdown(schema.load(path), "x.png") == tables.markdown(report, "x.png")
    assert report.names == ("nvfp4-single", "mixfp4-single")
    for entry in report.results:
        every = entry.metric != "smallest area"
        assert (entry.overhead is not None and entry.overhead.low is not None) == (every and entry.unit != "1")
        assert entry.runs == (6 if every else 1)
        assert (entry.contribution is not None) == (entry.block != "total")


def test_netlists_built_for_a_clock_have_their_figures_and_how_they_met_it(overhead: Overhead) -> None:
    """Here with a clock that one core misses."""
    report = overhead.report()
    slack = {"nvfp4-single": 0.01, "mixfp4-single": -0.25}
    closing = {
        name: {
            purpose: {
                "core": schema.Closing(
                    "signed", {"element": "speed"}, 1.0, spare, "scale products", 1234.0, 5.0, 2, 3, ("FA_X1",)
                )
            }
            for purpose in ("area", "energy")
        }
        for name, spare in slack.items()
    }
    physical = schema.Physical("placed", "embedded", 0.7, 0.17, 0.03, 1.1, "a source")
    conditions = dataclasses.replace(report.conditions, clock_ns=1.3, physical=physical, closing=closing)
    text = tables.markdown(dataclasses.replace(report, conditions=conditions), "x.png")
    missed = (
        "**The clock of 1 ns is missed:** mixfp4-single by 0.25 ns, held by scale products. Power is stated at 1.3 ns."
    )
    assert missed in text
    assert "| overhead (generic7, 1.3 ns, placed wires) | area |" in text
    where = "| core | composed of blocks |"
    area = tables.number(report.find("core", "area").values["nvfp4-single"])
    assert f"{where} area | um2 | least area | {area} |" in text
    energy = tables.number(report.find("core", "energy per MAC").values["mixfp4-single"])
    assert any(
        line.startswith(f"{where} energy per MAC | fJ | least energy |") and f"| {energy} |" in line
        for line in text.splitlines()
    )
    row = "| mixfp4-single | core | least energy | `signed` | 1 | 1.25 | -0.250 | scale products | 1,234 | 5 | 2 |"
    assert f"{row} element speed |" in text
    assert "In the worst netlist 3 outputs drive more than the library lets them" in text
    assert "the library has in one size only: `FA_X1`." in text
    assert "## What both take" not in tables.markdown(report, "x.png")


def test_csv_has_a_row_for_each_figure(overhead: Overhead) -> None:
    rows = list(csv_module.DictReader(io.StringIO(tables.csv(overhead.report()))))
    assert len(rows) == len(overhead.figures)
    for row, figure in zip(rows, overhead.figures, strict=True):
        assert (row["scope"], row["block"], row["metric"]) == (figure.scope, figure.block, figure.metric)
        for name, value in figure.values.items():
            assert float(row[name]) == pytest.approx(value, rel=1e-8)
        assert (row["overhead_value"] == "") == (figure.overhead is None)


def test_markdown_states_its_conditions(overhead: Overhead) -> None:
    text = tables.markdown(overhead.report(), "picture.png")
    for words in (
        "# mixfp4-single against nvfp4-single",
        "![Area and dynamic power by block](<picture.png>)",
        "generic7",
        "Yosys 0.",
        "`strash; ifraig; dch; dch; dch; amap -m;",
        "Recipes of nvfp4-single: tensor_core area",
        "## Where the extra area of the core sits",
        "## Who holds the critical path of the core",
        f"clock {overhead.conditions.clock_ns:g} ns",
        "Gaussian tensors (seed 1, others in every run)",
        "Ratio of the means over 6 pairs",
        "What the method makes of no difference",
        "every run of every scope meets it. The slowest: nvfp4-single lane array ",
        "Operands of nvfp4-single: A nvfp4, B nvfp4.",
        "% of its blocks E1M2), B mixfp4 (",
        *(f"## {scope.capitalize()}" for scope in SCOPES),
    ):
        assert words in text
    area = overhead.report().find("core", "area").overhead
    value, low, high = (100 * each for each in (area.value, area.low, area.high))
    assert f"| core | {value:+.2f} % [{low:+.2f}, {high:+.2f}] |" in text


def test_the_plot_is_a_picture_and_the_same_every_time(overhead: Overhead) -> None:
    report = overhead.report()
    content = overhead_png(report)
    picture = matplotlib.image.imread(io.BytesIO(content), format="png")
    assert picture.shape[0] > 400
    assert picture.shape[1] > 800
    assert picture.std() > 0.05
    assert content == overhead_png(schema.from_json(json.loads(schema.as_text(report))))
