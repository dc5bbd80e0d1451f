"""What a placer gets: cells, nets with their pins, rows to stand in; and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Problem", "Rows", "half_perimeters"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Where cells may stand: rows of one height, in pieces where something is in the way. Lengths in um.

    Attributes
    ----------
    height, site : float
        Of a row, and the grid of the cells' left edges.
    die : tuple of float
        Width and height of the die; its lower left corner is (0, 0).
    bottom : numpy.ndarray
        Shape (n_pieces,): lower edge of each piece, as a number of rows.
    first, last : numpy.ndarray
        Shape (n_pieces,): the sites that a piece begins at, and ends before.
    """

    height: float
    site: float
    die: tuple[float, float]
    bottom: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @property
    def area(self) -> float:
        """Room in all pieces, um2."""
        return float((self.last - self.first).sum()) * self.site * self.height


@dataclass(frozen=True, slots=True)
class Problem:
    """Cells to place and nets to keep short. Lengths in um.

    Attributes
    ----------
    width : numpy.ndarray
        Shape (n_cells,): widths, whole numbers of sites. Every cell is one row high.
    rows : Rows
    net_start : numpy.ndarray
        Shape (n_nets + 1,): net i has the pins ``net_start[i]`` up to, not including, ``net_start[i + 1]``.
    pin_cell : numpy.ndarray
        Shape (n_pins,): the pin's cell; -1 for a pin that is fixed.
    pin_x, pin_y : numpy.ndarray
        Shape (n_pins,): from the cell's centre to the pin; of a fixed pin the place itself.
    along : numpy.ndarray
        Shape (n_nets, 2): what a um of the net counts for along x and along y.
    """

    width: np.ndarray
    rows: Rows
    net_start: np.ndarray
    pin_cell: np.ndarray
    pin_x: np.ndarray
    pin_y: np.ndarray
    along: np.ndarray

    @property
    def n_cells(self) -> int:
        """Number of cells to place."""
        return len(self.width)

    def pins(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of all pins, two arrays of shape (n_pins,).

        Parameters
        ----------
        x, y
            Shape (n_cells,): lower left corners of the cells.
        """
        fixed = self.pin_cell < 0
        centre_x = np.append(x + self.width / 2, 0.0)
        centre_y = np.append(y + self.rows.height / 2, 0.0)
        cell = np.where(fixed, len(x), self.pin_cell)
        return centre_x[cell] + self.pin_x, centre_y[cell] + self.pin_y

    def wirelength(self, x: np.ndarray, y: np.ndarray) -> float:
        """Sum of the nets' half perimeters in um, as `along` weighs them; ``x`` and ``y`` as for `pins`."""
        width, height = half_perimeters(self.net_start, *self.pins(x, y))
        return float(width @ self.along[:, 0] + height @ self.along[:, 1])

    def pulled(self, cell: np.ndarray, x: np.ndarray, y: np.ndarray, along: np.ndarray) -> Problem:
        """The same with one more net for each of ``cell``, which pulls its centre towards a place.

        Parameters
        ----------
        cell
            Shape (n,): cells of the problem.
        x, y
            Shape (n,): the places.
        along
            Shape (n, 2): what a um of the way there counts for along x and along y.
        """
        n = len(cell)
        at_x, at_y = (np.stack([np.zeros(n), place], axis=1).ravel() for place in (x, y))
        return replace(
            self,
            net_start=np.concatenate([self.net_start, self.net_start[-1] + 2 * np.arange(1, n + 1)]),
            pin_cell=np.concatenate([self.pin_cell, np.stack([cell, np.full(n, -1)], axis=1).ravel()]),
            pin_x=np.concatenate([self.pin_x, at_x]),
            pin_y=np.concatenate([self.pin_y, at_y]),
            along=np.concatenate([self.along, along]),
        )


def half_perimeters(net_start: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Width and height of the smallest box around the pins of each net, shapes (n_nets,).

    Parameters
    ----------
    net_start
        Shape (n_nets + 1,), as in `Problem`.
    x, y
        Shape (n_pins,).
    """
    used = np.flatnonzero(np.diff(net_start) > 0)
    found = []
    for place in (x, y):
        span = np.zeros(len(net_start) - 1)
        if len(used):
            # Nets without pins lie between the starts of others: leaving them out leaves no gap.
            starts = net_start[used]
            span[used] = np.maximum.reduceat(place, starts) - np.minimum.reduceat(place, starts)
        found.append(span)
    return found[0], found[1]
