import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hwgen.errors import InputError
from hwgen.report import schema
from hwgen.report.beside import beside
from hwgen.report.schema_page import described, page
from hwgen.stats import Estimate

ROOT = Path(__file__).parents[3]
REPORTS = [path for path in sorted((ROOT / "reports").glob("*.json")) if not path.stem.startswith("mutation")]
RECORDS = [
    value
    for name in schema.__all__
    for value in [getattr(schema, name)]
    if isinstance(value, type) and dataclasses.is_dataclass(value)
]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_report_is_read_and_written_byte_for_byte(path: Path) -> None:
    assert schema.as_text(schema.load(path)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_says_what_it_means(record: type) -> None:
    assert list(described(record)) == [field.name for field in dataclasses.fields(record)] or set(
        described(record)
    ) == {field.name for field in dataclasses.fields(record)}


def test_the_page_on_the_schema_is_current() -> None:
    text = (ROOT / "docs" / "report-schema.md").read_text(encoding="utf-8")
    assert text == page(), "python -m hwgen.report.schema_page > docs/report-schema.md"
    assert max(map(len, text.splitlines())) <= 120


def test_the_page_has_every_record_and_metric() -> None:
    text = page()
    for record in (*RECORDS, Estimate):
        assert record is schema.Report or f"# {record.__name__}\n" in text
    words = " ".join(text.split())
    for path in REPORTS:
        report = schema.load(path)
        if isinstance(report, schema.OverheadReport):
            assert all(f"`{figure.metric}`" in words for figure in report.results)


def _small() -> dict:
    return json.loads((ROOT / "reports" / "overhead.json").read_text())


def _set(content: dict, value: object, *keys: object) -> dict:
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return content


@pytest.mark.parametrize(
    ("value", "keys", "message"),
    [
        ("9.6", ("conditions", "clock_ns"), "report.conditions.clock_ns: must be a number"),
        (True, ("conditions", "clock_ns"), "report.conditions.clock_ns: must be a number"),
        (1.5, ("conditions", "runs"), "report.conditions.runs: must be an integer"),
        (None, ("results", 3, "values"), r"report.results\[3\].values: must be an object"),
        ({}, ("results",), "report.results: must be a list"),
        (7, ("results", 0, "scope"), r"report.results\[0\].scope: must be text"),
        ({"value": 1.0, "low": None}, ("results", 0, "overhead"), r"report.results\[0\].overhead: 'high' is missing"),
        ([{"name": "x"}], ("designs",), r"report.designs\[0\].rows: must be an integer"),
        (10**400, ("conditions", "clock_ns"), "report.conditions.clock_ns: must be a number"),
    ],
)
def test_what_is_wrong_in_a_report_is_named(value: object, keys: tuple, message: str) -> None:
    with pytest.raises(InputError, match=rf"damaged \({message}"):
        schema.from_json(_set(_small(), value, *keys))


def test_a_row_of_a_design_that_is_not_there_is_named(formats_report: schema.FormatsReport) -> None:
    content = json.loads(schema.as_text(formats_report))
    row = next(row for row in content["results"] if row["design"] is not None)
    row["design"] = "other"
    with pytest.raises(InputError, match=rf"row '{row['row']}' is of design 'other', which is not one of designs"):
        schema.from_json(content)


def test_a_table_of_formats_from_before_it_said_what_its_clock_is(formats_report: schema.FormatsReport) -> None:
    content = json.loads(schema.as_text(formats_report))
    del content["conditions"]["usual_clock"]
    report = schema.from_json(content)
    assert isinstance(report, schema.FormatsReport)
    assert report.conditions.usual_clock is None
    assert schema.to_json(report) == content


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda row: row.update(b=None), "row 'cheap' is of design 'cheap-small', and has no format of A or B"),
        (lambda row: row["figures"][3].update(values=[]), "row 'cheap' has a figure without values"),
        (
            lambda row: row["closing"]["energy"].pop("core"),
            "row 'cheap' has figures, and not how its core met the clock",
        ),
        (lambda row: row.update(figures=row["figures"][:1]), "row 'cheap' has figures, and not all of its lane array"),
    ],
)
def test_a_row_that_lacks_something_is_named(
    formats_report: schema.FormatsReport, spoil: Callable[[dict], None], message: str
) -> None:
    content = json.loads(schema.as_text(formats_report))
    spoil(next(row for row in content["results"] if row["row"] == "cheap"))
    with pytest.raises(InputError, match=rf"damaged \(report.results: {message}\)"):
        schema.from_json(content)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda cores: cores.pop("b, 1 ns"), "row 'cheap' has not one core for each of generic7, 1 ns, b, 1 ns"),
        (lambda cores: cores["b, 1 ns"]["figures"][0].update(values=[]), "row 'cheap' has a figure without values"),
    ],
)
def test_a_core_that_lacks_something_is_named(
    formats_report: schema.FormatsReport, spoil: Callable[[dict], None], message: str
) -> None:
    flow = formats_report.conditions.flow
    flow = dataclasses.replace(flow, library=dataclasses.replace(flow.library, name="b"))
    other = dataclasses.replace(formats_report, conditions=dataclasses.replace(formats_report.conditions, flow=flow))
    content = json.loads(schema.as_text(beside({"a.json": formats_report, "b.json": other})))
    spoil(next(row["cores"] for row in content["results"] if row["row"] == "cheap"))
    with pytest.raises(InputError, match=rf"damaged \(report.results: {message}\)"):
        schema.from_json(content)


def test_a_report_from_before_some_keys_is_read() -> None:
    content = _small()
    for purposes in content["conditions"]["closing"].values():
        for scopes in purposes.values():
            for closing in scopes.values():
                del closing["overloaded"], closing["missing"]
    report = schema.from_json(content)
    assert isinstance(report, schema.OverheadReport)
    assert report.conditions.closing is not None
    found = [each for a in report.conditions.closing.values() for b in a.values() for each in b.values()]
    assert {(each.overloaded, each.missing) for each in found} == {(None, None)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a report of hwgen"),
        ('{"schema": "other"}', "not a report of hwgen"),
        ('{"schema": "hwgen-report", "kind": "overhead", "version": 99}', "reads 5; a newer hwgen wrote it"),
        ('{"schema": "hwgen-report", "kind": "overhead", "version": 5, "results": []}', "report.results: is empty"),
        ('{"schema": "hwgen-report", "kind": "power", "version": 3}', "measure it anew with 'hwgen power'"),
        ('{"schema": "hwgen-report", "kind": "overhead", "version": 5}', "'designs' is missing"),
        ('{"schema": "hwgen-report", "kind": "other", "version": 5}', "kind 'other'; this hwgen knows overhead, "),
        ("[" * 100000, "not JSON"),
    ],
)
def test_what_is_not_a_report(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        schema.load(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="No such file"):
        schema.load(tmp_path / "absent.json")
