"""Write the default Liberty files from their tables of figures.

``python -m hwgen.cells.libraries.generate`` rewrites ``NAME.lib`` from ``NAME.csv``; with ``--check`` it
writes nothing and fails where a committed file differs.

The tables
----------
One row per cell; a further output of the same cell has a row of its own, without area, leakage and pins.
``state`` holds a flip-flop's next state and asynchronous pins, ``pins_ff`` the input pins with their capacitances
in fF, ``source`` where the figures come from. Areas are in um2, leakage in nW,
energies in fJ per transition (``energy_fj``: of the output; ``pin_energy_fj``: of a data input, mean;
``clock_energy_fj``: of the clock), loads in fF, times in ns. For a rising output, with the input slew s and
the load c,

    delay = rise_ns + rise_per_slew s + rise_ns_per_ff c
    output slew = rise_transition_ns + rise_transition_per_slew s + rise_transition_ns_per_ff c

and likewise for a falling one; the delay of a flip-flop or a clock gate is from its clock. Slews are between the
thresholds of the real library: 20 and 80 % at 130 nm, 10 and 90 % at 7 nm.

How a row is fitted
-------------------
The real cell's tables are interpolated (bilinear, beyond their ends as well, as timing tools do) on 6 x 6 evenly
spaced points: input slews of 0.02 to 0.40 ns at 130 nm and 0.005 to 0.08 ns at 7 nm; loads of half to eight times
the input capacitance of the cell, or of an inverter that drives as much where that is larger (in proportion to the
maximum load; of flip-flops and clock gates always the latter). Arcs of one input pin and one output edge that differ
by condition are merged into the slowest, point by point, as a timing tool would; then pins are averaged; then the
three coefficients are fitted by least squares, none below zero. The root mean square error, relative to the mean
value, has a median of 2 %, is below 5 % for nine fits in ten and 14 % at worst (falling inverters).

Energies are means over those points, both edges, all conditions and all pins, summed over the supply rails (real
tables differ in how they split the load's energy between the edges; their sum does not contain it). The clock's
energy is the mean over the conditions in which nothing but the clock changes. Setup and hold times are means over the
slews, of the worse data edge. Leakage is the cell's own figure, or the mean over its states.

Drives that the source does not have
------------------------------------
Where the real library has fewer than three sizes of a gate, further ones follow from the step between two sizes of a
like cell. Area (rounded to whole placement sites), leakage, energies, capacitances, delays per load and the largest
load are multiplied by the ratio of those two cells; the load-free delays and the slew terms, which a wider cell
mostly keeps, change by their difference. A wider output stage leaves the inputs of a flip-flop alone. ``source`` then
names the three cells. For cells that do exist and are alike the rule gives area, energy and delay within 10 %
(leakage at 130 nm, which does not follow the width, within a factor of three).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hwgen.cells.boolean import parse_expression
from hwgen.cells.libraries import names

__all__ = ["liberty", "main", "read_table"]

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class _Process:
    """What the header of one library says; times in `time_unit`, of which `per_ns` make a nanosecond."""

    comment: str
    time_unit: str
    per_ns: float
    voltage: float
    slew_percent: tuple[int, int]
    slews_ns: tuple[float, ...]
    max_slew_ns: float
    wire_ff_per_um: float
    wire_um_per_fanout: float


_PROCESSES = {
    "generic7": _Process(
        comment="7 nm class stand-in for ASAP7 (7.5 track, RVT, TT); not a manufacturable library",
        time_unit="1ps",
        per_ns=1000.0,
        voltage=0.7,
        slew_percent=(10, 90),
        slews_ns=(0.005, 0.04, 0.32),
        max_slew_ns=0.32,
        wire_ff_per_um=0.12918,
        wire_um_per_fanout=2.9,
    ),
    "generic130": _Process(
        comment="130 nm class stand-in for sky130_fd_sc_hd (tt); not a manufacturable library",
        time_unit="1ns",
        per_ns=1.0,
        voltage=1.8,
        slew_percent=(20, 80),
        slews_ns=(0.01, 0.15, 1.5),
        max_slew_ns=1.5,
        wire_ff_per_um=0.172375,
        wire_um_per_fanout=23.27,
    ),
}

# Loads of the tables as fractions of a cell's largest; the model is linear, so three points say it all.
_LOADS = (0.01, 0.1, 1.0)
_CLOCK = "CLK"


def read_table(name: str) -> list[dict[str, str]]:
    """Rows of a library's table of figures.

    Parameters
    ----------
    name : str
        One of :func:`hwgen.cells.libraries.names`.

    Returns
    -------
    list of dict
        One per output of a cell, keyed by column, as text; the columns' units are in the module's docstring.
    """
    with open(_HERE / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def liberty(name: str) -> str:
    """Text of a library's Liberty file.

    Parameters
    ----------
    name : str
        One of :func:`hwgen.cells.libraries.names`.

    Returns
    -------
    str
        Times in ps (generic7) or ns (generic130), capacitances in fF, energies in fJ, leakage in nW, areas in
        um2.
    """
    process = _PROCESSES[name]
    lines = [f"library ({name}) {{", *_indent(_header(process))]
    for _, rows in itertools.groupby(read_table(name), key=lambda row: row["cell"]):
        lines += ["", *_indent(_cell(list(rows), process))]
    return "\n".join([*lines, "}", ""])


def _indent(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" if line else line for line in lines)


def _group(head: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{head} {{"
    yield from _indent(lines)
    yield "}"


def _quoted(values: Sequence[float]) -> str:
    return '"' + ", ".join(_number(value) for value in values) + '"'


def _number(value: float) -> str:
    return f"{value:.5g}"


def _header(process: _Process) -> Iterator[str]:
    low, high = process.slew_percent
    slews = _quoted([slew * process.per_ns for slew in process.slews_ns])
    yield f'comment : "{process.comment}";'
    yield 'revision : "1.0";'
    yield "delay_model : table_lookup;"
    yield f'time_unit : "{process.time_unit}";'
    yield 'voltage_unit : "1V";'
    yield 'current_unit : "1mA";'
    yield 'pulling_resistance_unit : "1kohm";'
    yield 'leakage_power_unit : "1nW";'
    yield "capacitive_load_unit (1, ff);"
    for edge in ("rise", "fall"):
        yield f"input_threshold_pct_{edge} : 50;"
        yield f"output_threshold_pct_{edge} : 50;"
        yield f"slew_lower_threshold_pct_{edge} : {low};"
        yield f"slew_upper_threshold_pct_{edge} : {high};"
    yield "slew_derate_from_library : 1;"
    yield "nom_process : 1;"
    yield f"nom_voltage : {process.voltage};"
    yield "nom_temperature : 25;"
    yield from _group(
        "operating_conditions (typical)",
        iter(["process : 1;", f"voltage : {process.voltage};", "temperature : 25;"]),
    )
    yield "default_operating_conditions : typical;"
    yield "default_cell_leakage_power : 0;"
    yield "default_leakage_power_density : 0;"
    yield "default_fanout_load : 1;"
    yield "default_input_pin_cap : 0;"
    yield "default_output_pin_cap : 0;"
    yield "default_inout_pin_cap : 0;"
    yield f"default_max_transition : {_number(process.max_slew_ns * process.per_ns)};"
    length = _number(process.wire_um_per_fanout)
    yield from _group(
        'wire_load ("per_fanout")',
        iter(
            [
                f"capacitance : {process.wire_ff_per_um};",
                "resistance : 0;",
                "area : 0;",
                f"slope : {length};",
                f"fanout_length (1, {length});",
            ]
        ),
    )
    yield from _group(
        "lu_table_template (delay)",
        iter(
            [
                "variable_1 : input_net_transition;",
                "variable_2 : total_output_net_capacitance;",
                f"index_1 ({slews});",
                f"index_2 ({_quoted(_LOADS)});",
            ]
        ),
    )
    yield from _group(
        "lu_table_template (constraint)",
        iter(
            [
                "variable_1 : related_pin_transition;",
                "variable_2 : constrained_pin_transition;",
                f"index_1 ({slews});",
                f"index_2 ({slews});",
            ]
        ),
    )
    yield from _group(
        "power_lut_template (energy)", iter(["variable_1 : input_transition_time;", f"index_1 ({slews});"])
    )


def _cell(rows: Sequence[dict[str, str]], process: _Process) -> Iterator[str]:
    row = rows[0]
    pins = {pin: float(load) for pin, load in (item.split("=") for item in row["pins_ff"].split())}
    state = dict(item.split("=") for item in row["state"].split(";")) if row["state"] else {}
    asynchronous = {state[role].lstrip("!") for role in ("clear", "preset") if role in state}
    gates = {state[role]: role for role in ("enable", "test") if role in state}

    def body() -> Iterator[str]:
        yield f"area : {row['area_um2']};"
        yield f"cell_leakage_power : {row['leakage_nw']};"
        if gates:
            yield from _clock_gate(state)
        elif state:
            yield from _group("ff (IQ, IQN)", _state(state))
        for pin, load in pins.items():
            role = "clock" if state and pin == _CLOCK else "async" if pin in asynchronous else "data"
            mark = "clock" if gates and pin == _CLOCK else gates.get(pin, "")
            yield from _group(f"pin ({pin})", _input(row, process, load, role if state else "", mark))
        kind = "clock gate" if gates else "flip-flop" if state else "gate"
        for output in rows:
            yield from _group(f"pin ({output['output']})", _output(output, process, tuple(pins), kind))

    return _group(f"cell ({row['cell']})", body())


def _clock_gate(state: dict[str, str]) -> Iterator[str]:
    """The latch of a clock gate: open while the clock is low, it takes ``enable or test``."""
    data = [state[role] for role in ("enable", "test") if role in state]
    yield f"clock_gating_integrated_cell : latch_posedge{'_precontrol' if 'test' in state else ''};"
    table = [
        f"L {' '.join(levels)} : - : {'H' if 'H' in levels else 'L'}"
        for levels in itertools.product("LH", repeat=len(data))
    ]
    table.append(f"H {' '.join('-' for _ in data)} : - : N")
    yield from _group(f'statetable ("{" ".join([_CLOCK, *data])}", "IQ")', iter([f'table : "{", ".join(table)}";']))
    yield from _group("pin (IQ)", iter(["direction : internal;", 'internal_node : "IQ";']))


def _state(state: dict[str, str]) -> Iterator[str]:
    yield f"clocked_on : {_CLOCK};"
    yield f'next_state : "{state["next"]}";'
    for role in ("clear", "preset"):
        if role in state:
            yield f'{role} : "{state[role]}";'
    if "clear" in state and "preset" in state:
        yield "clear_preset_var1 : L;"
        yield "clear_preset_var2 : L;"


def _input(row: dict[str, str], process: _Process, load: float, role: str, mark: str) -> Iterator[str]:
    """`role`: of a pin of a cell with a state ``clock``, ``async`` or ``data``; `mark`: of a clock gate's pin."""
    yield "direction : input;"
    if role == "clock":
        yield "clock : true;"
    if mark:
        yield f"clock_gate_{mark}_pin : true;"
    yield f"capacitance : {_number(load)};"
    energy = float(row["clock_energy_fj" if role == "clock" else "pin_energy_fj"])
    if energy:
        yield from _group("internal_power ()", _energy(energy, process))
    if role == "data":
        for kind in ("setup", "hold"):
            yield from _group("timing ()", _constraint(kind, row, process))


