"""Steiner lengths against the shortest trees, found by dynamic programming over the Hanan grid."""

import numpy as np
import pytest

from hwgen.layout.steiner import steiner_lengths


def shortest(points):
    """Length of the shortest rectilinear Steiner tree (Dreyfus and Wagner over the Hanan grid)."""
    grid = np.array([(x, y) for x in np.unique(points[:, 0]) for y in np.unique(points[:, 1])])
    distance = np.abs(grid[:, None] - grid[None]).sum(axis=2)
    terminal = [int(np.flatnonzero((grid == point).all(axis=1))[0]) for point in points]
    best = {1 << i: distance[place] for i, place in enumerate(terminal[:-1])}
    for subset in range(1, 1 << (len(points) - 1)):
        if subset in best:
            continue
        joined = np.full(len(grid), np.inf)
        part = (subset - 1) & subset
        while part:
            joined = np.minimum(joined, best[part] + best[subset ^ part])
            part = (part - 1) & subset
        best[subset] = (joined[None] + distance).min(axis=1)
    return best[(1 << (len(points) - 1)) - 1][terminal[-1]]


def length(points):
    return steiner_lengths(np.array([0, len(points)]), points[:, 0], points[:, 1])[0][0]


@pytest.mark.parametrize("pins", [2, 3, 4, 5, 6, 7, 8])
def test_near_the_shortest(pins):
    random = np.random.default_rng(pins)
    ratios = []
    for _ in range(40):
        points = random.random((pins, 2))
        ratios.append(length(points) / shortest(points))
    assert min(ratios) > 1 - 1e-9
    assert np.mean(ratios) < (1 + 1e-9 if pins < 4 else 1.02)


def test_known_trees():
    cross = np.array([(0, 1), (2, 1), (1, 0), (1, 2)], float)
    assert length(cross) == 4
    comb = np.array([(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)], float)
    assert length(comb) == 5
    same = np.ones((5, 2))
    assert length(same) == 0


def test_way_is_that_of_the_farthest_pin():
    # From (0, 0) straight to the right, with a branch.
    x, y = np.array([0.0, 5.0, 9.0, 5.0]), np.array([0.0, 0.0, 0.0, 3.0])
    lengths, ways = steiner_lengths(np.array([0, 4, 4, 4]), x, y)
    assert lengths.tolist() == [12, 0, 0]
    assert ways.tolist() == [9, 0, 0]
    lengths, ways = steiner_lengths(np.array([0, 3]), x[[1, 0, 2]], y[[1, 0, 2]])
    assert (lengths[0], ways[0]) == (9, 5)


def test_large_nets_are_spanning_trees():
    random = np.random.default_rng(1)
    x, y = random.random((2, 100))
    many, way = steiner_lengths(np.array([0, 100]), x, y)
    few, _ = steiner_lengths(np.array([0, 60]), x, y)
    assert few[0] < many[0] < 1.0 * np.sqrt(100)
    assert way[0] >= (np.abs(x - x[0]) + np.abs(y - y[0])).max() - 1e-12
