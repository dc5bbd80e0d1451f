"""Coloquinte, where it is installed; a clear word where it is not."""

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.layout import coloquinte
from hwgen.layout.legal import faults
from hwgen.layout.place import place


def test_not_installed(monkeypatch, grid_problem):
    monkeypatch.setattr(coloquinte, "is_installed", lambda: False)
    with pytest.raises(InputError, match=r"pip install '\.\[place\]' in the checkout"):
        coloquinte.place(grid_problem, 1)


@pytest.mark.skipif(not coloquinte.is_installed(), reason="no coloquinte")
def test_legal_and_ours_is_no_longer(grid_problem):
    places = {name: place(grid_problem, placer=name, density=1.0, seed=1) for name in ("coloquinte", "embedded")}
    for x, y in places.values():
        assert faults(grid_problem.width, grid_problem.rows, x, y) == []
    length = {name: grid_problem.wirelength(*found) for name, found in places.items()}
    assert length["embedded"] < 1.1 * length["coloquinte"]
    again = place(grid_problem, placer="coloquinte", density=1.0, seed=1)
    assert np.array_equal(again, places["coloquinte"])
