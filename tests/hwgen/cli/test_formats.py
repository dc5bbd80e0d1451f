"""``hwgen formats``: from the command line to the files."""

import re
from pathlib import Path

import pytest

from hwgen.cli.options import LANES
from hwgen.measure.formats import table as module
from hwgen.measure.formats.rows import BASELINE, NOT_BUILT, RULES, every
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.requests import FormatsRequest
from hwgen.report import schema

REPORTS = Path(__file__).parents[3] / "reports"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[FormatsRequest]:
    """What the command asks for; it gets a report without rows."""
    found: list[FormatsRequest] = []
    source = schema.load(REPORTS / "overhead.json")
    assert isinstance(source, schema.OverheadReport)
    assert source.conditions.physical is not None
    conditions = schema.FormatsConditions(
        source.conditions.flow, 1.0, source.conditions.physical, (), 16, 0.005, True, None, None
    )

    def measure(request: FormatsRequest, *_: object) -> schema.FormatsReport:
        found.append(request)
        return schema.FormatsReport(source.designs[:1], conditions, ())

    monkeypatch.setattr(module, "measure_formats", measure)
    return found


def test_all_rows_are_measured_where_none_is_named(run, asked: list[FormatsRequest], tmp_path: Path) -> None:
    status, _, err = run("formats", "--no-cache")
    assert status == 0, err
    (request,) = asked
    assert [row.name for row in request.rows] == list(every())
    assert (request.baseline, request.lanes, request.physical) == (BASELINE, LANES, Physical())
    assert (request.runs, request.half_width, request.clock_ns) == (16, 0.005, None)
    names = {path.name for path in (tmp_path / "reports").iterdir()}
    assert names == {f"formats.{end}" for end in ("json", "md", "csv", "png")}


def test_rows_that_a_report_has_are_not_searched_for(run, asked: list[FormatsRequest]) -> None:
    """And a line says so; other questions, and `--search`, have a search of their own."""
    for options in ((), ("--search",), ("--clock", "1.1")):
        status, _, err = run("formats", "--no-cache", "--rows", "mixfp4,mxfp4", *options)
        assert status == 0, err
        said = "hwgen: lanes and recipes of nvfp4, nvfp4-2x16, mixfp4, mxfp4 as formats.json has them"
        assert (said in err) == (not options)
    assert [len(request.selected) for request in asked] == [4, 0, 0]


def test_rows_without_a_core_need_no_report(run, asked: list[FormatsRequest]) -> None:
    status, _, err = run("formats", "--no-cache", "--rows", ",".join((*RULES, *NOT_BUILT)))
    assert (status, err.count("as formats.json has them"), len(asked)) == (0, 0, 1)


def test_help_names_rows_without_a_core(run) -> None:
    status, out, _ = run("formats", "--help")
    said = "".join(out.split())  # lines may end behind a hyphen
    assert status == 0
    wanted = "four-over-six has the core of another row; without a core, with the reason: bipolar."
    assert "".join(wanted.split()) in said


@pytest.mark.in_full
def test_a_format_of_a_file_is_measured(run, tmp_path: Path) -> None:
    """The worked example of docs/formats.md, with little effort; the report holds the text of the file."""
    (text,) = re.findall(r"```toml\n(.*?)```", (REPORTS.parent / "docs" / "formats.md").read_text(), re.DOTALL)
    (tmp_path / "mine.toml").write_text(text)
    effort = ("--recipe", "area", "--lanes", "none", "--clock", "8", "--wires", "fanout", "--runs", "1", "--jobs", "1")
    status, _, err = run("formats", "--rows", "mine.toml", *effort, "--no-cache")
    assert status == 0, err
    report = schema.load(tmp_path / "reports" / "formats.json")
    assert isinstance(report, schema.FormatsReport)
    baseline, row = report.results
    assert (baseline.row, row.row, row.baseline, row.met) == ("nvfp4", "mine", "nvfp4-small", True)
    assert report.designs[-1].settings["described"] == {"e4m2-cut": text}
    # Its elements have three bits more.
    assert sum(row.blocks_um2.values()) > 1.3 * sum(baseline.blocks_um2.values())
    decibels = {each.format: each.decibels["gaussian"] for each in (*baseline.errors, *row.errors)}
    assert decibels["e4m2-cut"] > decibels["nvfp4"] + 3


def test_two_files_with_formats_of_one_name_are_refused(run, asked: list[FormatsRequest], tmp_path: Path) -> None:
    for stem, block in (("one", 16), ("two", 32)):
        text = f'[formats.mine]\nelements = ["E2M1"]\nscale = "UE4M3"\nblock = {block}\n'
        (tmp_path / f"{stem}.toml").write_text(text)
    for command in (
        ("formats", "--rows", "one.toml,two.toml"),
        ("compare", "--baseline", "one.toml", "--candidate", "two.toml"),
    ):
        status, _, err = run(*command, "--no-cache")
        assert (status, err.count("\n")) == (2, 1)
        assert "format 'mine' of 'two': another file describes one of that name; rename it" in err
    assert not asked


def test_every_option_is_in_what_is_asked_for(run, asked: list[FormatsRequest], tmp_path: Path) -> None:
    options = ("--rows", "nvfp4, mixfp4-2x16", "--clock", "1.5", "--wires", "fanout", "--lanes", "none", "--seed", "3")
    more = ("--tensors", "outlier-channels", "--runs", "7", "--within", "2", "--recipe", "speed", "--name", "own")
    more = (*more, "--model", "minilm")
    status, out, err = run("formats", "--no-cache", "--json", "--out", "there", *options, *more)
    assert status == 0, err
    (request,) = asked
    assert [row.name for row in request.rows] == ["nvfp4", "mixfp4-2x16"]
    assert request.stimulus == Stimulus(tensors="outlier-channels", seed=3)
    assert (request.recipe, request.clock_ns, request.physical) == ("speed", 1.5, Physical("fanout"))
    assert (request.lanes, request.runs, request.half_width, request.model) == ((), 7, 0.02, "minilm")
    assert (tmp_path / "there" / "own.json").read_text() == out
