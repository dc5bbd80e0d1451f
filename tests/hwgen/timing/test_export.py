"""SDC and SPEF, read back by a parser of this test's own; OpenSTA reads them in tests/hwgen/power."""

import re

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.netlist.export import cell_names, net_names
from hwgen.netlist.link import link
from hwgen.timing import analysis as timing
from hwgen.timing.export import sdc, spef
from hwgen.timing.wires import Wires


def placed(netlist, resistance):
    """Wires as a placement might give them: mostly short, a few long; kohm for each fF."""
    lengths = np.random.default_rng(5).lognormal(0.0, 0.8, netlist.n_nets)
    load = timing.analyse(netlist).wire_load
    capacitance = load * lengths * (netlist.fanout > 0)
    return Wires(capacitance, resistance * capacitance, "placed")


def parsed(text):
    """By name of the net: total capacitance, pins by direction, capacitances and resistances by node."""
    nets = {}
    for block in text.split("*D_NET ")[1:]:
        head, pins, grounded, resistors = re.fullmatch(
            r"(.*?)\n\*CONN\n(.*?)\*CAP\n(.*?)\*RES\n(.*?)\*END\n.*", block, re.DOTALL
        ).groups()
        name, total = head.split()
        nets[name] = (
            float(total),
            [tuple(line.split()[1:]) for line in pins.splitlines()],
            {node: float(value) for _, node, value in map(str.split, grounded.splitlines())},
            [(a, b, float(value)) for _, a, b, value in map(str.split, resistors.splitlines())],
        )
    return nets


def test_every_wire_is_there_with_its_pins(mac):
    wires = placed(mac, 0.01)
    nets = parsed(spef(mac, wires))
    names, cells = net_names(mac), cell_names(mac)
    expected = {names[net] for net in range(2, mac.n_nets) if mac.fanout[net] and net != mac.clock_net}
    assert nets.keys() == expected
    ends = {name: set() for name in names}
    for group in mac.groups:
        for pins, table, way in ((group.cell.inputs, group.inputs, "I"), (group.cell.outputs, group.outputs, "O")):
            for cell, row in zip(group.cells.tolist(), table.tolist(), strict=True):
                for pin, net in zip(pins, row, strict=True):
                    ends[names[net]].add((f"{cells[cell]}:{pin}", way))
    for port in mac.ports.values():
        for place, net in enumerate(port.nets.tolist()):
            bit = port.name if len(port.nets) == 1 else f"{port.name}[{place}]"
            ends[names[net]].add((bit, port.direction[0].upper()))
    place = {name: net for net, name in enumerate(names)}
    for name, (total, pins, grounded, resistors) in nets.items():
        net = place[name]
        assert set(pins) == ends[name]
        assert total == pytest.approx(wires.capacitance[net], rel=1e-5)
        assert sum(grounded.values()) == pytest.approx(total, rel=1e-5)
        (_, shared, resistance), *rest = resistors
        assert resistance == pytest.approx(wires.resistance[net], rel=1e-5)
        # Half the wire lies behind the resistance, with all the loads.
        assert grounded[shared] == pytest.approx(total / 2, rel=1e-5)
        assert len(rest) == len(pins) - 1
        assert all(start == shared and value == 1e-6 for start, _, value in rest)


def test_constraints_are_in_units_of_the_library(mac):
    times = timing.analyse(mac)
    text = sdc(mac, times, 7.5)
    time, capacitance = (mac.library.units[unit] for unit in ("time", "capacitance"))
    assert float(re.search(r"-period (\S+) ", text)[1]) * time == pytest.approx(7.5)
    assert float(re.search(r"set_input_transition (\S+) ", text)[1]) * time == pytest.approx(times.input_slew)
    assert float(re.search(r"set_clock_transition (\S+) ", text)[1]) * time == pytest.approx(times.clock_slew)
    assert float(re.search(r"set_load (\S+) ", text)[1]) * capacitance == pytest.approx(times.output_load)
    assert "[get_ports {rst a[*] b[*]}]" in text
    assert "[get_ports {acc[*] any}]" in text


@pytest.mark.parametrize("name", ["a b", "a]", "[exit]", "a;b", "$a", "a\\", "{a", "a.b"])
def test_names_that_are_more_than_names_are_refused(make, tiny, name):
    cells = {"f": ("DFF", {"CK": 2, "RN": "1", "D": 3, "Q": 4})}
    body = make({"ck": ("input", [2]), name: ("input", [3]), "q": ("output", [4])}, cells)
    with pytest.raises(InputError, match=r"cannot be named in constraints"):
        sdc(link({"t": body}, "t", tiny), timing.analyse(link({"t": body}, "t", tiny)), 1.0)


def test_without_a_clock_there_is_nothing_to_constrain(make, tiny):
    body = make({"a": ("input", [2]), "y": ("output", [3])}, {"u": ("INV", {"A": 2, "Y": 3})})
    found = link({"t": body}, "t", tiny)
    with pytest.raises(InputError, match="t has no clock to constrain; expected flip-flops"):
        sdc(found, timing.analyse(found), 1.0)
