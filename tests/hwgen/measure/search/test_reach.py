"""Searches again for what whole cores miss, with cores that are built by adding up."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import NAMED, TensorCoreConfig
from hwgen.mapping.area import Body, Identity, Job
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.search import reach, score, selection
from hwgen.measure.search.reach import exchanged, select_for_cores
from hwgen.measure.search.score import Aim, Score, draws_of
from hwgen.measure.search.selected import Selected
from hwgen.rtl.lane_array import LaneArray

CELLS = reader.load(libraries.path("generic7"))
CLOCK = 2.0
PILOTS, MORE_PILOTS = draws_of(0)[:3], draws_of(0)[2:]
AMONG = [RECIPES[name] for name in ("area", "prefix", "speed")]
DELAY = {"area": 1.95, "prefix": 1.85, "speed": 1.6}
COST = {"area": 100.0, "prefix": 110.0, "speed": 120.0}
LARGER = {"signed": 1.5, "merged-timed": 1.3}
"""What lanes take more than `merged`, or a slot more than another."""
CONFIGS = {name: NAMED[name] for name in ("nvfp4-small", "mixfp4-small")}

Delay = Callable[[Design, str, dict[str, str], int], float]


class Adding(Flow):
    """Nothing is mapped or built: a module is its name and its recipe's."""

    def synthesise(self, jobs: Iterable[Job], what: str) -> dict[Identity, Body]:
        found = list(jobs)
        assert {job.variant for job in found} <= {*PILOTS, *MORE_PILOTS}  # no measured run has that perturbation
        return {job.identity: {"of": (job.module, job.recipe.name), "draw": job.variant} for job in found}

    def each(self, function: object, tasks: Sequence[tuple[Any, ...]], what: str) -> Iterator[Any]:
        return (selection.scored(*task) for task in tasks)


def searched(
    monkeypatch: pytest.MonkeyPatch,
    delay: Delay,
    lanes: Sequence[str] = (),
    held_by: str = "dot_product",
    lane_array: Callable[[str, str], float] = lambda name, how: 1.0,
    configs: Mapping[str, TensorCoreConfig] = CONFIGS,
    slots: Sequence[str] = (),
    found_for: Selected | None = None,
) -> tuple[Selected, list[tuple[str, int, float]]]:
    """The search; also the name, the rows and the clock of everything built.

    ``delay(design, purpose, recipes by module, draw)`` is the path's length in ns, most of it in ``held_by``;
    ``lane_array(name, recipe)`` that of a lane array.
    """
    seen = []

    def scored(design: Design, modules: dict[str, Any], purpose: str, aim: Aim, *_: object) -> Score:
        choice = dict(body["of"] for body in modules.values())
        (draw,) = {body["draw"] for body in modules.values()}
        seen.append((design.config.name, design.config.rows, aim.clock_ns))
        if design.kind is LaneArray:
            taken = lane_array(design.config.name, choice[LaneArray.module_name])
        else:
            taken = delay(design, purpose, choice, draw)
        late = max(taken - aim.clock_ns, 0.0)
        cost = sum(COST[how] for how in choice.values()) * LARGER.get(design.config.dot, 1.0)
        cost *= LARGER.get(design.config.slot, 1.0)
        return Score(late if late > 1e-9 else 0.0, cost, {"element": 0.1, held_by: CLOCK - 0.1})

    monkeypatch.setattr(selection, "scored", scored)
    monkeypatch.setattr("hwgen.mapping.area.own_area", lambda body, library: 10.0)
    aim = Aim(CLOCK, Physical(), Stimulus())
    return select_for_cores(configs, AMONG, aim, Adding(CELLS), lanes, slots, found_for), seen


def dot_product(found: Selected) -> dict[tuple[str, str], str]:
    """Recipe of the dot product by name and purpose."""
    return {key: chosen["dot_product"].name for key, chosen in found.chosen.items()}


