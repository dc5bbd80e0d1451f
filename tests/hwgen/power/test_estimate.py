"""Power on cases small enough to compute by hand, and against a plain loop over a real netlist."""

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.power import activity
from hwgen.power import estimate as power
from hwgen.power.clock_tree import ClockTree
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
    return sum(power.entering_fj(found, timing.analyse(found, **SETTINGS), seen, np.ones(found.n_cells, bool)).values())


def test_inverter(make, tiny):
    body = make({"a": ("input", [2]), "y": ("output", [3])}, {"u": ("INV", {"A": 2, "Y": 3})})
    # The first of two streams toggles in each cycle: half a toggle per cycle, a is 1 a quarter of the time.
    found = run(body, tiny, {"a": np.array([[0, 0], [1, 0], [0, 0], [1, 0]])})
    assert found.fj["switching"] + found.fj["wires"] == pytest.approx(0.5 * 6 * 2**2 * 0.5)
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
    tree = ClockTree(np.full(6, 0.5), np.zeros(6))
    found = run(body, tiny, {"d": np.array([[1], [0], [1], [0]])}, tree=tree)
    # Both edges of 1 fF of pin and 1 fF of wire, and (6 + 8) fJ inside.
    assert found.fj["clock"] == pytest.approx(14 + 2 * 2**2)
    assert found.fj["clock_tree"] == pytest.approx(0.5)
    assert found.fj["switching"] == pytest.approx(0.5 * 5 * 2**2)
    assert found.fj["wires"] == pytest.approx(0.5 * 1 * 2**2)
    # The clock is no input net.
    assert entering(body, tiny, {"d": np.array([[1], [0], [1], [0]])}) == pytest.approx(0.5 * 3 * 2**2)


def test_behind_clock_gates_pulses_alone_cost(gated):
    """Of the five cycles e lets 3 pulses through, and 1 of them passes the second gate, which wants f to be 0."""
    given = {"d": [1, 0, 1, 1, 0], "e": [1, 0, 1, 1, 0], "f": [1, 0, 0, 1, 1]}
    seen = activity.simulate(gated, {name: np.array(bits)[:, None] for name, bits in given.items()})
    times = timing.analyse(gated, **SETTINGS)
    names = {gated.cell_name(cell): cell for cell in range(gated.n_cells)}
    first, second = (int(np.flatnonzero(gated.driver == names[name])[0]) for name in ("g1", "g2"))
    assert [seen.toggles[net] for net in (gated.clock_net, first, second)] == pytest.approx([2, 2 * 0.6, 2 * 0.2])
    assert [seen.ones[net] for net in (gated.clock_net, first, second)] == pytest.approx([0.5, 0.3, 0.1])
    tree = ClockTree(np.zeros(gated.n_nets), np.zeros(gated.n_nets))
    tree.sink_fj[[gated.clock_net, first, second]] = 0.5, 0.25, 8.0
    tree.root_load[[first, second]] = 5.0, 2.5
    found = power.estimate(gated, times, seen, 100.0, tree)
    fj = {name: dict(zip(power.KINDS, found.cell_fj[cell].tolist(), strict=True)) for name, cell in names.items()}
    # A flip-flop: (6 + 8) fJ inside, 1 fF of pin and 1 fF of wire, over 2 V.
    for name, pulses, of_tree in (("f0", 1.0, 0.5), ("f1", 0.6, 0.25), ("f2", 0.2, 8.0)):
        assert fj[name]["clock"] == pytest.approx(pulses * (14 + 2 * 2**2))
        assert fj[name]["clock_tree"] == pytest.approx(pulses * of_tree)
    # A gate: (2 + 3) fJ and 2.5 fF at its clock pin; where it opens, 5 + load / 5 fJ and 4 fJ at its output, and no
    # net; the enables toggle in 3 and 2 of 4 pairs of cycles, (1 + 2) / 2 fJ each.
    assert fj["g1"]["clock"] == pytest.approx(5 + 2.5 * 2**2 + 0.6 * (5 + 5.0 / 5 + 4))
    assert fj["g2"]["clock"] == pytest.approx(0.6 * (5 + 2.5 * 2**2) + 0.2 * (5 + 2.5 / 5 + 4))
    assert (fj["g1"]["clock_tree"], fj["g2"]["clock_tree"]) == pytest.approx((0.5, 0.6 * 0.25))
    assert (fj["g1"]["internal"], fj["g2"]["internal"]) == pytest.approx((1.5 * 0.75, 1.5 * 0.5))
    assert (fj["g1"]["switching"], fj["g2"]["switching"]) == (0.0, 0.0)
    # The output is high for half of a cycle with a pulse: 21 nW, else 9 nW, at 100 MHz.
    assert fj["g1"]["leakage"] == pytest.approx((0.3 * 21 + 0.7 * 9) / 100)
    assert fj["g2"]["leakage"] == pytest.approx((0.1 * 21 + 0.9 * 9) / 100)
    # Without a tree, the gate's load is what is behind it: a flip-flop and a gate.
    bare = power.estimate(gated, times, seen, 100.0)
    assert bare.cell_fj[names["g1"], power.KINDS.index("clock")] == pytest.approx(
        5 + 2.5 * 2**2 + 0.6 * (5 + (1 + 1.5 + 2) / 5 + 4)
    )
    assert bare.fj["clock_tree"] == 0.0
    # Clocks are no nets that enter.
    assert sum(power.entering_fj(gated, times, seen, np.ones(gated.n_cells, bool)).values()) == pytest.approx(
        0.5
        * 2**2
        * sum(
            times.load[gated.ports[name].nets[0]].mean() * rate for name, rate in (("d", 0.75), ("e", 0.75), ("f", 0.5))
        )
    )


