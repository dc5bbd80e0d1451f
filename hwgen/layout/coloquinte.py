"""Coloquinte, the placer inside Coriolis, as an alternative to our own (extra ``place``).

It prints from C++ to file descriptor 1, so it runs in a process of its own, which reads a problem from one file and
writes places to another. Its coordinates are whole numbers and it knows no sites: so a unit is a site, and a row's
height is taken as a whole number of sites, which is 2 % off at most in the libraries that we know.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from hwgen.errors import InputError, ToolError
from hwgen.layout.problem import Problem

__all__ = ["is_installed", "place"]

_EFFORT = 3
_TIME_LIMIT = 3600.0


def is_installed() -> bool:
    """Whether the package is there."""
    return importlib.util.find_spec("coloquinte") is not None


def place(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Place cells with Coloquinte; a net counts by the mean of its weights along x and y.

    Parameters
    ----------
    problem
        Cells, nets and rows.
    seed
        The same seed gives the same placement.

    Returns
    -------
    x, y
        Shape (n_cells,): lower left corners, um; legal.

    Raises
    ------
    InputError
        It is not installed.
    ToolError
        It failed.
    """
    if not is_installed():
        raise InputError(
            "placer 'coloquinte': is not installed; pip install '.[place]' in the checkout (CPython 3.10 to 3.12 on"
            " Linux x86-64), or take 'embedded'"
        )
    rows = problem.rows
    high = max(round(rows.height / rows.site), 1)
    across, up = 1 / rows.site, high / rows.height
    with tempfile.TemporaryDirectory() as directory:
        given, made = Path(directory) / "problem.npz", Path(directory) / "places.npz"
        np.savez(
            given,
            width=np.rint(problem.width * across).astype(np.int64),
            height=high,
            net_start=problem.net_start,
            pin_cell=problem.pin_cell,
            pin_x=np.rint(problem.pin_x * across).astype(np.int64),
            pin_y=np.rint(problem.pin_y * up).astype(np.int64),
            bottom=rows.bottom,
            first=rows.first,
            last=rows.last,
            weight=problem.along.mean(axis=1),
            seed=seed,
            effort=_EFFORT,
        )
        command = [sys.executable, "-m", "hwgen.layout.coloquinte_process", str(given), str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False)
        except subprocess.TimeoutExpired:
            raise ToolError(f"coloquinte: not done after {_TIME_LIMIT:g} s") from None
        if done.returncode or not made.exists():
            said = done.stderr.strip().splitlines()[-1:] or ["no word"]
            raise ToolError(f"coloquinte: ended with status {done.returncode}: {said[0]}")
        with np.load(made) as places:
            site, row = places["x"], np.rint(places["y"] / high)
    return site * rows.site, row * rows.height
