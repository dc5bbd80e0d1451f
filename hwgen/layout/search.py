"""Search in a part of a sorted array, compiled. That of numpy takes a second to compile, wherever it is used."""

from __future__ import annotations

from hwgen.jit import inner

__all__ = ["first_from"]


@inner
def first_from(values, start, end, least):
    """The first place from ``start`` on with a value of at least ``least``; ``end`` if there is none before it."""
    while start < end:
        middle = (start + end) // 2
        if values[middle] < least:
            start = middle + 1
        else:
            end = middle
    return start
