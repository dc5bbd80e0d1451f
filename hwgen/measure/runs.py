"""The runs of two designs at a clock: each built for both purposes, checked, and simulated.

What meets the clock in the search, on cores of one element, may miss it by a little in a run, or meet it at much more
area or energy than the other runs: wires of an array are longer, and the netlist is another draw. Then a module on its
longest path takes another recipe, in that run and for that purpose alone, as one does in a flow, and the better netlist
counts. Both designs are helped in this way alike.

Each try changes one module of what the search chose, even where an earlier try met the clock at a large area: on
generic130 at 5 ns a faster dot product did so at 17 % more. Where no single change is enough, the best one is the
beginning for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from hwgen.cells.library import Library
from hwgen.closure.close import Closed, Closure
from hwgen.config import TensorCoreConfig
from hwgen.formats import Formats
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, distinct
from hwgen.measure.built import PURPOSES, build, by_module, energies, per_cycle, spent
from hwgen.measure.examined import Examined, as_built, examine
from hwgen.measure.flow import DESIGNS, Design, Flow
from hwgen.measure.overhead import formats_fed
from hwgen.measure.reach import WITHIN
from hwgen.measure.selection import Aim, Chosen, Selected
from hwgen.power.consumption import Consumption
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing.analysis import Timing

__all__ = ["BUILT", "Run", "measured"]

BUILT: dict[str, type[Block]] = {"lane array": LaneArray, "core": TensorCore}
"""What is built, by scope."""

_TRIES = 8
# Of the longest path: a module with less of it can make up for little.
_ON_PATH = 0.1
# Of the middle run's area or energy: a core that takes so much more of what it is built for is worth a try.
_DEAR = 0.02

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
    on_path
        Modules with much of the longest path of the core that was closed for a purpose, most of it first.
    """

    examined: Examined
    records: Mapping[tuple[str, str], Closure]
    changed: frozenset[tuple[str, str]] = frozenset()
    passed_over: Closure | None = None
    on_path: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
    found = runs.built(choices, "synthesis")
    begun = {key: (choices[key], run) for key, run in found.items()}
    tried = {(key, purpose): [own[purpose]] for key, own in choices.items() for purpose in PURPOSES}
    for _ in range(_TRIES):
        others = {}
        for key, run in found.items():
            known = [*before.get(key[0], ()), *(other for (name, _), other in found.items() if name == key[0])]
            dear = _dear(run, known, configs[key[0]], aim.clock_ns)
            wanted = _wanting(run, begun[key][1], aim.clock_ns, dear, distinct(recipes))
            other = _changed(wanted, tried, key, begun[key], choices[key])
            if other == choices[key] and begun[key][1] is not run:
                begun[key] = choices[key], run
                other = _changed(wanted, tried, key, begun[key], choices[key])
            if other != choices[key]:
                others[key] = other
        if not others:
            break
        for key, run in runs.built(others, "other recipes").items():
            if _rank(run, configs[key[0]], aim.clock_ns) < _rank(found[key], configs[key[0]], aim.clock_ns):
                found[key], choices[key] = run, others[key]
    return {name: [found[name, number] for number in numbers] for name in configs}


def _changed(
    wanted: Mapping[str, Sequence[Recipe]],
    tried: dict[tuple[_Key, str], list[Chosen]],
    key: _Key,
    begun: tuple[_Choices, Run],
    best: _Choices,
) -> _Choices:
    """The best choice with a change of what a run began with, one that was not ``tried``, for each purpose ``wanted``.

    Each module on the path takes a recipe before one takes the next recipe.
    """
    found = dict(best)
    for purpose, among in wanted.items():
        own, run = begun[0][purpose], begun[1]
        others = ({**own, module: how} for how in among for module in run.on_path.get(purpose, ()) if module in own)
        other = next((each for each in others if each not in tried[key, purpose]), None)
        if other is not None:
            tried[key, purpose].append(other)
            found[purpose] = other
    return found


def _wanting(
    run: Run, begun: Run, clock_ns: float, dear: Set[str], recipes: Sequence[Recipe]
) -> dict[str, list[Recipe]]:
    """Purposes for which a run is late or ``dear``, and the recipes that may help.

    ``begun`` is the run that they would change. Where that is late, none but fast ones help.
    """
    found = {}
    fast = [how for how in recipes if how.fast]
    for purpose in PURPOSES:
        record = _own(run, purpose)
        if not record.met:
            if -record.slack_ns <= WITHIN * clock_ns:
                found[purpose] = fast
        elif purpose in dear:
            found[purpose] = list(recipes) if _own(begun, purpose).met else fast
    return found