def test_what_the_array_takes_is_missing_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """An element alone meets the clock by the smallest recipe, the whole core of one format by a faster one only."""

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        ways = 0.12 if design.config.name == "mixfp4-small" and design.config.rows > 1 else 0.0
        return DELAY[choice["dot_product"]] + ways

    found, seen = searched(monkeypatch, delay)
    assert dot_product(found) == {
        **{("nvfp4-small", purpose): "area" for purpose in ("area", "energy")},
        **{("mixfp4-small", purpose): "prefix" for purpose in ("area", "energy")},
    }
    assert {module for module, how in found.chosen["mixfp4-small", "area"].items() if how.name != "area"} == {
        "dot_product"
    }
    assert found.builds == len(seen)
    # What meets the clock is not searched again, and whole cores are built for the clock itself.
    assert {clock for name, _, clock in seen if name == "nvfp4-small"} == {CLOCK}
    assert {clock for _, rows, clock in seen if rows > 1} == {CLOCK}
    assert min(clock for _, _, clock in seen) == pytest.approx(CLOCK - 0.07)


def test_the_slowest_draw_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        return DELAY[choice["dot_product"]] + 0.12 * (design.config.rows > 1 and draw == PILOTS[1])

    assert set(dot_product(searched(monkeypatch, delay)[0]).values()) == {"prefix"}


def test_each_purpose_is_helped_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        return DELAY[choice["dot_product"]] + 0.12 * (design.config.rows > 1 and purpose == "energy")

    found = dot_product(searched(monkeypatch, delay)[0])
    assert {how for (_, purpose), how in found.items() if purpose == "area"} == {"area"}
    assert {how for (_, purpose), how in found.items() if purpose == "energy"} == {"prefix"}


def test_another_search_goes_further_where_one_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a faster recipe takes on its way takes longer too."""
    ways = {"area": 0.15, "prefix": 0.23, "speed": 0.35}

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        how = choice["dot_product"]
        return DELAY[how] + (ways[how] if design.config.rows > 1 else 0.0)

    found, seen = searched(monkeypatch, delay)
    assert set(dot_product(found).values()) == {"speed"}
    assert found.builds == len(seen)


LANES = ("signed", "merged-timed")


def test_lanes_that_are_late_in_an_array_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core of one element finds them smaller; then a core with the next smallest, of all recipes, is built."""

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        return 2.05 if design.config.rows > 1 and design.config.dot == "merged" else 1.0

    found, _ = searched(monkeypatch, delay, LANES)
    assert {config.dot for config in found.configs.values()} == {"merged-timed"}
    # Where another block holds the path, other lanes would not help.
    found, _ = searched(monkeypatch, delay, LANES, held_by="term_exponents")
    assert {config.dot for config in found.configs.values()} == {"merged"}


def test_several_lanes_may_be_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        return 2.05 if design.config.rows > 1 and design.config.dot != "signed" else 1.0

    found, seen = searched(monkeypatch, delay, LANES)
    assert {config.dot for config in found.configs.values()} == {"signed"}
    assert found.builds == len(seen)


def test_what_is_out_of_reach_keeps_the_first_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        return DELAY[choice["dot_product"]] + 0.5 * (design.config.rows > 1)

    found, seen = searched(monkeypatch, delay)
    assert set(dot_product(found).values()) == {"area"}
    assert {clock for _, _, clock in seen} == {CLOCK}


def test_a_late_lane_array_takes_what_meets_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe of a core's dot product may be too slow for it: its path has the decoders, and no register."""
    delays = {"area": 2.1, "prefix": 1.9, "speed": 1.5}

    def searched_for(slow: str) -> dict[str, str]:
        found, seen = searched(
            monkeypatch,
            lambda design, purpose, choice, draw: DELAY[choice["dot_product"]],
            lane_array=lambda name, how: delays[how] + 0.3 * (name == slow),
        )
        assert found.builds == len(seen)
        assert set(dot_product(found).values()) == {"area"}
        return {name: how.name for (name, _), (_, how) in found.lane_arrays.items()}

    assert searched_for("neither") == {"nvfp4-small": "prefix", "mixfp4-small": "prefix"}
    assert searched_for("mixfp4-small") == {"nvfp4-small": "prefix", "mixfp4-small": "speed"}
    delays.update(area=2.5, prefix=2.4, speed=2.2)
    assert set(searched_for("neither").values()) == {"speed"}
    delays.update(area=2.0)
    assert set(searched_for("neither").values()) == {"area"}


