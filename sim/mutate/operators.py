"""Mutation operators: what could be wrong with one cell or one instance of a core."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sim.mutate.rtlil import Cell, Port, cells, ports

__all__ = ["OPERATORS", "OWN", "Mutant", "mutants"]

OWN = "@own"
"""Stands for what the cell itself gives."""

_REPLACED = {
    "$and": "$or",
    "$or": "$and",
    "$xor": "$or",
    "$add": "$sub",
    "$sub": "$add",
    "$mul": "$add",
    "$eq": "$ne",
    "$ne": "$eq",
    "$gt": "$ge",
    "$ge": "$gt",
    "$lt": "$le",
    "$le": "$lt",
    "$reduce_or": "$reduce_and",
    "$reduce_bool": "$reduce_and",
    "$reduce_and": "$reduce_or",
    "$shl": "$shr",
    "$shr": "$shl",
}
_NEUTRAL = {"$and": "1", "$or": "0", "$xor": "0", "$add": "0", "$sub": "0", "$mul": "1"}
_UNARY = ("$not", "$neg", "$reduce_or", "$reduce_and", "$reduce_bool", "$logic_not", "$pos")
_ORDERED = ("$sub", "$gt", "$ge", "$lt", "$le", "$shl", "$shr")
_ARITHMETIC = ("$add", "$sub", "$mul", "$neg")
_CONSTANT = re.compile(r"(?<![\w'])(\d+)'([01]+)(?!\w)")

OPERATORS = {
    "operator": "another operator in its place: + for -, and for or, or for xor, > for >=, all for any",
    "inversion": "an inversion or a negation left out",
    "operand": "an operand ignored",
    "order": "the operands of a subtraction, a comparison or a shift exchanged",
    "constant": "a constant off by one, or a constant bit flipped",
    "carry": "the top bit of a sum, difference or product dropped",
    "width": "the top bit of an operand cut off",
    "sign": "an operand extended with zeros instead of its sign, or the other way round",
    "lanes": "two bits of an operand, or of an instance's input, exchanged",
    "bit": "one bit of the result stuck or inverted",
    "condition": "a multiplexer's condition inverted, or stuck",
    "enable": "a register's enable inverted, or stuck",
    "reset": "a reset inverted, or without effect",
    "ports": "two inputs of an instance exchanged",
    "input": "an input of an instance stuck",
}
"""Mutation operators by name, with what they do."""


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Parameters
    ----------
    module, cell
        Where it is.
    operator
        One of `OPERATORS`.
    detail
        What exactly, in few words.
    signals
        The faulty signal in RTLIL by port: of an output, or of an instance's input. `OWN` in it is the faultless one,
        or what ``copy`` gives if there is one.
    copy
        Another cell beside the cell, less its name and output; empty if there is none.
    """

    module: str
    cell: str
    operator: str
    detail: str
    signals: Mapping[str, str]
    copy: str = ""


def _exchanged(signal: str, width: int, first: int, second: int) -> str:
    """``signal`` with two of its bits exchanged."""
    order = list(range(width))
    order[first], order[second] = second, first
    return "{ " + " ".join(f"{signal} [{bit}]" for bit in reversed(order)) + " }"


def _with_bit(signal: str, width: int, bit: int, value: str) -> str:
    """``signal`` with one bit replaced."""
    above = f"{signal} [{width - 1}:{bit + 1}] " if bit < width - 1 else ""
    below = f" {signal} [{bit - 1}:0]" if bit else ""
    return "{ " + above + value + below + " }"


def _off_by_one(match: re.Match[str]) -> str:
    width, value = int(match[1]), int(match[2], 2)
    return f"{width}'{(value + 1) % (1 << width):0{width}b}"


