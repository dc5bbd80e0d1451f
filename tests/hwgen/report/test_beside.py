"""Tables of formats side by side as a record, and what is refused."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hwgen.errors import InputError
from hwgen.report import schema
from hwgen.report.beside import beside
from hwgen.report.markdown.beside import summary


def elsewhere(report: schema.FormatsReport, name: str = "other", clock_ns: float = 5.0) -> schema.FormatsReport:
    """The same on another library, without one of its rows."""
    flow = report.conditions.flow
    flow = dataclasses.replace(flow, library=dataclasses.replace(flow.library, name=name))
    conditions = dataclasses.replace(report.conditions, flow=flow, clock_ns=clock_ns)
    rows = tuple(row for row in report.results if row.row != "cheap")
    return dataclasses.replace(report, conditions=conditions, results=rows)


def changed(report: schema.FormatsReport, name: str, **changes: object) -> schema.FormatsReport:
    """The same with a row of which something is otherwise."""
    rows = tuple(dataclasses.replace(row, **changes) if row.row == name else row for row in report.results)
    return dataclasses.replace(report, results=rows)


def test_rows_are_matched_by_name(formats_report: schema.FormatsReport, conforms: Callable[[str, Any], None]) -> None:
    both = {"here/a.json": formats_report, "there/b.json": elsewhere(formats_report)}
    report = beside(both)
    assert [row.row for row in report.results] == [row.row for row in formats_report.results]
    tables = report.conditions.tables
    assert {label: of.report for label, of in tables.items()} == {"generic7, 1 ns": "a.json", "other, 5 ns": "b.json"}
    assert [of.conditions for of in tables.values()] == [each.conditions for each in both.values()]
    found = {row.row: row for row in report.results}
    assert found["cheap"].cores["other, 5 ns"] == schema.CoreBeside("not in this report", None, None, ())
    late = found["late"].cores["other, 5 ns"]
    assert (late.met, late.slowest_ns) == (False, 1.04)
    assert [figure.metric for figure in late.figures] == ["area per MAC", "energy per MAC"]
    assert {figure.scope for figure in late.figures} == {"core"}
    assert found["later"].cores["generic7, 1 ns"].not_measured == "no configuration later-small"
    (energy,) = (
        each for each in formats_report.results[2].figures if (each.scope, each.metric) == ("core", "energy per MAC")
    )
    assert found["cheap"].cores["generic7, 1 ns"].find("energy per MAC") == energy
    content = json.loads(schema.as_text(report))
    conforms("libraries", content)
    assert schema.from_json(content) == report


def test_a_row_says_what_it_is_where_it_was_measured(formats_report: schema.FormatsReport) -> None:
    nothing = {"not_measured": "too wide", "baseline": None, "figures": (), "met": None, "slowest_ns": None}
    first = changed(elsewhere(formats_report), "late", **nothing)
    (row,) = (row for row in beside({"a": first, "b": formats_report}).results if row.row == "late")
    assert row.baseline == "nvfp4-small"
    assert [core.not_measured for core in row.cores.values()] == ["too wide", None]


def test_a_rule_has_the_core_of_its_row(with_rule: schema.FormatsReport) -> None:
    found = beside({"one": with_rule, "two": elsewhere(with_rule)})
    row = found.results[-1]
    assert (row.row, row.baseline) == ("four-over-six", "nvfp4-small")
    for core in row.cores.values():
        assert (core.not_measured, core.met, core.slowest_ns) == (None, True, 0.99)
        assert [(each.metric, each.mean, each.overhead) for each in core.figures] == [
            ("area per MAC", 30.0, None),
            ("energy per MAC", 100.0, None),
        ]
    _, lines = summary(found)
    assert lines[-1][:2] == ["four-over-six (1 x 16)", "as nvfp4-small, 30 um2"]


def test_whole_names_where_their_first_parts_are_alike(formats_report: schema.FormatsReport) -> None:
    two = {name: elsewhere(formats_report, name) for name in ("seven_slow", "seven_fast")}
    assert list(beside(two).conditions.tables) == ["seven_slow, 5 ns", "seven_fast, 5 ns"]


def test_two_reports_of_one_library_and_clock(formats_report: schema.FormatsReport) -> None:
    other = elsewhere(formats_report)
    with pytest.raises(InputError, match="reports 'a' and 'b' are both of other, 5 ns"):
        beside({"a": other, "b": other})
    assert len(beside({"a": other, "b": elsewhere(formats_report, clock_ns=4.0)}).conditions.tables) == 2


def test_what_must_be_alike(formats_report: schema.FormatsReport) -> None:
    other = elsewhere(formats_report)
    row = next(row for row in other.results if row.row == "late")
    assert row.a is not None
    assert row.stimulus is not None
    physical = dataclasses.replace(other.conditions.physical, wires="fanout")
    designs = tuple(
        schema.Design({**each.settings, "fraction_bits": 29}) if each.name == row.design else each
        for each in other.designs
    )
    seed, tensors = (
        dataclasses.replace(row.stimulus, **{key: value}) for key, value in (("seed", 7), ("tensors", "flat"))
    )
    for spoiled, words in (
        (
            dataclasses.replace(other, conditions=dataclasses.replace(other.conditions, physical=physical)),
            "wires of the netlists is placed in the one and fanout in the other",
        ),
        (
            dataclasses.replace(other, conditions=dataclasses.replace(other.conditions, lanes=())),
            "lanes that were tried is merged-binary, signed in the one and none in the other",
        ),
        (dataclasses.replace(other, designs=designs), "row 'late': fraction_bits is 35 in the one and 29 in the other"),
        (
            changed(other, "late", a=dataclasses.replace(row.a, block=32)),
            "row 'late': block of format A is 16 in the one and 32 in the other",
        ),
        (
            changed(other, "late", baseline="nvfp4-2x16-small"),
            "row 'late': baseline is nvfp4-small in the one and nvfp4-2x16-small in the other",
        ),
        (changed(other, "late", stimulus=tensors), "row 'late': operands is gaussian, K = 512, held for 1 steps in"),
    ):
        with pytest.raises(InputError, match=r"^reports 'a' and 'c' do not compare: ") as refused:
            beside({"a": formats_report, "c": spoiled})
        assert words in str(refused.value)
        assert "\n" not in str(refused.value)
    beside({"a": formats_report, "c": changed(other, "late", stimulus=seed)})


def test_clocks_of_two_kinds(formats_report: schema.FormatsReport) -> None:
    """Of two libraries they are refused; of one, or where one report does not say, they are not."""

    def asked(report: schema.FormatsReport, usual: bool | None) -> schema.FormatsReport:
        conditions = dataclasses.replace(report.conditions, usual_clock=usual)
        return dataclasses.replace(report, conditions=conditions)

    other = elsewhere(formats_report)
    words = "the clock is the usual one of its library in the one and one that was asked for in the other"
    with pytest.raises(InputError, match=words):
        beside({"a": formats_report, "b": asked(other, False)})
    for one, two in (
        (formats_report, asked(other, None)),
        (asked(formats_report, False), asked(other, False)),
        (other, asked(elsewhere(formats_report, clock_ns=4.0), False)),
    ):
        assert len(beside({"a": one, "b": two}).conditions.tables) == 2


def test_rows_are_compared_past_a_report_that_lacks_them(formats_report: schema.FormatsReport) -> None:
    between = dataclasses.replace(elsewhere(formats_report, "third"), results=())
    other = changed(elsewhere(formats_report), "late", baseline=None)
    with pytest.raises(InputError, match="reports 'a' and 'c' do not compare: row 'late': baseline is nvfp4-small in"):
        beside({"a": formats_report, "b": between, "c": other})


def test_from_the_command_line(formats_report: schema.FormatsReport, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from hwgen.cli.report import command

    paths = [str(tmp_path / f"{name}.json") for name in "ab"]
    for path, report in zip(paths, (formats_report, elsewhere(formats_report)), strict=True):
        Path(path).write_text(schema.as_text(report))
    out = ["--beside", "both", "--out", str(tmp_path / "out")]
    for _ in range(2):  # the second time over the first
        done = CliRunner().invoke(command, [*paths, *out], catch_exceptions=False)
        assert done.exit_code == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert sorted(written) == ["both.csv", "both.json", "both.md", "both.png"]
    done = CliRunner().invoke(command, [str(tmp_path / "out" / "both.json")], catch_exceptions=False)
    assert done.exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == written
    for arguments, message in (
        ([paths[0], *out], "--beside: takes two reports"),
        ([*paths, *out, "--check"], "--beside and --check"),
        ([paths[0], paths[0], *out], "a.json': is named twice"),
        (
            [paths[0], str(tmp_path / "out" / "both.json"), *out],
            "is of 'hwgen report --beside'; --beside takes those of",
        ),
        ([*paths, "--beside", "../up"], "--beside '../up': must be a plain file name"),
        ([*paths, "--beside", "a", "--out", str(tmp_path)], "--beside 'a': is the name of another report"),
    ):
        failed = CliRunner().invoke(command, arguments)
        assert isinstance(failed.exception, InputError)
        assert message in str(failed.exception)
