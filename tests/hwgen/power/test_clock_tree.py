"""The clock tree on both sides of every level, computed by hand."""

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.netlist.link import link
from hwgen.power.clock_tree import clock_tree
from hwgen.timing import analysis as timing
from hwgen.timing.wires import Wires

GATE = """
  cell (GATE) {
    area : 4; clock_gating_integrated_cell : "latch_posedge";
    pin (CK) { direction : input; clock_gate_clock_pin : true; capacitance : 5; }
    pin (E) { direction : input; clock_gate_enable_pin : true; capacitance : 2; }
    pin (G) { direction : output; clock_gate_out_pin : true; }
  }
"""
FLIP_FLOP = """
  cell (%s) {
    area : 4;
    ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; }
    pin (CK) { direction : input; clock : true; capacitance : %g; }
    pin (D) { direction : input; capacitance : 2; }
    pin (Q) { direction : output; function : "IQ"; }
  }
"""
LIBRARY = f"""
library (clocked) {{
  time_unit : "1ns"; voltage_unit : "1V"; leakage_power_unit : "1nW"; capacitive_load_unit (1, ff); nom_voltage : 2;
  power_lut_template (energy) {{
    variable_1 : input_transition_time; variable_2 : total_output_net_capacitance;
    index_1 ("0, 1"); index_2 ("0, 10");
  }}
  cell (BUF) {{
    area : 1;
    pin (A) {{
      direction : input; capacitance : 3;
      internal_power () {{
        when : "A"; related_pg_pin : "VDD";
        rise_power (scalar) {{ values ("1"); }} fall_power (scalar) {{ values ("1"); }}
      }}
      internal_power () {{
        when : "!A"; related_pg_pin : "VDD";
        rise_power (scalar) {{ values ("4"); }} fall_power (scalar) {{ values ("2"); }}
      }}
    }}
    pin (Y) {{
      direction : output; function : "A";
      internal_power () {{
        related_pin : "A"; related_pg_pin : "VDD";
        rise_power (energy) {{ values ("1, 2", "2, 3"); }} fall_power (scalar) {{ values ("2"); }}
      }}
      internal_power () {{
        related_pin : "A"; related_pg_pin : "VSS";
        rise_power (scalar) {{ values ("0.5"); }} fall_power (scalar) {{ values ("0.25"); }}
      }}
    }}
  }}
  {FLIP_FLOP % ("SMALL", 1)}
  {FLIP_FLOP % ("LARGE", 2)}
  {GATE}
}}
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    path = tmp_path_factory.mktemp("clocked") / "clocked.lib"
    path.write_text(LIBRARY)
    return reader.load(path)


def tree(make, cells, small, large=0):
    """fJ per cycle of the whole tree over that many flip-flops of each kind."""
    sinks = small + large
    flip_flops = {
        f"f{number}": ("SMALL" if number < small else "LARGE", {"CK": 2, "D": 3, "Q": 4 + number})
        for number in range(sinks)
    }
    ports = {"ck": ("input", [2]), "d": ("input", [3]), "q": ("output", list(range(4, 4 + sinks)))}
    found = link({"t": make(ports, flip_flops)}, "t", cells)
    result = timing.analyse(found, input_slew=0.0, output_load=0.0, wire_load=1.0, clock_slew=0.5)
    return clock_tree(found, result).sink_fj[found.clock_net] * sinks


def buffer(load):
    """fJ of one buffer that drives so many fF.

    The input's tables: the mean of 1 + 1 and 4 + 2. The output's: 1 + 0.5 ns + load / 10 rising and 2 falling, and 0.75
    of the other supply. The input's charge: 3 fF of pin and 1 fF of wire over 2 V.
    """
    return 4.0 + (1.5 + load / 10 + 2.0) + 0.75 + 4 * 2**2


@pytest.mark.parametrize(
    ("sinks", "expected"),
    [
        (1, 0.0),
        (16, 0.0),  # the port drives them
        (17, 2 * buffer(17 * 2 / 2)),  # 17 pins of 1 fF with 1 fF of wire, on two buffers
        (32, 2 * buffer(32 * 2 / 2)),
        (33, 3 * buffer(33 * 2 / 3)),
        (255, 16 * buffer(255 * 2 / 16)),
        (256, 16 * buffer(256 * 2 / 16)),
        (257, 17 * buffer(257 * 2 / 17) + 2 * buffer(17 * 4 / 2)),  # a second level, whose loads are buffers
        (512, 32 * buffer(512 * 2 / 32) + 2 * buffer(32 * 4 / 2)),
        (513, 33 * buffer(513 * 2 / 33) + 3 * buffer(33 * 4 / 3)),
    ],
)
def test_by_hand(make, cells, sinks, expected):
    assert tree(make, cells, sinks) == pytest.approx(expected, rel=1e-12)


def test_flip_flops_of_two_kinds_load_it_by_their_mean(make, cells):
    # 12 pins of 1 fF and 8 of 2 fF, each with 1 fF of wire.
    assert tree(make, cells, 12, 8) == pytest.approx(2 * buffer((12 * 2 + 8 * 3) / 2), rel=1e-12)


def test_a_gate_is_one_load_of_the_tree_before_it_and_has_one_of_its_own(make, cells):
    plain = {f"p{number}": ("SMALL", {"CK": 2, "D": 3, "Q": 100 + number}) for number in range(16)}
    behind = {f"b{number}": ("LARGE", {"CK": 4, "D": 3, "Q": 200 + number}) for number in range(20)}
    few = {f"f{number}": ("SMALL", {"CK": 5, "D": 3, "Q": 300 + number}) for number in range(4)}
    gates = {f"g{net}": ("GATE", {"CK": 2, "E": 3, "G": net}) for net in (4, 5)}
    ports = {"ck": ("input", [2]), "d": ("input", [3])}
    found = link({"t": make(ports, {**plain, **behind, **few, **gates})}, "t", cells)
    result = timing.analyse(found, input_slew=0.0, output_load=0.0, wire_load=1.0, clock_slew=0.5)
    tree = clock_tree(found, result)
    nets = {found.cell_name(int(found.driver[net])): net for net in found.gated_nets}
    # 16 pins of 1 fF and two gates of 5 fF, each with 1 fF of wire, on two buffers.
    assert tree.sink_fj[found.clock_net] * 18 == pytest.approx(2 * buffer((16 * 2 + 2 * 6) / 2), rel=1e-12)
    assert tree.root_load[found.clock_net] == 2 * (3 + 1)
    assert tree.sink_fj[nets["g4"]] * 20 == pytest.approx(2 * buffer(20 * 3 / 2), rel=1e-12)
    assert tree.root_load[nets["g4"]] == 2 * (3 + 1)
    assert tree.sink_fj[nets["g5"]] == 0.0
    assert tree.root_load[nets["g5"]] == 4 * (1 + 1)
    others = np.setdiff1d(np.arange(found.n_nets), found.clock_nets)
    assert not tree.sink_fj[others].any()
    assert not tree.root_load[others].any()


def test_the_wire_of_a_placement_is_that_of_all_levels(make, cells):
    """It is the clock's: flip-flops bring their share of it, buffers none of their own."""
    flip_flops = {f"f{number}": ("SMALL", {"CK": 2, "D": 3, "Q": 4 + number}) for number in range(257)}
    ports = {"ck": ("input", [2]), "d": ("input", [3]), "q": ("output", list(range(4, 261)))}
    found = link({"t": make(ports, flip_flops)}, "t", cells)
    capacitance = np.zeros(found.n_nets)
    capacitance[found.clock_net] = 2.0 * 257
    wires = Wires(capacitance, np.zeros(found.n_nets), "placed")
    result = timing.analyse(found, input_slew=0.0, output_load=0.0, clock_slew=0.5, wires=wires)
    tree = clock_tree(found, result)
    unwired = -1 * 2**2  # `buffer` charges 1 fF of wire over 2 V
    expected = 17 * (buffer(257 * 3 / 17) + unwired) + 2 * (buffer(17 * 3 / 2) + unwired)
    assert tree.sink_fj[found.clock_net] * 257 == pytest.approx(expected, rel=1e-12)
    assert tree.root_load[found.clock_net] == 2 * 3


