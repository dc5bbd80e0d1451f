"""Runs that are late, or take much more than the others, take another recipe."""

import dataclasses
from types import MappingProxyType, SimpleNamespace

import pytest

from hwgen.cells import libraries, reader
from hwgen.closure.close import Closure
from hwgen.config import TensorCoreConfig
from hwgen.mapping.yosys import RECIPES
from hwgen.measure import runs as module
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.runs import Run, measured
from hwgen.measure.search import tries
from hwgen.measure.search.score import Aim, Score
from hwgen.measure.search.selected import Selected
from hwgen.power.consumption import Consumption

CLOCK = 2.0
CONFIG = TensorCoreConfig("x", "nvfp4", "nvfp4", rows=1, columns=1, groups=1)
MODULES = ("tensor_core", "element", "dot_product", "accumulate")
ON_PATH = ["dot_product"]
"""Modules on the longest path, most of it first."""
AMONG = [RECIPES[name] for name in ("area", "adders", "balanced", "speed", "delay")]


class Bench:
    """Cores whose delay, area and fJ a cycle follow from the recipes of their dot products, in order.

    They may also follow from those of two modules, as in ``(number, "speed", "area")`` for the dot product and the
    accumulation.

    Attributes
    ----------
    tried
        Cores for one purpose that were built: number of the run, purpose, recipes of dot product and accumulation.
    runs
        Runs that were built: recipes of the dot product by purpose, by number.
    promised
        What tries say of a core's area or energy, in the place of what a run says.
    """

    def __init__(self, delays: dict, areas: dict, spent: dict = MappingProxyType({})) -> None:
        self.tables = {"delay": (delays, 1.9), "area": (areas, 100.0), "energy": (spent, 60.0)}
        self.tried: list[tuple[int, str, str, str]] = []
        self.runs: list[dict[int, dict[str, str]]] = []
        self.promised: dict = {}

    def of(self, what: str, number: int, chosen: dict) -> float:
        table, usual = self.tables[what]
        how = number, chosen["dot_product"].name, chosen["accumulate"].name
        return table.get(how, table.get(how[:2], usual))

    def score(self, number: int, purpose: str, chosen: dict) -> Score:
        self.tried.append((number, purpose, chosen["dot_product"].name, chosen["accumulate"].name))
        late = max(self.of("delay", number, chosen) - CLOCK, 0.0)
        cost = self.promised.get((number, chosen["dot_product"].name), self.of(purpose, number, chosen))
        return Score(late, cost, parts())

    def run(self, number: int, choices: dict) -> Run:
        records = {}
        for purpose in PURPOSES:
            delay = self.of("delay", number, choices[purpose])
            record = Closure(CLOCK, delay, "tensor_core/element/dot_product", "placed", 5.0, 5.0, 0, 0, 1)
            records |= {(purpose, "core"): record, (purpose, "lane array"): dataclasses.replace(record)}
        # A late core for least energy gives way to the one for least area, which spends more.
        late = records["energy", "core"]
        passed_over = late if records["area", "core"].met and not late.met else None
        if passed_over is not None:
            records["energy", "core"] = records["area", "core"]
        fj = self.of("energy", number, choices["energy"]) if passed_over is None else 80.0
        energy = Consumption({"dot products": {"switching": fj}}, {})
        examined = SimpleNamespace(
            areas={"core": {"dot products": self.of("area", number, choices["area"])}},
            energy={(CONFIG.formats, "core", "timed"): energy},
        )
        return Run(examined, records, passed_over=passed_over, alone_ns=dict.fromkeys(PURPOSES, parts()))


def parts() -> dict[str, float]:
    """Parts of the longest path, the largest first."""
    return {module: 1.0 - 0.2 * place for place, module in enumerate(ON_PATH)}


