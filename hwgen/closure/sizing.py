"""Sizes for the cells of a netlist, so that it meets a clock at the least cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwgen.closure.greedy import recover, repair
from hwgen.closure.relaxation import OVERLOAD, MultiplierArrays, bearable, multiply, resize
from hwgen.timing import kernels
from hwgen.timing.compiled import Compiled
from hwgen.timing.kernels import StateArrays

__all__ = ["Sized", "area_cost", "bounds", "mend", "multipliers", "no_cost", "size", "total"]

_ITERATIONS = 40
# How strongly multipliers follow the slacks: first in half of the iterations, then in the others.
_EXPONENTS = (8.0, 4.0)
# Iterations in a row that gain less than this share end either half.
_PROGRESS = 0.0005
_PATIENCE = 7
# A clock out of reach would only drive the multipliers up: each iteration asks for this much of what there is.
_AMBITION = 0.95
# What relaxation leaves late by less than this is for the repair.
_CLOSE = 0.01
_SHARPNESS = 16.0
# Of the period: relaxation keeps slews below this. Where many drivers meet, it hears of none but the latest and would
# make all others too weak.
_SLEW = 0.15
_MOVES = 600
_PASSES = 4


@dataclass(frozen=True)
class Sized:
    """What became of sizing.

    Attributes
    ----------
    delay : float
        ns, the longest path.
    cost : float
    changed : int
        Nodes of another size than before.
    iterations : int
        Of the relaxation.
    """

    delay: float
    cost: float
    changed: int
    iterations: int


def no_cost(compiled: Compiled) -> np.ndarray:
    """Zeros for the cost of each node by place in its family; shape (nodes, widest family)."""
    ranges = bounds(compiled)
    return np.zeros((len(ranges), int(np.max(ranges[:, 1] - ranges[:, 0], initial=1))))


def area_cost(compiled: Compiled) -> np.ndarray:
    """Area in um2 of each node, all copies together, by place in its family; shape (nodes, widest family)."""
    ranges, cost = bounds(compiled), no_cost(compiled)
    areas = np.array([cell.area for cell in compiled.kinds.cells])
    for place in range(cost.shape[1]):
        inside = ranges[:, 0] + place < ranges[:, 1]
        cost[inside, place] = compiled.copies[inside] * areas[ranges[inside, 0] + place]
    return cost


def size(compiled: Compiled, period: float, cost: np.ndarray, iterations: int = _ITERATIONS) -> Sized:
    """Choose a size for each node; the result is in ``compiled``.

    Parameters
    ----------
    compiled : Compiled
        With `hwgen.timing.kinds.Kinds` of whole families.
    period : float
        ns.
    cost : numpy.ndarray
        Shape (nodes, widest family): cost of each node by place in its family, as of `area_cost`.
    iterations : int
        Of the relaxation, at most.
    """
    graph, kinds, state = compiled.graph, compiled.kinds.arrays, compiled.state
    ranges = bounds(compiled)
    before = state.kind.copy()
    worth = multipliers(compiled, period, total(compiled, cost))
    compiled.reload()
    best, kept, done = _rank(compiled, period, cost), before, 0
    limit = bearable(kinds, compiled.assumed.input_slew, _SLEW * period)
    limit[[cell.clock_gate is not None for cell in compiled.kinds.cells]] = np.inf  # clock trees have their own buffers
    bounded = kinds._replace(limit=np.minimum(kinds.limit, limit))
    # Progress is that of the relaxation: it may begin worse than what it is given.
    reached = True, np.inf
    for exponent in _EXPONENTS:
        idle = 0
        for _ in range(iterations // len(_EXPONENTS)):
            target = max(period, _AMBITION * compiled.delay)
            kernels.backward(graph, kinds, state, target)
            multiply(graph, kinds, state, worth, target, exponent)
            resize(graph, bounded, state, worth, ranges, cost)
            compiled.reload()
            done += 1
            rank = _rank(compiled, period, cost)
            gained = rank[0] < reached[0] or rank[1] < (1 - _PROGRESS) * reached[1]
            idle = 0 if gained and rank < reached else idle + 1
            reached = min(rank, reached)
            if rank < best:
                best, kept = rank, state.kind.copy()
            if idle == _PATIENCE:
                break
    state.kind[:] = kept
    compiled.reload()
    _repair(compiled, period, cost)
    for _ in range(_PASSES):
        kernels.backward(graph, kinds, state, period)
        if not recover(graph, kinds, state, ranges, cost, period):
            break
    compiled.reload()
    return Sized(compiled.delay, total(compiled, cost), int((state.kind != before).sum()), done)


def mend(compiled: Compiled, period: float, cost: np.ndarray) -> Sized:
    """Larger sizes for nodes on late paths, one after the other; all others stay as they are. As `size` otherwise."""
    before = compiled.state.kind.copy()
    compiled.reload()
    _repair(compiled, period, cost)
    compiled.reload()
    return Sized(compiled.delay, total(compiled, cost), int((compiled.state.kind != before).sum()), 0)


def _repair(compiled: Compiled, period: float, cost: np.ndarray) -> None:
    graph, kinds, state = compiled.graph, compiled.kinds.arrays, compiled.state
    trial = StateArrays(*(values.copy() for values in state))
    repair(graph, kinds, state, bounds(compiled), cost, period, _MOVES, trial)


def _rank(compiled: Compiled, period: float, cost: np.ndarray) -> tuple[bool, float]:
    """Of sizes: whether they are late, then what they miss or cost; the less, the better."""
    late = compiled.delay > period * (1 + _CLOSE)
    return late, compiled.delay if late else total(compiled, cost) + OVERLOAD * _overload(compiled)


def _overload(compiled: Compiled) -> float:
    """By how many fF outputs drive more than the library lets them, together."""
    graph, state = compiled.graph, compiled.state
    node = np.repeat(np.arange(len(graph.meet)), np.diff(graph.out_first))
    limit = compiled.kinds.arrays.limit[state.kind[node], np.arange(len(node)) - graph.out_first[node]]
    more = state.load[graph.out_net].max(axis=1) - limit
    return float(np.maximum(more[~graph.meet[node]], 0.0).sum())


def bounds(compiled: Compiled) -> np.ndarray:
    """First kind of each node's family, and the end of the last."""
    family = compiled.kinds.family[compiled.state.kind]
    found = np.stack([compiled.kinds.bounds[family], compiled.kinds.bounds[family + 1]], axis=1)
    found[compiled.graph.meet, 1] = found[compiled.graph.meet, 0]
    return found


def total(compiled: Compiled, cost: np.ndarray) -> float:
    """Cost of all nodes in their present sizes; ``cost`` is of each node by place in its family."""
    place = compiled.state.kind - bounds(compiled)[:, 0]
    return float(cost[np.arange(len(cost)), place].sum())


def multipliers(compiled: Compiled, period: float, total: float) -> MultiplierArrays:
    """Ends together are worth the whole cost over the period, the later ones more."""
    graph, kinds, state = compiled.graph, compiled.kinds.arrays, compiled.state
    width = np.where(graph.meet, 2 * np.diff(graph.pin_first), kinds.slots[state.kind])
    first = np.concatenate([[0], np.cumsum(width)])
    latest = max(compiled.delay, 1e-12)
    end = np.maximum(state.end / latest, 0.0) ** _SHARPNESS
    end *= total / period / max(float(end.sum()), 1e-12)
    nets = len(graph.fixed)
    return MultiplierArrays(first, np.ones(int(first[-1])), end, *np.zeros((3, nets, 2)))