def test_a_late_lane_array_tries_fast_recipes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others take minutes to map, and have ripple carries."""
    seen = []

    def lane_array(name: str, how: str) -> float:
        seen.append(how)
        return {"area": 1.9, "prefix": 2.1, "speed": 1.5}[how]

    found, _ = searched(
        monkeypatch,
        lambda design, purpose, choice, draw: CLOCK + 0.1 if choice["dot_product"] == "area" else 1.0,
        lane_array=lane_array,
    )
    assert set(dot_product(found).values()) == {"prefix"}
    assert {how.name for _, how in found.lane_arrays.values()} == {"speed"}
    assert set(seen) == {"prefix", "speed"}


def test_one_recipe_needs_no_whole_core() -> None:
    config = dataclasses.replace(NAMED["nvfp4-small"], rows=2)
    aim = Aim(CLOCK, Physical(), Stimulus())
    assert select_for_cores({config.name: config}, AMONG[:1], aim, Adding(CELLS)).builds == 0


def test_the_whole_core_is_built_as_runs_are() -> None:
    """By all rounds of closing, not by the few that the search makes do with."""
    assert reach.ROUNDS > score.ROUNDS


def test_whole_cores_decide_between_lanes_that_are_nearly_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """For least energy: what arrives when is another matter in an array."""
    monkeypatch.setitem(LARGER, "merged-timed", 1.02)
    # Alone: else it would be tried by the lanes that the other design takes.
    alone = {"nvfp4-small": NAMED["nvfp4-small"]}

    def searched_with(dearer: str) -> dict[tuple[str, str], str]:
        def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
            LARGER["merged"] = 1.1 if design.config.rows > 1 and dearer == "merged" else 1.0
            return 1.0

        found, seen = searched(monkeypatch, delay, ("merged-timed",), configs=alone)
        assert found.builds == len(seen)
        return {key: config.dot for key, config in found.configs.items()}

    monkeypatch.setitem(LARGER, "merged", 1.0)
    assert searched_with("merged")["nvfp4-small", "energy"] == "merged-timed"
    assert searched_with("merged")["nvfp4-small", "area"] == "merged"
    assert searched_with("none")["nvfp4-small", "energy"] == "merged"


def test_one_draw_is_enough_to_see_what_is_clearly_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rivals that cost clearly more in an array, or are late there, have one draw; those that are close have two."""
    monkeypatch.setitem(LARGER, "merged", 1.0)
    monkeypatch.setitem(LARGER, "merged-timed", 1.02)
    monkeypatch.setattr(reach, "WITHIN", 0.0)
    own = NAMED["nvfp4-small"]
    configs = {name: dataclasses.replace(own, name=name) for name in ("one", "another")}

    def draws(in_array: float, path: float = 1.0) -> int:
        def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
            whole, rival = design.config.rows > 1, design.config.dot == "merged-timed"
            LARGER["merged-timed"] = in_array if whole else 1.02
            return path if whole and rival else 1.0

        found, seen = searched(monkeypatch, delay, ("merged-timed",), configs=configs)
        assert found.builds == len(seen)
        assert {config.dot for config in found.configs.values()} == {"merged"}
        return sum(rows > 1 for _, rows, _ in seen)

    # And four more, as what is taken has in any case.
    assert draws(1.005) - draws(1.1) == len(configs) * (1 + len(MORE_PILOTS))
    assert draws(1.005) - draws(1.005, CLOCK + 0.1) == len(configs) * (1 + len(MORE_PILOTS))


