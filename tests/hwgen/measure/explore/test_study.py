import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.config import DEFAULT_PIPELINE, DOTS, NAMED, TensorCoreConfig
from hwgen.errors import InputError, ToolError
from hwgen.mapping import area
from hwgen.mapping.yosys import RECIPES, synthesise
from hwgen.measure.explore import comparison
from hwgen.measure.explore.best import best_at, mean_overhead
from hwgen.measure.explore.comparison import compared
from hwgen.measure.explore.points import Point, front
from hwgen.measure.explore.study import Exploration, explore
from hwgen.measure.explore.ways import ANTICIPATED, PIPELINES, Way, pilot, variants, without_beaten
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.report import schema
from hwgen.report.markdown import explore as tables
from hwgen.report.plots.explore import explore_png
from hwgen.rtl.tensor_core import TensorCore
from hwgen.stats import Estimate

CELLS = reader.load(libraries.path("generic7"))
PAIR = [TensorCoreConfig(f"{name}-single", name, name, rows=1, columns=1, groups=1) for name in ("nvfp4", "mixfp4")]
WAYS = [DEFAULT_PIPELINE, (*DEFAULT_PIPELINE, "total")]


FEW = Stimulus(streams=2, steps_per_tile=8, timed=4)


@pytest.fixture(scope="session")
def found(cache: Path) -> Exploration:
    """The smallest pair of cores, in four ways each."""
    return explore(
        *PAIR,
        Flow(CELLS, cache, workers=1),
        [RECIPES[name] for name in ("area", "speed")],
        dots=("merged", "significand"),
        pipelines=WAYS,
        runs=1,
        vectors=2000,
        stimulus=FEW,
    )


def test_what_is_explored_by_default() -> None:
    for config in PAIR:
        ways = [(one.dot, one.pipeline, one.leading_zeros) for one in variants(config)]
        # Those of long elements and of shifted sub-groups multiply neither.
        dots = set(DOTS) - {"booth", "shifted", "shifted-carry-save", "windowed", "additive", "nested"}
        dots -= set() if config.a.name == "mixfp4" else {"e2m2"}
        assert len(ways) == len(set(ways))
        assert set(ways) == {
            *((dot, DEFAULT_PIPELINE, "counted") for dot in dots),
            *((config.dot, pipeline, "counted") for pipeline in (*PIPELINES, config.pipeline)),
            *((config.dot, pipeline, "anticipated") for pipeline in ANTICIPATED),
        }
        exact = dataclasses.replace(config, numerics="exact")
        assert {one.leading_zeros for one in variants(exact)} == {"counted"}
    # Nothing is anticipated where results may be subnormal.
    for name in ("mxfp4-small", "mxfp8-e4m3-small", "l-mul-small", "hif4-small"):
        assert {one.leading_zeros for one in variants(NAMED[name])} == {"counted"}
    assert [one.dot for one in variants(PAIR[0], ("signed", "merged"))] == ["signed", "merged"]
    assert [one.pipeline for one in variants(PAIR[0], (), WAYS)] == WAYS
    assert [one.leading_zeros for one in variants(PAIR[0], (), (), ("anticipated",))] == ["anticipated"]
    # Registers that exact sums of integers do not have are left out.
    for name in ("int8-exact-small", "opt1-small"):
        assert NAMED[name].pipeline in [one.pipeline for one in variants(NAMED[name])]
    with pytest.raises(InputError, match="dot = 'e2m2'"):
        variants(PAIR[0], ("e2m2",))
    with pytest.raises(InputError, match="dot = 'adders'"):
        variants(PAIR[0], ("adders",))


def test_the_front_holds_what_nothing_beats() -> None:
    def point(area: float, delay: float, energy: float) -> Point:
        way = Way("nvfp4-single", Design(PAIR[0], TensorCore), {}, area, delay)
        return Point(way, [area], [delay], [energy], {})

    points = [point(1, 3, 3), point(2, 2, 2), point(2, 2, 3), point(3, 3, 1), point(1, 3, 3), point(3, 3, 3)]
    assert front(points) == [0, 1, 3, 4]