@pytest.fixture
def of_recipes(monkeypatch: pytest.MonkeyPatch):
    """Makes a bench that takes the place of what builds cores."""

    def make(delays: dict, areas: dict, spent: dict = MappingProxyType({})) -> Bench:
        bench = Bench(delays, areas, spent)

        def fake(self: object, choices: dict) -> dict:
            bench.runs.append({n: {p: own[p]["dot_product"].name for p in PURPOSES} for (_, n), own in choices.items()})
            return {key: bench.run(key[1], own) for key, own in choices.items()}

        monkeypatch.setattr(module._Runs, "built", fake)
        monkeypatch.setattr(module._Runs, "chosen", lambda self, *_: dict.fromkeys(MODULES, RECIPES["area"]))
        monkeypatch.setattr(
            tries, "_built", lambda wanted, *_: [bench.score(n, purpose, own) for (_, n, purpose), own in wanted]
        )
        return bench

    return make


def found(numbers: range, before: list[Run] | None = None) -> list[Run]:
    aim = Aim(CLOCK, Physical(), Stimulus())
    selected = Selected({}, {}, {}, 0)
    flow = Flow(reader.load(libraries.path("generic7")))
    known = {"x": before or []}
    return measured(numbers, {"x": CONFIG}, CONFIG, selected, aim, AMONG, 1, flow, known)["x"]


def delays(runs: list[Run], purpose: str = "area") -> list[float]:
    return [run.records[purpose, "core"].delay_ns for run in runs]


def areas(runs: list[Run]) -> list[float]:
    return [run.examined.areas["core"]["dot products"] for run in runs]


def fj(runs: list[Run]) -> list[float]:
    return [run.examined.energy[CONFIG.formats, "core", "timed"].total_fj for run in runs]


def test_what_meets_the_clock_is_built_once(of_recipes) -> None:
    bench = of_recipes({}, {})
    assert delays(found(range(3))) == [1.9] * 3
    assert len(bench.runs) == 1
    assert not bench.tried


def test_a_late_run_takes_a_fast_recipe(of_recipes) -> None:
    bench = of_recipes({(1, "area"): 2.1, (1, "speed"): 2.05}, {(1, "delay"): 102.0})
    runs = found(range(3))
    assert delays(runs) == [1.9] * 3
    assert [list(each) for each in bench.runs] == [[0, 1, 2], [1]]
    # Both purposes were late; `balanced` is `area` but for sizes, which are found afterwards.
    how = [("speed", "area"), ("delay", "area")]
    assert bench.tried == [(1, purpose, *each) for purpose in PURPOSES for each in how]
    assert areas(runs) == [100.0, 102.0, 100.0]


def test_what_helps_nothing_is_not_taken(of_recipes) -> None:
    bench = of_recipes({(0, "area"): 2.1, (0, "speed"): 2.12, (0, "delay"): 2.11}, {})
    assert delays(found(range(1))) == [2.1]
    assert len(bench.tried) == 4
    assert len(bench.runs) == 1


def test_a_clock_out_of_reach_is_not_tried_again(of_recipes) -> None:
    bench = of_recipes({(0, "area"): 2.3}, {})
    assert delays(found(range(1))) == [2.3]
    assert not bench.tried


def test_a_run_much_larger_than_the_others_tries_other_recipes(of_recipes) -> None:
    """For least area alone; the smallest that meets the clock is taken."""
    bench = of_recipes({(2, "speed"): 2.1}, {(2, "area"): 130.0, (2, "adders"): 101.0, (1, "area"): 102.0})
    assert areas(found(range(3))) == [100.0, 102.0, 101.0]
    assert bench.tried == [(2, "area", "adders", "area"), (2, "area", "speed", "area")]
    assert bench.runs[1] == {2: {"area": "adders", "energy": "area"}}


def test_a_run_that_spends_much_more_than_the_others_tries_other_recipes(of_recipes) -> None:
    """For least energy alone; the most frugal that meets the clock is taken."""
    bench = of_recipes({(2, "speed"): 2.1}, {}, {(2, "area"): 66.0, (2, "adders"): 60.5, (1, "area"): 61.0})
    assert fj(found(range(3))) == [60.0, 61.0, 60.5]
    assert bench.tried == [(2, "energy", "adders", "area"), (2, "energy", "speed", "area")]
    assert bench.runs[1] == {2: {"area": "area", "energy": "adders"}}


