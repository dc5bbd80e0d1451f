"""Which flip-flops synthesis takes."""

import pytest

from hwgen.cells import reader
from hwgen.mapping.flip_flops import passed_over
from hwgen.mapping.yosys import RECIPES, synthesise

INVERTER = 'cell (INV) { area : 1; pin (A) { direction : input; } pin (Y) { direction : output; function : "!A"; } }'


def flip_flop(name, area, next_state="D", function="IQ", pins="D", output="Q", more="", clock="CK"):
    inputs = " ".join(f"pin ({pin}) {{ direction : input; }}" for pin in ("CK", *pins))
    state = f'clocked_on : "{clock}"; next_state : "{next_state}"; {more}'
    return (
        f"cell ({name}) {{ area : {area}; ff (IQ, IQN) {{ {state} }} "
        f'{inputs} pin ({output}) {{ direction : output; function : "{function}"; }} }}'
    )


def library(tmp_path, *cells):
    path = tmp_path / "some.lib"
    path.write_text("library (some) { nom_voltage : 1;\n" + "\n".join(cells) + "\n}\n")
    return reader.load(path)


def test_the_smallest_of_every_family_is_left(tmp_path):
    cells = library(
        tmp_path,
        flip_flop("D4", 14),
        flip_flop("D1", 10),
        flip_flop("D2", 12),
        flip_flop("E2", 17, "D & E | IQ & !E", pins="DE"),
        flip_flop("E1", 15, "D & E | IQ & !E", pins="DE"),
        flip_flop("R1", 11, pins="DR", more='clear : "!R";'),
        INVERTER,
    )
    assert passed_over(cells) == ["D4", "D2", "E2"]
    assert passed_over(cells.without(["D1"])) == ["D4", "E2"]
    assert passed_over(cells.without(["D*"])) == ["E2"]


@pytest.mark.parametrize(
    ("inverting", "area", "avoided"),
    [
        ({"next_state": "!D"}, 8.9, ["D1"]),
        ({"function": "IQN"}, 8.9, ["D1"]),
        ({"function": "!IQ"}, 8.9, ["D1"]),
        ({"next_state": "!D"}, 9.0, []),  # level with an inverter: the plain one
        ({"next_state": "!D"}, 11.0, []),
        ({"next_state": "!D", "function": "IQN"}, 8.9, []),  # twice inverted: not inverted
        ({"function": "IQN", "pins": "DR", "more": 'clear : "!R";'}, 8.9, []),  # takes the place of no plain one
        ({"function": "IQN", "clock": "!CK"}, 8.9, []),
    ],
)
def test_an_inverted_output_is_worth_an_inverter(tmp_path, inverting, area, avoided):
    cells = library(tmp_path, flip_flop("D1", 10), flip_flop("N1", area, output="QN", **inverting), INVERTER)
    assert passed_over(cells) == avoided
    without = library(tmp_path, flip_flop("D1", 10), flip_flop("N1", area, output="QN", **inverting))
    assert passed_over(without) == []


def test_both_outputs_count_as_one_that_is_not_inverted(tmp_path):
    both = flip_flop("B1", 8).replace("pin (Q)", 'pin (QN) { direction : output; function : "IQN"; } pin (Q)')
    cells = library(tmp_path, flip_flop("D1", 10), both, INVERTER)
    assert passed_over(cells) == []


REGISTERS = """
module registers(input clk, input [7:0] a, b, output reg [7:0] q);
  always @(posedge clk) q <= q ^ (a & b);
endmodule
"""
TAKEN = {
    "sky130hd": "sky130_fd_sc_hd__dfxtp_1",
    "sg13g2": "sg13g2_dfrbp_1",
    "asap7": "DFFHQNx1_ASAP7_75t_R",
    "generic7": "DFFQN_X1",
    "generic130": "DFF_X1",
}


def test_synthesis_takes_the_smallest_flip_flop(real, real_name):
    body = synthesise(REGISTERS, "registers", real, RECIPES["area"])
    kinds = [cell["type"] for cell in body["cells"].values()]
    assert {kind for kind in kinds if real.cells[kind].is_flip_flop} == {TAKEN[real_name]}
    assert kinds.count(TAKEN[real_name]) == 8
