"""Static timing analysis of a flat netlist with NLDM tables, one numpy pass per logic level.

Stated simplifications:

- The clock is ideal: it reaches every flip-flop, behind a clock gate or not, and every clock gate at time 0 with the
  slew `clock_slew`. The delay through a gate is part of a clock tree, which is not timed.
- A wire is a capacitance at its driver, and one delay by Elmore for all its loads; see `hwgen.timing.wires`. Without
  wires given, its capacitance is proportional to its fanout, and it has no resistance.
- A wire leaves the slew as it is. The clock's wires have no delay.
- Slews are the worst of a net's arcs, whichever arc is critical (as in most static timing analysers).
- Asynchronous clear and preset are no timing paths; hold is not checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hwgen.errors import InputError
from hwgen.netlist.graph import Netlist
from hwgen.timing.arcs import FALL, RISE, Arcs, collect
from hwgen.timing.loads import Assumptions, assumptions, net_loads
from hwgen.timing.paths import FROM_INPUT, FROM_REGISTER, Arrivals, PathStep, by_block, endpoints, trace
from hwgen.timing.wires import Wires, elmore, per_fanout

__all__ = ["Timing", "analyse"]


@dataclass
class Timing:
    """Result of `analyse`.

    Attributes
    ----------
    delay : float
        ns, the largest of `delays`; 0 for a netlist without paths.
    delays : dict of str to float
        Longest path in ns of each kind that occurs: ``reg_to_reg``, ``in_to_reg``, ``reg_to_gate`` and ``in_to_gate``
        (gates are clock gates, which their enables reach; all four with setup), ``reg_to_out`` and ``in_to_out``.
        Paths from a register begin with its clock-to-output delay.
    paths : dict of str to list of PathStep
        The longest path of each kind.
    slew, load : numpy.ndarray
        Shape (n_nets, 2), for the rising and the falling edge: ns, and fF of pins, wire and output ports.
    wires : Wires
        The wire's part of the load, and its resistance.
    wire_delay : numpy.ndarray
        Shape (n_nets, 2): ns from the driver of a net to its loads.
    clock_period : float or None
        ns, as given.
    input_slew, clock_slew : float
        ns.
    output_load : float
        fF at each output port.
    wire_load : float
        fF per fanout, where no wires are given and of clock trees.
    """

    delay: float
    delays: dict[str, float]
    paths: dict[str, list[PathStep]]
    slew: np.ndarray = field(repr=False)
    load: np.ndarray = field(repr=False)
    wires: Wires = field(repr=False)
    wire_delay: np.ndarray = field(repr=False)
    clock_period: float | None
    input_slew: float
    clock_slew: float
    output_load: float
    wire_load: float

    @property
    def slack(self) -> float | None:
        """Spare time in ns at the given clock period."""
        return None if self.clock_period is None else self.clock_period - self.delay

    @property
    def path(self) -> list[PathStep]:
        """The critical path."""
        if not self.delays:
            return []
        return self.paths[max(self.delays, key=lambda kind: self.delays[kind])]

    @property
    def path_by_block(self) -> dict[str, float]:
        """Part of the critical path in ns that lies in each block, by block label; the path's order, and its sum."""
        return by_block(self.path)


