"""Area, delay and energy of each design, over micro-architectures, pipelines and recipes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hwgen.cells.library import Library
from hwgen.closure.walk import walk
from hwgen.config import DEFAULT_PIPELINE, DOTS, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, usable
from hwgen.measure.best import Best, best_at, mean_overhead
from hwgen.measure.conditions import check_pair, flow_conditions
from hwgen.measure.netlists.checks import VECTORS, check_core
from hwgen.measure.netlists.clock import rounded_up
from hwgen.measure.netlists.energy import core_energy
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.requests import ExploreRequest
from hwgen.measure.search.choice import orders
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.power.glitch import Gates
from hwgen.report import schema
from hwgen.rtl.decode.operand import operand_layout
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import analysis as timing

__all__ = [
    "ANTICIPATED",
    "PIPELINES",
    "RUNS",
    "Comparison",
    "Exploration",
    "Point",
    "Ranking",
    "Way",
    "assess",
    "check",
    "compared",
    "explore",
    "front",
    "pilot",
    "variants",
    "walks",
    "without_beaten",
]

PIPELINES: tuple[tuple[str, ...], ...] = (
    (),
    ("terms",),
    ("operands", "terms"),
    ("decoded", "sums"),
    ("decoded", "sums", "terms"),
    ("decoded", "sums", "terms", "total"),
    ("decoded", "sums", "terms", "aligned", "total", "normal"),
    ("decoded", "tree", "factors", "terms", "aligned", "total", "normal"),
    ("decoded", "tree", "factors", "terms", "aligned", "addends", "total", "normal"),
)
"""Pipelines to explore by default: registers where the path is longest, and where they keep glitches from spreading."""

ANTICIPATED: tuple[tuple[str, ...], ...] = (("decoded", "sums", "terms"), ("decoded", "sums", "terms", "total"))
"""Those of `PIPELINES` to explore with leading zeros anticipated too: normalisation is long in both."""

RUNS = ExploreRequest.runs
"""Syntheses of each module by default."""

_CLOCKS = 8
_TOP = TensorCore.module_name
# Not worth its runs: a point that another one of the same design beats by this much in everything.
_BEATEN = 0.03

Bodies = dict[area.Identity, area.Body]
"""Mapped modules."""


@dataclass(frozen=True)
class Way:
    """A design with a recipe for each module.

    Parameters
    ----------
    side
        Name of the configuration that it is a variant of: the baseline's or the candidate's.
    design
        The core, with its pipeline.
    recipes
        Recipe of each module.
    area
        um2, in the pilot run.
    delay
        Critical path in ns, in the pilot run.
    """

    side: str
    design: Design
    recipes: Mapping[str, Recipe]
    area: float
    delay: float

    @property
    def config(self) -> TensorCoreConfig:
        """The core, with its pipeline."""
        return self.design.config

    def beaten(self, other: Way) -> bool:
        """Whether another way to build the same side is so much better in everything that this one is not worth it."""
        return other.side == self.side and max(other.area / self.area, other.delay / self.delay) < 1 - _BEATEN

    def bodies(self, bodies: Bodies, run: int) -> Bodies:
        """Its mapped modules in one run, and no more, for they go to another process."""
        names = ((self.design.key, module, how.name, run) for module, how in self.recipes.items())
        return {identity: bodies[identity] for identity in names}


@dataclass(frozen=True)
class Ranked:
    """A design with the recipes of its modules in order.

    Parameters
    ----------
    side
        Name of the configuration that it is a variant of.
    design
        The core, with its pipeline.
    order
        Recipes of every module, the smallest first, ties aside, see `hwgen.measure.search.choice.orders`.
    """

    side: str
    design: Design
    order: Mapping[str, list[Recipe]]


@dataclass(frozen=True)
class Ranking:
    """What a pilot run says.

    Parameters
    ----------
    designs
        Every design, with the order of its recipes.
    bodies
        Mapped modules of the pilot run.
    """

    designs: list[Ranked]
    bodies: Bodies


@dataclass(frozen=True)
class Point:
    """What was measured of one way to build a core.

    Parameters
    ----------
    way
        How it is built.
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

    way: Way
    areas: list[float]
    delays: list[float]
    energies: list[float]
    path: dict[str, float]
    checked: bool = False

    @property
    def area(self) -> float:
        """um2, mean over the runs."""
        return float(np.mean(self.areas))

    @property
    def delay(self) -> float:
        """Critical path in ns, mean over the runs."""
        return float(np.mean(self.delays))

    @property
    def slowest(self) -> float:
        """Critical path in ns of the slowest run, which a clock must leave time for."""
        return max(self.delays)

    @property
    def energy(self) -> float:
        """fJ per multiply-accumulate, mean over the runs."""
        return float(np.mean(self.energies))


Points = tuple[list[Point], list[Point]]
"""Points of the baseline and of the candidate."""


