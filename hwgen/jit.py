"""Functions compiled by numba, kept on disk where that can be."""

from __future__ import annotations

import fcntl
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba

__all__ = ["borrowing", "compiled", "inlined", "inner"]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call; the result is kept beside its module, or in the user's cache.

    It may call other compiled functions: a change in any file of its package or of theirs compiles it anew. Loops
    compile soonest: a slice that is assigned brings the words of an error, and sorting takes seconds.
    """
    return _kept(function)


def borrowing(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, for a function that makes no arrays, nor does any `inlined` one that it calls.

    It counts no references to those that it is given. Where there are dozens of them, that takes longer than all else.
    """
    return _kept(function, _nrt=False)


def _njit(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Numba's decorator, for functions that C never calls: what it wraps them in for that takes a while to compile."""
    njit: Any = numba.njit
    decorator: Callable[[Callable[..., Any]], Callable[..., Any]] = njit(nogil=True, no_cfunc_wrapper=True, **options)
    return decorator


def _kept(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    try:
        dispatcher = _njit(cache=True, **options)(function)
    except RuntimeError:  # neither can be written: that costs time, never a result
        return _njit(**options)(function)
    # numba compares the stamp of the function's own file only, and would keep what it made of the others.
    kept: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if not hasattr(kept, "_source_stamp"):  # a numba that keeps its stamps elsewhere: then nothing is kept on disk
        return _njit(**options)(function)
    kept._source_stamp = tuple(stamp for package in sorted(_packages(function, set())) for stamp in _stamp(package))
    # Processes that compile side by side could take one name for two results: one at a time looks, or keeps.
    lock = Path(f"{kept._index_path}.lock")
    kept.load, kept.save = _locked(lock, kept.load), _locked(lock, kept.save)
    return dispatcher


def _locked(lock: Path, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs in one process at a time, and in one thread; it does not call itself."""

    @wraps(function)
    def alone(*values: Any) -> Any:
        with _held(lock):
            return function(*values)

    return alone


@contextmanager
def _held(lock: Path) -> Iterator[None]:
    """Hold the lock of a file, which is let go when the file is closed, be it by the end of the process."""
    try:
        file = lock.open("a")
    except OSError:  # no place for a lock: there results are read only
        yield
        return
    with file:
        with suppress(OSError):  # a file system without locks: that two processes meet is rare
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `borrowing`, for a function that compiled ones call: it is kept with them, and not by itself."""
    return _njit(_nrt=False)(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, for a small function that others call often: its text is put into theirs.

    A call costs a count of references for every array that it hands on; this saves them.
    """
    return _njit(inline="always")(function)


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
