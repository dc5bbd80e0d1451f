"""Linking: hierarchy, names, and what is refused."""

import pytest

from hwgen.errors import InputError
from hwgen.netlist.link import link


@pytest.fixture(scope="module")
def hierarchy(make):
    """A top of two pairs of inverters and a NAND, with a port that passes through and constants."""
    leaf = make({"a": ("input", [5]), "y": ("output", [6])}, {"inv": ("INV", {"A": 5, "Y": 6})})
    pair = make(
        {"i": ("input", [2]), "o": ("output", [4]), "same": ("output", [2]), "one": ("output", ["1"])},
        {"first": ("leaf", {"a": 2, "y": 3}), "second": ("leaf", {"a": 3, "y": 4})},
    )
    top = make(
        {"x": ("input", [2, 3]), "y": ("output", [10, 20, "0", 30])},
        {
            "u0": ("pair", {"i": 2, "o": 10, "same": 11, "one": 12}),
            "u1": ("pair", {"i": 11, "o": 13}),
            "gate": ("NAND2", {"A": 13, "B": 12, "Y": 20}),
            "open": ("INV", {"A": "x"}),
            "tied": ("INV", {"A": 3, "Y": 30}),
            "note": ("$scopeinfo", {}),
        },
    )
    return {"leaf": leaf, "pair": pair, "top": top}


def test_hierarchy(hierarchy, tiny):
    found = link(hierarchy, "top", tiny)
    assert found.n_cells == 7
    assert found.blocks == ["top", "top/pair", "top/pair/leaf"]
    assert found.area_by_block() == {"top": 3.5, "top/pair": 0.0, "top/pair/leaf": 4.0}
    assert found.area == 7.5
    names = {found.cell_name(i): i for i in range(7)}
    assert set(names) == {
        "gate",
        "open",
        "tied",
        "u0.first.inv",
        "u0.second.inv",
        "u1.first.inv",
        "u1.second.inv",
    }
    x, y = found.ports["x"].nets, found.ports["y"].nets
    assert y[2] == 0
    assert found.net_name(int(x[1])) == "x[1]"
    assert found.net_name(1) == "constant 1"
    gate = found.groups[found.cell_group[names["gate"]]]
    (inputs,) = gate.inputs
    assert inputs[1] == 1
    assert found.driver[inputs[0]] == names["u1.second.inv"]
    assert found.driver[x].tolist() == [-1, -1]
    # x[0] feeds the first inverter of both pairs, one of them through a port that passes it on.
    assert found.fanout[x].tolist() == [2, 1]
    nets = found.names.top_nets()
    assert (nets[2], nets[11], nets[12]) == (x[0], x[0], 1)
    assert nets[20] == y[1]
    level = {name: int(found.level[i]) for name, i in names.items()}
    assert level["u1.second.inv"] == 1
    assert level["gate"] == 2
    assert found.clock_net is None


def test_clock(make, tiny):
    cells = {
        "f": ("DFF", {"CK": 2, "RN": "1", "D": 5, "Q": 4}),
        "g": ("INV", {"A": 4, "Y": 5}),
    }
    found = link({"t": make({"ck": ("input", [2]), "q": ("output", [4])}, cells)}, "t", tiny)
    assert found.clock_port == "ck"
    assert found.level.tolist() == [0, 1]


def test_clock_gates(gated):
    assert gated.clock_port == "ck"
    names = {gated.cell_name(cell): cell for cell in range(gated.n_cells)}
    first, second = names["g1"], names["g2"]
    assert [int(gated.driver[net]) for net in gated.gated_nets] == sorted([first, second])
    assert gated.clock_nets.tolist() == sorted([gated.clock_net, *gated.gated_nets.tolist()])
    # The second gate is behind the first, and behind the inverter of its enable.
    assert (gated.level[first], gated.level[second]) == (0, 1)
    assert all(gated.level[names[f"f{number}"]] == 0 for number in range(3))


def refused(cells, ports=None):
    return {"a": ("input", [2]), "b": ("input", [3]), "y": ("output", [4])} if ports is None else ports, cells


