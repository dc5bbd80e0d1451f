"""Lanes and recipes with which whole cores meet a clock, not only cores of one element.

`hwgen.measure.selection` searches with cores of one row and one column. In an array operands have longer ways, and what
they take is missing elsewhere on the path. So whole cores of the search's choice are built once. A part of the array
would not do: four rows and columns of `blackwell` met 1 ns by lanes with which all eight were 34 to 110 ps late.

For what misses the clock the search runs again, for a clock that is shorter by what was missed. Where most of the path
is in the dot product, it first leaves out the lanes that were late: a core of one element may find them smaller, and no
recipe makes up for them. Both configurations, and both purposes, are helped alike.

Where lanes were nearly as good as the best, whole cores of all of them are built, and the best is taken. Where some of
them are late, the lanes of the other design's whole cores are tried, too: what is best of a core of one element is out
of reach then, and the next best may be far behind. So is a slot that only the other design's whole cores have. On
generic7 nvfp4-e0m3 kept the slot `full`, which was the best of one element, and MixFP4 was 1 % smaller with `split`.

A core that is late by a little is not passed over for one that costs more: each module on its longest path takes faster
recipes, one at a time, and the best of these counts. On generic7 lanes of nvint4 that missed 1 ns by 0.6 ps in one draw
of two had lost to others that spend 9 % more. A faster dot product would take as much, a faster module beside it not.

A lane array has the recipe that suits the dot product of a core, where registers divide the path. If it is late by it,
it takes the recipe by which it meets the clock with the least area.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from hwgen.closure.close import ROUNDS
from hwgen.config import TensorCoreConfig
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, distinct
from hwgen.measure.flow import Design, Flow
from hwgen.measure.selection import OF_LANES, PILOTS, Aim, Chosen, Score, Selected, first_best, scored, select, variants
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["WITHIN", "select_for_cores"]

WITHIN = 0.1
"""Share of the clock period: what a core misses it by beyond that is out of reach of other recipes."""

_AGAIN = 3
_DRAWS = PILOTS[:2]

_Key = tuple[str, str]
_Taken = tuple[TensorCoreConfig, Chosen]


def select_for_cores(
    configs: Mapping[str, TensorCoreConfig],
    recipes: Sequence[Recipe],
    aim: Aim,
    flow: Flow,
    lanes: Sequence[str] = (),
    slots: Sequence[str] = (),
) -> Selected:
    """As `hwgen.measure.selection.select`, with shorter clocks for the search where whole cores miss theirs.

    These searches keep the slot that was found.
    """
    selected = select(configs, recipes, aim, flow, lanes, slots=slots)
    if not selected.builds:
        return selected
    whole = _Whole(aim, flow)
    reached = whole.scores(selected, selected.chosen)
    builds = selected.builds
    for place in range(max(map(len, selected.rivals.values()), default=0)):
        rivals = {key: each[place] for key, each in selected.rivals.items() if len(each) > place}
        scores = whole.scores(_with(selected, rivals), rivals)
        better = {key: rivals[key] for key, score in scores.items() if score.better(reached[key])}
        reached |= {key: scores[key] for key in better}
        selected = _with(selected, better)
    for key in reached:
        mine = {config.slot for config, _ in whole.built[key]}
        among = [each for each in variants(configs[key[0]], lanes, slots) if each.slot not in mine]
        if key in whole.late:
            among += _of_slot(configs[key[0]], selected.configs[key], lanes)
        for offered in whole.of_the_others(key, among):
            score = whole.scores(_with(selected, {key: offered}), [key])[key]
            if score.better(reached[key]):
                reached[key], selected = score, _with(selected, {key: offered})
    earlier = dict.fromkeys(reached, 0.0)
    late_lanes: dict[_Key, set[str]] = {key: set() for key in reached}
    for _ in range(_AGAIN):
        late = [key for key, score in reached.items() if score.late_ns > 0]
        for key in late:
            earlier[key] += reached[key].late_ns
        late = [key for key in late if earlier[key] <= WITHIN * aim.clock_ns]
        found = {}
        for key in late:
            late_lanes[key].add(selected.configs[key].dot)
            among = _of_slot(configs[key[0]], selected.configs[key], lanes)
            if _longest(reached[key]) == OF_LANES:
                among = [config for config in among if config.dot not in late_lanes[key]] or among
            shorter = replace(aim, clock_ns=aim.clock_ns - earlier[key])
            dots = [config.dot for config in among[1:]]
            found[key] = select({key[0]: among[0]}, recipes, shorter, flow, dots, key[1:])
        builds += sum(other.builds for other in found.values())
        for key, other in found.items():
            if other.chosen[key] == selected.chosen[key] and other.configs[key] == selected.configs[key]:
                continue
            score = whole.scores(other, [key])[key]
            if score.late_ns:
                late_lanes[key].add(other.configs[key].dot)
            if score.better(reached[key]):
                reached[key] = score
                selected = _with(selected, {key: (other.configs[key], other.chosen[key])})
    selected = _with(selected, {key: whole.in_time(selected, key, score, recipes) for key, score in reached.items()})
    arrays, more = _lane_arrays(selected, recipes, aim, flow)
    return replace(selected, lane_arrays=arrays, builds=builds + whole.builds + more)


def _lane_arrays(
    selected: Selected, recipes: Sequence[Recipe], aim: Aim, flow: Flow
) -> tuple[dict[_Key, tuple[TensorCoreConfig, Recipe]], int]:
    """Lane arrays with a recipe by which they meet the clock, if there is one, and how many were built."""
    scores: dict[tuple[TensorCoreConfig, str], Score] = {}

    def build(wanted: Iterable[tuple[TensorCoreConfig, Recipe]]) -> None:
        new = {(config, how.name): (Design(config, LaneArray), how) for config, how in wanted}
        jobs = [job for design, how in new.values() for job in design.plan([how], _DRAWS[:1])]
        bodies = flow.synthesise(jobs, "mapping, lane arrays")
        tasks = [
            (design, design.chosen(bodies, {LaneArray.module_name: how}, _DRAWS[0]), "area", aim, flow.library)
            for design, how in new.values()
        ]
        scores.update(zip(new, flow.each(scored, tasks, "lane arrays"), strict=True))

    build(selected.lane_arrays.values())
    late = {config for config, how in selected.lane_arrays.values() if scores[config, how.name].late_ns}
    build((config, how) for config in late for how in distinct(recipes) if (config, how.name) not in scores)

    def best(config: TensorCoreConfig, how: Recipe) -> Recipe:
        among = [other for other in recipes if config in late and (config, other.name) in scores]
        return first_best([how, *among], lambda other: scores[config, other.name])

    return {key: (config, best(config, how)) for key, (config, how) in selected.lane_arrays.items()}, len(scores)


def _with(selected: Selected, other: Mapping[_Key, _Taken]) -> Selected:
    """With other lanes and recipes for some configurations and purposes."""
    configs = {key: config for key, (config, _) in other.items()}
    chosen = {key: recipes for key, (_, recipes) in other.items()}
    return replace(selected, configs={**selected.configs, **configs}, chosen={**selected.chosen, **chosen})


def _of_slot(config: TensorCoreConfig, found: TensorCoreConfig, lanes: Sequence[str]) -> list[TensorCoreConfig]:
    """A configuration with all lanes that go with the slot which was found for it."""
    return [each for each in variants(config, lanes, (found.slot,)) if each.slot == found.slot]


def _longest(score: Score) -> str:
    """The module with the largest part of the longest path."""
    return max(score.alone_ns, key=lambda module: score.alone_ns[module], default="")


class _Whole:
    """Whole cores that were built of what was selected."""

    def __init__(self, aim: Aim, flow: Flow) -> None:
        self.aim, self.flow = aim, flow
        self.builds = 0
        self.late: dict[_Key, list[tuple[_Taken, Score]]] = {}
        self.built: dict[_Key, list[_Taken]] = {}

    def scores(self, selected: Selected, keys: Iterable[_Key]) -> dict[_Key, Score]:
        """How whole cores do by what was selected: the latest of some draws, at their mean cost."""
        drawn = [(key, selected.designs(*key)[TensorCore], draw) for key in keys for draw in _DRAWS]
        chosen = {key: selected.of(design, key[1]) for key, design, _ in drawn}
        jobs = {
            job.identity: job
            for key, design, draw in drawn
            for job in design.plan({module: [how] for module, how in chosen[key].items()}, [draw])
        }
        bodies = self.flow.synthesise(jobs.values(), "mapping, whole cores")
        tasks = [
            (design, design.chosen(bodies, chosen[key], draw), key[1], self.aim, self.flow.library, 1.0, ROUNDS)
            for key, design, draw in drawn
        ]
        self.builds += len(tasks)
        drawn_of: dict[_Key, list[Score]] = {}
        for (key, _, _), score in zip(drawn, self.flow.each(scored, tasks, "whole cores"), strict=True):
            drawn_of.setdefault(key, []).append(score)
        found = {}
        for key, scores in drawn_of.items():
            taken = selected.configs[key], selected.chosen[key]
            self.built.setdefault(key, []).append(taken)
            latest = max(scores, key=lambda score: score.late_ns)
            found[key] = replace(Score.mean(scores), late_ns=latest.late_ns, alone_ns=latest.alone_ns)
            if found[key].late_ns:
                self.late.setdefault(key, []).append((taken, found[key]))
        return found

    def of_the_others(self, key: _Key, among: Sequence[TensorCoreConfig]) -> Iterator[_Taken]:
        """Of some lanes and slots those of other designs' cores for the same purpose, by the same recipes.

        This design has not been built with them. What it alone has, has the recipes of its first core.
        """
        own = self.built[key][0][1]
        known = {(config.dot, config.slot) for config, _ in self.built[key]}
        others = [each for (name, purpose), each in self.built.items() if name != key[0] and purpose == key[1]]
        for config, chosen in [taken for each in others for taken in each]:
            for tried in (each for each in among if (each.dot, each.slot) == (config.dot, config.slot)):
                modules = area.counts(Design(tried, TensorCore).source).keys()
                if (tried.dot, tried.slot) not in known and {*own, *chosen} >= modules:
                    known.add((tried.dot, tried.slot))
                    yield tried, {module: chosen.get(module) or own[module] for module in modules}

    def in_time(self, selected: Selected, key: _Key, reached: Score, recipes: Sequence[Recipe]) -> _Taken:
        """The choice, or what was late and costs less, if a faster recipe on its path brings it to the clock."""
        taken = selected.configs[key], selected.chosen[key]
        for (config, chosen), late in list(self.late.get(key, ())):
            if late.late_ns > WITHIN * self.aim.clock_ns or not replace(late, late_ns=0.0).better(reached):
                continue
            on_path = [module for module, part in late.alone_ns.items() if part > 0 and module in chosen]
            for module, how in product(on_path, distinct(recipes)):
                if how.fast and how != chosen[module]:
                    other = config, {**chosen, module: how}
                    score = self.scores(_with(selected, {key: other}), [key])[key]
                    if score.better(reached):
                        reached, taken = score, other
        return taken
