"""Area, delay and energy of each design, over micro-architectures, pipelines and recipes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hwgen.config import TensorCoreConfig
from hwgen.mapping.yosys import Recipe, usable
from hwgen.measure.conditions import check_pair, flow_conditions
from hwgen.measure.explore.best import Best
from hwgen.measure.explore.comparison import Comparison, compared
from hwgen.measure.explore.points import Point, Points, assess, check, front
from hwgen.measure.explore.ways import pilot, variants, walks, without_beaten
from hwgen.measure.netlists.checks import VECTORS
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.requests import ExploreRequest
from hwgen.report import schema
from hwgen.rtl.decode.operand import operand_layout

__all__ = ["RUNS", "Exploration", "explore"]

RUNS = ExploreRequest.runs
"""Syntheses of each module by default."""


@dataclass(frozen=True)
class Exploration:
    """Points of both designs, and how they compare.

    Parameters
    ----------
    baseline, candidate
        The configurations; neither their pipelines nor their micro-architectures matter.
    points
        All points of the baseline and of the candidate.
    comparison
        How they compare.
    conditions
        What it holds for.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    points: Points
    comparison: Comparison
    conditions: schema.ExplorationConditions

    def report(self) -> schema.ExplorationReport:
        """The exploration as a report."""
        configs = self.baseline, self.candidate
        found = self.comparison
        return schema.ExplorationReport(
            designs=tuple(schema.Design(config.as_dict()) for config in configs),
            conditions=self.conditions,
            points=tuple(
                _point_record(point, place in best)
                for ours in self.points
                for best in [front(ours)]
                for place, point in enumerate(ours)
            ),
            results=(
                *(self._optimum(best, "area", "um2", _CLOCK) for best in found.at_clock),
                *(self._optimum(best, "energy", "fJ/MAC", _CLOCK) for best in found.energy_at_clock),
                *(self._optimum(best, "critical path", "ns", _AREA) for best in found.at_area),
            ),
            means=found.means,
            wires={
                config.name: {
                    point.way.config.dot: tuple(operand_layout(point.way.config, side).size for side in ("a", "b"))
                    for point in ours
                }
                for config, ours in zip(configs, self.points, strict=True)
            },
        )

    def _optimum(self, best: Best, metric: str, unit: str, limit: tuple[str, str]) -> schema.Optimum:
        values: dict[str, float | None] = {}
        points: dict[str, int | None] = {}
        names, offsets = (self.baseline.name, self.candidate.name), (0, len(self.points[0]))
        for name, ours, place, offset in zip(names, self.points, best.chosen, offsets, strict=True):
            values[name] = None if place is None else _VALUES[metric](ours[place])
            points[name] = None if place is None else offset + place
        return schema.Optimum(
            metric=metric,
            unit=unit,
            limit=schema.Limit(*limit, best.limit),
            values=values,
            points=points,
            overhead=best.overhead,
        )


_CLOCK = "critical path", "ns"
_AREA = "area", "um2"
_VALUES: dict[str, Callable[[Point], float]] = {
    "area": lambda point: point.area,
    "energy": lambda point: point.energy,
    "critical path": lambda point: point.delay,
}


def _point_record(point: Point, on_front: bool) -> schema.Point:
    config = point.way.config
    return schema.Point(
        design=point.way.side,
        dot=config.dot,
        pipeline=tuple(config.pipeline),
        leading_zeros=config.leading_zeros,
        latency=config.latency,
        interleave=config.interleave,
        front=on_front,
        checked=point.checked,
        recipes={module: how.name for module, how in point.way.recipes.items()},
        areas_um2=tuple(point.areas),
        delays_ns=tuple(point.delays),
        energies_fj_per_mac=tuple(point.energies),
        critical_path=point.path,
    )


def explore(
    baseline: TensorCoreConfig,
    candidate: TensorCoreConfig,
    flow: Flow,
    recipes: Sequence[Recipe] | None = None,
    *,
    dots: Sequence[str] = (),
    pipelines: Sequence[tuple[str, ...]] = (),
    leading_zeros: Sequence[str] = (),
    clocks_ns: Sequence[float] = (),
    runs: int = RUNS,
    vectors: int = VECTORS,
    stimulus: Stimulus | None = None,
) -> Exploration:
    """Build both cores in many ways, and compare the best of each at equal clock and at equal area.

    Both designs are given the same ways, see `variants`. Every one is taken from the smallest recipe of each module
    towards the fastest, module by module along the critical path (`hwgen.closure.walk`). All pipelines take one step
    per cycle.

    Parameters
    ----------
    baseline, candidate
        Configurations of the same shape.
    flow
        Library and conditions of all syntheses.
    recipes
        Recipes to choose from; all that suit the library by default.
    dots, pipelines, leading_zeros
        What to choose from, see `variants`.
    clocks_ns
        Clock periods; by default eight from the shortest to the longest that matter.
    runs
        Syntheses of each module, each under another perturbation.
    vectors
        Results of every netlist behind a figure that are compared with the golden model, at least.
    stimulus
        Operands at work; each design's are quantised to its own format.

    Raises
    ------
    InputError
        As `hwgen.measure.overhead.measure`; or no design meets any of the clocks.
    ToolError
        A tool failed, or a netlist does not compute what the golden model says.
    """
    check_pair(baseline, candidate)
    flow.library.check_for_synthesis(sequential=True)
    among = list(recipes or usable(flow.library))
    stimulus = stimulus or Stimulus()
    configs = {one.name: variants(one, dots, pipelines, leading_zeros) for one in (baseline, candidate)}

    ranking = pilot(configs, among, flow)
    ways = without_beaten(walks(ranking, flow))
    assessed = assess(ways, ranking.bodies, runs, stimulus, flow)
    points = (
        [point for point in assessed if point.way.side == baseline.name],
        [point for point in assessed if point.way.side == candidate.name],
    )
    comparison = compared(points, clocks_ns, flow.library.name)
    points, checked = check(points, comparison.used, ranking.bodies, runs, vectors, flow)
    conditions = schema.ExplorationConditions(
        flow=flow_conditions(flow.library, among),
        runs=runs,
        variants=tuple(
            dict.fromkeys(
                schema.Variant(config.dot, tuple(config.pipeline), config.leading_zeros)
                for each in configs.values()
                for config in each
            )
        ),
        stimulus=stimulus.record(baseline),
        cycles=stimulus.fitted(baseline.macs_per_step).cycles(baseline),
        checked=checked,
    )
    return Exploration(baseline, candidate, points, comparison, conditions)
