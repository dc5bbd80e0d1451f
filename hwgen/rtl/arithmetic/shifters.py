"""Shifters of the alignment and of the normalisation."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from hwgen.rtl.arithmetic.window import Window

__all__ = ["normalise", "normalise_by", "saturated", "shift_left", "shift_right"]


def shift_left(m: Module, value: Value, distance: Value, *, width: int, name: str) -> Value:
    """``value << distance``, cut to ``width``; small shifts first, while the word is narrow."""
    for stage, select in enumerate(distance):
        step = 1 << stage
        shifted = Signal(min(len(value) + step, width), name=f"{name}_by{step}")
        m.d.comb += shifted.eq(Mux(select, value << step, value))
        value = shifted
    return value


def shift_right(m: Module, value: Value, distance: Value, *, own: Window, into: Window, name: str) -> Value:
    """Shift a word of the window ``own`` to the right within the window ``into``, which reaches further down.

    What falls out at the bottom is dropped, i.e. the magnitude is truncated. The word grows stage by stage, small
    shifts first: the early stages are narrow.
    """
    assert len(value) == own.width
    assert into == own.down_to(into.unit), f"{into} is not {own} with more places below"
    word = own
    for stage, select in enumerate(distance):
        step = 1 << stage
        longer = own.down_to(max(word.unit - step, into.unit))
        kept = Cat(Value.cast(0).replicate(word.unit - longer.unit), value)
        shifted = Signal(longer.width, name=f"{name}_by{step}")
        m.d.comb += shifted.eq(Mux(select, kept >> step, kept))
        value, word = shifted, longer
    assert word == into, f"{len(distance)} bits of distance do not reach the bottom of {into}"
    return value


def saturated(m: Module, distance: Value, window: Window, *, name: str) -> Signal:
    """The distance, or one that shifts out the whole window."""
    bits = window.emptying
    result = Signal(bits, name=name)
    m.d.comb += result.eq(distance[:bits] | distance[bits:].any().replicate(bits))
    return result


def normalise(m: Module, value: Value, fill: Value, limit: Value | None = None) -> tuple[Value, Value]:
    """Shift the leading one to the top, ``fill`` behind; returns the shifted value and the shift count.

    Parameters
    ----------
    m
        Module that receives the logic.
    value, fill
        The word, and the bit that comes in below.
    limit
        Most places to shift by, as many bits as the count has. What has its leading one further down stays below the
        top. None if there is no limit.
    """
    stages: list[Signal] = []
    width = len(value)
    # Whether the count so far is all of the limit so far: both are made from the top bit down.
    tight: Value = Const(1)
    for log in reversed(range((width - 1).bit_length())):
        step = 1 << log
        if step >= width:
            continue
        skip = Signal(name=f"skip{step}")
        shifted = Signal(width, name=f"normal{step}")
        empty = ~value[-step:].any()
        if limit is not None:
            empty &= ~tight | limit[log]
        m.d.comb += [
            skip.eq(empty),
            shifted.eq(Mux(skip, Cat(fill.replicate(step), value[:-step]), value)),
        ]
        if limit is not None:
            still = Signal(name=f"tight{step}")
            m.d.comb += still.eq(tight & ~(skip ^ limit[log]))
            tight = still
        stages.insert(0, skip)
        value = shifted
    return value, Cat(*stages)


def normalise_by(m: Module, value: Value, fill: Value, zeros: Value) -> tuple[Value, Value]:
    """Shift the leading one to the top, by ``zeros`` or one place more; as `normalise`."""
    for log in reversed(range(len(zeros))):
        step = 1 << log
        shifted = Signal(len(value), name=f"normal{step}")
        m.d.comb += shifted.eq(Mux(zeros[log], Cat(fill.replicate(step), value)[: len(value)], value))
        value = shifted
    short = Signal(name="short")
    count = Signal(len(zeros) + 1, name="count")
    m.d.comb += [short.eq(~value[-1]), count.eq(zeros + short)]
    return Mux(short, Cat(fill, value[:-1]), value), count
