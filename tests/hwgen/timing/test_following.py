"""Outputs that are timed from other outputs of their cell, as the sums of adders in ASAP7 from their carries."""

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.closure import sizing
from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.timing.analysis import analyse
from hwgen.timing.compiled import compile_timing
from hwgen.timing.inner import longest_inside
from hwgen.timing.loads import assumptions
from hwgen.timing.wires import Wires

GIVEN = {"input_slew": 0.0, "output_load": 4.0, "wire_load": 0.0, "clock_slew": 0.0}


def adder(make, library):
    """A half adder between ports."""
    ports = {"a": ("input", [2]), "b": ("input", [3]), "c": ("output", [4]), "s": ("output", [5])}
    body = make(ports, {"u": ("HA_X1", {"A": 2, "B": 3, "CON": 4, "SN": 5})})
    return link({"t": body}, "t", library)


def chain(make, library, length=6):
    """Half adders in a row from register to register: the sum of each is an operand of the next, carries load it."""
    cells = {"f": ("DFF", {"CK": 2, "D": 3, "Q": 4, "QN": 5})}
    net = 4
    for place in range(length):
        carry, total = 10 + 3 * place, 11 + 3 * place
        cells[f"h{place}"] = ("HA_X1", {"A": net, "B": 3, "CON": carry, "SN": total})
        cells[f"u{place}"] = ("INV", {"A": carry, "Y": carry + 2})
        net = total
    cells["g"] = ("DFF", {"CK": 2, "D": net, "Q": 6, "QN": 7})
    ports = {"ck": ("input", [2]), "b": ("input", [3]), "q": ("output", [6]), "n": ("output", [7])}
    return link({"t": make(ports, cells)}, "t", library)


def wires_of(netlist, seed=3):
    random = np.random.default_rng(seed)
    return Wires(random.uniform(0, 3, netlist.n_nets), random.uniform(0, 20, netlist.n_nets), "placed")


def test_by_hand(make, following):
    """The sum waits for the carry, which waits for what it drives; its wire is no part of that."""
    netlist = adder(make, following)
    nets = {name: int(netlist.ports[name].nets[0]) for name in "abcs"}
    capacitance, resistance = np.zeros((2, netlist.n_nets))
    capacitance[nets["c"]], resistance[nets["c"]], resistance[nets["s"]] = 2.0, 50.0, 10.0
    found = analyse(netlist, wires=Wires(capacitance, resistance, "placed"), **GIVEN)
    # CON drives 4 fF and 2 fF of wire: 0.1 + 0.02 * 6, with a slew of 0.1 + 0.05 * 6 rising.
    carry = 0.1 + 0.02 * 6
    assert found.slew[nets["c"]] == pytest.approx([0.1 + 0.05 * 6, 0.1 + 0.03 * 6])
    # SN rises behind a falling CON, at worst 0.3 + 0.1 * 0.28 + 0.02 * 4; both have a wire.
    assert [(step.cell, step.arc) for step in found.path] == [
        ("a", "rise at the port"),
        ("u", "A rise -> CON fall"),
        ("u", "CON fall -> SN rise"),
    ]
    wire = {"c": 1e-3 * 50 * (6 - 0.5 * 2), "s": 1e-3 * 10 * 4}
    total = carry + 0.3 + 0.1 * 0.28 + 0.02 * 4
    assert [step.arrival for step in found.path] == pytest.approx([0.0, carry + wire["c"], total + wire["s"]])
    assert found.slew[nets["s"]] == pytest.approx([0.1, 0.15])
    assert found.delay == pytest.approx(total + wire["s"])


def test_a_flip_flop_whose_inverse_output_follows(make, following):
    ports = {"ck": ("input", [2]), "d": ("input", [3]), "q": ("output", [4]), "n": ("output", [5])}
    netlist = link({"t": make(ports, {"f": ("DFF", {"CK": 2, "D": 3, "Q": 4, "QN": 5})})}, "t", following)
    found = analyse(netlist, **GIVEN)
    # Q rises 0.5 + 0.02 * 4 behind the clock with a slew of 0.1; QN falls 0.2 + 0.2 * 0.1 + 0.01 * 4 later.
    assert found.delays["reg_to_out"] == pytest.approx(0.58 + 0.26)
    assert [step.arc for step in found.path] == ["CK rise -> Q rise", "Q rise -> QN fall"]


