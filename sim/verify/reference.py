"""The golden model on steps of many tiles at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sim import golden
from sim.steps import Steps, check_depth

__all__ = ["Trace", "trace"]


@dataclass(frozen=True)
class Trace:
    """What the golden model says about steps.

    Parameters
    ----------
    c
        What every step adds to, uint32 bit patterns, (S, M, N); the stimulus's C where numerics are exact.
    results
        What the core must answer, as `sim.steps.Steps.expected` has it, uint32, (R, M, N).
    """

    c: NDArray[np.uint32]
    results: NDArray[np.uint32]


_ROWS = 32
"""Rows of the GEMMs that tiles are put together to."""


def trace(steps: Steps) -> Trace:
    """Compute all steps: one call of the golden model for all tiles' first steps, one for their second, and so on.

    Parameters
    ----------
    steps
        At least one.

    Raises
    ------
    InputError
        A tile is deeper than an exact core was made for.
    """
    config = steps.config
    if config.exact:
        return Trace(steps.c, _exact(steps))
    turns = config.interleave
    index = np.arange(len(steps))
    # Position of each step in its tile: steps since the last ``first`` of the same slot.
    begins = np.where(steps.first, index, -1)
    for slot in range(turns):
        np.maximum.accumulate(begins[slot::turns], out=begins[slot::turns])
    position = (index - begins) // turns
    order = np.argsort(position, kind="stable")
    bounds = np.searchsorted(position[order], np.arange(position.max() + 2))

    a_scales, b_scales = _read(steps)
    c, d = steps.c.copy(), np.empty_like(steps.c)
    for start, stop in pairwise(bounds.tolist()):
        now = order[start:stop]
        if start:
            c[now] = d[now - turns]
        d[now] = golden.step(
            steps.a_codes[now],
            a_scales[now],
            steps.b_codes[now],
            b_scales[now],
            c[now].view(np.float32),
            fraction_bits=config.fraction_bits,
            rounding=config.rounding,
        ).view(np.uint32)
    return Trace(c, d[steps.last])


def _read(steps: Steps) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Block scales of A and B without the bits that the core does not read."""
    masks = (np.uint8(0xFF if steps.config.tagged(side) else 0x7F) for side in "ab")
    a_scales, b_scales = (scales & mask for scales, mask in zip((steps.a_scales, steps.b_scales), masks, strict=True))
    return a_scales, b_scales


def _exact(steps: Steps) -> NDArray[np.uint32]:
    """Results of tiles that are rounded once.

    Several tiles of one depth are the diagonal of one GEMM: what else it computes costs less than a call.
    """
    config = steps.config
    begins = np.maximum.accumulate(np.where(steps.first, np.arange(len(steps)), 0))
    ends = np.flatnonzero(steps.last)
    depths = ends + 1 - begins[ends]
    check_depth(config, int(depths.max(initial=0)) * config.depth)
    scales = _read(steps)
    results = np.empty((len(ends), config.rows, config.columns), np.uint32)
    together = max(1, _ROWS // max(config.rows, config.columns))
    for depth in np.unique(depths):
        same = np.flatnonzero(depths == depth)
        for chosen in np.split(same, range(together, len(same), together)):
            first = begins[ends[chosen]]
            part = first[:, None] + np.arange(depth)
            a, b = (
                golden.QuantizedTensor(
                    codes[part].swapaxes(1, 2).reshape(len(part) * codes.shape[1], -1),
                    blocks[part].swapaxes(1, 2).reshape(len(part) * codes.shape[1], -1),
                    np.float32(1),
                    config.format,
                )
                for codes, blocks in zip((steps.a_codes, steps.b_codes), scales, strict=True)
            )
            c = np.zeros((len(part), config.rows, len(part), config.columns), np.uint32)
            diagonal = np.arange(len(part))
            c[diagonal, :, diagonal] = steps.c[first]
            d = golden.accumulate(a, b, c.reshape(len(a.codes), -1).view(np.float32), numerics="exact")
            results[chosen] = d.view(np.uint32).reshape(c.shape)[diagonal, :, diagonal]
    return results
