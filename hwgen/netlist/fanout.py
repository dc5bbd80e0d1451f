"""Buffer trees on nets with many loads.

ABC buffers the nets that its own gates drive, but not those that come from a port or a flip-flop;
an enable of a thousand flip-flops would be one net that no cell can drive. Placement tools insert
such trees as a matter of course, so both designs get them before anything is measured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hwgen.cells.cell import Cell
from hwgen.cells.library import Library
from hwgen.netlist.bodies import highest_bit

__all__ = ["LIMIT", "TREE", "Loads", "limit_fanout", "tree_buffer"]

_Sink = tuple[list[Any], int, int]

LIMIT = 16
"""Most loads of one net, the clock's and gated clocks excepted."""

TREE = "$fanout$"
"""What the names of the buffers begin with."""


def tree_buffer(library: Library) -> Cell | None:
    """The buffer with the least product of area and delay at a full load; None if the library has none."""
    return library.known(_tree_buffer)


def _tree_buffer(library: Library) -> Cell | None:
    load = LIMIT * library.pin_capacitance
    best: tuple[float, Cell] | None = None
    for cell in library.cells.values():
        if cell.dont_use or not cell.is_buffer:
            continue
        delays = [
            float(table(table.x[0], load))
            for arc in cell.pins[cell.outputs[0]].arcs
            for table in arc.delay
            if table is not None
        ]
        cost = cell.area * max(delays, default=float("inf"))
        if best is None or cost < best[0]:
            best = (cost, cell)
    return None if best is None else best[1]


@dataclass(frozen=True)
class Loads:
    """What a module brings to the nets at its ports.

    Parameters
    ----------
    ports
        Cell pins that the net at each bit of a port reaches inside the module.
    through
        Bits of output ports that are the same net as an earlier bit, of an input port or of an output port: (port,
        bit) by (port, bit).
    """

    ports: dict[str, list[int]]
    through: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)


def limit_fanout(body: dict[str, Any], library: Library, children: Mapping[str, Loads], clock: str = "clk") -> Loads:
    """Put buffer trees on the nets of one mapped module that have more than `LIMIT` loads.

    Parameters
    ----------
    body
        Module body as in Yosys' ``write_json``, changed in place; left as it is where the library has no buffer.
    library
        Gives the directions of pins and the buffer.
    children
        What the instances of other modules bring to the nets at their ports: a tree stops at no border.
    clock
        Clock port, whose net stays as it is; so do nets behind clock gates.

    Returns
    -------
    Loads
        What this module brings to the nets at its own ports.
    """
    ideal = _clocks(body, library, clock)
    # Nets that are one because a wire runs straight through an instance.
    same: dict[int, int] = {}

    def net_of(bit: int) -> int:
        while bit in same:
            bit = same[bit]
        return bit

    for cell in body["cells"].values():
        if cell["type"] in children:
            for (port, place), (source, at) in children[cell["type"]].through.items():
                behind, before = cell["connections"][port][place], cell["connections"][source][at]
                if isinstance(behind, int) and isinstance(before, int) and net_of(behind) != net_of(before):
                    same[net_of(behind)] = net_of(before)
    sinks, taken = _driven(body, library, children, ideal, net_of if same else None)
    counts = {net: _pins(found) for net, found in sinks.items()}
    buffer = tree_buffer(library)
    if buffer is not None:
        # A net that leaves keeps room for one more load, so that a buffer outside can take whatever is there.
        outputs = (port["bits"] for port in body["ports"].values() if port["direction"] == "output")
        leaving = {net_of(bit) for bits in outputs for bit in bits if isinstance(bit, int)}
        room = {net: max(LIMIT - (net in leaving) - taken.get(net, 0), 1) for net in sinks}
        over = {net: found for net, found in sinks.items() if counts[net] > room[net]}
        if over:
            _insert(body, buffer, over, room)
            counts |= {net: _pins(found) for net, found in over.items()}
    totals = {net: count + taken.get(net, 0) for net, count in counts.items()}
    reached = {
        name: [
            totals.get(net_of(bit), taken.get(net_of(bit), 0)) if isinstance(bit, int) else 0 for bit in port["bits"]
        ]
        for name, port in body["ports"].items()
    }
    entered: dict[int, tuple[str, int]] = {}
    through: dict[tuple[str, int], tuple[str, int]] = {}
    for direction in ("input", "output"):
        for name, port in body["ports"].items():
            for place, bit in enumerate(port["bits"]):
                if port["direction"] != direction or not isinstance(bit, int):
                    continue
                if net_of(bit) not in entered:
                    entered[net_of(bit)] = name, place
                elif direction == "output":
                    through[name, place] = entered[net_of(bit)]
    return Loads(reached, through)


