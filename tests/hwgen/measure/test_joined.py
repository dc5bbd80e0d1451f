"""Parts of a table of formats as one table."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from hwgen.cli.report import command
from hwgen.errors import InputError
from hwgen.measure.joined import joined
from hwgen.report import schema
from hwgen.stats import paired

REPORTS = Path(__file__).parents[3] / "reports"


def table() -> schema.FormatsReport:
    found = schema.load(REPORTS / "formats.json")
    assert isinstance(found, schema.FormatsReport)
    return found


def of(rows: Callable[[schema.FormatRow], bool]) -> schema.FormatsReport:
    """A part of the table: some rows, and all that these are compared with."""
    whole = table()
    asked = [row for row in whole.results if rows(row)]
    needed = {row.baseline for row in asked if row.baseline} | {"nvfp4-small"}
    results = tuple(row for row in whole.results if row in asked or row.design in needed)
    names = {row.design for row in results}
    return dataclasses.replace(
        whole, designs=tuple(each for each in whole.designs if each.name in names), results=results
    )


def changed(report: schema.FormatsReport, name: str, **changes: object) -> schema.FormatsReport:
    """The same with a row of which something is otherwise."""
    rows = (dataclasses.replace(row, **changes) if row.row == name else row for row in report.results)
    return dataclasses.replace(report, results=tuple(rows))


def values(row: schema.FormatRow, runs: slice, factor: float = 1.0) -> tuple[schema.FormatFigure, ...]:
    """Figures of some runs, times a factor."""
    return tuple(dataclasses.replace(each, values=tuple(factor * x for x in each.values[runs])) for each in row.figures)


def found(report: schema.FormatsReport, name: str) -> schema.FormatRow:
    return report.find(name) or pytest.fail(f"no row {name}")


def test_parts_make_the_whole_again() -> None:
    whole = table()
    for part in (
        lambda row: row.products == 16,
        lambda row: row.row in ("mixfp4", "mxfp4", "hif4", "bipolar"),
        lambda row: row.not_measured is None,
    ):
        one, other = of(part), of(lambda row, part=part: not part(row))
        assert {row.row for row in one.results} != {row.row for row in whole.results}
        for parts in ({"a": one, "b": other}, {"a": other, "b": one}, {"a": one, "b": other, "c": whole}):
            assert joined(parts) == whole


def test_the_most_runs_count_and_overheads_are_over_the_baseline_of_the_whole() -> None:
    """A baseline of more runs than a row: the row is compared with as many."""
    whole = table()
    base, row = found(whole, "nvfp4"), found(whole, "mixfp4")
    few = changed(of(lambda each: each.row == "mixfp4"), "nvfp4", figures=values(base, slice(4)))
    few = changed(few, "mixfp4", figures=values(row, slice(4)))
    fewer = changed(few, "mixfp4", figures=values(row, slice(3)))
    other = of(lambda each: each.row == "nvint4")
    for parts in ({"a": few, "b": other, "c": fewer}, {"a": fewer, "b": few, "c": other}):
        result = joined(parts)
        assert (found(result, "nvfp4").runs, found(result, "mixfp4").runs) == (base.runs, 4)
        ours, theirs = (found(result, name).find("core", "area") for name in ("mixfp4", "nvfp4"))
        assert ours
        assert theirs
        assert ours.overhead == paired(theirs.values[:4], ours.values)
        assert found(result, "nvint4") == found(whole, "nvint4")


def test_conditions_are_those_of_the_widest_part() -> None:
    """A part whose rows cannot take some lanes was offered all it could be."""
    whole = table()
    four, long = of(lambda row: row.row == "mixfp4"), of(lambda row: row.row == "mxint8")
    lanes = [name for name in whole.conditions.lanes if name not in ("booth", "shifted-carry-save")]
    conditions = dataclasses.replace(four.conditions, lanes=tuple(lanes), runs=16, half_width=0.01)
    result = joined({"a": dataclasses.replace(four, conditions=conditions), "b": long})
    assert set(result.conditions.lanes) == set(whole.conditions.lanes)
    assert (result.conditions.runs, result.conditions.half_width) == (16, 0.01)
    conditions = dataclasses.replace(long.conditions, lanes=tuple(lanes))
    with pytest.raises(
        InputError, match="'a' and 'b' do not compare: lanes to choose from for mxint8-small is none in"
    ):
        joined({"a": whole, "b": dataclasses.replace(long, conditions=conditions)})


def test_what_must_be_alike() -> None:
    whole = table()
    row, base = found(whole, "mixfp4"), found(whole, "nvfp4")
    flow = whole.conditions.flow
    core = dataclasses.replace(base.closing["area"]["core"], lanes="binary")
    closing = {**base.closing, "area": {**base.closing["area"], "core": core}}

    def with_conditions(**changes: object) -> schema.FormatsReport:
        return dataclasses.replace(whole, conditions=dataclasses.replace(whole.conditions, **changes))

    for spoiled, words in (
        (with_conditions(flow=dataclasses.replace(flow, recipes={})), "recipes of the flow is"),
        (with_conditions(clock_ns=1.25), "clock_ns is 1.0 in the one and 1.25 in the other"),
        (with_conditions(model=None), "model is minilm in the one and not said in the other"),
        (changed(whole, "nvfp4", closing=closing), "row 'nvfp4': core for least area is"),
        (
            changed(whole, "mixfp4", figures=values(row, slice(None), 1.01)),
            f"row 'mixfp4': area of the core, mean of {row.runs} runs, is",
        ),
        (changed(whole, "mixfp4", baseline="nvfp4-2x16-small"), "row 'mixfp4': baseline is nvfp4-small in the one"),
    ):
        with pytest.raises(InputError, match=r"^reports 'a' and 'b' do not compare: ") as refused:
            joined({"a": whole, "b": spoiled})
        assert words in str(refused.value)
        assert "\n" not in str(refused.value)
    # Runs that are late or dear take other recipes; what is dear depends on the others.
    joined({"a": whole, "b": changed(whole, "mixfp4", figures=values(row, slice(None), 1.001))})


def test_from_the_command_line(tmp_path: Path) -> None:
    from click.testing import CliRunner

    paths = [str(tmp_path / f"{name}.json") for name in "ab"]
    for path, products in zip(paths, (16, 32), strict=True):
        Path(path).write_text(schema.as_text(of(lambda row, products=products: row.products == products)))
    out = ["--join", "both", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(command, [*paths, *out], catch_exceptions=False)
    assert done.exit_code == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"both.csv", "both.json", "both.md", "both.png", "both-error.png"}
    whole = schema.load(tmp_path / "out" / "both.json")
    assert isinstance(whole, schema.FormatsReport)
    assert {row.row for row in whole.results} == {row.row for row in table().results if row.products in (16, 32)}
    for arguments, message in (
        ([paths[0], *out], "--join: takes two reports"),
        ([*paths, *out, "--check"], "--join and --check: give one of them"),
        ([*paths, *out, "--beside", "both"], "--beside and --join: give one of them"),
        ([paths[0], str(REPORTS / "overhead.json"), *out], "is of 'hwgen compare'; --join takes those of"),
        ([*paths, "--join", "../up"], "--join '../up': must be a plain file name"),
    ):
        failed = CliRunner().invoke(command, arguments)
        assert isinstance(failed.exception, InputError)
        assert message in str(failed.exception)
