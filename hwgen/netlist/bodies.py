"""Bodies of mapped modules that are changed: copies of their cells, and bits that nothing has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["copied_cells", "highest_bit"]


def copied_cells(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The cells of a module by name, with connections of their own.

    Parameters
    ----------
    body
        Module body as in Yosys' ``write_json``; left as it is, whatever becomes of the copy.
    """
    return {
        name: {**cell, "connections": {pin: [*bits] for pin, bits in cell["connections"].items()}}
        for name, cell in body["cells"].items()
    }


def highest_bit(body: Mapping[str, Any]) -> int:
    """The highest number of a bit that a module has, 1 at least: all above are free for new nets."""
    bits: set[Any] = set()
    for net in body["netnames"].values():
        bits.update(net["bits"])
    for cell in body["cells"].values():
        bits.update(*cell["connections"].values())
    return max([1, *(bit for bit in bits if isinstance(bit, int))])
