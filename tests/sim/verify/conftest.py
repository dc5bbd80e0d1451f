"""Engines that need no simulation, and those that do."""

import functools

import numpy as np
import pytest

from sim.engines import CompiledEngine, Run, always, available


class Oracle:
    """Answers what the golden model says, in no time."""

    name = "oracle"

    def __init__(self, config):
        self.config = config

    def run(self, steps, *, offer=always, supply=always, take=always, progress=lambda done: None):
        none = np.full(int(steps.first.sum()), -1)
        return Run(steps.expected(), len(steps), np.zeros((2,) * 6, np.int64), np.arange(len(steps)), none)


class Wrong(Oracle):
    """As the oracle, but one bit of a result is wrong where two codes meet in a lane, and a scale has a tag.

    Results of the same slot are wrong until a tile begins, as they are where an accumulator has gone wrong.
    """

    name = "wrong"
    runs = 0

    def run(self, steps, **streams):
        self.runs += 1
        run = super().run(steps, **streams)
        hit = (steps.a_codes[:, 1, 5] == 3) & (steps.b_codes[:, 0, 5] == 13) & (steps.b_scales[:, 0, 0] >= 0x80)
        turns = steps.config.interleave
        for index in range(turns, len(steps)):
            hit[index] |= hit[index - turns] and not steps.first[index]
        run.results[hit[steps.last], 1, 0] ^= 4
        return run


@pytest.fixture(scope="session")
def compiled():
    """The compiled engine of a configuration."""
    if not available():
        pytest.skip("no C++ compiler: set CXX, or put c++, g++ or clang++ on PATH")
    return functools.cache(CompiledEngine)


@pytest.fixture
def oracle():
    return Oracle


@pytest.fixture
def wrong():
    return Wrong
