"""Functions of a few bits, from their tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from amaranth.hdl import Cat, Const, Mux, Value

__all__ = ["lookup"]


def lookup(inputs: Value, table: Sequence[int], width: int) -> Value:
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
    """
    assert len(table) == 1 << len(inputs)

    @cache
    def branch(column: tuple[int, ...]) -> Value:
        if len(set(column)) == 1:
            return Const(column[0], 1)
        half = len(column) // 2
        low, high = column[:half], column[half:]
        if low == high:
            return branch(low)
        select = inputs[half.bit_length() - 1]
        if set(low) == {0} and set(high) == {1}:
            return select
        return Mux(select, branch(high), branch(low))

    return Cat(*(branch(tuple(entry >> place & 1 for entry in table)) for place in range(width)))
