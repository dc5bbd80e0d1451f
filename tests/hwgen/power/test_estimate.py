"""Power on cases small enough to compute by hand, and against a plain loop over a real netlist."""

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.power import activity
from hwgen.power import estimate as power
from hwgen.timing import analysis as timing

SETTINGS = {"input_slew": 0.0, "output_load": 5.0, "wire_load": 1.0, "clock_slew": 0.0}


def run(body, tiny, stimulus, **more):
    found = link({"t": body}, "t", tiny)
    seen = activity.simulate(found, stimulus)
    return power.estimate(found, timing.analyse(found, **SETTINGS), seen, 100.0, **more)


def entering(body, tiny, stimulus):
    """Energy of the nets that come from the ports."""
    found = link({"t": body}, "t", tiny)
    seen = activity.simulate(found, stimulus)
    return power.entering_fj(found, timing.analyse(found, **SETTINGS), seen, np.ones(found.n_cells, bool))


def test_inverter(make, tiny):
    body = make({"a": ("input", [2]), "y": ("output", [3])}, {"u": ("INV", {"A": 2, "Y": 3})})
    # The first of two streams toggles in each cycle: half a toggle per cycle, a is 1 a quarter of the time.
    found = run(body, tiny, {"a": np.array([[0, 0], [1, 0], [0, 0], [1, 0]])})
    assert found.fj["switching"] == pytest.approx(0.5 * 6 * 2**2 * 0.5)
    assert found.fj["internal"] == pytest.approx((4 + 2) / 2 * 0.5)
    assert found.fj["leakage"] == pytest.approx((0.25 * 1 + 0.75 * 5) / 100)
    assert found.fj["clock"] == 0.0
    assert entering(body, tiny, {"a": np.array([[0, 0], [1, 0], [0, 0], [1, 0]])}) == pytest.approx(
        0.5 * 3 * 2**2 * 0.5
    )
    assert found.total_fj == pytest.approx(6 + 1.5 + 0.04)
    assert found.total_mw == pytest.approx(7.54e-15 * 100e6 * 1e3)
    assert sum(found.mw.values()) == pytest.approx(found.total_mw)
    assert found.by_block == {"t": pytest.approx(found.fj)}
    assert found.cell_fj.sum() == pytest.approx(found.total_fj)


@pytest.mark.parametrize(
    ("a", "b", "internal"),
    [
        ([0, 1, 0], [1, 1, 1], 15.0),  # the output follows A
        ([1, 1, 1], [0, 1, 0], 35.0),  # the output follows B
        ([0, 1, 0], [0, 0, 0], 2.0),  # A alone toggles, while B is 0
        # Both toggle together: B is 0 two thirds of the time, the shares are equal.
        ([0, 1, 0], [0, 1, 0], 25.0 + 2.0 * 2 / 3),
    ],
)
def test_nand(make, tiny, a, b, internal):
    ports = {"a": ("input", [2]), "b": ("input", [3]), "y": ("output", [4])}
    body = make(ports, {"u": ("NAND2", {"A": 2, "B": 3, "Y": 4})})
    found = run(body, tiny, {"a": np.array(a)[:, None], "b": np.array(b)[:, None]})
    assert found.fj["internal"] == pytest.approx(internal)
    assert found.fj["leakage"] == pytest.approx(7 / 100)


def test_clock(make, tiny):
    ports = {"ck": ("input", [2]), "d": ("input", [3]), "q": ("output", [4])}
    body = make(ports, {"f": ("DFF", {"CK": 2, "RN": "1", "D": 3, "Q": 4})})
    found = run(body, tiny, {"d": np.array([[1], [0], [1], [0]])}, clock_tree=0.5)
    # Both edges of 1 fF of pin and 1 fF of wire, and (6 + 8) fJ inside.
    assert found.fj["clock"] == pytest.approx(14 + 2 * 2**2)
    assert found.fj["clock_tree"] == pytest.approx(0.5)
    assert found.fj["switching"] == pytest.approx(0.5 * 6 * 2**2)
    # The clock is no input net.
    assert entering(body, tiny, {"d": np.array([[1], [0], [1], [0]])}) == pytest.approx(0.5 * 3 * 2**2)


