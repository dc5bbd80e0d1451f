"""Area, delay and energy of each design, over micro-architectures, pipelines and recipes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.cells.library import Library
from hwgen.closure.walk import walk
from hwgen.config import DEFAULT_PIPELINE, DOTS, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, usable
from hwgen.measure.checks import VECTORS, check_core
from hwgen.measure.energy import core_energy
from hwgen.measure.flow import Design, Flow
from hwgen.measure.overhead import check_pair, flow_conditions
from hwgen.measure.requests import ExploreRequest
from hwgen.measure.stimulus import Stimulus
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.power.glitch import Gates
from hwgen.rtl.decode.operand import operand_layout
from hwgen.rtl.tensor_core import TensorCore
from hwgen.stats import Estimate, estimate, resampled
from hwgen.timing import analysis as timing

__all__ = [
    "ANTICIPATED",
    "PIPELINES",
    "RUNS",
    "Best",
    "Exploration",
    "Point",
    "best_at",
    "explore",
    "front",
    "mean_overhead",
    "variants",
]

PIPELINES: tuple[tuple[str, ...], ...] = (
    (),
    ("terms",),
    ("operands", "terms"),
    ("decoded", "sums"),
    ("decoded", "sums", "terms"),
    ("decoded", "sums", "terms", "total"),
    ("decoded", "sums", "terms", "aligned", "total", "normal"),
)
"""Pipelines to explore by default: registers where the path is longest, and where they keep glitches from spreading."""

ANTICIPATED: tuple[tuple[str, ...], ...] = (("decoded", "sums", "terms"), ("decoded", "sums", "terms", "total"))
"""Those of `PIPELINES` to explore with leading zeros anticipated too: normalisation is long in both."""

RUNS = ExploreRequest.runs
"""Syntheses of each module by default."""

_RESAMPLES = 2000
_CLOCKS = 8
_STEPS = 100
_TOP = TensorCore.module_name
# Not worth its runs: a point that another one of the same design beats by this much in everything.
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
    energies
        fJ per multiply-accumulate at work, glitches included, without leakage, one for each run.
    path
        Share of each block in the critical path, mean over the runs.
    checked
        Whether its netlists were compared with the golden model; no figure rests on the others.
    """

    config: TensorCoreConfig
    recipes: dict[str, Recipe]
    areas: list[float]
    delays: list[float]
    energies: list[float]
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
class Exploration:
    """Points of both designs, and how they compare.

    Parameters
    ----------
    baseline, candidate
        The configurations; neither their pipelines nor their micro-architectures matter.
    points
        All points of the baseline and of the candidate.
    at_clock
        Smallest areas at equal clocks.
    at_area
        Shortest clock periods at equal areas.
    energy_at_clock
        Least energies at equal clocks.
    means
        Geometric means of the overhead over the range of both: of ``area`` and ``energy`` over the clocks, of
        ``critical path`` over the areas.
    wires
        Wires that the decoders of a row of A and of B hand over, by design and micro-architecture.
    conditions
        Library, recipes, tools and checks, ready for JSON.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    points: tuple[list[Point], list[Point]]
    at_clock: list[Best]
    at_area: list[Best]
    energy_at_clock: list[Best]
    means: dict[str, Estimate]
    wires: dict[str, dict[str, tuple[int, int]]]
    conditions: dict[str, Any]


def _assess(
    design: Design,
    recipes: Mapping[str, Recipe],
    runs: Sequence[Mapping[area.Identity, area.Body]],
    library: Library,
    stimulus: Stimulus,
) -> tuple[list[float], list[float], list[float], dict[str, float]]:
    """Areas, delays, energies and shares in the critical path of one point; ``runs`` has the bodies of each run."""
    areas, delays, energies = [], [], []
    path: dict[str, float] = {}
    config = design.config
    for run, bodies in enumerate(runs):
        netlist = link(design.assembled(bodies, recipes, run, library), _TOP, library)
        found = timing.analyse(netlist)
        areas.append(netlist.area)
        delays.append(found.delay)
        spent = core_energy(Gates(netlist, found), config, config.formats, stimulus.run(run), glitches_only=True)
        spent_fj = sum(
            fj for kinds in spent["core", "timed"].values() for kind, fj in kinds.items() if kind != "leakage"
        )
        energies.append(spent_fj / config.macs_per_step)
        for block, delay in area.by_block(found.path_by_block).items():
            path[block] = path.get(block, 0.0) + delay / found.delay / len(runs)
    return areas, delays, energies, path


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
    `hwgen.stats.levels` of a small sample; every resample chooses its own best points, so that the interval
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
            overhead = estimate(ratios, small[0].shape[1], outward=True)
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
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.log(other / one)
        logarithms.append(np.where(np.isfinite(ratio), ratio, np.nan))
    return estimate(np.expm1(np.nanmean(logarithms, axis=0)), small[0].shape[1], outward=True)


def _resampled(
    small: tuple[NDArray[np.float64], NDArray[np.float64]], limited: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Means of both kinds for each design, (points, 1 + resamples); the first is the sample itself."""
    means = resampled(*small, *limited, resamples=_RESAMPLES)
    return [(means[0], means[2]), (means[1], means[3])]


