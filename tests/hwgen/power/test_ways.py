"""Delays by state: by hand, on cells with conditions and with outputs that follow other outputs."""

import numpy as np
import pytest

from hwgen.netlist.link import link
from hwgen.power import glitch
from hwgen.power.ways import clocked_ways, ways_of
from hwgen.timing import analysis as timing


def texts(ways):
    """Sets of ways as text."""
    edges = "rf"
    return [
        {" ".join(f"{s.source}{edges[s.cause]}>{s.target}{edges[s.edge]}" for s in way) for way in choice}
        for choice in ways.choices
    ]


def test_a_sum_follows_its_carry_where_both_change(following):
    ways = ways_of(following, "HA_X1", "SN")
    found, pick = texts(ways), ways.pick
    assert ways.inputs == ["A", "B"]
    # Row 1: A is 1 and B is 0. B rises into row 3, and falls into row 1.
    assert found[pick[1, 3]] == {"Br>CONf CONf>SNr"}
    assert found[pick[1, 1]] == {"Bf>CONr CONr>SNf"}
    assert found[pick[0, 3]] == {"Ar>CONf CONf>SNr"}
    # Where the other operand is 0, the carry stays.
    assert found[pick[0, 1]] == {"Ar>SNf"}
    assert found[pick[0, 0]] == {"Af>SNr"}
    (way,) = ways.choices[pick[0, 1]]
    assert way[0].when.text == "!B"
    # B has an arc without a condition alone.
    (way,) = ways.choices[pick[1, 2]]
    assert way[0].when is None
    # The condition is that of the state before: A and not B, then B rises.
    (way,) = ways.choices[pick[1, 3]]
    assert way[1].when.text == "A * !B"
    # For a carry that rises, the library has no condition.
    (way,) = ways.choices[pick[1, 1]]
    assert way[1].when is None


def test_an_inverse_output_follows(following):
    cell = following.cells["DFF"]
    assert [[step.target for step in way] for way in clocked_ways(cell, "QN", 0)] == [["Q", "QN"]]
    (way,) = clocked_ways(cell, "QN", 1)
    assert [(step.cause, step.edge) for step in way] == [(0, 0), (0, 1)]


def test_delays_by_hand(make, following):
    """The sum comes later where it waits for a carry that is loaded; without glitches here."""
    ports = {"a": ("input", [2]), "b": ("input", [3]), "c": ("output", [4]), "s": ("output", [5])}
    netlist = link({"t": make(ports, {"u": ("HA_X1", {"A": 2, "B": 3, "CON": 4, "SN": 5})})}, "t", following)
    result = timing.analyse(netlist, input_slew=0.0, output_load=4.0, wire_load=0.0, clock_slew=0.0)
    gates = glitch.Gates(netlist, result)
    a, b, carry, total = (int(netlist.ports[name].nets[0]) for name in "abcs")
    states = np.zeros((5, 2), np.uint8)
    at = {net: place for place, net in enumerate(gates.sources.tolist())}
    for cycle, (one, other) in enumerate([(0, 0), (1, 0), (1, 1), (1, 0), (0, 0)]):
        states[cycle, at[a]], states[cycle, at[b]] = one, other
    times = {(cycle, net): time for cycle, time, net in gates.events(states) if net in (carry, total)}
    # The carry drives 4 fF: 0.1 + 0.02 * 4. Its slew is 0.1 + 0.03 * 4 falling, 0.1 + 0.05 * 4 rising.
    assert times == pytest.approx(
        {
            (1, total): 0.34,
            (2, carry): 0.18,
            (2, total): 0.18 + 0.2 + 0.1 * 0.22 + 0.02 * 4,
            (3, carry): 0.18,
            (3, total): 0.18 + 0.2 + 0.2 * 0.3 + 0.01 * 4,
            (4, total): 0.33,
        },
        rel=1e-5,
    )