def test_the_best_of_each_design_at_a_limit() -> None:
    areas = np.array([[10.0], [20.0]]), np.array([[11.0], [30.0]])
    delays = np.array([[4.0], [2.0]]), np.array([[5.0], [2.5]])
    (at_two, at_three, at_four, at_five), used = best_at([2.0, 3.0, 4.0, 5.0], areas, delays)
    assert (at_two.chosen, at_two.overhead) == ((1, None), None)
    assert (at_three.chosen, at_three.overhead.value) == ((1, 1), pytest.approx(0.5))
    assert (at_four.chosen, at_four.overhead.value) == ((0, 1), pytest.approx(2.0))
    assert (at_five.chosen, at_five.overhead.value) == ((0, 0), pytest.approx(0.1))
    assert at_five.overhead.low is None
    assert used == [{0, 1}, {0, 1}]


def test_the_interval_holds_what_the_choice_does() -> None:
    # The cheap point meets the limit in some resamples only: the interval reaches to the dear one.
    areas = np.array([[10.0] * 6, [20.0] * 6]), np.array([[10.0] * 6, [20.0] * 6])
    sure, torn = np.array([[1.0] * 6, [1.0] * 6]), np.array([[2.8, 3.1, 3.0, 3.0, 3.0, 3.0], [1.0] * 6])
    (best,), used = best_at([3.0], areas, (sure, torn))
    assert best.chosen == (0, 0)
    assert (best.overhead.low, best.overhead.value, best.overhead.high) == pytest.approx((0.0, 0.0, 1.0))
    assert used == [{0}, {0, 1}]
    # Without the dear one there are resamples that cannot meet it: no upper bound, and for the baseline no lower one.
    only = areas[0][:1], areas[1][:1]
    (often,), _ = best_at([3.0], only, (sure[:1], torn[:1]))
    assert often.overhead == Estimate(0.0, 0.0, None)
    (often,), _ = best_at([3.0], only, (torn[:1], sure[:1]))
    assert often.overhead == Estimate(0.0, None, 0.0)
    # Of a few runs nothing is known.
    (few,), _ = best_at([3.0], (areas[0][:, :5], areas[1][:, :5]), (sure[:, :5], sure[:, :5]))
    assert few.overhead == Estimate(0.0)


def test_the_mean_over_a_range_smooths_steps() -> None:
    # Both halve their area at a step, the candidate 1 % later: nearly everywhere they are equal.
    areas = np.array([[20.0] * 6, [10.0] * 6])
    delays = np.array([[1.0] * 6, [2.0] * 6])
    found = mean_overhead([1.0, 4.0], (areas, areas), (delays, 1.01 * delays))
    assert 0 < found.value < 0.01
    assert (found.low, found.high) == pytest.approx((found.value, found.value))
    assert mean_overhead([1.0, 4.0], (areas, 1.1 * areas), (delays, delays)).value == pytest.approx(0.1)


def test_a_design_against_itself_costs_nothing() -> None:
    generator = np.random.default_rng(5)
    areas, delays = generator.uniform(10, 20, (6, 8)), generator.uniform(1, 2, (6, 8))
    found, _ = best_at([1.6, 2.0], (areas, areas), (delays, delays))
    for best in found:
        assert (best.overhead.low, best.overhead.value, best.overhead.high) == (0.0, 0.0, 0.0)


