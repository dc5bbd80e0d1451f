"""Verification at speed: random steps, batch by batch, until a number of MACs is done or a bit differs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from sim.engines import Engine, engine
from sim.random import count_at_half_rate
from sim.verify.bins import Goals
from sim.verify.counting import count
from sim.verify.coverage import Counts, CoverageFigures, complete, empty, figures, impossible, missed
from sim.verify.goals import deepest, goals
from sim.verify.reproducer import MOST_RUNS, Mismatch, difference, save, shrink
from sim.verify.stimulus import Stimulus, draw

__all__ = ["CampaignFigures", "Failure", "Outcome", "batch_steps", "reproduce", "stimulus_of", "verify"]

_MACS_PER_BATCH = 1 << 20
_STEPS_PER_BATCH = range(256, 4097)
_LONG = 1 << 28
"""Multiply-accumulates from which on processes have engines of their own for long runs."""


class FailureFigures(TypedDict):
    """The first batch with a wrong result.

    Parameters
    ----------
    batch
        Its number.
    what
        What is wrong, in words.
    """

    batch: int
    what: str


class _HalfRate(TypedDict, total=False):
    macs_at_half_rate: int


class CampaignFigures(_HalfRate):
    """What a verification has compared and covered.

    Parameters
    ----------
    configuration
        Name of the core's configuration.
    engine
        Name of its simulator.
    seed
        Of the stimulus.
    macs, steps, outputs, cycles
        Multiply-accumulates, steps and results that were compared, and clock cycles.
    macs_at_half_rate
        Those of the multiply-accumulates that a core with a slot did at half the rate.
    goals, hit
        Coverage goals, and how many of them had an event.
    complete_after_macs
        Multiply-accumulates after which all goals had one; null where some had none.
    mismatch
        The first result that differs in a bit; null where none does.
    coverage
        By group of goals.
    """

    configuration: str
    engine: str
    seed: int
    macs: int
    steps: int
    outputs: int
    cycles: int
    goals: int
    hit: int
    complete_after_macs: int | None
    mismatch: FailureFigures | None
    coverage: dict[str, CoverageFigures]


@dataclass(frozen=True)
class Failure:
    """The first batch with a wrong result.

    Parameters
    ----------
    batch
        Its number; with the seed it gives the stimulus, see `stimulus_of`.
    mismatch
        What is wrong.
    """

    batch: int
    mismatch: Mismatch


@dataclass
class Outcome:
    """What a campaign has seen so far.

    Parameters
    ----------
    config, engine, seed
        The core, the name of its simulator, and the seed of the stimulus.
    goals
        What is to be covered.
    counts
        Events by group of goals and bin.
    sizes
        Steps of every batch that there was to run.
    steps, half, results, cycles
        Steps compared, those of them at half the rate, results they gave (of M x N outputs each), clock cycles
        simulated.
    complete_at, complete_after
        Steps and multiply-accumulates after which all goals had been met, counted in batches; None if they were not.
    failure
        The first mismatch; batches behind it do not count.
    """

    config: TensorCoreConfig
    engine: str
    seed: int
    goals: dict[str, Goals]
    counts: Counts
    sizes: tuple[int, ...]
    steps: int = 0
    half: int = 0
    results: int = 0
    cycles: int = 0
    complete_at: int | None = None
    complete_after: int | None = None
    failure: Failure | None = None

    @property
    def macs(self) -> int:
        """Multiply-accumulates compared."""
        return _macs(self.config, self.steps, self.half)

    @property
    def macs_at_half_rate(self) -> int:
        """Of them, those of FP8 and FP6."""
        return _macs(self.config, self.half, self.half)

    @property
    def complete(self) -> bool:
        """Whether every goal has been met."""
        return complete(self.goals, self.counts)

    def missed(self) -> list[str]:
        """Goals without an event, in words."""
        return missed(self.goals, self.counts)

    def impossible(self) -> list[str]:
        """Events that should not have been possible, in words."""
        return impossible(self.goals, self.counts)

    def as_dict(self) -> CampaignFigures:
        """All of it, ready for JSON."""
        groups = figures(self.goals, self.counts)
        modes: _HalfRate = {"macs_at_half_rate": self.macs_at_half_rate} if self.config.slotted else {}
        return {
            "configuration": self.config.name,
            "engine": self.engine,
            "seed": self.seed,
            "macs": self.macs,
            **modes,
            "steps": self.steps,
            "outputs": self.results * self.config.rows * self.config.columns,
            "cycles": self.cycles,
            "goals": sum(group["goals"] for group in groups.values()),
            "hit": sum(group["hit"] for group in groups.values()),
            "complete_after_macs": self.complete_after,
            "mismatch": None
            if self.failure is None
            else {"batch": self.failure.batch, "what": self.failure.mismatch.reason},
            "coverage": groups,
        }


@dataclass(frozen=True)
class _Batch:
    steps: int
    half: int
    results: int
    cycles: int
    counts: Counts
    mismatch: Mismatch | None = None


def batch_steps(config: TensorCoreConfig) -> int:
    """Steps of one batch, a run from reset on."""
    steps = min(max(_MACS_PER_BATCH // config.macs_per_step, _STEPS_PER_BATCH[0]), _STEPS_PER_BATCH[-1])
    return max(steps, 3 * deepest(config)) if config.exact else steps


def _macs(config: TensorCoreConfig, steps: int, half: int) -> int:
    """Multiply-accumulates of steps of which ``half`` are at half the rate."""
    return (2 * steps - half) * config.macs_per_step // 2


def _sizes(config: TensorCoreConfig, macs: int) -> tuple[int, ...]:
    """Steps of every batch that so many multiply-accumulates take."""

    def done(steps: int) -> int:
        return _macs(config, steps, count_at_half_rate(steps) if config.slotted else 0)

    size = batch_steps(config)
    whole, left = divmod(macs, done(size))
    last = bisect_left(range(size), left, key=done)
    return (*[size] * whole, *([last] if last else []))


def stimulus_of(config: TensorCoreConfig, seed: int, batch: int, count: int) -> Stimulus:
    """The stimulus of one batch: equal arguments give equal steps, on every machine."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(batch,))))
    return draw(config, count, rng, deep=batch == 0)


