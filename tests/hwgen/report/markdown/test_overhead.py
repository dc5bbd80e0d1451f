import csv as csv_module
import io
import json
from pathlib import Path

import matplotlib.image
import pytest

from hwgen.errors import InputError
from hwgen.measure.figures import SCOPES
from hwgen.measure.overhead import Overhead
from hwgen.report import form
from hwgen.report.markdown import overhead as tables
from hwgen.report.plots import overhead as plots


def test_the_document_holds_what_the_schema_says(overhead: Overhead) -> None:
    report = tables.document(overhead)
    assert (report["schema"], report["version"], report["kind"]) == ("hwgen-report", 3, "overhead")
    assert [design["name"] for design in report["designs"]] == ["nvfp4-single", "mixfp4-single"]
    for entry in report["results"]:
        assert entry.keys() == {
            "configuration", "library", "scope", "block", "metric", "unit", "runs", "values", "overhead",
            "contribution", "baseline_against_itself",
        }  # fmt: skip
        assert entry["configuration"] == {"baseline": "nvfp4-single", "candidate": "mixfp4-single"}
        assert entry["library"] == "generic7"
        assert entry["overhead"].keys() == {"value", "low", "high"}
        every = entry["metric"] != "smallest area"
        assert (entry["overhead"]["low"] is None) != (every and entry["unit"] != "1")
        assert entry["runs"] == (6 if every else 1)
        assert entry["contribution"].keys() == {"value", "low", "high"}
        assert (entry["contribution"]["value"] is not None) == (entry["block"] != "total")
    schema = (Path(__file__).parents[4] / "docs" / "report-schema.md").read_text(encoding="utf-8")
    for word in {*report, *report["results"][0], *(entry["metric"] for entry in report["results"])}:
        assert f"`{word}`" in schema, word


def test_a_report_is_read_back(overhead: Overhead, tmp_path: Path) -> None:
    report = tables.document(overhead)
    path = tmp_path / "report.json"
    path.write_text(form.json_text(report), encoding="utf-8")
    assert form.load(path) == report
    assert tables.markdown(form.load(path), "x.png") == tables.markdown(report, "x.png")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a report of hwgen"),
        ('{"schema": "other"}', "not a report of hwgen"),
        ('{"schema": "hwgen-report", "kind": "overhead", "version": 99}', "schema version 99; this hwgen reads 3"),
        ('{"schema": "hwgen-report", "kind": "overhead", "version": 3}', "'designs' is missing"),
        ("[" * 100000, "not JSON"),
    ],
)
def test_what_is_not_a_report(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        form.load(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="No such file"):
        form.load(tmp_path / "absent.json")


def test_csv_has_a_row_for_each_figure(overhead: Overhead) -> None:
    rows = list(csv_module.DictReader(io.StringIO(tables.csv(tables.document(overhead)))))
    assert len(rows) == len(overhead.figures)
    for row, figure in zip(rows, overhead.figures, strict=True):
        assert (row["scope"], row["block"], row["metric"]) == (figure.scope, figure.block, figure.metric)
        for name, value in figure.values.items():
            assert float(row[name]) == pytest.approx(value, rel=1e-8)
        assert (row["overhead_value"] == "") == (figure.overhead is None)


def test_markdown_states_its_conditions(overhead: Overhead) -> None:
    text = tables.markdown(tables.document(overhead), "picture.png")
    for words in (
        "# mixfp4-single against nvfp4-single",
        "![Area and dynamic power by block](<picture.png>)",
        "generic7",
        "Yosys 0.",
        "`strash; ifraig; dch; dch; dch; amap -m;",
        "Recipes of nvfp4-single: tensor_core area",
        "## Where the extra area of the core sits",
        "## Who holds the critical path of the core",
        f"clock {overhead.conditions['clock_ns']:g} ns",
        "Gaussian tensors (seed 1, others in every run)",
        "Ratio of the means over 6 pairs",
        "What the method makes of no difference",
        *(f"## {scope.capitalize()}" for scope in SCOPES),
    ):
        assert words in text
    area = tables.find(tables.document(overhead), "core", "area")["overhead"]
    value, low, high = (100 * area[key] for key in ("value", "low", "high"))
    assert f"| core | {value:+.2f} % [{low:+.2f}, {high:+.2f}] |" in text


def test_the_plot_is_a_picture_and_the_same_every_time(overhead: Overhead) -> None:
    report = tables.document(overhead)
    content = plots.overhead_png(report)
    picture = matplotlib.image.imread(io.BytesIO(content), format="png")
    assert picture.shape[0] > 400
    assert picture.shape[1] > 800
    assert picture.std() > 0.05
    assert content == plots.overhead_png(json.loads(form.json_text(report)))
