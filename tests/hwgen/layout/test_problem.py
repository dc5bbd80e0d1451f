"""Half perimeters, by hand."""

import numpy as np
import pytest

from hwgen.layout.problem import Problem, Rows, half_perimeters


def test_half_perimeters_with_empty_nets():
    across, up = half_perimeters(np.array([0, 0, 2, 2, 5, 5]), np.array([1.0, 4, 0, 7, 2]), np.array([0.0, 1, 5, 5, 9]))
    assert across.tolist() == [0, 3, 0, 7, 0]
    assert up.tolist() == [0, 1, 0, 4, 0]


def test_wirelength_weighs_axes():
    rows = Rows(2.0, 0.5, (10.0, 4.0), np.arange(2), np.zeros(2, int), np.full(2, 20))
    assert rows.area == 40
    start, cell = np.array([0, 2, 4]), np.array([0, 1, 0, -1])
    problem = Problem(
        np.array([1.0, 2.0]), rows, start, cell, np.array([0, 0.5, 0, 10.0]), np.zeros(4), np.array([[1.0, 1], [0, 3]])
    )
    x, y = np.array([0.0, 5.0]), np.array([0.0, 2.0])
    at_x, at_y = problem.pins(x, y)
    assert at_x.tolist() == [0.5, 6.5, 0.5, 10]
    assert at_y.tolist() == [1, 3, 1, 0]
    # 6 across and 2 up; and 1 up, three times.
    assert problem.wirelength(x, y) == pytest.approx(6 + 2 + 3)


def test_pulled():
    rows = Rows(2.0, 0.5, (10.0, 4.0), np.arange(2), np.zeros(2, int), np.full(2, 20))
    start, cell = np.array([0, 2]), np.array([0, 1])
    problem = Problem(np.array([1.0, 2.0]), rows, start, cell, np.zeros(2), np.zeros(2), np.ones((1, 2)))
    pulled = problem.pulled(np.array([1]), np.array([2.0]), np.array([3.0]), np.array([[0.5, 2.0]]))
    x, y = np.array([0.0, 5.0]), np.array([0.0, 0.0])
    # The centre of cell 1 is at (6, 1).
    assert pulled.wirelength(x, y) == pytest.approx(problem.wirelength(x, y) + 0.5 * 4 + 2 * 2)
    assert pulled.n_cells == 2