CONDITIONED = """
library (conditioned) {
  time_unit : "1ns"; voltage_unit : "1V"; leakage_power_unit : "1nW"; capacitive_load_unit (1, ff); nom_voltage : 1;
  cell (FF) {
    ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; }
    leakage_power () { when : "CK & D"; value : 8; } leakage_power () { when : "!CK & D"; value : 2; }
    pin (CK) {
      direction : input; clock : true;
      internal_power () { when : "D & !Q"; rise_power (scalar) { values ("7"); } fall_power (scalar) { values ("9"); } }
      internal_power () { when : "!D | Q"; rise_power (scalar) { values ("1"); } fall_power (scalar) { values ("1"); } }
    }
    pin (D) { direction : input; }
    pin (Q) { direction : output; function : "IQ"; }
  }
  cell (GATE) {
    clock_gating_integrated_cell : "latch_posedge_precontrol";
    pin (CK) {
      direction : input; clock_gate_clock_pin : true;
      internal_power () { when : "E & !G"; rise_power (scalar) { values ("64"); } }
      internal_power () { when : "!E&!G"; rise_power (scalar) { values ("3"); } fall_power (scalar) { values ("2"); } }
    }
    pin (E) { direction : input; clock_gate_enable_pin : true; }
    pin (T) { direction : input; clock_gate_test_pin : true; }
    pin (M) { direction : internal; }
    pin (G) {
      direction : output; clock_gate_out_pin : true;
      internal_power () {
        related_pin : "CK"; when : "E"; rise_power (scalar) { values ("10"); } fall_power (scalar) { values ("20"); }
      }
      internal_power () {
        related_pin : "CK"; when : "!E"; rise_power (scalar) { values ("50"); } fall_power (scalar) { values ("70"); }
      }
    }
  }
}
"""


def test_conditions_weigh_with_the_states_before_pulses(make, tmp_path):
    path = tmp_path / "conditioned.lib"
    path.write_text(CONDITIONED)
    ports = {"ck": ("input", [2]), "d": ("input", [3]), "e": ("input", [4]), "q": ("output", [5])}
    cells = {
        "f": ("FF", {"CK": 6, "D": 3, "Q": 5}),
        "g": ("GATE", {"CK": 2, "E": 4, "T": "0", "G": 6}),
    }
    found = link({"t": make(ports, cells)}, "t", reader.load(path))
    # Pulses at the end of the first two cycles: one with d and not q, one with both.
    given = {"d": [1, 1, 0, 1, 0, 0, 1, 1], "e": [1, 1, 0, 0, 0, 0, 0, 0]}
    seen = activity.simulate(found, {name: np.array(bits)[:, None] for name, bits in given.items()})
    assert seen.outputs["q"].ravel().tolist() == [0, 1, 1, 1, 1, 1, 1, 1]
    times = timing.analyse(found, input_slew=0.0, output_load=0.0, wire_load=0.0, clock_slew=0.0)
    tree = ClockTree(np.zeros(found.n_nets), np.zeros(found.n_nets))
    fj = power.estimate(found, times, seen, 1000.0, tree).cell_fj
    f, g = (next(cell for cell in range(2) if found.cell_name(cell) == name) for name in "fg")
    assert fj[f, 3] == pytest.approx((16 + 2) / 8)
    # d is 1 in 5 of 8 cycles; the clock is high in half of the 2 of them with a pulse. For the others, the mean.
    assert fj[f, 5] * 1000 == pytest.approx((1 * 8 + 4 * 2 + 3 * 5) / 8)
    # Where the gate opens, its clock pin costs nothing but what its output does.
    assert fj[g, 3] == pytest.approx((6 * 5 + 2 * 30) / 8)


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
    assert found.fj["switching"] + found.fj["wires"] == pytest.approx((1 + 5) * 3**2 / 2)
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
