"""The Pareto front."""

import itertools

import numpy as np

from hwgen.report.pareto import front


def test_what_is_neither_cheaper_nor_better_is_not_on_the_front() -> None:
    points = {"cheap": (1.0, 1.0), "beaten": (3.0, 1.5), "good": (2.0, 2.0), "best": (4.0, 3.0)}
    assert front(points) == ["cheap", "good", "best"]
    assert front({}) == []


def test_of_equal_cost_the_better_one_counts() -> None:
    assert front({"worse": (1.0, 1.0), "better": (1.0, 2.0), "dearer": (2.0, 2.0)}) == ["better"]


def test_the_front_is_that_of_the_definition() -> None:
    generator = np.random.default_rng(1)
    for count in range(1, 12):
        points = {
            str(place): (float(cost), float(worth)) for place, (cost, worth) in enumerate(generator.random((count, 2)))
        }
        beaten = {
            one
            for one, other in itertools.permutations(points, 2)
            if points[other][0] <= points[one][0] and points[other][1] >= points[one][1]
        }
        assert set(front(points)) == set(points) - beaten
