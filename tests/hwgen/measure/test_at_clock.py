"""Two cores built for a clock: placed, sized and buffered."""

import dataclasses
import json
import math
import re
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.cli.types import MOST_RUNS
from hwgen.closure.close import Closure
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping.area import BLOCKS
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.at_clock import closings, excess, measure_at_clock, met_clock, next_runs
from hwgen.measure.figures import Figure
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.overhead import Overhead, measure
from hwgen.measure.requests import OverheadRequest
from hwgen.measure.runs import BUILT
from hwgen.measure.search.score import Aim
from hwgen.measure.search.selected import Selected
from hwgen.report import schema
from hwgen.report.form import percent
from hwgen.report.kinds import rendered
from hwgen.report.markdown.overhead import markdown
from hwgen.report.raster import unpacked
from hwgen.stats import Estimate, across

CELLS = reader.load(libraries.path("generic7"))
CLOCK = 2.8
STIMULUS = Stimulus(streams=16, tiles=2, steps_per_tile=8)


def pair() -> list[TensorCoreConfig]:
    pipeline = ("decoded", "sums", "terms", "aligned", "total", "normal")
    return [
        TensorCoreConfig(f"{name}-fast", name, name, rows=1, columns=1, groups=1, pipeline=pipeline, clock_gating=True)
        for name in ("nvfp4", "mixfp4")
    ]


@pytest.fixture(scope="module")
def selected() -> Selected:
    """Other lanes for each purpose."""
    lanes = {("mixfp4-fast", "energy"): "merged-binary"}
    configs = {
        (config.name, purpose): dataclasses.replace(config, dot=lanes.get((config.name, purpose), "merged"))
        for config in pair()
        for purpose in PURPOSES
    }
    recipes = {key: dict.fromkeys(BLOCKS, RECIPES["speed"]) for key in configs}
    arrays = {key: (config, RECIPES["speed"]) for config in pair() for key in recipes if key[0] == config.name}
    return Selected(configs, recipes, arrays, 0)


@pytest.fixture(scope="module")
def built(cache: Path, selected: Selected) -> Overhead:
    return measured(cache, selected)


def measured(cache: Path, selected: Selected, searches: int = 1) -> Overhead:
    request = OverheadRequest(
        *pair(),
        STIMULUS,
        clock_ns=CLOCK,
        physical=Physical(),
        lanes=("merged-binary",),
        runs=1,
        selected=selected,
        searches=searches,
    )
    return measure_at_clock(request, Flow(CELLS, cache, workers=1), [RECIPES["speed"]], vectors=1000)


def find(overhead: Overhead, scope: str, metric: str, block: str = "total") -> Figure:
    (found,) = [f for f in overhead.figures if (f.scope, f.metric, f.block) == (scope, metric, block)]
    return found