def _own(run: Run, purpose: str) -> Closure:
    """How the core for a purpose was closed, even where another one took its place."""
    passed_over = run.passed_over if purpose == "energy" else None
    return passed_over or run.records[purpose, "core"]


def _dear(run: Run, known: Iterable[Run], config: TensorCoreConfig, clock_ns: float) -> set[str]:
    """Purposes for which a run takes much more than the middle one of all that are ``known``."""
    usual = [_amounts(each, config, clock_ns) for each in known]
    own = _amounts(run, config, clock_ns)
    return {each for each in PURPOSES if own[each] > (1 + _DEAR) * np.median([of[each] for of in usual])}


def _amounts(run: Run, config: TensorCoreConfig, clock_ns: float) -> dict[str, float]:
    """What its cores are to have least of, by purpose: um2, and fJ in a cycle."""
    return {
        "area": sum(run.examined.areas["core"].values()),
        "energy": per_cycle(run.examined.energy[config.formats, "core", "timed"], clock_ns),
    }


def _rank(run: Run, config: TensorCoreConfig, clock_ns: float) -> tuple[float, float]:
    """What the cores of a run miss the clock by in ns; then a percent of area counts as much as one of energy."""
    late = sum(max(-run.records[purpose, "core"].slack_ns, 0.0) for purpose in PURPOSES)
    return late, float(np.prod(list(_amounts(run, config, clock_ns).values())))


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
        """Recipes of a core as they were selected."""
        return self.selected.of(self.selected.designs(name, purpose)[TensorCore], purpose)

    def built(self, choices: Mapping[_Key, _Choices], what: str) -> dict[_Key, Run]:
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
        bodies = self.flow.synthesise(self._jobs(designs, recipes), what)
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
            aim = Aim(self.aim.clock_ns, self.aim.physical, self.aim.stimulus.run(number))
            changed = frozenset(
                (purpose, "core") for purpose in PURPOSES if choices[key][purpose] != self.chosen(name, purpose)
            )
            tasks.append((designs[name], modules, aim, self.flow.library, self.vectors, operands, changed))
        results = list(self.flow.each(_run, tasks, "placement, sizing, checks, power"))
        return dict(zip(choices, results, strict=True))

    def _jobs(
        self,
        designs: Mapping[str, Mapping[str, Mapping[type[Block], Design]]],
        recipes: Mapping[tuple[_Key, str, type[Block]], Chosen],
    ) -> Iterable[area.Job]:
        jobs = {
            job.identity: job
            for ((name, number), purpose, kind), chosen in recipes.items()
            for job in designs[name][purpose][kind].plan({module: [how] for module, how in chosen.items()}, [number])
        }
        return jobs.values()


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
    passed_over, on_path = None, {}
    stimulus, clock_ns = aim.stimulus, aim.clock_ns
    for kind in DESIGNS:
        begun = None
        for purpose in PURPOSES:
            own, design = modules[purpose][kind], designs[purpose][kind]
            # The same modules: what was done for one purpose is a good beginning for the other.
            if any(own.get(name) is not body for name, body in modules[PURPOSES[0]][kind].items()):
                begun = None
            begun = build(design, own, clock_ns, purpose, aim.physical, library, stimulus, begun=begun)
            built[purpose][kind] = begun
            if kind is TensorCore:
                on_path[purpose] = _on_path(begun.timing)
        # Sizes change glitches, so that the smaller netlist may be the one that spends less.
        both = [
            (built[purpose][kind], energies(designs[purpose][kind], built[purpose][kind], stimulus))
            for purpose in PURPOSES
        ]
        taken, found = min(both, key=lambda each: (not each[0].record.met, spent(design, each[1], clock_ns)))
        record = built["energy"][kind].record
        if kind is TensorCore and taken.record.met and not record.met:
            passed_over = record
        built["energy"][kind] = taken
        known |= {(design.config.formats, *key): value for key, value in found.items()}
    small, frugal = (as_built(built[purpose], library) for purpose in PURPOSES)
    records = {(purpose, scope): built[purpose][kind].record for purpose in PURPOSES for scope, kind in BUILT.items()}
    # What goes in and comes out is the same for all lanes; areas are those of the first.
    examined = examine(designs["area"], small, frugal, library, vectors, operands, stimulus, known)
    return Run(examined, records, changed, passed_over, on_path)


def _on_path(timing: Timing) -> tuple[str, ...]:
    """Modules with much of the longest path, most of it first."""
    parts = by_module(timing)
    much = [module for module, part in parts.items() if part >= _ON_PATH * timing.delay]
    return tuple(sorted(much, key=lambda module: -parts[module]))