def _lowest(
    values: NDArray[np.float64], bounded: NDArray[np.float64], limit: float
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """For each resample the best point within the limit, and its value: infinite where there is none."""
    allowed = np.where(bounded <= limit, values, np.inf)
    places = allowed.argmin(axis=0)
    return places, allowed[places, np.arange(allowed.shape[1])]


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


def variants(
    config: TensorCoreConfig,
    dots: Sequence[str] = (),
    pipelines: Sequence[tuple[str, ...]] = (),
    leading_zeros: Sequence[str] = (),
) -> list[TensorCoreConfig]:
    """The ways to build a core that are explored, before recipes.

    Parameters
    ----------
    config
        The core; what is not varied stays.
    dots, pipelines, leading_zeros
        All combinations of them. By default every micro-architecture with the default pipeline, and every one
        of `PIPELINES` with the micro-architecture of ``config``: the accumulation loop does not care for the lanes.
    """
    ways: Iterable[tuple[str, tuple[str, ...], str]]
    if dots or pipelines or leading_zeros:
        ways = itertools.product(
            dots or (config.dot,), pipelines or (config.pipeline,), leading_zeros or (config.leading_zeros,)
        )
    else:
        ways = itertools.chain(
            itertools.product(DOTS, (DEFAULT_PIPELINE,), ("counted",)),
            itertools.product((config.dot,), PIPELINES, ("counted",)),
            itertools.product((config.dot,), () if config.exact else ANTICIPATED, ("anticipated",)),
        )
    found: dict[TensorCoreConfig, None] = {}
    for dot, pipeline, zeros in ways:
        # One that cannot multiply these formats is left out; where it is asked for, the configuration refuses it.
        if not dots and DOTS[dot].supports(*config.formats):
            continue
        found[replace(config, dot=dot, pipeline=pipeline, leading_zeros=zeros)] = None
    return list(found)


def front(points: Sequence[Point]) -> list[int]:
    """Places of the points that no other one beats in area, delay and energy at once, means over the runs."""
    values = np.array([[np.mean(each) for each in (point.areas, point.delays, point.energies)] for point in points])
    no_worse = (values[:, None] <= values[None]).all(axis=2) & (values[:, None] < values[None]).any(axis=2)
    return np.flatnonzero(~no_worse.any(axis=0)).tolist()


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
    library = flow.library
    library.check_for_synthesis(sequential=True)
    recipes = list(recipes or usable(library))
    stimulus = stimulus or Stimulus()
    designs = [
        (which, Design(config, TensorCore))
        for which, one in enumerate((baseline, candidate))
        for config in variants(one, dots, pipelines, leading_zeros)
    ]

    pilots = [job for _, design in designs for job in design.plan(recipes, [0])]
    bodies = flow.synthesise(pilots, "pilot runs")
    ranked: dict[str, dict[str, list[Recipe]]] = {}
    for (key, module), found in area.ranked(pilots, bodies, library).items():
        ranked.setdefault(key, {})[module] = list(found)

    def own(design: Design) -> dict[area.Identity, area.Body]:
        return {identity: body for identity, body in bodies.items() if identity[0] == design.key}

    tasks = [(design, ranked[design.key], own(design), library) for _, design in designs]
    ways: list[tuple[int, Design, dict[str, Recipe], float, float]] = [
        (which, design, *step)
        for (which, design), steps in zip(designs, flow.each(_walked, tasks, "walks"), strict=True)
        for step in steps
    ]
    # The smallest of each micro-architecture and pipeline stays, for it is what its energy is known of.
    smallest = {way[1].key: min(other[3] for other in ways if other[1].key == way[1].key) for way in ways}
    ways = [
        way
        for way in ways
        if way[3] == smallest[way[1].key]
        or not any(other[0] == way[0] and max(other[3] / way[3], other[4] / way[4]) < 1 - _BEATEN for other in ways)
    ]

    jobs = [
        job
        for _, design, choice, _, _ in ways
        for job in design.plan({module: [how] for module, how in choice.items()}, range(runs))
        if job.identity not in bodies
    ]
    bodies |= flow.synthesise(jobs, "synthesis")

    def chosen(design: Design, choice: Mapping[str, Recipe], run: int) -> dict[area.Identity, area.Body]:
        """No more than the task needs, for it goes to another process."""
        names = ((design.key, module, how.name, run) for module, how in choice.items())
        return {identity: bodies[identity] for identity in names}

    given = [
        (design, choice, [chosen(design, choice, run) for run in range(runs)], library, stimulus)
        for _, design, choice, _, _ in ways
    ]
    points: tuple[list[Point], list[Point]] = ([], [])
    for (which, design, choice, _, _), assessed in zip(
        ways, flow.each(_assess, given, "timing and energy"), strict=True
    ):
        points[which].append(Point(design.config, choice, *assessed))

    clocks, sizes = _limits(points)
    areas, delays, energies = (
        (np.array([getattr(point, field) for point in points[0]]), np.array([getattr(p, field) for p in points[1]]))
        for field in ("areas", "delays", "energies")
    )
    limits = sorted(set(clocks_ns)) or clocks
    at_clock, used = best_at(limits, areas, delays)
    if all(best.overhead is None for best in at_clock):
        fastest = max(min(ours) for ours in _fronts(points)[1])
        raise InputError(
            f"clock of {', '.join(f'{clock:g}' for clock in clocks_ns)} ns: not met with {library.name};"
            f" both designs meet {fastest:.3g} ns"
        )
    energy_at_clock, frugal = best_at(limits, energies, delays)
    at_area, more = best_at(sizes, delays, areas)
    met = [best.limit for best in at_clock if best.overhead]
    means = {
        "area": mean_overhead(met, areas, delays),
        "energy": mean_overhead(met, energies, delays),
        "critical path": mean_overhead(sizes, delays, areas),
    }

    resting = [used[which] | more[which] | frugal[which] | set(front(points[which])) for which in range(2)]
    for which, ours in enumerate(points):
        # And whatever is the smallest of its kind.
        resting[which] |= {
            index
            for index, point in enumerate(ours)
            if point.areas == min((p.areas for p in ours if p.config == point.config), key=np.mean)
        }
    checks = [
        (design, recipes, chosen(design, recipes, run), run, library, vectors)
        for which, design in designs
        for index in sorted(resting[which])
        if points[which][index].config == design.config
        for recipes in [points[which][index].recipes]
        for run in range(runs)
    ]
    checked = list(flow.each(_check, checks, "checks"))
    for which, ours in enumerate(points):
        for index in resting[which]:
            ours[index] = replace(ours[index], checked=True)
    conditions = {
        **flow_conditions(library, recipes),
        "variants": [
            {"dot": dot, "pipeline": list(pipeline), "leading_zeros": zeros}
            for dot, pipeline, zeros in dict.fromkeys(
                (design.config.dot, design.config.pipeline, design.config.leading_zeros) for _, design in designs
            )
        ],
        "runs": runs,
        "stimulus": {"tensors": stimulus.tensors, "seed": stimulus.seed, **stimulus.cycles(baseline)},
        "checked_each_netlist": {"netlists": len(checked), "results": min(checked)},
        "spread": "95 % bootstrap interval over the runs; each resample chooses its own best points; which points there"
        " are comes from one pilot run",
    }
    wires = {
        config.name: {
            design.config.dot: (operand_layout(design.config, "a").size, operand_layout(design.config, "b").size)
            for place, design in designs
            if place == which
        }
        for which, config in enumerate((baseline, candidate))
    }
    return Exploration(baseline, candidate, points, at_clock, at_area, energy_at_clock, means, wires, conditions)
