"""Reading .npz files: a ZIP archive of arrays. Nothing in a file is executed."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrays", "not_a_file", "reason"]

_SUFFIX = ".npy"


def arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a .npz file by name.

    Raises
    ------
    OSError
        The file cannot be opened.
    ValueError
        It is no .npz file, or an array in it cannot be read; the message is the reason.
    """
    # Not by np.load: it takes any file and guesses what it is, and advises to allow what should not be.
    with path.open("rb") as stream:
        if not zipfile.is_zipfile(stream):
            raise ValueError("not an .npz file")
        member = ""
        try:
            found = {}
            with zipfile.ZipFile(stream) as archive:
                for member in archive.namelist():
                    if member.endswith(_SUFFIX):
                        with archive.open(member) as array:
                            found[member[: -len(_SUFFIX)]] = np.lib.format.read_array(array, allow_pickle=False)
            return found
        except Exception as error:  # a damaged header can raise anything Python's tokenizer can
            where = f"array {member[: -len(_SUFFIX)]!r}: " if member else ""
            raise ValueError(where + reason(error)) from None


def reason(error: BaseException) -> str:
    """Why numpy cannot read an array, in one line."""
    if "pickle" in str(error):
        return "holds Python objects; must hold numbers"
    return " ".join(str(error).split())


def not_a_file(path: Path) -> str | None:
    """Why a path cannot be read as a file, in words; None if there is one."""
    if path.is_dir():
        return f"{path}: is a directory"
    return None if path.is_file() else f"{path}: no such file"