def test_refused(make, tiny):
    body = make({"a": ("input", [2]), "y": ("output", [3])}, {"u": ("INV", {"A": 2, "Y": 3})})
    found = link({"t": body}, "t", tiny)
    times = timing.analyse(found)
    seen = activity.simulate(found, {"a": np.zeros((1, 8), dtype=bool)})
    with pytest.raises(InputError, match="at least two"):
        power.estimate(found, times, seen, 100.0)
    seen = activity.simulate(found, {"a": np.zeros((2, 8), dtype=bool)})
    for frequency in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="frequency"):
            power.estimate(found, times, seen, frequency)
    with pytest.raises(InputError, match="clock_tree"):
        power.estimate(found, times, seen, 100.0, clock_tree=-1.0)


POWER = """
library (power) {
  time_unit : "1ns"; voltage_unit : "1V"; leakage_power_unit : "1nW"; capacitive_load_unit (1, ff); nom_voltage : 3;
  lu_table_template (t) {
    variable_1 : input_net_transition; variable_2 : total_output_net_capacitance; index_1 ("0, 1"); index_2 ("0, 10");
  }
  power_lut_template (e) {
    variable_1 : input_transition_time; variable_2 : total_output_net_capacitance; index_1 ("0, 1"); index_2 ("0, 10");
  }
  cell (SLOPE) {
    pin (A) { direction : input; capacitance : 1; }
    pin (Y) {
      direction : output; function : "A";
      timing () {
        related_pin : "A"; timing_sense : positive_unate;
        cell_rise (scalar) { values ("1"); } cell_fall (scalar) { values ("1"); }
        rise_transition (scalar) { values ("0.25"); } fall_transition (scalar) { values ("0.75"); }
      }
    }
  }
  cell (COST) {
    cell_leakage_power : 6; leakage_power () { when : "A"; value : 10; }
    pin (A) { direction : input; capacitance : 1; }
    pin (Y) { direction : output; function : "A"; BODY }
  }
}
"""
TABLES = 'rise_power (e) { values ("0, 10", "8, 18"); } fall_power (e) { values ("0, 20", "80, 100"); }'


@pytest.mark.parametrize(
    ("body", "internal"),
    [
        # No cause is named: no slew. Rising 1 fJ per fF of load, falling 2.
        (f"internal_power () {{ {TABLES} }}", (5 + 10) / 2),
        # The slews of A are 0.25 rising and 0.75 falling. Without an arc the mean of both, 0.5, stands for either.
        (f'internal_power () {{ related_pin : "A"; {TABLES} }}', (5 + 4 + 10 + 40) / 2),
        *(
            (f'internal_power () {{ related_pin : "A"; {TABLES} }} timing () {{ related_pin : "A"; {sense} }}', fj)
            for sense, fj in (
                ("timing_sense : positive_unate;", (5 + 2 + 10 + 60) / 2),
                ("timing_sense : negative_unate;", (5 + 6 + 10 + 20) / 2),
                ("timing_sense : non_unate;", (5 + 4 + 10 + 40) / 2),
            )
        ),
        # Two supplies add up; tables of one supply share.
        (
            'internal_power () { related_pg_pin : "VDD"; rise_power (scalar) { values ("2"); } }'
            'internal_power () { related_pg_pin : "VSS"; fall_power (scalar) { values ("8"); } }'
            'internal_power () { related_pg_pin : "VSS"; fall_power (scalar) { values ("4"); } }',
            1 + (4 + 2) / 2,
        ),
        # With a condition, and for what it leaves out: A is 1 in one state of three.
        (
            'internal_power () { when : "A"; power (scalar) { values ("3"); } }'
            'internal_power () { power (scalar) { values ("9"); } }',
            (3 * 1 + 9 * 2) / 3,
        ),
    ],
)
def test_the_energy_of_an_output(make, tmp_path, body, internal):
    """A buffer of 5 fF load behind one with unequal slews, over three cycles: one toggle per cycle."""
    path = tmp_path / "power.lib"
    path.write_text(POWER.replace("BODY", body))
    cells = {"s": ("SLOPE", {"A": 2, "Y": 3}), "c": ("COST", {"A": 3, "Y": 4})}
    netlist = link({"t": make({"a": ("input", [2]), "y": ("output", [4])}, cells)}, "t", reader.load(path))
    seen = activity.simulate(netlist, {"a": np.array([[0], [1], [0]])})
    times = timing.analyse(netlist, input_slew=0.0, output_load=5.0, wire_load=0.0, clock_slew=0.0)
    found = power.estimate(netlist, times, seen, 100.0)
    assert found.fj["internal"] == pytest.approx(internal)
    # 1 fF between the cells and 5 fF at the port, at 3 V.
    assert found.fj["switching"] == pytest.approx((1 + 5) * 3**2 / 2)
    # 10 nW where A is 1, else the cell's own figure.
    assert found.fj["leakage"] == pytest.approx((10 + 2 * 6) / 3 / 100)


