"""What the buffers of a clock tree spend: an estimate.

A tree as it is for other nets: levels of one buffer, each driving at most `hwgen.netlist.fanout.LIMIT` loads, until
one net drives the rest. Every buffer rises and falls with the clock: its internal energy, and the charge of its
input pin. With wires by fanout it has a wire, too. Wires of a placement are those of all levels, see
`hwgen.layout.clock_tree`: they are charged as the clock's, and no buffer adds one. What the flip-flops' own pins cost
is no part of it.

A clock gate has a tree of its own behind it, whose buffers stand still while the gate is closed. In the tree before
the gate, the gate is one load. A tree of at most `LIMIT` loads is no tree: the port or the gate drives them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.netlist.fanout import LIMIT, tree_buffer
from hwgen.netlist.graph import Netlist
from hwgen.timing.analysis import Timing

__all__ = ["ClockTree", "clock_tree"]


@dataclass(frozen=True)
class ClockTree:
    """The trees of a netlist's clocks.

    Attributes
    ----------
    sink_fj : numpy.ndarray
        Shape (n_nets,): energy of the buffers in fJ for a pulse of the clock, divided by the tree's flip-flops and
        clock gates; 0 for nets that are no clocks, and without buffers.
    root_load : numpy.ndarray
        Shape (n_nets,): fF that the driver of a clock sees, wire included; 0 for nets that are no clocks.
    """

    sink_fj: np.ndarray
    root_load: np.ndarray


def clock_tree(netlist: Netlist, timing: Timing) -> ClockTree:
    """Estimate the trees.

    Parameters
    ----------
    netlist, timing
        Flip-flops and clock gates, and clock slew and wires.
    """
    sinks = np.zeros(netlist.n_nets)
    pins = np.zeros(netlist.n_nets)
    for group in netlist.groups:
        name = group.cell.clock_pin
        if name is not None:
            count = np.bincount(group.inputs[:, group.cell.inputs.index(name)], minlength=netlist.n_nets)
            sinks += count
            pins += count * group.cell.pins[name].capacitance
    tree = ClockTree(np.zeros(netlist.n_nets), np.zeros(netlist.n_nets))
    buffer = tree_buffer(netlist.library)
    for net in netlist.clock_nets.tolist():
        loads = int(sinks[net])
        if not loads:
            continue
        wire = timing.wires.capacitance[net] / netlist.fanout[net]
        each, total = pins[net] / loads + wire, 0.0
        if buffer is not None:
            of_buffer = wire if timing.wires.kind == "fanout" else 0.0
            entry = buffer.pins[buffer.inputs[0]].capacitance + of_buffer
            while loads > LIMIT:
                buffers = -(-loads // LIMIT)
                inside = _internal(buffer, timing.clock_slew, each * loads / buffers)
                total += buffers * (inside + entry * netlist.library.voltage**2)
                loads, each = buffers, entry
        tree.sink_fj[net] = total / sinks[net]
        tree.root_load[net] = loads * each
    return tree


def _internal(buffer: Cell, slew: float, load: float) -> float:
    """fJ of a rise and a fall together: the mean over conditions, the sum over supplies."""
    total = 0.0
    for name in buffer.inputs + buffer.outputs:
        tables = buffer.pins[name].internal_power
        for supply in dict.fromkeys(table.supply for table in tables):
            energies = [
                sum(float(table.energy[edge](slew, load)) for edge in (0, 1))
                for table in tables
                if table.supply == supply
            ]
            total += float(np.mean(energies))
    return total
