"""Registers behind clock gates and on the clock itself, mapped to every library: what pulses cost is the same."""

import numpy as np
import pytest

from hwgen.mapping.yosys import RECIPES, clock_gate, synthesise
from hwgen.netlist.link import link
from hwgen.power import activity
from hwgen.power.clock_tree import clock_tree
from hwgen.power.consumption import KINDS
from hwgen.power.estimate import estimate
from hwgen.power.glitch import Gates, with_glitches
from hwgen.timing import analysis as timing

# A register that always loads and one that loads where e is 1, of the same data.
TWINS = """
module twins(input clk, input e, input [3:0] d, output reg [3:0] free, output reg [3:0] held);
  always @(posedge clk) begin
    free <= d;
    if (e) held <= d;
  end
endmodule
"""


@pytest.fixture(scope="module")
def twins(real):
    if clock_gate(real) is None:
        pytest.skip("a library without a clock gate")
    return link({"twins": synthesise(TWINS, "twins", real, RECIPES["area"], clock_gating=True)}, "twins", real)


def consumed(twins, e, d):
    """FJ per cycle of the flip-flops of each register by kind, shape (4,) each, and of the clock gate."""
    gates = Gates(twins, timing.analyse(twins))
    seen = activity.simulate(twins, {"e": e, "d": d}, keep=gates.sources)
    found = estimate(twins, gates.timing, with_glitches(seen, gates, 100), 100.0, clock_tree(twins, gates.timing))
    fj = {"free": [], "held": [], "gate": []}
    for group in twins.groups:
        clock = group.cell.clock_pin
        for cell, inputs in zip(group.cells, group.inputs, strict=True):
            if group.cell.clock_gate is not None:
                fj["gate"].append(found.cell_fj[cell])
            elif clock is not None:
                gated = inputs[group.cell.inputs.index(clock)] in twins.gated_nets
                fj["held" if gated else "free"].append(found.cell_fj[cell])
    return {name: dict(zip(KINDS, np.array(rows).T, strict=True)) for name, rows in fj.items()}


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(7).integers(0, 2, (40, 64, 4))


def test_an_open_gate_changes_nothing_for_the_flip_flops_behind_it(twins, data):
    found = consumed(twins, np.ones((40, 64), int), data)
    assert {name: len(kinds["clock"]) for name, kinds in found.items()} == {"free": 4, "held": 4, "gate": 1}
    for kind in ("clock", "internal", "leakage"):
        np.testing.assert_allclose(np.sort(found["held"][kind]), np.sort(found["free"][kind]), rtol=1e-9)
    assert found["gate"]["clock"] > 0


def test_behind_a_closed_gate_the_clock_costs_nothing(twins, data):
    shut, open_ = (consumed(twins, np.full((40, 64), value), data) for value in (0, 1))
    assert not shut["held"]["clock"].any()
    assert not shut["held"]["switching"].any()
    assert 0 < shut["gate"]["clock"] < open_["gate"]["clock"]


def test_clock_energy_is_that_of_the_cycles_with_a_pulse(twins, data):
    """The mean over streams whose gate is always open, and as many whose gate is always shut."""
    e = np.broadcast_to(np.arange(64) % 2, (40, 64))
    mixed = consumed(twins, e, data)
    on = consumed(twins, np.ones((40, 32), int), data[:, 1::2])
    np.testing.assert_allclose(mixed["held"]["clock"], on["held"]["clock"] / 2, rtol=1e-9)