def test_faster_pipelines_and_recipes_cost_area(found: Exploration) -> None:
    comparison = found.comparison
    for ours in found.points:
        assert {(point.way.config.dot, point.way.config.pipeline) for point in ours} == set(
            itertools.product(("merged", "significand"), WAYS)
        )
        fastest = min(ours, key=lambda point: np.mean(point.delays))
        smallest = min(ours, key=lambda point: np.mean(point.areas))
        assert fastest.way.config.pipeline == WAYS[1]
        assert fastest.way.recipes["accumulate"].fast
        assert np.mean(fastest.delays) < 0.6 * np.mean(smallest.delays)
        for point in ours:
            assert len(point.areas) == len(point.delays) == len(point.energies) == 1
            assert min(point.energies) > 0
            assert sum(point.path.values()) == pytest.approx(1)
    assert [best.limit for best in comparison.at_clock] == sorted(best.limit for best in comparison.at_clock)
    for best in (*comparison.at_clock, *comparison.at_area, *comparison.energy_at_clock):
        assert best.overhead is not None
    for best in comparison.at_clock:
        for ours, index in zip(found.points, best.chosen, strict=True):
            assert max(ours[index].delays) <= best.limit
    assert comparison.at_clock[-1].overhead.value > 0
    checked = found.conditions.checked
    assert checked.results >= 2000
    assert checked.netlists >= 4


def test_the_report_of_an_exploration(found: Exploration) -> None:
    report = found.report()
    assert schema.from_json(schema.to_json(report)) == report
    header, rows = tables.summary(report)
    assert header == ["clock, ns", "nvfp4-single, um2", "mixfp4-single, um2", "overhead of area"]
    assert len(rows) == len(found.comparison.at_clock) + 1
    assert rows[-1][0] == "mean over the range"
    for entry in report.results:
        for name, place in entry.points.items():
            point = report.points[place]
            assert point.design == name
            assert tables.MEANS[entry.metric](point) == entry.values[name]
            assert tables.MEANS[entry.limit.metric](point) <= entry.limit.value
    text = tables.markdown(report, "explore.png")
    assert "## Smallest area at equal clock" in text
    assert "## What each micro-architecture costs" in text
    assert "Means over 1 perturbed run of each" in text
    for dot in ("merged", "significand"):
        assert f"| mixfp4-single | `{dot}` |" in text
    assert report.wires["nvfp4-single"]["merged"] == (16 * 5 + 9 + 1,) * 2
    assert text.count("| nvfp4-single |") >= len(found.points[0])
    assert tables.csv(report).count("\n") == 1 + sum(map(len, found.points))
    assert explore_png(report) == explore_png(report)
    assert explore_png(report).startswith(b"\x89PNG")


class Counted(Flow):
    """A flow whose syntheses are as large as they are said to be, in gates."""

    def synthesise(self, jobs, what):
        sizes = {("operand_decoder", "adders"): 1000, ("operand_decoder", "area"): 1001}
        return {
            job.identity: {
                "cells": {str(n): {"type": "NAND2_XP33"} for n in range(sizes.get((job.module, job.recipe.name), 2000))}
            }
            for job in jobs
        }


def test_a_clock_is_met_by_every_run() -> None:
    def points(config: TensorCoreConfig) -> list[Point]:
        """A small core that one run of six makes too slow for 3 ns, and a larger one that is fast enough."""
        found = []
        for dot, size, delays in (("merged", 10.0, [2.8] * 5 + [3.1]), ("signed", 20.0, [2.0] * 6)):
            design = Design(dataclasses.replace(config, dot=dot), TensorCore)
            found.append(Point(Way(config.name, design, {}, size, 2.8), [size] * 6, delays, [1.0] * 6, {}))
        return found

    both = points(PAIR[0]), points(PAIR[1])
    comparison = compared(both, [3.0, 3.2], "cells")
    assert [best.chosen for best in comparison.at_clock] == [(1, 1), (0, 0)]
    assert [best.overhead for best in comparison.at_clock] == [Estimate(0.0, 0.0, 0.0)] * 2
    # The shortest clock by default leaves time for the slowest run of the fastest point.
    assert compared(both, [], "cells").at_clock[0].limit >= 2.0
    with pytest.raises(InputError, match=r"clock of 1\.9 ns: not met with cells; both designs meet 2 ns"):
        compared(both, [1.9], "cells")


