"""What a clock tree would spend: an estimate, since nothing is placed.

A tree as it is for other nets: levels of one buffer, each driving at most `hwgen.netlist.fanout.LIMIT` loads, until
one net drives the rest. Every buffer rises and falls once a cycle: its internal energy, and the charge of its
input pin and wire. What the flip-flops' own pins cost is no part of it.
"""

from __future__ import annotations

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.netlist.fanout import LIMIT, tree_buffer
from hwgen.netlist.graph import Netlist
from hwgen.timing.analysis import Timing

__all__ = ["energy_per_sink"]


def energy_per_sink(netlist: Netlist, timing: Timing) -> float:
    """Energy of the tree's buffers in fJ per cycle and flip-flop; 0 without flip-flops or buffers.

    Parameters
    ----------
    netlist, timing
        Flip-flops, and clock slew and wire load.
    """
    clocked = [group for group in netlist.groups if group.cell.clock_pin is not None]
    sinks = sum(len(group.cells) for group in clocked)
    buffer = tree_buffer(netlist.library)
    if not sinks or buffer is None:
        return 0.0
    pins = sum(len(group.cells) * group.cell.pins[group.cell.clock_pin or ""].capacitance for group in clocked)
    each = pins / sinks + timing.wire_load
    entry = buffer.pins[buffer.inputs[0]].capacitance + timing.wire_load
    total, loads = 0.0, sinks
    while loads > LIMIT:
        buffers = -(-loads // LIMIT)
        inside = _internal(buffer, timing.clock_slew, each * loads / buffers)
        total += buffers * (inside + entry * netlist.library.voltage**2)
        loads, each = buffers, entry
    return total / sinks


def _internal(buffer: Cell, slew: float, load: float) -> float:
    """fJ of a rise and a fall together: the mean over conditions, the sum over supplies."""
    total = 0.0
    for name in buffer.inputs + buffer.outputs:
        tables = buffer.pins[name].internal_power
        for supply in {table.supply for table in tables}:
            energies = [
                sum(float(table.energy[edge](slew, load)) for edge in (0, 1))
                for table in tables
                if table.supply == supply
            ]
            total += float(np.mean(energies))
    return total
