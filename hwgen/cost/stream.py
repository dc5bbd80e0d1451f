"""Cycles of one core, whatever its streams do: the control of the tensor core, without its data.

What `hwgen.rtl.tensor_core.TensorCore` does to ``valid``, ``first`` and ``last``, register by register::

    step --> (front) x F --> enter? --> (behind) x B --> (result) --> result
                               ^ ^-- bubbles: turns the loop is out of place
    addend --> (held) ---------+ a first step needs C

``F`` registers lie before the accumulation loop; the latency is ``F + B + 1``. ``B`` is ``T - 1``, and those registers
are the loop's. With exact numerics they only bring results out, and move whenever a result may.
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
        Cycles in which a step on offer is not accepted: a result waits for its taker, or a step for its turn or its C.
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
    front: int, behind: int, turns: int, first: Any, last: Any, patterns: Any, period: int, accepted: Any, taken: Any
) -> tuple[int, int, int]:  # pragma: no cover - compiled
    offer, supply, take = patterns
    stages = np.zeros((front, 3), np.bool_)  # valid, first, last
    results = np.zeros(behind, np.bool_)
    bubbles = 0
    waiting = pending = held = supplied = False
    sent = answered = cycle = gaps = waits = 0
    addends = first.sum()
    earliest = period - 1
    while sent < len(accepted) or answered < len(taken):
        if not pending and sent < len(accepted) and cycle >= earliest and offer[cycle % len(offer)]:
            pending = True
        if addends and supply[cycle % len(supply)]:
            supplied = True
        taking = take[cycle % len(take)]
        advance = not waiting or taking
        offered = stages[-1, 0] if front else pending
        begins = stages[-1, 1] if front else pending and first[sent]
        ends = stages[-1, 2] if front else pending and last[sent]
        turned = bubbles != 0
        there = offered and (held or not begins)
        enter = there and not turned
        accept = advance and (enter or not offered)
        rotate = advance and (turns == 1 or there or turned or results.any())
        leaving = results[-1] if behind else enter and ends

        if waiting and taking:
            taken[answered] = cycle
            answered += 1
        if sent < len(accepted):
            if not pending:
                gaps += 1
            elif not accept:
                waits += 1
        if accept and front:
            stages[1:] = stages[:-1].copy()
            stages[0, 0] = pending
            stages[0, 1] = pending and first[sent]
            stages[0, 2] = pending and last[sent]
        if rotate and behind:
            results[1:] = results[:-1].copy()
            results[0] = enter and ends
            if not enter:
                bubbles = (bubbles + 1) % turns
        if not held or (advance and enter and begins):
            held = supplied
            addends -= supplied
            supplied = False
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
    first: ArrayLike | None = None,
    offer: ArrayLike = True,
    supply: ArrayLike = True,
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
    first
        Which steps take C, bool, (S,). All by default, which are the same cycles as long as C is always on offer.
    offer, supply, take
        In which cycles a step and C may come on offer, and a result is taken: bool, repeated for ever. What was
        once on offer stays until it is accepted.
    period
        Cycles from the acceptance of a step until the next one may come on offer: of a reader that needs as many to
        fetch a step and begins when the one before is gone. The first may come in cycle ``period - 1``.

    Raises
    ------
    InputError
        A pattern without a true cycle, another number of ``first`` than of ``last``, or a period below 1.
    """
    flags = np.ascontiguousarray(np.asarray(last, bool).ravel())
    begins = np.ones_like(flags) if first is None else np.ascontiguousarray(np.asarray(first, bool).ravel())
    if len(begins) != len(flags):
        raise InputError(f"first: of {len(begins)} steps, last of {len(flags)}")
    if period < 1:
        raise InputError(f"period = {period}: must be at least 1")
    behind = config.latency - config.entrance - 1
    accepted = np.empty(len(flags), np.int64)
    taken = np.empty(int(flags.sum()), np.int64)
    patterns = (_pattern("offer", offer), _pattern("supply", supply), _pattern("take", take))
    cycles, gaps, waits = _compiled(
        config.entrance, behind, config.interleave, begins, flags, patterns, period, accepted, taken
    )
    return Stream(accepted, taken, cycles, gaps, waits, cycles - len(flags) - gaps - waits)
