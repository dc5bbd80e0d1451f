"""Global placement: cells as charges that spread over the die while nets hold them together.

The method is that of ePlace (Lu et al., ACM TODAES 20(2), 2015): the wirelength is a weighted average that has a
gradient everywhere (Hsu, Balabanov and Chang, IEEE TCAD 32(4), 2013); crowded places repel as electric charge does,
the potential being found by cosine transforms; Nesterov's method descends on the sum. The weight of the density
grows until the cells no longer overlap but for little. Fillers, cells without nets, take the room that is to be left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

from hwgen.jit import borrowing, inlined
from hwgen.layout.problem import Problem

__all__ = ["FROM_AFAR", "FROM_NEAR", "GROWTH", "OVERFLOW", "spread"]

OVERFLOW = 0.08
"""Overlap that is left for legalisation, as a share of the cells' area."""

_STEPS = 1000
_TRIES = 3
_FAR = 30.0
_LEAST_GROWTH = 0.95
_TOLERANCE = 0.07

GROWTH = 1.06
"""By how much the weight of the density grows in a step in which nets do not."""

FROM_AFAR, FROM_NEAR = 1e-3, 1.0
"""What the density counts for at first, as a share of the nets: to find places for all cells, and to part those that
overlap."""


@dataclass
class _Field:
    """The die in bins, and what a charge in each feels."""

    bins: int
    size: tuple[float, float]
    fixed: np.ndarray
    capacity: float

    def __post_init__(self) -> None:
        waves = [np.pi * np.arange(self.bins) / (self.bins * size) for size in self.size]
        squares = waves[0][:, None] ** 2 + waves[1][None, :] ** 2
        squares[0, 0] = 1.0
        self._by_x, self._by_y = waves[0][:, None] / squares, waves[1][None, :] / squares

    def forces(self, density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Field along x and along y in every bin, shapes (bins, bins)."""
        waves = fft.dctn(density)
        scale = 1.0 / (2 * self.bins) ** 2
        along_x = fft.dct(_sine(waves * self._by_x, 0), type=3, axis=1) * scale
        along_y = fft.dct(_sine(waves * self._by_y, 1), type=3, axis=0) * scale
        return along_x, along_y


def _sine(waves: np.ndarray, axis: int) -> np.ndarray:
    """The sum of sines where `scipy.fft.dct` of type 3 would give that of cosines."""
    moved = np.zeros_like(waves)
    if axis == 0:
        moved[:-1] = waves[1:]
    else:
        moved[:, :-1] = waves[:, 1:]
    return np.asarray(fft.dst(moved, type=3, axis=axis))


@inlined
def _exp(at):
    """Of a number up to 0; far below, it is nothing."""
    return np.exp(at) if at > -_FAR else 0.0


@inlined
def _at(place, pin_cell, pin_at, pin):
    """Where a pin is along an axis."""
    cell = pin_cell[pin]
    return pin_at[pin] + (place[cell] if cell >= 0 else 0.0)


@inlined
def _pull_pair(place, pin_cell, pin_at, first, weight, inverse, gradient):
    """As `_pull`, of a net of two pins."""
    a, b = _at(place, pin_cell, pin_at, first), _at(place, pin_cell, pin_at, first + 1)
    distance = max(a, b) - min(a, b)
    half = 0.5 * distance * inverse
    slope = 1.0
    if half <= _FAR:
        e = np.exp(-2.0 * half)
        tanh = (1.0 - e) / (1.0 + e)
        slope = tanh + half * (1.0 - tanh * tanh)
    slope = slope if a > b else -slope
    if pin_cell[first] >= 0:
        gradient[pin_cell[first]] += weight * slope
    if pin_cell[first + 1] >= 0:
        gradient[pin_cell[first + 1]] += weight * -slope
    return distance


@inlined
def _pull_net(place, pin_cell, pin_at, first, n, weight, inverse, gradient, room):
    """As `_pull`, of a net of n pins; ``room`` is for five numbers of each."""
    low, high = 1e30, -1e30
    for i in range(n):
        at = _at(place, pin_cell, pin_at, first + i)
        room[0, i] = at
        low, high = min(low, at), max(high, at)
    up_sum = up_moment = down_sum = down_moment = 0.0
    # At either end, one of the two is 1 and the other is known.
    across = _exp((low - high) * inverse)
    for i in range(n):
        at = room[0, i]
        from_high, from_low = (at - high) * inverse, (low - at) * inverse
        up = 1.0 if from_high == 0.0 else across if at == low else _exp(from_high)
        up_sum += up
        up_moment += up * from_high
        down = 1.0 if from_low == 0.0 else across if at == high else _exp(from_low)
        down_sum += down
        down_moment += down * from_low
        room[1, i], room[2, i], room[3, i], room[4, i] = up, down, from_high, from_low
    up_mean, down_mean = up_moment / up_sum, down_moment / down_sum
    for i in range(n):
        cell = pin_cell[first + i]
        if cell >= 0:
            slope = room[1, i] * (1.0 + room[3, i] - up_mean) / up_sum
            gradient[cell] += weight * (slope - room[2, i] * (1.0 + room[4, i] - down_mean) / down_sum)
    return high - low


@borrowing
def _pull(place, net_start, pin_cell, pin_at, along, gamma, gradient, room):
    """Add the gradient of the smooth wirelength along one axis; returns the true one. Nets have two pins or more."""
    total = 0.0
    inverse = 1.0 / gamma
    for net in range(len(net_start) - 1):
        first, weight = net_start[net], along[net]
        n = net_start[net + 1] - first
        if weight == 0.0:
            continue
        if n == 2:
            total += weight * _pull_pair(place, pin_cell, pin_at, first, weight, inverse, gradient)
        else:
            total += weight * _pull_net(place, pin_cell, pin_at, first, n, weight, inverse, gradient, room)
    return total


@borrowing
def _charge(x, y, wide, across, high, charge, density, bin_x, bin_y, parts):
    """Add the area of every cell to the bins that it, or the least charge around its centre, covers.

    ``wide`` and ``high`` are the sides of that charge, ``across`` the first in bins, ``charge`` what is in a full bin.
    ``parts`` is room for a number for each bin of a column.
    """
    bins = density.shape[0]
    for cell in range(len(x)):
        left, low = (x[cell] - 0.5 * wide[cell]) / bin_x, (y[cell] - 0.5 * high) / bin_y
        right, top = left + across[cell], low + high / bin_y
        area = charge[cell]
        first, last = max(int(low), 0), min(int(top) + 1, bins)
        for j in range(first, last):
            parts[j] = min(top, j + 1.0) - max(low, float(j))
        for i in range(max(int(left), 0), min(int(right) + 1, bins)):
            part = area * (min(right, i + 1.0) - max(left, float(i)))
            for j in range(first, last):
                density[i, j] += part * parts[j]


@borrowing
def _push(x, y, wide, across, high, charge, along_x, along_y, bin_x, bin_y, parts, push_x, push_y):
    """The field's force on every cell; its charge as of `_charge`."""
    bins = along_x.shape[0]
    for cell in range(len(x)):
        left, low = (x[cell] - 0.5 * wide[cell]) / bin_x, (y[cell] - 0.5 * high) / bin_y
        right, top = left + across[cell], low + high / bin_y
        area = charge[cell]
        force_x = force_y = 0.0
        first, last = max(int(low), 0), min(int(top) + 1, bins)
        for j in range(first, last):
            parts[j] = min(top, j + 1.0) - max(low, float(j))
        for i in range(max(int(left), 0), min(int(right) + 1, bins)):
            part = area * (min(right, i + 1.0) - max(left, float(i)))
            for j in range(first, last):
                covered = part * parts[j]
                force_x += covered * along_x[i, j]
                force_y += covered * along_y[i, j]
        push_x[cell] = force_x
        push_y[cell] = force_y


@borrowing
def _weighed(pull, force, weight, pins, area, found):
    """Preconditioned gradient of wirelength and density together."""
    for axis in range(2):
        for cell in range(len(pins)):
            along = pull[axis, cell] - weight * force[axis, cell]
            found[axis, cell] = along / max(pins[cell] + weight * area[cell], 1.0)


@borrowing
def _moved(reference, slope, step, previous, momentum, low, high, major, ahead):
    """A step down the slope, and where momentum takes it; both within the die."""
    for axis in range(2):
        for cell in range(reference.shape[1]):
            least, most = low[axis, cell], high[axis, cell]
            at = min(max(reference[axis, cell] - step * slope[axis, cell], least), most)
            major[axis, cell] = at
            ahead[axis, cell] = min(max(at + momentum * (at - previous[axis, cell]), least), most)


@borrowing
def _room(left, right, low, high, bin_x, bin_y, free):
    """Add the area of boxes to the bins that they cover."""
    bins = free.shape[0]
    for box in range(len(left)):
        x0, x1, y0, y1 = left[box] / bin_x, right[box] / bin_x, low[box] / bin_y, high[box] / bin_y
        for i in range(int(x0), min(int(x1) + 1, bins)):
            part = bin_x * bin_y * max(min(x1, i + 1.0) - max(x0, float(i)), 0.0)
            for j in range(int(y0), min(int(y1) + 1, bins)):
                free[i, j] += part * max(min(y1, j + 1.0) - max(y0, float(j)), 0.0)


def _obstacles(problem: Problem, bins: int, density: float) -> np.ndarray:
    """What of each bin's room is no row's, um2, counted as if filled to ``density``."""
    rows = problem.rows
    bin_x, bin_y = rows.die[0] / bins, rows.die[1] / bins
    free = np.zeros((bins, bins))
    low = rows.bottom * rows.height
    _room(rows.first * rows.site, rows.last * rows.site, low, low + rows.height, bin_x, bin_y, free)
    return np.clip(bin_x * bin_y - free, 0, None) * density


class _Descent:
    """State of one descent: cells first, fillers behind them."""

    def __init__(self, problem: Problem, x: np.ndarray, y: np.ndarray, density: float, seed: int, first: float) -> None:
        rows = problem.rows
        self.problem = problem
        self.random = np.random.default_rng(seed)
        cells = float(problem.width.sum()) * rows.height
        room = rows.area * density - cells
        each = 2 * float(problem.width.mean())
        fillers = int(max(room, 0.0) / (each * rows.height))
        self.width = np.concatenate([problem.width, np.full(fillers, each)])
        self.area = self.width * rows.height
        self.n = len(self.width)
        self.cells = problem.n_cells
        self.cell_area = cells
        # As many bins as cells fit into the rows. Around an array most of the die has no rows, so that bins are larger
        # than cells there: finer ones take longer, and wires are as long.
        places = rows.area / (cells / self.cells) * density
        bins = 1 << int(np.clip(np.round(np.log2(np.sqrt(places))), 4, 9))
        self.bin_x, self.bin_y = rows.die[0] / bins, rows.die[1] / bins
        # The charge of a cell, at least one and a half bins wide and high.
        self.wide, self.tall = np.maximum(self.width, 1.5 * self.bin_x), max(rows.height, 1.5 * self.bin_y)
        self.across = self.wide / self.bin_x
        share = self.width * rows.height / (self.wide * self.tall)
        self.charge = share * self.bin_x * self.bin_y
        self.field = _Field(bins, (self.bin_x, self.bin_y), _obstacles(problem, bins, density), density)
        # Nets with one pin pull at nothing; around an array, most are such.
        size = np.diff(problem.net_start)
        pulls = size > 1
        on_net = np.repeat(pulls, size)
        self.net_start = np.concatenate([[0], np.cumsum(size[pulls])])
        self.room = np.empty((5, int(size.max(initial=1))))
        self.pin_cell, self.along = problem.pin_cell[on_net], np.ascontiguousarray(problem.along[pulls].T)
        self.pin_at = problem.pin_x[on_net], problem.pin_y[on_net]
        pins = np.bincount(problem.pin_cell[problem.pin_cell >= 0], minlength=self.n).astype(float)
        self.pins = pins
        self.at = np.empty((2, self.n))
        self.at[:, : self.cells] = x, y
        self.at[:, self.cells :] = self._scattered(fillers)
        self.low = np.stack([self.width / 2, np.full(self.n, rows.height / 2)])
        self.high = np.array(rows.die)[:, None] - self.low
        # No good placement is shorter than a cell's side for each pin: what a change of length is compared with.
        self.least_length = max(len(problem.pin_cell), 1) * float(np.sqrt(cells / self.cells))
        self.weight = 0.0
        self.first = first
        self.gamma = 1.0
        self.overflow = 1.0
        self.length = 0.0

    def _scattered(self, fillers: int) -> np.ndarray:
        """Places for fillers, drawn from the rows."""
        rows = self.problem.rows
        room = (self.problem.rows.last - self.problem.rows.first).astype(float)
        piece = self.random.choice(len(room), fillers, p=room / room.sum())
        across = rows.first[piece] + room[piece] * self.random.random(fillers)
        return np.stack([across * rows.site, (rows.bottom[piece] + 0.5) * rows.height])

    def set_gamma(self) -> None:
        """Smoother while cells overlap more."""
        base = 2.0 * (self.bin_x + self.bin_y)
        self.gamma = base * 10 ** ((self.overflow - 0.1) * 20 / 9 - 1)

    def pull(self, at: np.ndarray) -> np.ndarray:
        """Gradient of the wirelength; sets `length`."""
        gradient = np.zeros((2, self.n))
        self.length = 0.0
        for axis, (pin, along) in enumerate(zip(self.pin_at, self.along, strict=True)):
            nets = self.net_start, self.pin_cell, pin, along
            self.length += _pull(at[axis], *nets, self.gamma, gradient[axis], self.room)
        return gradient

    def push(self, at: np.ndarray) -> np.ndarray:
        """Force of the density on every cell; sets `overflow`."""
        field = self.field
        bins = self.bin_x, self.bin_y, np.empty(field.bins)
        density = np.zeros_like(field.fixed)
        first, rest = slice(self.cells), slice(self.cells, self.n)
        _charge(*at[:, first], self.wide[first], self.across[first], self.tall, self.charge[first], density, *bins)
        over = density + field.fixed - field.capacity * self.bin_x * self.bin_y
        self.overflow = float(np.clip(over, 0, None).sum() / self.cell_area)
        _charge(*at[:, rest], self.wide[rest], self.across[rest], self.tall, self.charge[rest], density, *bins)
        along_x, along_y = field.forces((density + field.fixed) / (self.bin_x * self.bin_y))
        force = np.empty((2, self.n))
        _push(*at, self.wide, self.across, self.tall, self.charge, along_x, along_y, *bins, *force)
        return force

    def slope(self, at: np.ndarray) -> np.ndarray:
        """Preconditioned gradient of wirelength and density together."""
        pull, force = self.pull(at), self.push(at)
        if self.weight == 0.0:
            self.weight = self.first * float(np.abs(pull).sum() / max(np.abs(force).sum(), 1e-30))
        found = np.empty_like(pull)
        _weighed(pull, force, self.weight, self.pins, self.area, found)
        return found

    def within(self, at: np.ndarray) -> np.ndarray:
        """Places moved into the die."""
        return np.clip(at, self.low, self.high)


def _length(vector: np.ndarray) -> float:
    """Euclidean norm. That of numpy is a product of BLAS, whose last digits hang on how many threads it has."""
    return float(np.sqrt(np.square(vector).sum()))


def spread(
    problem: Problem,
    x: np.ndarray,
    y: np.ndarray,
    *,
    density: float,
    seed: int,
    overflow: float = OVERFLOW,
    growth: float = GROWTH,
    first: float = FROM_AFAR,
) -> tuple[np.ndarray, np.ndarray]:
    """Spread cells over the rows so that nets are short.

    Parameters
    ----------
    problem
        Cells and nets.
    x, y
        Shape (n_cells,): centres to begin with, um.
    density
        How full rows may be.
    seed
        Of the fillers' first places.
    overflow
        Share of the cells' area that may be left above ``density``, over bins of about the size of a cell; larger by
        as much as the die is larger than its rows.
    growth
        As `GROWTH`; more is faster and worse.
    first
        `FROM_AFAR` or `FROM_NEAR`.

    Returns
    -------
    x, y
        Shape (n_cells,): centres; few cells overlap.
    """
    state = _Descent(problem, x, y, density, seed, first)
    reference = previous = state.within(state.at)
    state.push(reference)
    state.set_gamma()
    slope = state.slope(reference)
    step = min(state.bin_x, state.bin_y) / max(float(np.abs(slope).max()), 1e-30)
    momentum, length = 1.0, state.length
    for _ in range(_STEPS):
        following = (1 + np.sqrt(4 * momentum**2 + 1)) / 2
        for _ in range(_TRIES):
            major, ahead = np.empty_like(reference), np.empty_like(reference)
            carried = (momentum - 1) / following
            _moved(reference, slope, step, previous, carried, state.low, state.high, major, ahead)
            new = state.slope(ahead)
            # The step that the gradient's change allows; a much shorter one is tried again.
            allowed = _length(ahead - reference) / max(_length(new - slope), 1e-30)
            tried, step = step, allowed
            if allowed > 0.95 * tried:
                break
        previous, reference, slope, momentum = major, ahead, new, following
        if state.overflow < overflow:
            break
        grown = (state.length - length) / ((growth - 1) * _TOLERANCE * max(length, state.least_length))
        state.weight *= float(np.clip(growth ** (1 - grown), _LEAST_GROWTH, growth))
        length = state.length
        state.set_gamma()
    return reference[0, : state.cells].copy(), reference[1, : state.cells].copy()
