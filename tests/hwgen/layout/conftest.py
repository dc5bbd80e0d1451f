"""Problems to place."""

import numpy as np
import pytest

from hwgen.layout.problem import Problem, Rows


@pytest.fixture(scope="session")
def grid_problem():
    """Cells that a known placement joins by short nets: a square of 24 by 24, each with its right and upper
    neighbour, and fixed pins at the left and the right edge."""
    side, height, site = 24, 2.0, 0.5
    rng = np.random.default_rng(3)
    names = rng.permutation(side * side).reshape(side, side)
    nets = [(names[i, j], names[i + 1, j]) for i in range(side - 1) for j in range(side)]
    nets += [(names[i, j], names[i, j + 1]) for i in range(side) for j in range(side - 1)]
    die = (80.0, 56.0)
    cell = [pin for net in nets for pin in net]
    x, y = [0.0] * len(cell), [0.0] * len(cell)
    for j in range(side):
        for at, edge in ((names[0, j], 0.0), (names[-1, j], die[0])):
            cell += [at, -1]
            x += [0.0, edge]
            y += [0.0, (j + 0.5) * die[1] / side]
    start = np.arange(0, len(cell) + 1, 2)
    rows = Rows(height, site, die, np.arange(28), np.zeros(28, int), np.full(28, 160))
    return Problem(
        np.full(side * side, 4 * site),
        rows,
        start,
        np.array(cell),
        np.array(x),
        np.array(y),
        np.ones((len(start) - 1, 2)),
    )
