"""Runs that are late, or take much more than the others, take another recipe."""

import dataclasses
from types import MappingProxyType, SimpleNamespace

import pytest

from hwgen.cells import libraries, reader
from hwgen.closure.close import Closure
from hwgen.config import TensorCoreConfig
from hwgen.mapping.yosys import RECIPES
from hwgen.measure import runs as module
from hwgen.measure.built import PURPOSES
from hwgen.measure.flow import Flow
from hwgen.measure.requests import Physical
from hwgen.measure.runs import Run, measured
from hwgen.measure.selection import Aim, Selected
from hwgen.measure.stimulus import Stimulus
from hwgen.power.consumption import Consumption

CLOCK = 2.0
CONFIG = TensorCoreConfig("x", "nvfp4", "nvfp4", rows=1, columns=1, groups=1)
MODULES = ("tensor_core", "element", "dot_product", "accumulate")
ON_PATH = ["dot_product"]
"""Modules on the longest path, most of it first."""
AMONG = [RECIPES[name] for name in ("area", "adders", "balanced", "speed", "delay")]


@pytest.fixture
def of_recipes(monkeypatch: pytest.MonkeyPatch):
    """Runs whose delay, area and fJ a cycle follow from the recipes of their dot products; gives what was built.

    They may also follow from those of two modules, as in ``(number, "speed", "area")`` for the dot product and the
    accumulation.
    """
    built: list[dict] = []

    def make(delays: dict, areas: dict, spent: dict = MappingProxyType({})) -> list[dict]:
        def one(number: int, choices: dict) -> Run:
            how = {
                purpose: (number, own["dot_product"].name, own["accumulate"].name) for purpose, own in choices.items()
            }
            records = {}
            for purpose in PURPOSES:
                delay = delays.get(how[purpose], delays.get(how[purpose][:2], 1.9))
                record = Closure(CLOCK, delay, "tensor_core/element/dot_product", "placed", 5.0, 5.0, 0, 0, 1)
                records |= {(purpose, "core"): record, (purpose, "lane array"): dataclasses.replace(record)}
            # A late core for least energy gives way to the one for least area, which spends more.
            late = records["energy", "core"]
            passed_over = late if records["area", "core"].met and not late.met else None
            if passed_over is not None:
                records["energy", "core"] = records["area", "core"]
            fj = spent.get(how["energy"][:2], 60.0) if passed_over is None else 80.0
            energy = Consumption({"dot products": {"switching": fj}}, {})
            examined = SimpleNamespace(
                areas={"core": {"dot products": areas.get(how["area"], areas.get(how["area"][:2], 100.0))}},
                energy={(CONFIG.formats, "core", "timed"): energy},
            )
            on_path = dict.fromkeys(PURPOSES, tuple(ON_PATH))
            return Run(examined, records, passed_over=passed_over, on_path=on_path)

        def fake(self: object, choices: dict, what: str) -> dict:
            built.append({key: {p: own[p]["dot_product"].name for p in PURPOSES} for key, own in choices.items()})
            return {key: one(key[1], own) for key, own in choices.items()}

        monkeypatch.setattr(module._Runs, "built", fake)
        monkeypatch.setattr(module._Runs, "chosen", lambda self, *_: dict.fromkeys(MODULES, RECIPES["area"]))
        return built

    return make


def found(numbers: range, before: list[Run] | None = None) -> list[Run]:
    aim = Aim(CLOCK, Physical(), Stimulus())
    selected = Selected({}, {}, {}, 0)
    flow = Flow(reader.load(libraries.path("generic7")))
    known = {"x": before or []}
    return measured(numbers, {"x": CONFIG}, CONFIG, selected, aim, AMONG, 1, flow, known)["x"]


def delays(runs: list[Run], purpose: str = "area") -> list[float]:
    return [run.records[purpose, "core"].delay_ns for run in runs]


def test_what_meets_the_clock_is_built_once(of_recipes) -> None:
    built = of_recipes({}, {})
    assert delays(found(range(3))) == [1.9] * 3
    assert len(built) == 1


def test_a_late_run_takes_the_fast_recipes_one_after_the_other(of_recipes) -> None:
    built = of_recipes({(1, "area"): 2.1, (1, "speed"): 2.05}, {(1, "delay"): 102.0})
    runs = found(range(3))
    assert delays(runs) == [1.9] * 3
    assert [list(each) for each in built] == [[("x", 0), ("x", 1), ("x", 2)], [("x", 1)], [("x", 1)]]
    # Both purposes were late; `balanced` is `area` but for sizes, which are found afterwards.
    assert [each["x", 1]["area"] for each in built] == ["area", "speed", "delay"]
    assert [each["x", 1]["energy"] for each in built] == ["area", "speed", "delay"]
    assert [run.examined.areas["core"]["dot products"] for run in runs] == [100.0, 102.0, 100.0]


def test_what_helps_nothing_is_not_taken(of_recipes) -> None:
    built = of_recipes({(0, "area"): 2.1, (0, "speed"): 2.12, (0, "delay"): 2.11}, {})
    assert delays(found(range(1))) == [2.1]
    assert len(built) == 3