def test_independent_searches_are_measured_by_runs_of_their_own(
    built: Overhead, cache: Path, selected: Selected, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three searches the second finds what the first did, and the third other lanes."""
    lanes = {key: dataclasses.replace(config, dot="merged") for key, config in selected.configs.items()}
    others = [selected, dataclasses.replace(selected, configs=lanes)]
    aims: list[Aim] = []

    def search(configs: Any, recipes: Any, aim: Aim, *rest: Any, **more: Any) -> Selected:
        aims.append(aim)
        return others[len(aims) - 1]

    monkeypatch.setattr("hwgen.measure.at_clock.select_for_cores", search)
    found = measured(cache, selected, searches=3)
    assert [(figure.scope, figure.metric, figure.runs) for figure in found.figures] == [
        (figure.scope, figure.metric, figure.runs) for figure in built.figures
    ]
    assert len(aims) == 2
    drawn = [draw for aim in aims for draw in aim.draws]
    assert len(set(drawn)) == len(drawn)
    assert min(drawn) > MOST_RUNS
    assert len({aim.stimulus.number for aim in aims} | set(range(MOST_RUNS))) == MOST_RUNS + 2
    assert found.conditions.searches is not None
    first, second, third = found.conditions.searches
    assert [each.search for each in (first, second, third)] == [0, 1, 2]
    assert [each.first_run for each in (first, second, third)] == [0, 1, 2]
    # By the same lanes and recipes, too, other runs take something else.
    assert second.lanes == first.lanes
    assert all(second.values[metric] != first.values[metric] for metric in schema.SEARCHED)
    assert first.lanes["mixfp4-fast"] == {"area": "merged", "energy": "merged-binary"}
    assert third.lanes["mixfp4-fast"] == {"area": "merged", "energy": "merged"}
    assert first.slack_ns == min(
        scopes["core"].slack_ns for purposes in built.conditions.closing.values() for scopes in purposes.values()
    )
    for metric in schema.SEARCHED:
        figure = find(built, "core", metric)
        assert dict(first.values[metric]) == figure.values
        assert first.overheads[metric] == figure.overhead
    assert built.conditions.searches is None

    report = found.report()
    assert schema.from_json(json.loads(schema.as_text(report))) == report
    text = markdown(report, "x.png")
    assert "## Independent searches" in text
    powers = [each.overheads["total power"].value for each in found.conditions.searches]
    low, high = 100 * min(powers), 100 * max(powers)
    spread = f"- Overhead of total power: {low:+.2f} % to {high:+.2f} %; mean over the searches "
    assert f"{spread}{percent(across(powers))}." in text
    assert "Each is measured by runs of its own." in text
    # In a report of before all searches have the noise of the same runs, which no interval over searches knows.
    same = tuple(dataclasses.replace(each, first_run=None) for each in found.conditions.searches)
    old = dataclasses.replace(report, conditions=dataclasses.replace(report.conditions, searches=same))
    assert schema.from_json(json.loads(schema.as_text(old))) == old
    text = markdown(old, "x.png")
    assert f"{spread}{100 * fmean(powers):+.2f} %." in text
    assert "All are measured by the same runs." in text
    assert "Independent searches" not in markdown(built.report(), "x.png")


def test_the_recipes_of_the_first_run_are_told_where_they_are_others(selected: Selected) -> None:
    """What is written for other tools is that run."""
    record = Closure(2.0, 2.0, "dot_product", "placed", 1.0, 1.0, 0, 0, 1)
    keys = [(purpose, scope) for purpose in PURPOSES for scope in BUILT]
    own = {purpose: selected.chosen["mixfp4-fast", purpose] for purpose in PURPOSES}
    other = own | {"energy": own["energy"] | {"accumulate": RECIPES["area"]}}
    records = dict.fromkeys(keys, record)
    plain = SimpleNamespace(records=records, changed=frozenset(), recipes=own)
    helped = SimpleNamespace(records=records, changed=frozenset({("energy", "core")}), recipes=other)
    for runs, expected in (([plain, helped], None), ([helped, plain], "area")):
        found = closings(selected, "mixfp4-fast", runs)
        assert found["energy"]["core"].changed == 1
        assert found["energy"]["core"].recipes["accumulate"] == "speed"
        first = found["energy"]["core"].first
        assert (None if first is None else first["accumulate"]) == expected
        assert found["area"]["core"].first is found["energy"]["lane array"].first is None


def test_searches_have_perturbations_that_no_run_has(cache: Path, selected: Selected) -> None:
    request = OverheadRequest(*pair(), STIMULUS, clock_ns=CLOCK, physical=Physical(), runs=16, searches=63)
    with pytest.raises(InputError, match="63 searches of 16 runs each: there are perturbations for 1000 runs"):
        measure_at_clock(request, Flow(CELLS, cache, workers=1), [RECIPES["speed"]])


def test_what_was_built_before_a_kill_is_not_built_again(
    built: Overhead, cache: Path, selected: Selected, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(self: Flow, function: Any, tasks: Any, what: str) -> Any:
        raise AssertionError(what)

    monkeypatch.setattr(Flow, "each", build)
    assert measured(cache, selected).report() == built.report()


def test_every_core_meets_the_clock_and_says_how(built: Overhead) -> None:
    conditions = built.conditions
    assert conditions.closing is not None
    assert conditions.slowest_ns is not None
    for name in ("nvfp4-fast", "mixfp4-fast"):
        assert conditions.slowest_ns[name]["core"] <= CLOCK
        for purpose in PURPOSES:
            closing = conditions.closing[name][purpose]
            assert set(closing) == {"lane array", "core"}
            assert closing["core"].slack_ns >= 0
            lanes = "merged-binary" if (name, purpose) == ("mixfp4-fast", "energy") else "merged"
            assert (closing["core"].lanes, closing["lane array"].lanes) == (lanes, "merged")
            assert closing["core"].resized > 100
            assert closing["core"].overloaded == 0
            assert set(closing["core"].missing or ()) <= set(CELLS.cells)
            assert set(closing["core"].recipes) >= {"element", "accumulate", "tensor_core"}
        path = find(built, "core", "critical path").runs[name]
        assert CLOCK - conditions.closing[name]["area"]["core"].slack_ns == pytest.approx(max(path))
    assert conditions.checked["nvfp4-fast"].results >= 1000


def test_areas_are_of_small_netlists_and_power_of_frugal_ones(built: Overhead, cache: Path) -> None:
    """Mapping alone gives neither."""
    mapped = measure(
        *pair(), Flow(CELLS, cache, workers=1), [RECIPES["speed"]], stimulus=STIMULUS, runs=1, vectors=1000
    )
    for name in ("nvfp4-fast", "mixfp4-fast"):
        assert find(built, "core", "area").values[name] < find(mapped, "core", "area").values[name]
        energies = [find(each, "core", "energy per MAC").values[name] for each in (built, mapped)]
        assert energies[0] < energies[1]


def test_wires_have_rows_of_their_own(built: Overhead) -> None:
    total = find(built, "core", "wire length")
    blocks = [f for f in built.figures if (f.scope, f.metric) == ("core", "wire length") and f.block != "total"]
    assert len(blocks) >= 4
    for name, value in total.values.items():
        assert sum(block.values[name] for block in blocks) == pytest.approx(value)
        assert find(built, "core", "wires power").values[name] > 0
    assert built.conditions.physical is not None
    assert built.conditions.physical.wires == "placed"


def test_an_element_has_a_path_of_its_own(built: Overhead) -> None:
    """It is no longer than the core's, and lies in the element's blocks."""
    assert built.conditions.element_path is not None
    for name in ("nvfp4-fast", "mixfp4-fast"):
        (inner,) = find(built, "element", "critical path").runs[name]
        (whole,) = find(built, "core", "critical path").runs[name]
        assert 0.3 * whole < inner <= whole
        shares = built.conditions.element_path[name]
        assert sum(shares.values()) == pytest.approx(1)
        assert "operand decoders" not in shares
    assert "It is the longest path in the core from a register of an element" in markdown(built.report(), "x.png")


def test_both_placed_cores_are_drawn(built: Overhead, tmp_path: Path) -> None:
    report = built.report()
    found = rendered(report, tmp_path, "one")
    assert found[tmp_path / "one-placement.png"].startswith(b"\x89PNG")
    assert "![The placed cores, by block](<one-placement.png>)" in found[tmp_path / "one.md"].decode()
    assert built.conditions.placement is not None
    for name, placement in built.conditions.placement.items():
        assert placement.cells == find(built, "core", "cells").runs[name][0]
        image = unpacked(placement.pixels, (placement.pixels_across, placement.pixels_up))
        # 70 % of the rows are asked for; gates that are made larger fill some more.
        assert 0.6 < np.mean(image >= 0) < 0.9
        assert set(np.unique(image)) == {*range(len(placement.blocks)), -1}


def test_cells_add_up_to_the_area_and_the_number_of_the_core(built: Overhead) -> None:
    report = built.report()
    assert report.conditions.cells is not None
    for name, blocks in report.conditions.cells.items():
        for block, figure in report.blocks("core", "area").items():
            assert sum(each.area_um2 for each in blocks[block].values()) == pytest.approx(figure.values[name])
            assert all(each.number > 0 for each in blocks[block].values())
        cells = sum(each.number for found in blocks.values() for each in found.values())
        assert cells == pytest.approx(report.find("core", "cells").values[name])


def test_the_report_says_where_wires_come_from(built: Overhead) -> None:
    report = built.report()
    assert schema.from_json(schema.to_json(report)) == report
    text = markdown(report, "picture.png")
    assert "- Wires: every netlist is placed (embedded placer, 70 % of the rows filled)." in text
    assert f"overhead (generic7, {CLOCK} ns, placed wires)" in text
    assert f"## What both take: generic7, {CLOCK} ns, placed wires" in text
    assert "is missed" not in text
    assert "every run of every scope meets it" in text


def test_a_clock_out_of_reach_names_the_best_and_its_block() -> None:
    met = Closure(1.0, 0.99, "tensor_core/element/dot_product", "placed", 5.0, 5.0, 0, 0, 1)
    late = dataclasses.replace(met, delay_ns=1.234, block="tensor_core/element/accumulate")
    assert met_clock({"nvfp4-fast": [met], "mixfp4-fast": [met, met]}, 1.0, "generic7", required=True) == 1.0
    missed = {"nvfp4-fast": [met], "mixfp4-fast": [met, late]}
    message = (
        "clock of 1 ns: the core of mixfp4-fast takes 1.234 ns in its slowest run with generic7, held by align, add,"
        " normalise, round; at least 1.3 ns would be met"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        met_clock(missed, 1.0, "generic7", required=True)
    with pytest.raises(InputError, match="the lane array of mixfp4-fast takes"):
        met_clock(missed, 1.0, "generic7", required=True, scope="lane array")
    assert met_clock(missed, 1.0, "generic7") == 1.3  # where nobody asked for 1 ns
    # A miss by little is a figure of the report.
    assert met_clock(missed, 1.25, "generic7", required=True) == 1.3


def test_as_many_runs_are_added_as_intervals_need() -> None:
    """Twice as wide as asked for needs four times as many; no more than there were, and the last ones are few."""
    assert [next_runs(0, most) for most in (3, 16)] == [range(3), range(6)]
    for short, added in ((0.5, 2), (1.1, 2), (1.2, 4), (1.3, 6), (2.0, 6), (math.inf, 6)):
        assert next_runs(6, 64, short) == range(6, 6 + added)
    assert next_runs(12, 64, 1.9) == range(12, 24)
    assert next_runs(12, 16, 1.9) == range(12, 16)
    assert next_runs(7, 9, 2.0) == range(7, 9)
    # Of a few runs that somebody asked for there is no interval.
    assert next_runs(1, 9, math.inf) == range(1, 3)


def test_the_widest_interval_counts() -> None:
    def figure(metric: str, half: float, value: float = 0.0, scope: str = "core") -> schema.FormatFigure:
        return schema.FormatFigure(scope, metric, "", (1.0,), Estimate(value, value - half, value + half))

    figures = [figure("area", 0.004), figure("total power", 0.012, 1.0), figure("energy per MAC", 0.5)]
    figures.append(figure("area", 0.5, scope="element"))
    assert excess(figures, 0.01) == pytest.approx(1.2)
    assert excess(figures, 0.01, of_larger=True) == pytest.approx(0.6)
    assert excess(figures, 0.01, scope="element") == pytest.approx(50)
    assert excess([schema.FormatFigure("core", "area", "", (1.0,), Estimate(0.1))], 0.01) == math.inf
    assert excess([], 0.01) == 0
