"""Static timing analysis of a flat netlist with NLDM tables, one numpy pass per logic level.

Stated simplifications:

- The clock is ideal: it reaches every flip-flop, behind a clock gate or not, and every clock gate at time 0 with the
  slew `clock_slew`. The delay through a gate is part of a clock tree, which is not timed.
- A wire is a capacitance proportional to its fanout, without resistance; see `hwgen.timing.loads`.
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
from hwgen.timing.loads import default_output_load, default_slew, default_wire_load, net_loads
from hwgen.timing.paths import FROM_INPUT, FROM_REGISTER, Arrivals, PathStep, endpoints, trace

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
    wire : numpy.ndarray
        Shape (n_nets,): the wire's part of the load, fF.
    clock_period : float or None
        ns, as given.
    input_slew, clock_slew : float
        ns.
    output_load : float
        fF at each output port.
    wire_load : float
        fF per fanout.
    """

    delay: float
    delays: dict[str, float]
    paths: dict[str, list[PathStep]]
    slew: np.ndarray = field(repr=False)
    load: np.ndarray = field(repr=False)
    wire: np.ndarray = field(repr=False)
    clock_period: float | None
    input_slew: float
    clock_slew: float
    output_load: float
    wire_load: float

    @property
    def max_clock_mhz(self) -> float:
        """Highest clock for which every path fits into one period."""
        return 1e3 / self.delay if self.delay > 0 else math.inf

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
        found: dict[str, float] = {}
        before = 0.0
        for step in self.path:
            found[step.block] = found.get(step.block, 0.0) + step.arrival - before
            before = step.arrival
        return found


def analyse(
    netlist: Netlist,
    clock_period: float | None = None,
    input_slew: float | None = None,
    output_load: float | None = None,
    wire_load: float | None = None,
    clock_slew: float | None = None,
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

    Returns
    -------
    Timing

    Raises
    ------
    InputError
        If there is a combinational loop, or a parameter is negative.
    """
    library = netlist.library
    if wire_load is None:
        wire_load = default_wire_load(library)
    if input_slew is None:
        input_slew = default_slew(library, wire_load)
    if clock_slew is None:
        clock_slew = default_slew(library, wire_load)
    if output_load is None:
        output_load = default_output_load(library)
    given = {
        "wire_load": wire_load,
        "input_slew": input_slew,
        "clock_slew": clock_slew,
        "output_load": output_load,
        "clock_period": clock_period or 0.0,
    }
    for name, value in given.items():
        if not 0 <= value < math.inf:
            raise InputError(f"{name} is {value}; expected a number of at least 0")
    load, wire = net_loads(netlist, output_load, wire_load)
    arcs = collect(netlist)
    keys = 2 * netlist.n_nets
    arrival = np.full((2, keys), -np.inf)
    slew = np.zeros(keys)
    for port in netlist.ports.values():
        if port.direction == "input":
            for edge in (RISE, FALL):
                arrival[FROM_INPUT, 2 * port.nets + edge] = 0.0
                slew[2 * port.nets + edge] = input_slew
    for edge in (RISE, FALL):
        clocks = 2 * netlist.clock_nets + edge
        arrival[FROM_INPUT, clocks] = -np.inf
        arrival[FROM_REGISTER, clocks] = 0.0
        slew[clocks] = clock_slew
    delays = _propagate(arcs, load.reshape(-1), arrival, slew)
    arrivals = Arrivals(arrival, slew, load.reshape(-1), delays)
    ends = endpoints(netlist, arrivals, clock_slew)
    return Timing(
        delay=max([0.0, *(end.delay for end in ends.values())]),
        delays={kind: end.delay for kind, end in ends.items()},
        paths={kind: trace(netlist, arcs, arrivals, end) for kind, end in ends.items()},
        slew=slew.reshape(-1, 2),
        load=load,
        wire=wire,
        clock_period=clock_period,
        input_slew=input_slew,
        clock_slew=clock_slew,
        output_load=output_load,
        wire_load=wire_load,
    )


def _propagate(arcs: Arcs, load: np.ndarray, arrival: np.ndarray, slew: np.ndarray) -> np.ndarray:
    """Fill `arrival` and `slew` level by level; returns each arc's delay."""
    delays = np.zeros(len(arcs.start))
    for first, last in zip(arcs.bounds[:-1].tolist(), arcs.bounds[1:].tolist(), strict=True):
        if first == last:
            continue
        start, end = arcs.start[first:last], arcs.end[first:last]
        at_slew, at_load = slew[start], load[end]
        delay = arcs.bank(arcs.delay_table[first:last], at_slew, at_load)
        delays[first:last] = delay
        slews = arcs.bank(arcs.slew_table[first:last], at_slew, at_load)
        from_register, from_input = arrival[:, start]
        # Nothing moves on constants: they must not set a slew either.
        slews[np.maximum(from_register, from_input) == -np.inf] = 0.0
        heads = np.flatnonzero(np.diff(end, prepend=-1))
        reached = end[heads]
        arrival[FROM_REGISTER, reached] = np.maximum.reduceat(from_register + delay, heads)
        arrival[FROM_INPUT, reached] = np.maximum.reduceat(from_input + delay, heads)
        slew[reached] = np.maximum.reduceat(slews, heads)
    return delays
