"""Cells by hand: every operator, state of every kind, and what both set and reset do."""

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.power.activity import respond, simulate
from hwgen.power.logic import compile_netlist, initial, state_names


def library(tmp_path, body):
    path = tmp_path / "cells.lib"
    path.write_text(f"library (cells) {{ nom_voltage : 1; {body} }}")
    return reader.load(path)


def pins(inputs, **outputs):
    text = "".join(f"pin ({name}) {{ direction : input; }} " for name in inputs)
    return text + "".join(
        f'pin ({name}) {{ direction : output; function : "{function}"; }} ' for name, function in outputs.items()
    )


def alone(make, cells, name):
    """The netlist of one cell between ports of its pins' names."""
    cell = cells.cells[name]
    nets = {pin: place + 2 for place, pin in enumerate(cell.inputs + cell.outputs)}
    ports = {pin: ("input" if pin in cell.inputs else "output", [net]) for pin, net in nets.items()}
    return link({"t": make(ports, {"u": (name, nets)})}, "t", cells)


@pytest.mark.parametrize(
    ("function", "meaning"),
    [
        ("A & B", lambda a, b: a and b),
        ("A | B", lambda a, b: a or b),
        ("A ^ B", lambda a, b: a != b),
        ("!A | (B ^ A) & B", lambda a, b: not a or ((b != a) and b)),
        ("!(A & !(B | !A))", lambda a, b: not (a and not (b or not a))),
        ("1", lambda a, b: 1),
        ("0", lambda a, b: 0),
        ("A ^ 1", lambda a, b: not a),
        ("B", lambda a, b: b),
    ],
)
def test_every_operator(make, tmp_path, function, meaning):
    """In more streams than a machine word has bits."""
    cells = library(tmp_path, f"cell (G) {{ {pins('AB', Y=function)} }}")
    found = alone(make, cells, "G")
    bits = np.random.default_rng(1).integers(0, 2, (3, 150, 2))
    expected = [[int(meaning(*pair)) for pair in row] for row in bits.tolist()]
    stimulus = {"A": bits[:, :, 0], "B": bits[:, :, 1]}
    for outputs in (simulate(found, stimulus).outputs, respond(found, stimulus)):
        assert outputs["Y"][:, :, 0].tolist() == expected


@pytest.mark.parametrize("state", ["L", "H"])
@pytest.mark.parametrize("inverse", ["L", "H"])
def test_set_and_reset_at_once(make, tmp_path, state, inverse):
    forced = f"clear_preset_var1 : {state}; clear_preset_var2 : {inverse};"
    ff = f'ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; clear : "!R"; preset : "S"; {forced} }}'
    cells = library(tmp_path, f"cell (F) {{ {ff} {pins(['CK', 'D', 'R', 'S'], Q='IQ', N='IQN')} }}")
    found = alone(make, cells, "F")
    bits = np.random.default_rng(2).integers(0, 2, (40, 70, 3))
    seen = simulate(found, dict(zip("DRS", np.moveaxis(bits, -1, 0), strict=True))).outputs
    both = state == "H", inverse == "H"
    held = np.zeros(70, int)
    for cycle in range(40):
        data, clear, preset = bits[cycle, :, 0], bits[cycle, :, 1] == 0, bits[cycle, :, 2] == 1
        held = np.where(clear & preset, both[0], np.where(clear, 0, np.where(preset, 1, held)))
        other = np.where(clear & preset, both[1], 1 - held)
        assert seen["Q"][cycle, :, 0].tolist() == held.tolist()
        assert seen["N"][cycle, :, 0].tolist() == other.tolist()
        held = data


@pytest.mark.parametrize(
    ("function", "first", "following"),
    [
        ("D", 0, lambda d, e, q: d),
        ("!D", 1, lambda d, e, q: 1 - d),
        ("IQN", 1, lambda d, e, q: 1 - q),
        ("!IQ", 1, lambda d, e, q: 1 - q),
        ("IQ ^ D", 0, lambda d, e, q: q ^ d),
        ("(E & D) | (!E & IQ)", 0, lambda d, e, q: d if e else q),
        ("1", 1, lambda d, e, q: 1),
    ],
)
def test_what_a_flip_flop_stores(make, tmp_path, function, first, following):
    """It begins as if zeros had been clocked in."""
    body = f'ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "{function}"; }} {pins(["CK", "D", "E"], Q="IQ", N="IQN")}'
    found = alone(make, library(tmp_path, f"cell (F) {{ {body} }}"), "F")
    bits = np.random.default_rng(3).integers(0, 2, (20, 5, 2))
    seen = simulate(found, {"D": bits[:, :, 0], "E": bits[:, :, 1]})
    for stream in range(5):
        state = first
        for cycle in range(20):
            assert seen.outputs["Q"][cycle, stream, 0] == state
            assert seen.outputs["N"][cycle, stream, 0] == 1 - state
            state = int(following(*bits[cycle, stream].tolist(), state))
    assert state_names(found.groups[0].cell) == ["D", "E", "IQ"]
    # The probability of each combination of data, enable and state.
    values = bits[:, :, 0] + 2 * bits[:, :, 1] + 4 * seen.outputs["Q"][:, :, 0]
    counted = np.bincount(values.ravel(), minlength=8) / values.size
    assert seen.states[0][0].tolist() == pytest.approx(counted.tolist())