def reproduce(
    outcome: Outcome,
    core: Engine,
    path: Path,
    progress: Callable[[int, int], None] = lambda done, most: None,
) -> Stimulus:
    """Shrink the stimulus of the batch that failed and write it to a file, see `sim.verify.reproducer.save`.

    Parameters
    ----------
    outcome
        Of a campaign that failed.
    core
        The core that it was about.
    path
        The file.
    progress
        Called with the runs done and the most there can be.
    """
    if outcome.failure is None:
        raise ValueError("nothing has failed")
    batch = outcome.failure.batch
    whole = stimulus_of(core.config, outcome.seed, batch, outcome.sizes[batch])
    small = shrink(core, whole, lambda runs: progress(runs, MOST_RUNS))
    save(path, small, {"seed": outcome.seed, "batch": batch, "steps": outcome.sizes[batch]})
    return small


@lru_cache(maxsize=2)
def _made(config: TensorCoreConfig, name: str, long: bool) -> tuple[Engine, dict[str, Goals]]:
    """Engine and goals, once in every process."""
    return engine(config, name, long), goals(config)


def _compared(
    config: TensorCoreConfig, name: str, long: bool, seed: int, batch: int, count_: int, core: Engine | None = None
) -> _Batch:
    """Run one batch; its process's own engine unless one is given."""
    made, wanted = (core, goals(config)) if core is not None else _made(config, name, long)
    stimulus = stimulus_of(config, seed, batch, count_)
    steps = stimulus.steps
    expected = steps.trace()
    try:
        run = made.run(steps, **stimulus.patterns)
    except ToolError as error:
        return _Batch(0, 0, 0, 0, empty(wanted), Mismatch(len(steps), str(error)))
    if mismatch := difference(steps, run.results, expected.results):
        return _Batch(0, 0, 0, 0, empty(wanted), mismatch)
    given = (stimulus.offer, stimulus.supply, stimulus.take)
    counts = count(wanted, steps, expected, run, *(pattern.window(0, run.cycles) for pattern in given))
    return _Batch(len(steps), int(steps.half.sum()), len(run.results), run.cycles, counts)


def verify(
    core: Engine,
    macs: int,
    seed: int = 1,
    workers: int = -1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Compare a simulated core with the golden model on random steps, every bit of every result.

    Parameters
    ----------
    core
        The simulated core.
    macs
        Multiply-accumulates to compare, of both modes together, rounded up to whole steps.
    seed
        Zero or positive; equal seeds give equal steps, whatever the engine and the number of workers.
    workers
        Processes at once, -1 for one a core; with one, ``core`` itself is run, otherwise an equal one in
        each process.
    progress
        Called with the steps compared and those there are.

    Returns
    -------
    Outcome
        It ends with the first batch in which a result is wrong.

    Raises
    ------
    ToolError
        The golden model disagrees with the integers that coverage is counted with, or an event happened that
        the goals exclude.
    """
    config = core.config
    sizes = _sizes(config, macs)
    wanted = goals(config)
    outcome = Outcome(config, core.name, seed, wanted, empty(wanted), sizes)
    processes = min(effective_n_jobs(workers), len(sizes))
    own = core if processes == 1 else None
    if long := macs >= _LONG and own is None:
        engine(config, core.name, long)  # it is kept, so that it is compiled once for all processes
    tasks = (delayed(_compared)(config, core.name, long, seed, batch, steps, own) for batch, steps in enumerate(sizes))
    progress(0, sum(sizes))
    done = Parallel(n_jobs=processes, return_as="generator")(tasks)
    try:
        for batch, part in enumerate(done):
            if part.mismatch is not None:
                outcome.failure = Failure(batch, part.mismatch)
                break
            outcome.steps += part.steps
            outcome.half += part.half
            outcome.results += part.results
            outcome.cycles += part.cycles
            for name, events in part.counts.items():
                outcome.counts[name] += events
            if outcome.complete_at is None and outcome.complete:
                outcome.complete_at, outcome.complete_after = outcome.steps, outcome.macs
            progress(outcome.steps, sum(sizes))
    finally:
        done.close()
    if impossible := outcome.impossible():
        raise ToolError(f"coverage: {impossible[0]} has happened, which the goals exclude")
    return outcome
