import numpy as np
import pytest

from hwgen.layout.search import first_from


@pytest.mark.parametrize("least", [-1, 0, 3, 3.5, 4, 9, 10])
def test_it_finds_what_numpy_finds(least: float) -> None:
    values = np.array([9, 0, 3, 3, 4, 9, 1])
    assert first_from(values, 1, 6, least) == 1 + np.searchsorted(values[1:6], least)
    assert first_from(values, 2, 2, least) == 2
