"""Area against delay: what each design needs at a clock, whatever its pipeline and recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.report.checks import VECTORS, check_core
from hwgen.report.flow import Design, Flow
from hwgen.report.measure import check_pair, flow_conditions
from hwgen.rtl.tensor_core import TensorCore
from hwgen.synth import area, timing
from hwgen.synth.compare import FEWEST, Estimate, levels
from hwgen.synth.library import Library
from hwgen.synth.netlist import Netlist, link
from hwgen.synth.walk import walk
from hwgen.synth.yosys import Recipe, usable

__all__ = ["PIPELINES", "RUNS", "Best", "Curve", "Point", "best_at", "draw_curve", "mean_overhead"]

PIPELINES: tuple[tuple[str, ...], ...] = (
    (),
    ("terms",),
    ("operands", "terms"),
    ("operands", "terms", "total"),
    ("operands", "terms", "total", "normal"),
    ("operands", "sums", "terms", "total", "normal"),
    ("operands", "sums", "terms", "aligned", "total", "normal"),
)
"""Pipelines that a curve is drawn over by default: each register where the path of the one before is longest."""

RUNS = 8
"""Syntheses of each module by default."""

_RESAMPLES = 2000
_CLOCKS = 8
_STEPS = 100
_TOP = TensorCore.module_name
# Not worth its runs: a point that another one of the same design beats by this much in area and in delay.
_BEATEN = 0.03


@dataclass(frozen=True)
class Point:
    """One way to build a core.

    Parameters
    ----------
    config
        The core, with its pipeline.
    recipes
        Recipe of each module.
    areas
        um2, one for each run.
    delays
        Critical path in ns, one for each run.
    path
        Share of each block in the critical path, mean over the runs.
    checked
        Whether its netlists were compared with the golden model; no figure rests on the others.
    """

    config: TensorCoreConfig
    recipes: dict[str, Recipe]
    areas: list[float]
    delays: list[float]
    path: dict[str, float]
    checked: bool = False


@dataclass(frozen=True)
class Best:
    """The best that both designs can do under one constraint.

    Parameters
    ----------
    limit
        The constraint: clock period in ns, or area in um2.
    chosen
        Index of the best point of the baseline and of the candidate; None where none will do.
    overhead
        (candidate - baseline) / baseline of what is to be small; None where one of them cannot keep to the limit.
    """

    limit: float
    chosen: tuple[int | None, int | None]
    overhead: Estimate | None


@dataclass(frozen=True)
class Curve:
    """Points of both designs, and how they compare.

    Parameters
    ----------
    baseline, candidate
        The configurations; their pipelines do not matter.
    points
        All points of the baseline and of the candidate.
    at_clock
        Smallest areas at equal clocks.
    at_area
        Shortest clock periods at equal areas.
    mean_at_clock, mean_at_area
        Geometric means of the overhead of area, and of that of the clock period, over the range of both.
    conditions
        Library, recipes, tools and checks, ready for JSON.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    points: tuple[list[Point], list[Point]]
    at_clock: list[Best]
    at_area: list[Best]
    mean_at_clock: Estimate
    mean_at_area: Estimate
    conditions: dict[str, Any]


def _assess(
    design: Design, recipes: Mapping[str, Recipe], runs: Sequence[Mapping[area.Identity, area.Body]], library: Library
) -> tuple[list[float], list[float], dict[str, float]]:
    """Areas, delays and shares in the critical path of one point; ``runs`` has the bodies of each run."""
    areas, delays = [], []
    path: dict[str, float] = {}
    for run, bodies in enumerate(runs):
        netlist = link(design.assembled(bodies, recipes, run, library), _TOP, library)
        found = timing.analyse(netlist)
        areas.append(netlist.area)
        delays.append(found.delay)
        for block, delay in area.by_block(found.path_by_block).items():
            path[block] = path.get(block, 0.0) + delay / found.delay / len(runs)
    return areas, delays, path


def _walked(
    design: Design, ranked: Mapping[str, list[Recipe]], bodies: Mapping[area.Identity, area.Body], library: Library
) -> list[tuple[dict[str, Recipe], float, float]]:
    """Recipes, area and delay of every step of a walk, in the first run."""
    seen: dict[tuple[str, ...], Netlist] = {}

    def linked(choice: Mapping[str, Recipe]) -> list[Netlist]:
        netlist = link(design.assembled(bodies, choice, 0, library), _TOP, library)
        seen[tuple(how.name for how in choice.values())] = netlist
        return [netlist]

    return [
        (choice, seen[tuple(how.name for how in choice.values())].area, delay) for choice, delay in walk(ranked, linked)
    ]


def _check(
    design: Design, recipes: Mapping[str, Recipe], bodies: Mapping[area.Identity, area.Body], run: int,
    library: Library, vectors: int,
) -> int:  # fmt: skip
    netlist = link(design.assembled(bodies, recipes, run, library), _TOP, library)
    return check_core(netlist, design.config, vectors)


