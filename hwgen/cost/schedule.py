"""The schedule of a GEMM on one core, and its cycles in closed form.

Output-stationary: a tile of rows x columns outputs takes ``ceil(K / depth)`` steps, then its results leave. Tiles of
all products of a batch form one list. A core whose accumulation loop takes T cycles works on T tiles by turns, a
round; where the last round has fewer, empty steps keep their turns::

    T = 2, two steps per tile, three tiles:   0 1 0* 1* 2 - 2* -      (* last, - empty)

All figures are exact; ``tests/hwgen/cost`` compares them with the simulated RTL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hwgen.config import TensorCoreConfig
from hwgen.cost.gemms import Gemms, product
from hwgen.cost.stored import step_bytes
from hwgen.cost.stream import stream
from hwgen.errors import InputError

__all__ = ["RESULT_BYTES", "Schedule", "core_cycles", "last_steps", "schedule", "steps_per_tile"]

RESULT_BYTES = 4
"""Bytes of a result as it leaves the core, FP32."""


@dataclass(frozen=True)
class Schedule:
    """What L GEMMs are on one core; int64 arrays, (L,), unless stated.

    Parameters
    ----------
    tiles
        Tiles of all products of the batch.
    steps
        Steps, the empty ones included.
    empty
        Empty steps.
    cycles
        From the cycle in which the first step may be on offer to that in which the last result is taken, both counted.
    stalls
        Cycles without a step: between steps where ``period`` is above 1, and after the last one.
    operand_bytes
        Codes and scales that enter the core, those of padded rows and blocks included, of empty steps not.
    result_bytes
        FP32 results that leave the core, those of padded rows and columns included.
    utilisation
        Multiply-accumulates asked for, as a share of what the core could do in these cycles at their rate, float, (L,).
    """

    tiles: NDArray[np.int64]
    steps: NDArray[np.int64]
    empty: NDArray[np.int64]
    cycles: NDArray[np.int64]
    stalls: NDArray[np.int64]
    operand_bytes: NDArray[np.int64]
    result_bytes: NDArray[np.int64]
    utilisation: NDArray[np.float64]


def _ceil(value: NDArray[np.int64], by: NDArray[np.int64] | int) -> NDArray[np.int64]:
    return -(-value // by)


def steps_per_tile(config: TensorCoreConfig, gemms: Gemms) -> NDArray[np.int64]:
    """ceil(K / depth), (L,), with the depth of a step, at half the rate half of it."""
    return _ceil(gemms.k, np.where(gemms.half, config.depth // 2, config.depth))


def last_steps(config: TensorCoreConfig, tiles: int, steps: int) -> NDArray[np.bool_]:
    """Which steps of a stream have ``last`` set: of ``tiles`` tiles with ``steps`` steps each, empty steps included."""
    turns = config.interleave
    rounds = -(-tiles // turns)
    found = np.zeros((rounds, steps, turns), np.bool_)
    found[:, -1] = True
    found[-1, -1, turns - (rounds * turns - tiles) :] = False
    return found.ravel()


def core_cycles(
    config: TensorCoreConfig, tiles: NDArray[np.int64], steps: NDArray[np.int64], period: ArrayLike = 1
) -> NDArray[np.int64]:
    """Cycles of a stream of tiles on one core whose results are always taken.

    C is always on offer. With a step in every cycle, or one every ``period`` > T cycles, nothing ever waits: the stream
    ends a latency after the last step with a result, or with the last step. But where no register stands before the
    loop, the first step waits for C, a cycle after reset. In between (only where T > 1) a step now and then waits for
    its turn, because the loop went on to bring a result out. What happens then repeats, so that a short stream,
    followed cycle by cycle, tells of all longer ones.

    Parameters
    ----------
    config
        The core.
    tiles
        Number of tiles, (L,).
    steps
        Steps of each, (L,).
    period
        See `hwgen.cost.stream.stream`; one number, or (L,).

    Raises
    ------
    InputError
        A period below 1, or more cycles than can be counted.
    """
    turns = config.interleave
    period = np.broadcast_to(np.asarray(period, np.int64), tiles.shape)
    if period.size and period.min() < 1:
        raise InputError(f"period = {period.min()}: must be at least 1")
    rounds = _ceil(tiles, turns)
    missing = rounds * turns - tiles
    accepted = product(rounds * turns, steps, period)
    # Empty steps may come after the last result has been taken, and count as well.
    cycles = np.maximum(accepted, accepted - period * missing + config.latency)
    if config.entrance == 0:
        cycles = cycles + ((period == 1) & (tiles > 0))
    held = (period > 1) & (period <= turns)
    if held.any():
        cycles = cycles.copy()
        cycles[held] = _held(config, rounds[held], steps[held], missing[held], period[held])
    return cycles


# What a held stream does repeats: every further step of a tile takes the same time from the _STEPS-th on, and the
# rounds from the _SETTLED-th on come in groups of a size that divides _GROUP. The tests try every number of registers
# and every period that holds a step up.
_STEPS = 8
_SETTLED = 8
_GROUP = 12


@lru_cache(maxsize=1 << 16)
def _followed(config: TensorCoreConfig, rounds: int, steps: int, missing: int, period: int) -> int:
    last = last_steps(config, rounds * config.interleave - missing, steps)
    return stream(config, last, period=period).cycles


def _held(
    config: TensorCoreConfig,
    rounds: NDArray[np.int64],
    steps: NDArray[np.int64],
    missing: NDArray[np.int64],
    period: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Cycles where steps wait for their turns: a short stream is followed, a long one is more of the same."""
    groups = np.maximum(rounds - _SETTLED, 0) // _GROUP
    more_groups = np.maximum(groups - 1, 0)
    short = np.stack(
        [rounds - more_groups * _GROUP, np.minimum(steps, _STEPS), missing, period, np.minimum(groups, 1)], axis=1
    )
    kinds, which = np.unique(short, axis=0, return_inverse=True)
    known = np.array([_followed(config, *kind[:4]) for kind in kinds.tolist()])
    group = np.array(
        [
            known - _followed(config, kind[0] - _GROUP, *kind[1:4]) if kind[4] else 0
            for known, kind in zip(known.tolist(), kinds.tolist(), strict=True)
        ]
    )
    which = which.ravel()
    more_steps = (steps - short[:, 1]) * rounds * config.interleave
    return known[which] + more_groups * group[which] + more_steps * period


def schedule(config: TensorCoreConfig, gemms: Gemms, period: ArrayLike = 1) -> Schedule:
    """Schedule GEMMs on one core whose results are always taken.

    Parameters
    ----------
    config
        The core.
    gemms
        The GEMMs.
    period
        Cycles between steps, see `core_cycles`.

    Raises
    ------
    InputError
        As `core_cycles`.
    """
    turns = config.interleave
    tiles = _ceil(gemms.m, config.rows) * _ceil(gemms.n, config.columns) * gemms.batch
    deep = steps_per_tile(config, gemms)
    steps = _ceil(tiles, turns) * turns * deep
    cycles = core_cycles(config, tiles, deep, period)
    half = gemms.half
    step = config.rows * step_bytes(config, half, config.a) + config.columns * step_bytes(config, half, config.b)
    return Schedule(
        tiles=tiles,
        steps=steps,
        empty=steps - tiles * deep,
        cycles=cycles,
        stalls=cycles - steps,
        operand_bytes=product(tiles, deep, step),
        result_bytes=product(tiles, config.rows * config.columns * RESULT_BYTES),
        utilisation=gemms.macs / (cycles * (config.macs_per_step / np.where(gemms.half, 2, 1))),
    )
