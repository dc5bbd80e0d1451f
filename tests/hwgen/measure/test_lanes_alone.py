"""Cells without flip-flops: no core can be built, and lane arrays alone are compared."""

from pathlib import Path
from typing import Any

import pytest

from hwgen.cells import libraries, reader
from hwgen.cells.library import Library
from hwgen.config.named import find
from hwgen.errors import InputError
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.at_clock import measure_at_clock
from hwgen.measure.netlists.flow import TOPS, Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.overhead import Overhead, measure
from hwgen.measure.recorded import selected_by
from hwgen.measure.requests import OverheadRequest
from hwgen.measure.search.reach import select_lane_arrays
from hwgen.measure.search.score import Aim, Score
from hwgen.measure.workloads import cores
from hwgen.report import schema
from hwgen.report.check import findings
from hwgen.report.kinds import rendered
from hwgen.report.markdown.overhead import markdown
from hwgen.rtl.lane_array import LaneArray
from hwgen.site.overheads import ordered
from hwgen.site.sources import Source

PAIR = (find("nvfp4-small"), find("mixfp4-small"))
STIMULUS = Stimulus(streams=16, tiles=2, steps_per_tile=8)
CLOCK = 2.5
AMONG = [RECIPES["area"], RECIPES["adders"]]


@pytest.fixture(scope="module")
def cells() -> Library:
    library = reader.load(libraries.path("generic7"))
    return library.without([cell.name for cell in library.flip_flops()])


@pytest.fixture(scope="module")
def built(cache: Path, cells: Library) -> Overhead:
    request = OverheadRequest(*PAIR, STIMULUS, clock_ns=CLOCK, physical=Physical("fanout"), runs=1)
    return measure_at_clock(request, Flow(cells, cache, workers=1), AMONG[:1], vectors=1000)


def test_lane_arrays_meet_the_clock_and_what_they_take_is_stated(built: Overhead) -> None:
    report = built.report()
    assert report.scopes == ("lane array",)
    assert report.whole == "lane array"
    assert report.asked_ns == report.conditions.clock_ns == CLOCK
    for metric in ("area", "critical path", "total power", "energy per MAC"):
        assert min(report.find("lane array", metric).values.values()) > 0
    assert report.find("lane array", "area").overhead.value > 0.05
    assert all(found.lane_sums >= 1000 and found.results == 0 for found in report.conditions.checked.values())
    closing = report.conditions.closing
    assert closing is not None
    for purposes in closing.values():
        assert all(list(scopes) == ["lane array"] for scopes in purposes.values())
        assert all(scopes["lane array"].slack_ns >= 0 for scopes in purposes.values())


def test_each_purpose_takes_the_recipe_that_is_best_for_it(cells: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that meet the clock, if there is one."""
    known = {
        ("area", "area"): Score(0.0, 5.0),
        ("area", "adders"): Score(0.1, 3.0),
        ("energy", "area"): Score(0.0, 9.0),
        ("energy", "adders"): Score(0.0, 7.0),
    }

    def built(wanted: Any, purpose: str, aim: Aim, flow: Flow) -> dict[Any, Score]:
        return {(config, how.name): known[purpose, how.name] for config, how in wanted}

    monkeypatch.setattr("hwgen.measure.search.reach._arrays_built", built)
    aim = Aim(CLOCK, Physical(), STIMULUS)
    found = select_lane_arrays({config.name: config for config in PAIR}, AMONG, aim, Flow(cells))
    for config in PAIR:
        designs = found.designs(config.name, "area")
        assert [*designs] == [LaneArray]
        for purpose, how in (("area", "area"), ("energy", "adders")):
            assert found.of(designs[LaneArray], purpose) == {LaneArray.module_name: RECIPES[how]}
    assert found.builds == 8


def test_the_report_says_what_is_missing_and_no_word_on_cores(built: Overhead, tmp_path: Path) -> None:
    report = schema.from_json(schema.to_json(built.report()))
    files = rendered(report, tmp_path, "lanes")
    text = files[tmp_path / "lanes.md"].decode()
    assert "**generic7 has no flip-flop.** So no core can be built, and lane arrays alone are compared" in text
    for word in ("Element", "critical path of the core", "Clock tree", "-placement.png", "0 results"):
        assert word not in text
    assert files[tmp_path / "lanes.png"].startswith(b"\x89PNG")
    assert not any("placement" in path.name for path in files)


def test_as_they_are_mapped(cache: Path, cells: Library) -> None:
    report = measure(*PAIR, Flow(cells, cache, workers=1), AMONG[:1], stimulus=STIMULUS, runs=1, vectors=1000).report()
    assert report.scopes == ("lane array",)
    slowest = max(found["lane array"] for found in report.conditions.slowest_ns.values())
    assert slowest <= report.conditions.clock_ns <= 1.2 * slowest
    assert [*report.conditions.chosen_recipes["nvfp4-small"]] == [TOPS["lane array"]]


def test_nothing_takes_it_for_a_report_on_cores(built: Overhead, cells: Library, tmp_path: Path) -> None:
    report = built.report()
    path = tmp_path / "lanes.json"
    path.write_text(schema.as_text(report), encoding="utf-8")
    request = OverheadRequest(*PAIR, STIMULUS, clock_ns=CLOCK, physical=Physical("fanout"), runs=1)
    assert selected_by(report, request, cells) is None
    with pytest.raises(InputError, match="has lane arrays alone"):
        cores.read(path, list(PAIR))
    # Of this directory there is none, so it is one of those that come with hwgen.
    assert cores.find(list(PAIR), tmp_path).path.parent != tmp_path
    assert ordered([(Source(path, path.read_bytes(), report), report)]) == []
    assert any("1 run" in line for line in findings(report))


def test_a_core_of_its_own_is_still_refused(cells: Library) -> None:
    with pytest.raises(InputError, match="no rising-edge D flip-flop"):
        cells.check_for_synthesis()


def test_cores_with_a_slot_have_lane_arrays_without(cache: Path, cells: Library) -> None:
    pair = find("nvfp4-multi-small"), find("mixfp4-multi-small")
    report = measure(*pair, Flow(cells, cache, workers=1), AMONG[:1], stimulus=STIMULUS, runs=1, vectors=1000).report()
    assert report.conditions.half_rate is None
    assert "half the rate" not in markdown(report, "lanes.png")
