"""Placers as a whole."""

from dataclasses import replace

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.layout.legal import faults
from hwgen.layout.place import place, rough


@pytest.mark.parametrize("density", [0.65, 0.9])
def test_embedded(grid_problem, density):
    x, y = place(grid_problem, placer="embedded", density=density, seed=1)
    assert faults(grid_problem.width, grid_problem.rows, x, y) == []
    known = 24 * 80 + 23 * 24 * 56 / 24
    assert grid_problem.wirelength(x, y) < 1.35 * known


def test_deterministic(grid_problem):
    runs = [place(grid_problem, placer="embedded", density=0.9, seed=seed) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_rough_knows_the_neighbours(grid_problem):
    x, y = rough(grid_problem, density=0.9, seed=1)
    assert grid_problem.wirelength(x, y) < 0.3 * grid_problem.wirelength(
        *np.random.default_rng(1).permuted((x, y), axis=1)
    )


def test_refused(grid_problem):
    with pytest.raises(InputError, match="placer 'other': must be one of embedded, coloquinte"):
        place(grid_problem, placer="other", density=1.0, seed=1)
    wide = replace(grid_problem, width=grid_problem.width * 5)
    with pytest.raises(InputError, match="do not fit"):
        place(wide, placer="embedded", density=1.0, seed=1)


def test_nothing_to_place(grid_problem):
    empty = replace(grid_problem, width=np.zeros(0), net_start=np.zeros(1, int), pin_cell=np.zeros(0, int))
    assert [len(values) for values in place(empty, placer="embedded", density=1.0, seed=1)] == [0, 0]
