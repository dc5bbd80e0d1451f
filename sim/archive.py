"""The arrays of a .npz file that a user names, with an error of one line where it is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hwgen.errors import InputError
from sim import npz

__all__ = ["arrays"]


def arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a .npz file, by name.

    Raises
    ------
    InputError
        It is not there, a directory, or not readable as such a file.
    """
    if problem := npz.not_a_file(path):
        raise InputError(problem)
    try:
        return npz.arrays(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable .npz file: {error}") from None
