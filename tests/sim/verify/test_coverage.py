"""What a report says of coverage."""

import numpy as np

from sim.verify.bins import Goals
from sim.verify.coverage import complete, empty, figures, impossible, missed

WANTED = {"g": Goals("g", (("of", ("a", "b", "c")),), np.array([True, True, False]), "c never is")}


def test_no_event():
    counts = empty(WANTED)
    assert not complete(WANTED, counts)
    assert missed(WANTED, counts) == ["g: of a", "g: of b"]
    assert not impossible(WANTED, counts)


def test_some_events():
    counts = {"g": np.array([3, 0, 2])}
    assert not complete(WANTED, counts)
    assert missed(WANTED, counts) == ["g: of b"]
    assert impossible(WANTED, counts) == ["g: of c"]
    found = figures(WANTED, counts)["g"]
    assert (found["goals"], found["hit"], found["events"], found["fewest"], found["excluded"]) == (2, 1, 5, 0, 1)
    assert found["counts"] == [3, 0, 2]
    assert found["axes"] == [{"name": "of", "labels": ["a", "b", "c"]}]


def test_all_goals():
    assert complete(WANTED, {"g": np.array([1, 1, 0])})