@dataclass(frozen=True)
class Comparison:
    """How the points of both designs compare.

    Parameters
    ----------
    at_clock
        Smallest areas at equal clocks.
    at_area
        Shortest clock periods at equal areas.
    energy_at_clock
        Least energies at equal clocks.
    means
        Geometric means of the overhead over the range of both designs.
    used
        For each design, places of the points that a figure rests on.
    """

    at_clock: list[Best]
    at_area: list[Best]
    energy_at_clock: list[Best]
    means: schema.Means
    used: tuple[set[int], set[int]]


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


def _limits(points: Points) -> tuple[list[float], list[float]]:
    """Clock periods and areas that both designs can do something with, evenly spaced by ratio."""
    areas = [[point.area for point in ours] for ours in points]
    delays = [[point.slowest for point in ours] for ours in points]

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
        of `PIPELINES`, and that of ``config``, with the micro-architecture of ``config``: the accumulation loop does
        not care for the lanes.
    """
    ways: Iterable[tuple[str, tuple[str, ...], str]]
    if dots or pipelines or leading_zeros:
        ways = itertools.product(
            dots or (config.dot,), pipelines or (config.pipeline,), leading_zeros or (config.leading_zeros,)
        )
    else:
        ways = itertools.chain(
            itertools.product(DOTS, (DEFAULT_PIPELINE,), ("counted",)),
            itertools.product((config.dot,), (*PIPELINES, config.pipeline), ("counted",)),
            itertools.product((config.dot,), () if config.exact or config.wide else ANTICIPATED, ("anticipated",)),
        )
    found: dict[TensorCoreConfig, None] = {}
    for dot, pipeline, zeros in ways:
        # What does not go with formats and slot, or has registers that are not there, is left out; where it is asked
        # for, the configuration refuses it.
        if not dots and not config.takes(dot):
            continue
        if not pipelines and not {*pipeline} <= {*config.registers}:
            continue
        found[replace(config, dot=dot, pipeline=pipeline, leading_zeros=zeros)] = None
    return list(found)


def front(points: Sequence[Point]) -> list[int]:
    """Places of the points that no other one beats in area, delay and energy at once, means over the runs."""
    values = np.array([[point.area, point.delay, point.energy] for point in points])
    no_worse = (values[:, None] <= values[None]).all(axis=2) & (values[:, None] < values[None]).any(axis=2)
    return np.flatnonzero(~no_worse.any(axis=0)).tolist()


def pilot(configs: Mapping[str, Sequence[TensorCoreConfig]], recipes: Sequence[Recipe], flow: Flow) -> Ranking:
    """Synthesise every design by every recipe once, and put the recipes of each module in order.

    Parameters
    ----------
    configs
        Variants of each configuration, by its name.
    recipes
        To choose from.
    flow
        Library and conditions of all syntheses.
    """
    designs = [(side, Design(config, TensorCore)) for side, variants in configs.items() for config in variants]
    jobs = [job for _, design in designs for job in design.plan(recipes, [0])]
    bodies = flow.synthesise(jobs, "pilot runs")
    ranked = area.ranked(jobs, bodies, flow.library)
    return Ranking(
        [
            Ranked(
                side,
                design,
                orders(
                    design, {module: found for (key, module), found in ranked.items() if key == design.key}, recipes
                ),
            )
            for side, design in designs
        ],
        bodies,
    )


def _walked(ranked: Ranked, bodies: Bodies, library: Library) -> list[Way]:
    """Every step of one walk, in the pilot run."""
    design = ranked.design
    seen: dict[tuple[str, ...], Netlist] = {}

    def linked(choice: Mapping[str, Recipe]) -> list[Netlist]:
        netlist = link(design.assembled(bodies, choice, 0, library), _TOP, library)
        seen[tuple(how.name for how in choice.values())] = netlist
        return [netlist]

    return [
        Way(ranked.side, design, choice, seen[tuple(how.name for how in choice.values())].area, delay)
        for choice, delay in walk(ranked.order, linked)
    ]


def walks(ranking: Ranking, flow: Flow) -> list[Way]:
    """Take every design from its smallest recipes towards the fastest (`hwgen.closure.walk`)."""
    tasks = [
        (
            ranked,
            {identity: body for identity, body in ranking.bodies.items() if identity[0] == ranked.design.key},
            flow.library,
        )
        for ranked in ranking.designs
    ]
    return [way for steps in flow.each(_walked, tasks, "walks") for way in steps]


def without_beaten(ways: Sequence[Way]) -> list[Way]:
    """The ways that are worth their runs; the smallest of each design stays, for its energy is wanted."""
    smallest: dict[Design, float] = {}
    for way in ways:
        smallest[way.design] = min(way.area, smallest.get(way.design, math.inf))
    return [way for way in ways if way.area == smallest[way.design] or not any(way.beaten(other) for other in ways)]


def _assessed(way: Way, runs: Sequence[Bodies], library: Library, stimulus: Stimulus) -> Point:
    """Area, delay and energy of one way; ``runs`` has the mapped modules of each run."""
    areas, delays, energies = [], [], []
    path: dict[str, float] = {}
    for run, bodies in enumerate(runs):
        netlist = link(way.design.assembled(bodies, way.recipes, run, library), _TOP, library)
        found = timing.analyse(netlist)
        areas.append(netlist.area)
        delays.append(found.delay)
        gates = Gates(netlist, found)
        spent = core_energy(gates, way.config, way.config.formats, stimulus.run(run), glitches_only=True)
        energies.append(spent["core", "timed"].total_fj / way.config.macs_per_step)
        for block, delay in area.by_block(found.path_by_block).items():
            path[block] = path.get(block, 0.0) + delay / found.delay / len(runs)
    return Point(way, areas, delays, energies, path)


def assess(ways: Sequence[Way], bodies: Bodies, runs: int, stimulus: Stimulus, flow: Flow) -> list[Point]:
    """Synthesise all runs of every way, and find their area, delay and energy.

    Parameters
    ----------
    ways
        How to build the cores.
    bodies
        Mapped modules that there are; those of all runs join them.
    runs
        Syntheses of each module.
    stimulus
        Operands at work.
    flow
        Library and conditions of all syntheses.
    """
    jobs = [
        job for way in ways for job in way.design.plan_chosen(way.recipes, range(runs)) if job.identity not in bodies
    ]
    bodies.update(flow.synthesise(jobs, "synthesis"))
    tasks = [(way, [way.bodies(bodies, run) for run in range(runs)], flow.library, stimulus) for way in ways]
    return list(flow.each(_assessed, tasks, "timing and energy"))


def compared(points: Points, clocks_ns: Sequence[float], library: str) -> Comparison:
    """Compare the points of two designs at equal clock and at equal area.

    A point meets a clock if its slowest run does, and fits an area if the mean over its runs does.

    Parameters
    ----------
    points
        Of the baseline and of the candidate.
    clocks_ns
        Clock periods; by default some from the shortest to the longest that matter.
    library
        Name of the cells.

    Raises
    ------
    InputError
        None of the clocks is met by both designs.
    """
    clocks, sizes = _limits(points)
    one, other = points
    areas = np.array([point.areas for point in one]), np.array([point.areas for point in other])
    delays = np.array([point.delays for point in one]), np.array([point.delays for point in other])
    energies = np.array([point.energies for point in one]), np.array([point.energies for point in other])
    slowest = _slowest(one), _slowest(other)
    limits = sorted(set(clocks_ns)) or clocks
    at_clock, small = best_at(limits, areas, slowest)
    met = [best.limit for best in at_clock if best.overhead]
    if not met:
        fastest = max(min(point.slowest for point in ours) for ours in points)
        raise InputError(
            f"clock of {', '.join(f'{clock:g}' for clock in clocks_ns)} ns: not met with {library};"
            f" both designs meet {rounded_up(fastest):g} ns"
        )
    energy_at_clock, frugal = best_at(limits, energies, slowest)
    at_area, fast = best_at(sizes, delays, areas)
    means = schema.Means(
        area=mean_overhead(met, areas, slowest),
        energy=mean_overhead(met, energies, slowest),
        critical_path=mean_overhead(sizes, delays, areas),
    )
    used = [
        small[place] | frugal[place] | fast[place] | set(front(ours)) | _smallest(ours)
        for place, ours in enumerate(points)
    ]
    return Comparison(at_clock, at_area, energy_at_clock, means, (used[0], used[1]))


def _slowest(points: Sequence[Point]) -> NDArray[np.float64]:
    """The slowest run of each point in every run's place, points x runs: no resample makes it faster."""
    return np.array([[point.slowest] * len(point.delays) for point in points])


