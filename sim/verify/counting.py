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
from sim.steps import Steps, Trace, elements
from sim.verify.bins import Goals
from sim.verify.coverage import Counts, empty
from sim.verify.half_goals import PREFIX
from sim.verify.kernels.alignment import ExactBins, Numerics, StepBins
from sim.verify.kernels.loops import count_exact, count_rounded
from sim.verify.kernels.operands import OperandBins, Stimulus, side
from sim.verify.kernels.products import PLACES, UnscaledStimulus, unscaled_side
from sim.verify.kernels.rounding import NAN, ResultBins
from sim.verify.kernels.unscaled import UnscaledBins, count_unscaled

__all__ = ["count"]


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
    c = steps.c if config.exact else trace.c
    own = np.zeros(steps.c.shape, np.uint32)
    if config.slotted:
        for half, part in ((False, _count_fp4), (True, _count_half_rate)):
            at = np.flatnonzero(steps.half == half)
            own[at] = part(counts, steps, at, c[at])
        _count_modes(counts, steps, own, run, offer)
    else:
        own = _count_fp4(counts, steps, slice(None), c)
    if not np.array_equal(own[steps.last], trace.results):
        index = np.argwhere(own[steps.last] != trace.results)[0]
        step, (m, n) = np.flatnonzero(steps.last)[index[0]], index[1:]
        raise ToolError(
            f"golden model: step {step}, D[{m}, {n}] is 0x{trace.results[tuple(index)]:08x}, integers say"
            f" 0x{own[step, m, n]:08x}"
        )
    _count_streams(counts, steps, run, (offer, supply, take))
    return counts


def _bins(counts: Counts, *names: str, axes: int = 2) -> list[NDArray[np.int64]]:
    """Bins of these groups; none, of so many axes, where the configuration has no such group."""
    return [counts.get(name, np.zeros((0,) * axes, np.int64)) for name in names]


def _count_fp4(counts: Counts, steps: Steps, at: slice | NDArray[np.intp], c: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Count some steps of FP4, and compute their results; ``c`` is what each of them adds to."""
    config = steps.config
    shift = None if config.bounds.window is None else config.bounds.window_shift
    sides = (
        side(config.a, steps.a_codes[at], steps.a_scales[at], shift, config.bounds.may_be_infinite),
        side(config.b, steps.b_codes[at], steps.b_scales[at], shift, config.bounds.may_be_infinite),
    )
    stimulus = Stimulus(*sides, c, steps.first[at], steps.last[at])
    numerics = Numerics(
        config.fraction_bits,
        config.rounding == "nearest_even",
        config.excludes_empty,
        config.bounds.term_fraction,
        config.bounds.lowest_exponent,
        config.bounds.exponent_span + config.bounds.term_width > 58,
    )
    operands = OperandBins(
        *_bins(counts, "code pairs"),
        *_bins(counts, "fractions of A", "fractions of B", axes=3),
        *_bins(counts, "tag pairs", "scales of A", "scales of B"),
        *_bins(counts, "scale exponents", axes=3),
        *_bins(counts, "exponents of blocks"),
        *_bins(counts, "scale exponent differences", "scale significands", "kinds of scales"),
        *_bins(counts, "NaN elements of A", "NaN elements of B"),
        *_bins(counts, "infinite products", "infinities of a step", axes=3),
    )
    results = ResultBins(*_bins(counts, "results", "rounding", "24 ones and a one behind"))
    ends = _bins(counts, "places cancelled", "zeros")
    own = np.zeros(c.shape, np.uint32)
    if config.exact:
        names: tuple[str, ...] = ("C", "place of terms", "leading place of the sum", "C against the sum")
        count_exact(stimulus, numerics, operands, ExactBins(*_bins(counts, *names), *ends), results, own)
    else:
        names = ("C", "shift of C", "shift of terms", "distance of terms", "largest exponent")
        names += ("leading place of the sum", "empty blocks")
        count_rounded(stimulus, numerics, operands, StepBins(*_bins(counts, *names), *ends), results, own)
    return own


_OF_PRODUCTS = (
    *("types", "codes of A", "codes of B", "significands", "scales ignored", "NaN elements of A", "NaN elements of B"),
    *("infinite products", "infinities of a step", "C", "largest product", "shift of products", "largest exponent"),
    *("C against products", "leading place of the sum", "places cancelled", "zeros"),
)
_OF_HALF_SCALES = {
    **dict.fromkeys(("scales of A", "scales of B", "NaN scales", "scales of products"), 1),
    **{"ends": 2, "places of products below the last": 1},
}
"""Groups of `UnscaledBins`, in its order; behind them those of cores whose rows have scales, by their axes."""


def _count_half_rate(counts: Counts, steps: Steps, at: NDArray[np.intp], c: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Count some steps at half the rate, and compute their results; ``c`` is what each of them adds to."""
    config, turns = steps.config, steps.config.interleave
    sides = []
    for form, codes, scales, types in (
        (config.a, steps.a_codes, steps.a_scales, steps.a_types),
        (config.b, steps.b_codes, steps.b_scales, steps.b_types),
    ):
        kinds, byte = side(form, codes[:0], scales[:0]).kind[scales[at]], None
        if config.half_scaled:
            kinds, byte = kinds[..., 1:], scales[at][..., 0].astype(np.int64)
        sides.append(unscaled_side(elements(codes[at]), types[at], kinds, byte))
    origin = np.where(steps.first[at], 0, 1 + steps.half[at - turns])
    stimulus = UnscaledStimulus(sides[0], sides[1], c, origin, config.slots)
    own_bins = [counts.get(PREFIX + name, np.zeros((0, 0, 0), np.int64)) for name in _OF_PRODUCTS]
    for name, axes in _OF_HALF_SCALES.items():
        own_bins += _bins(counts, PREFIX + name, axes=axes)
    bins = UnscaledBins(*own_bins)
    results = ResultBins(*(counts[PREFIX + name] for name in ("results", "rounding", "24 ones and a one behind")))
    own = np.zeros(c.shape, np.uint32)
    nearest = config.rounding == "nearest_even"
    count_unscaled(stimulus, config.half_fraction_bits, nearest, bins, results, own)
    return own


def _count_modes(counts: Counts, steps: Steps, own: NDArray[np.uint32], run: Run, offer: Any) -> None:
    """Count changes of the mode and of types, and the types beside steps of FP4, which ignore them."""
    half, turns = steps.half.astype(np.int64), steps.config.interleave
    behind = np.where(steps.first, 0, 1 + np.roll(half, turns))
    np.add.at(counts["modes of a tile"], (half, behind), 1)
    # Between two steps that are not accepted one right behind the other nothing was offered, or it had to wait.
    offered = np.concatenate([[0], np.cumsum(offer)])
    begin, end = run.accepted[:-1] + 1, run.accepted[1:]
    waits = offered[end] - offered[begin] > 0
    after = np.where(end == begin, 0, 1 + waits)
    np.add.at(counts["modes in a row"], (half[1:], half[:-1], after), 1)
    for name, types in (("A", steps.a_types), ("B", steps.b_types)):
        known = np.where(steps.half, PLACES[types], -1)
        both = (known[1:] >= 0) & (known[:-1] >= 0)
        np.add.at(counts[f"{PREFIX}types of {name} in a row"], (known[1:][both], known[:-1][both], after[both]), 1)
    seen = ~steps.half & (own != NAN).any(axis=(1, 2))
    np.add.at(counts["types of FP4"], (steps.a_types[seen], steps.b_types[seen]), 1)


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
