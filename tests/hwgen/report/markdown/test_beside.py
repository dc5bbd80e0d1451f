"""Tables of formats side by side, from small reports."""

import dataclasses
import json
from pathlib import Path

import pytest

from hwgen.errors import InputError
from hwgen.report import schema
from hwgen.report.markdown.beside import labelled, markdown, row_names


def elsewhere(report: schema.FormatsReport, name: str, clock_ns: float = 5.0) -> schema.FormatsReport:
    """The same on another library, without its last row but one."""
    flow = report.conditions.flow
    flow = dataclasses.replace(flow, library=dataclasses.replace(flow.library, name=name))
    conditions = dataclasses.replace(report.conditions, flow=flow, clock_ns=clock_ns)
    rows = tuple(row for row in report.results if row.row != "cheap")
    return dataclasses.replace(report, conditions=conditions, results=rows)


def cells(text: str, name: str) -> list[list[str]]:
    """Cells of a row in each of the tables."""
    return [line.strip("| ").split(" | ")[1:] for line in text.splitlines() if line.startswith(f"| {name} |")]


def test_rows_are_matched_by_name(formats_report: schema.FormatsReport) -> None:
    other = elsewhere(formats_report, "other")
    text = markdown([other, formats_report], "both.png")
    first = f"{formats_report.conditions.flow.library.name}, 1 ns"
    assert text.count(f"| row | other, 5 ns | {first} |") == 2
    over = "+2.00 % [+1.80, +2.20]"
    assert cells(text, "cheap") == [["not in this report", over]] * 2
    assert cells(text, "later") == [["not measured"] * 2] * 2
    assert cells(text, "late") == [[f"{over} (clock missed)"] * 2] * 2
    area, energy = cells(text, "nvfp4")
    assert area[0] == area[1]
    assert area[0].startswith("baseline, ")
    assert area[0].endswith(" um2")
    assert energy[0].endswith(" fJ")
    assert set(row_names([other, formats_report])) == {row.row for row in formats_report.results}
    assert "not the same" not in text


def test_other_cores_of_one_name_are_said_to_be_so(formats_report: schema.FormatsReport) -> None:
    other = elsewhere(formats_report, "other")
    design = next(row.design for row in other.results if row.row == "late")
    designs = tuple(
        schema.Design({**each.settings, "fraction_bits": 29}) if each.name == design else each for each in other.designs
    )
    text = markdown([formats_report, dataclasses.replace(other, designs=designs)], "both.png")
    assert "\n- late: its core or its baseline is not the same in all reports.\n" in text
    assert text.count("not the same") == 1


def test_two_reports_of_one_library(formats_report: schema.FormatsReport) -> None:
    with pytest.raises(InputError, match="two reports are of other, 5 ns"):
        labelled([elsewhere(formats_report, "other")] * 2)
    assert len(labelled([elsewhere(formats_report, "other"), elsewhere(formats_report, "other", 4.0)])) == 2


def test_from_the_command_line(formats_report: schema.FormatsReport, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from hwgen.cli.report import command

    paths = [str(tmp_path / f"{name}.json") for name in "ab"]
    for path, report in zip(paths, (formats_report, elsewhere(formats_report, "other")), strict=True):
        Path(path).write_text(json.dumps(schema.to_json(report)))
    out = ["--beside", "both", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(command, [*paths, *out], catch_exceptions=False)
    assert done.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["both.md", "both.png"]
    for arguments, message in (
        ([paths[0], *out], "--beside: takes two reports"),
        ([*paths, *out, "--check"], "--beside and --check"),
        ([paths[0], paths[0], *out], "two reports are of"),
        ([*paths, "--beside", "../up"], "--beside '../up': must be a plain file name"),
        ([*paths, "--beside", "a", "--out", str(tmp_path)], "--beside 'a': is the name of a report"),
    ):
        failed = CliRunner().invoke(command, arguments)
        assert isinstance(failed.exception, InputError)
        assert message in str(failed.exception)
