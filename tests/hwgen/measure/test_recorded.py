"""Lanes and recipes of an earlier report."""

import dataclasses
from pathlib import Path

import pytest

from hwgen.cells import libraries, reader
from hwgen.cli.options import LANES
from hwgen.config import NAMED, named
from hwgen.errors import InputError
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.built import PURPOSES
from hwgen.measure.flow import DESIGNS, Design
from hwgen.measure.recorded import found_before, rows_selected_by, selected_by
from hwgen.measure.requests import FormatsRequest, OverheadRequest, Physical, Row
from hwgen.measure.rows import BASELINE, rows_of
from hwgen.measure.selection import Selected
from hwgen.measure.stimulus import Stimulus
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
    path, selected = found_before(REPORTS, ASKED, CELLS, schema.OverheadReport, selected_by) or pytest.fail("not found")
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


def test_what_a_search_does_not_look_at_may_differ() -> None:
    for same in ({"runs": 4}, {"clock_ns": 1.0}, {"stimulus": Stimulus(seed=2)}, {"half_width": 0.1}):
        assert selected_by(report(), dataclasses.replace(ASKED, **same), CELLS) is not None


def test_other_cells_are_searched_anew(tmp_path: Path) -> None:
    assert selected_by(report(), ASKED, CELLS.without(["ICG*"])) is None
    assert selected_by(report(), ASKED, reader.load(libraries.path("generic130"))) is None
    (tmp_path / "damaged.json").write_text(f'{{"sha256": "{CELLS.digest}"')
    (tmp_path / "other.json").write_bytes(b"\xff")
    assert found_before(tmp_path, ASKED, CELLS, schema.OverheadReport, selected_by) is None


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
    found = schema.load(REPORTS / "formats-common.json")
    assert isinstance(found, schema.FormatsReport)
    return found


def test_the_report_with_most_of_the_rows_is_taken() -> None:
    for names, stem in ((["mixfp4", "if4"], "formats-common"), (["mixfp4", "razer", "msfp12"], "formats")):
        asked = dataclasses.replace(ROWS, rows=rows_of(names))
        path, found = found_before(REPORTS, asked, CELLS, schema.FormatsReport, rows_selected_by) or pytest.fail(stem)
        assert (path.stem, set(found)) == (stem, {"nvfp4-small", *(f"{name}-small" for name in names)})


def test_rows_are_not_searched_for_twice() -> None:
    """Nor is what they are compared with, be it asked for or not."""
    found = found_before(REPORTS, ROWS, CELLS, schema.FormatsReport, rows_selected_by)
    path, selected = found or pytest.fail("not found")
    assert path == REPORTS / "formats-common.json"
    assert set(selected) == {"nvfp4-small", "nvfp4-2x16-small", "mixfp4-small", "mxfp4-small"}
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
