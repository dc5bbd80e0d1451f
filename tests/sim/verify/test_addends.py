"""C of special kinds, and beside sums."""

import numpy as np

from sim.verify.addends import SPECIAL, nearly_opposite, opposite
from sim.verify.bins import CLASSES
from sim.verify.kernels.rounding import kind


def test_special_ones_are_of_all_kinds():
    assert {kind(int(bits)) for bits in SPECIAL} == {*range(len(CLASSES))}


def test_opposite():
    sums = np.array([1.5, -2.0, 0.0, 1e300])
    assert opposite(sums).tolist() == [0xBFC00000, 0x40000000, 0x80000000, 0xFF800000]


def test_nearly_opposite_leaves_any_number_of_places():
    sums = np.full(4000, 1.9999998807907104)  # 24 ones
    left = sums + nearly_opposite(sums, np.random.default_rng(0)).view(np.float32)
    places = {int(place) for place in np.frexp(left[left != 0])[1]}
    assert {*range(-22, 2)} <= places
    assert 100 < (left == 0).sum() < 1000