def _energy(energy: float, process: _Process) -> Iterator[str]:
    return _both("power (energy)", _values([[energy] * len(process.slews_ns)]))


def _both(kind: str, lines: Iterator[str]) -> Iterator[str]:
    body = list(lines)
    for edge in ("rise", "fall"):
        yield from _group(f"{edge}_{kind}", iter(body))


def _constraint(kind: str, row: dict[str, str], process: _Process) -> Iterator[str]:
    yield f"related_pin : {_CLOCK};"
    yield f"timing_type : {kind}_rising;"
    size = len(process.slews_ns)
    value = float(row[f"{kind}_ns"]) * process.per_ns
    yield from _both("constraint (constraint)", _values([[value] * size] * size))


def _values(table: Sequence[Sequence[float]]) -> Iterator[str]:
    rows = [_quoted(row) for row in table]
    yield f"values ({rows[0]}, \\" if len(rows) > 1 else f"values ({rows[0]});"
    for row in rows[1:-1]:
        yield f"  {row}, \\"
    if len(rows) > 1:
        yield f"  {rows[-1]});"


def _output(row: dict[str, str], process: _Process, pins: tuple[str, ...], kind: str) -> Iterator[str]:
    yield "direction : output;"
    if kind == "clock gate":
        yield "clock_gate_out_pin : true;"
    yield f'{"state_function" if kind == "clock gate" else "function"} : "{row["function"]}";'
    most = float(row["max_load_ff"])
    if most:
        yield f"max_capacitance : {_number(most)};"
    loads = [fraction * most for fraction in _LOADS]
    for pin in pins if kind == "gate" else (_CLOCK,):
        power = [f"related_pin : {pin};", *_energy(float(row["energy_fj"]), process)]
        yield from _group("internal_power ()", iter(power))
        yield from _group("timing ()", _arc(row, process, pin, kind == "flip-flop", loads))


