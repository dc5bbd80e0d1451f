"""Detailed placement: legal before, legal and shorter after."""

import numpy as np

from hwgen.layout import detail
from hwgen.layout.detail import improve
from hwgen.layout.legal import faults, legalise
from hwgen.layout.problem import Problem, Rows


def length(problem, piece, site):
    return problem.wirelength(site * problem.rows.site, problem.rows.bottom[piece] * problem.rows.height)


def test_shorter_and_legal(grid_problem):
    problem = grid_problem
    random = np.random.default_rng(1)
    x, y = random.random(problem.n_cells) * 75, random.random(problem.n_cells) * 52
    piece, site = legalise(problem.width, problem.rows, x, y)
    before = piece.copy(), site.copy()
    new_piece, new_site = improve(problem, piece, site, passes=10)
    rows = problem.rows
    assert faults(problem.width, rows, new_site * rows.site, rows.bottom[new_piece] * rows.height) == []
    assert length(problem, new_piece, new_site) < 0.6 * length(problem, piece, site)
    assert np.array_equal(before, (piece, site))


def test_pieces_in_any_order():
    """Cells of three widths; rows in pieces, not sorted."""
    random = np.random.default_rng(2)
    pieces = [(row, 50 * part, 50 * part + 40) for row in range(6) for part in range(2)]
    bottom, first, last = random.permutation(np.array(pieces)).T
    rows = Rows(2.0, 0.5, (50.0, 12.0), bottom, first, last)
    width = random.choice([1.0, 2.0, 3.5], 90)
    cell = random.integers(0, 90, 240)
    problem = Problem(width, rows, np.arange(0, 241, 3), cell, np.zeros(240), np.zeros(240), np.ones((80, 2)))
    piece, site = legalise(width, rows, random.random(90) * 46, random.random(90) * 10)
    new_piece, new_site = improve(problem, piece, site)
    assert faults(width, rows, new_site * 0.5, rows.bottom[new_piece] * 2.0) == []
    assert length(problem, new_piece, new_site) < 0.9 * length(problem, piece, site)


def test_a_swap_by_hand():
    """Two cells in each other's place, in full rows: only a swap helps."""
    rows = Rows(2.0, 0.5, (4.0, 2.0), np.array([0]), np.array([0]), np.array([8]))
    width = np.full(4, 1.0)
    cell, x = np.array([0, -1, 3, -1, 1, -1, 2, -1]), np.array([0, 3.5, 0, 0.5, 0, 1.5, 0, 2.5])
    problem = Problem(width, rows, np.arange(0, 9, 2), cell, x, np.ones(8) * (cell < 0), np.ones((4, 2)))
    piece, site = improve(problem, np.zeros(4, int), np.array([0, 2, 4, 6]))
    assert site.tolist() == [6, 2, 4, 0]
    assert piece.tolist() == [0, 0, 0, 0]


def test_length_of_three_cells_nets():
    """As sums over all pins have it: three cells, at their places and at others; some nets have two of them, or all."""
    random = np.random.default_rng(4)
    rows = Rows(2.0, 0.5, (50.0, 12.0), np.arange(6), np.zeros(6, int), np.full(6, 100))
    cell = random.integers(-1, 8, 120)
    start = np.concatenate([[0], np.sort(random.choice(np.arange(1, 120), 30, replace=False)), [120]])
    at = random.random((2, 120)) * np.where(cell < 0, 50.0, 0.5)
    problem = Problem(np.full(8, 1.0), rows, start, cell, at[0], at[1], 1 + random.random((31, 2)))
    piece, site = np.arange(8) % 6, 10 * np.arange(8)
    nets, places = detail._nets(problem), detail._places(problem, piece, site, np.arange(6))
    cells, trio, last = np.array([1, 4, 6]), detail._trio(nets), np.zeros(3, int)
    detail._without(nets, places, cells, trio, last)
    for moved in (np.zeros(3), random.random(3) * 30):
        x, y = places.x.copy(), places.y
        x[cells] += moved
        expected = 0.0
        for one in cells:
            for net in range(31):
                pins = slice(start[net], start[net + 1])
                if one not in cell[pins] or start[net + 1] - start[net] < 2:
                    continue
                for axis, place in enumerate((x, y)):
                    found = at[axis, pins] + np.where(cell[pins] >= 0, place[cell[pins]], 0.0)
                    expected += problem.along[net, axis] * (found.max() - found.min())
        assert np.isclose(detail._length(trio, last, x[cells]), expected, rtol=1e-12)