def test_each_purpose_takes_what_suits_it(of_recipes) -> None:
    spent = {(2, "area"): 66.0, (2, "adders"): 90.0, (2, "delay"): 61.0}
    of_recipes({(2, "speed"): 2.1}, {(2, "area"): 103.0, (2, "adders"): 102.5, (2, "delay"): 102.8}, spent)
    runs = found(range(3))
    assert fj(runs) == [60.0, 60.0, 61.0]
    assert areas(runs) == [100.0, 100.0, 102.5]


def test_a_run_that_is_no_better_than_the_first_one_is_not_taken(of_recipes) -> None:
    """A little area does not outweigh much energy, whatever the tries said of either."""
    bench = of_recipes({}, {(2, "area"): 103.0, (2, "adders"): 102.5}, {(2, "area"): 63.0, (2, "adders"): 90.0})
    bench.promised = {(2, "adders"): 50.0, (2, "speed"): 200.0, (2, "delay"): 200.0}
    runs = found(range(3))
    assert bench.runs[1] == {2: dict.fromkeys(PURPOSES, "adders")}
    assert (areas(runs)[2], fj(runs)[2]) == (103.0, 63.0)


def test_a_core_for_least_energy_that_is_late_is_not_given_up_for_the_smaller_one(of_recipes, monkeypatch) -> None:
    """It spends less than the one for least area by a fast recipe; that one is not touched."""
    chosen = {"area": RECIPES["adders"], "energy": RECIPES["area"]}
    bench = of_recipes({(1, "area"): 2.1, (1, "speed"): 2.05}, {})
    monkeypatch.setattr(module._Runs, "chosen", lambda self, _, purpose: dict.fromkeys(MODULES, chosen[purpose]))
    runs = found(range(2))
    assert [each[1] for each in bench.runs] == [
        {"area": "adders", "energy": "area"},
        {"area": "adders", "energy": "delay"},
    ]
    assert {purpose for _, purpose, *_ in bench.tried} == {"energy"}
    assert [run.passed_over for run in runs] == [None, None]
    assert fj(runs) == [60.0, 60.0]


def test_runs_before_say_what_is_usual(of_recipes) -> None:
    of_recipes({}, {(0, "area"): 130.0})
    usual = found(range(1, 4))
    assert areas(found(range(1))) == [130.0]
    assert areas(found(range(1), usual)) == [100.0]


def test_a_dear_way_to_the_clock_is_not_taken(of_recipes, monkeypatch) -> None:
    """Another module on the path makes up for as much at less area, by what was chosen for the first one."""
    monkeypatch.setattr(f"{__name__}.ON_PATH", ["dot_product", "accumulate"])
    late = {(1, "area"): 2.1, (1, "area", "speed"): 1.95}
    bench = of_recipes(late, {(1, "speed"): 117.0, (1, "area", "speed"): 101.0})
    runs = found(range(3))
    assert delays(runs) == [1.9, 1.95, 1.9]
    assert areas(runs) == [100.0, 101.0, 100.0]
    # As it was chosen, a faster dot product, a faster accumulation beside the chosen dot product.
    assert [each[2:] for each in bench.tried[:2]] == [("speed", "area"), ("area", "speed")]
    assert len(bench.tried) == 4


def test_where_one_module_is_not_enough_another_changes_too(of_recipes, monkeypatch) -> None:
    monkeypatch.setattr(f"{__name__}.ON_PATH", ["dot_product", "accumulate"])
    others = {(1, "area", "speed"): 2.06, (1, "area", "delay"): 2.1, (1, "speed", "speed"): 1.95}
    bench = of_recipes({(1, "area"): 2.1, (1, "speed"): 2.05, (1, "delay"): 2.1, **others}, {})
    assert delays(found(range(3))) == [1.9, 1.95, 1.9]
    assert [each[2:] for each in bench.tried if each[1] == "area"] == [
        ("speed", "area"),
        ("area", "speed"),
        ("delay", "area"),
        ("area", "delay"),
        ("speed", "speed"),
        ("speed", "delay"),
    ]
