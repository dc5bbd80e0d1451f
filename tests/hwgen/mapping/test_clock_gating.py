"""Registers behind clock gates: fewer cells, the same behaviour."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hwgen.cells.library import Library
from hwgen.mapping.yosys import LEAST_GATED, RECIPES, clock_gate, synthesise
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.power.activity import respond

# Registers of every kind that has an enable, a bit more and a bit less than what is worth a gate.
HELD = f"""
module held(input clk, input rst, input e, input f, input [7:0] d,
            output reg [7:0] plain, output reg [{LEAST_GATED - 1}:0] enough, output reg [{LEAST_GATED - 2}:0] little,
            output reg [7:0] cleared, output reg [7:0] held_through_reset, output reg [7:0] free);
  always @(posedge clk) begin
    free <= d;
    if (e) plain <= d;
    if (e & f) enough <= d;
    if (e | f) little <= d;
    if (rst) cleared <= 8'h55; else if (e) cleared <= d;
    if (f) begin if (rst) held_through_reset <= 8'h0f; else held_through_reset <= d; end
  end
endmodule
"""


def _mapped(library: Library, clock_gating: bool) -> tuple[dict[str, Any], Netlist]:
    body = synthesise(HELD, "held", library, RECIPES["area"], clock_gating=clock_gating)
    return body, link({"held": body}, "held", library)


def _answers(netlist: Netlist) -> Mapping[str, np.ndarray]:
    rng = np.random.default_rng(0)
    stimulus = {
        port: rng.integers(0, 2, (60, 128, width)) for port, width in (("rst", 1), ("e", 1), ("f", 1), ("d", 8))
    }
    return respond(netlist, stimulus)


def test_gates_change_nothing_but_the_netlist(real: Library) -> None:
    body, netlist = _mapped(real, clock_gating=True)
    _, plain = _mapped(real, clock_gating=False)
    answers = _answers(netlist)
    for port, expected in _answers(plain).items():
        np.testing.assert_array_equal(answers[port], expected)
    gate = clock_gate(real)
    kinds = [cell["type"] for cell in body["cells"].values()]
    if gate is None:
        assert netlist.n_cells == plain.n_cells
        return
    # One for each of plain, enough and held_through_reset: a reset without enable stands in the way of cleared's.
    assert kinds.count(gate.name) == len(netlist.gated_nets) == 3
    behind = [
        int(np.isin(group.inputs[:, group.cell.inputs.index(group.cell.clock_pin)], netlist.gated_nets).sum())
        for group in netlist.groups
        if group.cell.is_flip_flop and group.cell.clock_pin is not None
    ]
    assert sum(behind) == 8 + LEAST_GATED + 8
    assert netlist.area < plain.area


def test_a_library_without_a_clock_gate_holds_by_multiplexers(real: Library) -> None:
    gates = [cell.name for cell in real.clock_gates()]
    without = real.without(gates)
    assert clock_gate(without) is None
    body, netlist = _mapped(without, clock_gating=True)
    assert body == _mapped(without, clock_gating=False)[0]
    assert not len(netlist.gated_nets)


@pytest.mark.parametrize("name", ["ICG", None])
def test_the_smallest_gate_that_may_be_used(tiny: Library, name: str | None) -> None:
    found = clock_gate(tiny if name else tiny.without(["ICG"]))
    assert (None if found is None else found.name) == name
