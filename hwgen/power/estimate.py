"""Power of a flat netlist: Liberty energies at the simulated activity.

Per clock cycle, in fJ:

- ``internal``: the ``internal_power`` tables, at the slews and loads of the timing analysis. A transition
  costs the mean of the rising and the falling table. Where an output's tables name the input that causes the
  transition, the output's toggles are shared among the inputs in proportion to how often each toggles while
  the output follows it. Conditions (``when``) weigh with the simulated probability of the cell's state; a
  table without condition beside others with one is for the states they leave out.
  Tables of several supplies add up: in ASAP7, power and ground each hold about half of the energy.
- ``switching``: C V^2 / 2 for each transition of a net that a cell drives, C being its input pins and output ports.
  Liberty's internal energies do not contain it. Nets driven from outside are in no figure; see `entering_fj`.
- ``wires``: the same, C being the wire of the net.
- ``clock``: the clock pins of flip-flops and clock gates, both edges: internal energy, and C V^2 for pin and wire. Of
  a clock gate also the energy of its output's transitions, but not the net behind it: that is in its loads' figures.
  Behind a gate, only the cycles count in which it lets a pulse through; conditions weigh with the states before these.
- ``clock_tree``: what the tree's buffers would add, see `hwgen.power.clock_tree`: 0 unless given.
- ``leakage``: by state where the library has it.

Activity without delays has no glitches, so switching and internal power of deep arithmetic are lower bounds then;
`hwgen.power.glitch` counts them.
The rules are those of OpenSTA 2.1 and later, but with simulated state probabilities in place of products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hwgen.cells.boolean import Expression
from hwgen.cells.cell import Cell, InternalPower, Pin
from hwgen.errors import InputError
from hwgen.netlist.graph import CellGroup, Netlist
from hwgen.power.activity import Activity
from hwgen.power.clock_tree import ClockTree
from hwgen.power.consumption import DYNAMIC, KINDS, Consumption
from hwgen.power.logic import state_names
from hwgen.timing.analysis import Timing

__all__ = ["KINDS", "Power", "consumption", "entering_fj", "estimate"]

_INTERNAL, _SWITCHING, _WIRES, _CLOCK, _CLOCK_TREE = range(len(DYNAMIC))
_MW_PER_FJ_MHZ = 1e-6


@dataclass
class Power:
    """Power at one clock frequency.

    Attributes
    ----------
    frequency_mhz : float
    cell_fj : numpy.ndarray
        Shape (n_cells, 6): fJ per cycle of each cell, by `KINDS`; a net's energy belongs to its driver, a clock
        net's to the flip-flops and clock gates it reaches.
    fj : dict of str to float
        fJ per cycle of each kind.
    by_block : dict of str to dict of str to float
        fJ per cycle of each block (without its children) and kind.
    """

    frequency_mhz: float
    cell_fj: np.ndarray = field(repr=False)
    fj: dict[str, float]
    by_block: dict[str, dict[str, float]]

    @property
    def total_fj(self) -> float:
        """fJ per cycle."""
        return sum(self.fj.values())

    @property
    def total_mw(self) -> float:
        """Total power in mW."""
        return self.total_fj * self.frequency_mhz * _MW_PER_FJ_MHZ

    @property
    def mw(self) -> dict[str, float]:
        """Power of each kind in mW."""
        return {kind: value * self.frequency_mhz * _MW_PER_FJ_MHZ for kind, value in self.fj.items()}


class _States:
    """Probabilities of conditions on the state of each cell of a group.

    ``clocked`` is as `states`, of the cycles at whose end the cell's clock has a pulse; None where all have one. A
    table over the states has the shape (2**k,), or (2, 2**k) where it is one for a low and one for a high clock.
    """

    def __init__(self, cell: Cell, states: np.ndarray | None, clocked: np.ndarray | None, pulses: np.ndarray):
        self._cell = cell
        self._states = states
        self._clocked = clocked
        self._pulses = pulses
        self._names = state_names(cell)
        self.size = 1 << len(self._names)
        self._substitute = {
            name: pin.function
            for name, pin in cell.pins.items()
            if pin.direction == "output" and pin.function is not None
        }
        if cell.clock_gate is not None:
            latch = [name for name, pin in cell.pins.items() if pin.direction == "internal"]
            self._substitute |= dict.fromkeys(latch, cell.clock_gate.opened)
            self._substitute[cell.clock_gate.output] = cell.clock_gate.pulse
        elif cell.sequential is not None:
            inverse = Expression("!state", (cell.sequential.state,), (0, "!"))
            self._substitute[cell.sequential.inverse] = inverse

    def table(self, expression: Expression) -> np.ndarray:
        """Truth table over the states, as numbers."""
        clock = self._cell.clock_pin
        names = self._names if clock is None else [*self._names, clock]
        try:
            truth = expression.truth(names, self._substitute)
        except KeyError as error:
            raise InputError(
                f"the condition {expression.text!r} of the cell {self._cell.name} uses {error.args[0]}; "
                "expected its pins"
            ) from None
        return truth.astype(float) if clock is None else truth.reshape(2, self.size).astype(float)

    def follows(self, output: str, pin: str) -> np.ndarray:
        """States, as a table of 0 and 1, in which a transition of `pin` changes `output`.

        All states where that cannot be said: flip-flops, outputs without function. A clock gate's output follows the
        clock where it is open, and no enable.
        """
        gate = self._cell.clock_gate
        if gate is not None:
            opened = gate.opened.truth(self._names).astype(float)
            return opened if pin == gate.clock else np.zeros(self.size)
        function = self._cell.pins[output].function
        if function is None or pin not in self._names or self._cell.sequential is not None:
            return np.ones(self.size)
        truth = function.truth(self._names, self._substitute)
        bit = 1 << self._names.index(pin)
        return (truth != truth[np.arange(len(truth)) ^ bit]).astype(float)

    def mean(self, table: np.ndarray) -> np.ndarray:
        """Expected value of a table over the states, shape (cells,); the clock is high in half of a cycle or never."""
        if table.ndim == 1:
            return self._over(self._states, table)
        if self._clocked is None:
            return self._over(self._states, table.mean(axis=0))
        return self._over(self._states, table[0]) + 0.5 * self._over(self._clocked, table[1] - table[0])

    def mean_of_pulses(self, table: np.ndarray) -> np.ndarray:
        """As `mean`, but of the states before a pulse of the clock, times the share of cycles before one."""
        if table.ndim == 2:
            table = table.mean(axis=0)
        if self._states is None:
            return self._pulses * table.mean()
        return self._over(self._states if self._clocked is None else self._clocked, table)

    def _over(self, states: np.ndarray | None, table: np.ndarray) -> np.ndarray:
        if states is None:
            # Too many inputs to count every state: all are taken as equally likely.
            return np.full(len(self._pulses), table.mean())
        return states @ table


def _net_fj(netlist: Netlist, timing: Timing, activity: Activity) -> tuple[np.ndarray, np.ndarray]:
    """FJ per cycle of every net, shape (n_nets,) each: for its pins and output ports, and for its wire."""
    factor = 0.5 * netlist.library.voltage**2 * activity.toggles
    return factor * (timing.load.mean(axis=1) - timing.wires.capacitance), factor * timing.wires.capacitance


def _by_cell(
    netlist: Netlist, timing: Timing, activity: Activity, tree: ClockTree | None
) -> tuple[np.ndarray, np.ndarray]:
    """FJ per cycle, shape (n_cells, 5), by `DYNAMIC`; and leakage in nW, shape (n_cells,)."""
    if activity.transitions < 1:
        raise InputError("the simulation has one cycle; expected at least two, for toggles")
    fj = np.zeros((netlist.n_cells, len(DYNAMIC)))
    leakage = np.zeros(netlist.n_cells)
    square = netlist.library.voltage**2
    pins_fj, wires_fj = _net_fj(netlist, timing, activity)
    of_pulses = activity.clocked or [None] * len(netlist.groups)
    for group, distribution, clocked in zip(netlist.groups, activity.states, of_pulses, strict=True):
        cell = group.cell
        clocks = None if cell.clock_pin is None else group.inputs[:, cell.inputs.index(cell.clock_pin)]
        pulses = np.ones(len(group.cells)) if clocks is None else 0.5 * activity.toggles[clocks]
        states = _States(cell, distribution, clocked, pulses)
        own = np.zeros((len(group.cells), len(DYNAMIC)))
        for name, nets in zip(cell.inputs, group.inputs.T, strict=True):
            kind = _CLOCK if name == cell.clock_pin else _INTERNAL
            own[:, kind] += _input_energy(cell, cell.pins[name], nets, states, timing, activity)
        for name, nets in zip(cell.outputs, group.outputs.T, strict=True):
            gated = cell.clock_gate is not None
            load = timing.load[nets] if tree is None or not gated else np.repeat(tree.root_load[nets, None], 2, axis=1)
            energy = _output_energy(group, cell.pins[name], nets, load, states, timing, activity)
            own[:, _CLOCK if gated else _INTERNAL] += energy
            if not gated:
                own[:, _SWITCHING] += pins_fj[nets]
                own[:, _WIRES] += wires_fj[nets]
        if clocks is not None and cell.clock_pin is not None:
            wire = timing.wires.capacitance[clocks] / netlist.fanout[clocks]
            own[:, _CLOCK] += pulses * square * (cell.pins[cell.clock_pin].capacitance + wire)
            own[:, _CLOCK_TREE] += 0.0 if tree is None else pulses * tree.sink_fj[clocks]
        fj[group.cells] = own
        leakage[group.cells] = _leakage(cell, states)
    return fj, leakage


def _summed(netlist: Netlist, values: np.ndarray) -> np.ndarray:
    """Sum of a figure of each cell over the cells of each block of ``netlist.blocks``."""
    return np.bincount(netlist.cell_block, weights=values, minlength=len(netlist.blocks))


def consumption(netlist: Netlist, timing: Timing, activity: Activity, tree: ClockTree | None = None) -> Consumption:
    """What every block of ``netlist.blocks`` consumes, without its children; otherwise as `estimate`."""
    fj, leakage = _by_cell(netlist, timing, activity, tree)
    columns = [_summed(netlist, column).tolist() for column in fj.T]
    return Consumption(
        {
            block: {kind: column[place] for kind, column in zip(DYNAMIC, columns, strict=True)}
            for place, block in enumerate(netlist.blocks)
        },
        dict(zip(netlist.blocks, _summed(netlist, leakage).tolist(), strict=True)),
    )


def estimate(
    netlist: Netlist, timing: Timing, activity: Activity, frequency_mhz: float, tree: ClockTree | None = None
) -> Power:
    """Estimate the power at a clock frequency.

    Parameters
    ----------
    netlist : Netlist
    timing : Timing
        Of the same netlist: slews and loads.
    activity : Activity
        Of the same netlist, over at least two cycles.
    frequency_mhz : float
        MHz.
    tree : ClockTree, optional
        Of the same netlist; no clock tree if not given.

    Returns
    -------
    Power

    Raises
    ------
    InputError
        If the frequency is not positive, or the simulation had no two cycles.
    """
    if not 0 < frequency_mhz < np.inf:
        raise InputError(f"frequency is {frequency_mhz} MHz; expected a positive number")
    dynamic, leakage = _by_cell(netlist, timing, activity, tree)
    # 1 nW during 1 us is 1 fJ.
    fj = np.column_stack([dynamic, leakage / frequency_mhz])
    blocks = [_summed(netlist, column) for column in fj.T]
    return Power(
        frequency_mhz,
        fj,
        dict(zip(KINDS, fj.sum(axis=0).tolist(), strict=True)),
        {
            label: {kind: float(column[i]) for kind, column in zip(KINDS, blocks, strict=True)}
            for i, label in enumerate(netlist.blocks)
        },
    )


def entering_fj(netlist: Netlist, timing: Timing, activity: Activity, inside: np.ndarray) -> dict[str, float]:
    """Switching energy of the nets that enter a part of the netlist from outside of it.

    `estimate` charges a net to its driver, so the figures of a part leave out what its input pins cost whoever
    drives them.

    Parameters
    ----------
    netlist, timing, activity
        As for `estimate`.
    inside : numpy.ndarray of bool
        Shape (n_cells,): the cells of the part.

    Returns
    -------
    dict
        fJ per cycle by kind, ``switching`` and ``wires``; clock excepted.
    """
    reaches = np.zeros(netlist.n_nets, dtype=bool)
    for group in netlist.groups:
        reaches[group.inputs[inside[group.cells]]] = True
    driver = netlist.driver
    from_inside = np.where(driver >= 0, inside[driver], False)
    entering = reaches & ~from_inside
    entering[:2] = False  # constants
    entering[netlist.clock_nets] = False
    pins_fj, wires_fj = _net_fj(netlist, timing, activity)
    return {"switching": float(pins_fj[entering].sum()), "wires": float(wires_fj[entering].sum())}


def _weights(
    tables: list[InternalPower],
    states: _States,
    plain: np.ndarray,
    rest: np.ndarray,
    mean: Callable[[np.ndarray], np.ndarray],
    gate: bool = False,
) -> list[np.ndarray]:
    """Probability that each table applies, shape (cells,), of what ``mean`` is a mean over.

    A table without condition applies in the states `plain`; beside tables of the same supply with conditions,
    in those of `rest` that no condition covers. Conditions of a clock `gate` hold in the states of `rest` alone: what
    its latch holds follows its enables only while the clock is low, and they may name its output.
    """
    conditions = [
        None if table.when is None else states.table(table.when) * (rest if gate else 1.0) for table in tables
    ]
    covered: dict[str, np.ndarray] = {}
    for table, condition in zip(tables, conditions, strict=True):
        if condition is not None:
            covered[table.supply] = covered.get(table.supply, 0.0) + condition
    weights = []
    for table, condition in zip(tables, conditions, strict=True):
        if condition is None:
            done = covered.get(table.supply)
            condition = plain if done is None else rest * np.clip(1.0 - done, 0.0, None)
        weights.append(mean(condition))
    return weights


def _input_energy(
    cell: Cell, pin: Pin, nets: np.ndarray, states: _States, timing: Timing, activity: Activity
) -> np.ndarray:
    """Energy of an input pin's own transitions, fJ per cycle."""
    total = np.zeros(len(nets))
    if not pin.internal_power:
        return total
    # Conditions on an input pin list what happens while no output changes; so must what they leave out.
    changes = sum((states.follows(output, pin.name) for output in cell.outputs), np.zeros(1))
    everywhere = np.ones(states.size)
    rest = everywhere if cell.is_flip_flop else everywhere * (changes == 0)
    clock = pin.name == cell.clock_pin
    mean = states.mean_of_pulses if clock else states.mean
    weights = _weights(pin.internal_power, states, everywhere, rest, mean, cell.clock_gate is not None)
    for table, weight in zip(pin.internal_power, weights, strict=True):
        rise, fall = (table.energy[edge](timing.slew[nets, edge]) for edge in (0, 1))
        total += weight * 0.5 * (rise + fall)
    return total * (2.0 if clock else activity.toggles[nets])


