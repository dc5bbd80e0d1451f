"""Legalisation, and the check of legality with planted faults."""

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.layout.legal import faults, legalise
from hwgen.layout.problem import Rows

SITE, HEIGHT = 0.5, 2.0


def rows_of(pieces, die):
    bottom, first, last = np.array(pieces).T
    return Rows(HEIGHT, SITE, die, bottom, first, last)


@pytest.fixture
def rows():
    """Ten rows of 100 sites; the fourth is in two pieces."""
    pieces = [(row, 0, 100) for row in range(10) if row != 3] + [(3, 60, 100), (3, 0, 40)]
    return rows_of(pieces, (50.0, 20.0))


def placed(rows, piece, site):
    return site * rows.site, rows.bottom[piece] * rows.height


@pytest.mark.parametrize("filled", [0.3, 0.7, 0.97])
def test_legal_and_near(rows, filled):
    random = np.random.default_rng(1)
    width = random.integers(2, 9, 1000) * SITE
    width = width[np.cumsum(width) * HEIGHT < filled * rows.area]
    x, y = random.random(len(width)) * 45, random.random(len(width)) * 18
    piece, site = legalise(width, rows, x, y)
    at_x, at_y = placed(rows, piece, site)
    assert faults(width, rows, at_x, at_y) == []
    moved = np.abs(at_x - x) + np.abs(at_y - y)
    assert moved.mean() < (2.5 if filled < 0.9 else 6)


def test_legal_places_stay(rows):
    width = np.full(6, 2.0)
    x, y = np.array([0.0, 2.0, 4.0, 30.0, 48.0, 48.0]), np.array([0.0, 0, 0, 6, 8, 10])
    piece, site = legalise(width, rows, x, y)
    assert np.allclose(placed(rows, piece, site), (x, y))


@pytest.mark.parametrize("seed", range(4))
def test_a_cell_goes_to_the_nearest_gap(seed):
    """One cell at a time into rows of many gaps, some too narrow: no gap is nearer than the one it takes."""
    random = np.random.default_rng(seed)
    cuts = [np.sort(random.choice(200, 60, replace=False)).reshape(-1, 2) for _ in range(6)]
    pieces = np.array([(row, *gap) for row, gaps in enumerate(cuts) for gap in gaps])
    rows = rows_of(random.permutation(pieces), (100.0, 12.0))
    fits = rows.last - rows.first >= 3
    for x, y in zip(random.random(50) * 98, random.random(50) * 10, strict=True):
        piece, site = legalise(np.full(1, 1.5), rows, np.array([x]), np.array([y]))
        nearest = np.clip(x / SITE, rows.first, np.maximum(rows.last - 3, rows.first)) * SITE
        moves = np.hypot(nearest - x, rows.bottom * HEIGHT - y)[fits]
        assert moves.min() == pytest.approx(np.hypot(nearest[piece[0]] - x, rows.bottom[piece[0]] * HEIGHT - y))
        assert abs(site[0] * SITE - nearest[piece[0]]) <= 0.5 * SITE + 1e-9


def test_a_crowd_is_spread_evenly():
    """Ten cells that want the same place in the only row stand side by side, the crowd's middle there."""
    rows = rows_of([(0, 0, 100)], (50.0, 2.0))
    piece, site = legalise(np.full(10, 1.0), rows, np.full(10, 24.5), np.zeros(10))
    assert sorted(site.tolist()) == list(range(40, 60, 2))
    assert set(piece.tolist()) == {0}


def test_no_room():
    rows = rows_of([(0, 0, 10)], (5.0, 2.0))
    with pytest.raises(InputError, match="1 of 3 cells find no room"):
        legalise(np.full(3, 2.0), rows, np.zeros(3), np.zeros(3))


def test_planted_faults(rows):
    width = np.array([2.0, 2.0, 2.0])
    x, y = np.array([0.0, 2.0, 40.0]), np.array([0.0, 0.0, 6.0])
    assert faults(width, rows, x, y) == []

    def planted(axis, cell, value):
        places = np.stack([x, y])
        places[axis, cell] = value
        return faults(width, rows, *places)

    assert planted(0, 1, 1.5) == ["1 cells over the cell to their left, such as cell 1"]
    assert planted(0, 1, 2.25) == ["1 cells off the sites, such as cell 1"]
    assert planted(1, 2, 7.0)[0] == "1 cells off the rows, such as cell 2"
    assert planted(0, 2, 18.5) == ["1 cells beyond the ends of their rows, such as cell 2"]
    assert planted(0, 0, -0.5)[0] == "1 cells outside the die, such as cell 0"
    assert planted(0, 2, 48.5)[0] == "1 cells outside the die, such as cell 2"
    assert planted(1, 2, 20.0)[0] == "1 cells outside the die, such as cell 2"
