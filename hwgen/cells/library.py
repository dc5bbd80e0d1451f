"""A cell library: what Liberty files say about area, function, delay and energy, in one set of units.

Times are ns, capacitances fF, energies fJ, leakage nW, areas um2 and voltages V, whatever the files use. The
unit of an ``internal_power`` table is ``capacitive_load_unit * voltage_unit**2`` (as in OpenSTA).

CCS data, buses and memories are left out. Sources: Liberty User Guide, volumes 1 and 2.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from hwgen.cells.boolean import Expression, parse_expression
from hwgen.cells.liberty import Attribute, Group, parse, read_text
from hwgen.errors import InputError

__all__ = [
    "Cell",
    "InternalPower",
    "Library",
    "Pin",
    "Sequential",
    "Table",
    "TableBank",
    "TimingArc",
    "load",
]

_SKIPPED = frozenset(
    (
        "ccsn_first_stage",
        "ccsn_last_stage",
        "dynamic_current",
        "intrinsic_parasitic",
        "normalized_driver_waveform",
        "output_current_fall",
        "output_current_rise",
        "output_current_template",
        "receiver_capacitance",
        "receiver_capacitance1_fall",
        "receiver_capacitance1_rise",
        "receiver_capacitance2_fall",
        "receiver_capacitance2_rise",
        "test_cell",
    )
)
_USED_TIMING = frozenset(
    (
        "combinational",
        "combinational_fall",
        "combinational_rise",
        "falling_edge",
        "rising_edge",
        "setup_falling",
        "setup_rising",
    )
)
# Logic may not be mapped to these: a power domain's cells need rails or enables that a netlist does not have.
_SPECIAL = ("dont_use", "always_on", "is_isolation_cell", "is_level_shifter")
_SCALES = {"f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3}
_UNIT = re.compile(r"\s*([0-9.]+(?:[eE][+-]?\d+)?)?\s*([fpnumk]?)([a-zA-Z]+)\s*$")
_PLAIN_NAME = re.compile(r"[\w.$\[\]+-]+", re.ASCII)
_SLEW = frozenset(("input_net_transition", "input_transition_time"))
_LOAD = frozenset(("total_output_net_capacitance",))
_RELATED = frozenset(("related_pin_transition",))
_CONSTRAINED = frozenset(("constrained_pin_transition",))
_MOST_INPUTS = 16
_TO_BLANK = str.maketrans('",\\', "   ")


@dataclass(frozen=True, slots=True)
class Table:
    """A lookup table over one or two axes, linear between its points and beyond its ends.

    Delay, transition and power tables take (input slew in ns, load in fF), constraints (slew of the related
    pin, slew of the constrained pin), both in ns; an axis the library leaves out has one point.

    Attributes
    ----------
    x, y : numpy.ndarray
        Shapes (n,) and (m,), increasing.
    values : numpy.ndarray
        Shape (n, m); ns or fJ.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray

    def __call__(self, x: Any, y: Any = 0.0) -> np.ndarray:
        """Interpolate at `x` and `y` (arrays or numbers, broadcast against each other)."""
        x, y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
        bank = TableBank([self])
        return bank(np.zeros(x.size, dtype=np.intp), x.ravel(), y.ravel()).reshape(x.shape)


