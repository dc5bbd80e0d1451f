"""Static timing analysis of a flat netlist with NLDM tables, one numpy pass per logic level.

Stated simplifications:

- The clock is ideal: it reaches every flip-flop at time 0 with the slew `clock_slew`.
- A wire is a capacitance proportional to its fanout, without resistance; see `default_wire_load`.
- Slews are the worst of a net's arcs, whichever arc is critical (as in most static timing analysers).
- Asynchronous clear and preset are no timing paths; hold is not checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hwgen.cells.library import Library, Table, TableBank
from hwgen.errors import InputError
from hwgen.netlist.graph import Netlist

__all__ = [
    "PathStep",
    "Timing",
    "analyse",
    "default_output_load",
    "default_slew",
    "default_wire_load",
    "net_loads",
]

_RISE, _FALL = 0, 1
_EDGES = ("rise", "fall")
_FROM_REGISTER, _FROM_INPUT = 0, 1
_INVERTING = {"positive_unate": (False,), "negative_unate": (True,), "non_unate": (False, True)}
# 0.15 fF/um: between 0.172 (met1 of sky130) and 0.129 (M3 of ASAP7), the values OpenROAD-flow-scripts uses.
_WIRE_FF_PER_UM = 0.15
# Makes the 23.27 um of the wire load "Small" of sky130_fd_sc_hd.
_PITCHES_PER_FANOUT = 10.0
_UTILISATION = 0.7


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path.

    Attributes
    ----------
    cell, kind, block : str
        Name, type and block label of the cell; the port's name, "port" and the top module at a port.
    arc : str
        As ``A fall -> Y rise``.
    net : str
    arrival : float
        ns after the clock edge (or after the input changed).
    slew : float
        ns, at the end of the arc.
    load : float
        fF.
    """

    cell: str
    kind: str
    block: str
    arc: str
    net: str
    arrival: float
    slew: float
    load: float


