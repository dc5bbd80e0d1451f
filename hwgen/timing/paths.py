"""The longest path of each kind, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hwgen.netlist.graph import Netlist
from hwgen.timing.arcs import EDGES, FALL, RISE, Arcs

__all__ = ["FROM_INPUT", "FROM_REGISTER", "Arrivals", "End", "PathStep", "by_block", "endpoints", "trace"]

FROM_REGISTER, FROM_INPUT = 0, 1


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
        ns after the clock edge (or after the input changed), at the end of the wire.
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


def by_block(path: Iterable[PathStep]) -> dict[str, float]:
    """Part of a path in ns that lies in each block, by block label; the path's order, and its sum."""
    found: dict[str, float] = {}
    before = 0.0
    for step in path:
        found[step.block] = found.get(step.block, 0.0) + step.arrival - before
        before = step.arrival
    return found


class Arrivals(NamedTuple):
    """When every place is reached; a place is an edge of a net: ``2 * net + edge``.

    Attributes
    ----------
    time : numpy.ndarray
        Shape (2, places): ns of the latest transition that comes from a register, and of the one from an input,
        at the loads; minus infinity where there is none.
    slew, load : numpy.ndarray
        Shape (places,): ns, fF.
    delays : numpy.ndarray
        Shape (arcs,): ns of each arc, as of `hwgen.timing.arcs.Arcs.delays`.
    """

    time: np.ndarray
    slew: np.ndarray
    load: np.ndarray
    delays: np.ndarray


class End(NamedTuple):
    """Where a longest path ends.

    Attributes
    ----------
    delay : float
        ns, setup included.
    source : int
        `FROM_REGISTER` or `FROM_INPUT`.
    place : int
        The net and edge.
    step : PathStep or None
        The setup at a register; None at a port.
    """

    delay: float
    source: int
    place: int
    step: PathStep | None


def endpoints(
    netlist: Netlist, arrivals: Arrivals, clock_slew: float, inside: np.ndarray | None = None
) -> dict[str, End]:
    """Worst end of each kind of path that occurs.

    Parameters
    ----------
    netlist : Netlist
    arrivals : Arrivals
    clock_slew : float
        ns.
    inside : numpy.ndarray, optional
        Shape (n_cells,), bool: registers and clock gates where paths may end; all if not given.
    """
    ends: dict[str, End] = {}
    for kind, end in (*_at_registers(netlist, arrivals, clock_slew, inside), *_at_ports(netlist, arrivals)):
        if end.delay > (ends[kind].delay if kind in ends else -np.inf):
            ends[kind] = end
    return ends


def _at_registers(
    netlist: Netlist, arrivals: Arrivals, clock_slew: float, inside: np.ndarray | None
) -> Iterator[tuple[str, End]]:
    """Kind and worst end at each data pin and edge of each type of flip-flop and clock gate."""
    for group in netlist.groups:
        cell = group.cell
        rows = slice(None) if inside is None else inside[group.cells]
        if cell.clock_pin is None or not len(group.cells[rows]):
            continue
        target = "gate" if cell.clock_gate is not None else "reg"
        for column, name in enumerate(cell.inputs):
            for arc in cell.pins[name].arcs:
                for edge in (RISE, FALL):
                    table = arc.constraint[edge]
                    if table is None or arc.kind != "setup_rising":
                        continue
                    places = 2 * group.inputs[rows, column] + edge
                    setup = table(clock_slew, arrivals.slew[places])
                    for source, kind in ((FROM_REGISTER, f"reg_to_{target}"), (FROM_INPUT, f"in_to_{target}")):
                        total = arrivals.time[source, places] + setup
                        worst = int(np.argmax(total))
                        number, place, delay = int(group.cells[rows][worst]), int(places[worst]), float(total[worst])
                        step = PathStep(
                            cell=netlist.cell_name(number),
                            kind=cell.name,
                            block=netlist.blocks[netlist.cell_block[number]],
                            arc=f"setup {name} {EDGES[edge]}",
                            net=netlist.net_name(place // 2),
                            arrival=delay,
                            slew=float(arrivals.slew[place]),
                            load=0.0,
                        )
                        yield kind, End(delay, source, place, step)


def _at_ports(netlist: Netlist, arrivals: Arrivals) -> Iterator[tuple[str, End]]:
    """Kind and worst end at each output port."""
    for port in netlist.ports.values():
        if port.direction != "output" or len(port.nets) == 0:
            continue
        places = np.concatenate([2 * port.nets, 2 * port.nets + 1])
        for source, kind in ((FROM_REGISTER, "reg_to_out"), (FROM_INPUT, "in_to_out")):
            total = arrivals.time[source, places]
            worst = int(np.argmax(total))
            yield kind, End(float(total[worst]), source, int(places[worst]), None)


def trace(netlist: Netlist, arcs: Arcs, arrivals: Arrivals, end: End) -> list[PathStep]:
    """Walk back from an end to where its path begins."""
    steps = [] if end.step is None else [end.step]
    times, slew, load = arrivals.time[end.source], arrivals.slew, arrivals.load
    place = end.place
    while True:
        cell = int(netlist.driver[place // 2])
        net = netlist.net_name(place // 2)
        if cell < 0 or place // 2 in netlist.gated_nets:
            if cell < 0 and place // 2 != netlist.clock_net:
                arc = f"{EDGES[place % 2]} at the port"
                edge = float(slew[place]), float(load[place])
                steps.append(PathStep(net, "port", netlist.top, arc, net, float(times[place]), *edge))
            break
        among = arcs.to(int(netlist.level[cell]), place)
        best = among.start + int(np.argmax(times[arcs.start[among]] + arrivals.delays[among]))
        steps.append(
            PathStep(
                cell=netlist.cell_name(cell),
                kind=netlist.groups[netlist.cell_group[cell]].cell.name,
                block=netlist.blocks[netlist.cell_block[cell]],
                arc=arcs.labels[arcs.label[best]],
                net=net,
                arrival=float(times[place]),
                slew=float(slew[place]),
                load=float(load[place]),
            )
        )
        place = int(arcs.start[best])
    return steps[::-1]
