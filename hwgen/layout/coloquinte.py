"""Coloquinte, the placer inside Coriolis, as an alternative to our own (extra ``place``).

It prints from C++ to file descriptor 1, so it runs in a process of its own, which reads a problem from one file and
writes places to another. Its coordinates are whole numbers, ours in twentieths of a site.
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

_UNITS_PER_SITE = 20
_EFFORT = 3
_TIME_LIMIT = 3600.0


def is_installed() -> bool:
    """Whether the package is there."""
    return importlib.util.find_spec("coloquinte") is not None


def place(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Place cells with Coloquinte; it knows no weights of nets along an axis.

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
            "placer 'coloquinte': is not installed; pip install 'hwgen[place]' (CPython 3.10 to 3.12 on Linux x86-64),"
            " or take 'embedded'"
        )
    rows = problem.rows
    unit = rows.site / _UNITS_PER_SITE
    with tempfile.TemporaryDirectory() as directory:
        given, made = Path(directory) / "problem.npz", Path(directory) / "places.npz"
        np.savez(
            given,
            width=np.rint(problem.width / unit).astype(np.int64),
            height=round(rows.height / unit),
            net_start=problem.net_start,
            pin_cell=problem.pin_cell,
            pin_x=np.rint(problem.pin_x / unit).astype(np.int64),
            pin_y=np.rint(problem.pin_y / unit).astype(np.int64),
            bottom=rows.bottom,
            first=rows.first * _UNITS_PER_SITE,
            last=rows.last * _UNITS_PER_SITE,
            seed=seed,
            effort=_EFFORT,
        )
        command = [sys.executable, str(Path(__file__).with_name("coloquinte_process.py")), str(given), str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False)
        except subprocess.TimeoutExpired:
            raise ToolError(f"coloquinte: not done after {_TIME_LIMIT:g} s") from None
        if done.returncode or not made.exists():
            said = done.stderr.strip().splitlines()[-1:] or ["no word"]
            raise ToolError(f"coloquinte: ended with status {done.returncode}: {said[0]}")
        with np.load(made) as places:
            site = np.rint(places["x"] / _UNITS_PER_SITE)
            row = np.rint(places["y"] * unit / rows.height)
    return site * rows.site, row * rows.height
