"""C of special kinds, and C beside given sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SPECIAL", "nearly_opposite", "opposite"]

SPECIAL = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x003FFFFF, 0x807FFFFF, 0x7F7FFFFF, 0xFF7FFFFF),
        *(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF),
        *(0x3F800000, 0xBF800000),
    ],
    np.uint32,
)
"""FP32 numbers of all kinds, as bits."""


def opposite(sums: NDArray[np.float64]) -> NDArray[np.uint32]:
    """FP32 bits of the negative sums."""
    with np.errstate(over="ignore"):
        return (-sums).astype(np.float32).view(np.uint32)


def nearly_opposite(sums: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint32]:
    """C that cancels all of the sums, now and then, all but one bit, mostly any bits from a random one downwards.

    Or the next number towards zero.
    """
    top = np.uint32(1) << rng.integers(0, 24, sums.shape, np.uint32)
    below = rng.integers(0, 1 << 24, sums.shape, np.uint32) & (top - np.uint32(1))
    flip = np.choose(rng.choice(3, sums.shape, p=[0.1, 0.3, 0.6]), [np.zeros_like(top), top, top | below])
    nearer = (rng.random(sums.shape) < 0.1).astype(np.uint32)
    found: NDArray[np.uint32] = (opposite(sums) ^ flip * (1 - nearer)) - nearer
    return found
