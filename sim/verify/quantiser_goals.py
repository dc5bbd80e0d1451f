"""Coverage goals of a hardware quantiser: what a run must have seen of blocks, choices, scales and codes.

They follow from the contract (docs/quantiser.md), and are counted in what the golden model says of each block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from sim import golden
from sim.verify.bins import Axis, Goals, numbers
from sim.verify.coverage import Counts

__all__ = ["count_quantised", "quantiser_goals"]

_HIGHEST = 0x7E
"""Byte of the largest block scale, 448; bit 7 is the choice."""
_NAN = 0x7F
_MAGNITUDE, _INFINITY = np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)
_SUBNORMAL = np.uint32(0x00800000)
"""Magnitudes below this one are subnormal, or zero."""

_BLOCKS = (
    *("zeros", "subnormal numbers alone", "numbers whose scale is zero", "numbers"),
    *("with NaN", "with infinity", "with both"),
)
_SPECIAL = ("NaN", "+Inf", "-Inf")
_CODES = 16
_NEVER = 8
"""The code that is never produced: -0, or -8."""
_MIDPOINTS = 7


def quantiser_goals(config: QuantiserConfig) -> dict[str, Goals]:
    """All goals of a quantiser, by name."""
    kinds: Axis = ("", tuple(f"{each.element.name} with top {each.top}" for each in config.candidates))
    lanes: Axis = ("lane", numbers(range(BLOCK)))
    found: dict[str, Goals] = {}

    def add(name: str, *axes: Axis, reachable: NDArray[np.bool_] | None = None, reason: str = "") -> None:
        shape = tuple(len(labels) for _, labels in axes)
        found[name] = Goals(name, axes, np.ones(shape, np.bool_) if reachable is None else reachable, reason)

    add("blocks", ("", _BLOCKS))
    add("not finite", lanes, ("", _SPECIAL))
    add("largest number", lanes, ("", ("positive", "negative")))
    if config.chooses:
        # A rule by magnitudes has no measures that could be equal.
        reachable = np.array([True, config.by_error, True])
        of = ("is better", "is taken at a tie")
        choices = (*(f"{kinds[1][0]} {each}" for each in of), f"{kinds[1][1]} {of[0]}")
        add("choice", ("", choices), reachable=reachable, reason="" if reachable.all() else "no errors are compared")
    add("scales", kinds, ("byte", tuple(f"0x{byte:02x}" for byte in range(1, _HIGHEST + 1))))
    add("saturated scales", kinds)
    shape = len(config.candidates), BLOCK, _CODES
    reachable = np.broadcast_to(np.arange(_CODES) != _NEVER, shape).copy()
    add("codes", kinds, lanes, ("", numbers(range(_CODES))), reachable=reachable, reason="code 8 never occurs")
    between = tuple(f"{code} and {code + 1}" for code in range(_MIDPOINTS))
    add("numbers half-way between codes", kinds, ("", between))
    add("traffic", ("", ("a block in every cycle", "gaps and stalls")))
    return found


def count_quantised(
    config: QuantiserConfig, words: NDArray[np.uint32], wanted: golden.HardwareResult, stalled: bool
) -> Counts:
    """Count the events of some blocks.

    Parameters
    ----------
    config
        The quantiser.
    words
        Numbers that went in, FP32, (n, 16).
    wanted
        What the golden model makes of them.
    stalled
        Whether they came with gaps, and results were not always taken.
    """
    magnitudes = words & _MAGNITUDE
    peaks = magnitudes.max(axis=1)
    second = wanted.second.ravel().astype(np.intp)
    scales, codes = wanted.tensor.scales.ravel() & np.uint8(_NAN), wanted.tensor.codes.reshape(words.shape)
    finite = ~wanted.invalid.ravel()
    scaled = finite & (scales > 0)
    found = {
        "blocks": _of_blocks(magnitudes, peaks, scales, finite),
        "not finite": _not_finite(words[~finite]),
        "largest number": _largest(words[finite], magnitudes[finite]),
        "scales": _binned((len(config.candidates), _NAN), second[scaled], scales[scaled])[:, 1:],
        "saturated scales": np.bincount(second[wanted.saturated.ravel()], minlength=len(config.candidates)),
        "codes": _of_codes(len(config.candidates), second[scaled], codes[scaled]),
        "numbers half-way between codes": _half_way(config, magnitudes[scaled], wanted, scaled),
        "traffic": np.eye(2, dtype=np.int64)[int(stalled)] * len(words),
    }
    if config.chooses:
        # Where the first candidate saturates it is taken, whatever the errors.
        free = scaled & ~(wanted.saturated.ravel() & ~wanted.second.ravel())
        kinds = np.where(second > 0, 2, wanted.tie.ravel())
        found["choice"] = np.bincount(kinds[free], minlength=3)
    return found


def _binned(shape: tuple[int, ...], *indices: NDArray[np.integer]) -> NDArray[np.int64]:
    """How many events each bin of a shape has; ``indices`` are those of the events, one array for each axis."""
    flat = np.zeros(1, np.intp)
    for size, index in zip(shape, indices, strict=True):
        flat = flat * size + index
    return np.bincount(flat.ravel(), minlength=int(np.prod(shape))).reshape(shape)


def _of_blocks(
    magnitudes: NDArray[np.uint32], peaks: NDArray[np.uint32], scales: NDArray[np.uint8], finite: NDArray[np.bool_]
) -> NDArray[np.int64]:
    kinds = np.full(len(peaks), _BLOCKS.index("numbers"))
    kinds[scales == 0] = _BLOCKS.index("numbers whose scale is zero")
    kinds[peaks < _SUBNORMAL] = _BLOCKS.index("subnormal numbers alone")
    kinds[peaks == 0] = _BLOCKS.index("zeros")
    bad = magnitudes[~finite]
    nan, infinite = (bad > _INFINITY).any(axis=1), (bad == _INFINITY).any(axis=1)
    kinds[~finite] = _BLOCKS.index("with NaN") + np.where(nan, 2 * infinite, 1)
    return np.bincount(kinds, minlength=len(_BLOCKS))


def _not_finite(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    magnitudes = words & _MAGNITUDE
    kinds = np.where(magnitudes > _INFINITY, 0, 1 + (words >> np.uint32(31)))
    block, lane = np.nonzero(magnitudes >= _INFINITY)
    return _binned((BLOCK, len(_SPECIAL)), lane, kinds[block, lane])


def _largest(words: NDArray[np.uint32], magnitudes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Lanes of the largest numbers that are not zero, and their signs."""
    lane = magnitudes.argmax(axis=1)
    top = words[np.arange(len(words)), lane]
    some = (top & _MAGNITUDE) > 0
    return _binned((BLOCK, 2), lane[some], (top >> np.uint32(31))[some])


