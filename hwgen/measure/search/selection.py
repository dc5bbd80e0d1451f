"""Which recipe each module of a configuration takes at a clock, for least area and for least energy.

Whole cores take long to build, and an element of one is like all others. So the search builds cores of one row and one
column: the modules of an element are those of any array, and so are the operand decoders. But the decoders and
registers at the edge of an array serve several elements. So what they cost counts only by its share of one element, see
`hwgen.measure.search.score.shared`. The netlists are of perturbations that no measured run has, here called draws.

1. Each recipe serves all modules alike. The best becomes the choice.
   With a slot, this choice then tells which slots are worth a closer look, each with its best lanes.
2. With this choice lanes are compared, each with the recipe of its dot product that suits it, and the best are taken.
   Lanes that would be the best, but are late by a little, are tried with a faster recipe of one more module: on ASAP7
   mxfp6-e2m3 takes 16 % less energy so, by lanes that were 23 ps late.
3. One large module at a time takes another recipe, and so do all small ones together. What helps alone is a candidate,
   and so is all of it together. The best is the choice for least area.
4. What one configuration found is offered to the others, and what suits the best lanes to the next best. Most modules
   are nearly the same, so where recipes differ, one draw was luckier: by 0.5 % of energy on sg13g2.
5. For least energy, steps 2 to 4 begin with the choice for least area, for all lanes. The best lanes there are too
   close to one another for a core of one element. So the next best ones take what step 3 found for all modules but the
   lanes, and whole cores decide, see `hwgen.measure.search.reach`. They also decide on slots that are nearly as good as
   the best, for either purpose.

The energy of one draw differs from that of the next by 1 %, since glitches do. So one draw only says what is worth a
closer look: of what is nearly as good, and of what step 3 finds, the mean of several decides. Recipes that cannot help
are not tried: see `_Search.around`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, distinct
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.clock import rounded_up
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.search.score import WITHIN, Aim, Score, first_best, scored, shared
from hwgen.measure.search.selected import OF_LANES, Chosen, Selected, following, variants
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["APART", "select"]

# Draws of cores of one element; whole cores may have more, see `hwgen.measure.search.reach`.
_PILOTS = 3
# Share of the element's area that makes a module large.
_LARGE = 0.08
# By so much more area of a module a recipe may still help. For least area, sizing takes back some of what it spends,
# hardly ever more. For least energy, glitches may be fewer: on sky130hd a dot product larger by 28 % spends least.
_LARGER = {"area": 0.02, "energy": 0.35}
APART = {"area": 0.01, "energy": 0.02}
"""By purpose: what one draw finds worse by more than this share, of the cost or of the clock, is not looked at again.

