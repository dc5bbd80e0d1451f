"""Liberty files read into a `hwgen.cells.library.Library`, in its units whatever the files use.

The unit of an ``internal_power`` table is ``capacitive_load_unit * voltage_unit**2`` (as in OpenSTA).
CCS data, buses and memories are left out. Sources: Liberty User Guide, volumes 1 and 2.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hwgen.cells.boolean import Expression, parse_expression
from hwgen.cells.cell import Cell, ClockGate, InternalPower, Pin, Sequential, TimingArc
from hwgen.cells.liberty import Attribute, Group, parse, read_text
from hwgen.cells.library import Library
from hwgen.cells.tables import Table
from hwgen.errors import InputError

__all__ = ["load"]

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
_OTHER_LOAD = frozenset(("equal_or_opposite_output_net_capacitance",))
_RELATED = frozenset(("related_pin_transition",))
_CONSTRAINED = frozenset(("constrained_pin_transition",))
_TEMPLATES = ("lu_table_template", "power_lut_template")
_MOST_INPUTS = 16
_TO_BLANK = str.maketrans('",\\', "   ")


@dataclass(slots=True)
class _File:
    """Reading context of one file."""

    path: str
    root: Group
    units: dict[str, float] = field(default_factory=dict)
    voltage: float = 0.0
    templates: dict[tuple[str, str], Group] = field(default_factory=dict)
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

    def magnitude(self, group: Group, name: str) -> float | None:
        """A number that is not negative; None where there is none."""
        if not group.get(name):
            return None
        value = self.number(group, name, 0.0)
        if value < 0:
            raise self.error(group.attributes[name].line, f"{name} is {value:g}; expected at least 0")
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
    first = files[0]
    name = " ".join(first.root.names) or Path(names[0]).name
    if not name.isprintable() or "|" in name:
        # Comments and tables have it.
        raise first.error(first.root.line, f"library {name!r}; expected a name of printable characters without '|'")
    return Library(name, tuple(names), tuple(digests), first.voltage, cells, first.units, _read_wire_load(first))


def _read_header(file: _File) -> None:
    root = file.root
    if (included := root.attributes.get("include_file")) is not None:
        raise file.error(included.line, f"include_file ({included.text}); expected all cells, or each file for itself")
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
        # Nominal values hold where no conditions are the default.
        wanted = group.names == [default] if default else not file.voltage
        if wanted and "voltage" in group.attributes:
            file.voltage = file.number(group, "voltage", 0.0) * file.units["voltage"]
            break
    if not 0 < file.voltage < 100:
        raise file.error(root.line, "no supply voltage; expected 'nom_voltage : 1.8;', say")
    for group in root.children(*_TEMPLATES):
        for name in group.names:
            file.templates[group.kind, name] = group
    for name in ("default_input_pin_cap", "default_cell_leakage_power"):
        file.empty[name] = file.number(root, name, 0.0)
    for name in ("max_capacitance", "max_transition"):
        file.empty[name] = file.number(root, f"default_{name}", math.inf)


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
    for (kind, name), group in other.templates.items():
        known = first.templates.get((kind, name))
        # Synthesis reads all files as one, and a template of one name is there once.
        if known is not None and _contents(first, known) != _contents(other, group):
            raise InputError(
                f"{other.path}:{group.line}: its {kind} {name!r} differs from that of {first.path}; expected files of"
                " one library, whose templates of one name are equal"
            )
    if abs(other.voltage - first.voltage) > 1e-6:
        raise InputError(
            f"{other.path}: its voltage, {other.voltage:g} V, differs from the {first.voltage:g} V of "
            f"{first.path}; expected files of one corner"
        )


def _contents(file: _File, template: Group) -> dict[str, object]:
    """Variables and indices of a template."""
    return {
        name: _numbers(file, found).tolist() if name.startswith("index") else found.text
        for name, found in template.attributes.items()
    }


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
            if not _PLAIN_NAME.fullmatch(name):
                # Those of a clock gate become part of a script, too.
                raise file.error(child.line, f"pin {name!r} of {names[0]}; expected a name as that of a cell")
            pins[name] = _read_pin(file, child, name)
    default, states = _read_leakage(file, group)
    clock_gate = _read_clock_gate(group) if group.get("clock_gating_integrated_cell") else None
    return Cell(
        name=names[0],
        area=file.magnitude(group, "area") or 0.0,
        leakage=default,
        leakage_states=states,
        pins=pins,
        sequential=sequential,
        dont_use=any(group.get(name).lower() == "true" for name in _SPECIAL),
        line=group.line,
        clock_gate=clock_gate,
    )


def _read_clock_gate(group: Group) -> ClockGate | None:
    if not group.get("clock_gating_integrated_cell").startswith("latch_posedge"):
        return None
    pins = {
        role: name
        for child in group.children("pin")
        for name in child.names
        for role in ("clock", "enable", "out", "test")
        if child.get(f"clock_gate_{role}_pin").lower() == "true"
    }
    if not {"clock", "enable", "out"} <= pins.keys():
        return None
    return ClockGate(pins["clock"], pins["enable"], pins["out"], pins.get("test"))


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
    plain = file.magnitude(group, "capacitance")
    edges = [file.magnitude(group, f"{edge}_capacitance") for edge in ("rise", "fall")]
    if plain is None:
        known = [edge for edge in edges if edge is not None]
        plain = sum(known) / len(known) if known else default
    rise, fall = (plain if edge is None else edge for edge in edges)
    pin = Pin(
        name,
        direction,
        plain * unit,
        (rise * unit, fall * unit),
        file.expression(group, "function"),
        group.get("clock").lower() == "true",
        "three_state" in group.attributes,
        max_transition=_limit(file, group, "max_transition") * file.units["time"],
    )
    if direction == "output":
        pin.max_capacitance = _limit(file, group, "max_capacitance") * unit
    for child in group.groups:
        if child.kind == "timing":
            pin.arcs.extend(_read_timing(file, child, pin.function))
        elif child.kind == "internal_power":
            pin.internal_power.extend(_read_power(file, child))
    return pin


def _limit(file: _File, group: Group, name: str) -> float:
    """A pin's ``max_capacitance`` or ``max_transition``, or the file's default; 0 says nothing."""
    found = file.number(group, name, file.empty[name])
    return found if found > 0 else math.inf


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
    # Those of delays and of energies may share a name; libraries also take the one for the other.
    kinds = _TEMPLATES[::-1] if "power" in group.kind else _TEMPLATES
    template = next((known for kind in kinds if (known := file.templates.get((kind, template_name)))), None)
    if template is None and template_name != "scalar":
        raise file.error(group.line, f"no template {template_name!r}; expected one in this file")
    wanted: tuple[frozenset[str], ...] = (_RELATED, _CONSTRAINED) if constraint else (_SLEW, _LOAD)
    if "power" in group.kind:
        wanted += (_OTHER_LOAD,)
    axes = [np.zeros(1), np.zeros(1), np.zeros(1)]
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
        scale = file.units["capacitance" if not constraint and position > 0 else "time"]
        axes[position] = _axis(file, index, scale)
        order.append(position)
    sizes = [len(axes[position]) for position in order]
    if len(values) != math.prod(sizes):
        said = " x ".join(str(len(axis)) for axis in axes[: max([1, *order]) + 1])
        raise file.error(found.line, f"{group.kind} has {len(values)} values; its indices say {said}")
    if not np.all(np.isfinite(values)):
        raise file.error(found.line, f"{group.kind} holds a value that is not finite; expected numbers")
    grid = values.reshape(sizes).transpose(np.argsort(order)).reshape([len(axis) for axis in axes])
    # What another output drives is not known by the output alone: the mean over it.
    return Table(axes[0], axes[1], grid[:, :, 0].copy() if len(axes[2]) == 1 else grid.mean(axis=2))