def _driven(
    body: Mapping[str, Any],
    library: Library,
    children: Mapping[str, Loads],
    ideal: set[int],
    net_of: Callable[[int], int] | None,
) -> tuple[dict[int, list[_Sink]], dict[int, int]]:
    """Every place that a net drives, and pins that a net from inside an instance drives in there already.

    A place is the list that holds the net's number, the index in it, and how many pins are behind. ``net_of`` is None
    where every bit is a net of its own.
    """
    sinks: dict[int, list[_Sink]] = {}
    taken: dict[int, int] = {}
    for cell in body["cells"].values():
        kind = library.cells.get(cell["type"])
        if kind is not None:
            for pin, bits in cell["connections"].items():
                if kind.pins[pin].direction == "input":
                    for place, bit in enumerate(bits):
                        if isinstance(bit, int) and bit not in ideal:
                            sinks.setdefault(net_of(bit) if net_of else bit, []).append((bits, place, 1))
            continue
        inner = children[cell["type"]]
        for pin, bits in cell["connections"].items():
            direction = cell["port_directions"][pin]
            for place, (bit, pins) in enumerate(zip(bits, inner.ports[pin], strict=True)):
                if not isinstance(bit, int) or bit in ideal:
                    continue
                net = net_of(bit) if net_of else bit
                if direction == "input":
                    if pins:
                        sinks.setdefault(net, []).append((bits, place, pins))
                elif (pin, place) not in inner.through:
                    taken[net] = taken.get(net, 0) + pins
    return sinks, taken


def _pins(sinks: Iterable[_Sink]) -> int:
    """Pins behind all sinks together."""
    return sum([pins for _, _, pins in sinks])


def _clocks(body: Mapping[str, Any], library: Library, port: str) -> set[int]:
    """The nets that clock a module's cells: that of a port, and those behind clock gates."""
    found = set(body["ports"].get(port, {"bits": []})["bits"])
    for cell in body["cells"].values():
        kind = library.cells.get(cell["type"])
        if kind is not None and kind.clock_gate is not None:
            found.update(cell["connections"][kind.clock_gate.output])
    return found


def _insert(body: dict[str, Any], buffer: Cell, sinks: dict[int, list[_Sink]], room: Mapping[int, int]) -> None:
    (input_pin,), (output_pin,) = buffer.inputs, buffer.outputs
    highest = highest_bit(body)
    count = 0
    for net, found in sinks.items():
        # The largest first: what fills a buffer alone must not come behind what leaves it half empty.
        queue = deque(sorted(found, key=lambda sink: -sink[2]))
        while (excess := _pins(queue) - room[net]) > 0 and (len(queue) > 1 or queue[0][2] > 1):
            highest += 1
            count += 1
            size = 0
            # As few buffers as will do: each takes what is too much, itself included, and waits in line as one load.
            while queue and size <= excess and (not size or size + queue[0][2] <= LIMIT):
                bits, place, pins = queue.popleft()
                bits[place] = highest
                size += pins
            head = [net]
            body["cells"][f"{TREE}{count}"] = {
                "type": buffer.name,
                "connections": {input_pin: head, output_pin: [highest]},
            }
            queue.append((head, 0, 1))
        sinks[net] = list(queue)