def test_compiled_has_the_same(make, following):
    netlist = chain(make, following)
    wires, given = wires_of(netlist), assumptions(following, *GIVEN.values())
    found = analyse(netlist, wires=wires, **GIVEN)
    assert sum(step.arc.startswith("CON") for step in found.path) >= 3
    compiled = compile_timing(netlist, given, wires)
    driven = compiled.net_of >= 0
    driven[netlist.clock_net] = False
    assert compiled.delay == pytest.approx(found.delay, rel=1e-12)
    assert compiled.state.slew[compiled.net_of[driven]] == pytest.approx(found.slew[driven], rel=1e-12)
    # What is required of a sum is required of its carry: the longest path has the least slack all along.
    slack = compiled.slack(5.0)
    names = {netlist.net_name(net): net for net in range(netlist.n_nets)}
    for step in found.path[:-1]:
        assert slack[compiled.net_of[names[step.net]]].min() == pytest.approx(5.0 - found.delay, rel=1e-9)


def test_the_longest_path_inside(make, following):
    netlist = chain(make, following)
    found = analyse(netlist, wires=wires_of(netlist), **GIVEN)
    path = longest_inside(netlist, found, [np.arange(netlist.n_cells)])
    assert path[-1].arrival == pytest.approx(found.delays["reg_to_reg"])
    assert [step.arc for step in path] == [step.arc for step in found.paths["reg_to_reg"]]


def test_sizing_sees_that_a_carry_holds_its_sum(make, following):
    """Larger adders are faster by their carries alone, and no sum would be without its carry's arcs."""
    netlist = chain(make, following)
    wires, given = wires_of(netlist), assumptions(following, *GIVEN.values())
    family = [[following.cells["HA_X1"], following.cells["HA_X2"]]]
    compiled = compile_timing(netlist, given, wires, families=family)
    slowest = compiled.delay
    for node, cell in enumerate(compiled.cells()):
        if cell.name == "HA_X1":
            compiled.change(node, following.cells["HA_X2"])
    fastest = compiled.delay
    after = [values.copy() for values in compiled.state]
    compiled.reload()
    for incremental, anew in zip(after, compiled.state, strict=True):
        assert incremental == pytest.approx(anew, rel=1e-12)
    assert fastest < slowest - 0.1
    compiled = compile_timing(netlist, given, wires, families=family)
    period = 0.5 * (slowest + fastest)
    done = sizing.size(compiled, period, sizing.area_cost(compiled))
    sizes = [cell.name for cell in compiled.cells() if cell.name.startswith("HA")]
    assert done.delay <= period
    assert {*sizes} == {"HA_X1", "HA_X2"}


def test_outputs_in_a_circle_are_refused(make, tmp_path):
    arcs = '{{ direction : output; function : "A"; timing () {{ related_pin : "{0}"; cell_rise (scalar)'
    arcs += ' {{ values ("1"); }} cell_fall (scalar) {{ values ("1"); }} }} }}'
    pins = f"pin (A) {{ direction : input; }} pin (Y) {arcs.format('Z')} pin (Z) {arcs.format('Y')}"
    (tmp_path / "circle.lib").write_text(f"library (circle) {{ nom_voltage : 1; cell (G) {{ {pins} }} }}")
    ports = {"a": ("input", [2]), "y": ("output", [3]), "z": ("output", [4])}
    body = make(ports, {"u": ("G", {"A": 2, "Y": 3, "Z": 4})})
    netlist = link({"t": body}, "t", reader.load(tmp_path / "circle.lib"))
    with pytest.raises(InputError, match="cell G: its outputs Y, Z are timed from one another; expected an input"):
        analyse(netlist)