def test_two_cycles_are_enough(make, tiny):
    body = make({"a": ("input", [2]), "y": ("output", [3])}, {"u": ("INV", {"A": 2, "Y": 3})})
    assert run(body, tiny, {"a": np.array([[0], [1]])}).fj["internal"] == pytest.approx(3.0)


def condition(expression, values):
    return bool(np.all(expression.evaluate([np.array([values[name]]) for name in expression.names])))


def test_against_loop(mac):
    """Cell by cell and sample by sample, on a slice of the real netlist's cells."""
    generator = np.random.default_rng(5)
    cycles, streams = 6, 10
    stimulus = {
        port.name: generator.integers(0, 2, (cycles, streams, len(port.nets)))
        for port in mac.ports.values()
        if port.direction == "input" and port.name != mac.clock_port
    }
    seen = activity.simulate(mac, stimulus)
    times = timing.analyse(mac)
    found = power.estimate(mac, times, seen, 100.0)
    checked = 0
    for number, group in enumerate(mac.groups):
        cell = group.cell
        if cell.sequential is not None:
            continue
        row = len(group.cells) // 2
        states = seen.states[number][row]
        rates = dict(zip(cell.inputs, seen.toggles[group.inputs[row]], strict=True))
        slews = dict(zip(cell.inputs, times.slew[group.inputs[row]], strict=True))

        def applies(table, tables, values, plain, rest):
            """Whether one table of a pin is the one for a state."""
            if table.when is not None:
                return condition(table.when, values)
            others = [other.when for other in tables if other.when is not None and other.supply == table.supply]
            return rest(values) and not any(condition(w, values) for w in others) if others else plain(values)

        def moves(values, cause, outputs, cell=cell):
            """Whether a transition of an input changes one of the outputs."""
            flipped = {**values, cause: not values[cause]}
            functions = [cell.pins[output].function for output in outputs]
            return any(condition(f, values) != condition(f, flipped) for f in functions)

        def chance(test, states=states, cell=cell):
            total = 0.0
            for code, probability in enumerate(states):
                values = {name: bool(code >> i & 1) for i, name in enumerate(cell.inputs)}
                for output in cell.outputs:
                    values[output] = condition(cell.pins[output].function, values)
                total += probability * test(values)
            return total

        expected = 0.0
        for name in cell.inputs:
            tables = cell.pins[name].internal_power
            for table in tables:
                weight = chance(
                    lambda values, name=name, table=table, tables=tables, cell=cell: applies(
                        table, tables, values, lambda v: True, lambda v: not moves(v, name, cell.outputs)
                    )
                )
                energy = sum(float(table.energy[edge](slews[name][edge])) for edge in (0, 1)) / 2
                expected += weight * energy * rates[name]
        for column, name in enumerate(cell.outputs):
            net = group.outputs[row, column]
            supplies = {}
            for table in cell.pins[name].internal_power:
                cause = table.related_pin
                tables = [other for other in cell.pins[name].internal_power if other.related_pin == cause]

                def follows(values, cause=cause, name=name):
                    return moves(values, cause, [name])

                weight = chance(
                    lambda values, table=table, tables=tables, follows=follows: applies(
                        table, tables, values, follows, follows
                    )
                )
                senses = {arc.sense for arc in cell.pins[name].arcs if arc.related_pin == cause}
                slew = slews[cause]
                if senses == {"negative_unate"}:
                    slew = slew[::-1]
                elif senses != {"positive_unate"}:
                    slew = np.full(2, slew.mean())
                edges = (float(table.energy[edge](slew[edge], times.load[net, edge])) for edge in (0, 1))
                supplies.setdefault(table.supply, []).append((weight * rates[cause], sum(edges) / 2))
            for entries in supplies.values():
                share = sum(weight for weight, _ in entries)
                if share > 0:
                    expected += sum(w * energy for w, energy in entries) / share * seen.toggles[net]
        assert found.cell_fj[group.cells[row], 0] == pytest.approx(expected, rel=1e-9, abs=1e-12), cell.name
        checked += 1
    assert checked > 10
