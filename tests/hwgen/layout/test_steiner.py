"""Steiner lengths against the shortest trees, found by dynamic programming over the Hanan grid."""

import numpy as np
import pytest

from hwgen.layout.steiner import steiner_lengths, steiner_tree


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


def elmore(points, parent, pins, pin):
    """Greatest Elmore delay over half of the wire and all pins, from the definition: way shared times load."""
    edges = {i: np.abs(points[i] - points[parent[i]]).sum() for i in range(len(points)) if parent[i] >= 0}

    def way(i):
        return {i, *way(parent[i])} if parent[i] >= 0 else set()

    total = sum(edges.values())
    delays = []
    for sink in range(1, pins):
        mine = way(sink)
        wire = sum(
            edge * (sum(edges[e] for e in mine & way(i) - {i}) + (edge / 2 if i in mine else 0))
            for i, edge in edges.items()
        )
        delays.append(wire + sum(pin * sum(edges[e] for e in mine & way(i)) for i in range(1, pins)))
    return max(delays) / (total / 2 + pin * (pins - 1))


@pytest.mark.parametrize("pin", [0.0, 0.3, 5.0])
def test_way_has_the_delay_of_the_tree(pin):
    # From (0, 0) straight to the right, with a branch upward.
    points = np.array([(0.0, 0.0), (9.0, 0.0), (5.0, 3.0), (5.0, 0.0)])
    length, way = steiner_lengths(np.array([0, 3, 3]), *points[:3].T, pin)
    assert length.tolist() == [12, 0]
    assert way[0] == pytest.approx(elmore(points, [-1, 3, 3, 0], 3, pin))
    assert way[1] == 0
    # The same with a pin where the branch begins.
    four = points[[0, 3, 1, 2]]
    length, way = steiner_lengths(np.array([0, 4]), *four.T, pin)
    assert (length[0], way[0]) == (12, pytest.approx(elmore(four, [-1, 0, 1, 1], 4, pin)))
    # Two arms: each waits for its own wire only.
    length, way = steiner_lengths(np.array([0, 3]), np.array([0.0, -4, 4]), np.zeros(3), pin)
    assert (length[0], way[0]) == (8, pytest.approx((8 + 4 * pin) / (4 + 2 * pin)))


def test_way_of_two_pins_is_the_wire():
    length, way = steiner_lengths(np.array([0, 2]), np.array([1.0, 4.0]), np.array([7.0, 2.0]), 0.7)
    assert (length[0], way[0]) == (8, 8)


def test_large_nets_are_spanning_trees():
    random = np.random.default_rng(1)
    x, y = random.random((2, 100))
    many, way = steiner_lengths(np.array([0, 100]), x, y, 1.0)
    few, _ = steiner_lengths(np.array([0, 60]), x, y)
    assert few[0] < many[0] < 1.0 * np.sqrt(100)
    assert 0 < way[0] < many[0]


@pytest.mark.parametrize("pins", [1, 2, 3, 9, 65, 100])
def test_more_wire_for_shorter_ways(pins):
    """From the shortest tree, or the shortest over pins alone, to one with a shortest way to every pin."""
    places = np.random.default_rng(pins).random((2, pins))
    lengths, longest = [], []
    for directness in (0.0, 0.3, 1.0):
        x, y, parent = steiner_tree(*places, directness)
        points = np.column_stack([x, y])
        np.testing.assert_array_equal(points[:pins], places.T)
        edges = np.abs(points - points[parent]).sum(axis=1) * (parent >= 0)
        ways = np.zeros(len(points))
        for point in range(len(points)):
            at, steps = point, 0
            while at != 0:
                ways[point] += edges[at]
                at, steps = parent[at], steps + 1
                assert steps <= len(points)
        lengths.append(edges.sum())
        longest.append(ways[:pins].max())
    least = np.abs(places - places[:, :1]).sum(axis=0)
    np.testing.assert_allclose(ways[:pins], least)
    assert lengths[2] <= least.sum() + 1e-9
    assert longest[1] <= longest[0] + 1e-9
    if pins >= 65:
        assert longest[2] < longest[1] < 0.8 * longest[0]
        # Branches that run side by side are one.
        assert lengths[1] < 1.1 * lengths[0] < lengths[2] < 0.5 * least.sum()
