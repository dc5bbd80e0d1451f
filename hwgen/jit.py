"""Functions compiled by numba, kept on disk where that can be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock

__all__ = ["borrowing", "compiled", "inlined"]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call; the result is kept beside its module, or in the user's cache.

    It may call other compiled functions: a change in any file of its package or of theirs compiles it anew.
    """
    return _kept(function, nogil=True)


def borrowing(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, for a function that makes no arrays, nor does any `inlined` one that it calls.

    It counts no references to those that it is given. Where there are dozens of them, that takes longer than all else.
    """
    return _kept(function, nogil=True, _nrt=False)


def _kept(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    njit: Any = numba.njit
    try:
        dispatcher = njit(cache=True, **options)(function)
    except RuntimeError:  # neither can be written: that costs time, never a result
        return njit(**options)(function)
    # numba compares the stamp of the function's own file only, and would keep what it made of the others.
    kept: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if not hasattr(kept, "_source_stamp"):  # a numba that keeps its stamps elsewhere: then nothing is kept on disk
        return njit(**options)(function)
    kept._source_stamp = tuple(stamp for package in sorted(_packages(function, set())) for stamp in _stamp(package))
    # Processes that compile side by side could take one name for two results: one at a time looks, or keeps.
    lock = FileLock(f"{kept._index_path}.lock")
    kept.load, kept.save = _locked(lock, kept.load), _locked(lock, kept.save)
    return dispatcher


def _locked(lock: FileLock, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs in one process at a time."""

    @wraps(function)
    def alone(*values: Any) -> Any:
        try:
            lock.acquire()
        except (OSError, NotImplementedError):  # no locks here: that two processes meet is rare
            return function(*values)
        try:
            return function(*values)
        finally:
            lock.release()

    return alone


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, for a small function that others call often: its text is put into theirs.

    A call costs a count of references for every array that it hands on; this saves them.
    """
    return numba.njit(inline="always", nogil=True)(function)


def _packages(function: Callable[..., Any], seen: set[Callable[..., Any]]) -> set[Path]:
    """Directories of a function and of the compiled functions that it calls, directly or not."""
    seen.add(function)
    found = {Path(inspect.getfile(function)).parent}
    for name in function.__code__.co_names:
        called = getattr(function.__globals__.get(name), "py_func", None)
        if called is not None and called not in seen:
            found |= _packages(called, seen)
    return found


@cache
def _stamp(package: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of a package's modules."""
    found = ((file.name, file.stat()) for file in sorted(package.glob("*.py")))
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in found)
