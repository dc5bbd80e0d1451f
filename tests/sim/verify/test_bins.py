"""Groups of bins, in words."""

import dataclasses

import numpy as np

from hwgen.formats import BLOCK_FORMATS
from sim.verify.bins import CLASSES, Goals, kinds_of_scales, numbers, results


def test_labels():
    goal = Goals("pairs", (("A", numbers(range(2), "more")), ("", ("x", "y"))), np.ones((3, 2), bool))
    assert goal.label((2, 0)) == "A more, x"
    counts = np.array([[1, 0], [2, 3], [4, 5]])
    assert goal.missed(counts) == ["A 0, y"]
    assert dataclasses.replace(goal, reachable=counts > 0, reason="never").missed(counts * 0)[0] == "A 0, x"


def test_results_have_one_nan_and_one_zero():
    kinds = [kind for kind, may_be in zip(CLASSES, results(), strict=True) if may_be]
    assert [kind for kind in kinds if kind.endswith(("0", "NaN"))] == ["+0", "+quiet NaN"]
    assert len(kinds) == 10


def test_kinds_of_scales():
    assert len(kinds_of_scales(BLOCK_FORMATS["nvfp4"])) == 6
    assert kinds_of_scales(BLOCK_FORMATS["mxfp4"]) == ("finite", "zero", "NaN")
