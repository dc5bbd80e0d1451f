"""Compiled static timing of a netlist whose cells change their sizes.

Same figures as `hwgen.timing.analysis`, of the worst of register and input paths. A netlist may be *folded*: cells
that are copies of one another are one node, as late as the latest of them, with the load of the most loaded. Equal
elements of an array are then timed once. A folded netlist is never faster than the same netlist in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.errors import InputError
from hwgen.netlist.graph import Netlist
from hwgen.timing import kernels
from hwgen.timing.kernels import GraphArrays, StateArrays
from hwgen.timing.kinds import Kinds
from hwgen.timing.loads import Assumptions, assumptions, net_loads
from hwgen.timing.wires import Wires, per_fanout

__all__ = ["Compiled", "compile_timing"]


@dataclass
class Compiled:
    """A netlist ready for timing again and again.

    Attributes
    ----------
    kinds : Kinds
    graph : GraphArrays
    state : StateArrays
    node_of : numpy.ndarray
        Shape (n_cells,): node of each cell of the netlist.
    net_of : numpy.ndarray
        Shape (n_nets,): net in `graph` of each net of the netlist; -1 where nothing drives it.
    cell_of : numpy.ndarray
        Shape (nodes,): a cell of each node, -1 for meets.
    copies : numpy.ndarray
        Shape (nodes,): cells of each node, 0 for meets.
    assumed : Assumptions
    """

    kinds: Kinds
    graph: GraphArrays
    state: StateArrays
    node_of: np.ndarray
    net_of: np.ndarray
    cell_of: np.ndarray
    copies: np.ndarray
    assumed: Assumptions
    _queued: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._queued = np.zeros(len(self.copies), dtype=np.bool_)
        self.reload()

    def reload(self) -> None:
        """Time everything anew."""
        kernels.reload(self.graph, self.kinds.arrays, self.state)
        kernels.forward(self.graph, self.kinds.arrays, self.state)

    def change(self, node: int, cell: Cell, tolerance: float = 0.0) -> int:
        """Give a node another cell of its family, and time what that changes.

        Parameters
        ----------
        node : int
        cell : Cell
        tolerance : float
            ns; changes of at most this are not followed any further.

        Returns
        -------
        int
            Nodes that were timed again.
        """
        kernels.swap(self.graph, self.kinds.arrays, self.state, node, self.kinds.number[cell.name])
        return kernels.update(self.graph, self.kinds.arrays, self.state, node, self._queued, tolerance)

    @property
    def delay(self) -> float:
        """The longest path in ns, set-up included; 0 where there is none."""
        return max(0.0, float(self.state.end.max(initial=0.0)))

    def slack(self, period: float) -> np.ndarray:
        """Slack of both edges of every net in ns, shape (nets, 2); infinite where no path goes through."""
        kernels.backward(self.graph, self.kinds.arrays, self.state, period)
        return self.state.required - self.state.arrival

    def cells(self) -> list[Cell | None]:
        """The cell of each node; None for meets."""
        found = zip(self.state.kind.tolist(), self.graph.meet.tolist(), strict=True)
        return [None if meet else self.kinds.cells[kind] for kind, meet in found]


def compile_timing(
    netlist: Netlist,
    assumed: Assumptions | None = None,
    wires: Wires | None = None,
    classes: np.ndarray | None = None,
    families: Sequence[Sequence[Cell]] = (),
) -> Compiled:
    """Make a netlist ready for timing, and time it.

    Parameters
    ----------
    netlist : Netlist
    assumed : Assumptions, optional
        The library's defaults if not given.
    wires : Wires, optional
        By fanout if not given.
    classes : numpy.ndarray, optional
        Shape (n_cells,), numbers from 0 up without gaps: cells of equal number are one node. Each cell is a node of
        its own if not given.
    families : sequence of sequences of Cell
        Cells that may take one another's place; those of the netlist that are in none cannot be changed.

    Raises
    ------
    InputError
        If there is a combinational loop, in the netlist or once it is folded; or the wires are another netlist's.
    """
    if assumed is None:
        assumed = assumptions(netlist.library)
    if wires is None:
        wires = per_fanout(netlist, assumed.wire_load)
    if len(wires.capacitance) != netlist.n_nets:
        raise InputError(f"wires of {len(wires.capacitance)} nets; {netlist.top} has {netlist.n_nets}")
    known = {cell.name for family in families for cell in family}
    kinds = Kinds([*families, *([group.cell] for group in netlist.groups if group.cell.name not in known)])
    nodes = np.arange(netlist.n_cells) if classes is None else classes
    return _Builder(netlist, kinds, assumed, wires, nodes).built()


class _Builder:
    """Arrays of a netlist whose cells are folded into classes."""

    def __init__(self, netlist: Netlist, kinds: Kinds, assumed: Assumptions, wires: Wires, classes: np.ndarray):
        self.netlist, self.kinds, self.assumed, self.wires, self.classes = netlist, kinds, assumed, wires, classes
        self.count = int(classes.max(initial=-1)) + 1
        kind = np.zeros(netlist.n_cells, dtype=np.int64)
        for group in netlist.groups:
            kind[group.cells] = kinds.number[group.cell.name]
        self.cell = np.zeros(self.count, dtype=np.int64)
        self.cell[classes[::-1]] = np.arange(netlist.n_cells)[::-1]
        self.kind = kind[self.cell]
        if np.any(self.kind[classes] != kind):
            raise InputError(f"cells of one class of {netlist.top} are of several kinds; expected one")
        inputs = np.array([len(pins) for pins in kinds.inputs], dtype=np.int64)
        outputs = np.array([len(pins) for pins in kinds.outputs], dtype=np.int64)
        family = kinds.family[self.kind]
        self.pin_first = np.concatenate([[0], np.cumsum(inputs[family])])
        self.out_first = np.concatenate([[0], np.cumsum(outputs[family])])

    def _pins(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Input pins of all cells as (pin of the class, net), and outputs likewise."""
        pins, pin_nets, outs, out_nets = [], [], [], []
        for group in self.netlist.groups:
            family = self.kinds.family[self.kinds.number[group.cell.name]]
            of = self.classes[group.cells]
            for column, name in enumerate(self.kinds.inputs[family]):
                pins.append(self.pin_first[of] + column)
                pin_nets.append(group.inputs[:, group.cell.inputs.index(name)])
            for column, name in enumerate(self.kinds.outputs[family]):
                outs.append(self.out_first[of] + column)
                out_nets.append(group.outputs[:, group.cell.outputs.index(name)])
        empty = np.zeros(0, dtype=np.int64)
        return tuple(np.concatenate([*found, empty]) for found in (pins, pin_nets, outs, out_nets))  # type: ignore[return-value]

    def built(self) -> Compiled:
        netlist = self.netlist
        pins, pin_nets, outs, out_nets = self._pins()
        # Nets of the graph: the constants, each input port's, then one for each output of each class.
        net_of = np.full(netlist.n_nets, -1, dtype=np.int64)
        net_of[:2] = 0, 1
        at_ports = [port.nets for port in netlist.ports.values() if port.direction == "input"]
        entering = np.unique(np.concatenate([*at_ports, np.zeros(0, dtype=np.int64)]))
        entering = entering[entering > 1]
        net_of[entering] = 2 + np.arange(len(entering))
        first_out = 2 + len(entering)
        net_of[out_nets] = first_out + outs
        n_nets = first_out + int(self.out_first[-1])
        nothing = np.zeros(0, dtype=np.int64)
        chosen, resistance = self._representatives(net_of, n_nets)
        # What a pin adds to: the nets that stand for theirs.
        alive = chosen[net_of[pin_nets]] == pin_nets
        both, load_count = _pairs(pins[alive], net_of[pin_nets[alive]], n_nets)
        load_first = np.searchsorted(both[0], np.arange(int(self.pin_first[-1]) + 1))
        pin_net, meets = self._sources(pins, net_of[pin_nets], n_nets)
        capacitance = np.where(chosen >= 0, self.wires.capacitance[chosen], 0.0)
        fixed = np.repeat(capacitance[:, None], 2, axis=1)
        leaving = [port.nets for port in netlist.ports.values() if port.direction == "output"]
        out_ports = np.concatenate([*leaving, np.zeros(0, dtype=np.int64)])
        fixed += np.where(
            chosen >= 0, self.assumed.output_load * np.bincount(out_ports, minlength=netlist.n_nets)[chosen], 0.0
        )[:, None]
        total = n_nets + len(meets)
        more = np.zeros(len(meets))
        return self._ordered(
            pin_net,
            meets,
            first_out,
            n_nets,
            GraphArrays(
                pin_first=self.pin_first,
                pin_net=pin_net,
                out_first=self.out_first,
                out_net=first_out + np.arange(int(self.out_first[-1])),
                meet=np.zeros(0, dtype=np.bool_),
                driver=nothing,
                sink_first=nothing,
                sink_node=nothing,
                load_first=load_first,
                load_net=both[1],
                load_count=load_count.astype(float),
                inputs=self._is_input(net_of, entering, total),
                end_net=np.unique(net_of[out_ports[out_ports > 1]]),
                end_edge=nothing,
                end_node=nothing,
                end_check=nothing,
                node_end_first=nothing,
                node_end=nothing,
                net_end_first=nothing,
                net_end=nothing,
                resistance=np.concatenate([resistance, more]),
                capacitance=np.concatenate([capacitance, more]),
                fixed=np.concatenate([fixed, np.zeros((len(meets), 2))]),
                clock_slew=self.assumed.clock_slew,
            ),
            net_of,
        )

    def _clocks(self) -> np.ndarray:
        net = self.netlist.clock_net
        return np.array([] if net is None else [net], dtype=np.int64)

    def _is_input(self, net_of: np.ndarray, entering: np.ndarray, total: int) -> np.ndarray:
        found = np.zeros(total, dtype=np.bool_)
        found[net_of[np.setdiff1d(entering, self._clocks())]] = True
        return found

    def _representatives(self, net_of: np.ndarray, n_nets: int) -> tuple[np.ndarray, np.ndarray]:
        """For each net of the graph the most loaded one that it stands for (-1: none), and the largest resistance."""
        load = net_loads(self.netlist, self.assumed.output_load, self.wires).mean(axis=1)
        order = np.lexsort((-np.arange(len(load)), load))
        order = order[net_of[order] >= 0]
        chosen = np.full(n_nets, -1, dtype=np.int64)
        chosen[net_of[order]] = order
        resistance = np.zeros(n_nets)
        np.maximum.at(resistance, net_of[order], self.wires.resistance[order])
        resistance[net_of[self._clocks()]] = 0.0
        return chosen, resistance

    def _sources(
        self, pins: np.ndarray, nets: np.ndarray, n_nets: int
    ) -> tuple[np.ndarray, dict[tuple[int, ...], int]]:
        """Net of each pin; where there are several, the output of a meet, numbered from `n_nets` up."""
        found, _ = _pairs(pins, nets, n_nets)
        first = np.searchsorted(found[0], np.arange(int(self.pin_first[-1]) + 1))
        pin_net = found[1][first[:-1]] if len(found[0]) else np.zeros(0, dtype=np.int64)
        meets: dict[tuple[int, ...], int] = {}
        for pin in np.flatnonzero(np.diff(first) > 1).tolist():
            several = tuple(net for net in found[1][first[pin] : first[pin + 1]].tolist() if net > 1)
            if len(several) > 1:
                pin_net[pin] = meets.setdefault(several, n_nets + len(meets))
            else:
                pin_net[pin] = several[0] if several else 0
        return pin_net, meets

    def _ordered(
        self,
        pin_net: np.ndarray,
        meets: dict[tuple[int, ...], int],
        first_out: int,
        n_nets: int,
        graph: GraphArrays,
        net_of: np.ndarray,
    ) -> Compiled:
        """Classes and meets in topological order."""
        timed = self._timed()
        widths = [len(nets) for nets in meets]
        cells = self.count
        pin_first = np.concatenate([self.pin_first, self.pin_first[-1] + np.cumsum(widths, dtype=np.int64)])
        pin_net = np.concatenate([pin_net, np.array([net for nets in meets for net in nets], dtype=np.int64)])
        out_first = np.concatenate([self.out_first, self.out_first[-1] + 1 + np.arange(len(meets))])
        out_net = np.concatenate([graph.out_net, np.array([*meets.values()], dtype=np.int64)])
        timed = np.concatenate([timed, np.ones(sum(widths), dtype=np.bool_)])
        total = n_nets + len(meets)
        driver = np.full(total, -1, dtype=np.int64)
        driver[out_net] = np.repeat(np.arange(cells + len(meets)), np.diff(out_first))
        level = kernels.levels(pin_first, timed, driver, pin_net)
        if np.any(level < 0):
            self.netlist.level  # noqa: B018  (names the loop, if it is one of the netlist itself)
            raise InputError(f"{self.netlist.top} has a combinational loop once equal cells are folded")
        order = np.argsort(level, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        by_pin, pin_first = _permuted(pin_first, order)
        by_out, out_first = _permuted(out_first, order)
        load_first = np.concatenate([graph.load_first, np.full(sum(widths), graph.load_first[-1])])
        by_load, load_first = _permuted(load_first, by_pin)
        pin_net, timed = pin_net[by_pin], timed[by_pin]
        node_of_pin = np.repeat(np.arange(len(order)), np.diff(pin_first))
        links, _ = _pairs(pin_net[timed], node_of_pin[timed], len(order) + 1)
        kind = np.concatenate([self.kind, np.zeros(len(meets), dtype=np.int64)])[order]
        meet = order >= cells
        arrays = graph._replace(
            pin_first=pin_first,
            pin_net=pin_net,
            out_first=out_first,
            out_net=out_net[by_out],
            meet=meet,
            driver=np.append(place, -1)[driver],
            sink_first=np.searchsorted(links[0], np.arange(total + 1)),
            sink_node=links[1],
            load_first=load_first,
            load_net=graph.load_net[by_load],
            load_count=graph.load_count[by_load],
        )
        arrays = self._with_ends(arrays, kind, total)
        load, arrival, slew, required = np.zeros((4, total, 2))
        state = StateArrays(kind, load, arrival, slew, required, np.zeros(len(arrays.end_net)))
        state.arrival[:] = -np.inf
        state.slew[arrays.inputs] = self.assumed.input_slew
        clocks = net_of[self._clocks()]
        state.arrival[clocks], state.slew[clocks] = 0.0, self.assumed.clock_slew
        none = np.zeros(len(meets), dtype=np.int64)
        copies = np.bincount(self.classes, minlength=cells)
        return Compiled(
            kinds=self.kinds,
            graph=arrays,
            state=state,
            node_of=place[self.classes],
            net_of=net_of,
            cell_of=np.concatenate([self.cell, none - 1])[order],
            copies=np.concatenate([copies, none])[order],
            assumed=self.assumed,
        )

    def _with_ends(self, graph: GraphArrays, kind: np.ndarray, total: int) -> GraphArrays:
        """Where paths end: each edge of output ports, then each constraint of each node."""
        cells = self.kinds.arrays
        count = np.where(graph.meet, 0, np.diff(cells.check_first)[kind])
        node = np.repeat(np.arange(len(kind)), count)
        check = np.arange(len(node)) - np.repeat(np.cumsum(count) - count, count)
        source = cells.check_source[cells.check_first[kind[node]] + check]
        ports = np.repeat(graph.end_net, 2)
        net = np.concatenate([ports, graph.pin_net[graph.pin_first[node] + source // 2]])
        return graph._replace(
            end_net=net,
            end_edge=np.concatenate([np.arange(len(ports)) % 2, source % 2]),
            end_node=np.concatenate([np.full(len(ports), -1), node]),
            end_check=np.concatenate([np.zeros(len(ports), dtype=np.int64), check]),
            node_end_first=np.concatenate([[0], np.cumsum(count)]),
            node_end=len(ports) + np.arange(len(node)),
            net_end_first=np.searchsorted(np.sort(net), np.arange(total + 1)),
            net_end=np.argsort(net, kind="stable"),
        )

    def _timed(self) -> np.ndarray:
        """For each pin of each class, whether an arc begins at it."""
        arrays = self.kinds.arrays
        timed = np.zeros((len(self.kinds.inputs), arrays.capacitance.shape[1]), dtype=np.bool_)
        of = np.repeat(self.kinds.family, np.diff(arrays.first))
        timed[of, arrays.source // 2] = True
        family = np.repeat(self.kinds.family[self.kind], np.diff(self.pin_first))
        column = np.arange(len(family)) - np.repeat(self.pin_first[:-1], np.diff(self.pin_first))
        return timed[family, column]


def _permuted(first: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges ``first[i]`` to ``first[i + 1]`` in another order: where each row comes from, and the new ``first``."""
    size = np.diff(first)[order]
    new = np.concatenate([[0], np.cumsum(size)])
    rows = np.arange(int(new[-1])) + np.repeat(first[:-1][order] - new[:-1], size)
    return rows, new


def _pairs(left: np.ndarray, right: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs of numbers, the right ones below ``size``, in order, shape (2, n); and how often each occurs."""
    keys, counts = np.unique(left * size + right, return_counts=True)
    return np.stack([keys // size, keys % size]), counts
