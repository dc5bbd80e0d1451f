"""Placers: from a problem to legal places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from hwgen.errors import InputError
from hwgen.layout import coloquinte
from hwgen.layout.detail import improve
from hwgen.layout.legal import legalise
from hwgen.layout.problem import Problem
from hwgen.layout.spread import spread

__all__ = ["PLACERS", "begun", "place", "rough"]

_ROUGH = 0.4
_ROUGH_GROWTH = 1.1
_SWEEPS = 40
_NOISE = 0.01

_Places = tuple[np.ndarray, np.ndarray]


def place(problem: Problem, *, placer: str, density: float, seed: int) -> _Places:
    """Place cells.

    Parameters
    ----------
    problem
        Cells, nets and rows.
    placer
        One of `PLACERS`.
    density
        How full rows may be anywhere.
    seed
        The same seed gives the same placement.

    Returns
    -------
    x, y
        Shape (n_cells,): lower left corners, um; legal.

    Raises
    ------
    InputError
        The cells do not fit, or the placer is not known or not installed.
    """
    if placer not in PLACERS:
        raise InputError(f"placer {placer!r}: must be one of {', '.join(PLACERS)}")
    filled = float(problem.width.sum()) * problem.rows.height
    if filled > problem.rows.area * (1 + 1e-9):
        raise InputError(f"cells of {filled:.0f} um2 do not fit into rows of {problem.rows.area:.0f} um2")
    if not problem.n_cells:
        return np.zeros(0), np.zeros(0)
    if filled > density * problem.rows.area:
        density = 1.0
    return PLACERS[placer](problem, density, seed)


def _embedded(problem: Problem, density: float, seed: int) -> _Places:
    """Our own placer."""
    x, y = spread(problem, *begun(problem, seed), density=density, seed=seed)
    rows = problem.rows
    piece, site = legalise(problem.width, rows, x - problem.width / 2, y - rows.height / 2)
    piece, site = improve(problem, piece, site)
    return site * rows.site, rows.bottom[piece] * rows.height


def _coloquinte(problem: Problem, density: float, seed: int) -> _Places:
    """The placer of Coriolis; it takes no density."""
    return coloquinte.place(problem, seed)


PLACERS: dict[str, Callable[[Problem, float, int], _Places]] = {
    "embedded": _embedded,
    "coloquinte": _coloquinte,
}
"""Placers by name."""


def begun(problem: Problem, seed: int) -> _Places:
    """Centres to begin with: each cell amid its nets, the middle of the die where no fixed pin pulls."""
    n = problem.n_cells
    random = np.random.default_rng(seed)
    size = np.diff(problem.net_start)
    net = np.repeat(np.arange(len(size)), size)
    used = (size[net] > 1) & (size[net] <= 64)
    cell = np.where(problem.pin_cell < 0, n, problem.pin_cell)
    movable = used & (cell < n)
    shape = (n, len(size))
    on = sparse.csr_matrix((np.ones(int(movable.sum())), (cell[movable], net[movable])), shape=shape)
    degree = np.maximum(np.asarray(on.sum(axis=1)).ravel(), 1.0)
    weight = 1.0 / np.maximum(size, 1)
    found = []
    for die, pin in zip(problem.rows.die, (problem.pin_x, problem.pin_y), strict=True):
        fixed = np.bincount(net[used & (cell == n)], pin[used & (cell == n)], minlength=len(size))
        place = np.full(n, die / 2)
        for _ in range(_SWEEPS if (used & (cell == n)).any() else 0):
            place = on @ ((on.T @ place + fixed) * weight) / degree
        place[np.asarray(on.sum(axis=1)).ravel() == 0] = die / 2
        found.append(np.clip(place + random.normal(size=n) * _NOISE * die, 0, die))
    return found[0], found[1]


def rough(problem: Problem, *, density: float, seed: int) -> _Places:
    """Centres of a placement that is not finished, good enough to say where ports should be."""
    if not problem.n_cells:
        return np.zeros(0), np.zeros(0)
    filled = float(problem.width.sum()) * problem.rows.height
    density = 1.0 if filled > density * problem.rows.area else density
    return spread(problem, *begun(problem, seed), density=density, seed=seed, overflow=_ROUGH, growth=_ROUGH_GROWTH)
