"""Parts of a table of formats as one table."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from hwgen.cli.report import command
from hwgen.errors import InputError
from hwgen.measure.formats.joined import joined
from hwgen.report import schema
from hwgen.report.markdown.formats import markdown

REPORTS = Path(__file__).parents[4] / "reports"


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


def alone(report: schema.FormatsReport, lanes: Sequence[str], *without: str) -> schema.FormatsReport:
    """A part by itself: of the conditions it has lanes of its own, and rows that are left out are not there."""
    rows = tuple(row for row in report.results if row.row not in without)
    names = {row.design for row in rows}
    designs = tuple(each for each in report.designs if each.name in names)
    conditions = dataclasses.replace(report.conditions, lanes=tuple(lanes))
    return dataclasses.replace(report, designs=designs or report.designs[:1], conditions=conditions, results=rows)


def test_parts_make_the_whole_again() -> None:
    whole = table()
    parts_had = whole.conditions.parts or (whole.conditions.runs,)
    expected = dataclasses.replace(whole, conditions=dataclasses.replace(whole.conditions, parts=parts_had))
    for part in (
        lambda row: row.products == 16,
        lambda row: row.row in ("mixfp4", "mxfp4", "hif4", "bipolar"),
        lambda row: row.not_measured is None,
    ):
        one, other = of(part), of(lambda row, part=part: not part(row))
        assert {row.row for row in one.results} != {row.row for row in whole.results}
        for parts in ({"a": one, "b": other}, {"a": other, "b": one}, {"a": one, "b": other, "c": whole}):
            assert joined(parts) == expected


def by_code(report: schema.FormatsReport, code: str | None) -> schema.FormatsReport:
    """The same, measured by the code with this digest."""
    flow = report.conditions.flow
    flow = dataclasses.replace(flow, tools=dataclasses.replace(flow.tools, code=code))
    return dataclasses.replace(report, conditions=dataclasses.replace(report.conditions, flow=flow))


def test_parts_of_other_code_are_refused() -> None:
    """Where a part does not say by which it was measured, the whole does not, either."""
    one, other = of(lambda row: row.products == 16), of(lambda row: row.products != 16)
    with pytest.raises(InputError, match="'a' and 'b' do not compare: code of tools of flow"):
        joined({"a": by_code(one, "1"), "b": by_code(other, "2")})
    for codes, expected in ((("1", "1"), "1"), (("1", None), None), ((None, "1"), None)):
        parts = {"a": by_code(one, codes[0]), "b": by_code(other, codes[1])}
        assert joined(parts).conditions.flow.tools.code == expected


def test_the_most_runs_count_and_rows_keep_their_overheads() -> None:
    """The baseline of a part may be off a little: the row was compared with that."""
    whole = table()
    base, row = found(whole, "nvfp4"), found(whole, "mixfp4")
    few = changed(of(lambda each: each.row == "mixfp4"), "nvfp4", figures=values(base, slice(4), 1.001))
    few = changed(few, "mixfp4", figures=values(row, slice(4)))
    fewer = changed(few, "mixfp4", figures=values(row, slice(3)))
    other = of(lambda each: each.row == "nvint4")
    for parts in ({"a": few, "b": other, "c": fewer}, {"a": fewer, "b": few, "c": other}):
        result = joined(parts)
        assert found(result, "nvfp4") == base
        assert found(result, "mixfp4") == found(few, "mixfp4")
        assert found(result, "nvint4") == found(whole, "nvint4")


def test_how_many_runs_a_row_may_have_is_said_of_all_parts() -> None:
    def with_runs(runs: int, parts: tuple[int, ...] | None = None) -> schema.FormatsReport:
        whole = table()
        return dataclasses.replace(whole, conditions=dataclasses.replace(whole.conditions, runs=runs, parts=parts))

    result = joined({"a": with_runs(16), "b": with_runs(6), "c": with_runs(12, (8, 12))})
    assert (result.conditions.runs, result.conditions.parts) == (16, (6, 8, 12, 16))
    assert "; at most 6 or 8 or 12 or 16, as the part of the table had it that a row" in markdown(result, "whole")
    assert "; at most 6. nvfp4 " in markdown(joined({"a": with_runs(6), "b": with_runs(6)}), "whole")


def test_a_row_was_offered_all_lanes_that_it_can_take() -> None:
    """Others do not count, nor does their order; a message says which report lacks some."""
    whole = table()
    four, long = of(lambda row: row.row == "mixfp4"), of(lambda row: row.row == "mxint8")
    lanes = whole.conditions.lanes
    short = [name for name in lanes if name not in ("booth", "shifted-carry-save")]
    bases = ("nvfp4", "nvfp4-2x16")
    for parts in ({"a": alone(four, short), "b": long}, {"a": long, "b": alone(four, short)}):
        assert set(joined(parts).conditions.lanes) == set(lanes)
    joined({"a": alone(four, lanes[::-1]), "b": long})
    had, lacked = "booth, shifted-carry-save", "shifted-carry-save"
    lacking = alone(long, [name for name in lanes if name != "booth"])
    for parts, one, other in (
        ({"a": whole, "b": lacking}, had, lacked),
        ({"a": lacking, "b": whole}, lacked, had),
        ({"a": alone(four, lanes, *bases), "b": lacking}, had, lacked),
    ):
        said = f"what mxint8-small could choose from of lanes is {one} in the one and {other} in the other"
        with pytest.raises(InputError, match=rf"'a' and 'b' do not compare: {said}"):
            joined(parts)


def test_a_rule_has_the_core_of_the_joined_table() -> None:
    whole = table()
    rule = found(whole, "four-over-six")
    lonely = dataclasses.replace(rule, not_measured=f"{rule.not_measured}, which is not in this table")
    part = alone(of(lambda row: row.row == "four-over-six"), whole.conditions.lanes, "nvfp4")
    part = dataclasses.replace(part, results=(lonely,))
    for parts in ({"a": part, "b": whole}, {"a": whole, "b": part}):
        assert found(joined(parts), "four-over-six") == rule
    assert found(joined({"a": part, "b": part}), "four-over-six") == lonely


def test_parts_without_a_core() -> None:
    parts = {
        name: alone(of(lambda row, name=name: row.row == name), table().conditions.lanes, "nvfp4", "four-over-six")
        for name in ("bipolar",)
    }
    result = joined(parts)
    assert [row.row for row in result.results] == ["bipolar"]
    assert [design.name for design in result.designs] == ["nvfp4-small"]
    assert "bipolar" in markdown(result, "whole")


def test_formats_of_one_name_must_be_one_format() -> None:
    """Figures of errors go by names of formats."""
    elements = {"one": '["E2M1"]', "two": '["E1M2"]'}
    parts = {}
    for name, element in elements.items():
        text = f'[formats.mine]\nelements = {element}\nscale = "UE4M3"\nblock = 16\n'
        part = of(lambda row: row.row == "nvint4")
        settings = {**part.designs[-1].settings, "name": name, "a": "mine", "described": {"a": text}}
        row = dataclasses.replace(part.results[-1], row=name, design=name)
        parts[name] = dataclasses.replace(
            part,
            designs=(part.designs[0], schema.Design(settings)),
            results=(part.results[0], row),
        )
    with pytest.raises(
        InputError, match="reports 'one' and 'two' do not compare: format 'mine' is not the same in both"
    ):
        joined(parts)


def test_a_design_that_is_no_more_is_refused() -> None:
    whole = table()
    for settings in ({"strange": 1}, {"a": "nvfp5"}):
        designs = (schema.Design({**whole.designs[0].settings, **settings}), *whole.designs[1:])
        with pytest.raises(InputError, match=r"^report 'b': design 'nvfp4-small' is none of this hwgen's \(.*anew$"):
            joined({"a": whole, "b": dataclasses.replace(whole, designs=designs)})


def test_what_must_be_alike() -> None:
    whole = table()
    row, base = found(whole, "mixfp4"), found(whole, "nvfp4")
    flow = whole.conditions.flow
    assert base.stimulus
    seed = dataclasses.replace(base.stimulus, seed=7)

    def closing(scope: str) -> dict[str, Mapping[str, schema.Closing]]:
        other = dataclasses.replace(base.closing["area"][scope], lanes="binary")
        return {**base.closing, "area": {**base.closing["area"], scope: other}}

    def with_conditions(**changes: object) -> schema.FormatsReport:
        return dataclasses.replace(whole, conditions=dataclasses.replace(whole.conditions, **changes))

    for spoiled, words in (
        (
            with_conditions(flow=dataclasses.replace(flow, tools=dataclasses.replace(flow.tools, python="3.9"))),
            f"python of tools of flow is {flow.tools.python} in the one and 3.9 in the other",
        ),
        (
            with_conditions(flow=dataclasses.replace(flow, recipes=flow.recipes[:2])),
            "names of recipes of flow is area,",
        ),
        (with_conditions(clock_ns=1.25), "clock ns is 1.0 in the one and 1.25 in the other"),
        (
            changed(whole, "nvfp4", stimulus=seed),
            "row 'nvfp4': seed of the operands is 1 in the one and 7 in the other",
        ),
        (with_conditions(model=None), "model is minilm in the one and not said in the other"),
        (changed(whole, "nvfp4", closing=closing("core")), "row 'nvfp4': core for least area is"),
        (changed(whole, "nvfp4", closing=closing("lane array")), "row 'nvfp4': lane array for least area is"),
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
    # What reports of before do not say is not held against them.
    joined({"a": whole, "b": with_conditions(usual_clock=None)})
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
    again = CliRunner().invoke(command, [*paths, *out], catch_exceptions=False)
    assert again.exit_code == 0
    measured = of(lambda row: row.products == 16)
    measured = dataclasses.replace(measured, conditions=dataclasses.replace(measured.conditions, parts=None))
    (tmp_path / "both.json").write_text(schema.as_text(measured))
    for arguments, message in (
        ([paths[0], *out], "--join: takes two reports"),
        ([*paths, *out, "--check"], "--join and --check: give one of them"),
        ([*paths, *out, "--beside", "both"], "--beside and --join: give one of them"),
        ([paths[0], str(REPORTS / "overhead.json"), *out], "is of 'hwgen compare'; --join takes those of"),
        ([*paths, "--join", "../up"], "--join '../up': must be a plain file name"),
        (["--join", *paths, paths[0]], "a.json': is a file; give the name of the report to write before the parts"),
        ([*paths, "--join", "both", "--out", str(tmp_path)], "--join 'both': is the name of a table in "),
    ):
        failed = CliRunner().invoke(command, arguments)
        assert isinstance(failed.exception, InputError)
        assert message in str(failed.exception)
