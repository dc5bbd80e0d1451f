"""Names for the wires of a package's Verilog that have none: ``_017_`` of Yosys, ``_signal_3`` of Amaranth.

=====================================  ==========================================
a wire that                            is called
=====================================  ==========================================
a register takes                       ``REGISTER_next``
is some bits of a word                 ``WORD_5_1``
is one operation on named wires        ``a_and_b``, ``not_a``, ``any_a``, ``a_is_3``
goes into a named wire, by others too  ``WIRE_xor``, ``WIRE_and_2``
has bits that nobody reads             the same, and ``_wide`` at the end
=====================================  ==========================================

Nothing but names changes: another name for every wire, and no two alike. What is measured keeps the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["UNREAD", "named"]

UNREAD = "_wide"
"""How the name of a wire ends of which nobody reads all bits."""

_LONGEST = 40
_NAMELESS = r"_\d+_|_signal(?:_\d+)?"
_NUMBERED = re.compile(rf"\b(?:{_NAMELESS})\b")
_MODULE = re.compile(r"^module .*?^endmodule$", re.M | re.S)
_DECLARED = re.compile(rf"^  (?:wire|reg) (?:\[(\d+):0\] )?({_NAMELESS});$", re.M)
_USED = re.compile(rf"\b({_NAMELESS})\b(?:\[(\d+)(?::(\d+))?\])?")
_STATEMENT = re.compile(
    r"^  assign (?P<target>.+?) = (?P<value>.+);$"
    r"|^    (?P<clocked>.*?(?P<register>\w+)(?:\[[\d:]+\])? <= (?P<taken>.+));$"
    r"|^  \w+ (?P<instance>\w+) \($"
    r"|^    \.(?P<port>\w+)\((?P<connected>.*)\),?$",
    re.M,
)
_OPERAND = r"([A-Za-z_]\w*(?:\[[\d:]+\])?|\d+'h[0-9a-f]+)"
_UNARY = re.compile(rf"([~|&^]) {_OPERAND}")
_BINARY = re.compile(rf"{_OPERAND} (\S+) {_OPERAND}")
_OF_ONE = {"~": "not", "|": "any", "&": "all", "^": "odd"}
_OF_TWO = {
    "&": "and",
    "|": "or",
    "^": "xor",
    "+": "plus",
    "-": "minus",
    "==": "is",
    "!=": "is_not",
    "<": "below",
    "<=": "at_most",
    ">": "above",
    ">=": "at_least",
}
_ANY = {"?": "choice", "+": "sum", "-": "difference", "*": "product", "<<": "shifted", ">>": "shifted"}
_NUMBER = ("+", "-", "==", "!=", "<", "<=", ">", ">=")
"""Operations in whose names a number may stand."""


def named(text: str) -> str:
    """Verilog of `hwgen.verilog.verilog` with a name for every wire.

    Where nothing speaks for a name a wire keeps its number.
    """
    return _MODULE.sub(lambda found: _Module(found[0]).named(), text)


class _Module:
    """One module: where its numbered wires come from, and where they go."""

    def __init__(self, text: str) -> None:
        self._text, self._words = text, set(re.findall(r"\w+", text))
        self._widths = {name: int(high or 0) + 1 for high, name in _DECLARED.findall(text)}
        self._values: dict[str, str] = {}
        self._sinks: dict[str, list[str]] = {name: [] for name in self._widths}
        self._direct: dict[str, str] = {}
        self._registers: dict[str, str] = {}
        self._read: dict[str, set[int]] = {name: set() for name in self._widths}
        self._beside: dict[str, str] = {}
        self._scan()

    def _scan(self) -> None:
        instance = ""
        for found in _STATEMENT.finditer(self._text):
            if found["target"]:
                self._assignment(found["target"], found["value"])
            elif found["register"]:
                self._clocked(found["clocked"], found["register"], found["taken"])
            elif found["instance"]:
                instance = found["instance"]
            else:
                self._reads(found["connected"], f"{instance}_{found['port']}")

    def _assignment(self, target: str, value: str) -> None:
        self._reads(value, target)
        if _NUMBERED.fullmatch(target):
            self._values[target] = value
        elif _NUMBERED.fullmatch(value) and re.fullmatch(rf"(?!(?:{_NAMELESS})\b)\w+\[[\d:]+\]", target):
            self._direct.setdefault(value, _word(target))
        for wire in _NUMBERED.findall(target):
            for other in re.findall(r"[A-Za-z_]\w*", target):
                if other != wire:
                    self._beside.setdefault(wire, other)

    def _clocked(self, statement: str, register: str, taken: str) -> None:
        self._reads(taken, register)
        if _NUMBERED.fullmatch(taken):
            self._registers.setdefault(taken, register)
        for condition in re.findall(r"if \((.+?)\)", statement):
            self._reads(condition, register if _NUMBERED.fullmatch(register) else f"{register}_enable")

    def _reads(self, expression: str, sink: str) -> None:
        for wire, high, low in _USED.findall(expression):
            if wire in self._widths:
                last = int(high) if high else self._widths[wire] - 1
                first = int(low or high or 0)
                self._read[wire] |= set(range(first, last + 1))
                self._sinks[wire].append(sink)

    def _phrase(self, wire: str, inner: bool = False) -> str:
        """One operation in words; "" if it is more than that."""
        value = self._values.get(wire, "")
        if found := _UNARY.fullmatch(value):
            operand = self._operand(found[2], "", inner=True)
            return f"{_OF_ONE[found[1]]}_{operand}" if operand else ""
        found = None if inner else _BINARY.fullmatch(value)
        if found is None or found[2] not in _OF_TWO:
            return ""
        operands = [self._operand(found[side], found[2]) for side in (1, 3)]
        return f"{operands[0]}_{_OF_TWO[found[2]]}_{operands[1]}" if all(operands) else ""

    def _operand(self, text: str, operation: str, inner: bool = False) -> str:
        if "'" in text:
            return str(int(text.partition("h")[2], 16)) if operation in _NUMBER else ""
        if not _NUMBERED.match(text):
            return _word(text)
        return "" if inner or "[" in text else self._phrase(text, inner=True)

    def _operation(self, wire: str) -> str:
        value = self._values.get(wire, "")
        if value.startswith("~ "):
            return "not"
        outside = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{\d+\{[^{}]*\}\}", "", value))
        signs = [sign for sign in outside.split() if sign in _ANY or sign in _OF_TWO]
        return _ANY.get(signs[0], _OF_TWO.get(signs[0], "part")) if signs else "part"

    def _base(self, wire: str, seen: frozenset[str] = frozenset()) -> str:
        """The first named wire, register or port that a wire goes into."""
        for sink in self._sinks[wire]:
            names = [name for name in re.findall(r"[A-Za-z_]\w*", sink) if name not in seen | {wire}]
            for name in names:
                if not _NUMBERED.fullmatch(name):
                    return name
                if name in self._sinks and (base := self._base(name, seen | {wire})):
                    return base
        return ""

    def _name(self, wire: str) -> str:
        if not self._sinks[wire]:
            other = self._beside.get(wire, "")
            return self._name(other) if self._sinks.get(other) else other
        if wire in self._direct:
            return self._direct[wire]
        register = self._registers.get(wire, "")
        register = self._direct.get(register, register)
        if register and not _NUMBERED.fullmatch(register):
            return f"{register}_next"
        phrase = self._phrase(wire)
        if phrase and len(phrase) <= _LONGEST:
            return phrase
        base = self._base(wire)
        if base not in self._words:
            return base  # of a port, or the enable of a register
        return f"{base}_{self._operation(wire)}"

    def _names(self) -> Iterator[tuple[str, str]]:
        taken = set(self._words)
        for wire, width in self._widths.items():
            name = self._name(wire)
            if not name:
                continue
            end = UNREAD if len(self._read[wire]) < width else ""
            stem = name.removesuffix(UNREAD)
            number, name = 1, stem + end
            while name in taken:
                number += 1
                name = f"{stem}_{number}{end}"
            taken.add(name)
            yield wire, name

    def named(self) -> str:
        """Its text with the names."""
        names = dict(self._names())
        return _NUMBERED.sub(lambda found: names.get(found[0], found[0]), self._text)


def _word(operand: str) -> str:
    """A wire, or some of its bits, as part of a name."""
    return re.sub(r"\W+", "_", operand).rstrip("_")