def test_the_mean_of_more_draws_decides_on_least_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two draws may be lucky. One draw in six may be late, for a run that is late takes another recipe."""
    own = {"nvfp4-small": NAMED["nvfp4-small"]}

    def lanes_with(costs: Mapping[int, float], late: Sequence[int] = ()) -> str:
        def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
            rival = design.config.rows > 1 and design.config.dot == "merged-timed"
            LARGER["merged-timed"] = costs[draw] if rival else 1.02
            return CLOCK + 0.01 if rival and draw in late else 1.0

        found, seen = searched(monkeypatch, delay, ("merged-timed",), configs=own)
        assert found.builds == len(seen)
        assert found.configs["nvfp4-small", "area"].dot == "merged"
        return found.configs["nvfp4-small", "energy"].dot

    monkeypatch.setitem(LARGER, "merged", 1.0)
    monkeypatch.setitem(LARGER, "merged-timed", 1.02)
    first, more = dict.fromkeys(PILOTS[:2], 0.99), MORE_PILOTS
    assert lanes_with(first | dict.fromkeys(more, 0.99)) == "merged-timed"
    assert lanes_with(first | dict.fromkeys(more, 1.03)) == "merged"
    assert lanes_with(dict.fromkeys(PILOTS[:2], 1.01) | dict.fromkeys(more, 0.95)) == "merged-timed"
    assert lanes_with(first | dict.fromkeys(more, 0.99), more[:1]) == "merged-timed"
    assert lanes_with(first | dict.fromkeys(more, 0.99), more[:2]) == "merged"


def test_what_two_more_draws_find_worse_has_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rival that turns out worse has four draws in all; the best, which is then alone, has six in any case."""
    own = {"nvfp4-small": NAMED["nvfp4-small"]}
    monkeypatch.setitem(LARGER, "merged", 1.0)
    monkeypatch.setitem(LARGER, "merged-timed", 1.02)

    def draws(later: float) -> int:
        def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
            rival = design.config.rows > 1 and design.config.dot == "merged-timed"
            LARGER["merged-timed"] = 1.02 if not rival else 1.005 if draw in PILOTS[:2] else later
            return 1.0

        found, seen = searched(monkeypatch, delay, ("merged-timed",), configs=own)
        assert found.builds == len(seen)
        assert found.configs["nvfp4-small", "energy"].dot == "merged"
        return sum(rows > 1 for _, rows, _ in seen)

    # In the mean of four the rival is 0.9 and 1.5 % above the best.
    assert draws(1.013) - draws(1.025) == 2


def test_what_is_taken_is_in_time_in_all_draws_but_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing else is near. Else the next best is taken that was built, or what another search finds."""
    own = {"nvfp4-small": NAMED["nvfp4-small"]}
    monkeypatch.setitem(LARGER, "merged", 1.0)
    monkeypatch.setitem(LARGER, "merged-timed", 1.05)

    def found_with(late: Sequence[int], least: float = 0.0, lanes: Sequence[str] = ("merged-timed",)) -> Selected:
        def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
            path = DELAY[choice["dot_product"]] + 0.05
            is_late = design.config.rows > 1 and design.config.dot == "merged" and draw in late
            return max(path + 0.01, least) if is_late else path

        found, seen = searched(monkeypatch, delay, lanes, configs=own)
        assert found.builds == len(seen)
        return found

    def taken(found: Selected) -> set[tuple[str, str]]:
        return {(config.dot, found.chosen[key]["dot_product"].name) for key, config in found.configs.items()}

    assert taken(found_with(MORE_PILOTS[:1])) == {("merged", "area")}
    # A faster dot product takes less than other lanes.
    assert taken(found_with(MORE_PILOTS[:2])) == {("merged", "prefix")}
    assert {dot for dot, _ in taken(found_with(MORE_PILOTS[:2], CLOCK + 0.01))} == {"merged-timed"}
    assert taken(found_with(MORE_PILOTS[:2], lanes=())) == {("merged", "prefix")}


def test_what_was_decided_stays_when_the_other_design_has_tried_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it was late in one of six draws, and other lanes in none."""
    own = NAMED["nvfp4-small"]
    configs = {name: dataclasses.replace(own, name=name) for name in ("one", "another")}
    for dot in ("merged", "merged-timed", "merged-binary"):
        monkeypatch.setitem(LARGER, dot, 1.0)

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        whole = design.config.rows > 1
        few, later = (1.01, 0.99) if whole else (1.02, 1.02)
        LARGER["merged-timed"] = (few if draw in PILOTS[:2] else later) if design.config.name == "one" else 1.5
        LARGER["merged-binary"] = 1.015 if design.config.name == "one" else 1.5
        late = whole and design.config.dot == "merged-timed" and draw == MORE_PILOTS[0]
        return CLOCK + 0.01 if late else 1.0

    found, seen = searched(monkeypatch, delay, ("merged-timed", "merged-binary"), configs=configs)
    assert found.builds == len(seen)
    assert {name: found.configs[name, "energy"].dot for name in configs} == {"one": "merged-timed", "another": "merged"}


