"""Functions compiled by numba, kept on disk where that can be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

__all__ = ["compiled"]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call; the result is kept beside its module, or in the user's cache.

    It may call other compiled functions, those of its own package: a change in any file of that compiles it anew.
    """
    try:
        dispatcher: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither can be written: that costs time, never a result
        return numba.njit(nogil=True)(function)
    # numba compares the stamp of the function's own file only, and would keep what it made of the others.
    kept: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if not hasattr(kept, "_source_stamp"):  # a numba that keeps its stamps elsewhere: then nothing is kept on disk
        return numba.njit(nogil=True)(function)
    kept._source_stamp = _stamp(Path(inspect.getfile(function)).parent)
    return dispatcher


@cache
def _stamp(package: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of a package's modules."""
    found = ((file.name, file.stat()) for file in sorted(package.glob("*.py")))
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in found)
