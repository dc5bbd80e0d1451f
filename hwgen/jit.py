"""Functions compiled by numba, kept on disk where that can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["compiled"]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call; the result is kept beside its module, or in the user's cache."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither can be written: that costs time, never a result
        return numba.njit(nogil=True)(function)
