"""Functions of a few bits, from their tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from amaranth.hdl import Cat, Const, Mux, Value

__all__ = ["lookup"]


def lookup(inputs: Value, table: Sequence[int], width: int, free: Collection[int] = ()) -> Value:
    """The entry of ``table`` that ``inputs`` selects.

    Each output bit is a tree of multiplexers, the top input first, in which equal branches are one (a binary decision
    diagram). Synthesis finds better gates; the tree only has to say what the function is.

    Parameters
    ----------
    inputs
        Index, least significant bit first.
    table
        Entries, not negative, below 2^width; one for each value of ``inputs``.
    width
        Bits of the result.
    free
        Values of ``inputs`` at which nobody reads the result: what is simplest is there.
    """
    assert len(table) == 1 << len(inputs)

    @cache
    def branch(column: tuple[int | None, ...]) -> Value:
        known = {*column} - {None}
        if len(known) <= 1:
            return Const(1 in known, 1)
        half = len(column) // 2
        low, high = column[:half], column[half:]
        pairs = list(zip(low, high, strict=True))
        if all(None in pair or pair[0] == pair[1] for pair in pairs):
            return branch(tuple(one if other is None else other for one, other in pairs))
        select = inputs[half.bit_length() - 1]
        if {*low} <= {0, None} and {*high} <= {1, None}:
            return select
        return Mux(select, branch(high), branch(low))

    def column(place: int) -> tuple[int | None, ...]:
        return tuple(None if index in free else entry >> place & 1 for index, entry in enumerate(table))

    return Cat(*(branch(column(place)) for place in range(width)))
