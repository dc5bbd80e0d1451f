"""Which recipe each module of a design takes, for its purpose and at its clock.

The same search serves both designs. It looks at netlists of a perturbation of their own, which no measured run has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hwgen.cells.library import Library
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe
from hwgen.measure.built import Built, build
from hwgen.measure.choice import Owner
from hwgen.measure.energy import core_energy, lane_energy
from hwgen.measure.flow import Design, Flow
from hwgen.measure.requests import Physical
from hwgen.measure.stimulus import Stimulus
from hwgen.power.glitch import Gates
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["PILOT", "Aim", "Chosen", "Score", "Selected", "select"]

PILOT = 1001
"""Perturbation of the netlists that the search looks at."""

Chosen = dict[str, Recipe]
"""Recipe of each module."""

_SEARCHED = ("dot_product", "scale_product", "accumulate")
_LEAST_GAIN = 0.001


@dataclass(frozen=True)
class Aim:
    """What designs are built for.

    Parameters
    ----------
    clock_ns
        Clock period, ns.
    purpose
        One of `hwgen.measure.built.PURPOSES`.
    physical
        Where wires come from.
    stimulus
        Operands at work.
    """

    clock_ns: float
    purpose: str
    physical: Physical
    stimulus: Stimulus


@dataclass(frozen=True)
class Selected:
    """What the search found, and the mapped modules that it looked at.

    Parameters
    ----------
    chosen
        Recipe of each module, by design and purpose.
    bodies
        Mapped modules of the pilot run.
    """

    chosen: dict[tuple[Owner, str], Chosen]
    bodies: dict[area.Identity, area.Body]


@dataclass(frozen=True)
class Score:
    """How a choice does.

    Parameters
    ----------
    late_ns
        What it misses the clock by, ns; 0 where it meets it. Comes first.
    cost
        Area in um2, or energy in fJ per cycle.
    """

    late_ns: float
    cost: float

    def better(self, than: Score) -> bool:
        """Whether it is so by more than what is within the noise."""
        if self.late_ns or than.late_ns:
            return self.late_ns < than.late_ns
        return self.cost < (1 - _LEAST_GAIN) * than.cost


def _scored(design: Design, modules: Mapping[str, area.Body], aim: Aim, library: Library) -> Score:
    built = build(design, modules, aim.clock_ns, aim.purpose, aim.physical, library, aim.stimulus)
    late = max(0.0, -built.closed.record.slack_ns) if not built.closed.record.met else 0.0
    cost = built.closed.netlist.area if aim.purpose == "area" else _energy(design, built, aim.stimulus, aim.clock_ns)
    return Score(late, cost)


def _energy(design: Design, built: Built, stimulus: Stimulus, clock_ns: float) -> float:
    """FJ per cycle, glitches and leakage included."""
    gates, config = Gates(built.closed.netlist, built.closed.timing), design.config
    if design.kind is TensorCore:
        spent = core_energy(gates, config, config.formats, stimulus, glitches_only=True)["core", "timed"]
    else:
        spent = lane_energy(gates.netlist, gates.timing, config, config.formats, stimulus)["lane array", "timed"]
    return spent.total_fj + 1e-3 * clock_ns * sum(spent.leakage_nw.values())


def select(designs: Mapping[Owner, Design], recipes: Sequence[Recipe], aims: Sequence[Aim], flow: Flow) -> Selected:
    """Choose a recipe for each module of each design, for each aim.

    First every recipe is tried for all modules alike. From the best of these, each of the large modules tries the other
    recipes, one at a time; what helps alone is taken together, if that is better still.

    Parameters
    ----------
    designs
        What to choose for.
    recipes
        To choose from.
    aims
        What for, one of each purpose.
    flow
        Library and conditions of all syntheses.
    """
    bodies: dict[area.Identity, area.Body] = {}
    modules = {owner: [job.module for job in design.plan(recipes[:1], [PILOT])] for owner, design in designs.items()}
    alike = {owner: [dict.fromkeys(names, how) for how in recipes] for owner, names in modules.items()}
    if len(recipes) == 1:
        return Selected({(owner, aim.purpose): alike[owner][0] for owner in designs for aim in aims}, bodies)
    jobs = [job for design in designs.values() for job in design.plan(recipes, [PILOT])]
    bodies.update(flow.synthesise(jobs, "choice of recipes"))
    cases = [(owner, aim) for owner in designs for aim in aims]

    def scores(tried: Sequence[Sequence[Chosen]], what: str) -> list[list[Score]]:
        tasks = [
            (designs[owner], designs[owner].chosen(bodies, chosen, PILOT), aim, flow.library)
            for (owner, aim), each in zip(cases, tried, strict=True)
            for chosen in each
        ]
        found = iter(list(flow.each(_scored, tasks, what)))
        return [[next(found) for _ in each] for each in tried]

    best = [
        _best(alike[owner], found)
        for (owner, _), found in zip(cases, scores([alike[owner] for owner, _ in cases], "recipes alike"), strict=True)
    ]
    changed = [
        [
            {**chosen, module: how}
            for module in _SEARCHED
            if module in chosen
            for how in recipes
            if how != chosen[module]
        ]
        for chosen, _ in best
    ]
    alone = scores(changed, "recipes by module")
    merged = [_merged(*first, tried, found) for first, tried, found in zip(best, changed, alone, strict=True)]
    together = scores([[chosen] for chosen in merged], "recipes together")
    chosen = {}
    for (owner, aim), first, tried, found, last, score in zip(
        cases, best, changed, alone, merged, together, strict=True
    ):
        options = [first[0], last, *tried]
        chosen[owner, aim.purpose] = _best(options, [first[1], score[0], *found])[0]
    return Selected(chosen, bodies)


def _best(tried: Sequence[Chosen], scores: Sequence[Score]) -> tuple[Chosen, Score]:
    """The first that no later one is better than."""
    place = 0
    for other, score in enumerate(scores):
        if score.better(scores[place]):
            place = other
    return tried[place], scores[place]


def _merged(chosen: Chosen, score: Score, tried: Sequence[Chosen], scores: Sequence[Score]) -> Chosen:
    """The best recipe of each module that was better alone."""
    found = dict(chosen)
    reached = dict.fromkeys(chosen, score)
    for other, its in zip(tried, scores, strict=True):
        (module,) = [name for name in chosen if other[name] != chosen[name]]
        if its.better(reached[module]):
            found[module], reached[module] = other[module], its
    return found
