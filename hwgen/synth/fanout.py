"""Buffer trees on nets with many loads.

ABC buffers the nets that its own gates drive, but not those that come from a port or a flip-flop;
an enable of a thousand flip-flops would be one net that no cell can drive. Placement tools insert
such trees as a matter of course, so both designs get them before anything is measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hwgen.synth.library import Cell, Library

__all__ = ["LIMIT", "limit_fanout"]

LIMIT = 16
"""Most loads of one net, the clock's excepted."""


def _buffer(library: Library) -> Cell | None:
    """The buffer with the least product of area and delay at a full load; None if the library has none."""
    capacitances = [pin.capacitance for cell in library.cells.values() for pin in cell.pins.values()]
    load = LIMIT * float(np.median([value for value in capacitances if value > 0]))
    best: tuple[float, Cell] | None = None
    for cell in library.cells.values():
        if cell.dont_use or len(cell.inputs) != 1 or len(cell.outputs) != 1:
            continue
        truth = cell.truth(cell.outputs[0])
        if truth is None or list(truth) != [False, True]:
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


def limit_fanout(body: dict[str, Any], library: Library, clock: str = "clk") -> dict[str, Any]:
    """Put buffer trees on the nets of one mapped module that have more than `LIMIT` loads.

    Parameters
    ----------
    body
        Module body as in Yosys' ``write_json``, changed in place.
    library
        Gives the directions of pins and the buffer.
    clock
        Clock port, whose net stays as it is.

    Returns
    -------
    dict
        ``body``. Unchanged where the library has no buffer.
    """
    buffer = _buffer(library)
    if buffer is None:
        return body
    (input_pin,), (output_pin,) = buffer.inputs, buffer.outputs
    ideal = set(body["ports"].get(clock, {"bits": []})["bits"])
    loads: dict[int, list[tuple[list[Any], int]]] = {}
    highest = max((bit for net in body["netnames"].values() for bit in net["bits"] if isinstance(bit, int)), default=1)
    for cell in body["cells"].values():
        kind = library.cells.get(cell["type"])
        for pin, bits in cell["connections"].items():
            direction = cell["port_directions"][pin] if kind is None else kind.pins[pin].direction
            if direction == "input":
                for place, bit in enumerate(bits):
                    if isinstance(bit, int) and bit not in ideal:
                        loads.setdefault(bit, []).append((bits, place))
    count = 0
    for net, sinks in loads.items():
        while len(sinks) > LIMIT:
            # Even shares, so that no buffer is left with a single load.
            shares = np.array_split(np.arange(len(sinks)), -(-len(sinks) // LIMIT))
            heads = []
            for share in shares:
                highest += 1
                count += 1
                for index in share:
                    bits, place = sinks[index]
                    bits[place] = highest
                head = [net]
                body["cells"][f"$fanout${count}"] = {
                    "type": buffer.name,
                    "connections": {input_pin: head, output_pin: [highest]},
                }
                heads.append((head, 0))
            sinks = heads
    return body