def _arc(row: dict[str, str], process: _Process, pin: str, sequential: bool, loads: Sequence[float]) -> Iterator[str]:
    yield f"related_pin : {pin};"
    if sequential:
        yield "timing_type : rising_edge;"
        yield "timing_sense : non_unate;"
    else:
        yield "timing_type : combinational;"
        yield f"timing_sense : {_sense(row['function'], pin)};"
    for edge in ("rise", "fall"):
        for kind, prefix in ((f"cell_{edge}", edge), (f"{edge}_transition", f"{edge}_transition")):
            ends = ("_ns", "_per_slew", "_ns_per_ff")
            intrinsic, per_slew, per_ff = (float(row[prefix + end]) for end in ends)
            table = [
                [(intrinsic + per_slew * slew + per_ff * load) * process.per_ns for load in loads]
                for slew in process.slews_ns
            ]
            index = f"index_2 ({_quoted(loads)});"
            yield from _group(f"{kind} (delay)", iter([index, *_values(table)]))


def _sense(function: str, pin: str) -> str:
    expression = parse_expression(function)
    others = [name for name in expression.names if name != pin]
    low, high = expression.truth([*others, pin]).reshape(2, -1).astype(int)
    if (high >= low).all():
        return "positive_unate"
    return "negative_unate" if (high <= low).all() else "non_unate"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the Liberty files, or check them.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line; ``--check`` writes nothing.

    Returns
    -------
    int
        0, or 1 where ``--check`` found a file that differs.
    """
    parser = argparse.ArgumentParser(description="Write the default Liberty files from their tables.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    check = parser.parse_args(arguments).check
    stale = []
    for name in names():
        file = _HERE / f"{name}.lib"
        text = liberty(name).encode()
        if not check:
            file.write_bytes(text)
        elif not file.exists() or file.read_bytes() != text:
            stale.append(file.name)
    if stale:
        print(f"not what their tables give: {', '.join(stale)}; run this without --check", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
