"""Wires of a module that depend on one of its cells: what a fault in that cell may reach."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import lru_cache

from sim.mutate.rtlil import Cell, cells, ports

__all__ = ["frontier", "reached", "steered_by"]

_CONTROL = re.compile(r"\\(\w+_valid|waiting|block__ready)")
"""Names of the wires by which blocks move through a quantiser."""

_WIRE = re.compile(r"[\\$][^\s\[\]{}]+")
_CONNECT = re.compile(r"^  connect (\{[^}]*\}|\S+(?: \[[\d:]+\])?) (.+)$", re.MULTILINE)


def reached(texts: Mapping[str, str], module: str, cell: str) -> set[str]:
    """Whole wires of a module that depend on a cell's outputs, through cells, registers and instances.

    Parameters
    ----------
    texts
        All modules, see `sim.mutate.rtlil.lowered`; of an instance every output depends on every input.
    module, cell
        The module, and the name of the cell as it is written.
    """
    return _closure(texts, module, cell, registers=True)


def frontier(texts: Mapping[str, str], module: str, cell: str) -> set[str]:
    """Registers and outputs of a module that a cell's outputs come to first, whole wires; arguments as of `reached`.

    What a fault in the cell does beyond it, it does through one of these.
    """
    found = _closure(texts, module, cell, registers=False)
    held = [each.connections for each in cells(texts[module]) if "Q" in each.connections]
    behind = {name for each in held for name in _wires(each["Q"]) if found & _inputs(each, {"Q"})}
    return behind | (found & {port.name for port in ports(texts[module]) if not port.is_input})


def _closure(texts: Mapping[str, str], module: str, cell: str, *, registers: bool) -> set[str]:
    """Wires that depend on a cell, through registers or not."""
    drives: list[tuple[Set[str], Set[str]]] = [
        (_wires(source), _wires(target)) for target, source in _CONNECT.findall(texts[module])
    ]
    found: set[str] = set()
    for each in cells(texts[module]):
        outputs = _outputs(texts, each)
        targets = {name for port in outputs for name in _wires(each.connections.get(port, ""))}
        if registers or "Q" not in outputs:
            drives.append((_inputs(each.connections, outputs), targets))
        if each.name == cell:
            found = targets
    while True:
        further = {name for sources, targets in drives if sources & found for name in targets}
        if further <= found:
            return found
        found |= further


def _inputs(connections: Mapping[str, str], outputs: set[str]) -> set[str]:
    return {name for port, signal in connections.items() if port not in outputs for name in _wires(signal)}


def steered_by(texts: Mapping[str, str], module: str) -> set[str]:
    """Wires of a module by which its registers and those of its instances load, and which say where blocks are."""
    found: set[str] = set()
    for each in cells(texts[module]):
        for port, signal in each.connections.items():
            selects = port == "S" and each.name.startswith("$procmux")
            if selects or port.startswith("enable_"):
                found |= _wires(signal)
            found |= {name for name in _wires(signal) if _CONTROL.fullmatch(name)}
    return found


@lru_cache(maxsize=100_000)
def _wires(signal: str) -> frozenset[str]:
    return frozenset(_WIRE.findall(signal))


def _outputs(texts: Mapping[str, str], cell: Cell) -> set[str]:
    if cell.kind.startswith("\\"):
        return {port.name[1:] for port in ports(texts[cell.kind[1:]]) if not port.is_input}
    return {"Y", "Q"} & cell.connections.keys()
