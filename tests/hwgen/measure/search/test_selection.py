"""The search for recipes, with cores that are built by adding up."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping.area import Body, Identity, Job
from hwgen.mapping.yosys import RECIPES, distinct
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.search import selection
from hwgen.measure.search.score import Aim, Score, draws_of, scored, shared
from hwgen.measure.search.selected import variants
from hwgen.measure.search.selection import select
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore

CELLS = reader.load(libraries.path("generic7"))
PILOTS = draws_of(0)[:3]
CLOCK = 2.0
EDGE = 0.25  # four rows and four columns for sixteen elements
AMONG = [RECIPES[name] for name in ("area", "speed", "prefix")]
MAPPED = {"accumulate": 300.0, "dot_product": 150.0, "scale_product": 80.0, "element": 30.0}
LARGER = {"area": 1.0, "speed": 1.05, "prefix": 1.02}


def mapped(module: str, how: str) -> float:
    return MAPPED.get(module, 10.0) * LARGER[how]


class Adding(Flow):
    """Nothing is mapped or built: a module is its name and its recipe's."""

    def synthesise(self, jobs: Iterable[Job], what: str) -> dict[Identity, Body]:
        found = list(jobs)
        assert {job.variant for job in found} <= set(PILOTS)  # no measured run has that perturbation
        assert {(job.key[0].rows, job.key[0].columns) for job in found} == {(1, 1)}  # type: ignore[index]
        return {job.identity: {"of": (job.module, job.recipe.name), "draw": job.variant} for job in found}

    def each(self, function: object, tasks: Sequence[tuple[Any, ...]], what: str) -> Iterator[Any]:
        return (selection.scored(*task) for task in tasks)


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> Adding:
    monkeypatch.setattr("hwgen.mapping.area.own_area", lambda body, library: mapped(*body["of"]))
    return Adding(CELLS)


def searched(
    flow: Flow,
    monkeypatch: pytest.MonkeyPatch,
    scored: Any,
    lanes: Sequence[str] = (),
    noise: Callable[[int, dict[str, str]], float] = lambda draw, choice: 0.0,
) -> tuple[selection.Selected, list[Any]]:
    """The search for one configuration with ``scored(recipes by module, purpose)``; also what was built.

    With ``lanes`` to choose from, their name is that of a module. ``noise(draw, recipes)`` comes on top of the cost.
    """
    seen = []

    def score(design: Design, modules: dict[str, Any], purpose: str, aim: Aim, library: object, edge: float) -> Score:
        assert (aim.clock_ns, edge) == (CLOCK, EDGE)
        choice = dict(body["of"] for body in modules.values()) | ({"lanes": design.config.dot} if lanes else {})
        (draw,) = {body["draw"] for body in modules.values()}
        seen.append((purpose, draw, choice))
        found: Score = scored(choice, purpose)
        return dataclasses.replace(found, cost=found.cost + noise(draw, choice))

    monkeypatch.setattr(selection, "scored", score)
    configs = {"nvfp4-small": NAMED["nvfp4-small"]}
    return select(configs, AMONG, Aim(CLOCK, Physical(), Stimulus()), flow, lanes), seen


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(("late", "refused"), [(0.9, False), (1.1, True)])
def test_a_clock_that_is_out_of_reach_is_refused_where_it_was_asked_for(
    flow: Adding, monkeypatch: pytest.MonkeyPatch, late: float, refused: bool, required: bool
) -> None:
    """By the fastest recipe; the others are later still."""
    seen = []

    def score(design: Design, modules: dict[str, Any], purpose: str, *_: object) -> Score:
        seen.append(purpose)
        fast = dict(body["of"] for body in modules.values())["accumulate"] == "speed"
        return Score(late if fast else 3 * late, 1.0, {"accumulate": 2.1, "dot_product": 0.8})

    monkeypatch.setattr(selection, "scored", score)
    configs = {"nvfp4-small": NAMED["nvfp4-small"]}
    aim = Aim(CLOCK, Physical(), Stimulus())
    if refused and required:
        wanted = "clock of 2 ns: one element of nvfp4-small takes 3.1 ns by its fastest recipe with generic7, held by"
        with pytest.raises(InputError, match=f"{wanted} align, add, normalise, round; ask for 3.1 ns or so"):
            select(configs, AMONG, aim, flow, required=required)
        assert len(seen) == len(distinct(AMONG))
    else:
        assert select(configs, AMONG, aim, flow, required=required).builds > len(distinct(AMONG))


