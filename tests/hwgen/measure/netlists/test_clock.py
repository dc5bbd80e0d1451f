from pathlib import Path
from types import SimpleNamespace

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.clock import check_met, clock_period, default_period
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.search import choice as module
from hwgen.measure.search.choice import Choice, synthesised
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore

CELLS = reader.load(libraries.path("generic7"))


def test_the_default_clock_leaves_five_percent() -> None:
    assert default_period(4.41, 4.5) == 4.7
    assert default_period(0.09, 0.09) == 0.095
    assert default_period(19.1, 19.2) == 21


def test_the_default_clock_is_met_by_the_slowest_run() -> None:
    assert default_period(4.41, 5.01) == 5.1


def test_a_given_clock_names_what_is_too_slow_for_it() -> None:
    slowest = {("nvfp4", "core"): 4.3, ("mixfp4", "lane array"): 4.41, ("mixfp4", "core"): 4.2}
    check_met(4.41, slowest, "cells")
    message = r"^clock of 4 ns: the lane array of mixfp4 takes 4\.41 ns in its slowest run with cells; at least 4\.5 ns"
    with pytest.raises(InputError, match=message):
        check_met(4.0, slowest, "cells")


def test_a_period_for_a_path() -> None:
    assert clock_period(None, 4.41, "cells") == 4.7
    assert clock_period(5.0, 4.41, "cells") == 5.0
    with pytest.raises(InputError, match=r"clock of 4 ns: .* 4\.41 ns with cells; at least 4\.5 ns"):
        clock_period(4.0, 4.41, "cells")


@pytest.fixture
def designs() -> dict:
    pipeline = ("decoded", "sums", "terms", "aligned", "total", "normal")
    config = TensorCoreConfig("x", "mixfp4", "mixfp4", rows=1, columns=1, groups=1, pipeline=pipeline)
    return {("x", kind): Design(config, kind) for kind in (TensorCore, LaneArray)}


def test_the_lane_array_meets_the_clock_too(designs: dict, cache: Path) -> None:
    recipes = [RECIPES[name] for name in ("area", "speed")]
    slow = synthesised(designs, recipes, 3.5, 1, Flow(CELLS, cache, workers=1)).chosen["x", LaneArray]
    fast = synthesised(designs, recipes, 1.6, 1, Flow(CELLS, cache, workers=1)).chosen["x", LaneArray]
    assert (slow["lane_array"].name, fast["lane_array"].name) == ("area", "speed")
    refusal = r"clock of 1 ns: the \w+ of x takes 1\.\d+ ns .* at least 1\.\d ns would be met"
    with pytest.raises(InputError, match=refusal):
        synthesised(designs, recipes, 1.0, 1, Flow(CELLS, cache, workers=1))


def test_the_walk_goes_on_until_all_runs_meet_the_clock(designs: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    order = {"a": [RECIPES["area"], RECIPES["speed"]]}
    steps = [({"a": how}, delay) for how, delay in zip(order["a"], (4.9, 4.0), strict=True)]
    # The pilots meet the clock with the first recipe, another run does not.
    slowest = {"area": 5.1, "speed": 4.2}
    monkeypatch.setattr(module, "walk", lambda order, linked: iter(steps))
    monkeypatch.setattr(module, "_slowest", lambda design, chosen, *rest: {"core": slowest[chosen["a"].name]})
    choice = Choice(order["a"])
    flow = SimpleNamespace(library=CELLS)
    found = module._fast_enough(designs["x", TensorCore], order, 5.0, 16, flow, choice)
    assert found == ({"a": RECIPES["speed"]}, {"core": 4.2})
    # Where none does, the fastest says what would be met.
    found = module._fast_enough(designs["x", TensorCore], order, 4.1, 16, flow, choice)
    assert found == ({"a": RECIPES["speed"]}, {"core": 4.2})


def test_designs_that_differ_in_anything_have_syntheses_of_their_own(designs: dict) -> None:
    design = designs["x", TensorCore]
    for change in ({"rounding": "nearest_even"}, {"fraction_bits": 36}, {"a": "nvfp4"}):
        settings = {**design.config.as_dict(), **change}
        assert Design(TensorCoreConfig(**settings), TensorCore).key != design.key