def analyse(
    netlist: Netlist,
    clock_period: float | None = None,
    input_slew: float | None = None,
    output_load: float | None = None,
    wire_load: float | None = None,
    clock_slew: float | None = None,
    wires: Wires | None = None,
) -> Timing:
    """Find the longest paths.

    Parameters
    ----------
    netlist : Netlist
    clock_period : float, optional
        ns; only for `Timing.slack`.
    input_slew : float, optional
        ns at input ports; `default_slew` if not given.
    output_load : float, optional
        fF at output ports; `default_output_load` if not given.
    wire_load : float, optional
        fF per fanout; `default_wire_load` if not given.
    clock_slew : float, optional
        ns at clock pins; `default_slew` if not given.
    wires : Wires, optional
        Of all nets; by fanout if not given.

    Returns
    -------
    Timing

    Raises
    ------
    InputError
        If there is a combinational loop, a parameter is negative, or the wires are another netlist's.
    """
    assumed = assumptions(netlist.library, input_slew, output_load, wire_load, clock_slew)
    if not 0 <= (clock_period or 0.0) < math.inf:
        raise InputError(f"clock_period is {clock_period}; expected a number of at least 0")
    if wires is None:
        wires = per_fanout(netlist, assumed.wire_load)
    if len(wires.capacitance) != netlist.n_nets:
        raise InputError(f"wires of {len(wires.capacitance)} nets; {netlist.top} has {netlist.n_nets}")
    load = net_loads(netlist, assumed.output_load, wires)
    wire_delay = elmore(wires, load)
    arcs = collect(netlist)
    wire_delay[netlist.clock_nets] = 0.0
    arrival, slew = _beginnings(netlist, assumed, wire_delay)
    delays = _propagate(arcs, load.reshape(-1), wire_delay.reshape(-1), arrival, slew)
    arrivals = Arrivals(arrival, slew, load.reshape(-1), delays)
    ends = endpoints(netlist, arrivals, assumed.clock_slew)
    return Timing(
        delay=max([0.0, *(end.delay for end in ends.values())]),
        delays={kind: end.delay for kind, end in ends.items()},
        paths={kind: trace(netlist, arcs, arrivals, end) for kind, end in ends.items()},
        slew=slew.reshape(-1, 2),
        load=load,
        wires=wires,
        wire_delay=wire_delay,
        clock_period=clock_period,
        input_slew=assumed.input_slew,
        clock_slew=assumed.clock_slew,
        output_load=assumed.output_load,
        wire_load=assumed.wire_load,
    )


def _beginnings(netlist: Netlist, assumed: Assumptions, wire_delay: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Arrivals, shape (2, places), and slews, shape (places,), with those of inputs and of the clock."""
    arrival = np.full((2, 2 * netlist.n_nets), -np.inf)
    slew = np.zeros(2 * netlist.n_nets)
    for port in netlist.ports.values():
        if port.direction == "input":
            for edge in (RISE, FALL):
                arrival[FROM_INPUT, 2 * port.nets + edge] = wire_delay[port.nets, edge]
                slew[2 * port.nets + edge] = assumed.input_slew
    for edge in (RISE, FALL):
        clocks = 2 * netlist.clock_nets + edge
        arrival[FROM_INPUT, clocks] = -np.inf
        arrival[FROM_REGISTER, clocks] = 0.0
        slew[clocks] = assumed.clock_slew
    return arrival, slew


def _propagate(
    arcs: Arcs, load: np.ndarray, wire_delay: np.ndarray, arrival: np.ndarray, slew: np.ndarray
) -> np.ndarray:
    """Fill `arrival`, at the loads, and `slew` stage by stage; returns each arc's delay, as of `Arcs.delays`."""
    delays = np.zeros(len(arcs.start))
    for first, last in zip(arcs.bounds[:-1].tolist(), arcs.bounds[1:].tolist(), strict=True):
        if first == last:
            continue
        start, end = arcs.start[first:last], arcs.end[first:last]
        delay = delays[first:last] = arcs.delays(slew, load, wire_delay, first, last)
        slews = arcs.bank(arcs.slew_table[first:last], slew[start], load[end])
        from_register, from_input = arrival[:, start]
        # Nothing moves on constants: they must not set a slew either.
        slews[np.maximum(from_register, from_input) == -np.inf] = 0.0
        heads = np.flatnonzero(np.diff(end, prepend=-1))
        reached = end[heads]
        arrival[FROM_REGISTER, reached] = np.maximum.reduceat(from_register + delay, heads) + wire_delay[reached]
        arrival[FROM_INPUT, reached] = np.maximum.reduceat(from_input + delay, heads) + wire_delay[reached]
        slew[reached] = np.maximum.reduceat(slews, heads)
    return delays