def test_rows_of_nets_registers_and_constants(make, tmp_path):
    body = f'cell (F) {{ ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "!D"; }} {pins(["CK", "D"], Q="IQ")} }}'
    found = alone(make, library(tmp_path, body), "F")
    program = compile_netlist(found)
    assert program.row[:2].tolist() == [0, 1]
    assert sorted(program.row.tolist()) == sorted(set(program.row.tolist()))
    assert program.n_rows == found.n_nets + 1  # the register's state
    values = initial(program, 2)
    assert (values[0] == 0).all()
    assert (values[1] == np.iinfo(np.uint64).max).all()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            'pin (A) { direction : input; } pin (Y) { direction : output; function : "A & B"; }',
            "uses B; expected its inp",
        ),
        ("pin (A) { direction : input; } pin (Y) { direction : output; }", "output Y of the cell G has no function"),
        (
            'ff (IQ, IQN) { clocked_on : "A"; next_state : "D"; } pin (A) { direction : input; }'
            ' pin (Y) { direction : output; function : "IQ"; }',
            "'D' of the cell G uses D; expected its inputs A",
        ),
    ],
)
def test_cells_that_cannot_be_simulated(make, tmp_path, cell, message):
    cells = library(tmp_path, f"cell (G) {{ {cell} }} cell (I) {{ {pins('A', Y='A')} }}")
    nets = {"A": 2, "Y": 3}
    ports = {"a": ("input", [2]), "b": ("input", [5]), "y": ("output", [3]), "z": ("output", [4])}
    body = make(ports, {"g": ("G", nets), "i": ("I", {"A": 5, "Y": 4})})
    with pytest.raises(InputError, match=message):
        compile_netlist(link({"t": body}, "t", cells))


def test_flip_flops_behind_clock_gates_load_where_the_enables_were_1(gated):
    d, e, f = np.random.default_rng(3).integers(0, 2, (3, 40, 130))
    outputs = respond(gated, {"d": d, "e": e, "f": f})["q"]
    state = np.zeros((130, 3), int)
    for cycle in range(40):
        assert np.array_equal(outputs[cycle], state)
        opened = np.stack([np.ones(130, int), e[cycle], e[cycle] & ~f[cycle] & 1], axis=1)
        state = np.where(opened, d[cycle][:, None], state)


def test_the_test_pin_of_a_clock_gate_opens_it(make, tiny):
    ports = {name: ("input", [place]) for place, name in enumerate(("ck", "d", "e", "s"), start=2)}
    cells = {
        "g": ("ICG", {"CK": 2, "E": 4, "SE": 5, "GCK": 7}),
        "f": ("DFF", {"CK": 7, "RN": "1", "D": 3, "Q": 6}),
    }
    found = link({"t": make({**ports, "q": ("output", [6])}, cells)}, "t", tiny)
    given = {"d": [1, 0, 1, 0, 1], "e": [0, 1, 1, 0, 0], "s": [0, 0, 0, 1, 0]}
    outputs = respond(found, {name: np.array(bits)[:, None] for name, bits in given.items()})
    assert outputs["q"].ravel().tolist() == [0, 0, 0, 1, 0]


def test_clear_reaches_a_flip_flop_whose_clock_stands_still(make, tiny):
    ports = {name: ("input", [place]) for place, name in enumerate(("ck", "d", "e", "rn"), start=2)}
    cells = {
        "g": ("ICG", {"CK": 2, "E": 4, "SE": "0", "GCK": 7}),
        "f": ("DFF", {"CK": 7, "RN": 5, "D": 3, "Q": 6}),
    }
    found = link({"t": make({**ports, "q": ("output", [6])}, cells)}, "t", tiny)
    given = {"d": [1, 0, 1, 1, 1], "e": [1, 0, 0, 0, 1], "rn": [1, 1, 0, 1, 1]}
    outputs = respond(found, {name: np.array(bits)[:, None] for name, bits in given.items()})
    assert outputs["q"].ravel().tolist() == [0, 1, 0, 0, 0]
