"""Dies and ports."""

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.layout.floorplan import die_of, edge_places, port_places
from hwgen.layout.technology import TECHNOLOGIES

SKY130 = TECHNOLOGIES["sky130_fd_sc_hd"]


@pytest.mark.parametrize(("utilisation", "aspect"), [(0.7, 1.0), (0.5, 1.0), (0.8, 2.0), (1.0, 1.0)])
def test_die(utilisation, aspect):
    width = np.full(4000, 10) * SKY130.site
    rows = die_of(width, SKY130, utilisation, aspect)
    filled = width.sum() * SKY130.row_height / rows.area
    assert utilisation * 0.98 < filled <= utilisation + 1e-9
    assert rows.die[1] / rows.die[0] == pytest.approx(aspect, rel=0.03)
    assert rows.area == pytest.approx(rows.die[0] * rows.die[1])


def test_a_cell_wider_than_a_square_die():
    rows = die_of(np.array([100 * SKY130.site]), SKY130)
    assert rows.die[0] >= 100 * SKY130.site


@pytest.mark.parametrize("utilisation", [0.0, 1.01, float("nan")])
def test_bad_utilisation(utilisation):
    with pytest.raises(InputError, match="utilisation"):
        die_of(np.ones(3), SKY130, utilisation)


def test_edge():
    x, y = edge_places((4.0, 2.0), np.array([0, 1, 5, 7, 11, 13]))
    assert x.tolist() == [0, 1, 4, 3, 0, 1]
    assert y.tolist() == [0, 0, 1, 2, 1, 0]


def test_ports_are_near_where_they_are_wanted():
    random = np.random.default_rng(1)
    wanted = random.random((2, 200)) * np.array([[40.0], [30.0]])
    x, y = port_places((40.0, 30.0), *wanted)
    on_edge = (x == 0) | (x == 40) | (y == 0) | (y == 30)
    assert on_edge.all()
    assert len({(a, b) for a, b in zip(x, y, strict=True)}) == 200
    away = np.abs(x - wanted[0]) + np.abs(y - wanted[1])
    at_random = np.abs(random.permutation(x) - wanted[0]) + np.abs(random.permutation(y) - wanted[1])
    assert away.mean() < 0.4 * at_random.mean()
    assert [len(values) for values in port_places((1.0, 1.0), np.zeros(0), np.zeros(0))] == [0, 0]