def test_nothing_without_flip_flops_or_buffers(make, cells, tiny):
    found = link({"t": make({"a": ("input", [2]), "y": ("output", [3])}, {"u": ("BUF", {"A": 2, "Y": 3})})}, "t", cells)
    assert not clock_tree(found, timing.analyse(found)).sink_fj.any()
    flip_flops = {f"f{number}": ("DFF", {"CK": 2, "RN": "1", "D": 3, "Q": 4 + number}) for number in range(40)}
    ports = {"ck": ("input", [2]), "d": ("input", [3]), "q": ("output", list(range(4, 44)))}
    found = link({"t": make(ports, flip_flops)}, "t", tiny)  # a library without buffers
    assert not clock_tree(found, timing.analyse(found)).sink_fj.any()


def test_a_real_library_is_in_a_plausible_range(mac):
    result = timing.analyse(mac)
    sinks = sum(len(group.cells) for group in mac.groups if group.cell.sequential is not None)
    assert sinks > 64
    each = clock_tree(mac, result).sink_fj[mac.clock_net]
    pin = max(
        group.cell.pins[group.cell.clock_pin].capacitance for group in mac.groups if group.cell.sequential is not None
    )
    clock = mac.library.voltage**2 * (pin + result.wire_load)
    assert 0.02 * clock < each < 3 * clock
