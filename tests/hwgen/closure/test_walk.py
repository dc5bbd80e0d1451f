from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from hwgen.closure import walk as module
from hwgen.closure.walk import walk
from hwgen.mapping.yosys import RECIPES, Recipe

SMALL, MIDDLE, FAST = (RECIPES[name] for name in ("area", "balanced", "speed"))
# Delay of each module by recipe; the path goes through all of them.
DELAYS = {
    "a": {SMALL: 5.0, MIDDLE: 4.99, FAST: 2.0},
    "b": {SMALL: 3.0, FAST: 3.5},
    "c": {SMALL: 1.0, MIDDLE: 0.5, FAST: 0.4},
}


@pytest.fixture(autouse=True)
def _timing(monkeypatch: pytest.MonkeyPatch) -> None:
    def analyse(choice: Mapping[str, Recipe]) -> SimpleNamespace:
        path = {f"top/{module}": DELAYS[module][how] for module, how in choice.items()}
        return SimpleNamespace(delay=sum(path.values()), path_by_block=path)

    monkeypatch.setattr(module, "analyse", analyse)


def test_the_largest_share_is_the_first_to_get_faster() -> None:
    steps = list(walk({name: list(found) for name, found in DELAYS.items()}, lambda choice: [choice]))
    assert [(dict(choice), delay) for choice, delay in steps] == [
        ({"a": SMALL, "b": SMALL, "c": SMALL}, 9.0),
        # The middle recipe of a gains too little, those of b nothing.
        ({"a": FAST, "b": SMALL, "c": SMALL}, 6.0),
        ({"a": FAST, "b": SMALL, "c": MIDDLE}, 5.5),
        ({"a": FAST, "b": SMALL, "c": FAST}, pytest.approx(5.4)),
    ]


def test_of_several_variants_the_slowest_counts() -> None:
    slow = {"a": SMALL, "b": SMALL, "c": SMALL}
    steps = list(walk({name: list(found) for name, found in DELAYS.items()}, lambda choice: [choice, slow]))
    assert [delay for _, delay in steps] == [9.0]


def test_paths_of_the_same_length_go_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    delays = {"a": {SMALL: 5.0, FAST: 2.0}, "b": {SMALL: 4.98, FAST: 3.0}, "c": {SMALL: 1.0, FAST: 0.5}}

    def analyse(choice: Mapping[str, Recipe]) -> SimpleNamespace:
        # Each module is a path of its own.
        worst = max(choice, key=lambda module: delays[module][choice[module]])
        longest = delays[worst][choice[worst]]
        return SimpleNamespace(delay=longest, path_by_block={worst: longest})

    monkeypatch.setattr(module, "analyse", analyse)
    steps = list(walk({name: list(found) for name, found in delays.items()}, lambda choice: [choice]))
    # a alone gains too little to be shown.
    assert [(dict(choice), delay) for choice, delay in steps] == [
        ({"a": SMALL, "b": SMALL, "c": SMALL}, 5.0),
        ({"a": FAST, "b": FAST, "c": SMALL}, 3.0),
    ]
