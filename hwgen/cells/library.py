"""A cell library: what Liberty files say about area, function, delay and energy, in one set of units.

Times are ns, capacitances fF, energies fJ, leakage nW, areas um2 and voltages V.
`hwgen.cells.reader` reads one, `hwgen.cells.cell` holds its cells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from statistics import median
from typing import Any, TypeVar

from hwgen.cells.cell import Cell
from hwgen.cells.families import behaviour, families
from hwgen.cells.limits import load_limits, slowest_edge
from hwgen.errors import InputError

__all__ = ["Library"]

_T = TypeVar("_T")


@dataclass(slots=True)
class Library:
    """One library, of one or several files.

    Attributes
    ----------
    name : str
        Of the first file's ``library`` group.
    paths : tuple of str
    digests : tuple of str
        sha256 over the uncompressed contents of each file, in the order in which they were given: synthesis reads them
        in that order.
    voltage : float
        V.
    cells : dict of str to Cell
    units : dict of str to float
        What one unit of the files is worth: ``time`` in ns, ``capacitance`` in fF, ``voltage`` in V,
        ``leakage`` in nW.
    wire_load : float or None
        fF per fanout, from a ``wire_load ("per_fanout")`` group without resistance (our own libraries).
    avoided : tuple of str
        Patterns of `without`, by which cells became ``dont_use``.
    """

    name: str
    paths: tuple[str, ...]
    digests: tuple[str, ...]
    voltage: float
    cells: dict[str, Cell]
    units: dict[str, float]
    wire_load: float | None = None
    avoided: tuple[str, ...] = ()
    _families: list[tuple[Cell, ...]] | None = field(default=None, init=False, repr=False, compare=False)
    _family: dict[str, tuple[Cell, ...]] | None = field(default=None, init=False, repr=False, compare=False)
    _limits: dict[str, dict[str, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """The sha256 of the file; of several, in whatever order, that over their sorted ones."""
        if len(self.digests) == 1:
            return self.digests[0]
        return hashlib.sha256("".join(sorted(self.digests)).encode()).hexdigest()

    @property
    def unused(self) -> list[str]:
        """Cells that synthesis is to leave alone."""
        return [cell.name for cell in self.cells.values() if cell.dont_use]

    def without(self, patterns: Sequence[str]) -> Library:
        """The library with some more of its cells marked ``dont_use``.

        Parameters
        ----------
        patterns : sequence of str
            Names of cells, with the wildcards of a shell (``*``, ``?``, ``[...]``).

        Raises
        ------
        InputError
            A pattern that no cell matches.
        """
        avoided = set()
        for pattern in patterns:
            found = [name for name in self.cells if fnmatchcase(name, pattern)]
            if not found:
                some = ", ".join(list(self.cells)[:3])
                raise InputError(f"dont_use {pattern!r}: matches no cell of {self.name}; its cells are {some}, ...")
            avoided.update(found)
        cells = {name: replace(cell, dont_use=cell.dont_use or name in avoided) for name, cell in self.cells.items()}
        return replace(self, cells=cells, avoided=(*self.avoided, *patterns))

    def families(self) -> list[tuple[Cell, ...]]:
        """The cells that may be used, grouped by what may take each other's place: equal pins and behaviour.

        Returns
        -------
        list of tuple of Cell
            Each family smallest first; one cell where there is one size only.
        """
        if self._families is None:
            self._families = families(cell for cell in self.cells.values() if not cell.dont_use)
        return list(self._families)

    def drives(self, cell: Cell) -> tuple[Cell, ...]:
        """The cells that may take a cell's place in a netlist, smallest first.

        Parameters
        ----------
        cell : Cell
            Of this library.

        Returns
        -------
        tuple of Cell
            The cell itself among them, also where it is marked ``dont_use``: then it is the only one.
        """
        if self._family is None:
            self._family = {member.name: family for family in self.families() for member in family}
        return self._family.get(cell.name, (cell,))

    def known(self, find: Callable[..., _T], *about: Hashable) -> _T:
        """What a function finds out about the library, found once.

        Parameters
        ----------
        find : callable
            Of a module; takes the library and ``about``. What it returns is shared: it is to be left as it is.
        """
        key = find, about
        if key not in self._known:
            self._known[key] = find(self, *about)
        found: _T = self._known[key]
        return found

    def load_limits(self, cell: Cell) -> dict[str, float]:
        """The largest load of each output of a cell in fF, see `hwgen.cells.limits`."""
        found = self._limits.get(cell.name)
        if found is None:
            slowest = slowest_edge(other for other in self.cells.values() if not other.dont_use)
            self._limits = {other.name: load_limits(other, slowest) for other in self.cells.values()}
            found = self._limits[cell.name]
        return found

    def clock_gates(self) -> list[Cell]:
        """Integrated clock gates, smallest first, those without a test pin before those with one.

        Those that the files mark ``dont_use`` are among them: libraries do so to keep them from the mapping of
        logic. Those that `without` names are not.
        """
        found = [
            (cell.clock_gate.test is not None, cell.area, cell.name)
            for cell in self.cells.values()
            if cell.clock_gate is not None and not any(fnmatchcase(cell.name, pattern) for pattern in self.avoided)
        ]
        return [self.cells[name] for _, _, name in sorted(found)]

    @property
    def pin_capacitance(self) -> float:
        """The median of its pins', fF; 0 if none has any."""
        found = [pin.capacitance for cell in self.cells.values() for pin in cell.pins.values() if pin.capacitance > 0]
        return median(found) if found else 0.0

    def inverters(self) -> list[Cell]:
        """Inverters that may be used, smallest first."""
        return self._with_truth(1, [(True, False)])

    def gates2(self) -> list[Cell]:
        """2-input NAND and NOR gates that may be used, smallest first."""
        return self._with_truth(2, [(True, True, True, False), (True, False, False, False)])

    def flip_flops(self) -> list[Cell]:
        """Plain flip-flops that may be used, smallest first: rising edge, next state one data pin, an output.

        An asynchronous clear or preset is allowed, for it can be tied off.
        """
        found = []
        for cell in self.cells.values():
            if cell.is_flip_flop and cell.is_rising_edge and not cell.dont_use:
                assert cell.sequential is not None
                data = cell.sequential.next_state.names
                if len(data) == 1 and {cell.clock_pin, *data} <= {*cell.inputs} and cell.outputs:
                    found.append(cell)
        return sorted(found, key=lambda cell: (cell.area, cell.name))

    def _with_truth(self, inputs: int, tables: list[tuple[bool, ...]]) -> list[Cell]:
        found = []
        for cell in self.cells.values():
            if cell.dont_use or len(cell.inputs) != inputs or len(cell.outputs) != 1:
                continue
            truth = cell.truth(cell.outputs[0])
            if truth is not None and tuple(truth.tolist()) in tables:
                found.append(cell)
        return sorted(found, key=lambda cell: (cell.area, cell.name))

    def check_for_synthesis(self, sequential: bool = True) -> None:
        """Check that synthesis finds what it cannot do without.

        Parameters
        ----------
        sequential : bool
            Whether a flip-flop is needed.

        Raises
        ------
        InputError
            Naming what is missing: an inverter, a 2-input NAND or NOR, a D flip-flop; or a gate without an area, or
            with an output that has no delay: what is behind it would meet any clock.
        """
        missing = []
        if not self.inverters():
            missing.append("an inverter")
        if not self.gates2():
            missing.append("a 2-input NAND or NOR gate")
        if sequential and not self.flip_flops():
            missing.append("a rising-edge D flip-flop")
        if missing:
            lacks = f"no {' and no '.join(name.split(' ', 1)[1] for name in missing)}"
            if self.avoided:
                lacks += f" without the cells {', '.join(self.avoided)}"
            raise InputError(
                f"{', '.join(self.paths)}: {lacks}; synthesis needs {', '.join(missing)}"
                " (in several files? give them together)"
            )
        for cell in self.cells.values():
            if cell.dont_use:
                continue
            if cell.area <= 0 and any(pin.function for pin in cell.pins.values()):
                raise InputError(
                    f"{', '.join(self.paths)}: cell {cell.name} has no area; expected one above 0, or --dont-use"
                    f" {cell.name}"
                )
            for output in cell.outputs:
                pin = cell.pins[output]
                timed = any(any(arc.delay) for arc in pin.arcs)
                if not timed and pin.function and pin.function.names and behaviour(cell) is not None:
                    raise InputError(
                        f"{', '.join(self.paths)}: output {output} of the cell {cell.name} has no delay; expected"
                        f" tables cell_rise and cell_fall from another pin, or --dont-use {cell.name}"
                    )
