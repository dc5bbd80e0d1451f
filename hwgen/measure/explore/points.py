"""What is measured of ways to build a design: area, delay and energy, and that it computes the right thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwgen.cells.library import Library
from hwgen.mapping import area
from hwgen.measure.explore.ways import Bodies, Way
from hwgen.measure.netlists.checks import check_core
from hwgen.measure.netlists.energy import core_energy
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.power.glitch import Gates
from hwgen.report import schema
from hwgen.timing import analysis as timing

__all__ = ["Point", "Points", "assess", "check", "front"]


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


def front(points: Sequence[Point]) -> list[int]:
    """Places of the points that no other one beats in area, delay and energy at once, means over the runs."""
    values = np.array([[point.area, point.delay, point.energy] for point in points])
    no_worse = (values[:, None] <= values[None]).all(axis=2) & (values[:, None] < values[None]).any(axis=2)
    return np.flatnonzero(~no_worse.any(axis=0)).tolist()


def _assessed(way: Way, runs: Sequence[Bodies], library: Library, stimulus: Stimulus) -> Point:
    """Area, delay and energy of one way; ``runs`` has the mapped modules of each run."""
    areas, delays, energies = [], [], []
    path: dict[str, float] = {}
    for run, bodies in enumerate(runs):
        netlist = way.linked(bodies, run, library)
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


def _check(way: Way, bodies: Bodies, run: int, library: Library, vectors: int) -> int:
    netlist = way.linked(bodies, run, library)
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
