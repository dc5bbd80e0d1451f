"""Global placement: little overlap, short nets, obstacles kept free."""

from dataclasses import replace

import numpy as np
import pytest

from hwgen.layout.legal import legalise
from hwgen.layout.place import begun
from hwgen.layout.spread import OVERFLOW, spread


def crowding(problem, x, y, density, bins=8):
    """Share of the cells' area above the density, over a coarse grid."""
    area = problem.width * problem.rows.height
    wide, high = problem.rows.die
    found, _, _ = np.histogram2d(x, y, bins=bins, range=[[0, wide], [0, high]], weights=area)
    return np.clip(found - density * wide * high / bins**2, 0, None).sum() / area.sum()


@pytest.mark.parametrize("density", [0.7, 1.0])
def test_spread(grid_problem, density):
    problem = grid_problem
    x, y = spread(problem, *begun(problem, 1), density=density, seed=1)
    half = problem.width / 2
    assert crowding(problem, x, y, density) < OVERFLOW
    assert (x >= half - 1e-9).all()
    assert (x <= problem.rows.die[0] - half + 1e-9).all()
    # The placement that it was made from, a pitch of 80/24 by 56/24, has this length.
    known = 24 * 80 + 23 * 24 * 56 / 24
    assert problem.wirelength(x - half, y - 1) < 1.15 * known


def test_obstacles_stay_free(grid_problem):
    rows = grid_problem.rows
    blocked = (rows.bottom > 9) & (rows.bottom < 15)
    pieces = replace(rows, bottom=rows.bottom[~blocked], first=rows.first[~blocked], last=rows.last[~blocked])
    problem = replace(grid_problem, rows=pieces)
    _, y = spread(problem, *begun(problem, 1), density=1.0, seed=1)
    inside = (y > 22) & (y < 28)
    assert inside.mean() < 0.05


def test_most_of_the_die_may_be_without_rows(grid_problem):
    """As between the elements of an array: bins are larger than cells there, and cells find the rows all the same."""
    rows = grid_problem.rows
    wide, high = rows.die
    apart = replace(rows, die=(wide, 3 * high), bottom=3 * rows.bottom)
    problem = replace(grid_problem, rows=apart)
    x, y = spread(problem, *begun(problem, 1), density=0.9, seed=1)
    assert crowding(problem, x, y, 0.9 / 3, bins=4) < OVERFLOW
    piece, site = legalise(problem.width, apart, x - problem.width / 2, y - rows.height / 2)
    moved = np.hypot(site * rows.site + problem.width / 2 - x, (apart.bottom[piece] + 0.5) * rows.height - y)
    assert moved.mean() < 1.5 * 3 * rows.height


def test_deterministic(grid_problem):
    first = spread(grid_problem, *begun(grid_problem, 2), density=0.9, seed=2)
    again = spread(grid_problem, *begun(grid_problem, 2), density=0.9, seed=2)
    other = spread(grid_problem, *begun(grid_problem, 3), density=0.9, seed=3)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
