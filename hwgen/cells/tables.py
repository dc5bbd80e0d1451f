"""Lookup tables of a cell library: linear between their points and beyond their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["Table", "TableBank"]


@dataclass(frozen=True)
class Table:
    """A lookup table over one or two axes, linear between its points and beyond its ends.

    Delay, transition and power tables take (input slew in ns, load in fF), constraints (slew of the related
    pin, slew of the constrained pin), both in ns; an axis the library leaves out has one point.

    Attributes
    ----------
    x, y : numpy.ndarray
        Shapes (n,) and (m,), increasing.
    values : numpy.ndarray
        Shape (n, m); ns or fJ.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray

    def __call__(self, x: Any, y: Any = 0.0) -> np.ndarray:
        """Interpolate at `x` and `y` (arrays or numbers, broadcast against each other)."""
        x, y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
        return self._bank(np.zeros(x.size, dtype=np.intp), x.ravel(), y.ravel()).reshape(x.shape)

    @cached_property
    def _bank(self) -> TableBank:
        return TableBank([self])


class TableBank:
    """Many tables in one array, so that one call looks up a different table for every element.

    Parameters
    ----------
    tables : sequence of Table

    Attributes
    ----------
    x, y, values : numpy.ndarray
        Shapes (tables, n), (tables, m) and (tables, n, m): all tables at the size of the largest. Points beyond a
        table's own end lie on the straight line through its last two.
    """

    def __init__(self, tables: Sequence[Table]):
        n = max([2, *(len(table.x) for table in tables)])
        m = max([2, *(len(table.y) for table in tables)])
        count = len(tables)
        self.x = np.empty((count, n))
        self.y = np.empty((count, m))
        self.values = np.empty((count, n, m))
        for i, table in enumerate(tables):
            # Padding continues the last segment as a straight line, which is what extrapolation does.
            x, values = _pad(table.x, table.values, n)
            y, transposed = _pad(table.y, values.T, m)
            self.x[i], self.y[i], self.values[i] = x, y, transposed.T
        self._flat = self.values.reshape(-1)
        self._shape = (n, m)
        # Axes that all tables share are searched once.
        self._alike = tuple(axes[0] if count and (axes == axes[0]).all() else None for axes in (self.x, self.y))

    def __call__(self, index: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Interpolate table ``index[i]`` at ``x[i]``, ``y[i]``; all of shape (n,)."""
        n, m = self._shape
        (i, s), (j, t) = (
            _segment(axes, index, at) if alike is None else _segment_alike(alike, at)
            for axes, alike, at in ((self.x, self._alike[0], x), (self.y, self._alike[1], y))
        )
        corner = (index * n + i) * m + j
        flat = self._flat
        low = flat[corner] * (1 - t) + flat[corner + 1] * t
        high = flat[corner + m] * (1 - t) + flat[corner + m + 1] * t
        return low * (1 - s) + high * s

    def each(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Interpolate every table at ``x[i]``, ``y[i]``, both of shape (n,); shape (tables, n)."""
        count, n = len(self.values), len(x)
        across, up = self._alike
        if across is None or up is None:
            index = np.repeat(np.arange(count), n)
            return self(index, np.tile(x, count), np.tile(y, count)).reshape(count, n)
        (i, s), (j, t) = _segment_alike(across, x), _segment_alike(up, y)
        corner = i * self._shape[1] + j
        flat = self._flat.reshape(count, -1)
        low = np.take(flat, corner, axis=1) * (1 - t) + np.take(flat, corner + 1, axis=1) * t
        corner += self._shape[1]
        high = np.take(flat, corner, axis=1) * (1 - t) + np.take(flat, corner + 1, axis=1) * t
        return low * (1 - s) + high * s


def _pad(axis: np.ndarray, values: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    if len(axis) == 1:
        return np.arange(size, dtype=float), np.repeat(values, size, axis=0)
    missing = size - len(axis)
    if missing == 0:
        return axis, values
    steps = np.arange(1, missing + 1)
    more_axis = axis[-1] + steps * (axis[-1] - axis[-2])
    more_values = values[-1] + steps[:, None] * (values[-1] - values[-2])
    return np.concatenate([axis, more_axis]), np.concatenate([values, more_values])


def _segment(axes: np.ndarray, index: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Segment of each lookup and the position in it (below 0 or above 1 outside the axis)."""
    segment = np.zeros(len(index), dtype=np.intp)
    for column in range(1, axes.shape[1] - 1):
        segment += at >= axes[index, column]
    low = axes[index, segment]
    return segment, (at - low) / (axes[index, segment + 1] - low)


def _segment_alike(axis: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `_segment`, on one axis."""
    segment = np.searchsorted(axis[1:-1], at, side="right")
    low = axis[segment]
    return segment, (at - low) / (axis[segment + 1] - low)
