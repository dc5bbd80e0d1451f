"""Lanes and recipes with which whole cores meet a clock, not only cores of one element.

`hwgen.measure.search.selection` searches with cores of one row and one column. In an array operands have longer ways,
and what they take is missing elsewhere on the path. So whole cores of the search's choice are built once. A part of the
array would not do: four rows and columns of `blackwell` met 1 ns by lanes with which all eight were 34 to 110 ps late.

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

At the end each design is tried by all that the other one takes. A core of one element had found 366 pJ a cycle for
NVFP4 in `blackwell`, and 352 pJ for MixFP4, which can do more: the lanes and recipes of NVFP4 only looked better alone.
It also keeps its lanes and decoders, and takes the other's recipes for all else, which formats leave as it is. On
sky130hd two thirds of what MixFP4 spent more in `blackwell` were in an accumulation that had another recipe.

Whole cores take long to build. So one draw of each is looked at first. Where that one is later than the best core so
far, or costs clearly more, no other draw can make it the best, and none is built.

Two draws of one whole core may differ by 4 % in energy, since glitches do, and by 2 % in area where closing it works
hard. So what two draws find nearly as good as the best has two more, and two again if it is still as near as half of
that. The mean of all decides, of three at most: the least of many means of two would be luck. By two alone
mxfp4-2x16 took recipes on generic7 that cost 1.9 % more area in 16 measured runs.

What is taken has all draws in the end, though nothing else may be near. If two of them are late it is out, and the next
best that is in time takes its place, or another search. On ASAP7 MixFP4 had once taken lanes that two draws found in
time. Eleven of 16 measured runs were late by them, took other recipes, and so 4 % more area than by the next lanes.

A lane array has the recipe that suits the dot product of a core, where registers divide the path. If it is late by it,
it takes the fast recipe by which it meets the clock with the least area.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from hwgen.closure.close import ROUNDS
from hwgen.config import TensorCoreConfig
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, distinct
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.search.score import DRAWS, WITHIN, Aim, Score, first_best, scored
from hwgen.measure.search.selected import OF_LANES, Chosen, Selected, following, variants
from hwgen.measure.search.selection import APART, select
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["exchanged", "select_for_cores", "select_lane_arrays"]

_AGAIN = 3
# Draws of every whole core, and those after which only what is near the best has the rest of them.
_FIRST = 2
_DECIDING = DRAWS - 2
_CONTENDERS = 3
# What a format makes of a core, by the names in `hwgen.mapping.area.BLOCKS`.
_OF_FORMATS = ("operand decoders", "dot products")

_Key = tuple[str, str]
_Taken = tuple[TensorCoreConfig, Chosen]
_Drawn = tuple[_Taken, dict[int, Score]]


def select_for_cores(
    configs: Mapping[str, TensorCoreConfig],
    recipes: Sequence[Recipe],
    aim: Aim,
    flow: Flow,
    lanes: Sequence[str] = (),
    slots: Sequence[str] = (),
    found_for: Selected | None = None,
    required: bool = False,
) -> Selected:
    """As `hwgen.measure.search.selection.select`, with shorter clocks for the search where whole cores miss theirs.

    These searches keep the slot that was found. At the end whole cores are tried by what was ``found_for`` other
    configurations, too.
    """
    selected = select(configs, recipes, aim, flow, lanes, slots=slots, required=required)
    if not selected.builds:
        return selected
    whole = _Whole(aim, flow, selected)
    for place in range(max(map(len, selected.rivals.values()), default=0)):
        whole.take([(key, each[place]) for key, each in selected.rivals.items() if len(each) > place])
    allowed = {key: variants(configs[key[0]], lanes, slots) for key in whole.reached}
    for key, each in allowed.items():
        mine = {config.slot for config, _ in whole.built(key)}
        among = [config for config in each if config.slot not in mine]
        if key in whole.late:
            among += _of_slot(configs[key[0]], whole.selected.configs[key], lanes)
        for offered in whole.of_the_others(key, among):
            whole.take([(key, offered)])
    builds = selected.builds + _searched_again(whole, whole.missed(whole.reached), configs, recipes, lanes)
    whole.settle(recipes)
    whole.exchange(allowed, [found_for] if found_for else [])
    whole.settle(recipes)
    if turned := whole.decide():
        builds += _searched_again(whole, turned, configs, recipes, lanes)
        whole.settle(recipes)
        whole.decide()
    # What more draws decided is new to the other design.
    if whole.exchange(allowed):
        whole.decide()
    return _with_lane_arrays(whole, recipes, builds)


def exchanged(
    config: TensorCoreConfig,
    selected: Selected,
    others: Sequence[Selected],
    recipes: Sequence[Recipe],
    aim: Aim,
    flow: Flow,
    lanes: Sequence[str] = (),
) -> Selected:
    """What was found for a configuration, or what whole cores of it do better by of what was found for others.

    Parameters
    ----------
    config, selected
        The configuration, and what a search found for it.
    others
        What searches found for other configurations.
    recipes, aim, flow, lanes
        As for `hwgen.measure.search.selection.select`.
    """
    whole = _Whole(aim, flow, selected)
    allowed = {key: variants(config, lanes) for key in whole.reached}
    if whole.exchange(allowed, others):
        whole.settle(recipes)
        whole.decide()
    return _with_lane_arrays(whole, recipes, selected.builds)


def _with_lane_arrays(whole: _Whole, recipes: Sequence[Recipe], builds: int) -> Selected:
    """What whole cores decided, with the lane arrays of it; ``builds`` were made for it before."""
    arrays, more = _lane_arrays(whole.selected, recipes, whole.aim, whole.flow)
    return replace(whole.selected, lane_arrays=arrays, builds=builds + whole.builds + more)


def select_lane_arrays(
    configs: Mapping[str, TensorCoreConfig], recipes: Sequence[Recipe], aim: Aim, flow: Flow
) -> Selected:
    """Recipes of lane arrays alone, for cells without flip-flops, of which no core can be built.

    Each takes that by which it meets the clock with the least area or energy; one draw decides.

    Parameters
    ----------
    configs, recipes, aim, flow
        As for `hwgen.measure.search.selection.select`.
    """
    among = distinct(recipes)
    arrays = {(name, purpose): (config, among[0]) for name, config in configs.items() for purpose in PURPOSES}
    if len(among) == 1:
        return Selected({}, {}, arrays, 0)
    tried = [(config, how) for config in configs.values() for how in among]
    for purpose in PURPOSES:
        scores = _arrays_built(tried, purpose, aim, flow)
        for name, config in configs.items():
            best = min(among, key=lambda how: (scores[config, how.name].late_ns, scores[config, how.name].cost))
            arrays[name, purpose] = config, best
    return Selected({}, {}, arrays, len(tried) * len(PURPOSES))


def _searched_again(
    whole: _Whole,
    late: Mapping[_Key, tuple[_Taken, Score]],
    configs: Mapping[str, TensorCoreConfig],
    recipes: Sequence[Recipe],
    lanes: Sequence[str],
) -> int:
    """Search for shorter clocks what is late misses the clock by; returns how many cores were built for it."""
    aim, builds = whole.aim, 0
    earlier = dict.fromkeys(late, 0.0)
    late_lanes: dict[_Key, set[str]] = {key: set() for key in late}
    for _ in range(_AGAIN):
        found = []
        for key, (taken, score) in late.items():
            earlier[key] += score.late_ns
            if earlier[key] > WITHIN * aim.clock_ns:
                continue
            late_lanes[key].add(taken[0].dot)
            among = _of_slot(configs[key[0]], taken[0], lanes)
            if _longest(score) == OF_LANES:
                among = [config for config in among if config.dot not in late_lanes[key]] or among
            shorter = replace(aim, clock_ns=aim.clock_ns - earlier[key])
            dots = [config.dot for config in among[1:]]
            other = select({key[0]: among[0]}, recipes, shorter, whole.flow, dots, key[1:])
            builds += other.builds
            if (again := (other.configs[key], other.chosen[key])) != taken:
                found.append((key, again))
        for (key, again), score in zip(found, whole.take(found), strict=True):
            if score.late_ns:
                late_lanes[key].add(again[0].dot)
        late = whole.missed(late)
    return builds


def _lane_arrays(
    selected: Selected, recipes: Sequence[Recipe], aim: Aim, flow: Flow
) -> tuple[dict[_Key, tuple[TensorCoreConfig, Recipe]], int]:
    """Lane arrays with a recipe by which they meet the clock, if there is one, and how many were built."""
    scores = _arrays_built(selected.lane_arrays.values(), "area", aim, flow)
    late = {config for config, how in selected.lane_arrays.values() if scores[config, how.name].late_ns}
    # The others have ripple carries, and take minutes to map.
    fast = [how for how in distinct(recipes) if how.fast]
    others = [(config, how) for config in late for how in fast if (config, how.name) not in scores]
    scores |= _arrays_built(others, "area", aim, flow)

    def best(config: TensorCoreConfig, how: Recipe) -> Recipe:
        among = [other for other in recipes if config in late and (config, other.name) in scores]
        return first_best([how, *among], lambda other: scores[config, other.name])

    return {key: (config, best(config, how)) for key, (config, how) in selected.lane_arrays.items()}, len(scores)


def _arrays_built(
    wanted: Iterable[tuple[TensorCoreConfig, Recipe]], purpose: str, aim: Aim, flow: Flow
) -> dict[tuple[TensorCoreConfig, str], Score]:
    """Lane arrays by some recipes: how they do, by configuration and name of the recipe."""
    new = {(config, how.name): (Design(config, LaneArray), how) for config, how in wanted}
    jobs = [job for design, how in new.values() for job in design.plan([how], aim.draws[:1])]
    bodies = flow.synthesise(jobs, "mapping, lane arrays")
    tasks = [
        (design, design.chosen(bodies, {LaneArray.module_name: how}, aim.draws[0]), purpose, aim, flow.library)
        for design, how in new.values()
    ]
    return dict(zip(new, flow.each(scored, tasks, "lane arrays"), strict=True))


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


def _after(
    config: TensorCoreConfig, chosen: Chosen, among: Sequence[TensorCoreConfig], own: Chosen
) -> Iterator[_Taken]:
    """Of some configurations those with the lanes and the slot of another design, by its recipes.

    Modules that it does not have take a design's ``own``; what these do not have either is left out.
    """
    for tried in among:
        if (tried.dot, tried.slot) == (config.dot, config.slot):
            modules = area.counts(Design(tried, TensorCore).source).keys()
            if {*own, *chosen} >= modules:
                yield tried, {module: chosen.get(module) or own[module] for module in modules}


def _of_draws(by_draw: Mapping[int, Score]) -> Score:
    """The mean cost of some draws, and how late the latest is; of more than two, the latest but one."""
    latest = sorted(by_draw.values(), key=lambda score: -score.late_ns)[len(by_draw) > _FIRST]
    return replace(Score.mean(list(by_draw.values())), late_ns=latest.late_ns, alone_ns=latest.alone_ns)


def _best(near: Sequence[_Drawn]) -> _Drawn:
    """The best of what was built, by all draws of each."""
    return first_best(near, lambda known: _of_draws(known[1]))


class _Whole:
    """Whole cores: those of the search's choice, and what is better than these.

    Attributes
    ----------
    selected
        The best so far.
    reached
        How whole cores of it do.
    builds
        How many were built.
    late
        What was late, for each purpose of each design.
    drawn
        All that was built, likewise, with its score in each draw.
    """

    def __init__(self, aim: Aim, flow: Flow, selected: Selected) -> None:
        self.aim, self.flow, self.selected = aim, flow, selected
        self.builds = 0
        self.late: dict[_Key, list[tuple[_Taken, Score]]] = {}
        self.drawn: dict[_Key, list[_Drawn]] = {}
        self.reached: dict[_Key, Score] = {}
        own = [(key, (config, selected.chosen[key])) for key, config in selected.configs.items()]
        self.reached = dict(zip(selected.configs, self._scores(own), strict=True))

    def built(self, key: _Key) -> list[_Taken]:
        """What was built for a purpose of a design, in order."""
        return [choice for choice, _ in self.drawn[key]]

    def taken(self, key: _Key) -> _Taken:
        """What is taken so far."""
        return self.selected.configs[key], self.selected.chosen[key]

    def missed(self, keys: Iterable[_Key]) -> dict[_Key, tuple[_Taken, Score]]:
        """What is taken so far and late, and how it does."""
        return {key: (self.taken(key), self.reached[key]) for key in keys if self.reached[key].late_ns}

    def take(self, offers: Sequence[tuple[_Key, _Taken]]) -> list[Score]:
        """Take what is better of some offers; returns how all of them do."""
        scores = self._scores(offers)
        for (key, offered), score in zip(offers, scores, strict=True):
            if score.better(self.reached[key]):
                self._set(key, offered, score)
        return scores

    def _set(self, key: _Key, choice: _Taken, score: Score) -> None:
        self.reached[key] = score
        self.selected = _with(self.selected, {key: choice})

    def _scores(self, taken: Sequence[tuple[_Key, _Taken]]) -> list[Score]:
        """How whole cores of some choices do: the latest of some draws, at their mean cost.

        What cannot be better than the best core so far, as its first draw says, has that draw alone.
        """
        drawn: list[dict[int, Score]] = [{} for _ in taken]
        left = list(range(len(taken)))
        # One core alone would leave processors idle.
        first, second = self.aim.draws[:1], self.aim.draws[1:_FIRST]
        for draws in ([*first, *second],) if not self.reached or len(taken) == 1 else (first, second):
            if not left:
                break
            wanted = [(number, draw) for number in left for draw in draws]
            built = self._build([(*taken[number], draw) for number, draw in wanted])
            for (number, draw), score in zip(wanted, built, strict=True):
                drawn[number][draw] = score
            left = [number for number in left if self._may_be_better(taken[number][0], drawn[number][first[0]])]
        found = []
        for (key, choice), by_draw in zip(taken, drawn, strict=True):
            self.drawn.setdefault(key, []).append((choice, by_draw))
            found.append(_of_draws(by_draw))
            if found[-1].late_ns:
                self.late.setdefault(key, []).append((choice, found[-1]))
        return found

    def _may_be_better(self, key: _Key, first: Score) -> bool:
        """Whether a core whose first draw is this one may be better than the best so far."""
        best = self.reached.get(key)
        if best is None:
            return True
        if first.late_ns or best.late_ns:
            return first.late_ns < best.late_ns
        return first.cost <= (1 + APART[key[1]]) * best.cost

    def _build(self, wanted: Sequence[tuple[_Key, _Taken, int]]) -> Iterator[Score]:
        """Build some choices, each in one draw."""
        jobs, chosen_by = {}, []
        for key, choice, draw in wanted:
            other = _with(self.selected, {key: choice})
            design = other.designs(*key)[TensorCore]
            chosen = other.of(design, key[1])
            chosen_by.append((key, design, chosen, draw))
            for job in design.plan_chosen(chosen, [draw]):
                jobs[job.identity] = job
        bodies = self.flow.synthesise(jobs.values(), "mapping, whole cores")
        tasks = [
            (design, design.chosen(bodies, chosen, draw), key[1], self.aim, self.flow.library, 1.0, ROUNDS)
            for key, design, chosen, draw in chosen_by
        ]
        self.builds += len(tasks)
        yield from self.flow.each(scored, tasks, "whole cores")

    def decide(self) -> dict[_Key, tuple[_Taken, Score]]:
        """Take the best of what is nearly as good, by the mean of more draws. What is taken has all of them.

        One draw may be late: a run that is late takes another recipe. What is late in two is out, and the next best
        that is in time is looked at likewise. Returns what was the best and turned out late.
        """
        turned: dict[_Key, tuple[_Taken, Score]] = {}
        left = list(self.drawn)
        while close := {key: near for key in left if (near := self._near(key))}:
            for draws in (self.aim.draws[:_DECIDING], self.aim.draws):
                self._draw([(key, known, draws) for key, near in close.items() if len(near) > 1 for known in near])
                close = {key: self._still_near(key, near) for key, near in close.items()}
            best = {key: _best(near) for key, near in close.items()}
            self._draw([(key, known, self.aim.draws) for key, known in best.items()])
            for key, (choice, by_draw) in best.items():
                self._set(key, choice, _of_draws(by_draw))
            late = self.missed(best)
            for key, known in late.items():
                turned.setdefault(key, known)
                self.late.setdefault(key, []).append(known)
            left = [key for key in late if self._take_in_time(key)]
        return turned

    def _draw(self, wanted: Sequence[tuple[_Key, _Drawn, Sequence[int]]]) -> None:
        """Build what is missing of some draws."""
        missing = [
            (key, choice, draw, by_draw)
            for key, (choice, by_draw), draws in wanted
            for draw in draws
            if draw not in by_draw
        ]
        built = self._build([(key, choice, draw) for key, choice, draw, _ in missing])
        for (*_, draw, by_draw), score in zip(missing, built, strict=True):
            by_draw[draw] = score

    def _take_in_time(self, key: _Key) -> bool:
        """Take the best of what was built in time, if there is any."""
        known = [(choice, _of_draws(by_draw)) for choice, by_draw in self.drawn[key]]
        in_time = [each for each in known if not each[1].late_ns]
        if in_time:
            self._set(key, *min(in_time, key=lambda each: each[1].cost))
        return bool(in_time)

    def _still_near(self, key: _Key, near: Sequence[_Drawn]) -> list[_Drawn]:
        """What the mean of more draws leaves, in order: it is worse than the best by half as much at most."""
        best, apart = _of_draws(_best(near)[1]), 0.5 * APART[key[1]]
        return [known for known in near if _of_draws(known[1]).near(best, self.aim.clock_ns, apart)]

    def _near(self, key: _Key) -> list[_Drawn]:
        """What was built in time and costs hardly more than the best, which comes first; `_CONTENDERS` at most."""
        taken = self.taken(key)
        scores = [(choice, by_draw, _of_draws(by_draw)) for choice, by_draw in self.drawn[key]]
        scores.sort(key=lambda known: (known[0] != taken, known[2].cost))
        found: list[_Drawn] = []
        for choice, by_draw, score in scores:
            close = not score.late_ns and score.cost <= (1 + APART[key[1]]) * self.reached[key].cost
            if close and choice not in [known for known, _ in found]:
                found.append((choice, by_draw))
        return found[:_CONTENDERS]

    def of_the_others(self, key: _Key, among: Sequence[TensorCoreConfig]) -> Iterator[_Taken]:
        """Of some lanes and slots those of other designs' cores for the same purpose, by the same recipes.

        This design has not been built with them. What it alone has, has the recipes of its first core.
        """
        own = self.built(key)[0][1]
        known = {(config.dot, config.slot) for config, _ in self.built(key)}
        others = [other for other in self.drawn if other[0] != key[0] and other[1] == key[1]]
        for config, chosen in [taken for other in others for taken in self.built(other)]:
            for tried, recipes in _after(config, chosen, among, own):
                if (tried.dot, tried.slot) not in known:
                    known.add((tried.dot, tried.slot))
                    yield tried, recipes

    def exchange(self, allowed: Mapping[_Key, Sequence[TensorCoreConfig]], further: Sequence[Selected] = ()) -> bool:
        """Try each design by what the others take, and by what was found for further ones; whether there was any."""
        others = [self.selected, *further]
        offers = [(key, each) for key, among in allowed.items() for each in self._of_others(key, among, others)]
        self.take(offers)
        return bool(offers)

    def _of_others(self, key: _Key, among: Sequence[TensorCoreConfig], others: Sequence[Selected]) -> Iterator[_Taken]:
        """What other designs take for the same purpose, as far as this one has not been built with it.

        All of it, and all but lanes and decoders.
        """
        mine, own = self.taken(key)
        of_formats = [module for module in own if area.BLOCKS[module] in _OF_FORMATS]
        known = self.built(key)
        for selected in others:
            for other, config in selected.configs.items():
                if other[0] == key[0] or other[1] != key[1]:
                    continue
                chosen = selected.chosen[other]
                for offered in (*_after(config, chosen, among, own), (mine, following(own, chosen, of_formats))):
                    # With the same lanes and decoders both are one.
                    if offered not in known:
                        known.append(offered)
                        yield offered

    def settle(self, recipes: Sequence[Recipe]) -> None:
        """Take what was late and costs less, where a faster recipe on its path brings it to the clock.

        What was late is looked at once.
        """
        for key in self.reached:
            for (config, chosen), late in self.late.pop(key, ()):
                in_time = replace(late, late_ns=0.0)
                if late.late_ns > WITHIN * self.aim.clock_ns or not in_time.better(self.reached[key]):
                    continue
                on_path = [module for module, part in late.alone_ns.items() if part > 0 and module in chosen]
                self.take(
                    [
                        (key, (config, {**chosen, module: how}))
                        for module, how in product(on_path, distinct(recipes))
                        if how.fast and how != chosen[module]
                    ]
                )
            self.late.pop(key, None)
