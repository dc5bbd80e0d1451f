import pytest

from hwgen.cells import libraries, reader
from hwgen.netlist.fanout import LIMIT, Loads, limit_fanout
from hwgen.netlist.link import link

CELLS = reader.load(libraries.path("generic7"))
INVERTER = CELLS.inverters()[0]
FLIP_FLOP = CELLS.flip_flops()[0]


def _wide(loads: int) -> dict:
    """A module in which one input drives ``loads`` inverters, each with an output of its own."""
    (pin,), (output,) = INVERTER.inputs, INVERTER.outputs
    cells = {
        f"i{number}": {"type": INVERTER.name, "connections": {pin: [2], output: [3 + number]}}
        for number in range(loads)
    }
    outputs = list(range(3, 3 + loads))
    ports = {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": outputs}}
    return {"ports": ports, "cells": cells, "netnames": {"a": {"bits": [2]}, "y": {"bits": outputs}}}


def _limited(body: dict) -> dict:
    limit_fanout(body, CELLS, {})
    return body


def _loads(body: dict, clock: str = "") -> dict[int, int]:
    count: dict[int, int] = {}
    ideal = set(body["ports"][clock]["bits"]) if clock else set()
    for cell in body["cells"].values():
        for pin in CELLS.cells[cell["type"]].inputs:
            (net,) = cell["connections"][pin]
            if net not in ideal:
                count[net] = count.get(net, 0) + 1
    return count


@pytest.mark.parametrize("loads", [1, LIMIT, LIMIT + 1, 100, LIMIT**2 + 1, 1000])
def test_no_net_has_more_loads_than_the_limit(loads: int) -> None:
    body = _limited(_wide(loads))
    assert max(_loads(body).values()) <= LIMIT
    # b buffers have b inputs themselves, and b + 1 nets share all loads.
    fewest = max(-(-(loads - LIMIT) // (LIMIT - 1)), 0)
    assert len(body["cells"]) - loads == fewest


def test_meaning_is_kept() -> None:
    import numpy as np

    from hwgen.power.activity import simulate

    netlist = link({"wide": _limited(_wide(300))}, "wide", CELLS)
    stimulus = np.random.default_rng(1).integers(0, 2, (8, 64, 1)).astype(np.uint8)
    outputs = simulate(netlist, {"a": stimulus}).outputs["y"]
    np.testing.assert_array_equal(outputs, np.broadcast_to(1 - stimulus, outputs.shape))


def test_the_clock_is_left_alone() -> None:
    (output,) = FLIP_FLOP.outputs[:1]
    clock = FLIP_FLOP.clock_pin
    others = [pin for pin in FLIP_FLOP.inputs if pin != clock]
    cells = {
        f"f{number}": {
            "type": FLIP_FLOP.name,
            "connections": {clock: [2], **{pin: [3] for pin in others}, output: [4 + number]},
        }
        for number in range(40)
    }
    ports = {"clk": {"direction": "input", "bits": [2]}, "d": {"direction": "input", "bits": [3]}}
    body = {"ports": ports, "cells": cells, "netnames": {"clk": {"bits": [2]}, "q": {"bits": [43]}}}
    limit_fanout(body, CELLS, {})
    assert all(cell["connections"][clock] == [2] for name, cell in body["cells"].items() if name.startswith("f"))
    assert max(_loads(body, "clk").values()) <= LIMIT


def _parent(loads: list[int], *, ports: dict | None = None) -> tuple[dict, dict[str, Loads]]:
    """A module whose input drives one instance for each entry of ``loads``, of that many loads."""
    children = {f"wide{size}": Loads({"a": [size], "y": [0] * size}) for size in loads}
    cells = {
        f"c{number}": {
            "type": f"wide{size}",
            "port_directions": {"a": "input", "y": "output"},
            "connections": {"a": [2], "y": list(range(100 * number + 10, 100 * number + 10 + size))},
        }
        for number, size in enumerate(loads)
    }
    body = {
        "ports": {"x": {"direction": "input", "bits": [2]}, **(ports or {})},
        "cells": cells,
        "netnames": {"x": {"bits": [2]}},
    }
    return body, children


@pytest.mark.parametrize("loads", [[16, 1], [1, 16], [1, 8, 2, 8, 2, 1], [8, 8, 2, 2, 1, 1]])
def test_the_order_of_unequal_loads_does_not_matter(loads: list[int]) -> None:
    body, children = _parent(loads)
    found = limit_fanout(body, CELLS, children)
    assert found.ports["x"][0] <= LIMIT
    assert sum(name.startswith("$fanout") for name in body["cells"]) == 1


def test_a_net_that_leaves_keeps_room_for_a_buffer_outside() -> None:
    body, children = _parent([16], ports={"z": {"direction": "output", "bits": [2]}})
    assert limit_fanout(body, CELLS, children).ports == {"x": [1], "z": [1]}
    body, children = _parent([15], ports={"z": {"direction": "output", "bits": [2]}})
    assert limit_fanout(body, CELLS, children).ports == {"x": [15], "z": [15]}


def test_two_output_bits_of_one_net_are_one_net_outside() -> None:
    (pin,), (output,) = INVERTER.inputs, INVERTER.outputs
    child = {
        "ports": {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [3, 3]}},
        "cells": {"i": {"type": INVERTER.name, "connections": {pin: [2], output: [3]}}},
        "netnames": {"a": {"bits": [2]}, "y": {"bits": [3, 3]}},
    }
    loads = {"child": limit_fanout(child, CELLS, {})}
    assert loads["child"].through == {("y", 1): ("y", 0)}
    cells = {
        f"i{number}": {"type": INVERTER.name, "connections": {pin: [10 + number % 2], output: [20 + number]}}
        for number in range(2 * LIMIT)
    }
    parent = {
        "ports": {
            "x": {"direction": "input", "bits": [2]},
            "z": {"direction": "output", "bits": list(range(20, 20 + 2 * LIMIT))},
        },
        "cells": {
            "c": {
                "type": "child",
                "port_directions": {"a": "input", "y": "output"},
                "connections": {"a": [2], "y": [10, 11]},
            },
            **cells,
        },
        "netnames": {"z": {"bits": list(range(20, 20 + 2 * LIMIT))}},
    }
    limit_fanout(parent, CELLS, loads)
    netlist = link({"child": child, "parent": parent}, "parent", CELLS)
    inner = netlist.fanout.copy()
    for port in netlist.ports.values():
        if port.direction == "output":
            inner[port.nets] -= 1
    assert inner[2:].max() <= LIMIT


def test_a_tree_counts_what_is_behind_a_border() -> None:
    child = _wide(10)
    loads = {"wide": limit_fanout(child, CELLS, {})}
    assert loads["wide"].ports["a"] == [10]
    parent = {
        "ports": {"x": {"direction": "input", "bits": [2]}},
        "cells": {
            f"c{number}": {
                "type": "wide",
                "port_directions": {"a": "input", "y": "output"},
                "connections": {"a": [2], "y": list(range(100 * number + 10, 100 * number + 20))},
            }
            for number in range(5)
        },
        "netnames": {"x": {"bits": [2]}},
    }
    # A buffer of its own for each child but one.
    assert limit_fanout(parent, CELLS, loads) == Loads({"x": [14]})
    netlist = link({"wide": child, "parent": parent}, "parent", CELLS)
    assert netlist.fanout[2:].max() <= LIMIT
