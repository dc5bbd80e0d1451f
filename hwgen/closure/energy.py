"""What the sizes of cells cost in energy, at a given activity: the objective of a design that is to spend little."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
            inputs, outputs = _pins(group, timing, seen)
            for place, cell in enumerate(compiled.kinds.cells[families[own] : families[own + 1]]):
                each = _energy(cell, inputs, outputs, netlist.library.voltage) + cell.leakage * 1e-3 * clock_ns
                found[:, place] += np.bincount(node, each, minlength=nodes)
        return found

    return cost


class _Pin(NamedTuple):
    """A pin of all cells of a group: transitions in a cycle, slew in ns and load in fF; shape (cells,) each.

    Slews are means of both edges: those at an input, and of an output those at the inputs that may cause its edges.
    """

    name: str
    toggles: np.ndarray
    slew: np.ndarray
    load: np.ndarray


def _pins(group: CellGroup, timing: Timing, toggles: np.ndarray) -> tuple[list[_Pin], list[_Pin]]:
    """Inputs, their loads left out, and outputs of a group's cells."""
    inputs = [
        _Pin(name, toggles[nets], timing.slew[nets].mean(axis=1), np.zeros(len(nets)))
        for name, nets in zip(group.cell.inputs, group.inputs.T, strict=True)
    ]
    causes = [pin.slew for pin in inputs if group.cell.clock_pin in (None, pin.name)]
    slew = np.mean(causes, axis=0) if causes else np.zeros(len(group.cells))
    outputs = [
        _Pin(name, toggles[nets], slew, timing.load[nets].mean(axis=1))
        for name, nets in zip(group.cell.outputs, group.outputs.T, strict=True)
    ]
    return inputs, outputs


def _energy(cell: Cell, inputs: list[_Pin], outputs: list[_Pin], voltage: float) -> np.ndarray:
    """FJ per cycle of each cell of a group with these pins, were it ``cell``, without leakage."""
    total = np.zeros(len((inputs + outputs)[0].toggles))
    for pin in inputs:
        known = cell.pins[pin.name]
        total += pin.toggles * (0.5 * voltage**2 * known.capacitance + known.mean_energy(pin.slew, pin.load))
    for pin in outputs:
        total += pin.toggles * cell.pins[pin.name].mean_energy(pin.slew, pin.load)
    return total
