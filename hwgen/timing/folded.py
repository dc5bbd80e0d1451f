"""A netlist as the arrays of compiled timing: each cell a node, or each class of equal cells.

Where an output may follow another one, a node has its outputs behind its inputs, as pins of its own nets.
"""

from __future__ import annotations

import numpy as np

from hwgen.errors import InputError
from hwgen.netlist.graph import Netlist
from hwgen.timing.kernels import GraphArrays, levels
from hwgen.timing.kinds import Kinds
from hwgen.timing.loads import Assumptions, net_loads
from hwgen.timing.wires import Wires

__all__ = ["Folded"]

_NONE = np.zeros(0, dtype=np.int64)


class Folded:
    """A netlist whose cells are folded into classes.

    Parameters
    ----------
    netlist : Netlist
    kinds : Kinds
        Of all its cells.
    classes : numpy.ndarray
        Shape (n_cells,): class of each cell.

    Attributes
    ----------
    kind, cell : numpy.ndarray
        Shape (classes,): kind of each class, and one cell of it.
    net_of : numpy.ndarray
        Shape (n_nets,): the graph's net of each net; -1 where nothing drives it. The graph has nets for the constants,
        for each input port's, and for each output of each class.
    order : numpy.ndarray
        Nodes in topological order, by number: classes, then meets. Known once `arrays` was called.
    """

    def __init__(self, netlist: Netlist, kinds: Kinds, classes: np.ndarray):
        self.netlist, self.kinds, self.classes = netlist, kinds, classes
        kind = np.zeros(netlist.n_cells, dtype=np.int64)
        for group in netlist.groups:
            kind[group.cells] = kinds.number[group.cell.name]
        self.cell = np.zeros(int(classes.max(initial=-1)) + 1, dtype=np.int64)
        self.cell[classes[::-1]] = np.arange(netlist.n_cells)[::-1]
        self.kind = kind[self.cell]
        if np.any(self.kind[classes] != kind):
            raise InputError(f"cells of one class of {netlist.top} are of several kinds; expected one")
        family = kinds.family[self.kind]
        inputs, outputs = (
            np.array([len(pins) for pins in each], dtype=np.int64) for each in (kinds.inputs, kinds.outputs)
        )
        self._inputs = inputs[family]
        self._pin_first = _first((inputs + kinds.following * outputs)[family])
        self._out_first = _first(outputs[family])
        self._number()
        self.order = _NONE

    def _number(self) -> None:
        """Pins of all cells as (pin of the class, net), and nets of the graph."""
        pins, pin_nets, outs, out_nets = [_NONE], [_NONE], [_NONE], [_NONE]
        for group in self.netlist.groups:
            family = self.kinds.family[self.kinds.number[group.cell.name]]
            of = self.classes[group.cells]
            for column, name in enumerate(self.kinds.inputs[family]):
                pins.append(self._pin_first[of] + column)
                pin_nets.append(group.inputs[:, group.cell.inputs.index(name)])
            for column, name in enumerate(self.kinds.outputs[family]):
                outs.append(self._out_first[of] + column)
                out_nets.append(group.outputs[:, group.cell.outputs.index(name)])
        self._pins, self._pin_nets = np.concatenate(pins), np.concatenate(pin_nets)
        entering = self._at_ports("input")
        self.net_of = np.full(self.netlist.n_nets, -1, dtype=np.int64)
        self.net_of[:2] = 0, 1
        self.net_of[entering] = 2 + np.arange(len(entering))
        first_out = 2 + len(entering)
        self.net_of[np.concatenate(out_nets)] = first_out + np.concatenate(outs)
        self._out_net = first_out + np.arange(int(self._out_first[-1]))
        self._n_nets = first_out + int(self._out_first[-1])

    def _at_ports(self, direction: str) -> np.ndarray:
        """Nets of the input or output ports, each once, without constants."""
        found = np.unique(
            np.concatenate([_NONE, *(port.nets for port in self.netlist.ports.values() if port.direction == direction)])
        )
        return found[found > 1]

    def arrays(self, assumed: Assumptions, wires: Wires) -> tuple[GraphArrays, np.ndarray]:
        """The graph, and the kind of each of its nodes.

        Raises
        ------
        InputError
            There is a combinational loop.
        """
        chosen, capacitance, resistance, fixed = self._loads(assumed, wires)
        at = self.net_of[self._pin_nets]
        # What a pin adds to: the nets that stand for theirs.
        alive = chosen[at] == self._pin_nets
        (loading, load_net), load_count = _pairs(self._pins[alive], at[alive], self._n_nets)
        pin_net, meets = self._sources(at)
        order, pin_first, pins, timed = self._topological(pin_net, meets)
        pin_net = np.concatenate([pin_net, np.array([net for nets in meets for net in nets], dtype=np.int64)])[pins]
        n_nets = self._n_nets + len(meets)
        out_first = np.concatenate([self._out_first, self._out_first[-1] + 1 + np.arange(len(meets))])
        outs, out_first = _permuted(out_first, order)
        out_net = np.concatenate([self._out_net, self._n_nets + np.arange(len(meets))])[outs]
        loads, load_first = _permuted(np.searchsorted(loading, np.arange(len(pins) + 1)), pins)
        driver = np.full(n_nets, -1, dtype=np.int64)
        driver[out_net] = np.repeat(np.arange(len(order)), np.diff(out_first))
        node = np.repeat(np.arange(len(order)), np.diff(pin_first))
        (before, after), _ = _pairs(pin_net[timed[pins]], node[timed[pins]], len(order) + 1)
        is_input = np.zeros(n_nets, dtype=np.bool_)
        is_input[self.net_of[np.setdiff1d(self._at_ports("input"), self.netlist.clock_nets)]] = True
        kind = np.concatenate([self.kind, np.zeros(len(meets), dtype=np.int64)])[order]
        meet = order >= len(self.kind)
        graph = GraphArrays(
            pin_first=pin_first,
            pin_net=pin_net,
            out_first=out_first,
            out_net=out_net,
            meet=meet,
            driver=driver,
            sink_first=np.searchsorted(before, np.arange(n_nets + 1)),
            sink_node=after,
            load_first=load_first,
            load_net=load_net[loads],
            load_count=load_count[loads].astype(float),
            inputs=is_input,
            resistance=_extended(resistance, n_nets),
            capacitance=_extended(capacitance, n_nets),
            fixed=np.repeat(_extended(fixed, n_nets)[:, None], 2, axis=1),
            clock_slew=assumed.clock_slew,
            **self._ends(kind, meet, pin_first, pin_net, n_nets),
        )
        return graph, kind

    def _loads(self, assumed: Assumptions, wires: Wires) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """By net of the graph: the most loaded that it stands for (-1: none), fF and kohm of its wire, fixed fF."""
        load = net_loads(self.netlist, assumed.output_load, wires).mean(axis=1)
        order = np.lexsort((-np.arange(len(load)), load))
        order = order[self.net_of[order] >= 0]
        chosen = np.full(self._n_nets, -1, dtype=np.int64)
        chosen[self.net_of[order]] = order
        resistance = np.zeros(self._n_nets)
        np.maximum.at(resistance, self.net_of[order], wires.resistance[order])
        resistance[self.net_of[self.netlist.clock_nets]] = 0.0
        capacitance = np.append(wires.capacitance, 0.0)[chosen]
        leaving = [port.nets for port in self.netlist.ports.values() if port.direction == "output"]
        ports = np.bincount(np.concatenate([_NONE, *leaving]), minlength=self.netlist.n_nets)
        return chosen, capacitance, resistance, capacitance + assumed.output_load * np.append(ports, 0)[chosen]

    def _sources(self, nets: np.ndarray) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        """Net of each pin of each class; where there are several, the output of a meet. Meets by their nets."""
        (pins, found), _ = _pairs(self._pins, nets, self._n_nets)
        first = np.searchsorted(pins, np.arange(int(self._pin_first[-1]) + 1))
        pin_net = np.append(found, 0)[first[:-1]]
        following = self.kinds.following[self.kinds.family[self.kind]]
        own = np.repeat(following, np.diff(self._out_first))
        pin_net[self._column() >= np.repeat(self._inputs, np.diff(self._pin_first))] = self._out_net[own]
        meets: dict[tuple[int, ...], int] = {}
        for pin in np.flatnonzero(np.diff(first) > 1).tolist():
            several = tuple(net for net in found[first[pin] : first[pin + 1]].tolist() if net > 1)
            if len(several) > 1:
                pin_net[pin] = meets.setdefault(several, self._n_nets + len(meets))
            else:
                pin_net[pin] = several[0] if several else 0
        return pin_net, [*meets]

    def _topological(
        self, pin_net: np.ndarray, meets: list[tuple[int, ...]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Nodes and pins in order: nodes, where the pins of each begin, pins, and whether an arc begins at a pin."""
        widths = np.array([len(nets) for nets in meets], dtype=np.int64)
        pin_first = np.concatenate([self._pin_first, self._pin_first[-1] + np.cumsum(widths)])
        nets = np.concatenate([pin_net, np.array([net for several in meets for net in several], dtype=np.int64)])
        timed = np.concatenate([self._timed(), np.ones(int(widths.sum()), dtype=np.bool_)])
        driver = np.full(self._n_nets + len(meets), -1, dtype=np.int64)
        driver[self._out_net] = np.repeat(np.arange(len(self.kind)), np.diff(self._out_first))
        driver[self._n_nets :] = len(self.kind) + np.arange(len(meets))
        level = levels(pin_first, timed, driver, nets)
        # A loop of the netlist itself is named by `level`.
        if np.any(level < 0) and self.netlist.level is not None:
            raise InputError(f"{self.netlist.top} has a combinational loop once equal cells are folded")
        self.order = np.argsort(level, kind="stable")
        pins, pin_first = _permuted(pin_first, self.order)
        return self.order, pin_first, pins, timed

    def _column(self) -> np.ndarray:
        """Column of each pin of each class."""
        return np.arange(int(self._pin_first[-1])) - np.repeat(self._pin_first[:-1], np.diff(self._pin_first))

    def _timed(self) -> np.ndarray:
        """For each pin of each class, whether an arc from another node's net begins at it."""
        cells, column = self.kinds.arrays, self._column()
        timed = np.zeros((len(self.kinds.inputs), int(column.max(initial=0)) + 1), dtype=np.bool_)
        families, before = np.repeat(self.kinds.family, np.diff(cells.first)), ~cells.follows
        there = before & (cells.source // 2 < timed.shape[1])
        timed[families[there], cells.source[there] // 2] = True
        return timed[np.repeat(self.kinds.family[self.kind], np.diff(self._pin_first)), column]

    def _ends(
        self, kind: np.ndarray, meet: np.ndarray, pin_first: np.ndarray, pin_net: np.ndarray, n_nets: int
    ) -> dict[str, np.ndarray]:
        """Where paths end: each edge of output ports, then each constraint of each node."""
        cells = self.kinds.arrays
        count = np.where(meet, 0, np.diff(cells.check_first)[kind])
        node = np.repeat(np.arange(len(kind)), count)
        check = np.arange(len(node)) - np.repeat(np.cumsum(count) - count, count)
        source = cells.check_source[cells.check_first[kind[node]] + check]
        ports = np.repeat(np.unique(self.net_of[self._at_ports("output")]), 2)
        net = np.concatenate([ports, pin_net[pin_first[node] + source // 2]])
        return {
            "end_net": net,
            "end_edge": np.concatenate([np.arange(len(ports)) % 2, source % 2]),
            "end_node": np.concatenate([np.full(len(ports), -1), node]),
            "end_check": np.concatenate([np.zeros(len(ports), dtype=np.int64), check]),
            "node_end_first": _first(count),
            "node_end": len(ports) + np.arange(len(node)),
            "net_end_first": np.searchsorted(np.sort(net), np.arange(n_nets + 1)),
            "net_end": np.argsort(net, kind="stable"),
        }


def _first(counts: np.ndarray) -> np.ndarray:
    """Where ranges of these sizes begin, one after the other; and the end of the last."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _extended(values: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(size - len(values))])


def _permuted(first: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges ``first[i]`` to ``first[i + 1]`` in another order: where each row comes from, and the new ``first``."""
    size = np.diff(first)[order]
    new = _first(size)
    return np.arange(int(new[-1])) + np.repeat(first[:-1][order] - new[:-1], size), new


def _pairs(left: np.ndarray, right: np.ndarray, size: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Distinct pairs of numbers, the right ones below ``size``, in order; and how often each occurs."""
    keys, counts = np.unique(left * size + right, return_counts=True)
    return (keys // size, keys % size), counts