def test_a_recipe_that_saves_next_to_nothing_is_not_taken() -> None:
    """As in a comparison of two designs: what does not show in the area shows in the glitches."""
    among = [RECIPES[name] for name in ("area", "adders")]
    ranking = pilot({"nvfp4-single": [PAIR[0]]}, among, Counted(CELLS))
    assert [how.name for how in ranking.designs[0].order["operand_decoder"]] == ["area", "adders"]


def test_what_is_beaten_in_everything_is_left_out() -> None:
    one, other = (Design(config, TensorCore) for config in variants(PAIR[0], ("merged", "signed")))

    def way(design: Design, area: float, delay: float, side: str = "a") -> Way:
        return Way(side, design, {}, area, delay)

    good = way(one, 100, 10)
    ways = [
        good,
        way(one, 105, 10.5),
        way(other, 105, 10.5),
        way(other, 106, 10.6),
        way(one, 99, 20),
        way(one, 102, 10.2),
    ]
    # The third is the smallest of its design; the last is beaten by too little.
    assert without_beaten(ways) == [ways[0], ways[2], ways[4], ways[5]]
    assert without_beaten([good, way(one, 105, 10.5, "b"), way(one, 104, 11, "b")])[1].side == "b"


def test_a_miscompiled_netlist_gives_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    def miscompile(verilog: str, top: str, *rest: object, **more: object) -> dict:
        body = synthesise(verilog, top, *rest, **more)
        if top == "scale_product":
            next(cell for cell in body["cells"].values() if cell["type"] == "XOR2_XP5")["type"] = "XNOR2_XP5"
        return body

    monkeypatch.setattr(area, "synthesise", miscompile)
    with pytest.raises(ToolError, match=r"of (nv|mix)fp4-single differs from the golden model"):
        explore(*PAIR, Flow(CELLS, workers=1), [RECIPES["area"]], pipelines=WAYS[:1], runs=1, vectors=2000)


def test_a_clock_that_nothing_meets(monkeypatch: pytest.MonkeyPatch, found: Exploration, cache: Path) -> None:
    nothing, _ = best_at([0.01], *(
        tuple(np.array([getattr(point, field) for point in ours]) for ours in found.points)
        for field in ("areas", "delays")
    ))  # fmt: skip
    assert nothing[0].overhead is None
    monkeypatch.setattr(comparison, "best_at", lambda *given: (nothing, [set(), set()]))
    with pytest.raises(InputError, match=r"clock of 0\.01 ns: not met with generic7; both designs meet [0-9.]+ ns"):
        explore(
            *PAIR,
            Flow(CELLS, cache, workers=1),
            [RECIPES["area"]],
            pipelines=WAYS[:1],
            clocks_ns=[0.01],
            runs=1,
            vectors=2000,
        )


def test_default_pipelines_are_pipelines_from_the_shortest_to_the_longest() -> None:
    assert list(PIPELINES) == sorted(set(PIPELINES), key=lambda pipeline: (len(pipeline), PIPELINES.index(pipeline)))
    assert DEFAULT_PIPELINE in PIPELINES
    # Scales without a significand make no factors, and cores with a slot find the largest exponent earlier: theirs are
    # explored besides these.
    made = [
        config
        for config in NAMED.values()
        if not config.slotted and any(form.scale.significand_bits for form in config.formats)
    ]
    assert {config.pipeline for config in made} | set(ANTICIPATED) <= set(PIPELINES)
    for pipeline in PIPELINES:
        assert (
            TensorCoreConfig("x", "nvfp4", "nvfp4", rows=1, columns=1, groups=1, pipeline=pipeline).pipeline == pipeline
        )


def test_lanes_go_with_the_slot() -> None:
    found = variants(NAMED["mixfp4-multi-small"])
    assert {config.dot for config in found} == {"merged", "merged-timed"}
    assert {config.slot for config in found} == {"full"}
    assert NAMED["mixfp4-multi-small"].pipeline in {config.pipeline for config in found}


def test_only_cores_of_one_shape() -> None:
    with pytest.raises(InputError, match="differ in rows"):
        explore(NAMED["nvfp4-small"], NAMED["mixfp4-blackwell"], Flow(CELLS, workers=1))
