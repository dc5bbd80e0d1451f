"""One core that holds many mutants; an input says which of them it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.mutate.operators import OWN, Mutant
from sim.mutate.rtlil import Cell, cells, ports

__all__ = ["SELECT", "SELECT_WIDTH", "planted"]

SELECT = "mutant"
"""Input of every module: the number of a mutant, from 1 in the order given; 0 is the core as it is."""
SELECT_WIDTH = 16


def _named(copy: str, name: str, output: str) -> str:
    kind, _, rest = copy.partition("\n")
    return f"  cell {kind} {name}\n{rest}\n    connect \\Y {output}\n  end"


def _chooser(name: str, width: int, faultless: str, faulty: str, number: int, output: str) -> list[str]:
    select = f"$is_{name[1:]}"
    return [
        f"  wire {select}",
        f"  cell $eq $eq_{name[1:]}",
        *("    parameter \\A_SIGNED 0", f"    parameter \\A_WIDTH {SELECT_WIDTH}"),
        *("    parameter \\B_SIGNED 0", f"    parameter \\B_WIDTH {SELECT_WIDTH}", "    parameter \\Y_WIDTH 1"),
        f"    connect \\A \\{SELECT}",
        f"    connect \\B {SELECT_WIDTH}'{number:0{SELECT_WIDTH}b}",
        f"    connect \\Y {select}",
        "  end",
        f"  cell $mux {name}",
        f"    parameter \\WIDTH {width}",
        f"    connect \\A {faultless}",
        f"    connect \\B {faulty}",
        f"    connect \\S {select}",
        f"    connect \\Y {output}",
        "  end",
    ]


def _own_cell(cell: Cell, numbered: Mapping[int, Mutant]) -> list[str]:
    """A cell whose output is that of a mutant where it is chosen."""
    width = cell.width("Y" if "Y_WIDTH" in cell.parameters else "WIDTH")
    target = cell.connections["Y"]
    own = f"$own_{min(numbered)}"
    lines = [f"  wire width {width} {own}", cell.text.replace(f"connect \\Y {target}\n", f"connect \\Y {own}\n")]
    signal = own
    for number, mutant in numbered.items():
        faultless = own
        if mutant.copy:
            faultless = f"$faulty_{number}"
            lines += [f"  wire width {width} {faultless}"]
            lines += [_named(mutant.copy.replace(OWN, own), f"$copy_{number}", faultless)]
        following = target if number == max(numbered) else f"$after_{number}"
        if following != target:
            lines.append(f"  wire width {width} {following}")
        faulty = mutant.signals["Y"].replace(OWN, faultless)
        lines += _chooser(f"$choose_{number}", width, signal, faulty, number, following)
        signal = following
    return lines


def _instance(cell: Cell, numbered: Mapping[int, Mutant], widths: Mapping[str, int]) -> list[str]:
    """An instance whose inputs are those of a mutant where it is chosen."""
    lines: list[str] = []
    text = cell.text
    signals = dict(cell.connections)
    for number, mutant in numbered.items():
        for index, (port, faulty) in enumerate(mutant.signals.items()):
            following = f"$after_{number}_{index}"
            lines.append(f"  wire width {widths[port]} {following}")
            lines += _chooser(f"$choose_{number}_{index}", widths[port], signals[port], faulty, number, following)
            signals[port] = following
    for port, signal in cell.connections.items():
        text = text.replace(f"    connect \\{port} {signal}\n", f"    connect \\{port} {signals[port]}\n")
    return [*lines, text]


def planted(texts: Mapping[str, str], mutants: Sequence[Mutant]) -> dict[str, str]:
    """Put all mutants into a core.

    Parameters
    ----------
    texts
        Its modules, see `sim.mutate.rtlil.lowered`.
    mutants
        At most 65535 of them.

    Returns
    -------
    dict of str
        The modules, every one with the input `SELECT`; with 0 there they do what they did.
    """
    assert len(mutants) < 1 << SELECT_WIDTH
    by_cell: dict[tuple[str, str], dict[int, Mutant]] = {}
    for number, mutant in enumerate(mutants, start=1):
        by_cell.setdefault((mutant.module, mutant.cell), {})[number] = mutant
    changed, missing = {}, set(by_cell)
    for module, text in texts.items():
        head, _, body = text.partition("\n")
        for cell in cells(text):
            numbered = by_cell.get((module, cell.name), {})
            missing.discard((module, cell.name))
            if cell.kind[1:] in texts:
                widths = {port.name[1:]: port.width for port in ports(texts[cell.kind[1:]])}
                lines = "\n".join(_instance(cell, numbered, widths))
                lines = lines[: -len("  end")] + f"    connect \\{SELECT} \\{SELECT}\n  end"
            elif numbered:
                lines = "\n".join(_own_cell(cell, numbered))
            else:
                continue
            body = body.replace(cell.text, lines, 1)
        count = len(ports(text)) + 1
        changed[module] = f"{head}\n  wire width {SELECT_WIDTH} input {count} \\{SELECT}\n{body}"
    assert not missing, f"no such cells: {missing}"
    return changed