def _smallest(points: Sequence[Point]) -> set[int]:
    """Places of the points that are the smallest of their micro-architecture and pipeline."""
    least: dict[TensorCoreConfig, float] = {}
    for point in points:
        least[point.way.config] = min(point.area, least.get(point.way.config, math.inf))
    return {place for place, point in enumerate(points) if point.area == least[point.way.config]}


def _check(way: Way, bodies: Bodies, run: int, library: Library, vectors: int) -> int:
    netlist = link(way.design.assembled(bodies, way.recipes, run, library), _TOP, library)
    return check_core(netlist, way.config, vectors)


def check(
    points: Points, used: tuple[set[int], set[int]], bodies: Bodies, runs: int, vectors: int, flow: Flow
) -> tuple[Points, schema.Netlists]:
    """Compare every netlist behind a figure with the golden model; the points, marked, and what was compared.

    Raises
    ------
    ToolError
        A netlist does not compute what the golden model says.
    """
    tasks = [
        (ours[place].way, ours[place].way.bodies(bodies, run), run, flow.library, vectors)
        for ours, places in zip(points, used, strict=True)
        for place in sorted(places)
        for run in range(runs)
    ]
    found = list(flow.each(_check, tasks, "checks"))
    one, other = (
        [replace(point, checked=place in places) for place, point in enumerate(ours)]
        for ours, places in zip(points, used, strict=True)
    )
    return (one, other), schema.Netlists(netlists=len(found), results=min(found))


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
