"""What the sizes of cells cost in energy, at a given activity: the objective of a design that is to spend little."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.closure.sizing import no_cost
from hwgen.netlist.graph import CellGroup, Netlist
from hwgen.timing.analysis import Timing
from hwgen.timing.compiled import Compiled

__all__ = ["energy_cost"]


def energy_cost(
    toggles: Callable[[Netlist, Timing], np.ndarray], clock_ns: float
) -> Callable[[Netlist, Timing, Compiled], np.ndarray]:
    """Energy in fJ per cycle as the cost of sizes, see `hwgen.closure.sizing.size`.

    A cell's size decides what its input pins charge, what it spends inside and what it leaks. Internal energy is taken
    at the slews and loads of the netlist as it is; of several conditions the mean counts. The wires are no cell's.

    Parameters
    ----------
    toggles
        Transitions of each net of a netlist in a cycle, which may have the glitches of its timing. Sizing puts in
        buffers, so that nets have no lasting numbers.
    clock_ns
        Clock period, for leakage.
    """

    def cost(netlist: Netlist, timing: Timing, compiled: Compiled) -> np.ndarray:
        seen = toggles(netlist, timing)
        families, family = compiled.kinds.bounds, compiled.kinds.family
        nodes = len(compiled.copies)
        found = no_cost(compiled)
        for group in netlist.groups:
            node = compiled.node_of[group.cells]
            own = family[compiled.kinds.number[group.cell.name]]
            for place, cell in enumerate(compiled.kinds.cells[families[own] : families[own + 1]]):
                each = _energy(cell, group, netlist, timing, seen) + cell.leakage * 1e-3 * clock_ns
                found[:, place] += np.bincount(node, each, minlength=nodes)
        return found

    return cost


def _energy(cell: Cell, group: CellGroup, netlist: Netlist, timing: Timing, toggles: np.ndarray) -> np.ndarray:
    """FJ per cycle of each cell of a group, were it ``cell``, without leakage."""
    square = netlist.library.voltage**2
    total = np.zeros(len(group.cells))
    for name, nets in zip(group.cell.inputs, group.inputs.T, strict=True):
        pin = cell.pins[name]
        slew = timing.slew[nets].mean(axis=1)
        total += toggles[nets] * (0.5 * square * pin.capacitance + pin.mean_energy(slew, np.zeros(len(nets))))
    for name, nets in zip(group.cell.outputs, group.outputs.T, strict=True):
        slew, load = timing.slew[nets].mean(axis=1), timing.load[nets].mean(axis=1)
        total += toggles[nets] * cell.pins[name].mean_energy(slew, load)
    return total
