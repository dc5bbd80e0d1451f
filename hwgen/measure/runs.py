"""The runs of two designs at a clock: each built for both purposes, checked, and simulated.

A run that is late, or takes much more than the others, may do better by other recipes, see
`hwgen.measure.search.tries`. It is then measured by the best of these, too, and the better netlists count. Both designs
are helped in this way alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hwgen.cells.library import Library
from hwgen.closure.close import Closed, Closure
from hwgen.config import TensorCoreConfig
from hwgen.formats import Formats
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe
from hwgen.measure.netlists.built import PURPOSES, build_both, by_module, per_cycle
from hwgen.measure.netlists.examined import Examined, as_built, examine
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.overhead import formats_fed
from hwgen.measure.search.score import Aim, Score
from hwgen.measure.search.selected import Chosen, Selected
from hwgen.measure.search.tries import best_recipes
from hwgen.power.consumption import Consumption
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["BUILT", "Run", "measured"]

BUILT: dict[str, type[Block]] = {"lane array": LaneArray, "core": TensorCore}
"""What is built, by scope."""

_Key = tuple[str, int]
_Choices = dict[str, Chosen]


@dataclass(frozen=True)
class Run:
    """One run of one configuration.

    Parameters
    ----------
    examined
        What it was found to be.
    records
        How its netlists were closed, by purpose and scope.
    changed
        Purposes and scopes of which a module took another recipe than the search chose.
    passed_over
        How the core for least energy was closed, if it misses the clock and the one for least area took its place.
    alone_ns
        Part of the longest path by module, ns, of the core that was closed for a purpose; empty without a core.
    recipes
        Those that the core took, by purpose; empty without a core.
    """

    examined: Examined
    records: Mapping[tuple[str, str], Closure]
    changed: frozenset[tuple[str, str]] = frozenset()
    passed_over: Closure | None = None
    alone_ns: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    recipes: Mapping[str, Chosen] = field(default_factory=dict)


def measured(
    numbers: Sequence[int],
    configs: Mapping[str, TensorCoreConfig],
    baseline: TensorCoreConfig,
    selected: Selected,
    aim: Aim,
    recipes: Sequence[Recipe],
    vectors: int,
    flow: Flow,
    before: Mapping[str, Sequence[Run]],
) -> dict[str, list[Run]]:
    """Synthesise, build and examine runs of both configurations.

    Parameters
    ----------
    numbers
        Which runs: their perturbations and data.
    configs
        The configurations by name.
    baseline
        The one whose formats both are fed with, besides their own.
    selected
        Lanes and recipes.
    aim
        Clock, wires, operands.
    recipes
        All recipes, for runs that are late or dear.
    vectors
        Results of each netlist to compare with the golden model, at least.
    flow
        Library and conditions.
    before
        Runs that were measured before, by name.
    """
    runs = _Runs(configs, baseline, selected, aim, vectors, flow)
    choices: dict[_Key, _Choices] = {
        (name, number): {purpose: runs.chosen(name, purpose) for purpose in PURPOSES}
        for name in configs
        for number in numbers
    }
    found = runs.built(choices)
    cores = {key: run for key, run in found.items() if "core" in run.examined.areas}
    others = {
        key: other for key, other in runs.helped(cores, choices, before, recipes).items() if other != choices[key]
    }
    for key, run in (runs.built(others) if others else {}).items():
        if runs.rank(key, run) < runs.rank(key, found[key]):
            found[key] = run
    return {name: [found[name, number] for number in numbers] for name in configs}


def _score(run: Run, purpose: str, config: TensorCoreConfig, clock_ns: float) -> Score:
    """How the core for a purpose does; its closure is its own, even where another core took its place."""
    record = (run.passed_over if purpose == "energy" else None) or run.records[purpose, "core"]
    late_ns = 0.0 if record.met else -record.slack_ns
    return Score(late_ns, _amounts(run, config, clock_ns)[purpose], run.alone_ns[purpose])


def _amounts(run: Run, config: TensorCoreConfig, clock_ns: float) -> dict[str, float]:
    """What its cores are to have least of, by purpose: um2, and fJ in a cycle."""
    return {
        "area": sum(run.examined.areas["core"].values()),
        "energy": per_cycle(run.examined.energy[config.formats, "core", "timed"], clock_ns),
    }


@dataclass(frozen=True)
class _Runs:
    """What all runs have in common."""

    configs: Mapping[str, TensorCoreConfig]
    baseline: TensorCoreConfig
    selected: Selected
    aim: Aim
    vectors: int
    flow: Flow

    def chosen(self, name: str, purpose: str) -> Chosen:
        """Recipes of a core as they were selected; none without a core."""
        core = self.selected.designs(name, purpose).get(TensorCore)
        return {} if core is None else self.selected.of(core, purpose)

    def rank(self, key: _Key, run: Run) -> tuple[float, float]:
        """What the cores of a run miss the clock by in ns; then a percent of area counts as much as one of energy."""
        late = sum(max(-run.records[purpose, "core"].slack_ns, 0.0) for purpose in PURPOSES)
        return late, float(np.prod(list(_amounts(run, self.configs[key[0]], self.aim.clock_ns).values())))

    def helped(
        self,
        found: Mapping[_Key, Run],
        choices: Mapping[_Key, _Choices],
        before: Mapping[str, Sequence[Run]],
        recipes: Sequence[Recipe],
    ) -> dict[_Key, _Choices]:
        """The best recipes of runs that were ``found`` by their ``choices``."""

        def score(name: str, run: Run, purpose: str) -> Score:
            return _score(run, purpose, self.configs[name], self.aim.clock_ns)

        cores = {
            (*key, purpose): (choices[key][purpose], score(key[0], run, purpose))
            for key, run in found.items()
            for purpose in PURPOSES
        }
        earlier = {
            (name, purpose): [score(name, run, purpose).cost for run in runs]
            for name, runs in before.items()
            for purpose in PURPOSES
        }
        best = best_recipes(cores, earlier, self.selected, self.aim, recipes, self.flow)
        return {(name, run): {each: best[name, run, each] for each in PURPOSES} for name, run in found}

    def built(self, choices: Mapping[_Key, _Choices]) -> dict[_Key, Run]:
        """Map, build and examine runs, their cores by the given recipes."""
        designs = {
            name: {purpose: self.selected.designs(name, purpose) for purpose in PURPOSES} for name in self.configs
        }
        recipes = {
            (key, purpose, kind): own[purpose] if kind is TensorCore else self.selected.of(design, purpose)
            for key, own in choices.items()
            for purpose in PURPOSES
            for kind, design in designs[key[0]][purpose].items()
        }
        jobs = [
            job
            for ((name, number), purpose, kind), chosen in recipes.items()
            for job in designs[name][purpose][kind].plan_chosen(chosen, [number])
        ]
        bodies = self.flow.synthesise(jobs, "synthesis")
        tasks = []
        for key in choices:
            name, number = key
            modules = {
                purpose: {
                    kind: design.chosen(bodies, recipes[key, purpose, kind], number)
                    for kind, design in designs[name][purpose].items()
                }
                for purpose in PURPOSES
            }
            operands = formats_fed(self.configs[name], self.baseline)
            changed = frozenset(
                (purpose, "core") for purpose in PURPOSES if choices[key][purpose] != self.chosen(name, purpose)
            )
            tasks.append(
                (
                    designs[name],
                    modules,
                    replace(self.aim, stimulus=self.aim.stimulus.run(number)),
                    self.flow.library,
                    self.vectors,
                    operands,
                    changed,
                )
            )
        results = list(self.flow.each(_run, tasks, "placement, sizing, checks, power"))
        found = zip(choices.items(), results, strict=True)
        return {key: replace(run, recipes=own) for (key, own), run in found}


def _run(
    designs: Mapping[str, Mapping[type[Block], Design]],
    modules: Mapping[str, Mapping[type[Block], dict[str, area.Body]]],
    aim: Aim,
    library: Library,
    vectors: int,
    operands: Sequence[Formats],
    changed: frozenset[tuple[str, str]],
) -> Run:
    """Build and examine one run of one configuration; ``modules`` are its mapped ones by purpose and kind."""
    built: dict[str, dict[type[Block], Closed]] = {purpose: {} for purpose in PURPOSES}
    known: dict[tuple[Formats, str, str], Consumption] = {}
    passed_over, alone_ns = None, dict[str, dict[str, float]]()
    stimulus, clock_ns = aim.stimulus, aim.clock_ns
    for kind in designs[PURPOSES[0]]:
        of_kind = {purpose: designs[purpose][kind] for purpose in PURPOSES}
        mapped = {purpose: modules[purpose][kind] for purpose in PURPOSES}
        both = build_both(of_kind, mapped, clock_ns, aim.physical, library, stimulus)
        if kind is TensorCore:
            alone_ns = {purpose: by_module(closed.timing) for purpose, closed in both.closed.items()}
            record = both.closed["energy"].record
            if both.frugal.record.met and not record.met:
                passed_over = record
        for purpose, taken in both.taken.items():
            built[purpose][kind] = taken
        known |= {(of_kind["energy"].config.formats, *key): value for key, value in both.spent.items()}
    small, frugal = (as_built(built[purpose], library) for purpose in PURPOSES)
    records = {
        (purpose, scope): found[kind].record
        for purpose, found in built.items()
        for scope, kind in BUILT.items()
        if kind in found
    }
    # What goes in and comes out is the same for all lanes; areas are those of the first.
    examined = examine(designs["area"], small, frugal, library, vectors, operands, stimulus, known)
    return Run(examined, records, changed, passed_over, alone_ns)