@pytest.mark.parametrize("module", ["dot_product", "element"])
@pytest.mark.parametrize(("late", "expected"), [(0.01, "signed"), (0.15, "merged-timed")])
def test_lanes_late_by_a_little_take_a_faster_recipe(
    late: float, expected: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost less than what meets the clock, by one recipe of any module on the path, if that is enough."""
    for dot, more in {"signed": 0.84, "merged-timed": 1.0, "merged": 1.3}.items():
        monkeypatch.setitem(LARGER, dot, more)

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        ways = late if design.config.rows > 1 and design.config.dot == "signed" else -0.1
        return CLOCK + ways - 0.1 * (choice[module] == "speed")

    found, seen = searched(monkeypatch, delay, LANES)
    assert {config.dot for config in found.configs.values()} == {expected}
    if expected == "signed":
        assert {chosen[module].name for chosen in found.chosen.values()} == {"speed"}
    assert found.builds == len(seen)


def test_lanes_of_the_other_design_are_tried_where_ones_own_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one element `signed` is far behind for NVFP4, whose other lanes are late in an array by any recipe."""
    monkeypatch.setattr(reach, "WITHIN", 0.0)

    def searched_with(late: str) -> dict[tuple[str, str], str]:
        def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
            own, array = design.config.name == "nvfp4-small", design.config.rows > 1
            LARGER["signed"] = (0.9 if array else 1.2) if own else 0.8  # and a decoder more
            held = own and array and late == design.config.dot
            return CLOCK + 0.05 if held else CLOCK - 0.1 - 0.01 * (choice["dot_product"] == "speed")

        found, seen = searched(monkeypatch, delay, ("signed",))
        assert found.builds == len(seen)
        return {key: config.dot for key, config in found.configs.items()}

    monkeypatch.setitem(LARGER, "signed", 0.8)
    assert set(searched_with("merged").values()) == {"signed"}
    # Lanes that are not late stay: what one element says of the others is good enough.
    assert searched_with("none")["nvfp4-small", "area"] == "merged"


def test_a_design_is_tried_by_what_the_other_one_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one element NVFP4 is smaller by another recipe; in an array by that of MixFP4, unless it is late by that."""

    def recipes_with(late: str) -> dict[tuple[str, str], set[str]]:
        def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
            own, array = design.config.name == "nvfp4-small", design.config.rows > 1
            COST["area"] = 130.0 if array else 100.0 if own else 115.0
            held = own and array and purpose == late and "prefix" in choice.values()
            return CLOCK + 0.5 if held else 1.0

        found, seen = searched(monkeypatch, delay)
        assert found.builds == len(seen)
        return {key: {how.name for how in chosen.values()} for key, chosen in found.chosen.items()}

    monkeypatch.setitem(COST, "area", 100.0)
    assert set(map(frozenset, recipes_with("neither").values())) == {frozenset({"prefix"})}
    found = recipes_with("energy")
    assert found["nvfp4-small", "area"] == {"prefix"}
    assert found["nvfp4-small", "energy"] == {"area"}


def test_a_design_is_tried_by_what_was_found_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is not searched again."""

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        COST["area"] = 100.0 if design.config.rows == 1 else 130.0
        return 1.0

    monkeypatch.setitem(COST, "area", 100.0)
    mixed = {"mixfp4-small": NAMED["mixfp4-small"]}
    alone, _ = searched(monkeypatch, delay, configs=mixed)
    assert {how.name for chosen in alone.chosen.values() for how in chosen.values()} == {"area"}
    plain, _ = searched(monkeypatch, delay, configs={"nvfp4-small": NAMED["nvfp4-small"]})
    other = {key: dict.fromkeys(chosen, RECIPES["prefix"]) for key, chosen in plain.chosen.items()}
    found, seen = searched(monkeypatch, delay, configs=mixed, found_for=dataclasses.replace(plain, chosen=other))
    for key, chosen in found.chosen.items():
        shared = {module for (_, purpose), own in other.items() if purpose == key[1] for module in own}
        assert {how.name for module, how in chosen.items() if module in shared} == {"prefix"}
    assert {name for name, *_ in seen} == {"mixfp4-small"}
    assert found.builds == len(seen) > alone.builds


def found_apart(monkeypatch: pytest.MonkeyPatch, delay: Delay) -> tuple[TensorCoreConfig, Selected, Selected, Selected]:
    """A configuration, what is found for it, what for another one, and the same of that by `prefix` alone."""
    own = NAMED["nvfp4-small"]
    alone, _ = searched(monkeypatch, delay, configs={own.name: own})
    other, _ = searched(monkeypatch, delay, configs={"mixfp4-small": NAMED["mixfp4-small"]})
    prefix = {key: dict.fromkeys(chosen, RECIPES["prefix"]) for key, chosen in other.chosen.items()}
    return own, alone, other, dataclasses.replace(other, chosen=prefix)


def test_what_was_found_is_tried_again_by_what_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        COST["area"] = 100.0 if design.config.rows == 1 else 130.0
        return 1.0

    monkeypatch.setitem(COST, "area", 100.0)
    own, alone, other, fast = found_apart(monkeypatch, delay)
    aim = Aim(CLOCK, Physical(), Stimulus())
    same = exchanged(own, alone, [other], AMONG, aim, Adding(CELLS))
    assert (same.configs, same.chosen, same.lane_arrays) == (alone.configs, alone.chosen, alone.lane_arrays)
    found = exchanged(own, alone, [other, fast], AMONG, aim, Adding(CELLS))
    assert {how.name for chosen in found.chosen.values() for how in chosen.values()} == {"prefix"}
    assert {config.name for config in found.configs.values()} == {own.name}
    assert found.builds > alone.builds


@pytest.mark.parametrize(("later", "taken"), [(99.5, "prefix"), (101.0, "area")])
def test_the_mean_of_more_draws_decides_on_what_others_take(
    monkeypatch: pytest.MonkeyPatch, later: float, taken: str
) -> None:
    """For either purpose two draws may be lucky."""

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        COST["prefix"] = 110.0 if design.config.rows == 1 else 99.5 if draw in PILOTS[:2] else later
        return 1.0

    monkeypatch.setitem(COST, "prefix", 110.0)
    own, alone, _, lucky = found_apart(monkeypatch, delay)
    aim = Aim(CLOCK, Physical(), Stimulus())
    found = exchanged(own, alone, [lucky], AMONG, aim, Adding(CELLS))
    assert {how.name for chosen in found.chosen.values() for how in chosen.values()} == {taken}


def test_a_slot_of_the_other_design_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one element it is far behind; in an array it is the better one."""
    configs = {name: NAMED[name] for name in ("nvfp4-e0m3-multi-small", "mixfp4-multi-small")}

    def searched_with(in_array: float) -> dict[tuple[str, str], str]:
        def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
            own, array = design.config.name == "mixfp4-multi-small", design.config.rows > 1
            LARGER["split"] = in_array if array else 1.0 if own else 1.2
            return 1.0

        found, seen = searched(monkeypatch, delay, configs=configs, slots=("split",))
        assert found.builds == len(seen)
        return {key: config.slot for key, config in found.configs.items()}

    monkeypatch.setitem(LARGER, "full", 1.1)
    monkeypatch.setitem(LARGER, "split", 1.0)
    assert set(searched_with(1.0).values()) == {"split"}
    assert searched_with(1.2)["nvfp4-e0m3-multi-small", "area"] == "full"


def test_what_formats_do_not_make_takes_the_recipes_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes and decoders of one format are late by the other's recipes. In one element so is its accumulation."""

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        late = {"nvfp4-small": (), "mixfp4-small": ("dot_product", "operand_decoder")}[design.config.name]
        if late and design.config.rows == 1:
            late = (*late, "accumulate")
        return max(DELAY["area"], *(DELAY[choice[module]] + 0.12 for module in late)) if late else DELAY["area"]

    found, _ = searched(monkeypatch, delay)
    for purpose in ("area", "energy"):
        taken = {module: how.name for module, how in found.chosen["mixfp4-small", purpose].items()}
        assert taken["dot_product"] == taken["operand_decoder"] == "prefix"
        assert taken["accumulate"] == "area"
        assert {how.name for how in found.chosen["nvfp4-small", purpose].values()} == {"area"}


def test_what_others_offer_twice_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same lanes and decoders, all of the other's recipes are those for all but lanes and decoders."""
    built: list[tuple[object, ...]] = []

    def delay(design: Design, purpose: str, choice: dict[str, str], draw: int) -> float:
        whole = design.config.rows > 1
        if whole:
            built.append((design.config.name, purpose, tuple(sorted(choice.items())), draw))
        late = design.config.name == "mixfp4-small" and not whole
        return DELAY[choice["accumulate"]] + 0.12 if late else DELAY["area"]

    found, _ = searched(monkeypatch, delay)
    assert found.chosen["mixfp4-small", "area"]["accumulate"].name == "area"
    assert len(built) == len({*built})
