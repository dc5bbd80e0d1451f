"""What every mutant is confronted with: the random steps, streams and resets that cores are verified with.

=========  ==================================================  ==============================
situation  steps                                               compared with
=========  ==================================================  ==============================
steady     corners of the arithmetic, one in every cycle       golden model, `hwgen.cost.stream`
drawn      what `hwgen verify` draws, with gaps and stalls     the same
gaps       chains, with gaps and stalls                        the same
reset      chains, cut off by a reset and begun anew           the same
corners    those of the directed tests, if they are there      the same
=========  ==================================================  ==============================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.cost.stream import stream
from hwgen.errors import ToolError
from sim.engines.run import Pattern, Patterns
from sim.mutate.engine import MutantEngine
from sim.random import random_chains, random_steps
from sim.steps import Steps
from sim.verify.stimulus import draw

__all__ = ["STEPS", "Situation", "killer", "situations"]

_ON = Pattern(np.ones(1, bool))
_ALWAYS = Patterns(offer=_ON, supply=_ON, take=_ON)

STEPS = 20_000
"""Random steps of the situation ``steady``, as many as the random tests of the engines run; ``drawn`` has five times as
many."""


@dataclass(frozen=True)
class Situation:
    """Stimulus of one run, and what a core must make of it.

    Parameters
    ----------
    name
        ``steady``, ``drawn``, ``gaps``, ``reset`` or ``corners``.
    steps
        Steps, in order.
    patterns
        When the streams move.
    before
        Cycles of the same traffic before a reset; 0 is none.
    results
        Results of the golden model, FP32 bit patterns, (R, M, N).
    cycles
        Cycles from the first to the last.
    """

    name: str
    steps: Steps
    patterns: Patterns
    before: int
    results: NDArray[np.uint32]
    cycles: int


def _shares(rng: np.random.Generator, *shares: float) -> Patterns:
    """Patterns with these shares of cycles in which steps, C and results may move."""
    offer, supply, take = (Pattern.random(share, rng) for share in shares)
    return Patterns(offer=offer, supply=supply, take=take)


def _situation(name: str, steps: Steps, patterns: Patterns = _ALWAYS, before: int = 0) -> Situation:
    offer, supply, take = patterns["offer"].bits, patterns["supply"].bits, patterns["take"].bits
    cycles = stream(steps.config, steps.last, first=steps.first, offer=offer, supply=supply, take=take).cycles
    return Situation(name, steps, patterns, before, steps.expected(), cycles)


def situations(
    config: TensorCoreConfig, steps: int = STEPS, seed: int = 0, corners: Steps | None = None
) -> list[Situation]:
    """Situations for a core, the short ones first.

    Parameters
    ----------
    config
        The core.
    steps
        Random steps, see `STEPS`.
    seed
        Zero or positive. Equal arguments give equal situations.
    corners
        Steps of the directed tests.
    """
    rng = np.random.default_rng(seed)
    found = [_situation("steady", random_steps(config, steps // 50, rng))]
    for first, last, *shares in (
        *((0.3, 0.4, 0.6, 0.9, 0.6), (0.3, 0.4, 0.9, 0.8, 0.3)),
        *((0.02, 0.05, 0.5, 0.5, 1.0), (0.8, 0.4, 0.9, 0.6, 0.9)),
    ):
        chains = random_chains(config, steps // 20, rng, first=first, last=last)
        found.append(_situation("gaps", chains, _shares(rng, *shares)))
    for before in range(1, 41):
        chains = random_chains(config, 40, rng, first=0.5, last=0.6)
        found.append(_situation("reset", chains, _shares(rng, 0.8, 0.8, 0.5), before))
    if corners is not None:
        found.append(_situation("corners", corners))
    found.append(_situation("steady", random_steps(config, steps, rng)))
    # A lane that is alone with an infinity and a zero is rare among 32.
    drawn = draw(config, 5 * steps, rng).steps
    found.append(_situation("drawn", drawn, _shares(rng, 0.9, 0.9, 0.5)))
    return found


def killer(engine: MutantEngine, number: int, confronted: Sequence[Situation]) -> str | None:
    """The first situation in which a mutant does not do what the core must do; None if there is none."""
    engine.number = number
    for situation in confronted:
        engine.before = situation.before
        try:
            run = engine.run(situation.steps, **situation.patterns)
        except ToolError:
            return situation.name
        if run.cycles != situation.cycles or not np.array_equal(run.results, situation.results):
            return situation.name
    return None