def _output_energy(
    group: CellGroup,
    pin: Pin,
    nets: np.ndarray,
    load: np.ndarray,
    states: _States,
    timing: Timing,
    activity: Activity,
) -> np.ndarray:
    """Energy of an output pin's transitions beyond the load's, fJ per cycle; `load` in fF, shape (cells, 2)."""
    cell = group.cell
    shares: dict[str, np.ndarray] = {}
    energies = []
    for cause in dict.fromkeys(table.related_pin for table in pin.internal_power):
        tables = [table for table in pin.internal_power if table.related_pin == cause]
        if cause is None or cause not in cell.inputs:
            everywhere = np.ones(states.size)
            weights = _weights(tables, states, everywhere, everywhere, states.mean)
            slews = np.zeros((len(nets), 2))
        else:
            sources = group.inputs[:, cell.inputs.index(cause)]
            follows = states.follows(pin.name, cause)
            if cause == cell.clock_pin:
                gate = cell.clock_gate is not None
                weights = _weights(tables, states, follows, follows, states.mean_of_pulses, gate)
                weights = [2.0 * weight for weight in weights]
            else:
                weights = _weights(tables, states, follows, follows, states.mean)
                weights = [weight * activity.toggles[sources] for weight in weights]
            slews = _cause_slews(pin, cause, timing.slew[sources])
        for table, weight in zip(tables, weights, strict=True):
            edges = (table.energy[edge](slews[:, edge], load[:, edge]) for edge in (0, 1))
            energies.append((table.supply, weight, 0.5 * sum(edges)))
            shares[table.supply] = shares.get(table.supply, 0.0) + weight
    total = np.zeros(len(nets))
    for supply, weight, energy in energies:
        share = shares[supply]
        total += np.where(share > 0, weight / np.where(share > 0, share, 1.0), 0.0) * energy
    return total * activity.toggles[nets]


def _cause_slews(pin: Pin, cause: str, slew: np.ndarray) -> np.ndarray:
    """Input slew behind each output edge, shape (cells, 2)."""
    senses = {arc.sense for arc in pin.arcs if arc.related_pin == cause}
    if senses == {"positive_unate"}:
        return slew
    if senses == {"negative_unate"}:
        return slew[:, ::-1]
    return np.repeat(slew.mean(axis=1, keepdims=True), 2, axis=1)


def _leakage(cell: Cell, states: _States) -> np.ndarray:
    """Leakage of each cell, nW: of its states, and the cell's own figure for what no state covers."""
    table = covered = np.zeros(states.size)
    for when, value in cell.leakage_states:
        condition = states.table(when)
        table = table + condition * value
        covered = covered + condition
    return states.mean(table + np.clip(1.0 - covered, 0.0, None) * cell.leakage)