def test_a_clock_out_of_reach_is_not_tried_again(of_recipes) -> None:
    built = of_recipes({(0, "area"): 2.3}, {})
    assert delays(found(range(1))) == [2.3]
    assert len(built) == 1


def test_a_run_much_larger_than_the_others_tries_other_recipes(of_recipes) -> None:
    """For least area alone; the smallest that meets the clock is taken."""
    areas = {(2, "area"): 130.0, (2, "adders"): 101.0, (1, "area"): 102.0}
    built = of_recipes({(2, "speed"): 2.1}, areas)
    runs = found(range(3))
    assert [run.examined.areas["core"]["dot products"] for run in runs] == [100.0, 102.0, 101.0]
    assert [each["x", 2] for each in built] == [
        {"area": "area", "energy": "area"},
        {"area": "adders", "energy": "area"},
    ]


def fj(runs: list[Run]) -> list[float]:
    return [run.examined.energy[CONFIG.formats, "core", "timed"].total_fj for run in runs]


def test_a_run_that_spends_much_more_than_the_others_tries_other_recipes(of_recipes) -> None:
    """For least energy alone; the most frugal that meets the clock is taken."""
    built = of_recipes({(2, "speed"): 2.1}, {}, {(2, "area"): 66.0, (2, "adders"): 60.5, (1, "area"): 61.0})
    assert fj(found(range(3))) == [60.0, 61.0, 60.5]
    assert [each["x", 2] for each in built] == [
        {"area": "area", "energy": "area"},
        {"area": "area", "energy": "adders"},
    ]


def test_a_little_area_does_not_outweigh_much_energy(of_recipes) -> None:
    """Where a run tries other recipes for both purposes at once."""
    spent = {(2, "area"): 66.0, (2, "adders"): 90.0, (2, "delay"): 61.0}
    of_recipes({(2, "speed"): 2.1}, {(2, "area"): 103.0, (2, "adders"): 102.5, (2, "delay"): 102.8}, spent)
    runs = found(range(3))
    assert fj(runs) == [60.0, 60.0, 61.0]
    assert [run.examined.areas["core"]["dot products"] for run in runs] == [100.0, 100.0, 102.8]


def test_a_core_for_least_energy_that_is_late_is_not_given_up_for_the_smaller_one(of_recipes, monkeypatch) -> None:
    """It spends less than the one for least area by a fast recipe; that one is not touched."""
    chosen = {"area": RECIPES["adders"], "energy": RECIPES["area"]}
    built = of_recipes({(1, "area"): 2.1, (1, "speed"): 2.05}, {})
    monkeypatch.setattr(module._Runs, "chosen", lambda self, _, purpose: dict.fromkeys(MODULES, chosen[purpose]))
    runs = found(range(2))
    assert [each["x", 1] for each in built] == [
        {"area": "adders", "energy": "area"},
        {"area": "adders", "energy": "speed"},
        {"area": "adders", "energy": "delay"},
    ]
    assert [run.passed_over for run in runs] == [None, None]
    assert fj(runs) == [60.0, 60.0]


def test_runs_before_say_what_is_usual(of_recipes) -> None:
    of_recipes({}, {(0, "area"): 130.0})
    usual = found(range(1, 4))
    (alone,) = found(range(1))
    assert alone.examined.areas["core"]["dot products"] == 130.0
    (beside,) = found(range(1), usual)
    assert beside.examined.areas["core"]["dot products"] == 100.0


def test_a_dear_way_to_the_clock_is_not_the_last(of_recipes, monkeypatch) -> None:
    """Another module on the path makes up for as much at less area, by what was chosen for the first one."""
    monkeypatch.setattr(f"{__name__}.ON_PATH", ["dot_product", "accumulate"])
    late = {(1, "area"): 2.1, (1, "area", "speed"): 1.95}
    built = of_recipes(late, {(1, "speed"): 117.0, (1, "area", "speed"): 101.0})
    runs = found(range(3))
    assert delays(runs) == [1.9, 1.95, 1.9]
    assert [run.examined.areas["core"]["dot products"] for run in runs] == [100.0, 101.0, 100.0]
    # As it was chosen, a faster dot product, a faster accumulation beside the chosen dot product.
    assert [each["x", 1]["area"] for each in built] == ["area", "speed", "area"]


def test_where_one_module_is_not_enough_another_changes_too(of_recipes, monkeypatch) -> None:
    monkeypatch.setattr(f"{__name__}.ON_PATH", ["dot_product", "accumulate"])
    others = {(1, "area", "speed"): 2.06, (1, "area", "delay"): 2.1, (1, "speed", "speed"): 1.95}
    built = of_recipes({(1, "area"): 2.1, (1, "speed"): 2.05, (1, "delay"): 2.1, **others}, {})
    assert delays(found(range(3))) == [1.9, 1.95, 1.9]
    assert [each["x", 1]["area"] for each in built] == ["area", "speed", "area", "delay", "area", "speed"]