def _of_codes(candidates: int, second: NDArray[np.intp], codes: NDArray[np.uint8]) -> NDArray[np.int64]:
    first = (second[:, None] * BLOCK + np.arange(BLOCK)) * _CODES
    return np.bincount((first + codes).ravel(), minlength=candidates * BLOCK * _CODES).reshape(
        candidates, BLOCK, _CODES
    )


def _half_way(
    config: QuantiserConfig, magnitudes: NDArray[np.uint32], wanted: golden.HardwareResult, scaled: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Numbers at midpoints, which have the even code of the two beside them."""
    form, second = wanted.tensor.form, wanted.second.ravel()[scaled]
    codes = wanted.tensor.codes.reshape(-1, BLOCK)[scaled]
    # Two's complement, or a sign and a magnitude: the signs of values say which.
    codes = np.where(codes < _NEVER, codes, _CODES - codes if form.name == "nvint4" else codes - _NEVER)
    scales = form.scale.table[wanted.tensor.scales.ravel()[scaled] & np.uint8(_NAN)]
    # Exact: a scale has four bits, a tensor scale at most 14, and a midpoint five.
    unit = scales * float(wanted.tensor.tensor_scale)
    numbers_ = magnitudes.view(np.float32).astype(np.float64)
    found = np.zeros((len(config.candidates), _MIDPOINTS), np.int64)
    for kind, candidate in enumerate(config.candidates):
        own = second == bool(kind)
        halves = np.array(candidate.halves)
        middles = (halves[:-1] + halves[1:]) / 4
        below, above = np.concatenate([[-1.0], middles]), np.concatenate([middles, [-1.0]])
        for code, bounds in ((codes[own] - 1, below), (codes[own], above)):
            at = numbers_[own] == bounds[codes[own]] * unit[own, None]
            found[kind] += np.bincount(code[at], minlength=_MIDPOINTS)
    return found
