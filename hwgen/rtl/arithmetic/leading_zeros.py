"""Leading-zero anticipation: where the leading one of a sum will be, before the sum is there."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

__all__ = ["anticipate", "leading_zeros"]


def anticipate(m: Module, x: Value, y: Value, *, name: str) -> Signal:
    """Say from two addends where their sum has its leading digit, the first that differs from the sign.

    The highest bit set in the answer is at the place of that digit, or one above it. The sum must leave its
    two highest bits alike.

    Parameters
    ----------
    m
        Module that receives the logic.
    x, y
        Addends of equal width, two's complement modulo ``2 ** width``; a carry in is a place of its own at the bottom.
    name
        Beginning of the names on the way.

    Returns
    -------
    Signal
        One bit less than an addend; nothing set if there is no such digit. Combinational.

    Notes
    -----
    M. S. Schmookler and K. J. Nowka, Leading zero anticipation and detection, ARITH 2001: a place where both are one
    generates (g), where none is kills (k), else propagates (p). Of three places next to one another, from the left,
    the middle one is marked by ``p g k'``, ``p k g'``, ``p' k k'`` and ``p' g g'``, where ``'`` is anything else.
    """
    width = len(x)
    propagate, generate, kill = (Signal(width, name=f"{name}_{what}") for what in ("propagate", "generate", "kill"))
    m.d.comb += [propagate.eq(x ^ y), generate.eq(x & y), kill.eq(~(x | y))]
    above = propagate[1:]
    g, k = generate[:-1], kill[:-1]
    # Zeros go on below the last place.
    g_below, k_below = Cat(0, g[:-1]), Cat(1, k[:-1])
    marked = Signal(width - 1, name=f"{name}_marked")
    m.d.comb += marked.eq((above & ((g & ~k_below) | (k & ~g_below))) | (~above & ((k & ~k_below) | (g & ~g_below))))
    return marked


def leading_zeros(m: Module, value: Value, *, name: str) -> Signal:
    """Number of zeros above the highest bit set; nothing depends on a value of zero.

    Combinational, of logarithmic depth: halves say whether they are empty, and a multiplexer takes the count of one.

    Parameters
    ----------
    m
        Module that receives the logic.
    value
        At least two bits.
    name
        Name of the result, and the beginning of the names on the way.
    """

    def halved(part: Value, stem: str) -> tuple[Value, Value]:
        """Whether a part of a power of two bits is empty, and its count."""
        if len(part) == 1:
            return ~part, Const(0, 0)
        middle = len(part) // 2
        upper_empty, upper = halved(part[middle:], f"{stem}1")
        lower_empty, lower = halved(part[:middle], f"{stem}0")
        empty, count = Signal(name=f"{stem}_empty"), Signal(len(upper) + 1, name=f"{stem}_count")
        m.d.comb += [
            empty.eq(upper_empty & lower_empty),
            count.eq(Cat(Mux(upper_empty, lower, upper)[: len(upper)], upper_empty)),
        ]
        return empty, count

    log = (len(value) - 1).bit_length()
    padded = Cat(Const(0, (1 << log) - len(value)), value)
    count = Signal(log, name=name)
    m.d.comb += count.eq(halved(padded, name)[1])
    return count
