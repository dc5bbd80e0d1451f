"""GEMMs in bulk: shapes as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hwgen.errors import InputError

__all__ = ["LARGEST_WORK", "Gemms", "TooLargeError", "product"]

LARGEST_WORK = 1 << 62
"""Multiply-accumulates of one GEMM must stay below this, so that every count fits 64 bits."""


class TooLargeError(InputError):
    """A GEMM has more bytes or cycles than can be counted.

    Attributes
    ----------
    place : int
        Which of the GEMMs it is.
    """

    def __init__(self, place: int, name: str | None = None) -> None:
        self.place = place
        super().__init__(f"{name or f'GEMM {place}'}: too large: at most 2^62 bytes or cycles can be counted")


def product(*factors: ArrayLike, places: NDArray[np.intp] | None = None) -> NDArray[np.int64]:
    """Counts multiplied, int64; ``places`` says which of the GEMMs they are of, all by default.

    Raises
    ------
    TooLargeError
        A product does not fit.
    """
    sizes = np.prod(np.broadcast_arrays(*(np.asarray(factor, float) for factor in factors)), axis=0)
    if sizes.size and sizes.max() >= LARGEST_WORK:
        place = int(np.argmax(sizes))
        raise TooLargeError(place if places is None else int(places[place]))
    found = np.asarray(1, np.int64)
    for factor in factors:
        found = found * np.asarray(factor, np.int64)
    return found


@dataclass(frozen=True)
class Gemms:
    """GEMMs, ``batch`` independent products D = A B^T each, A (M, K) and B (N, K).

    Parameters
    ----------
    m, n, k, batch
        int64, (L,); anything that broadcasts to one dimension. All at least 1.
    half
        bool, (L,): GEMMs in FP8, at half the rate of cores with a slot; none by default.

    Raises
    ------
    InputError
        A size is not a whole number of at least 1, or a GEMM is too large to count; the message names the first.
    """

    m: NDArray[np.int64]
    n: NDArray[np.int64]
    k: NDArray[np.int64]
    batch: NDArray[np.int64]
    half: NDArray[np.bool_]

    def __init__(self, m: ArrayLike, n: ArrayLike, k: ArrayLike, batch: ArrayLike = 1, half: ArrayLike = False) -> None:
        names = ("m", "n", "k", "batch")
        given = np.broadcast_arrays(*(np.atleast_1d(np.asarray(value)) for value in (m, n, k, batch)))
        for name, values in zip(names, given, strict=True):
            if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
                raise InputError(f"{name}: must be whole numbers in one dimension, not {values.dtype} {values.shape}")
            if values.size and values.min() < 1:
                place = int(np.argmax(values < 1))
                raise InputError(f"GEMM {place}: {name} = {values[place]}: must be at least 1")
        work = np.prod([values.astype(float) for values in given], axis=0)
        if work.size and work.max() >= LARGEST_WORK:
            place = int(np.argmax(work))
            sizes = ", ".join(f"{name} = {values[place]}" for name, values in zip(names, given, strict=True))
            raise InputError(f"GEMM {place}: {sizes}: at most 2^62 multiply-accumulates can be counted")
        for name, values in zip(names, given, strict=True):
            object.__setattr__(self, name, np.ascontiguousarray(values, np.int64))

        object.__setattr__(self, "half", np.broadcast_to(np.asarray(half, bool), self.m.shape))

    def __len__(self) -> int:
        return len(self.m)

    @property
    def macs(self) -> NDArray[np.int64]:
        """Multiply-accumulates that were asked for, M N K batch, (L,)."""
        return self.m * self.n * self.k * self.batch

    @classmethod
    def of(cls, shapes: Sequence[tuple[int, int, int, int]], half: ArrayLike = False) -> Gemms:
        """From (M, N, K, batch) of each."""
        m, n, k, batch = np.array(shapes, np.int64).reshape(-1, 4).T
        return cls(m, n, k, batch, half)
