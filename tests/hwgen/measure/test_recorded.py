"""Lanes and recipes of an earlier report."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hwgen.cells import libraries, reader
from hwgen.cli.options import LANES
from hwgen.config import NAMED, named
from hwgen.errors import InputError
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.formats.rows import BASELINE, rows_of
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.flow import DESIGNS, Design
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.recorded import pair_found_before, rows_found_before, rows_selected_by, selected_by
from hwgen.measure.requests import FormatsRequest, OverheadRequest, Row
from hwgen.measure.search.selected import Selected
from hwgen.report import schema
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore

REPORTS = Path(__file__).parents[3] / "reports"
REPORT = REPORTS / "overhead.json"
CELLS = reader.load(libraries.path("generic7"))
PAIR = named("nvfp4-small"), named("mixfp4-small")
ASKED = OverheadRequest(*PAIR, Stimulus(), physical=Physical(), lanes=LANES)


def report() -> schema.OverheadReport:
    found = schema.load(REPORT)
    assert isinstance(found, schema.OverheadReport)
    return found


def test_the_same_search_is_not_made_twice() -> None:
    path, selected = pair_found_before(REPORTS, ASKED, CELLS) or pytest.fail("not found")
    assert path == REPORT
    closing = report().conditions.closing
    assert closing is not None
    for config in PAIR:
        for purpose in PURPOSES:
            own = closing[config.name][purpose]
            assert selected.configs[config.name, purpose] == dataclasses.replace(config, dot=own["core"].lanes)
            for kind in DESIGNS:
                design = selected.designs(config.name, purpose)[kind]
                scope = "lane array" if kind is LaneArray else "core"
                recipes = {module: how.name for module, how in selected.of(design, purpose).items()}
                assert recipes == own[scope].recipes


@pytest.mark.parametrize(
    "changed",
    [
        {"candidate": NAMED["mixfp4-weights-small"]},
        {"baseline": dataclasses.replace(PAIR[0], clock_gating=False)},
        {"clock_ns": 1.1},
        {"lanes": ("signed",)},
        {"recipe": "speed"},
        {"physical": Physical("fanout")},
        {"physical": Physical(placer="coloquinte")},
        {"physical": None},
        {"stimulus": Stimulus(tensors="outliers")},
        {"stimulus": Stimulus(hold=4)},
    ],
    ids=str,
)
def test_another_search_is_made(changed: dict) -> None:
    assert selected_by(report(), dataclasses.replace(ASKED, **changed), CELLS) is None


def test_what_a_file_said_is_no_search() -> None:
    """A report by `--choices` tells what somebody chose."""
    own = dataclasses.replace(ASKED, lanes=())
    for lanes, found in (((), True), (None, False)):
        known = report()
        known = dataclasses.replace(known, conditions=dataclasses.replace(known.conditions, lanes=lanes))
        assert (selected_by(known, own, CELLS) is not None) == found
    large = named("nvfp4-multi-blackwell"), named("mixfp4-multi-blackwell")
    request = OverheadRequest(*large, Stimulus(), physical=Physical(), lanes=(), clock_ns=1.2)
    assert pair_found_before(REPORTS, request, CELLS) is None


def test_what_a_search_does_not_look_at_may_differ() -> None:
    for same in ({"runs": 4}, {"clock_ns": 1.0}, {"stimulus": Stimulus(seed=2)}, {"half_width": 0.1}):
        assert selected_by(report(), dataclasses.replace(ASKED, **same), CELLS) is not None


def test_other_cells_are_searched_anew(tmp_path: Path) -> None:
    assert selected_by(report(), ASKED, CELLS.without(["ICG*"])) is None
    assert selected_by(report(), ASKED, reader.load(libraries.path("generic130"))) is None
    (tmp_path / "damaged.json").write_text(f'{{"sha256": "{CELLS.digest}"')
    (tmp_path / "other.json").write_bytes(b"\xff")
    assert pair_found_before(tmp_path, ASKED, CELLS) is None


def test_a_report_of_netlists_as_mapped_has_no_search() -> None:
    mapped = dataclasses.replace(report().conditions, closing=None, physical=None, lanes=None)
    assert selected_by(dataclasses.replace(report(), conditions=mapped), ASKED, CELLS) is None


def test_a_module_that_the_search_did_not_know_is_named() -> None:
    config = PAIR[0]
    design = Design(config, TensorCore)
    selected = Selected({(config.name, "area"): config}, {(config.name, "area"): {"element": RECIPES["area"]}}, {}, 0)
    with pytest.raises(InputError, match=r"nvfp4-small: no recipe was found for .*dot_product.*; search anew"):
        selected.of(design, "area")


ROWS = FormatsRequest(BASELINE, rows_of(["nvfp4", "mixfp4", "mxfp4"]), Stimulus(), physical=Physical(), lanes=LANES)


def table() -> schema.FormatsReport:
    found = schema.load(REPORTS / "formats.json")
    assert isinstance(found, schema.FormatsReport)
    return found


def _other(row: schema.FormatRow, metric: str = "area", scope: str = "core") -> schema.FormatRow:
    """By other recipes of a scope, by which the core takes more."""
    own = row.closing["area"][scope]
    closing = dataclasses.replace(own, recipes=dict.fromkeys(own.recipes, "area"))
    figures = tuple(
        dataclasses.replace(figure, values=tuple(1.01 * value for value in figure.values))
        if (figure.scope, figure.metric) == (scope, metric)
        else figure
        for figure in row.figures
    )
    closings = {**row.closing, "area": {**row.closing["area"], scope: closing}}
    return dataclasses.replace(row, closing=closings, figures=figures)


def _put(path: Path, rows: Mapping[str, schema.FormatRow | None]) -> None:
    """A table with some rows changed, or left out."""
    results = (rows.get(row.design or "", row) for row in table().results)
    path.write_text(schema.as_text(dataclasses.replace(table(), results=tuple(row for row in results if row))))


def _row(name: str) -> schema.FormatRow:
    return next(row for row in table().results if row.design == name and row.figures)


def test_each_row_is_of_a_report_that_has_it(tmp_path: Path) -> None:
    """And so is what they are compared with, be it asked for or not; the first of these is in every report."""
    has = {
        "nvfp4-small": "others",
        "nvfp4-2x16-small": "others",
        "nvfp4-4x16-small": "others",
        "mixfp4-small": "some",
        "mxfp4-small": "others",
        "hif4-small": "others",
        "int8-small": "some",
    }
    for name in set(has.values()):
        lacks = {row: None for row, where in has.items() if where != name and row != "nvfp4-small"}
        _put(tmp_path / f"{name}.json", lacks)
    asked = dataclasses.replace(ROWS, rows=rows_of(["mixfp4", "mxfp4", "hif4", "int8"]))
    found = {name: path.stem for name, (path, _) in rows_found_before(tmp_path, asked, CELLS).items()}
    assert found == has


@pytest.mark.parametrize("metric", ["area", "energy per MAC"])
@pytest.mark.parametrize("name", ["nvfp4-2x16-small", "mxfp4-small"])
def test_of_two_searches_the_better_one_is_taken(name: str, metric: str, tmp_path: Path) -> None:
    """A row whose baseline took something else is not."""
    _put(tmp_path / "a.json", {name: _other(_row(name), metric)})
    alone = rows_found_before(tmp_path, ROWS, CELLS)
    assert set(alone) == {"nvfp4-small", "nvfp4-2x16-small", "mixfp4-small", "mxfp4-small"}
    _put(tmp_path / "b.json", {} if name == "mxfp4-small" else {"mxfp4-small": None})
    found = rows_found_before(tmp_path, ROWS, CELLS)
    assert (found[name][0].stem, found[name][1] == alone[name][1]) == ("b", False)
    # Of equals the report with more rows has them.
    assert found["nvfp4-small"][0].stem == "a"
    assert ("mxfp4-small" in found) == (name == "mxfp4-small")


def test_what_meets_the_clock_comes_first(tmp_path: Path) -> None:
    """What missed it counts where there is nothing else."""
    late = dataclasses.replace(_row("mixfp4-small"), met=False)
    _put(tmp_path / "a.json", {"mixfp4-small": late})
    assert rows_found_before(tmp_path, ROWS, CELLS)["mixfp4-small"][0].stem == "a"
    _put(tmp_path / "b.json", {"mixfp4-small": _other(_row("mixfp4-small"))})
    assert rows_found_before(tmp_path, ROWS, CELLS)["mixfp4-small"][0].stem == "b"


def test_reports_are_compared_on_runs_that_both_have(tmp_path: Path) -> None:
    """The mean of many is less than the first run here, but not than that of the other report."""
    row = _row("mixfp4-small")

    def with_runs(own: schema.FormatRow, factors: Sequence[float]) -> schema.FormatRow:
        figures = [
            dataclasses.replace(each, values=tuple(each.values[0] * factor for factor in factors))
            for each in row.figures
        ]
        return dataclasses.replace(own, figures=tuple(figures))

    _put(tmp_path / "a.json", {row.design or "": with_runs(row, [1.0, 0.9, 0.9])})
    _put(tmp_path / "b.json", {row.design or "": with_runs(_other(row), [0.99])})
    assert rows_found_before(tmp_path, ROWS, CELLS)["mixfp4-small"][0].stem == "b"


def test_lane_arrays_are_offered_to_nobody(tmp_path: Path) -> None:
    """Rows count, be the baseline's lane array by another recipe or not."""
    _put(tmp_path / "a.json", {"nvfp4-small": _other(_row("nvfp4-small"), scope="lane array"), "mixfp4-small": None})
    _put(tmp_path / "b.json", {})
    assert rows_found_before(tmp_path, ROWS, CELLS)["mixfp4-small"][0].stem == "b"


