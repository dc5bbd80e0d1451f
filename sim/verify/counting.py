"""Counts events: integer arithmetic of the contract once more, from the stimulus alone (`sim.verify.kernels`).

The kernels compute every result on their way, on integers of 64 bits and from nothing but the codes, the scales and
C: where that is not what the golden model says, the counts mean nothing, and `count` says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.errors import ToolError
from sim.engines import Run
from sim.steps import Steps, Trace
from sim.verify.goals import Goals
from sim.verify.kernels.alignment import ExactBins, Numerics, StepBins
from sim.verify.kernels.loops import count_exact, count_rounded
from sim.verify.kernels.operands import OperandBins, Stimulus, side
from sim.verify.kernels.rounding import ResultBins

__all__ = ["Counts", "count", "empty"]

Counts = dict[str, NDArray[np.int64]]
"""Events by group of goals and bin."""


def empty(wanted: dict[str, Goals]) -> Counts:
    """No events at all."""
    return {name: np.zeros(goal.reachable.shape, np.int64) for name, goal in wanted.items()}


def count(wanted: dict[str, Goals], steps: Steps, trace: Trace, run: Run, offer: Any, supply: Any, take: Any) -> Counts:
    """Count the events of one run.

    Parameters
    ----------
    wanted
        Goals of the steps' configuration.
    steps
        The stimulus.
    trace
        What the golden model says about it.
    run
        What the core did.
    offer, supply, take
        bool, (cycles,): whether a step was offered, C offered, and a result taken, in every cycle.

    Returns
    -------
    Counts
        One array for each group of goals.

    Raises
    ------
    ToolError
        The golden model computes something else than the integers of the counters.
    """
    config, counts = steps.config, empty(wanted)
    shift = None if config.bounds.window is None else config.bounds.window_shift
    sides = (
        side(config.a, steps.a_codes, steps.a_scales, shift, config.bounds.may_be_infinite),
        side(config.b, steps.b_codes, steps.b_scales, shift, config.bounds.may_be_infinite),
    )
    stimulus = Stimulus(*sides, steps.c if config.exact else trace.c, steps.first, steps.last)
    numerics = Numerics(
        config.fraction_bits,
        config.rounding == "nearest_even",
        config.excludes_empty,
        config.bounds.term_fraction,
        config.bounds.lowest_exponent,
        config.bounds.exponent_span + config.bounds.term_width > 58,
    )

    def bins(*names: str, axes: int = 2) -> list[NDArray[np.int64]]:
        """Bins of these groups; none, of so many axes, where the configuration has no such group."""
        return [counts.get(name, np.zeros((0,) * axes, np.int64)) for name in names]

    operands = OperandBins(
        *bins("code pairs", "tag pairs", "scales of A", "scales of B"),
        *bins("scale exponents", axes=3),
        *bins("exponents of blocks"),
        *bins("scale exponent differences", "scale significands", "kinds of scales"),
        *bins("NaN elements of A", "NaN elements of B"),
        *bins("infinite products", "infinities of a step", axes=3),
    )
    results = ResultBins(*bins("results", "rounding", "24 ones and a one behind"))
    ends = bins("places cancelled", "zeros")
    own = np.zeros(steps.c.shape, np.uint32)
    if config.exact:
        tiles = ExactBins(*bins("C", "place of terms", "leading place of the sum", "C against the sum"), *ends)
        count_exact(stimulus, numerics, operands, tiles, results, own)
    else:
        names = ("C", "shift of C", "shift of terms", "distance of terms", "largest exponent")
        step_bins = StepBins(*bins(*names, "leading place of the sum", "empty blocks"), *ends)
        count_rounded(stimulus, numerics, operands, step_bins, results, own)
    if not np.array_equal(own[steps.last], trace.results):
        index = np.argwhere(own[steps.last] != trace.results)[0]
        step, (m, n) = np.flatnonzero(steps.last)[index[0]], index[1:]
        raise ToolError(
            f"golden model: step {step}, D[{m}, {n}] is 0x{trace.results[tuple(index)]:08x}, integers say"
            f" 0x{own[step, m, n]:08x}"
        )
    _count_streams(counts, steps, run, (offer, supply, take))
    return counts


def _count_streams(counts: Counts, steps: Steps, run: Run, given_in: tuple[Any, ...]) -> None:
    turns = steps.config.interleave
    flags = steps.first + 2 * steps.last.astype(np.int64)
    np.add.at(counts["steps of a slot"], (flags[turns:], flags[:-turns]), 1)
    for slot in range(turns):
        starts = np.flatnonzero(steps.first[slot::turns])
        lengths = np.diff([*starts, len(steps.first[slot::turns])])
        np.add.at(counts["steps of a tile"], np.searchsorted([1, 2, 3, 4, 8, 16], lengths), 1)
    for index, given in enumerate(given_in):
        edges = np.flatnonzero(np.diff(np.concatenate([[True], given[: run.cycles], [True]]).astype(np.int8)))
        np.add.at(counts["cycles in a row"][index], np.searchsorted([1, 2, 3, 7], np.diff(edges)[::2]), 1)
    counts["handshakes"] += run.handshakes
    known = run.supplied >= 0
    supplied = run.supplied[known]
    late = np.clip(supplied - run.accepted[steps.first][known], -2, steps.config.entrance) + 2
    pause = np.diff(supplied, prepend=-2) > 1
    np.add.at(counts["C and its step"], (late, pause.astype(np.int64)), 1)
