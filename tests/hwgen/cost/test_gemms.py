import numpy as np
import pytest

from hwgen.cost.gemms import Gemms
from hwgen.errors import InputError


def test_shapes_broadcast():
    gemms = Gemms([1, 2, 3], 4, [5, 6, 7])
    assert len(gemms) == 3
    assert gemms.macs.tolist() == [20, 48, 84]
    assert Gemms.of([(1, 4, 5, 2), (2, 4, 6, 1)]).macs.tolist() == [40, 48]
    assert len(Gemms.of([])) == 0


def test_large_work_is_counted_exactly():
    gemms = Gemms(1 << 20, 1 << 20, 1 << 20, 3)
    assert gemms.macs.tolist() == [3 << 60]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 1, 1), "m = 0: must be at least 1"),
        ((1, [3, -2], 1), "GEMM 1: n = -2"),
        ((1, 1, 1.5), "k: must be whole numbers"),
        ((1, 1, [[1]]), "m: must be whole numbers in one dimension"),
        ((1 << 21, 1 << 21, 1 << 20), r"2\^62"),
    ],
)
def test_bad_shapes_are_named(shape, message):
    with pytest.raises(InputError, match=message):
        Gemms(*shape)


def test_arrays_are_not_those_given():
    given = np.array([1, 2], np.int32)
    assert Gemms(given, 1, 1).m.dtype == np.int64
