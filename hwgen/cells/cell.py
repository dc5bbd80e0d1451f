"""What a library says of one cell: pins, timing arcs, energies, state. Units as in `hwgen.cells.library`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hwgen.cells.boolean import Expression
from hwgen.cells.tables import Table, TableBank

__all__ = ["Cell", "ClockGate", "InternalPower", "Pin", "Sequential", "TimingArc"]


@dataclass(frozen=True, slots=True)
class TimingArc:
    """One ``timing`` group for one related pin.

    Attributes
    ----------
    related_pin : str
    kind : str
        The ``timing_type``: ``combinational``, ``rising_edge``, ``setup_rising``, ...
    sense : str
        ``positive_unate``, ``negative_unate`` or ``non_unate``.
    when : Expression or None
    delay, transition, constraint : tuple of (Table or None)
        For the rising and the falling edge of this pin.
    """

    related_pin: str
    kind: str
    sense: str
    when: Expression | None
    delay: tuple[Table | None, Table | None]
    transition: tuple[Table | None, Table | None]
    constraint: tuple[Table | None, Table | None]


@dataclass(frozen=True, slots=True)
class InternalPower:
    """One ``internal_power`` group: the energy of a rising and of a falling transition of its pin, in fJ.

    Attributes
    ----------
    related_pin : str or None
        The input that causes the transition, on output pins.
    when : Expression or None
    supply : str
        The supply pin, "" if the library does not say; tables of different supplies add up.
    energy : tuple of Table
        Rise, fall.
    """

    related_pin: str | None
    when: Expression | None
    supply: str
    energy: tuple[Table, Table]


@dataclass(slots=True)
class Pin:
    """A signal pin.

    Attributes
    ----------
    name : str
    direction : str
        ``input``, ``output``, ``inout`` or ``internal``.
    capacitance : float
        fF, mean of both edges; 0 for outputs.
    edge_capacitance : tuple of float
        fF, for the rising and the falling edge.
    function : Expression or None
    is_clock : bool
    is_three_state : bool
    arcs : list of TimingArc
        Arcs and constraints that end at this pin.
    internal_power : list of InternalPower
    max_capacitance : float
        fF that an output may drive; infinite where the library does not say.
    max_transition : float
        ns that an edge may take at the pin; likewise.
    """

    name: str
    direction: str
    capacitance: float
    edge_capacitance: tuple[float, float]
    function: Expression | None
    is_clock: bool
    is_three_state: bool = False
    arcs: list[TimingArc] = field(default_factory=list)
    internal_power: list[InternalPower] = field(default_factory=list)
    max_capacitance: float = math.inf
    max_transition: float = math.inf
    _banks: list[TableBank] | None = field(default=None, init=False, repr=False, compare=False)

    def mean_energy(self, slew: np.ndarray, load: np.ndarray) -> np.ndarray:
        """Internal energy of a transition of the pin: the mean over edges, conditions and causes.

        Parameters
        ----------
        slew, load : numpy.ndarray
            Shape (n,): ns and fF.

        Returns
        -------
        numpy.ndarray
            Shape (n,), fJ; those of several supplies are added up.
        """
        if self._banks is None:
            supplies: dict[str, list[Table]] = {}
            for each in self.internal_power:
                supplies.setdefault(each.supply, []).extend(each.energy)
            self._banks = [TableBank(tables) for tables in supplies.values()]
        total = np.zeros(len(slew))
        for bank in self._banks:
            total += bank.each(slew, load).mean(axis=0)
        return total


@dataclass(frozen=True, slots=True)
class Sequential:
    """The state of a flip-flop or latch.

    Attributes
    ----------
    kind : str
        ``ff``, or what the cost model does not simulate: ``latch``, ``ff_bank``, ``latch_bank`` or
        ``statetable``.
    state, inverse : str
        Names that ``function`` uses for the state and its inverse.
    clocked_on, next_state : Expression
        Constant 0 unless `kind` is ``ff``.
    clear, preset : Expression or None
        Asynchronous, active when true.
    both : tuple of int
        State and inverse while clear and preset are both active.
    """

    kind: str
    state: str
    inverse: str
    clocked_on: Expression
    next_state: Expression
    clear: Expression | None = None
    preset: Expression | None = None
    both: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class ClockGate:
    """The pins of an integrated clock gate for flip-flops on the rising edge.

    A latch inside takes ``enable or test`` while the clock is low and holds it while the clock is high.
    The output is the clock where the latch is 1, else 0.

    Attributes
    ----------
    clock, enable, output : str
    test : str or None
        Lets the clock through whatever the enable says; to be tied to 0.
    """

    clock: str
    enable: str
    output: str
    test: str | None

    @property
    def enables(self) -> list[str]:
        """The pins any of which lets the clock through."""
        return [self.enable] if self.test is None else [self.enable, self.test]

    @property
    def opened(self) -> Expression:
        """Whether the gate lets the clock through."""
        program = (0,) if self.test is None else (0, 1, "|")
        return Expression(" | ".join(self.enables), tuple(self.enables), program)

    @property
    def pulse(self) -> Expression:
        """The output, as a function of the enables that the latch holds and of the clock."""
        opened = self.opened
        place = len(opened.names)
        return Expression(f"({opened.text}) & {self.clock}", (*opened.names, self.clock), (*opened.program, place, "&"))


@dataclass
class Cell:
    """A library cell.

    Attributes
    ----------
    name : str
    area : float
        um2.
    leakage : float
        nW: ``cell_leakage_power``, else the unconditional ``leakage_power``, else the mean of the states.
    leakage_states : list of (Expression, float)
        Condition and nW, supplies added up; empty where the library has one number.
    pins : dict of str to Pin
    sequential : Sequential or None
    dont_use : bool
        Marked so, or a cell for power domains (isolation, level shifting, always-on).
    line : int
    clock_gate : ClockGate or None
        None also for clock gates without a latch, and for those of flip-flops on the falling edge.
    """

    name: str
    area: float
    leakage: float
    leakage_states: list[tuple[Expression, float]]
    pins: dict[str, Pin]
    sequential: Sequential | None
    dont_use: bool
    line: int = 0
    clock_gate: ClockGate | None = None

    @cached_property
    def inputs(self) -> list[str]:
        """Names of the input pins."""
        return [pin.name for pin in self.pins.values() if pin.direction == "input"]

    @cached_property
    def outputs(self) -> list[str]:
        """Names of the output pins."""
        return [pin.name for pin in self.pins.values() if pin.direction == "output"]

    @property
    def is_flip_flop(self) -> bool:
        """Whether the cell is an edge-triggered flip-flop."""
        return self.sequential is not None and self.sequential.kind == "ff"

    @property
    def clock_pin(self) -> str | None:
        """The clock pin of a clock gate, or of a flip-flop whose clock is a single pin."""
        if self.clock_gate is not None:
            return self.clock_gate.clock
        if not self.is_flip_flop:
            return None
        assert self.sequential is not None
        names = self.sequential.clocked_on.names
        return names[0] if len(names) == 1 else None

    @property
    def is_rising_edge(self) -> bool:
        """Whether the flip-flop's clock pin acts on its rising edge."""
        if self.clock_pin is None or not self.is_flip_flop:
            return False
        assert self.sequential is not None
        return bool(self.sequential.clocked_on.truth([self.clock_pin])[1])

    @property
    def is_buffer(self) -> bool:
        """Whether its one output is what its one input is, within the cycle."""
        if (len(self.inputs), len(self.outputs)) != (1, 1):
            return False
        truth = self.truth(self.outputs[0])
        return truth is not None and truth.tolist() == [0, 1]

    def truth(self, output: str) -> np.ndarray | None:
        """Truth table, shape (2**inputs,), of a combinational output; None if it has no plain function."""
        function = self.pins[output].function
        if self.sequential is not None or function is None or not set(function.names) <= set(self.inputs):
            return None
        return function.truth(self.inputs)