def best_at(
    limits: Sequence[float],
    small: tuple[NDArray[np.float64], NDArray[np.float64]],
    limited: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[list[Best], list[set[int]]]:
    """Compare the best points of two designs under equal constraints.

    The interval is that of the percentile bootstrap over the runs, both designs resampled alike, at the
    `hwgen.synth.compare.levels` of a small sample; every resample chooses its own best points, so that the interval
    holds what that choice does. A bound is None where it lies among resamples in which one design cannot keep to
    the constraint.

    Parameters
    ----------
    limits
        Constraints.
    small
        What is to be small, of each design: points x runs.
    limited
        What must not exceed the constraint, in the same form.

    Returns
    -------
    tuple
        The comparison at each constraint, and for each design the points that any resample chose.
    """
    means = _resampled(small, limited)
    found: list[Best] = []
    used: list[set[int]] = [set(), set()]
    for limit in limits:
        best = []
        chosen: list[int | None] = []
        for which, (values, bounded) in enumerate(means):
            places, lowest = _lowest(values, bounded, limit)
            best.append(lowest)
            used[which].update(np.unique(places[np.isfinite(lowest)]).tolist())
            chosen.append(int(places[0]) if np.isfinite(lowest[0]) else None)
        overhead = None
        if None not in chosen:
            # Infinite where one design cannot keep to the constraint; nothing can be said where neither can.
            some = np.isfinite(best[0]) | np.isfinite(best[1])
            with np.errstate(invalid="ignore"):
                ratios = np.where(np.isfinite(best[0]), best[1] / best[0] - 1, -np.inf)[some]
            overhead = _estimate(ratios, small[0].shape[1])
        found.append(Best(float(limit), (chosen[0], chosen[1]), overhead))
    return found, used


def mean_overhead(
    limits: Sequence[float],
    small: tuple[NDArray[np.float64], NDArray[np.float64]],
    limited: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> Estimate:
    """Geometric mean of the overhead over a range of constraints, with its interval; otherwise as `best_at`.

    Curves of recipes and pipelines are staircases: close to a step of one design a single constraint says more of
    the step than of the design.

    Parameters
    ----------
    limits
        The first and the last constraint.
    small, limited
        As for `best_at`.
    """
    means = _resampled(small, limited)
    logarithms = []
    for limit in np.geomspace(limits[0], limits[-1], _STEPS):
        one, other = (_lowest(values, bounded, limit)[1] for values, bounded in means)
        with np.errstate(invalid="ignore"):
            ratio = np.log(other / one)
        logarithms.append(np.where(np.isfinite(ratio), ratio, np.nan))
    return _estimate(np.expm1(np.nanmean(logarithms, axis=0)), small[0].shape[1])


def _resampled(
    small: tuple[NDArray[np.float64], NDArray[np.float64]], limited: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Means of both kinds for each design, (points, 1 + resamples); the first is the sample itself."""
    runs = small[0].shape[1]
    drawn = np.concatenate([np.arange(runs)[None], np.random.default_rng(0).integers(0, runs, (_RESAMPLES, runs))])
    return [
        (values[:, drawn].mean(axis=2), bounded[:, drawn].mean(axis=2))
        for values, bounded in zip(small, limited, strict=True)
    ]


def _lowest(
    values: NDArray[np.float64], bounded: NDArray[np.float64], limit: float
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """For each resample the best point within the limit, and its value: infinite where there is none."""
    allowed = np.where(bounded <= limit, values, np.inf)
    places = allowed.argmin(axis=0)
    return places, allowed[places, np.arange(allowed.shape[1])]


def _estimate(found: NDArray[np.float64], runs: int) -> Estimate:
    """The first value, with the bounds that the others give; none where a bound is infinite or the runs too few."""
    if runs < FEWEST:
        return Estimate(float(found[0]))
    lower, upper = levels(runs)
    bounds = np.percentile(found[1:], lower, method="lower"), np.percentile(found[1:], upper, method="higher")
    return Estimate(float(found[0]), *(float(bound) if np.isfinite(bound) else None for bound in bounds))


def _fronts(points: Sequence[Sequence[Point]]) -> tuple[list[list[float]], list[list[float]]]:
    """Mean areas and delays of all points, by design."""
    areas = [[float(np.mean(point.areas)) for point in ours] for ours in points]
    delays = [[float(np.mean(point.delays)) for point in ours] for ours in points]
    return areas, delays


def _limits(points: Sequence[Sequence[Point]]) -> tuple[list[float], list[float]]:
    """Clock periods and areas that both designs can do something with, evenly spaced by ratio."""
    areas, delays = _fronts(points)

    def spaced(values: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> list[float]:
        first = max(min(ours) for ours in values)
        # Nothing is gained beyond the point that is best in the other respect.
        last = max(ours[int(np.argmin(other))] for ours, other in zip(values, others, strict=True))
        # A hair more, so that means of the very runs meet their own limit.
        spread = (float(f"{1.005 * value:.3g}") for value in np.geomspace(first, max(first, last), _CLOCKS))
        return list(dict.fromkeys(spread))

    return spaced(delays, areas), spaced(areas, delays)


def _by_design(
    configs: Sequence[TensorCoreConfig], pipelines: Sequence[tuple[str, ...]]
) -> Iterator[tuple[int, Design]]:
    for which, config in enumerate(configs):
        for pipeline in pipelines:
            yield which, Design(replace(config, pipeline=pipeline), TensorCore)


def draw_curve(
    baseline: TensorCoreConfig,
    candidate: TensorCoreConfig,
    flow: Flow,
    recipes: Sequence[Recipe] | None = None,
    *,
    pipelines: Sequence[tuple[str, ...]] = PIPELINES,
    clocks_ns: Sequence[float] = (),
    runs: int = RUNS,
    vectors: int = VECTORS,
) -> Curve:
    """Build both cores in many ways, and compare the best of each at equal clock and at equal area.

    Every pipeline is taken from the smallest recipe of each module towards the fastest, module by module along the
    critical path (`hwgen.synth.walk`). All pipelines take one step per cycle.

    Parameters
    ----------
    baseline, candidate
        Configurations of the same shape.
    flow
        Library and conditions of all syntheses.
    recipes
        Recipes to choose from; all that suit the library by default.
    pipelines
        Pipelines to choose from.
    clocks_ns
        Clock periods; by default eight from the shortest to the longest that matter.
    runs
        Syntheses of each module, each under another perturbation.
    vectors
        Results of every netlist behind a figure that are compared with the golden model, at least.

    Raises
    ------
    InputError
        As `hwgen.report.measure.measure`; or no design meets any of the clocks.
    ToolError
        A tool failed, or a netlist does not compute what the golden model says.
    """
    check_pair(baseline, candidate)
    library = flow.library
    library.check_for_synthesis(sequential=True)
    recipes = list(recipes or usable(library))
    designs = list(_by_design((baseline, candidate), pipelines))

    pilots = [job for _, design in designs for job in design.plan(recipes, [0])]
    bodies = flow.synthesise(pilots, "pilot runs")
    ranked: dict[str, dict[str, list[Recipe]]] = {}
    for (key, module), found in area.ranked(pilots, bodies, library).items():
        ranked.setdefault(key, {})[module] = list(found)

    def own(design: Design, run: int) -> dict[area.Identity, area.Body]:
        return {identity: body for identity, body in bodies.items() if identity[0] == design.key and identity[3] == run}

    tasks = [(design, ranked[design.key], own(design, 0), library) for _, design in designs]
    ways: list[tuple[int, Design, dict[str, Recipe], float, float]] = [
        (which, design, *step)
        for (which, design), steps in zip(designs, flow.each(_walked, tasks, "walks"), strict=True)
        for step in steps
    ]
    ways = [
        way
        for way in ways
        if not any(other[0] == way[0] and max(other[3] / way[3], other[4] / way[4]) < 1 - _BEATEN for other in ways)
    ]

    jobs = [
        job
        for _, design, choice, _, _ in ways
        for job in design.plan({module: [how] for module, how in choice.items()}, range(runs))
        if job.identity not in bodies
    ]
    bodies |= flow.synthesise(jobs, "synthesis")
    given = [(design, choice, [own(design, run) for run in range(runs)], library) for _, design, choice, _, _ in ways]
    points: tuple[list[Point], list[Point]] = ([], [])
    for (which, design, choice, _, _), assessed in zip(ways, flow.each(_assess, given, "timing"), strict=True):
        points[which].append(Point(design.config, choice, *assessed))

    clocks, sizes = _limits(points)
    areas, delays = (
        (np.array([getattr(point, field) for point in points[0]]), np.array([getattr(p, field) for p in points[1]]))
        for field in ("areas", "delays")
    )
    at_clock, used = best_at(sorted(set(clocks_ns)) or clocks, areas, delays)
    if all(best.overhead is None for best in at_clock):
        fastest = max(min(ours) for ours in _fronts(points)[1])
        raise InputError(
            f"clock of {', '.join(f'{clock:g}' for clock in clocks_ns)} ns: not met with {library.name};"
            f" both designs meet {fastest:.3g} ns"
        )
    at_area, more = best_at(sizes, delays, areas)
    mean_at_clock = mean_overhead([best.limit for best in at_clock if best.overhead], areas, delays)
    mean_at_area = mean_overhead(sizes, delays, areas)

    checks = [
        (design, points[which][index].recipes, own(design, run), run, library, vectors)
        for which, design in designs
        for index in sorted(used[which] | more[which])
        if points[which][index].config == design.config
        for run in range(runs)
    ]
    checked = list(flow.each(_check, checks, "checks"))
    for which, ours in enumerate(points):
        for index in used[which] | more[which]:
            ours[index] = replace(ours[index], checked=True)
    conditions = {
        **flow_conditions(library, recipes),
        "pipelines": [list(pipeline) for pipeline in pipelines],
        "runs": runs,
        "checked_each_netlist": {"netlists": len(checked), "results": min(checked)},
        "spread": "95 % bootstrap interval over the runs; each resample chooses its own best points; which points there"
        " are comes from one pilot run",
    }
    return Curve(baseline, candidate, points, at_clock, at_area, mean_at_clock, mean_at_area, conditions)