def _copy(cell: Cell, kind: str | None = None, parameters: Mapping[str, str] | None = None, **signals: str) -> str:
    """A cell like ``cell`` but for what is given, less its name and output."""
    values = {**cell.parameters, **(parameters or {})}
    wires = {port: signals.get(port, signal) for port, signal in cell.connections.items() if port != "Y"}
    lines = [
        kind or cell.kind,
        *(f"    parameter \\{name} {value}" for name, value in values.items()),
        *(f"    connect \\{port} {signal}" for port, signal in wires.items()),
    ]
    return "\n".join(lines)


def _unlike(cell: Cell, rng: np.random.Generator, role: str) -> Iterator[tuple[str, str, str, str]]:
    """Faults of one cell of Yosys' own library: operator, detail, faulty output and copy."""
    width = cell.width("Y") if "Y_WIDTH" in cell.parameters else cell.width("WIDTH")
    if replacement := _REPLACED.get(cell.kind):
        yield "operator", f"{cell.kind[1:]} becomes {replacement[1:]}", OWN, _copy(cell, replacement)
    if cell.kind in ("$not", "$neg", "$logic_not"):
        kind = "$reduce_bool" if cell.kind == "$logic_not" else "$pos"
        yield "inversion", f"{cell.kind[1:]} left out", OWN, _copy(cell, kind)
    for port in [port for port in "AB" if cell.kind in _NEUTRAL]:
        neutral = _NEUTRAL[cell.kind]
        bits = cell.width(port)
        value = neutral.rjust(bits, "0") if cell.kind == "$mul" else neutral * bits
        yield "operand", f"{port} ignored", OWN, _copy(cell, None, None, **{port: f"{bits}'{value}"})
    if cell.kind in _ORDERED:
        a, b = cell.connections["A"], cell.connections["B"]
        other = {
            f"{x}_{field}": cell.parameters[f"{y}_{field}"] for x, y in ("AB", "BA") for field in ("WIDTH", "SIGNED")
        }
        yield "order", "A and B exchanged", OWN, _copy(cell, parameters=other, A=b, B=a)
    for port in "AB" if cell.kind not in _UNARY else "A":
        signal, bits = cell.connections[port], cell.width(port)
        if constants := list(_CONSTANT.finditer(signal)):
            chosen = constants[rng.integers(len(constants))]
            changed = signal[: chosen.start()] + _off_by_one(chosen) + signal[chosen.end() :]
            yield "constant", f"{chosen[0]} of {port} off by one", OWN, _copy(cell, None, None, **{port: changed})
        elif bits > 1:
            cut = _with_bit(signal, bits, bits - 1, "1'0")
            yield "width", f"{port} cut to {bits - 1} bits", OWN, _copy(cell, None, None, **{port: cut})
            if not cell.kind.startswith("$reduce"):
                first, second = sorted(int(bit) for bit in rng.choice(bits, 2, replace=False))
                swapped = _exchanged(signal, bits, first, second)
                detail = f"bits {first} and {second} of {port} exchanged"
                yield "lanes", detail, OWN, _copy(cell, None, None, **{port: swapped})
    if cell.kind in _ARITHMETIC and width > 1:
        yield "carry", f"bit {width - 1} dropped", _with_bit(OWN, width, width - 1, "1'0"), ""
        if "B" in cell.connections and max(cell.width("A"), cell.width("B")) < width:
            other = {f"{port}_SIGNED": str(1 - int(cell.parameters[f"{port}_SIGNED"])) for port in "AB"}
            yield "sign", "operands extended in the other way", OWN, _copy(cell, parameters=other)
    if cell.kind == "$mux":
        a, b = cell.connections["A"], cell.connections["B"]
        yield role, "inverted", OWN, _copy(cell, A=b, B=a)
        yield role, "stuck at 0", a, ""
        yield role, "stuck at 1", b, ""
    bit = int(rng.integers(width))
    for value in "01":
        yield "bit", f"bit {bit} stuck at {value}", _with_bit(OWN, width, bit, f"1'{value}"), ""
    mask = f"{width}'{1 << bit:0{width}b}"
    inverted = "\n".join(
        [
            "$xor",
            *(f"    parameter \\{port}_SIGNED 0" for port in "AB"),
            *(f"    parameter \\{port}_WIDTH {width}" for port in "ABY"),
            f"    connect \\A {OWN}",
            f"    connect \\B {mask}",
        ]
    )
    yield "bit", f"bit {bit} inverted", OWN, inverted


