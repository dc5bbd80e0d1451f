"""Cycles of one core, whatever its streams do: the control of the tensor core, without its data.

What `hwgen.rtl.tensor_core.TensorCore` does to ``valid`` and ``last``, register by register::

    step --> (front) x F --> enter? --> (ring) x (T - 1) --> (result) --> result
                               ^-- bubbles: turns the ring is out of place

``F`` registers lie before the accumulation loop, ``T - 1`` more in it; ``F + T`` is the latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.jit import compiled

__all__ = ["Stream", "stream"]


@dataclass(frozen=True)
class Stream:
    """What a core does with S steps, R of them with a result; cycle 0 is the first after reset.

    Parameters
    ----------
    accepted
        Cycle in which each step is accepted, int64, (S,).
    taken
        Cycle in which each result is taken, int64, (R,).
    cycles
        From cycle 0 to the last step accepted or result taken, both counted.
    gaps
        Cycles without a step on offer, while there are steps left.
    waits
        Cycles in which a step on offer is not accepted: a result waits for its taker, or the step for its turn.
    drain
        Cycles after the last step was accepted. Steps, gaps, waits and drain add up to the cycles.
    """

    accepted: NDArray[np.int64]
    taken: NDArray[np.int64]
    cycles: int
    gaps: int
    waits: int
    drain: int


def _run(
    front: int, turns: int, last: Any, offer: Any, take: Any, period: int, accepted: Any, taken: Any
) -> tuple[int, int, int]:  # pragma: no cover - compiled
    valids = np.zeros(front, np.bool_)
    lasts = np.zeros(front, np.bool_)
    ring = np.zeros(turns - 1, np.bool_)
    bubbles = 0
    waiting = pending = False
    sent = answered = cycle = gaps = waits = 0
    earliest = period - 1
    while sent < len(accepted) or answered < len(taken):
        if not pending and sent < len(accepted) and cycle >= earliest and offer[cycle % len(offer)]:
            pending = True
        taking = take[cycle % len(take)]
        advance = not waiting or taking
        there = valids[-1] if front else pending
        ends = lasts[-1] if front else pending and last[sent]
        turned = bubbles != 0
        enter = there and not turned
        accept = advance and not (there and turned)
        rotate = advance and (there or turned or ring.any())
        leaving = ring[-1] if turns > 1 else enter and ends

        if waiting and taking:
            taken[answered] = cycle
            answered += 1
        if sent < len(accepted):
            if not pending:
                gaps += 1
            elif not accept:
                waits += 1
        if accept and front:
            valids[1:] = valids[:-1].copy()
            lasts[1:] = lasts[:-1].copy()
            valids[0] = pending
            lasts[0] = pending and last[sent]
        if rotate and turns > 1:
            ring[1:] = ring[:-1].copy()
            ring[0] = enter and ends
            if not enter:
                bubbles = (bubbles + 1) % turns
        if advance:
            waiting = leaving
        if pending and accept:
            accepted[sent] = cycle
            sent += 1
            pending = False
            earliest = cycle + period
        cycle += 1
    return cycle, gaps, waits


_compiled = compiled(_run)


def _pattern(name: str, given: ArrayLike) -> NDArray[np.bool_]:
    pattern = np.atleast_1d(np.asarray(given, bool))
    if pattern.ndim != 1 or not pattern.any():
        raise InputError(f"{name}: must be a sequence of cycles, at least one of them true")
    return np.ascontiguousarray(pattern)


def stream(
    config: TensorCoreConfig,
    last: ArrayLike,
    *,
    offer: ArrayLike = True,
    take: ArrayLike = True,
    period: int = 1,
) -> Stream:
    """Follow steps through a core, cycle by cycle.

    Parameters
    ----------
    config
        The core; its pipeline alone counts.
    last
        Which steps give a result, bool, (S,).
    offer, take
        In which cycles a step may come on offer, and a result is taken: bool, repeated for ever. A step once
        on offer stays until it is accepted.
    period
        Cycles from the acceptance of a step until the next one may come on offer: of a reader that needs as many to
        fetch a step and begins when the one before is gone. The first may come in cycle ``period - 1``.

    Raises
    ------
    InputError
        A pattern without a true cycle, or a period below 1.
    """
    flags = np.ascontiguousarray(np.asarray(last, bool).ravel())
    if period < 1:
        raise InputError(f"period = {period}: must be at least 1")
    turns = config.interleave
    accepted = np.empty(len(flags), np.int64)
    taken = np.empty(int(flags.sum()), np.int64)
    cycles, gaps, waits = _compiled(
        config.latency - turns, turns, flags, _pattern("offer", offer), _pattern("take", take), period, accepted, taken
    )
    return Stream(accepted, taken, cycles, gaps, waits, cycles - len(flags) - gaps - waits)
