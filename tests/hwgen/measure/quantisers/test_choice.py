"""Recipes of quantisers, with quantisers that are closed by adding up."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

from hwgen.cells import libraries, reader
from hwgen.config.quantiser import QUANTISERS
from hwgen.mapping import area
from hwgen.mapping.area import Body, Identity, Job, Source
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.quantisers import choice
from hwgen.measure.quantisers.choice import choose
from hwgen.measure.quantisers.table import _source
from hwgen.measure.search.score import Score, draws_of

CELLS = reader.load(libraries.path("generic7"))
AMONG = [RECIPES[name] for name in ("area", "prefix", "speed")]
CLOCK = 1.0
SOURCES = {name: _source(QUANTISERS[name]) for name in ("nvfp4-quantiser", "mixfp4-quantiser")}

Cost = Callable[[dict[str, str], int], tuple[float, float]]


class Adding(Flow):
    """Nothing is mapped or closed: a module is its name and its recipe's."""

    def synthesise(self, jobs: Iterable[Job], what: str) -> dict[Identity, Body]:
        found = list(jobs)
        assert {job.variant for job in found} <= set(draws_of(0))  # no measured run has that perturbation
        return {job.identity: {"of": (job.module, job.recipe.name), "draw": job.variant} for job in found}

    def each(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], what: str) -> Iterator[Any]:
        assert tasks
        return (function(*task) for task in tasks)


def chosen(monkeypatch: pytest.MonkeyPatch, cost: Cost, closed: bool = True) -> dict[str, dict[str, str]]:
    """Recipe by module of each quantiser; ``cost(recipes by module, draw)`` gives ns and um2."""

    def scored(source: Source, modules: dict[str, Any], clock_ns: float, library: object) -> Score:
        (draw,) = {body["draw"] for body in modules.values()}
        delay, taken = cost(dict(body["of"] for body in modules.values()), draw)
        return Score(max(delay - clock_ns, 0.0), taken)

    def first(self: choice._Search, name: str) -> dict:
        return dict.fromkeys(modules_of(name), RECIPES["area"])

    monkeypatch.setattr(choice, "_scored", scored)
    monkeypatch.setattr(choice._Search, "as_mapped", first)
    found = choose(SOURCES, AMONG, CLOCK, closed, Adding(CELLS))
    return {name: {module: how.name for module, how in each.items()} for name, each in found.items()}


def modules_of(name: str) -> list[str]:
    return list(area.counts(SOURCES[name]))


def test_each_module_takes_what_is_smallest_once_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"quantiser_lane": "prefix", "largest_magnitude": "speed"}

    def cost(how: dict[str, str], draw: int) -> tuple[float, float]:
        return 0.9, 1000 + sum(30 for module in how if how[module] != wanted.get(module, "area"))

    for found in chosen(monkeypatch, cost).values():
        assert found == {module: wanted.get(module, "area") for module in found}


def test_what_meets_the_clock_comes_before_what_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two modules have to be fast for it; either alone is less late."""
    fast = ("quantiser_lane", "largest_magnitude")

    def cost(how: dict[str, str], draw: int) -> tuple[float, float]:
        slow = sum(how[module] == "area" for module in fast)
        return 0.9 + 0.1 * slow, 1000 + 50 * sum(how[module] == "speed" for module in how)

    for found in chosen(monkeypatch, cost).values():
        assert found == {module: "prefix" if module in fast else "area" for module in found}


def test_changes_that_help_alone_but_not_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(how: dict[str, str], draw: int) -> tuple[float, float]:
        changed = [module for module in ("quantiser_lane", "largest_magnitude") if how[module] == "speed"]
        gains = {"quantiser_lane": 40, "largest_magnitude": 30}
        return 0.9, 1000 - (sum(gains[module] for module in changed) if len(changed) < 2 else -10)

    for found in chosen(monkeypatch, cost).values():
        assert {module for module, how in found.items() if how == "speed"} == {"quantiser_lane"}


def test_one_lucky_draw_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(how: dict[str, str], draw: int) -> tuple[float, float]:
        lucky = how["quantiser_lane"] == "speed"
        return 0.9, 1000 + lucky * (-20 if draw == draws_of(0)[0] else 30)

    for found in chosen(monkeypatch, cost).values():
        assert set(found.values()) == {"area"}


def test_netlists_as_mapped_need_no_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(how: dict[str, str], draw: int) -> tuple[float, float]:
        raise AssertionError("closed")

    for found in chosen(monkeypatch, cost, closed=False).values():
        assert set(found.values()) == {"area"}
