"""Each module of each design by the recipe that suits it, and the syntheses of all runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hwgen.cells.library import Library
from hwgen.closure.walk import walk
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, usable
from hwgen.measure.netlists.clock import check_met
from hwgen.measure.netlists.flow import KINDS, TOPS, Design, Flow
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import analysis as timing

__all__ = ["Choice", "Owner", "orders", "synthesised"]

Owner = tuple[str, type[Block]]
"""Name of a configuration, and the block that is synthesised of it."""

_PILOTS = (1, 2)
# Twice the noise of most modules: recipes further apart than this need no second pilot run.
_CLOSE = 0.03
_TIE = 0.001


@dataclass(frozen=True)
class Choice:
    """Designs with a recipe for each module, and what became of it.

    Parameters
    ----------
    recipes
        What there was to choose from.
    chosen
        Recipe of each module, by design.
    bodies
        Mapped modules of all runs.
    """

    recipes: list[Recipe]
    chosen: dict[Owner, dict[str, Recipe]] = field(default_factory=dict)
    bodies: dict[area.Identity, area.Body] = field(default_factory=dict)


def orders(
    design: Design, sizes: Mapping[str, Mapping[Recipe, float]], recipes: Sequence[Recipe]
) -> dict[str, list[Recipe]]:
    """For each module its recipes from the smallest up, but ties first.

    An earlier recipe that costs the design less than a thousandth more than the smallest stands before it: what does
    not show in the area shows in the glitches, so both designs had better take the same.

    Parameters
    ----------
    design
        The design.
    sizes
        Area in um2 by module and recipe.
    recipes
        All of them; of two alike, the earlier is taken.
    """
    numbers = area.counts(design.source)
    whole = sum(numbers[module] * min(found.values()) for module, found in sizes.items())
    return {
        module: area.without_ties(found, _TIE * whole / numbers[module], recipes) for module, found in sizes.items()
    }


def _sizes(
    designs: Mapping[Owner, Design], recipes: Sequence[Recipe], all_of_them: bool, flow: Flow, choice: Choice
) -> dict[Owner, dict[str, dict[Recipe, float]]]:
    """Area of each module of each design by recipe: in a pilot run, or in the mean of two where one leaves it open.

    Recipes that are out of the question are left out, unless ``all_of_them`` are wanted.
    """
    first, *others = (
        [job for design in designs.values() for job in design.plan(recipes, [pilot])] for pilot in _PILOTS
    )
    if len(recipes) == 1:
        ranked = {(job.key, job.module): {job.recipe: 0.0} for job in first}
    else:
        choice.bodies.update(flow.synthesise(first, "choice of recipes"))
        ranked = area.ranked(first, choice.bodies, flow.library)
        close = {
            key: [how for how in found if all_of_them or found[how] <= (1 + _CLOSE) * min(found.values())]
            for key, found in ranked.items()
        }
        again = [
            job
            for jobs in others
            for job in jobs
            if len(close[job.key, job.module]) > 1 and job.recipe in close[job.key, job.module]
        ]
        choice.bodies.update(flow.synthesise(again, "choice of recipes, close calls"))
        firsts = [job for job in first if job.recipe in close[job.key, job.module]]
        ranked = area.ranked([*firsts, *again], choice.bodies, flow.library)
    return {
        owner: {module: found for (key, module), found in ranked.items() if key == design.key}
        for owner, design in designs.items()
    }


def _synthesise(design: Design, chosen: Mapping[str, Recipe], runs: Sequence[int], flow: Flow, choice: Choice) -> None:
    """Synthesise what is missing of some runs of a design."""
    jobs = design.plan_chosen(chosen, runs)
    if missing := [job for job in jobs if job.identity not in choice.bodies]:
        choice.bodies.update(flow.synthesise(missing, "synthesis"))


def _slowest(design: Design, chosen: Mapping[str, Recipe], runs: int, flow: Flow, choice: Choice) -> dict[str, float]:
    """The longest critical path of all runs of a design in ns, by scope."""
    _synthesise(design, chosen, range(runs), flow, choice)
    tops = [(scope, top) for scope, top in TOPS.items() if KINDS[scope] is design.kind]
    tasks = [
        (design.assembled(choice.bodies, chosen, run, flow.library), top, flow.library)
        for run in range(runs)
        for _, top in tops
    ]
    delays = list(flow.each(_delay, tasks, f"timing of {design.config.name}"))
    return {scope: max(delays[place :: len(tops)]) for place, (scope, _) in enumerate(tops)}


def _delay(modules: Mapping[str, area.Body], top: str, library: Library) -> float:
    return timing.analyse(link(modules, top, library)).delay


def _fast_enough(
    design: Design, order: Mapping[str, Sequence[Recipe]], clock_ns: float, runs: int, flow: Flow, choice: Choice
) -> tuple[dict[str, Recipe], dict[str, float]]:
    """The first recipes of a walk with which all runs meet the clock, or else the fastest; the slowest run by scope."""

    def linked(chosen: Mapping[str, Recipe]) -> list[Netlist]:
        return [
            link(design.assembled(choice.bodies, chosen, run, flow.library), design.kind.module_name, flow.library)
            for run in _PILOTS
        ]

    smallest = {module: found[0] for module, found in order.items()}
    if len(choice.recipes) == 1:
        return smallest, _slowest(design, smallest, runs, flow, choice)
    fastest: tuple[float, dict[str, Recipe]] = math.inf, smallest
    for chosen, delay in walk(order, linked):
        fastest = min(fastest, (delay, chosen), key=lambda found: found[0])
        if delay <= clock_ns:
            slowest = _slowest(design, chosen, runs, flow, choice)
            if max(slowest.values()) <= clock_ns:
                return chosen, slowest
    return fastest[1], _slowest(design, fastest[1], runs, flow, choice)


def synthesised(
    designs: Mapping[Owner, Design],
    recipes: Sequence[Recipe] | None,
    clock_ns: float | None,
    runs: int,
    flow: Flow,
) -> Choice:
    """Synthesise designs, best against best: each module by the recipe that suits it.

    That is the first of `orders`: the smallest, ties aside. With a clock, recipes that spend area on speed come in, and
    a design takes faster ones until every run of every scope meets it (`hwgen.closure.walk`).

    Raises
    ------
    InputError
        The clock is too fast for one of the designs, or the library lacks cells that synthesis needs.
    """
    flow.library.check_for_synthesis(sequential=any(design.kind is TensorCore for design in designs.values()))
    among = list(recipes or usable(flow.library))
    if clock_ns is None:
        among = [how for how in among if not how.fast] or among
    choice = Choice(among)
    sizes = _sizes(designs, among, clock_ns is not None, flow, choice)
    slowest: dict[tuple[str, str], float] = {}
    for owner, design in designs.items():
        order = orders(design, sizes[owner], among)
        if clock_ns is None:
            choice.chosen[owner] = {module: found[0] for module, found in order.items()}
        else:
            choice.chosen[owner], found = _fast_enough(design, order, clock_ns, runs, flow, choice)
            slowest |= {(design.config.name, scope): delay for scope, delay in found.items()}
    if clock_ns is not None:
        check_met(clock_ns, slowest, flow.library.name)
    jobs = [
        job
        for owner, design in designs.items()
        for job in design.plan_chosen(choice.chosen[owner], range(runs))
        if job.identity not in choice.bodies
    ]
    choice.bodies.update(flow.synthesise(jobs, "synthesis"))
    return choice
