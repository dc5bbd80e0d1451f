"""A binary tree of adders, each of which carries to its end, on words that grow by a bit a level."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value

from hwgen.rtl.arithmetic.carry_save import Register

__all__ = ["add_in_pairs"]


def add_in_pairs(
    m: Module, words: Sequence[Value], ones: Sequence[Value], *, register: Register | None = None, name: str
) -> Signal:
    """Sum unsigned words and single bits.

    Low bits are there first, and carries follow them from level to level: the tree is little deeper than its last
    adder. A carry-save tree has fewer gates on its longest path to two words, but these then have all to be added.

    Parameters
    ----------
    m
        Module that receives the logic.
    words
        At least one.
    ones
        Single bits of weight 1, each the carry in of an adder: fewer than there are words.
    register
        Holds the last two words, if given.
    name
        Name of the result, and the beginning of the names on the way to it.

    Returns
    -------
    Signal
        The sum, a bit longer than the words for each level. Combinational but for the register.
    """
    carries = list(ones)
    assert len(carries) < len(words), "an adder takes one carry"

    def added(x: Value, y: Value, carry: Value | int, stem: str) -> Signal:
        total = Signal(max(len(x), len(y)) + 1, name=stem)
        # A one below the least significant bit turns the carry in into an ordinary addend bit. Without it synthesis
        # would also join the adders to a carry-save tree.
        m.d.comb += total.eq((Cat(1, x) + Cat(carry, y))[1:])
        return total

    level = 0
    rows = list(words)
    while len(rows) > 2:
        level += 1
        pairs = zip(rows[::2], rows[1::2], strict=False)
        following: list[Value] = [
            added(x, y, carries.pop() if carries else 0, f"{name}_{level}_{index}")
            for index, (x, y) in enumerate(pairs)
        ]
        rows = following + rows[len(rows) & ~1 :]
    carry = carries.pop() if carries else Value.cast(0)
    if register is not None:
        held = register({f"word{index}": row for index, row in enumerate(rows)} | {"one": carry})
        rows, carry = [held[f"word{index}"] for index in range(len(rows))], held["one"]
    return added(rows[0], rows[1] if len(rows) > 1 else Value.cast(0), carry, name)