def test_rows_are_not_searched_for_twice() -> None:
    found = rows_found_before(REPORTS, ROWS, CELLS)
    assert {path for path, _ in found.values()} == {REPORTS / "formats.json"}
    assert set(found) == {"nvfp4-small", "nvfp4-2x16-small", "mixfp4-small", "mxfp4-small"}
    selected = {name: each for name, (_, each) in found.items()}
    for row in table().results:
        if row.design not in selected or not row.figures:
            continue
        for purpose in PURPOSES:
            for kind, design in selected[row.design].designs(row.design, purpose).items():
                own = row.closing[purpose]["lane array" if kind is LaneArray else "core"]
                recipes = selected[row.design].of(design, purpose)
                assert {module: how.name for module, how in recipes.items()} == own.recipes
                assert design.config.dot == own.lanes


@pytest.mark.parametrize(
    "changed",
    [
        {"baseline": dataclasses.replace(BASELINE, clock_gating=False)},
        {"clock_ns": 1.1},
        {"lanes": ("signed",)},
        {"recipe": "speed"},
        {"physical": Physical("fanout")},
        {"stimulus": Stimulus(tensors="outlier-channels")},
    ],
    ids=str,
)
def test_another_search_of_rows_is_made(changed: dict) -> None:
    assert rows_selected_by(table(), dataclasses.replace(ROWS, **changed), CELLS) == {}


def test_a_row_of_another_design_alone_is_searched_for() -> None:
    mine = dataclasses.replace(NAMED["mixfp4-small"], fraction_bits=33)
    rows = (Row("mixfp4", mine), *rows_of(["if4", "bipolar"]))
    assert set(rows_selected_by(table(), dataclasses.replace(ROWS, rows=rows), CELLS)) == {"nvfp4-small", "if4-small"}


def test_a_row_whose_baseline_was_another_is_searched_for() -> None:
    """What the baseline took was offered to the row."""
    results = tuple(row for row in table().results if row.design != "nvfp4-2x16-small")
    found = rows_selected_by(dataclasses.replace(table(), results=results), ROWS, CELLS)
    assert set(found) == {"nvfp4-small", "mixfp4-small"}
