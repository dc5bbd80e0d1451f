"""Static timing on cases small enough to compute by hand."""

import math

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.timing import analysis as timing


@pytest.fixture(scope="module")
def pipeline(make, tiny):
    """An inverter before and one after a flip-flop."""
    body = make(
        {"ck": ("input", [2]), "a": ("input", [3]), "y": ("output", [6])},
        {
            "u1": ("INV", {"A": 3, "Y": 4}),
            "f": ("DFF", {"CK": 2, "RN": "1", "D": 4, "Q": 5}),
            "u2": ("INV", {"A": 5, "Y": 6}),
        },
    )
    return link({"t": body}, "t", tiny)


def test_by_hand(pipeline):
    found = timing.analyse(pipeline, clock_period=2.0, input_slew=0.0, output_load=5.0, wire_load=1.0, clock_slew=0.5)
    # u1 drives 2 fF of D and 1 fF of wire: 0.2 + 0.03 * 3 falling, slew 0.2 + 0.02 * 3.
    setup = 0.2 + 0.2 * 0.26 + 0.1 * 0.5
    assert found.delays["in_to_reg"] == pytest.approx(0.29 + setup)
    # Q rises after 0.5 + 0.1 * 0.5 + 0.02 * 3 with slew 0.16; u2 drives the port and its wire, 6 fF.
    assert found.delays["reg_to_out"] == pytest.approx(0.61 + 0.2 + 0.1 * 0.16 + 0.03 * 6)
    assert set(found.delays) == {"in_to_reg", "reg_to_out"}
    assert found.delay == found.delays["reg_to_out"]
    assert found.slack == pytest.approx(2.0 - found.delay)
    assert [(step.cell, step.arc) for step in found.path] == [
        ("f", "CK rise -> Q rise"),
        ("u2", "A rise -> Y fall"),
    ]
    assert [step.arrival for step in found.path] == pytest.approx([0.61, found.delay])
    assert [step.load for step in found.path] == [3.0, 6.0]
    assert {step.block for step in found.path} == {"t"}
    assert [step.arc for step in found.paths["in_to_reg"]] == [
        "rise at the port",
        "A rise -> Y fall",
        "setup D fall",
    ]
    net = pipeline.ports["y"].nets[0]
    assert found.slew[net] == pytest.approx([0.1 + 0.04 * 6, 0.2 + 0.02 * 6])


def test_clock_gates(gated):
    found = timing.analyse(gated, input_slew=0.5, output_load=5.0, wire_load=1.0, clock_slew=0.5)
    # Gated clocks come as the clock does, so that all three flip-flops are alike; the net of d carries 3 pins.
    setup = 0.2 + 0.2 * 0.5 + 0.1 * 0.5
    assert found.delays["in_to_reg"] == pytest.approx(setup)
    assert found.delays["reg_to_out"] == pytest.approx(0.5 + 0.1 * 0.5 + 0.02 * 6)
    # The inverter drives 2 fF of E and 1 fF of wire, with the slew of the port; falling, it is slower and takes longer.
    falling = 0.2 + 0.1 * 0.5 + 0.03 * 3
    assert found.delays["in_to_gate"] == pytest.approx(falling + 0.4 + 0.2 * (0.2 + 0.02 * 3) + 0.1 * 0.5)
    assert [step.cell for step in found.paths["in_to_gate"]] == ["f", "u", "g2"]
    assert found.paths["in_to_gate"][-1].arc == "setup E fall"
    assert set(found.delays) == {"in_to_reg", "reg_to_out", "in_to_gate"}
    assert [step.cell for step in found.paths["reg_to_out"]] in (["f0"], ["f1"], ["f2"])
    assert np.all(found.slew[gated.clock_nets] == 0.5)


def test_edges_and_constants(make, tiny):
    body = make(
        {"a": ("input", [2]), "y": ("output", [4])},
        {"n": ("NAND2", {"A": 2, "B": "1", "Y": 3}), "m": ("NAND2", {"A": 3, "B": 2, "Y": 4})},
    )
    found = timing.analyse(link({"t": body}, "t", tiny), input_slew=1.0, output_load=0.0, wire_load=0.0, clock_slew=0.0)
    # The net between them carries 2 fF rising, 4 fF falling.
    rise, fall = 0.2 + 0.02 * 2, 0.2 + 0.02 * 4
    slew_rise, slew_fall = 0.1 + 0.04 * 2, 0.1 + 0.04 * 4
    after = max(rise + 0.1 + 0.1 * slew_rise, fall + 0.1 + 0.1 * slew_fall)
    assert found.delays == {"in_to_out": pytest.approx(after)}
    assert found.path[-1].arc == "A fall -> Y rise"


def test_defaults(pipeline, tiny):
    found = timing.analyse(pipeline)
    # No wire model in the library: 0.15 fF/um, ten pitches of a NAND2 of 1.5 um2 at 70 %.
    assert found.wire_load == pytest.approx(1.5 * math.sqrt(1.5 / 0.7))
    assert found.output_load == 8.0
    load = 4 * (2 + found.wire_load)
    assert found.input_slew == pytest.approx((0.1 + 0.04 * load + 0.2 + 0.02 * load) / 2)
    assert found.clock_slew == found.input_slew
    assert found.slack is None


def test_nothing_to_time(make, tiny):
    body = make({"a": ("input", [2]), "y": ("output", ["1"])}, {})
    found = timing.analyse(link({"t": body}, "t", tiny))
    assert found.delay == 0.0
    assert found.path == []
    body = make({"a": ("input", [2]), "y": ("output", [2])}, {})
    found = timing.analyse(link({"t": body}, "t", tiny))
    assert found.delays == {"in_to_out": 0.0}


@pytest.mark.parametrize("name", ["wire_load", "input_slew", "output_load", "clock_slew", "clock_period"])
def test_bad_parameters(pipeline, name):
    with pytest.raises(InputError, match=f"{name} is -1"):
        timing.analyse(pipeline, **{name: -1.0})
