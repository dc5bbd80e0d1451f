"""Recipes by which a quantiser is small and meets its clock.

They begin with what netlists as mapped promise. Closing changes that: it makes the cells on long paths larger and the
others smaller. So where netlists are closed at the clock, the recipe of each module is tried on closed quantisers. What
is better on one draw is built of another one, and the mean decides. Draws are not those of the runs that are measured.
All quantisers are helped alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from hwgen.cells.library import Library
from hwgen.closure.close import close
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe
from hwgen.measure.netlists.built import by_module
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.search.score import Score, draws_of, first_best
from hwgen.measure.search.selected import Chosen
from hwgen.netlist.link import link
from hwgen.timing import analysis as timing

__all__ = ["choose"]

_DRAWS = draws_of(0)[:2]
_ROUNDS = 4

_Key = tuple[str, tuple[tuple[str, str], ...]]


def choose(
    sources: Mapping[str, area.Source], recipes: Sequence[Recipe], clock_ns: float, closed: bool, flow: Flow
) -> dict[str, Chosen]:
    """Recipe of each module of each quantiser.

    Parameters
    ----------
    sources
        The quantisers by name.
    recipes
        To choose from.
    clock_ns
        Clock period in ns.
    closed
        Whether netlists are closed at the clock; else they are as mapped.
    flow
        Library and conditions.
    """
    draws = _DRAWS if closed else _DRAWS[:1]
    jobs = [job for name, source in sources.items() for job in area.plan(name, source, recipes, draws)]
    search = _Search(sources, recipes, clock_ns, flow, flow.synthesise(jobs, "recipes"))
    chosen = {name: search.as_mapped(name) for name in sources}
    return search.closed(chosen) if closed else chosen


class _Search:
    """Choices that were tried, and how they do once they are closed."""

    def __init__(
        self,
        sources: Mapping[str, area.Source],
        recipes: Sequence[Recipe],
        clock_ns: float,
        flow: Flow,
        bodies: Mapping[area.Identity, area.Body],
    ) -> None:
        self.sources, self.recipes, self.clock_ns, self.flow, self.bodies = sources, recipes, clock_ns, flow, bodies
        self.scores: dict[_Key, dict[int, Score]] = {}

    def modules(self, name: str, chosen: Mapping[str, Recipe], draw: int) -> dict[str, area.Body]:
        """The mapped modules of one draw, each by its recipe."""
        return {module: self.bodies[name, module, how.name, draw] for module, how in chosen.items()}

    def as_mapped(self, name: str) -> Chosen:
        """Recipes by which a quantiser as mapped is small and meets the clock.

        Each module begins with the recipe of least area. While the clock is missed, the module with most of the longest
        path takes that of its other recipes by which the path is shortest. Where none shortens it, the module with the
        next largest part of the path tries. As long as the path becomes shorter, each module may change again: what was
        fast enough beside one slow module may not be beside a fast one.
        """
        source, library = self.sources[name], self.flow.library
        by_area = {
            module: sorted(
                self.recipes,
                key=lambda how: area.own_area(self.bodies[name, module, how.name, _DRAWS[0]], library),
            )
            for module in area.counts(source)
        }
        chosen = {module: ordered[0] for module, ordered in by_area.items()}

        def timed(trial: Mapping[str, Recipe]) -> timing.Timing:
            mapped = self.modules(name, trial, _DRAWS[0])
            return timing.analyse(link(area.buffered(mapped, source, library), source.top, library))

        best = timed(chosen)
        settled: set[str] = set()
        while best.delay > self.clock_ns and len(settled) < len(chosen):
            open_ones = {module: part for module, part in by_module(best).items() if module not in settled}
            if not open_ones:
                break
            module = max(open_ones, key=lambda each: open_ones[each])
            trials = [(timed({**chosen, module: how}), how) for how in by_area[module] if how is not chosen[module]]
            fastest, how = min(trials, key=lambda trial: trial[0].delay)
            if fastest.delay < best.delay:
                best, chosen[module] = fastest, how
                settled.clear()
            else:
                settled.add(module)
        return chosen

    def closed(self, chosen: Mapping[str, Chosen]) -> dict[str, Chosen]:
        """Recipes by which closed quantisers are smallest, or least late, from a first choice on.

        Of each module all other recipes are tried alone. Those that help are taken together, if together they help
        most, else the best of them; and so on.
        """
        best = dict(chosen)
        left = list(best)
        for _ in range(_ROUNDS):
            alone = {name: list(self.changes(best[name])) for name in left}
            self.build([(name, each) for name in left for each in (best[name], *alone[name])], _DRAWS[0])
            helping = {
                name: [each for each in alone[name] if self.first(name, each).better(self.first(name, best[name]))]
                for name in left
            }
            self.build([(name, each) for name in left for each in (best[name], *helping[name])], _DRAWS[1])
            together = {name: self.together(name, best[name], helping[name]) for name in left}
            for draw in _DRAWS:
                self.build(together.items(), draw)
            before = dict(best)
            for name in left:
                among = [best[name], together[name], *helping[name]]
                best[name] = first_best(among, partial(self.score, name))
            left = [name for name in left if best[name] != before[name]]
            if not left:
                break
        return best

    def changes(self, chosen: Chosen) -> Iterable[Chosen]:
        """The same with one module by another recipe."""
        return ({**chosen, module: how} for module in chosen for how in self.recipes if how != chosen[module])

    def together(self, name: str, chosen: Chosen, others: Sequence[Chosen]) -> Chosen:
        """For each module the best of the choices that differ in it alone."""
        found = dict(chosen)
        for module in chosen:
            among = [chosen, *(each for each in others if each[module] != chosen[module])]
            found[module] = first_best(among, partial(self.score, name))[module]
        return found

    def first(self, name: str, chosen: Chosen) -> Score:
        """How a choice does on the first draw."""
        return self.scores[_key(name, chosen)][_DRAWS[0]]

    def score(self, name: str, chosen: Chosen) -> Score:
        """How a choice does, on all draws that it was built of."""
        return Score.mean(list(self.scores[_key(name, chosen)].values()))

    def build(self, wanted: Iterable[tuple[str, Chosen]], draw: int) -> None:
        """Close quantisers, as far as they were not yet."""
        new = {_key(name, chosen): (name, chosen) for name, chosen in wanted}
        new = {key: each for key, each in new.items() if draw not in self.scores.get(key, {})}
        tasks = [
            (self.sources[name], self.modules(name, chosen, draw), self.clock_ns, self.flow.library)
            for name, chosen in new.values()
        ]
        results = self.flow.each(_scored, tasks, "recipes, closed") if tasks else ()
        for key, score in zip(new, results, strict=True):
            self.scores.setdefault(key, {})[draw] = score


def _key(name: str, chosen: Chosen) -> _Key:
    return name, tuple((module, how.name) for module, how in chosen.items())


def _scored(source: area.Source, modules: Mapping[str, area.Body], clock_ns: float, library: Library) -> Score:
    """Close a quantiser; what it misses the clock by, and um2."""
    found = close(area.buffered(modules, source, library), source.top, library, clock_ns).record
    return Score(0.0 if found.met else -found.slack_ns, found.area_after)