BAD = {
    "unknown type": (refused({"c": ("$add", {})}), r"cell c of module t has the type \$add"),
    "open input": (refused({"c": ("INV", {"Y": 4})}), "pin A of cell c .* is open"),
    "high impedance": (refused({"c": ("INV", {"A": "z", "Y": 4})}), "pin A of cell c .* is open"),
    "no such pin": (refused({"c": ("INV", {"A": 2, "Y": 4, "Z": 5})}), "has no pin Z; expected A, Y"),
    "constant driven": (
        refused({"c": ("INV", {"A": 2, "Y": "0"})}),
        "output Y of cell c .* drives a constant",
    ),
    "two drivers": (
        refused({"c": ("INV", {"A": 2, "Y": 4}), "d": ("INV", {"A": 3, "Y": 4})}),
        "net y of t has several drivers",
    ),
    "input driven": (refused({"c": ("INV", {"A": 2, "Y": 3})}), "net b of t has several drivers"),
    "undriven": (refused({"c": ("INV", {"A": 9, "Y": 4})}), "is used but not driven"),
    "undriven output": (refused({}), "net y of t is used but not driven"),
    "latch": (refused({"c": ("LATCH", {"G": 2, "D": 3, "Q": 4})}), "cell c is a LATCH, a latch"),
    "three-state": (refused({"c": ("TRI", {"A": 2, "E": 3, "Z": 4})}), "cell c is a TRI, with a three-state"),
    "two clocks": (
        refused(
            {
                "c": ("DFF", {"CK": 2, "RN": "1", "D": 3, "Q": 4}),
                "d": ("DFF", {"CK": 3, "RN": "1", "D": 2, "Q": 5}),
            }
        ),
        r"2 clock nets: .*a \(at c\).*; expected one",
    ),
    "gated clock": (
        refused({"c": ("DFF", {"CK": 5, "RN": "1", "D": 3, "Q": 4}), "d": ("INV", {"A": 2, "Y": 5})}),
        "is not an input port",
    ),
    "gates of two clocks": (
        refused(
            {
                "c": ("ICG", {"CK": 2, "E": 3, "SE": "0", "GCK": 5}),
                "d": ("DFF", {"CK": 5, "RN": "1", "D": 3, "Q": 4}),
                "e": ("DFF", {"CK": 3, "RN": "1", "D": 2, "Q": 6}),
            }
        ),
        r"2 clock nets: .*a \(at [cd]\).*; expected one",
    ),
    "gates in a ring": (
        refused(
            {
                "c": ("ICG", {"CK": 6, "E": 3, "SE": "0", "GCK": 5}),
                "d": ("ICG", {"CK": 5, "E": 3, "SE": "0", "GCK": 6}),
                "e": ("DFF", {"CK": 5, "RN": "1", "D": 3, "Q": 4}),
            }
        ),
        "2 clock nets: .*; expected one",
    ),
    "gate of itself": (
        refused({"c": ("ICG", {"CK": 4, "E": 3, "SE": "0", "GCK": 4})}),
        "the clock y of t is not an input port; expected one",
    ),
    "gated clock as data": (
        refused(
            {
                "c": ("ICG", {"CK": 2, "E": 3, "SE": "0", "GCK": 5}),
                "d": ("INV", {"A": 5, "Y": 4}),
            }
        ),
        "pin A of cell d is on the gated clock",
    ),
    "gated clock leaves": (refused({"c": ("ICG", {"CK": 2, "E": 3, "SE": "0", "GCK": 4})}), "port y is a gated clock"),
    "inout port": (refused({}, {"p": ("inout", [2])}), "port p of t is inout"),
    "itself": (refused({"c": ("t", {"a": 2})}), "module t contains itself"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(make, tiny, case):
    (ports, cells), message = BAD[case]
    with pytest.raises(InputError, match=message):
        link({"t": make(ports, cells)}, "t", tiny)


def test_bad_instances(make, tiny):
    leaf = make({"a": ("input", [2, 3]), "y": ("output", [4])}, {"i": ("NAND2", {"A": 2, "B": 3, "Y": 4})})
    ports = {"a": ("input", [2]), "y": ("output", [3])}
    for cells, message in (
        ({"u": ("leaf", {"a": [2], "y": 3})}, "port a of leaf is 2 bits wide, not 1"),
        ({"u": ("leaf", {"nope": 2, "y": 3})}, "module leaf has no port nope"),
        ({"u": ("leaf", {"a": [2], "y": 3})}, "instance u"),
    ):
        with pytest.raises(InputError, match=message):
            link({"leaf": leaf, "t": make(ports, cells)}, "t", tiny)
    with pytest.raises(InputError, match="no module other"):
        link({"leaf": leaf}, "other", tiny)


def test_loop(make, tiny):
    cells = {
        "before": ("INV", {"A": 2, "Y": 3}),
        "p": ("NAND2", {"A": 3, "B": 6, "Y": 4}),
        "q": ("INV", {"A": 4, "Y": 5}),
        "r": ("INV", {"A": 5, "Y": 6}),
        "after": ("INV", {"A": 6, "Y": 7}),
    }
    found = link({"t": make({"a": ("input", [2]), "y": ("output", [7])}, cells)}, "t", tiny)
    with pytest.raises(InputError, match=r"combinational loop in t through (p, q, r|q, r, p|r, p, q); expected"):
        found.level.max()
