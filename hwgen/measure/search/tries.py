"""Other recipes for the cores of single runs that are late, or dear beside the other runs.

What meets the clock in the search, on cores of one element, may miss it by a little in a run, or meet it at much more
area or energy than the other runs: wires of an array are longer, and the netlist is another draw. Then a module on its
longest path takes another recipe, in that run and for that purpose alone, as one does in a flow.

Each try changes one module of what the search chose, even where an earlier try met the clock at a large area: on
generic130 at 5 ns a faster dot product did so at 17 % more. Where no single change is enough, the best one is the
beginning for others.

A try builds the core for its purpose and nothing else: most are no better than what they change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from hwgen.closure.close import ROUNDS
from hwgen.mapping.yosys import Recipe, distinct
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.search.score import WITHIN, Aim, Score, scored
from hwgen.measure.search.selected import Chosen, Selected
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["Core", "best_recipes"]

Core = tuple[str, int, str]
"""A core by the name of its configuration, the number of its run, and the purpose that it is built for."""

# Tries for one core, and how many of them at once: one alone would leave processors idle.
_TRIES = 8
_AT_ONCE = 2
# Of the longest path: a module with less of it can make up for little.
_ON_PATH = 0.1
# Of the middle run's area or energy: a core that takes so much more of what it is built for is worth a try.
_DEAR = 0.02


def best_recipes(
    cores: Mapping[Core, tuple[Chosen, Score]],
    earlier: Mapping[tuple[str, str], Sequence[float]],
    selected: Selected,
    aim: Aim,
    recipes: Sequence[Recipe],
    flow: Flow,
) -> dict[Core, Chosen]:
    """Recipes of the cores of some runs: as they were selected, or others where these are late or dear.

    Parameters
    ----------
    cores
        Recipes that were selected, and how the cores do by them.
    earlier
        Areas in um2, or energies in fJ per cycle, of the cores of other runs, by configuration and purpose.
    selected
        Their lanes.
    aim
        Clock, wires, operands.
    recipes
        To choose from.
    flow
        Library and conditions.
    """
    tries = {core: _Tries(*begun) for core, begun in cores.items()}
    among = distinct(recipes)
    for _ in range(_TRIES // _AT_ONCE):
        costs = {which: list(known) for which, known in earlier.items()}
        for (name, _, purpose), each in tries.items():
            costs.setdefault((name, purpose), []).append(each.best[1].cost)
        wanted = [
            (core, chosen)
            for core, each in tries.items()
            if each.late_or_dear(aim.clock_ns, float(np.median(costs[core[0], core[2]])))
            for chosen in each.next(among)
        ]
        if not wanted:
            break
        for (core, chosen), score in zip(wanted, _built(wanted, selected, aim, flow), strict=True):
            tries[core].take(chosen, score)
    return {core: each.best[0] for core, each in tries.items()}


class _Tries:
    """What other recipes make of a core.

    Parameters
    ----------
    chosen
        The recipes that were selected.
    score
        How it does by them.
    """

    def __init__(self, chosen: Chosen, score: Score) -> None:
        self.begun = self.best = chosen, score
        self.known = [chosen]

    def late_or_dear(self, clock_ns: float, usual: float) -> bool:
        """Whether the best so far misses the clock by what a recipe may make up for, or takes much more than usual."""
        score = self.best[1]
        return 0 < score.late_ns <= WITHIN * clock_ns or (not score.late_ns and score.cost > (1 + _DEAR) * usual)

    def next(self, recipes: Sequence[Recipe]) -> list[Chosen]:
        """What to try at once."""
        found = self._changes(recipes)
        if not found and self.begun is not self.best:
            self.begun = self.best
            found = self._changes(recipes)
        self.known += found
        return found

    def take(self, chosen: Chosen, score: Score) -> None:
        """Take what was tried, if it is better."""
        if score.better(self.best[1]):
            self.best = chosen, score

    def _changes(self, recipes: Sequence[Recipe]) -> list[Chosen]:
        """What it began with, with the recipe of one module changed: to fast ones only, if that is late.

        Each module on the path takes a recipe before one takes the next recipe. What is known is left out.
        """
        chosen, score = self.begun
        parts, whole = score.alone_ns, sum(score.alone_ns.values())
        on_path = [module for module in chosen if parts.get(module, 0.0) >= _ON_PATH * whole]
        on_path.sort(key=lambda module: -parts[module])
        among = [how for how in recipes if how.fast or not score.late_ns]
        changes = ({**chosen, module: how} for how in among for module in on_path)
        return list(islice((change for change in changes if change not in self.known), _AT_ONCE))


def _built(wanted: Sequence[tuple[Core, Chosen]], selected: Selected, aim: Aim, flow: Flow) -> Iterator[Score]:
    """Map and build cores, each by the given recipes."""
    named = [(*core, chosen, selected.designs(core[0], core[2])[TensorCore]) for core, chosen in wanted]
    jobs = [job for _, number, _, chosen, design in named for job in design.plan_chosen(chosen, [number])]
    bodies = flow.synthesise(jobs, "mapping, other recipes")
    tasks = [
        (
            design,
            design.chosen(bodies, chosen, number),
            purpose,
            replace(aim, stimulus=aim.stimulus.run(number)),
            flow.library,
            1.0,
            ROUNDS,
        )
        for _, number, purpose, chosen, design in named
    ]
    yield from flow.each(scored, tasks, "other recipes")