class TableBank:
    """Many tables in one array, so that one call looks up a different table for every element.

    Parameters
    ----------
    tables : sequence of Table
    """

    def __init__(self, tables: Sequence[Table]):
        n = max([2, *(len(table.x) for table in tables)])
        m = max([2, *(len(table.y) for table in tables)])
        count = len(tables)
        self._x = np.empty((count, n))
        self._y = np.empty((count, m))
        self._values = np.empty((count, n, m))
        for i, table in enumerate(tables):
            # Padding continues the last segment as a straight line, which is what extrapolation does.
            x, values = _pad(table.x, table.values, n)
            y, transposed = _pad(table.y, values.T, m)
            self._x[i], self._y[i], self._values[i] = x, y, transposed.T
        self._flat = self._values.reshape(-1)
        self._shape = (n, m)

    def __call__(self, index: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Interpolate table ``index[i]`` at ``x[i]``, ``y[i]``; all of shape (n,)."""
        n, m = self._shape
        i, s = _segment(self._x, index, x)
        j, t = _segment(self._y, index, y)
        corner = (index * n + i) * m + j
        flat = self._flat
        low = flat[corner] * (1 - t) + flat[corner + 1] * t
        high = flat[corner + m] * (1 - t) + flat[corner + m + 1] * t
        return low * (1 - s) + high * s


def _pad(axis: np.ndarray, values: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    if len(axis) == 1:
        return np.arange(size, dtype=float), np.repeat(values, size, axis=0)
    missing = size - len(axis)
    if missing == 0:
        return axis, values
    steps = np.arange(1, missing + 1)
    more_axis = axis[-1] + steps * (axis[-1] - axis[-2])
    more_values = values[-1] + steps[:, None] * (values[-1] - values[-2])
    return np.concatenate([axis, more_axis]), np.concatenate([values, more_values])


def _segment(axes: np.ndarray, index: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Segment of each lookup and the position in it (below 0 or above 1 outside the axis)."""
    segment = np.zeros(len(index), dtype=np.intp)
    for column in range(1, axes.shape[1] - 1):
        segment += at >= axes[index, column]
    low = axes[index, segment]
    return segment, (at - low) / (axes[index, segment + 1] - low)


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


@dataclass(slots=True)
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
    """

    name: str
    area: float
    leakage: float
    leakage_states: list[tuple[Expression, float]]
    pins: dict[str, Pin]
    sequential: Sequential | None
    dont_use: bool
    line: int = 0

    @property
    def inputs(self) -> list[str]:
        """Names of the input pins."""
        return [pin.name for pin in self.pins.values() if pin.direction == "input"]

    @property
    def outputs(self) -> list[str]:
        """Names of the output pins."""
        return [pin.name for pin in self.pins.values() if pin.direction == "output"]

    @property
    def is_flip_flop(self) -> bool:
        """Whether the cell is an edge-triggered flip-flop."""
        return self.sequential is not None and self.sequential.kind == "ff"

    @property
    def clock_pin(self) -> str | None:
        """The clock pin of a flip-flop, if the clock is a single pin."""
        if not self.is_flip_flop:
            return None
        assert self.sequential is not None
        names = self.sequential.clocked_on.names
        return names[0] if len(names) == 1 else None

    @property
    def is_rising_edge(self) -> bool:
        """Whether the flip-flop's clock pin acts on its rising edge."""
        if self.clock_pin is None:
            return False
        assert self.sequential is not None
        return bool(self.sequential.clocked_on.truth([self.clock_pin])[1])

    def truth(self, output: str) -> np.ndarray | None:
        """Truth table, shape (2**inputs,), of a combinational output; None if it has no plain function."""
        function = self.pins[output].function
        if self.sequential is not None or function is None or not set(function.names) <= set(self.inputs):
            return None
        return function.truth(self.inputs)


@dataclass(slots=True)
class Library:
    """One library, of one or several files.

    Attributes
    ----------
    name : str
        Of the first file's ``library`` group.
    paths : tuple of str
    digest : str
        sha256 over the uncompressed contents (for several files: over their sorted digests).
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
    digest: str
    voltage: float
    cells: dict[str, Cell]
    units: dict[str, float]
    wire_load: float | None = None
    avoided: tuple[str, ...] = ()

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
            Naming what is missing: an inverter, a 2-input NAND or NOR, a D flip-flop.
        """
        missing = []
        if not self.inverters():
            missing.append("an inverter")
        if not self.gates2():
            missing.append("a 2-input NAND or NOR gate")
        if sequential and not self.flip_flops():
            missing.append("a rising-edge D flip-flop")
        if missing:
            raise InputError(
                f"{', '.join(self.paths)}: no {' and no '.join(name.split(' ', 1)[1] for name in missing)}; "
                f"synthesis needs {', '.join(missing)} (in several files? give them together)"
            )


@dataclass(slots=True)
class _File:
    """Reading context of one file."""

    path: str
    root: Group
    units: dict[str, float] = field(default_factory=dict)
    voltage: float = 0.0
    templates: dict[str, Group] = field(default_factory=dict)
    axes: dict[tuple[str, float], np.ndarray] = field(default_factory=dict)
    empty: dict[str, float] = field(default_factory=dict)

    def error(self, line: int, message: str) -> InputError:
        return InputError(f"{self.path}:{line}: {message}")

    def number(self, group: Group, name: str, default: float) -> float:
        found = group.attributes.get(name)
        if found is None or not found.text:
            return default
        try:
            value = float(found.text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(found.line, f"{name} is {found.text!r}; expected a number")
        return value

    def expression(self, group: Group, name: str) -> Expression | None:
        found = group.attributes.get(name)
        if found is None or not found.text.strip():
            return None
        try:
            return parse_expression(found.text)
        except ValueError as error:
            raise self.error(found.line, f"{name}: {error}; expected a Liberty boolean expression") from None


def load(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Library:
    """Read one library from one or several Liberty files, plain or gzip.

    Parameters
    ----------
    paths : path or iterable of paths
        Files that belong together: same units, same voltage, no cell twice.

    Returns
    -------
    Library

    Raises
    ------
    InputError
        With file and line, for anything wrong with the files or between them.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    names = [os.fspath(path) for path in paths]
    if not names:
        raise InputError("no Liberty file given; expected at least one (.lib or .lib.gz)")
    files: list[_File] = []
    digests = []
    cells: dict[str, Cell] = {}
    origin: dict[str, str] = {}
    for path in names:
        text, data = read_text(path)
        digests.append(hashlib.sha256(data).hexdigest())
        file = _File(path, parse(text, path, skip=_SKIPPED))
        _read_header(file)
        if files:
            _check_together(files[0], file)
        files.append(file)
        groups = list(file.root.children("cell"))
        if not groups:
            raise InputError(f"{path}: the library has no cells; expected 'cell (name) {{ ... }}' groups")
        for group in groups:
            cell = _read_cell(file, group)
            if cell.name in cells:
                raise file.error(
                    group.line,
                    f"cell {cell.name} is defined twice (first in {origin[cell.name]}); expected it once",
                )
            cells[cell.name] = cell
            origin[cell.name] = f"{path}:{group.line}"
    digest = digests[0]
    if len(digests) > 1:
        digest = hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()
    name = " ".join(files[0].root.names) or Path(names[0]).name
    return Library(name, tuple(names), digest, files[0].voltage, cells, files[0].units, _read_wire_load(files[0]))


def _read_header(file: _File) -> None:
    root = file.root
    file.units = {
        "time": _unit(file, "time_unit", "s", "1ns") * 1e9,
        "voltage": _unit(file, "voltage_unit", "V", "1V"),
        "leakage": _unit(file, "leakage_power_unit", "W", "1nW") * 1e9,
        "capacitance": 1e3,
    }
    found = root.attributes.get("capacitive_load_unit")
    if found is not None:
        parts = "".join(found.text.replace('"', "").replace(",", " ").split())
        file.units["capacitance"] = _scale(file, found, parts, "F") * 1e15
    file.voltage = file.number(root, "nom_voltage", 0.0) * file.units["voltage"]
    default = root.get("default_operating_conditions")
    for group in root.children("operating_conditions"):
        if (group.names == [default] or not default) and "voltage" in group.attributes:
            file.voltage = file.number(group, "voltage", 0.0) * file.units["voltage"]
            break
    if not 0 < file.voltage < 100:
        raise file.error(root.line, "no supply voltage; expected 'nom_voltage : 1.8;', say")
    for group in root.children("lu_table_template", "power_lut_template"):
        for name in group.names:
            file.templates[name] = group
    for name in ("default_input_pin_cap", "default_cell_leakage_power"):
        file.empty[name] = file.number(root, name, 0.0)


def _read_wire_load(file: _File) -> float | None:
    for group in file.root.children("wire_load"):
        if group.names == ["per_fanout"]:
            length, capacitance = (file.number(group, name, 0.0) for name in ("slope", "capacitance"))
            return length * capacitance * file.units["capacitance"]
    return None


def _unit(file: _File, name: str, base: str, default: str) -> float:
    found = file.root.attributes.get(name)
    if found is None:
        found = Attribute(default, file.root.line)
    return _scale(file, found, found.text, base)


def _scale(file: _File, found: Attribute, text: str, base: str) -> float:
    match = _UNIT.match(text)
    if match is None or match[3].upper() != base.upper():
        raise file.error(found.line, f"unit {text!r}; expected a multiple of {base}, as '1n{base}'")
    try:
        scale = float(match[1] or 1) * _SCALES[match[2]]
    except ValueError:
        scale = 0.0
    if scale <= 0:
        raise file.error(found.line, f"unit {text!r}; expected a positive multiple of {base}")
    return scale


def _check_together(first: _File, other: _File) -> None:
    for name, value in first.units.items():
        if abs(other.units[name] / value - 1) > 1e-9:
            raise InputError(
                f"{other.path}: its {name} unit differs from that of {first.path}; "
                "expected files of one library, with the same units"
            )
    if abs(other.voltage - first.voltage) > 1e-6:
        raise InputError(
            f"{other.path}: its voltage, {other.voltage:g} V, differs from the {first.voltage:g} V of "
            f"{first.path}; expected files of one corner"
        )


def _read_cell(file: _File, group: Group) -> Cell:
    names = group.names
    if len(names) != 1:
        raise file.error(group.line, f"cell ({group.args.strip()}); expected one name")
    if not _PLAIN_NAME.fullmatch(names[0]):
        # It becomes part of the scripts of Yosys and ABC.
        raise file.error(group.line, f"cell {names[0]!r}; expected a name of letters, digits and . _ $ [ ] + -")
    sequential = _read_sequential(file, group)
    pins: dict[str, Pin] = {}
    for child in group.children("pin"):
        for name in child.names:
            pins[name] = _read_pin(file, child, name)
    default, states = _read_leakage(file, group)
    return Cell(
        name=names[0],
        area=file.number(group, "area", 0.0),
        leakage=default,
        leakage_states=states,
        pins=pins,
        sequential=sequential,
        dont_use=any(group.get(name).lower() == "true" for name in _SPECIAL),
        line=group.line,
    )


def _read_sequential(file: _File, group: Group) -> Sequential | None:
    constant = parse_expression("0")
    for child in group.children("ff", "latch", "ff_bank", "latch_bank", "statetable"):
        names = [*child.names, "", ""]
        if child.kind != "ff":
            return Sequential(child.kind, names[0], names[1], constant, constant)
        clocked_on = file.expression(child, "clocked_on")
        next_state = file.expression(child, "next_state")
        if clocked_on is None or next_state is None:
            raise file.error(child.line, "ff without clocked_on and next_state; expected both")
        both = tuple(int(child.get(f"clear_preset_var{i}", "L").upper() == "H") for i in (1, 2))
        return Sequential(
            "ff",
            names[0],
            names[1],
            clocked_on,
            next_state,
            file.expression(child, "clear"),
            file.expression(child, "preset"),
            (both[0], both[1]),
        )
    return None


def _read_leakage(file: _File, group: Group) -> tuple[float, list[tuple[Expression, float]]]:
    unit = file.units["leakage"]
    states: dict[str, tuple[Expression, float]] = {}
    plain: float | None = None
    for child in group.children("leakage_power"):
        value = file.number(child, "value", 0.0) * unit
        when = file.expression(child, "when")
        if when is None:
            plain = (plain or 0.0) + value
        else:
            states[when.text] = (when, states.get(when.text, (when, 0.0))[1] + value)
    if "cell_leakage_power" in group.attributes:
        default = file.number(group, "cell_leakage_power", 0.0) * unit
    elif plain is not None:
        default = plain
    elif states:
        default = sum(value for _, value in states.values()) / len(states)
    else:
        default = file.empty["default_cell_leakage_power"] * unit
    return default, list(states.values())


def _read_pin(file: _File, group: Group, name: str) -> Pin:
    direction = group.get("direction", "input").lower()
    unit = file.units["capacitance"]
    default = file.empty["default_input_pin_cap"] if direction == "input" else 0.0
    plain = file.number(group, "capacitance", -1.0)
    edges = [file.number(group, f"{edge}_capacitance", plain) for edge in ("rise", "fall")]
    if plain < 0:
        known = [edge for edge in edges if edge >= 0]
        plain = sum(known) / len(known) if known else default
    rise, fall = (plain if edge < 0 else edge for edge in edges)
    pin = Pin(
        name,
        direction,
        plain * unit,
        (rise * unit, fall * unit),
        file.expression(group, "function"),
        group.get("clock").lower() == "true",
        "three_state" in group.attributes,
    )
    for child in group.groups:
        if child.kind == "timing":
            pin.arcs.extend(_read_timing(file, child, pin.function))
        elif child.kind == "internal_power":
            pin.internal_power.extend(_read_power(file, child))
    return pin


def _read_timing(file: _File, group: Group, function: Expression | None) -> list[TimingArc]:
    tables = {child.kind: child for child in group.groups}
    unit = file.units["time"]
    kind = group.get("timing_type", "combinational")
    if kind not in _USED_TIMING:
        return []

    def both(rise: str, fall: str, constraint: bool = False) -> tuple[Table | None, Table | None]:
        made = [_read_table(file, tables[edge], unit, constraint) if edge in tables else None for edge in (rise, fall)]
        return made[0], made[1]

    delay = both("cell_rise", "cell_fall")
    transition = both("rise_transition", "fall_transition")
    constraint = both("rise_constraint", "fall_constraint", True)
    when = file.expression(group, "when")
    arcs = []
    for related in group.get("related_pin").split():
        sense = group.get("timing_sense") or _sense(function, related)
        arcs.append(TimingArc(related, kind, sense, when, delay, transition, constraint))
    return arcs


def _sense(function: Expression | None, related: str) -> str:
    """Unateness of a function in one input, for libraries that leave ``timing_sense`` out."""
    # A truth table doubles with every input; non-unate arcs time both edges, so that nothing is missed.
    if function is None or related not in function.names or len(function.names) > _MOST_INPUTS:
        return "non_unate"
    names = [related, *(name for name in function.names if name != related)]
    low, high = function.truth(names).reshape(-1, 2).T
    if not np.any(low & ~high):
        return "positive_unate"
    return "non_unate" if np.any(high & ~low) else "negative_unate"


def _read_power(file: _File, group: Group) -> list[InternalPower]:
    unit = file.units["capacitance"] * file.units["voltage"] ** 2
    tables = {child.kind: child for child in group.groups}
    zero = Table(np.zeros(1), np.zeros(1), np.zeros((1, 1)))
    energy = []
    for kind in ("rise_power", "fall_power"):
        child = tables.get(kind, tables.get("power"))
        energy.append(zero if child is None else _read_table(file, child, unit))
    when = file.expression(group, "when")
    supply = group.get("related_pg_pin")
    related: list[str | None] = [*group.get("related_pin").split()] or [None]
    return [InternalPower(name, when, supply, (energy[0], energy[1])) for name in related]


def _numbers(file: _File, found: Attribute) -> np.ndarray:
    words = found.text.translate(_TO_BLANK).split()
    try:
        return np.array([float(word) for word in words])
    except ValueError as error:
        raise file.error(found.line, f"table: {error}; expected numbers") from None


def _axis(file: _File, found: Attribute, scale: float) -> np.ndarray:
    key = (found.text, scale)
    axis = file.axes.get(key)
    if axis is None:
        axis = _numbers(file, found) * scale
        if len(axis) == 0 or np.any(np.diff(axis) <= 0) or not np.all(np.isfinite(axis)):
            raise file.error(found.line, f"index {found.text.strip()[:40]}; expected increasing numbers")
        file.axes[key] = axis
    return axis


def _read_table(file: _File, group: Group, unit: float, constraint: bool = False) -> Table:
    """Read a table, its axes in the order (slew, load) or (related, constrained)."""
    found = group.attributes.get("values")
    if found is None:
        raise file.error(group.line, f"{group.kind} without values; expected 'values (...);'")
    values = _numbers(file, found) * unit
    template_name = " ".join(group.names)
    template = file.templates.get(template_name)
    if template is None and template_name != "scalar":
        raise file.error(group.line, f"no template {template_name!r}; expected one in this file")
    wanted = (_RELATED, _CONSTRAINED) if constraint else (_SLEW, _LOAD)
    axes = [np.zeros(1), np.zeros(1)]
    order: list[int] = []
    for i in ("1", "2", "3"):
        variable = template.get(f"variable_{i}") if template else ""
        if not variable:
            break
        position = next((p for p, names in enumerate(wanted) if variable in names), None)
        if position is None or position in order:
            raise file.error(group.line, f"{group.kind} over {variable!r}; expected slew and load (or two slews) only")
        assert template is not None
        index = group.attributes.get(f"index_{i}", template.attributes.get(f"index_{i}"))
        if index is None:
            raise file.error(group.line, f"no index_{i}; expected it here or in the template")
        scale = file.units["capacitance" if not constraint and position == 1 else "time"]
        axes[position] = _axis(file, index, scale)
        order.append(position)
    if len(values) != len(axes[0]) * len(axes[1]):
        raise file.error(
            found.line,
            f"{group.kind} has {len(values)} values; its indices say {len(axes[0])} x {len(axes[1])}",
        )
    if not np.all(np.isfinite(values)):
        raise file.error(found.line, f"{group.kind} holds a value that is not finite; expected numbers")
    if order == [1, 0]:
        return Table(axes[0], axes[1], values.reshape(len(axes[1]), len(axes[0])).T.copy())
    return Table(axes[0], axes[1], values.reshape(len(axes[0]), len(axes[1])))
