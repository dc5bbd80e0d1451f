"""Carry-save addition: many words to two, and the final carry-propagate adder.

Synthesis infers an adder chain from ``a + b + c``; written as 3:2 compressors the tree is the one we
want, and its size depends much less on the tool's mood.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value

__all__ = ["add_words", "multiply"]


def _signal(m: Module, value: Value, name: str) -> Signal:
    signal = Signal(len(value), name=name)
    m.d.comb += signal.eq(value)
    return signal


def add_words(m: Module, words: Sequence[Value], ones: Sequence[Value], *, width: int, name: str) -> Signal:
    """Sum unsigned words and single bits, modulo ``2 ** width``.

    ::

        words   ones              each 3:2 row leaves bit 0 of its carry word free:
          | | |   |               one of the single bits goes there, so that they cost nothing
         [3:2 row] ...
            | |
        [carry-propagate adder] <- last single bit as carry in

    Parameters
    ----------
    m
        Module that receives the logic.
    words
        Words of at most ``width`` bits.
    ones
        Single bits of weight 1 (the carries of negations by inversion).
    width
        Width of the result.
    name
        Name of the result, and the beginning of the names on the way to it.

    Returns
    -------
    Signal
        The sum, ``width`` bits. Combinational.
    """
    rows = [Value.cast(word) for word in words]
    bits = [Value.cast(bit) for bit in ones]
    # n rows take n - 2 bits in the compressors and one as the carry in; more need rows of their own.
    while len(bits) > max(len(rows) - 1, 1) or len(rows) < 2:
        rows.append(bits.pop() if bits else Value.cast(0))
    level = 0
    while len(rows) > 2:
        level += 1
        rows.sort(key=len)
        following: list[Value] = []
        while len(rows) > 2:
            a, b, c = rows[:3]
            rows = rows[3:]
            stem = f"{name}_{level}_{len(following)}"
            total = _signal(m, (a ^ b ^ c)[:width], f"{stem}_sum")
            majority = ((a & b) | (c & (a ^ b)))[: width - 1]
            carry = _signal(m, Cat(bits.pop() if bits else 0, majority), f"{stem}_carry")
            following += [total, carry]
        rows += following
    carry_in = bits.pop() if bits else Value.cast(0)
    assert not bits
    total = Signal(width, name=name)
    # A one below the least significant bit turns the carry in into an ordinary addend bit.
    m.d.comb += total.eq((Cat(1, rows[0]) + Cat(carry_in, rows[1]))[1:])
    return total


def multiply(m: Module, a: Value, b: Value, *, width: int, name: str) -> Signal:
    """Multiply unsigned numbers: one row of AND gates per bit of ``b``, summed carry-save.

    Parameters
    ----------
    m
        Module that receives the logic.
    a, b
        Factors; the one with fewer bits belongs in ``b``.
    width
        Width of the result.
    name
        Name of the result.

    Returns
    -------
    Signal
        ``a * b`` modulo ``2 ** width``. Combinational.
    """
    zero = Value.cast(0)
    rows = [Cat(zero.replicate(place), a & bit.replicate(len(a))) for place, bit in enumerate(b)]
    return add_words(m, rows, [], width=width, name=name)
