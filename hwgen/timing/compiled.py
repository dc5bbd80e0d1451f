"""Compiled static timing of a netlist whose cells change their sizes.

Same figures as `hwgen.timing.analysis`, of the worst of register and input paths. A netlist may be *folded*: cells
that are copies of one another are one node, as late as the latest of them, with the load of the most loaded. Equal
elements of an array are then timed once. Where copies differ a folded netlist may be slower than the same netlist in
full, or a little faster: the copy with the most load need not be that with the slowest wire. So what is reported is
timed in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hwgen.cells.cell import Cell
from hwgen.cells.library import Library
from hwgen.errors import InputError
from hwgen.netlist.graph import Netlist
from hwgen.timing import kernels
from hwgen.timing.folded import Folded
from hwgen.timing.kernels import GraphArrays, StateArrays
from hwgen.timing.kinds import Kinds
from hwgen.timing.loads import Assumptions, assumptions
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
    _room: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._queued = np.zeros(len(self.copies), dtype=np.bool_)
        self._room = np.zeros((2, len(self.copies)), dtype=np.int64)
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
        count, _ = kernels.update(self.graph, self.kinds.arrays, self.state, node, self._queued, tolerance, self._room)
        return count

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
    names = [tuple(cell.name for cell in family) for family in families]
    names += [(group.cell.name,) for group in netlist.groups if group.cell.name not in known]
    kinds = netlist.library.known(_kinds, *names)
    nodes = np.arange(netlist.n_cells) if classes is None else classes
    folded = Folded(netlist, kinds, nodes)
    graph, kind = folded.arrays(assumed, wires)
    load, arrival, slew, required = np.zeros((4, len(graph.fixed), 2))
    arrival[:] = -np.inf
    slew[graph.inputs] = assumed.input_slew
    clocks = folded.net_of[netlist.clock_nets]
    arrival[clocks], slew[clocks] = 0.0, assumed.clock_slew
    none = np.zeros(len(kind) - len(folded.kind), dtype=np.int64)
    order = folded.order
    return Compiled(
        kinds=kinds,
        graph=graph,
        state=StateArrays(kind, load, arrival, slew, required, np.zeros(len(graph.end_net))),
        node_of=np.argsort(order)[nodes],
        net_of=folded.net_of,
        cell_of=np.concatenate([folded.cell, none - 1])[order],
        copies=np.concatenate([np.bincount(nodes, minlength=len(folded.kind)), none])[order],
        assumed=assumed,
    )


def _kinds(library: Library, *families: tuple[str, ...]) -> Kinds:
    return Kinds([[library.cells[name] for name in family] for family in families], library.load_limits)