def _misconnected(
    cell: Cell, inputs: list[Port], rng: np.random.Generator, commutes: bool
) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Faults in the connections of an instance: operator, detail, faulty inputs.

    Where a block ``commutes``, to exchange ``a`` and ``b`` is none.
    """
    wired = [
        (port.name[1:], port.width, cell.connections[port.name[1:]])
        for port in inputs
        if port.name[1:] in cell.connections
    ]
    for index, (name, width, signal) in enumerate(wired):
        for other, same, there in wired[index + 1 :]:
            if width == same and signal != there and not (commutes and {name, other} == {"a", "b"}):
                yield "ports", f"{name} and {other} exchanged", {name: there, other: signal}
        if width == 1:
            yield from (("input", f"{name} stuck at {value}", {name: f"1'{value}"}) for value in "01")
            continue
        first, second = sorted(int(bit) for bit in rng.choice(width, 2, replace=False))
        yield (
            "lanes",
            f"bits {first} and {second} of {name} exchanged",
            {name: _exchanged(signal, width, first, second)},
        )
        bit = int(rng.integers(width))
        yield "input", f"bit {bit} of {name} stuck at 0", {name: _with_bit(signal, width, bit, "1'0")}


def _roles(module: Sequence[Cell]) -> dict[str, str]:
    """What a multiplexer of this name would be for: data, or the enable or reset of a register."""
    held = {(cell.connections["D"], cell.connections["Q"]) for cell in module if cell.kind == "$dff"}
    resets = {cell.connections["A"]: cell for cell in module if cell.connections.get("S") == "\\rst"}
    roles = {}
    for cell in module:
        roles[cell.name] = "reset" if cell.connections.get("S") == "\\rst" else "condition"
        if cell.kind == "$mux" and roles[cell.name] != "reset":
            target = cell.connections["Y"]
            if target in resets:
                target = resets[target].connections["Y"]
            if any((target, cell.connections[port]) in held for port in "AB"):
                roles[cell.name] = "enable"
    return roles


def mutants(texts: Mapping[str, str], clean: Mapping[str, str], seed: int, commutes: bool = False) -> list[Mutant]:
    """Every mutant of a core, module by module; ``seed`` chooses the bits.

    Parameters
    ----------
    texts
        Its modules, see `sim.mutate.rtlil.lowered`.
    clean
        The same, clean: cells that nobody reads have no mutants.
    seed
        Zero or positive. Equal arguments give equal mutants.
    commutes
        The core multiplies A by B as it does B by A.
    """
    rng = np.random.default_rng(seed)
    interfaces = {name: [port for port in ports(text) if port.is_input] for name, text in texts.items()}
    found = []
    for module, text in texts.items():
        roles = _roles(cells(clean[module]))
        for cell in cells(text):
            if cell.name not in roles:
                continue
            where: tuple[str, str] = (module, cell.name)
            if cell.kind[1:] in texts:
                inputs = [port for port in interfaces[cell.kind[1:]] if port.name not in ("\\clk", "\\rst")]
                # Multiplication commutes: of scales always.
                either = cell.kind != "\\dot_product" or commutes
                found += [
                    Mutant(*where, operator, detail, signals)
                    for operator, detail, signals in _misconnected(cell, inputs, rng, either)
                ]
            elif cell.kind != "$dff":
                found += [
                    Mutant(*where, operator, detail, {"Y": signal}, copy)
                    for operator, detail, signal, copy in _unlike(cell, rng, roles[cell.name])
                ]
    return found
