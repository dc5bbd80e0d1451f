"""Wires by hand: what they add to loads, arrivals, paths and simulated delays."""

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.power.glitch import Gates
from hwgen.timing import analysis as timing
from hwgen.timing.loads import net_loads
from hwgen.timing.wires import Wires, elmore, per_fanout

SETTINGS = {"input_slew": 0.0, "output_load": 5.0, "wire_load": 1.0, "clock_slew": 0.0}


def net(netlist, port):
    return int(netlist.ports[port].nets[0])


def placed(netlist, **figures):
    """Wires with (fF, kohm) at the nets of some ports, nothing elsewhere."""
    capacitance, resistance = np.zeros(netlist.n_nets), np.zeros(netlist.n_nets)
    for port, (fF, kohm) in figures.items():
        capacitance[net(netlist, port)], resistance[net(netlist, port)] = fF, kohm
    return Wires(capacitance, resistance, "placed")


@pytest.fixture
def chain(make, tiny):
    """x = !a, y = !x, a flip-flop after it."""
    cells = {
        "u": ("INV", {"A": 2, "Y": 3}),
        "v": ("INV", {"A": 3, "Y": 4}),
        "r": ("DFF", {"CK": 6, "RN": "1", "D": 4, "Q": 5}),
    }
    ports = {
        "clk": ("input", [6]),
        "a": ("input", [2]),
        "x": ("output", [3]),
        "y": ("output", [4]),
        "q": ("output", [5]),
    }
    return link({"t": make(ports, cells)}, "t", tiny)


def test_elmore(chain):
    wires = placed(chain, x=(4.0, 3.0), y=(2.0, 0.5))
    load = net_loads(chain, 5.0, wires)
    assert load[net(chain, "x")].tolist() == [11.0, 11.0]
    delay = elmore(wires, load)
    # 3 kohm before half of 4 fF, an inverter of 2 fF and a port of 5 fF: 27 ps.
    assert delay[net(chain, "x")] == pytest.approx([0.027, 0.027])
    assert delay[net(chain, "y")] == pytest.approx([0.5e-3 * (1 + 2 + 5)] * 2)
    assert delay[net(chain, "a")].tolist() == [0.0, 0.0]


def test_without_wires_it_is_by_fanout(chain):
    asked = timing.analyse(chain, **SETTINGS)
    given = timing.analyse(chain, **SETTINGS, wires=per_fanout(chain, 1.0))
    assert asked.wires.kind == given.wires.kind == "fanout"
    assert asked.delays == given.delays
    assert asked.wires.capacitance.tolist() == chain.fanout.tolist()
    assert not asked.wire_delay.any()


def test_wires_on_the_way(chain):
    """Resistance alone delays what comes behind it by as much, and leaves the slews."""
    capacitance = {"a": 1.0, "x": 4.0, "y": 2.0, "q": 3.0, "clk": 9.0}
    short = timing.analyse(chain, **SETTINGS, wires=placed(chain, **{p: (c, 0.0) for p, c in capacitance.items()}))
    kohm = {"a": 10.0, "x": 20.0, "y": 30.0, "q": 40.0, "clk": 1000.0}
    long = timing.analyse(chain, **SETTINGS, wires=placed(chain, **{p: (c, kohm[p]) for p, c in capacitance.items()}))
    assert np.array_equal(short.slew, long.slew)
    a, x, y = 0.01 * (2 + 0.5), 0.02 * (2 + 5 + 2), 0.03 * (2 + 5 + 1)
    q = 0.04 * (5 + 1.5)
    assert long.delays["in_to_out"] == pytest.approx(short.delays["in_to_out"] + a + x + y)
    assert long.delays["in_to_reg"] == pytest.approx(short.delays["in_to_reg"] + a + x + y)
    # The clock is ideal, whatever its wire is.
    assert long.delays["reg_to_out"] == pytest.approx(short.delays["reg_to_out"] + q)
    steps = long.paths["in_to_out"]
    assert steps[0].arrival == pytest.approx(a)
    assert steps[-1].arrival == pytest.approx(long.delays["in_to_out"])
    assert steps[1].arrival - short.paths["in_to_out"][1].arrival == pytest.approx(a + x)


def test_simulated_delays_have_the_wires_too(chain):
    long = timing.analyse(chain, **SETTINGS, wires=placed(chain, a=(0.0, 100.0), x=(0.0, 10.0)))
    short = timing.analyse(chain, **SETTINGS, wires=placed(chain))
    times = []
    for result in (short, long):
        gates = Gates(chain, result)
        start = dict.fromkeys(gates.sources.tolist(), 0)
        values = np.array([list(start.values()), [int(n == net(chain, "a")) for n in start]])
        times.append({where: time for _, time, where in gates.events(values)})
    a, x = 0.1 * 2, 0.01 * 7
    assert times[1][net(chain, "a")] == pytest.approx(a)
    assert times[1][net(chain, "x")] == pytest.approx(times[0][net(chain, "x")] + a + x)
    assert times[1][net(chain, "y")] == pytest.approx(times[0][net(chain, "y")] + a + x)


def test_wires_that_cannot_be(chain):
    n = chain.n_nets
    with pytest.raises(InputError, match=r"shapes \(3,\) and \(4,\)"):
        Wires(np.zeros(3), np.zeros(4), "placed")
    with pytest.raises(InputError, match="capacitance -1 of net 1"):
        Wires(np.array([0.0, -1.0]), np.zeros(2), "placed")
    with pytest.raises(InputError, match="resistance nan of net 0"):
        Wires(np.zeros(2), np.array([np.nan, 0.0]), "placed")
    with pytest.raises(InputError, match=f"wires of {n + 1} nets; t has {n}"):
        timing.analyse(chain, wires=Wires(np.zeros(n + 1), np.zeros(n + 1), "placed"))