def total(choice: dict[str, str], *cheap: tuple[str, str]) -> float:
    return 1000.0 - 10.0 * sum(choice[module] == how for module, how in cheap)


def test_it_takes_what_meets_the_clock_and_then_what_costs_least(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    """Speed alone meets the clock; the dot product may then be small, and energy wants the scale product otherwise."""

    def scored(choice: dict[str, str], purpose: str) -> Score:
        late = choice["accumulate"] != "speed" or choice["element"] != "speed"
        cheap = [("dot_product", "area"), *([("scale_product", "prefix")] if purpose == "energy" else [])]
        return Score(0.5 * late, total(choice, *cheap))

    found, seen = searched(flow, monkeypatch, scored)
    small, frugal = (found.chosen["nvfp4-small", purpose] for purpose in ("area", "energy"))
    assert {module for module, how in small.items() if how.name != "speed"} == {"dot_product"}
    assert small["dot_product"].name == "area"
    assert {module: how.name for module, how in frugal.items() if how != small[module]} == {"scale_product": "prefix"}
    assert found.builds == len(seen) == len({(purpose, draw, *choice.items()) for purpose, draw, choice in seen})
    assert found.builds < 3 + 2 * (2 * 5 + 2 * len(PILOTS))


def test_what_helps_alone_is_taken_together_only_if_that_is_better(
    flow: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scored(choice: dict[str, str], purpose: str) -> Score:
        both = choice["dot_product"] == choice["scale_product"] == "area"
        slow = {choice["accumulate"], choice["element"]} != {"speed"}
        return Score(0.1 if both or slow else 0.0, total(choice, ("dot_product", "area"), ("scale_product", "area")))

    found, seen = searched(flow, monkeypatch, scored)
    small = found.chosen["nvfp4-small", "area"]
    assert small["dot_product"].name == "area"
    assert small["scale_product"].name == "speed"
    assert any(choice["dot_product"] == choice["scale_product"] == "area" for _, _, choice in seen[3:])


@pytest.mark.parametrize("larger", [1.2, 1.5])
def test_hopeless_recipes_are_not_tried(larger: float, flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    """The accumulator takes longer than the clock by two recipes; the dot product becomes too large by one.

    What is too large for least area may have fewer glitches, and is tried for least energy, if it is not larger still.
    """
    monkeypatch.setitem(LARGER, "prefix", larger)

    def scored(choice: dict[str, str], purpose: str) -> Score:
        late = choice["accumulate"] != "speed"
        return Score(0.1 * late, total(choice), {"accumulate": CLOCK + 0.1, "element": 0.1} if late else {})

    found, seen = searched(flow, monkeypatch, scored)
    assert {how.name for how in found.chosen["nvfp4-small", "area"].values()} == {"speed"}
    tried = [choice for _, _, choice in seen[3:]]
    assert {choice["accumulate"] for choice in tried} == {"speed"}
    of = {
        purpose: {choice["dot_product"] for its, _, choice in seen[3:] if its == purpose}
        for purpose in ("area", "energy")
    }
    assert of == {"area": {"speed", "area"}, "energy": {"speed", "area"} | ({"prefix"} if larger == 1.2 else set())}


@pytest.mark.parametrize("late", [0.03, 0.06])
def test_what_was_late_for_least_area_is_not_tried_for_least_energy(
    late: float, flow: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it was so by little: the other purpose may bring it to the clock."""

    def scored(choice: dict[str, str], purpose: str) -> Score:
        slow = choice["accumulate"] != "speed" or choice["element"] != "speed"
        of_dot = late if choice["dot_product"] != "speed" else 0.0
        return Score(0.5 if slow else of_dot, total(choice), {"accumulate": 0.1})

    found, seen = searched(flow, monkeypatch, scored)
    tried = {
        purpose: {choice["dot_product"] for its, _, choice in seen[len(AMONG) :] if its == purpose}
        for purpose in ("area", "energy")
    }
    assert tried["area"] == {"area", "speed", "prefix"}
    assert tried["energy"] == ({"speed"} if late > 0.02 * CLOCK else tried["area"])
    assert {how.name for how in found.chosen["nvfp4-small", "energy"].values()} == {"speed"}


def test_where_no_recipe_meets_the_clock_the_fastest_is_taken(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    def scored(choice: dict[str, str], purpose: str) -> Score:
        return Score(0.5 - 0.1 * (choice["accumulate"] == "prefix") - 0.1 * (choice["dot_product"] == "speed"), 1.0)

    chosen = searched(flow, monkeypatch, scored)[0].chosen["nvfp4-small", "energy"]
    assert (chosen["accumulate"].name, chosen["dot_product"].name) == ("prefix", "speed")


def test_each_purpose_takes_its_lanes(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    """Least energy wants other lanes than least area, and other recipes for them."""

    def scored(choice: dict[str, str], purpose: str) -> Score:
        cheap = {"area": ("merged", "area"), "energy": ("binary", "prefix")}[purpose]
        cost = total(choice, *[("lanes", cheap[0])] * 8, ("dot_product", cheap[1]))
        return Score(0.1 * (choice["accumulate"] != "speed"), cost)

    found, seen = searched(flow, monkeypatch, scored, ("merged-binary", "binary"))
    lanes = {purpose: found.configs["nvfp4-small", purpose].dot for purpose in ("area", "energy")}
    assert lanes == {"area": "merged", "energy": "binary"}
    for purpose, how in (("area", "area"), ("energy", "prefix")):
        assert found.chosen["nvfp4-small", purpose]["dot_product"].name == how
        designs = found.designs("nvfp4-small", purpose)
        assert designs[TensorCore].config.dot == lanes[purpose]
        # Lane arrays keep the lanes of the configuration, so that they compare formats.
        assert designs[LaneArray].config.dot == "merged"
        assert found.of(designs[LaneArray], purpose)["lane_array"].name == how
    assert found.builds == len(seen)
    # Other lanes are tried with each recipe of the dot product; those that are clearly worse are not looked at again.
    later = [choice["lanes"] for purpose, _, choice in seen if purpose == "energy"]
    assert later.count("merged-binary") == later.count("merged") == len(AMONG)


def test_lanes_are_compared_with_recipes_of_their_own(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the recipe of the others, signed lanes are late, or spend more; by another one they are the best."""

    def scored(choice: dict[str, str], purpose: str) -> Score:
        if choice["lanes"] != "signed":
            return Score(0.0, 1000.0 - 10.0 * (set(choice.values()) >= {"area"}))
        suits = choice["dot_product"] == "prefix"
        if purpose == "area":
            return Score(0.0 if suits else 0.1, 900.0)
        return Score(0.0, 900.0 if suits else 1100.0)

    found, seen = searched(flow, monkeypatch, scored, lanes=["signed", "binary"])
    for purpose in ("area", "energy"):
        assert found.configs["nvfp4-small", purpose].dot == "signed"
        assert found.chosen["nvfp4-small", purpose]["dot_product"].name == "prefix"
    assert found.builds == len(seen)


@pytest.mark.parametrize("late", [0.05, 0.15, 0.25])
def test_lanes_that_are_late_by_a_little_may_be_made_faster(
    late: float, flow: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the recipes of the first lanes, binary ones are late by their accumulation; by another one they are best."""

    def scored(choice: dict[str, str], purpose: str) -> Score:
        binary, prefix = choice["lanes"] == "binary", choice["accumulate"] == "prefix"
        slow = 0.5 * (choice["accumulate"] == "area") + late * (binary and not prefix)
        return Score(slow, 1000.0 - 100.0 * binary + 30.0 * prefix, {"accumulate": 1.9, "dot_product": 0.0})

    found, seen = searched(flow, monkeypatch, scored, lanes=["binary", "signed"])
    made_faster = late <= 0.1 * CLOCK
    for purpose in ("area", "energy"):
        assert found.configs["nvfp4-small", purpose].dot == ("binary" if made_faster else "merged")
        assert found.chosen["nvfp4-small", purpose]["accumulate"].name == ("prefix" if made_faster else "speed")
    tried = {choice["accumulate"] for purpose, _, choice in seen if choice["lanes"] == "binary"}
    assert ("prefix" in tried) == made_faster
    assert found.builds == len(seen)


def test_lanes_that_cost_far_more_are_left_alone(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    def scored(choice: dict[str, str], purpose: str) -> Score:
        return Score(0.0, 1000.0 if choice["lanes"] != "binary" else 1300.0)

    _, seen = searched(flow, monkeypatch, scored, lanes=["signed", "binary"])
    tried = {choice["dot_product"] for _, _, choice in seen if choice["lanes"] == "binary"}
    assert len(tried) == 1


def test_one_lucky_draw_decides_nothing(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other recipes and other lanes look better on the first draw, and are worse on the others.

    For least energy whole cores decide between lanes, so that here both are left.
    """

    def scored(choice: dict[str, str], purpose: str) -> Score:
        late = choice["accumulate"] == "prefix"
        return Score(0.5 * late, total(choice, ("dot_product", "area"), ("lanes", "merged")))

    def noise(draw: int, choice: dict[str, str]) -> float:
        lucky = choice["dot_product"] == "prefix" or choice["lanes"] != "merged"
        return -14.0 if lucky and draw == PILOTS[0] else 0.0

    found, seen = searched(flow, monkeypatch, scored, ("binary",), noise)
    left = {
        purpose: {found.configs["nvfp4-small", purpose].dot: found.chosen["nvfp4-small", purpose]}
        | {config.dot: chosen for config, chosen in found.rivals["nvfp4-small", purpose]}
        for purpose in ("area", "energy")
    }
    assert {purpose: set(of) for purpose, of in left.items()} == {"area": {"merged"}, "energy": {"merged", "binary"}}
    assert all(of["merged"]["dot_product"].name == "area" for of in left.values())
    assert ("area", PILOTS[1], "prefix") in {(purpose, draw, choice["dot_product"]) for purpose, draw, choice in seen}


def test_lanes_that_are_nearly_as_good_follow_the_best(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take the recipes that were found for the best lanes' core, if these suit them."""
    suits = {"merged": True, "signed": True, "binary": False}

    def scored(choice: dict[str, str], purpose: str) -> Score:
        gain = 20.0 if suits[choice["lanes"]] else -20.0
        worse = {"merged": 0.0, "signed": 10.0, "binary": 20.0}[choice["lanes"]]
        return Score(0.0, 1000.0 + worse - gain * (purpose == "energy" and choice["accumulate"] == "prefix"))

    found, seen = searched(flow, monkeypatch, scored, ("signed", "binary"))
    key = "nvfp4-small", "energy"
    assert found.configs[key].dot == "merged"
    rivals = {config.dot: chosen["accumulate"].name for config, chosen in found.rivals[key]}
    assert found.chosen[key]["accumulate"].name == rivals["signed"] == "prefix"
    assert rivals["binary"] == "area"
    tried = {lanes: {str(choice) for _, _, choice in seen if choice["lanes"] == lanes} for lanes in suits}
    assert len(tried["signed"]) < len(tried["merged"]) - 2
    assert found.builds == len(seen)


@pytest.mark.parametrize("alike", [True, False])
def test_what_one_configuration_found_is_offered_to_the_other(
    alike: bool, flow: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both take `prefix` for the accumulator, though the first draw of one of them hides that it is better there.

    The recipe of the dot product is not taken over where lanes are unlike.
    """

    def score(design: Design, modules: dict[str, Any], purpose: str, *_: object) -> Score:
        choice = dict(body["of"] for body in modules.values())
        (draw,) = {body["draw"] for body in modules.values()}
        lucky = design.config.name == "mixfp4-small"
        cost = 1000.0 + 15.0 * sum(how != "area" for module, how in choice.items() if module != "accumulate")
        cost -= 20.0 * (choice["accumulate"] == "prefix") + 20.0 * (choice["dot_product"] == "prefix") * lucky
        hidden = 30.0 * (draw == PILOTS[0] and not lucky and choice["accumulate"] == "prefix")
        unlike = 100.0 * (not alike and (design.config.dot == "signed") != lucky)
        return Score(0.0, cost + hidden + unlike)

    monkeypatch.setattr(selection, "scored", score)
    configs = {name: NAMED[name] for name in ("nvfp4-small", "mixfp4-small")}
    found = select(configs, AMONG, Aim(CLOCK, Physical(), Stimulus()), flow, ("merged", "signed"))
    for purpose in ("area", "energy"):
        taken = {name: found.chosen[name, purpose] for name in configs}
        assert {each["accumulate"].name for each in taken.values()} == {"prefix"}
        assert [each["dot_product"].name for each in taken.values()] == ["area", "prefix"]
        assert (len({found.configs[name, purpose].dot for name in configs}) == 1) == alike


def test_one_recipe_needs_no_search(flow: Adding) -> None:
    config = NAMED["mixfp4-small"]
    found = select({config.name: config}, AMONG[1:2], Aim(CLOCK, Physical(), Stimulus()), flow)
    assert found.builds == 0
    assert set(found.of(Design(config, TensorCore), "energy").values()) == {RECIPES["speed"]}


@pytest.mark.parametrize("purpose", ["area", "energy"])
def test_a_core_of_one_element_costs_what_each_of_an_array_does(purpose: str, cache: Path) -> None:
    """Decoders at the edge serve several elements; counted in full, they make an element look dearer by a tenth."""
    array = TensorCoreConfig("array", "mixfp4", "mixfp4", rows=3, columns=4, groups=1, pipeline=("decoded", "terms"))
    aim = Aim(2.4, Physical("fanout"), Stimulus(streams=16, tiles=2, steps_per_tile=8))

    def cost(config: TensorCoreConfig, edge: float) -> float:
        design = Design(config, TensorCore)
        jobs = design.plan([RECIPES["speed"]], [0])
        bodies = Flow(CELLS, cache).synthesise(jobs, "test")
        modules = design.chosen(bodies, {job.module: job.recipe for job in jobs}, 0)
        return scored(design, modules, purpose, aim, CELLS, edge).cost

    one = dataclasses.replace(array, rows=1, columns=1)
    each = cost(array, 1.0) / 12
    assert cost(one, shared(array)) == pytest.approx(each, rel=0.04)
    assert cost(one, 1.0) > 1.08 * each


def test_recipes_that_differ_in_sizes_alone_count_once() -> None:
    names = [how.name for how in distinct(list(RECIPES.values()))]
    assert names == ["area", "adders", "speed", "prefix", "delay"]


@pytest.mark.parametrize("name", ["nvfp4-small", "mixfp4-weights-small"])
def test_an_element_has_the_modules_of_the_core(name: str) -> None:
    """The choice for a core of one element serves the whole core; lane arrays take their dot product's."""
    config = dataclasses.replace(NAMED[name], rows=2, columns=3, groups=2)
    one = select({config.name: config}, AMONG[:1], Aim(CLOCK, Physical(), Stimulus()), Flow(CELLS, workers=1))
    core = Design(config, TensorCore)
    assert set(one.of(core, "area")) == {job.module for job in core.plan(AMONG[:1], [0])}
    assert set(one.of(Design(config, LaneArray), "area")) == {"lane_array"}


@pytest.mark.parametrize(
    ("slot", "expected"), [("full", ["merged", "merged-timed"]), ("separate", ["merged", "merged-timed", "signed"])]
)
def test_lanes_go_with_the_slot(slot, expected):
    config = dataclasses.replace(NAMED["mixfp4-multi-small"], slot=slot)
    assert [each.dot for each in variants(config, ("merged-timed", "signed", "merged"))] == expected


def test_a_slot_that_no_lanes_go_with_has_its_own():
    found = variants(NAMED["mixfp4-multi-small"], ("signed",), ("quadrants", "separate"))
    assert [(each.slot, each.dot) for each in found] == [
        *(("full", "merged"), ("quadrants", "significand"), ("separate", "merged"), ("separate", "signed"))
    ]
    assert variants(NAMED["mixfp4-small"], (), ("full",)) == [NAMED["mixfp4-small"]]


def test_each_purpose_takes_the_best_slot(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots far from the best are built once for a purpose, and not looked at again."""
    costs = {
        "area": {"full": 1000.0, "split": 1030.0, "separate": 1040.0, "quadrants": 1200.0},
        "energy": {"full": 1000.0, "split": 1100.0, "separate": 970.0, "quadrants": 960.0},
    }
    seen = []

    def score(design: Design, modules: dict[str, Any], purpose: str, *_: Any) -> Score:
        late = 0.3 if (purpose, design.config.slot) == ("energy", "quadrants") else 0.0
        seen.append((purpose, design.config.slot))
        choice = dict(body["of"] for body in modules.values())
        return Score(late, costs[purpose][design.config.slot] + total(choice, ("accumulate", "area")) - 1000.0)

    monkeypatch.setattr(selection, "scored", score)
    config = NAMED["nvfp4-multi-small"]
    aim = Aim(CLOCK, Physical(), Stimulus())
    found = select({config.name: config}, AMONG[:2], aim, flow, slots=("split", "full", "quadrants", "separate"))
    taken = {purpose: found.configs[config.name, purpose] for purpose in costs}
    assert {purpose: (each.slot, each.dot) for purpose, each in taken.items()} == {
        "area": ("full", "merged"),
        "energy": ("separate", "merged"),
    }
    assert found.chosen[config.name, "energy"]["significand_products"] in AMONG
    assert {slot for purpose, slot in seen if seen.count((purpose, slot)) == 1} == {"separate", "split", "quadrants"}
    assert [seen.count((purpose, "quadrants")) for purpose in costs] == [1, 1]
    assert all(array.slot == "full" for array, _ in found.lane_arrays.values())


def test_a_slot_is_as_good_as_its_best_lanes(flow: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its first lanes `separate` is far from the best slot."""
    costs = {"merged": {"full": 1000.0, "separate": 1100.0}, "signed": {"separate": 950.0}}

    def score(design: Design, modules: dict[str, Any], purpose: str, *_: Any) -> Score:
        return Score(0.0, costs[design.config.dot][design.config.slot])

    monkeypatch.setattr(selection, "scored", score)
    config = NAMED["nvfp4-multi-small"]
    aim = Aim(CLOCK, Physical(), Stimulus())
    found = select({config.name: config}, AMONG[:2], aim, flow, ("signed",), slots=("separate",)).configs
    assert {(each.slot, each.dot) for each in found.values()} == {("separate", "signed")}


def test_whole_cores_decide_between_slots_that_are_nearly_as_good(
    flow: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For either purpose one lane of every slot is left, and for least area no other lanes."""
    costs = {"full": 1000.0, "split": 1004.0, "separate": 1015.0}

    def score(design: Design, modules: dict[str, Any], purpose: str, *_: Any) -> Score:
        return Score(0.0, costs[design.config.slot] + (design.config.dot != "merged"))

    monkeypatch.setattr(selection, "scored", score)
    config = NAMED["nvfp4-multi-small"]
    found = select(
        {config.name: config},
        AMONG[:2],
        Aim(CLOCK, Physical(), Stimulus()),
        flow,
        ("merged-timed",),
        ["area"],
        ("split", "separate"),
    )
    rivals = [(each.slot, each.dot) for each, _ in found.rivals[config.name, "area"]]
    assert (found.configs[config.name, "area"].slot, rivals) == ("full", [("split", "merged")])
