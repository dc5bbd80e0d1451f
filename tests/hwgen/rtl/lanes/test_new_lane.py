"""A micro-architecture is added by a class and two entries: the worked example of docs/how-to/add-a-lane.md."""

import re
from pathlib import Path

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.config.dots import DOTS
from hwgen.errors import InputError
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.lanes import LANES
from sim import golden
from sim.engines import AmaranthEngine
from sim.random import random_steps

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "add-a-lane.md"


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> TensorCoreConfig:
    """The configuration of the page, with its lanes known for the time of a test."""
    for table in (LANES, DOTS):
        monkeypatch.setitem(table, "quarter-squares", None)  # so that the page's own entry is taken back
    found: dict[str, object] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, found)
    config = found["config"]
    assert isinstance(config, TensorCoreConfig)
    return config


def test_every_pair_of_codes_in_the_first_lane(config, evaluate):
    tables = [np.array(golden.block_format(form.name).elements[0].integers) for form in config.formats]
    cases = [(a, b) for a in range(16) for b in range(16)]
    stimuli = [{"a_codes": a, "b_codes": b, "a_tag": 0} for a, b in cases]
    for (a, b), outputs in zip(cases, evaluate(LaneArray(config), stimuli), strict=True):
        assert outputs["sum"] == tables[0][a] * tables[1][b], (a, b)


@pytest.mark.parametrize("pipeline", [("decoded",), ("decoded", "tree", "terms")])
def test_random_steps(config, pipeline):
    core = TensorCoreConfig("squares", *config.formats, 1, 1, 1, dot=config.dot, pipeline=pipeline)
    steps = random_steps(core, 40, np.random.default_rng(1))
    np.testing.assert_array_equal(AmaranthEngine(core).run(steps).results, steps.expected())


def test_what_it_cannot_multiply_is_refused(config):
    with pytest.raises(InputError, match="table of squares"):
        TensorCoreConfig("x", "int8", "int8", 1, 1, 1, dot="quarter-squares", fraction_bits=35)