From one draw to the next, the area differs by some 0.2 %, the energy by 1 %.
"""

# Lanes of which whole cores decide on the best: so many for least energy, if they are within that share of the best. A
# core of one element differs from an array by its wires and by what arrives when, and so by some percent. For least
# area one is enough, but of each slot: what operands take on their way to several elements, a slot may not have left.
_FINALISTS = {"area": 1, "energy": 3}
_CLOSE = 0.06
# Choices for lanes that are late by a little of which faster ones are tried, those that cost least.
_HURRIED = 2
# Slots that are looked at closely, if they are within `_CLOSE` of the best.
_SLOTS = 2
# No recipe makes up for what lanes cost more than this share more than others.
_FAR = 0.25
# Nor for what the best recipe for all modules alike misses the clock by, as a share of it.
_HOPELESS = 0.5
# A module's recipe by which the same lanes were late by more than this share of the clock, built for least area, is not
# tried again for least energy: such cores take the longest to build, and are late for least energy, too.
_LATE = 0.02


def select(
    configs: Mapping[str, TensorCoreConfig],
    recipes: Sequence[Recipe],
    aim: Aim,
    flow: Flow,
    lanes: Sequence[str] = (),
    purposes: Sequence[str] = PURPOSES,
    slots: Sequence[str] = (),
    required: bool = False,
) -> Selected:
    """Choose lanes, a slot and a recipe for each module of each configuration, for each purpose.

    Parameters
    ----------
    configs
        What to choose for, by name.
    recipes
        To choose from.
    aim
        What for.
    flow
        Library and conditions of all syntheses.
    lanes
        Of `hwgen.config.DOTS`, to choose from besides those that a configuration has, as far as they can multiply its
        formats.
    purposes
        Of `hwgen.measure.netlists.built.PURPOSES`, in their order.
    slots
        Of `hwgen.config.SLOTS`, to choose from besides that of a configuration, where it has one.
    required
        Whether the clock was asked for: then one that is out of reach is refused before the search goes on.

    Raises
    ------
    InputError
        A clock that is required is out of reach; the message names the core, what it takes, and the block that holds
        it.
    """
    tried_lanes = {name: variants(config, lanes, slots) for name, config in configs.items()}
    search = _Search([config for each in tried_lanes.values() for config in each], distinct(recipes), aim, flow)
    own = {name: _variant(each[0]) for name, each in tried_lanes.items()}
    alike = {key: [dict.fromkeys(search.modules[key], how) for how in search.recipes] for key in own.values()}
    if len(search.recipes) == 1 and all(len(each) == 1 for each in tried_lanes.values()):
        each_key = [(name, purpose) for name in configs for purpose in purposes]
        (how,) = search.recipes
        return Selected(
            {key: tried_lanes[key[0]][0] for key in each_key},
            {key: alike[own[key[0]]][0] for key in each_key},
            {key: (tried_lanes[key[0]][0], how) for key in each_key},
            0,
        )
    search.build(alike, "area", "recipes alike")
    if required:
        for name, key in own.items():
            search.check_in_reach(name, key, alike[key])
    first: dict[str, Chosen] = {}
    for name, each in tried_lanes.items():
        (how,) = set(search.best(own[name], "area", alike[own[name]]).values())
        first |= {key: dict.fromkeys(search.modules[key], how) for key in map(_variant, each)}
    found: dict[tuple[str, str], TensorCoreConfig] = {}
    chosen_by: dict[tuple[str, str], Chosen] = {}
    arrays: dict[tuple[str, str], tuple[TensorCoreConfig, Recipe]] = {}
    rivals: dict[tuple[str, str], list[tuple[TensorCoreConfig, Chosen]]] = {}
    for purpose in purposes:
        kept = search.slots(tried_lanes, purpose, first)
        suiting = search.suiting(
            kept, purpose, {_variant(config): first[_variant(config)] for each in kept.values() for config in each}
        )
        suited = {key: search.best(key, purpose, each) for key, each in suiting.items()}
        taken = search.lanes(kept, purpose, suited)
        keys = {name: [_variant(config) for config in each] for name, each in taken.items()}
        suited |= search.decided(
            {best: suiting[best] for best, *_ in keys.values()}, purpose, f"lanes, least {purpose}"
        )
        begun = search.tuned({own[name]: each for name, each in keys.items()}, purpose, suited)
        begun |= search.exchanged(list(keys.values()), purpose, begun)
        for name, each in taken.items():
            best, *others = sorted(each, key=lambda config: search.rank(_variant(config), purpose, begun))
            found[name, purpose], chosen_by[name, purpose] = best, begun[_variant(best)]
            rivals[name, purpose] = [(config, begun[_variant(config)]) for config in others]
        reached = {**first, **suited, **begun}
        arrays.update({(name, purpose): (tried_lanes[name][0], reached[own[name]][OF_LANES]) for name in configs})
        # The next purpose begins with what this one found.
        for name, (leading, *_) in keys.items():
            first |= {key: following(reached[key], begun[leading]) for key in map(_variant, tried_lanes[name])}
    return Selected(found, chosen_by, arrays, sum(map(len, search.scores.values())), rivals)


def _variant(config: TensorCoreConfig) -> str:
    """A configuration with its lanes and its slot."""
    return f"{config.name} {config.dot} {config.slot}"


_Key = tuple[str, str, tuple[tuple[str, str], ...]]


class _Search:
    """Choices that were tried, and how they do; each is built once."""

    def __init__(self, configs: Sequence[TensorCoreConfig], recipes: Sequence[Recipe], aim: Aim, flow: Flow) -> None:
        self.recipes, self.aim, self.flow = list(recipes), aim, flow
        self.designs = {_variant(config): Design(replace(config, rows=1, columns=1), TensorCore) for config in configs}
        self.shared = {_variant(config): shared(config) for config in configs}
        self.counts = {name: area.counts(design.source) for name, design in self.designs.items()}
        self.modules = {name: list(counts) for name, counts in self.counts.items()}
        self.bodies: dict[area.Identity, area.Body] = {}
        self.scores: dict[_Key, dict[int, Score]] = {}
        self.late: dict[str, list[set[tuple[str, Recipe]]]] = {}

    def score(self, name: str, purpose: str, chosen: Chosen) -> Score:
        """How a choice that was built does, on the first draw."""
        return self.scores[_key(name, purpose, chosen)][self.aim.draws[0]]

    def mean(self, name: str, purpose: str, chosen: Chosen) -> Score:
        """How a choice does on all draws that it was built of."""
        return Score.mean(list(self.scores[_key(name, purpose, chosen)].values()))

    def map(self, wanted: Iterable[tuple[Design, Chosen, int]], what: str) -> None:
        """Map the modules of some choices that were not mapped yet."""
        jobs = {
            job.identity: job
            for design, chosen, draw in wanted
            for job in design.plan_chosen(chosen, [draw])
            if job.identity not in self.bodies
        }
        if jobs:
            self.bodies |= self.flow.synthesise(jobs.values(), what)

    def build(self, tried: Mapping[str, Sequence[Chosen]], purpose: str, what: str, draws: int = 1) -> None:
        """Map and build what was not built yet, side by side, in so many draws; ``what`` is its name for progress."""
        new = {
            (_key(name, purpose, chosen), draw): (name, chosen, draw)
            for name, each in tried.items()
            for chosen in each
            for draw in self.aim.draws[:draws]
            if draw not in self.scores.get(_key(name, purpose, chosen), {})
        }
        self.map([(self.designs[name], chosen, draw) for name, chosen, draw in new.values()], f"mapping, {what}")
        tasks = []
        for name, chosen, draw in new.values():
            modules = self.designs[name].chosen(self.bodies, chosen, draw)
            tasks.append((self.designs[name], modules, purpose, self.aim, self.flow.library, self.shared[name]))
        for (key, draw), score in zip(new, list(self.flow.each(scored, tasks, what)), strict=True):
            self.scores.setdefault(key, {})[draw] = score

    def check_in_reach(self, name: str, key: str, alike: Sequence[Chosen]) -> None:
        """Refuse a clock that a core of one element misses by far, whatever recipe all of its modules take."""
        best = min((self.score(key, "area", chosen) for chosen in alike), key=lambda score: score.late_ns)
        clock_ns = self.aim.clock_ns
        if best.late_ns > _HOPELESS * clock_ns:
            longest = max(best.alone_ns, key=lambda module: best.alone_ns[module])
            reached = clock_ns + best.late_ns
            raise InputError(
                f"clock of {clock_ns:g} ns: one element of {name} takes {reached:.4g} ns by its fastest recipe with"
                f" {self.flow.library.name}, held by {area.block_of(longest)}; ask for {rounded_up(reached):g} ns or so"
            )

    def slots(
        self, tried: Mapping[str, Sequence[TensorCoreConfig]], purpose: str, chosen: Mapping[str, Chosen]
    ) -> dict[str, Sequence[TensorCoreConfig]]:
        """Each configuration with the lanes of its best slots alone. A slot is as good as the best of its lanes."""
        by_name = {
            name: {slot: list(map(_variant, alike)) for slot, alike in groupby(each, lambda config: config.slot)}
            for name, each in tried.items()
        }
        several = {name: by_slot for name, by_slot in by_name.items() if len(by_slot) > 1}
        keys = [key for by_slot in several.values() for each in by_slot.values() for key in each]
        self.build({key: [chosen[key]] for key in keys}, purpose, f"slots, least {purpose}")
        kept = dict(tried)
        for name, by_slot in several.items():
            scores = {
                slot: first_best([self.score(key, purpose, chosen[key]) for key in each], lambda score: score)
                for slot, each in by_slot.items()
            }
            best = first_best(list(scores.values()), lambda score: score)
            near = [slot for slot, score in scores.items() if score.near(best, self.aim.clock_ns, _CLOSE)]
            near.sort(key=lambda slot: (scores[slot] != best, scores[slot].late_ns, scores[slot].cost))
            kept[name] = [config for config in tried[name] if config.slot in near[:_SLOTS]]
        return kept

    def suiting(
        self, variants: Mapping[str, Sequence[TensorCoreConfig]], purpose: str, chosen: Mapping[str, Chosen]
    ) -> dict[str, list[Chosen]]:
        """The choice for each variant, and the same with other recipes of its dot product, as far as they may suit it.

        By the recipe that suits other lanes, lanes may be late, or spend on glitches what another recipe saves.
        """
        what = f"lanes, least {purpose}"
        self.build({key: [each] for key, each in chosen.items()}, purpose, what)
        tried: dict[str, list[Chosen]] = {}
        for each in variants.values():
            keys = [_variant(config) for config in each] if len(each) > 1 else []
            least = min((self.score(key, purpose, chosen[key]).cost for key in keys), default=0.0)
            for key in keys:
                known, begun = self.score(key, purpose, chosen[key]), chosen[key][OF_LANES]
                if known.late_ns or known.cost <= (1 + _FAR) * least:
                    others = [{**chosen[key], OF_LANES: how} for how in self.recipes if how != begun]
                    tried[key] = [other for other in others if not self.known_late(key, chosen[key], other)]
        self.map([(self.designs[key], other, self.aim.draws[0]) for key, each in tried.items() for other in each], what)
        for key, others in tried.items():
            if not self.score(key, purpose, chosen[key]).late_ns:
                others[:] = [other for other in others if self.small(key, purpose, (OF_LANES,), other, chosen[key])]
        self.build(tried, purpose, what)
        self.note_late(tried, purpose, chosen)
        found = {key: [each, *tried.get(key, [])] for key, each in chosen.items()}
        hurried = self.hurried(variants, purpose, found)
        return {key: [*each, *hurried.get(key, [])] for key, each in found.items()}

    def hurried(
        self, variants: Mapping[str, Sequence[TensorCoreConfig]], purpose: str, tried: Mapping[str, Sequence[Chosen]]
    ) -> dict[str, list[Chosen]]:
        """Choices for lanes that are late by a little, and cost less than all that are in time, made faster.

        One module on their longest path takes a faster recipe. With other lanes other modules are late: theirs were
        found for the first lanes, which may leave an accumulation more time.
        """
        found: dict[str, list[Chosen]] = {}
        for each in variants.values():
            keys = [_variant(config) for config in each] if len(each) > 1 else []
            scores = [(self.score(key, purpose, choice), key, choice) for key in keys for choice in tried[key]]
            least = min((score.cost for score, *_ in scores if not score.late_ns), default=math.inf)
            for key in keys:
                late = [
                    (score, choice)
                    for score, its, choice in scores
                    if its == key and 0 < score.late_ns <= WITHIN * self.aim.clock_ns and score.cost < least
                ]
                late.sort(key=lambda known: known[0].cost)
                found[key] = [
                    {**choice, module: how}
                    for score, choice in late[:_HURRIED]
                    for module, part in score.alone_ns.items()
                    for how in self.recipes
                    if part > 0 and module in choice and how.fast and how != choice[module]
                ]
        self.build(found, purpose, f"late lanes, least {purpose}")
        return found

    def lanes(
        self,
        variants: Mapping[str, Sequence[TensorCoreConfig]],
        purpose: str,
        chosen: Mapping[str, Chosen],
    ) -> dict[str, list[TensorCoreConfig]]:
        """Each configuration with its best lanes, the best first, and only what is close to the best.

        They are at most `_FINALISTS`, and the best lanes of every other slot. They are compared by the choices for
        them, which were built.
        """
        what, most = f"lanes, least {purpose}", _FINALISTS[purpose]
        near = {}
        for name, each in variants.items():
            scores = [self.score(_variant(config), purpose, chosen[_variant(config)]) for config in each]
            best = first_best(scores, lambda score: score)
            near[name] = [
                config
                for config, score in zip(each, scores, strict=True)
                if score.near(best, self.aim.clock_ns, APART[purpose] if most == 1 else _CLOSE)
            ]
        keys = [_variant(config) for each in near.values() if len(each) > most for config in each]
        self.build({key: [chosen[key]] for key in keys}, purpose, what, _PILOTS if most == 1 else _PILOTS - 1)
        found = {}
        for name, each in near.items():
            best_config = first_best(
                each, lambda config: self.mean(_variant(config), purpose, chosen[_variant(config)])
            )
            others = [config for config in each if config != best_config]
            others.sort(key=lambda config: self.rank(_variant(config), purpose, chosen))
            ranked = [best_config, *others]
            slots = [config.slot for config in ranked]
            found[name] = [config for i, config in enumerate(ranked) if i < most or config.slot not in slots[:i]]
        return found

    def tuned(self, keys: Mapping[str, Sequence[str]], purpose: str, chosen: Mapping[str, Chosen]) -> dict[str, Chosen]:
        """The choices for some lanes, with recipes that suit all modules: searched for the best lanes of each design.

        ``keys`` are these lanes, the best first, by the variant with the lanes of the configuration.
        """
        tried = {best: self.around(best, purpose, chosen[best], own) for own, (best, *_) in keys.items()}
        self.build({key: [chosen[key], *each] for key, each in tried.items()}, purpose, f"recipes, least {purpose}")
        self.note_late(tried, purpose, chosen)
        last = {key: self.promising(key, purpose, chosen[key], each) for key, each in tried.items()}
        self.build(last, purpose, f"the best recipes, least {purpose}")
        found = self.decided(last, purpose, f"the best recipes, least {purpose}")
        by_key = {
            key: _distinct(key, purpose, [chosen[key], following(chosen[key], found[best])])
            for best, *others in keys.values()
            for key in others
        }
        self.build(by_key, purpose, f"other lanes, least {purpose}")
        return found | {key: self.best(key, purpose, each) for key, each in by_key.items()}

    def exchanged(self, keys: Sequence[Sequence[str]], purpose: str, chosen: Mapping[str, Chosen]) -> dict[str, Chosen]:
        """The choices for the lanes of each configuration, or those for another one, where they do better.

        Lanes take all recipes of the same lanes of another configuration, or all but that of the lanes from the best
        lanes of any. The first of the ``keys`` of a configuration are those of its best lanes.
        """
        offered = {}
        for own in keys:
            others = [key for each in keys if each is not own for key in each]
            for key in own:
                alike = [other for other in others if self.lanes_of(other) == self.lanes_of(key)]
                among = [
                    chosen[key],
                    *(following(chosen[key], chosen[other], kept=()) for other in alike),
                    *(following(chosen[key], chosen[best]) for best, *_ in keys),
                ]
                offered[key] = _distinct(key, purpose, among)
        several = {key: each for key, each in offered.items() if len(each) > 1}
        self.build(several, purpose, f"recipes of the other, least {purpose}", _PILOTS)
        return {key: first_best(each, partial(self.mean, key, purpose)) for key, each in several.items()}

    def lanes_of(self, name: str) -> tuple[str, str]:
        """The lanes and the slot of a variant."""
        config = self.designs[name].config
        return config.dot, config.slot

    def rank(self, name: str, purpose: str, chosen: Mapping[str, Chosen]) -> tuple[float, float]:
        """What a choice misses the clock by, and its cost: the mean of all draws."""
        score = self.mean(name, purpose, chosen[name])
        return score.late_ns, score.cost

    def decided(self, tried: Mapping[str, Sequence[Chosen]], purpose: str, what: str) -> dict[str, Chosen]:
        """The best of some choices that were built, by the mean of several draws where one leaves it open."""
        close = {key: self.close(key, purpose, each) for key, each in tried.items()}
        self.build({key: each for key, each in close.items() if len(each) > 1}, purpose, what, _PILOTS)
        return {key: first_best(each, partial(self.mean, key, purpose)) for key, each in close.items()}

    def close(self, name: str, purpose: str, tried: Sequence[Chosen]) -> list[Chosen]:
        """Those of some choices that the first draw finds hardly worse than the best."""
        best = self.score(name, purpose, self.best(name, purpose, tried))
        return [each for each in tried if self.score(name, purpose, each).near(best, self.aim.clock_ns, APART[purpose])]

    def best(self, name: str, purpose: str, tried: Sequence[Chosen]) -> Chosen:
        """The best of some choices, by the first draw."""
        return first_best(tried, partial(self.score, name, purpose))

    def note_late(self, tried: Mapping[str, Sequence[Chosen]], purpose: str, chosen: Mapping[str, Chosen]) -> None:
        """Keep what differs in choices that are late, where the one that they differ from is in time."""
        for key, each in tried.items():
            if not self.score(key, purpose, chosen[key]).late_ns:
                late = [other for other in each if self.score(key, purpose, other).late_ns > _LATE * self.aim.clock_ns]
                self.late.setdefault(key, []).extend(_changed(chosen[key], other) for other in late)

    def known_late(self, name: str, chosen: Chosen, other: Chosen) -> bool:
        """Whether what differs in another choice has made a core late before."""
        return any(late <= _changed(chosen, other) for late in self.late.get(name, ()))

    def groups(self, name: str, chosen: Chosen) -> list[tuple[str, ...]]:
        """Modules that take a recipe together: each large one alone, and all small ones.

        The top module is small in any array of several elements: registers and control.
        """
        sizes = {module: self.size(name, (module,), chosen) for module in chosen if module != TensorCore.module_name}
        large = [module for module, size in sizes.items() if size >= _LARGE * sum(sizes.values())]
        small = tuple(module for module in chosen if module not in large)
        return [*((module,) for module in large), *([small] if small else [])]

    def size(self, name: str, modules: Sequence[str], chosen: Chosen) -> float:
        """Area of modules as they are mapped, um2."""
        bodies = self.designs[name].chosen(self.bodies, chosen, self.aim.draws[0])
        return sum(self.counts[name][module] * area.own_area(bodies[module], self.flow.library) for module in modules)

    def around(self, name: str, purpose: str, chosen: Chosen, own: str) -> list[Chosen]:
        """The choices that differ from one in a single group of modules, as far as they are plausible.

        ``own`` is the same configuration with the lanes of its own, for which each recipe served all modules.
        """
        tried = [
            (group, other)
            for group in self.groups(name, chosen)
            for how in self.recipes
            if any(chosen[module] != how for module in group)
            and not self.hopeless(own, how, [module for module in group if name == own or module != OF_LANES])
            and not self.known_late(name, chosen, other := {**chosen, **dict.fromkeys(group, how)})
        ]
        self.map([(self.designs[name], other, self.aim.draws[0]) for _, other in tried], "mapping, other recipes")
        late = self.score(name, purpose, chosen).late_ns
        return [other for group, other in tried if late or self.small(name, purpose, group, other, chosen)]

    def hopeless(self, own: str, how: Recipe, group: Sequence[str]) -> bool:
        """Whether a module of a group alone takes longer than the clock by a recipe."""
        known = self.score(own, "area", dict.fromkeys(self.modules[own], how))
        return known.late_ns > 0 and any(known.alone_ns.get(module, 0.0) > self.aim.clock_ns for module in group)

    def small(self, name: str, purpose: str, group: Sequence[str], other: Chosen, chosen: Chosen) -> bool:
        """Whether a group of modules becomes larger by no more than what can pay."""
        return self.size(name, group, other) <= (1 + _LARGER[purpose]) * self.size(name, group, chosen)

    def promising(self, name: str, purpose: str, chosen: Chosen, tried: Sequence[Chosen]) -> list[Chosen]:
        """A choice, the best that differs from it in one group, and the best recipes of each group together."""
        single = self.best(name, purpose, [chosen, *tried])
        together = self.merged(name, purpose, chosen, tried)
        return _distinct(name, purpose, [chosen, single, together])

    def merged(self, name: str, purpose: str, chosen: Chosen, tried: Sequence[Chosen]) -> Chosen:
        """The best recipes of each group that was better alone."""
        found, reached = dict(chosen), dict.fromkeys(chosen, self.score(name, purpose, chosen))
        for other in tried:
            changed = dict(_changed(chosen, other))
            its = self.score(name, purpose, other)
            if all(its.better(reached[module]) for module in changed):
                found.update(changed)
                reached.update(dict.fromkeys(changed, its))
        return found


def _changed(chosen: Chosen, other: Chosen) -> set[tuple[str, Recipe]]:
    """Modules of another choice with their recipes, where these differ."""
    return {(module, how) for module, how in other.items() if how != chosen[module]}


def _distinct(name: str, purpose: str, tried: Sequence[Chosen]) -> list[Chosen]:
    """Choices of one configuration without those that are there already."""
    return list({_key(name, purpose, each): each for each in tried}.values())


def _key(name: str, purpose: str, chosen: Chosen) -> _Key:
    return name, purpose, tuple((module, how.name) for module, how in chosen.items())
