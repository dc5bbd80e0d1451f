"""Carry-save addition: many words to two, and the final carry-propagate adder.

Synthesis infers an adder chain from ``a + b + c``; written as full adders the tree is the one we want, and its
size depends much less on the tool's mood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value

__all__ = [
    "Register",
    "add_columns",
    "add_words",
    "fewer_words",
    "full_adders",
    "half_adders",
    "multiply",
    "two_rows",
    "two_words",
]

Register = Callable[[dict[str, Value]], dict[str, Value]]
"""A register of several values, unsigned: ``register(values)`` gives them by the same names, a cycle later."""


def _signal(m: Module, value: Value, name: str) -> Signal:
    signal = Signal(len(value), name=name)
    m.d.comb += signal.eq(value)
    return signal


def full_adders(m: Module, a: Value, b: Value, c: Value, *, name: str) -> tuple[Signal, Signal]:
    """One full adder for every bit: sums, and carries of twice their weight."""
    return _signal(m, a ^ b ^ c, f"{name}_sum"), _signal(m, (a & b) | (c & (a ^ b)), f"{name}_carry")


def half_adders(m: Module, a: Value, b: Value, *, name: str) -> tuple[Signal, Signal]:
    """One half adder for every bit: sums, and carries of twice their weight."""
    return _signal(m, a ^ b, f"{name}_sum"), _signal(m, a & b, f"{name}_carry")


def add_columns(
    m: Module,
    columns: Mapping[int, Iterable[Value]],
    *,
    width: int,
    constant: int = 0,
    register: Register | None = None,
    height: int = 2,
    levels: Mapping[int, Iterable[float]] | None = None,
    name: str,
) -> Signal:
    """Sum single bits by weight, modulo ``2 ** width``; see `two_rows` for the parameters.

    Returns
    -------
    Signal
        The sum, ``width`` bits. Combinational but for the register.
    """
    rows = two_rows(
        m, columns, width=width, constant=constant, register=register, height=height, levels=levels, name=name
    )
    total = Signal(width, name=name)
    m.d.comb += total.eq(rows[0] + rows[1])
    return total


def two_rows(
    m: Module,
    columns: Mapping[int, Iterable[Value]],
    *,
    width: int,
    constant: int = 0,
    register: Register | None = None,
    height: int = 2,
    levels: Mapping[int, Iterable[float]] | None = None,
    name: str,
) -> tuple[Value, Value]:
    """Two words whose sum is that of single bits by weight, modulo ``2 ** width``.

    Every level puts full adders wherever a column has three bits; those that stand side by side are
    written as one word. No half adder stands before the final adder: it would not lessen the bits.

    Parameters
    ----------
    m
        Module that receives the logic.
    columns
        Bits of weight ``2 ** place``, by place.
    width
        Width of the result.
    constant
        Added too.
    register
        Holds the bits of all columns, if given.
    height
        The most bits that a column has where the register stands: 2 is right before the final adder.
    levels
        When each of ``columns`` is there, in levels of full adders. Each level adds what is there, the earliest first.
        Without it all bits count as equally early, and sums of the level before are added first.
    name
        Beginning of the names on the way.

    Returns
    -------
    tuple
        ``width`` bits each. Combinational but for the register.
    """
    heap: list[list[tuple[float, Value]]] = []
    for place in range(width):
        bits = list(columns.get(place, ()))
        heap.append(list(zip([0.0] * len(bits) if levels is None else levels.get(place, ()), bits, strict=True)))
        if constant >> place & 1:
            heap[place].append((0.0, Const(1, 1)))
    level = 0
    while True:
        if register is not None and max(map(len, heap)) <= height:
            held = _columns_behind([[bit for _, bit in bits] for bits in heap], register)
            heap, register = [[(0.0, bit) for bit in bits] for bits in held], None
        if max(map(len, heap)) <= 2:
            break
        level += 1
        ready = [sorted((each for each in bits if each[0] < level), key=lambda each: each[0]) for bits in heap]
        following = [[each for each in bits if each[0] >= level] for bits in heap]
        after = 0 if levels is None else level
        for row in range(max(map(len, ready)) // 3):
            places = [place for place in range(width) if len(ready[place]) >= 3 * (row + 1)]
            words = [Cat(*(ready[place][3 * row + index][1] for place in places)) for index in range(3)]
            sums, carries = full_adders(m, words[0], words[1], words[2], name=f"{name}_{level}_{row}")
            for index, place in enumerate(places):
                following[place].append((after, sums[index]))
                if place + 1 < width:
                    following[place + 1].append((after, carries[index]))
        for place, bits in enumerate(ready):
            following[place] += bits[len(bits) // 3 * 3 :]
        heap = following
    first, second = (Cat(*(bits[row][1] if row < len(bits) else Const(0, 1) for bits in heap)) for row in range(2))
    return first, second


def _columns_behind(heap: list[list[Value]], register: Register) -> list[list[Value]]:
    """Columns of bits behind a register, which holds a word of each column; constants need none."""
    fixed = [[bit for bit in bits if isinstance(bit, Const)] for bits in heap]
    words = {
        f"place{place}": Cat(*(bit for bit in bits if not isinstance(bit, Const)))
        for place, bits in enumerate(heap)
        if len(bits) > len(fixed[place])
    }
    held = register(words)
    return [[*held.get(f"place{place}", ()), *bits] for place, bits in enumerate(fixed)]


def two_words(
    m: Module, words: Sequence[Value], ones: Sequence[Value], *, width: int, name: str
) -> tuple[Value, Value]:
    """Two words with the sum of unsigned words and single bits, modulo ``2 ** width``.

    Both have a place below the least significant one for the carry in: their sum is twice that of the words, plus one.

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
        Width of the sum.
    name
        Beginning of the names on the way.

    Returns
    -------
    tuple
        At most ``1 + width`` bits each. Combinational.
    """
    rows, bits = fewer_words(m, words, ones, 2, width=width, name=name)
    carry_in = bits.pop() if bits else Value.cast(0)
    assert not bits
    # A one below the least significant bit turns the carry in into an ordinary addend bit.
    return Cat(1, rows[0]), Cat(carry_in, rows[1])


def fewer_words(
    m: Module, words: Sequence[Value], ones: Sequence[Value], count: int, *, width: int, name: str
) -> tuple[list[Value], list[Value]]:
    """Words and single bits with the sum of more of both, modulo ``2 ** width``.

    Parameters
    ----------
    m, words, ones, width, name
        See `two_words`.
    count
        How many words are left, 2 or more.

    Returns
    -------
    tuple
        As many words, of at most ``width`` bits each, and the single bits that had no free place, fewer than words.
        Combinational.
    """
    rows = [Value.cast(word) for word in words]
    bits = [Value.cast(bit) for bit in ones]
    # n rows take n - 2 bits in the compressors and one as the carry in; more need rows of their own.
    while len(bits) > max(len(rows) - 1, 1) or len(rows) < 2:
        rows.append(bits.pop() if bits else Value.cast(0))
    level = 0
    while len(rows) > count:
        level += 1
        rows.sort(key=len)
        following: list[Value] = []
        while len(rows) > 2 and len(rows) + len(following) > count:
            a, b, c = rows[:3]
            rows = rows[3:]
            stem = f"{name}_{level}_{len(following)}"
            total = _signal(m, (a ^ b ^ c)[:width], f"{stem}_sum")
            majority = ((a & b) | (c & (a ^ b)))[: width - 1]
            carry = _signal(m, Cat(bits.pop() if bits else 0, majority), f"{stem}_carry")
            following += [total, carry]
        rows += following
    return rows, bits


def add_words(
    m: Module,
    words: Sequence[Value],
    ones: Sequence[Value],
    *,
    width: int,
    register: Register | None = None,
    name: str,
) -> Signal:
    """Sum unsigned words and single bits, modulo ``2 ** width``.

    Parameters
    ----------
    m
        Module that receives the logic.
    words, ones, width
        See `two_words`.
    register
        Holds the last two words, if given.
    name
        Name of the result, and the beginning of the names on the way to it.

    Returns
    -------
    Signal
        The sum, ``width`` bits. Combinational but for the register.
    """
    x, y = two_words(m, words, ones, width=width, name=name)
    if register is not None:
        held = register({"x": x[1:], "y": y})
        x, y = Cat(1, held["x"]), held["y"]
    total = Signal(width, name=name)
    m.d.comb += total.eq((x + y)[1:])
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
