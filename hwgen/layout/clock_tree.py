"""The clock tree of a placement: its wires and buffers, from where the clocked pins are.

The pins of each clock net, the clock itself and what clock gates drive, are halved again and again, across the longer
side of the box around them, until no part has more than `hwgen.netlist.fanout.LIMIT` pins. A part has a buffer at
its centre, whose wire to its pins is a Steiner tree; the buffers of a level are the pins of the next, until one is
left, to which the wire from the net's source leads. This is an estimate of length: skew is not balanced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hwgen.layout.steiner import steiner_lengths
from hwgen.layout.technology import Technology
from hwgen.netlist.fanout import LIMIT
from hwgen.netlist.graph import Netlist

__all__ = ["ClockTree", "clock_tree"]


@dataclass(frozen=True, slots=True)
class ClockTree:
    """Wires and buffers of the clock.

    Attributes
    ----------
    sinks : int
        Clocked pins: of flip-flops and clock gates.
    buffers : dict of int to int
        For each clock net, how many buffers.
    length : dict of int to float
        For each clock net, um of wire as its Steiner trees have it.
    capacitance : dict of int to float
        For each clock net, fF of wire, detour included.
    """

    sinks: int
    buffers: dict[int, int]
    length: dict[int, float]
    capacitance: dict[int, float]


def clock_tree(
    netlist: Netlist, technology: Technology, x: np.ndarray, y: np.ndarray, port_x: np.ndarray, port_y: np.ndarray
) -> ClockTree:
    """Estimate the clock tree of a placed netlist.

    Parameters
    ----------
    netlist, technology
        Clocked pins, and what a um of wire adds.
    x, y
        Shape (n_cells,): centres of the cells, um.
    port_x, port_y
        Shape (port bits,): places of the ports, um.
    """
    nets, cells = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group in netlist.groups:
        if (name := group.cell.clock_pin) is not None:
            nets.append(group.inputs[:, group.cell.inputs.index(name)])
            cells.append(group.cells)
    net, cell = np.concatenate(nets), np.concatenate(cells)
    bits = np.concatenate([np.zeros(0, np.int64), *(port.nets for port in netlist.ports.values())])
    order = np.argsort(net, kind="stable")
    clocks, first = np.unique(net[order], return_index=True)
    trees = []
    for clock, own in zip(clocks.tolist(), np.split(cell[order], first)[1:], strict=True):
        driver = int(netlist.driver[clock])
        if driver >= 0:
            source = float(x[driver]), float(y[driver])
        else:
            bit = int(np.flatnonzero(bits == clock)[0])
            source = float(port_x[bit]), float(port_y[bit])
        trees.append(_Tree(x[own], y[own], source))
    buffers = {clock: tree.buffers for clock, tree in zip(clocks.tolist(), trees, strict=True)}
    length = dict(zip(clocks.tolist(), _lengths(trees), strict=True))
    per_um = technology.detour * technology.capacitance
    return ClockTree(len(cell), buffers, length, {clock: per_um * um for clock, um in length.items()})


class _Tree:
    """The levels of a tree from a source to pins: buffers, um of wire behind them, and the pins of its first wire."""

    def __init__(self, x: np.ndarray, y: np.ndarray, source: tuple[float, float]) -> None:
        self.buffers, self.behind = 0, 0.0
        while len(x) > LIMIT:
            parts = _halved(x, y)
            order = np.concatenate(parts)
            start = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
            middle_x, middle_y = (np.array([place[part].mean() for part in parts]) for place in (x, y))
            # A part's net begins at its buffer.
            begins = start[:-1]
            at_x, at_y = np.insert(x[order], begins, middle_x), np.insert(y[order], begins, middle_y)
            self.behind += float(steiner_lengths(start + np.arange(len(start)), at_x, at_y)[0].sum())
            self.buffers += len(parts)
            x, y = middle_x, middle_y
        self.x, self.y = np.append(source[0], x), np.append(source[1], y)


def _lengths(trees: Sequence[_Tree]) -> list[float]:
    """Um of wire of each tree: gated clocks are many and small, so that their first wires are measured together."""
    if not trees:
        return []
    start = np.cumsum([0, *(len(tree.x) for tree in trees)])
    at_x, at_y = (np.concatenate([getattr(tree, axis) for tree in trees]) for axis in "xy")
    first = steiner_lengths(start, at_x, at_y)[0].tolist()
    return [tree.behind + um for tree, um in zip(trees, first, strict=True)]


def _halved(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Pins in parts of at most `LIMIT` neighbours."""
    done, waiting = [], [np.arange(len(x))]
    while waiting:
        part = waiting.pop()
        if len(part) <= LIMIT:
            done.append(part)
            continue
        along = x[part] if np.ptp(x[part]) >= np.ptp(y[part]) else y[part]
        # As many full parts on either side as there can be.
        half = LIMIT * max(round(len(part) / LIMIT / 2), 1)
        order = part[np.lexsort((part, along))]
        waiting += [order[:half], order[half:]]
    return done
