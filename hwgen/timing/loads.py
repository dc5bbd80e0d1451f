"""What a net drives, and what is assumed where nobody says: wires by fanout, slews and loads at the ports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from hwgen.cells.cell import Cell, TimingArc
from hwgen.cells.library import Library
from hwgen.errors import InputError
from hwgen.netlist.graph import Netlist
from hwgen.timing.wires import Wires

__all__ = [
    "Assumptions",
    "Overload",
    "assumptions",
    "default_output_load",
    "default_slew",
    "default_wire_load",
    "fanout_of_four",
    "net_loads",
    "overloads",
]

# 0.15 fF/um: between 0.172 (met1 of sky130) and 0.129 (M3 of ASAP7), the values OpenROAD-flow-scripts uses.
_WIRE_FF_PER_UM = 0.15
# Makes the 23.27 um of the wire load "Small" of sky130_fd_sc_hd.
_PITCHES_PER_FANOUT = 10.0
_UTILISATION = 0.7
# Sums of loads in another order differ by less.
_NOISE = 1e-9


def default_wire_load(library: Library) -> float:
    """Wire capacitance per fanout in fF.

    What the library says in a ``wire_load ("per_fanout")`` group; else 0.15 fF/um times ten gate pitches, a
    pitch being the side of a square that holds the smallest 2-input gate at 70 % utilisation: 3.5 fF for
    sky130_fd_sc_hd, 0.43 fF for ASAP7. 0 where the library has no such gate.
    """
    if library.wire_load is not None:
        return library.wire_load
    gates = library.gates2()
    if not gates or gates[0].area <= 0:
        return 0.0
    return _WIRE_FF_PER_UM * _PITCHES_PER_FANOUT * math.sqrt(gates[0].area / _UTILISATION)


def default_slew(library: Library, wire_load: float = 0.0) -> float:
    """Slew in ns at the end of a chain of the smallest inverters, each driving four.

    0 where the library has no inverter.
    """
    inverters = library.inverters()
    if not inverters:
        return 0.0
    cell = inverters[0]
    output = cell.pins[cell.outputs[0]]
    tables = [table for arc in output.arcs for table in arc.transition if table is not None]
    if not tables:
        return 0.0
    load = 4 * (cell.pins[cell.inputs[0]].capacitance + wire_load)
    slew = 0.0
    for _ in range(16):
        slew = float(np.mean([table(slew, load) for table in tables]))
    return slew


def fanout_of_four(library: Library) -> float:
    """Delay in ns of the smallest inverter that drives four of its kind, without wires; the mean of both edges.

    Raises
    ------
    InputError
        The library has no inverter with a delay.
    """
    inverters = library.inverters()
    tables = [table for arc in _arcs(inverters[0]) for table in arc.delay if table is not None] if inverters else []
    if not tables:
        raise InputError(f"library {library.name}: no inverter with a delay tells how fast it is; give a clock period")
    load = 4 * inverters[0].pins[inverters[0].inputs[0]].capacitance
    slew = default_slew(library)
    return float(np.mean([table(slew, load) for table in tables]))


def _arcs(inverter: Cell) -> list[TimingArc]:
    return inverter.pins[inverter.outputs[0]].arcs


def default_output_load(library: Library) -> float:
    """Load of an output port in fF: four inputs of the smallest inverter; 0 where the library has none."""
    inverters = library.inverters()
    return 4 * inverters[0].pins[inverters[0].inputs[0]].capacitance if inverters else 0.0


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is assumed at the ports, of the clock, and of wires that nobody placed.

    Attributes
    ----------
    input_slew, clock_slew : float
        ns.
    output_load : float
        fF at each output port.
    wire_load : float
        fF per fanout.
    """

    input_slew: float
    clock_slew: float
    output_load: float
    wire_load: float


def assumptions(
    library: Library,
    input_slew: float | None = None,
    output_load: float | None = None,
    wire_load: float | None = None,
    clock_slew: float | None = None,
) -> Assumptions:
    """What is given, and the library's defaults for the rest.

    Raises
    ------
    InputError
        One of them is negative or not finite.
    """
    if wire_load is None:
        wire_load = default_wire_load(library)
    if input_slew is None or clock_slew is None:
        slew = library.known(default_slew, wire_load)
        input_slew = slew if input_slew is None else input_slew
        clock_slew = slew if clock_slew is None else clock_slew
    found = Assumptions(
        input_slew=input_slew,
        clock_slew=clock_slew,
        output_load=default_output_load(library) if output_load is None else output_load,
        wire_load=wire_load,
    )
    for name, value in asdict(found).items():
        if not 0 <= value < math.inf:
            raise InputError(f"{name} is {value}; expected a number of at least 0")
    return found


def net_loads(netlist: Netlist, output_load: float, wires: Wires) -> np.ndarray:
    """Capacitance on every net.

    Parameters
    ----------
    netlist : Netlist
    output_load : float
        fF at each output port.
    wires : Wires

    Returns
    -------
    numpy.ndarray
        Shape (n_nets, 2), fF for the rising and the falling edge: cell inputs, output ports and wire.
    """
    pins = [
        (group.inputs[:, column], group.cell.pins[name].edge_capacitance)
        for group in netlist.groups
        for column, name in enumerate(group.cell.inputs)
    ]
    pins += [(port.nets, (output_load, output_load)) for port in netlist.ports.values() if port.direction == "output"]
    if not pins:
        return np.repeat(wires.capacitance[:, None], 2, axis=1)
    nets = np.concatenate([on for on, _ in pins])
    added = np.repeat([each for _, each in pins], [len(on) for on, _ in pins], axis=0)
    by_edge = [np.bincount(nets, added[:, edge], netlist.n_nets) for edge in (0, 1)]
    return wires.capacitance[:, None] + np.stack(by_edge, axis=1)


class Overload(NamedTuple):
    """An output that drives more than the library lets it.

    Attributes
    ----------
    cell : int
        Number in the netlist.
    kind : Cell
    output : str
    load, limit : float
        fF, of the edge with the larger load.
    """

    cell: int
    kind: Cell
    output: str
    load: float
    limit: float


def overloads(netlist: Netlist, load: np.ndarray) -> Iterator[Overload]:
    """The outputs that drive more than `Library.load_limits` lets them.

    Parameters
    ----------
    netlist : Netlist
    load : numpy.ndarray
        Shape (n_nets, 2): fF on each net, by edge, as of `net_loads`.
    """
    largest = load.max(axis=1)
    for group in netlist.groups:
        limits = netlist.library.load_limits(group.cell)
        for output, nets in zip(group.cell.outputs, group.outputs.T, strict=True):
            for row in np.flatnonzero(largest[nets] > (1 + _NOISE) * limits[output]).tolist():
                yield Overload(int(group.cells[row]), group.cell, output, float(largest[nets[row]]), limits[output])
