"""Verilog as Yosys writes it, in plainer words."""

from __future__ import annotations

import re

from hwgen.errors import InputError

__all__ = ["tidied"]

_MODULE = re.compile(r"^module \w+\(.*?^endmodule$", re.DOTALL | re.MULTILINE)
_RESERVED = re.compile(r"^module \\(\S+) ", re.MULTILINE)
_HEADER = re.compile(r"^(module \w+)\(([^)]*)\);$", re.MULTILINE)
_INPUT = re.compile(r"^  input (?:\[\d+:\d+\] )?(\w+);$", re.MULTILINE)
_ESCAPED = re.compile(r"\\(\S+) ")
_BIT = r"\w+(?:\[[\d:]+\])?"
_ALL_EQUAL = re.compile(rf"{{ ({_BIT})((?:, \1)+) }}")
_RUN = re.compile(rf"(?<=[{{,] )({_BIT})((?:, \1){{2,}})(?=,| }})")


def _repeat(match: re.Match[str]) -> str:
    return f"{{{match[2].count(', ') + 1}{{{match[1]}}}}}"


def _readable(match: re.Match[str]) -> str:
    """One module of Yosys in plainer words: no escaped names, replications, ``clk`` and ``rst`` first."""
    text = match[0]
    taken = set(re.findall(r"\w+", text))
    names: dict[str, str] = {}
    for escaped in sorted(set(_ESCAPED.findall(text))):
        name = re.sub(r"\W+", "_", escaped)
        while name in taken:
            name += "_"
        taken.add(name)
        names[escaped] = name
    # The blank that ends an escaped name goes with it.
    text = _ESCAPED.sub(lambda found: names[found[1]], text)
    text = _RUN.sub(_repeat, _ALL_EQUAL.sub(_repeat, text))
    inputs = _INPUT.findall(text)

    def ordered(header: re.Match[str]) -> str:
        ports = header[2].split(", ")
        ports.sort(key=lambda port: (port != "clk", port != "rst", port not in inputs, port))
        return f"{header[1]}({', '.join(ports)});"

    return _HEADER.sub(ordered, text, count=1)


def tidied(text: str) -> list[str]:
    """The modules of ``text``, as ``write_verilog`` gives it, in plainer words and in its order.

    Raises
    ------
    InputError
        The name of a module is a reserved word of Verilog.
    """
    if reserved := _RESERVED.search(text):
        raise InputError(f"name = {reserved[1]!r}: is a reserved word of Verilog; choose another")
    return [_readable(match) for match in _MODULE.finditer(text)]