@dataclass
class Timing:
    """Result of `analyse`.

    Attributes
    ----------
    delay : float
        ns, the largest of `delays`; 0 for a netlist without paths.
    delays : dict of str to float
        Longest path in ns of each kind that occurs: ``reg_to_reg``, ``in_to_reg`` (both with setup),
        ``reg_to_out`` and ``in_to_out``. Paths from a register begin with its clock-to-output delay.
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


def default_output_load(library: Library) -> float:
    """Load of an output port in fF: four inputs of the smallest inverter; 0 where the library has none."""
    inverters = library.inverters()
    return 4 * inverters[0].pins[inverters[0].inputs[0]].capacitance if inverters else 0.0


def net_loads(netlist: Netlist, output_load: float, wire_load: float) -> tuple[np.ndarray, np.ndarray]:
    """Capacitance on every net.

    Returns
    -------
    load : numpy.ndarray
        Shape (n_nets, 2), fF for the rising and the falling edge: cell inputs, output ports and wire.
    wire : numpy.ndarray
        Shape (n_nets,), fF.
    """
    wire = wire_load * netlist.fanout
    load = np.repeat(wire[:, None], 2, axis=1)
    for group in netlist.groups:
        for column, name in enumerate(group.cell.inputs):
            count = np.bincount(group.inputs[:, column], minlength=netlist.n_nets)
            load += count[:, None] * np.array(group.cell.pins[name].edge_capacitance)
    for port in netlist.ports.values():
        if port.direction == "output":
            load += (output_load * np.bincount(port.nets, minlength=netlist.n_nets))[:, None]
    return load, wire


@dataclass
class _Arcs:
    """Every arc of every cell, sorted by level and then by the net and edge it ends at."""

    start: np.ndarray  # 2 * net + edge
    end: np.ndarray
    delay_table: np.ndarray
    slew_table: np.ndarray
    cell: np.ndarray
    label: np.ndarray
    labels: list[str]
    bounds: np.ndarray
    bank: TableBank


class _Tables:
    """Numbers tables, one number each."""

    def __init__(self) -> None:
        self.tables: list[Table] = [Table(np.zeros(1), np.zeros(1), np.zeros((1, 1)))]
        self._numbers: dict[int, int] = {}

    def number(self, table: Table | None) -> int:
        if table is None:
            return 0
        found = self._numbers.get(id(table))
        if found is None:
            found = self._numbers[id(table)] = len(self.tables)
            self.tables.append(table)
        return found


def _collect_arcs(netlist: Netlist) -> _Arcs:
    tables = _Tables()
    start, end, delay, slew, cells, label = [], [], [], [], [], []
    labels: list[str] = []
    for group in netlist.groups:
        cell = group.cell
        for output, target in zip(cell.outputs, group.outputs.T, strict=True):
            for arc in cell.pins[output].arcs:
                if arc.related_pin not in cell.inputs:
                    continue
                source = group.inputs[:, cell.inputs.index(arc.related_pin)]
                for edge in (_RISE, _FALL):
                    table = arc.delay[edge]
                    if table is None or arc.kind == f"combinational_{_EDGES[1 - edge]}":
                        continue
                    if arc.kind in ("rising_edge", "falling_edge"):
                        causes: tuple[int, ...] = (_RISE if arc.kind == "rising_edge" else _FALL,)
                    else:
                        causes = tuple(edge ^ int(flip) for flip in _INVERTING.get(arc.sense, (False, True)))
                    for cause in causes:
                        n = len(group.cells)
                        start.append(2 * source + cause)
                        end.append(2 * target + edge)
                        delay.append(np.full(n, tables.number(table)))
                        slew.append(np.full(n, tables.number(arc.transition[edge])))
                        cells.append(group.cells)
                        label.append(np.full(n, len(labels)))
                        labels.append(f"{arc.related_pin} {_EDGES[cause]} -> {output} {_EDGES[edge]}")
    empty = np.zeros(0, dtype=np.int64)
    cell_of = np.concatenate([*cells, empty])
    ends = np.concatenate([*end, empty])
    level = netlist.level[cell_of]
    order = np.lexsort((ends, level))
    depth = int(netlist.level.max(initial=-1)) + 1
    return _Arcs(
        np.concatenate([*start, empty])[order],
        ends[order],
        np.concatenate([*delay, empty])[order],
        np.concatenate([*slew, empty])[order],
        cell_of[order],
        np.concatenate([*label, empty])[order],
        labels,
        np.searchsorted(level[order], np.arange(depth + 1)),
        TableBank(tables.tables),
    )


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
    arcs = _collect_arcs(netlist)
    keys = 2 * netlist.n_nets
    arrival = np.full((2, keys), -np.inf)
    slew = np.zeros(keys)
    for port in netlist.ports.values():
        if port.direction == "input":
            for edge in (_RISE, _FALL):
                arrival[_FROM_INPUT, 2 * port.nets + edge] = 0.0
                slew[2 * port.nets + edge] = input_slew
    if netlist.clock_net is not None:
        clock = 2 * netlist.clock_net + np.array([_RISE, _FALL])
        arrival[_FROM_INPUT, clock] = -np.inf
        arrival[_FROM_REGISTER, clock] = 0.0
        slew[clock] = clock_slew
    delays = _propagate(arcs, load.reshape(-1), arrival, slew)
    ends = _endpoints(netlist, arrival, slew, clock_slew)
    result = Timing(
        max([0.0, *(value for value, *_ in ends.values())]),
        {kind: value for kind, (value, *_) in ends.items()},
        {},
        slew.reshape(-1, 2),
        load,
        wire,
        clock_period,
        input_slew,
        clock_slew,
        output_load,
        wire_load,
    )
    for kind, (_, source, key, last) in ends.items():
        result.paths[kind] = _trace(netlist, arcs, delays, arrival[source], result, key, last)
    return result


def _propagate(arcs: _Arcs, load: np.ndarray, arrival: np.ndarray, slew: np.ndarray) -> np.ndarray:
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
        arrival[_FROM_REGISTER, reached] = np.maximum.reduceat(from_register + delay, heads)
        arrival[_FROM_INPUT, reached] = np.maximum.reduceat(from_input + delay, heads)
        slew[reached] = np.maximum.reduceat(slews, heads)
    return delays


def _endpoints(
    netlist: Netlist, arrival: np.ndarray, slew: np.ndarray, clock_slew: float
) -> dict[str, tuple[float, int, int, PathStep | None]]:
    """Worst end of each kind of path: (delay, source, net and edge, step at a register)."""
    ends: dict[str, tuple[float, int, int, PathStep | None]] = {}
    names = {
        _FROM_REGISTER: ("reg_to_reg", "reg_to_out"),
        _FROM_INPUT: ("in_to_reg", "in_to_out"),
    }
    for group in netlist.groups:
        cell = group.cell
        if not cell.is_flip_flop:
            continue
        for column, name in enumerate(cell.inputs):
            for arc in cell.pins[name].arcs:
                for edge in (_RISE, _FALL):
                    table = arc.constraint[edge]
                    if table is None or arc.kind != "setup_rising":
                        continue
                    key = 2 * group.inputs[:, column] + edge
                    setup = table(clock_slew, slew[key])
                    for source, (kind, _) in names.items():
                        total = arrival[source, key] + setup
                        worst = int(np.argmax(total))
                        if total[worst] > ends.get(kind, (-np.inf,))[0]:
                            number = int(group.cells[worst])
                            step = PathStep(
                                netlist.cell_name(number),
                                cell.name,
                                netlist.blocks[netlist.cell_block[number]],
                                f"setup {name} {_EDGES[edge]}",
                                netlist.net_name(int(key[worst]) // 2),
                                float(total[worst]),
                                float(slew[key[worst]]),
                                0.0,
                            )
                            ends[kind] = (float(total[worst]), source, int(key[worst]), step)
    for port in netlist.ports.values():
        if port.direction != "output" or len(port.nets) == 0:
            continue
        key = np.concatenate([2 * port.nets, 2 * port.nets + 1])
        for source, (_, kind) in names.items():
            total = arrival[source, key]
            worst = int(np.argmax(total))
            if total[worst] > ends.get(kind, (-np.inf,))[0]:
                ends[kind] = (float(total[worst]), source, int(key[worst]), None)
    return ends


def _trace(
    netlist: Netlist,
    arcs: _Arcs,
    delays: np.ndarray,
    arrival: np.ndarray,
    result: Timing,
    key: int,
    last: PathStep | None,
) -> list[PathStep]:
    """Walk back from the net and edge `key` to where its path begins."""
    steps = [] if last is None else [last]
    slew, load = result.slew.reshape(-1), result.load.reshape(-1)
    while True:
        cell = int(netlist.driver[key // 2])
        net = netlist.net_name(key // 2)
        if cell < 0:
            if key // 2 != netlist.clock_net:
                arc = f"{_EDGES[key % 2]} at the port"
                steps.append(PathStep(net, "port", netlist.top, arc, net, 0.0, float(slew[key]), float(load[key])))
            break
        level = int(netlist.level[cell])
        first, end = arcs.bounds[level], arcs.bounds[level + 1]
        low, high = first + np.searchsorted(arcs.end[first:end], [key, key + 1])
        best = low + int(np.argmax(arrival[arcs.start[low:high]] + delays[low:high]))
        steps.append(
            PathStep(
                netlist.cell_name(cell),
                netlist.groups[netlist.cell_group[cell]].cell.name,
                netlist.blocks[netlist.cell_block[cell]],
                arcs.labels[arcs.label[best]],
                net,
                float(arrival[key]),
                float(slew[key]),
                float(load[key]),
            )
        )
        key = int(arcs.start[best])
    return steps[::-1]
