"""Boolean expressions as Liberty writes them (``function``, ``when``, ``next_state``, ...)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

__all__ = ["Expression", "parse_expression"]

_TOKEN = re.compile(r"\s*([A-Za-z_][\w.]*(?:\[\d+\])?|[01]|[!'^&*|+()])")


class Expression:
    """A parsed boolean expression.

    Attributes
    ----------
    text : str
        As written.
    names : tuple of str
        Its variables, in order of first occurrence.
    program : tuple
        Postfix form: a variable's index in `names`, ``"0"``, ``"1"``, ``"!"``, ``"&"``, ``"|"`` or ``"^"``.
    """

    __slots__ = ("_truths", "names", "program", "text")

    def __init__(self, text: str, names: tuple[str, ...], program: tuple[int | str, ...]):
        self.text = text
        self.names = names
        self.program = program
        self._truths: dict[tuple[str, ...], np.ndarray] = {}

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def evaluate(self, values: Sequence[Any]) -> Any:
        """Value for the variables' values, given in the order of `names`.

        Parameters
        ----------
        values : sequence of numpy arrays or scalars
            Of type bool, or unsigned integers taken bit by bit; equal shapes.

        Returns
        -------
        array
            Of the same shape and type; for an expression without variables a Python ``bool``.
        """
        stack: list[Any] = []
        for step in self.program:
            if isinstance(step, int):
                stack.append(values[step])
            elif step == "!":
                # ~True is -2 for Python's bool.
                top = stack.pop()
                stack.append((not top) if isinstance(top, bool) else ~top)
            elif step == "0" or step == "1":
                stack.append(step == "1")
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(_combine(step, left, right))
        return stack[0]

    def truth(self, names: Sequence[str], substitute: Mapping[str, Expression] | None = None) -> np.ndarray:
        """Truth table over `names`.

        Parameters
        ----------
        names : sequence of str
            The k variables; bit i of the row number is the value of ``names[i]``.
        substitute : mapping, optional
            Expressions (over `names`) for further variables.

        Returns
        -------
        numpy.ndarray
            Shape (2**k,), bool.

        Raises
        ------
        KeyError
            If a variable is neither in `names` nor in `substitute`.
        """
        own = set(self.names) <= set(names)
        if own and (known := self._truths.get(tuple(names))) is not None:
            return known
        rows = np.arange(1 << len(names))
        values = []
        for name in self.names:
            if name in names:
                values.append((rows >> names.index(name) & 1).astype(bool))
            else:
                values.append((substitute or {})[name].truth(names, substitute))
        found = np.broadcast_to(np.asarray(self.evaluate(values), dtype=bool), rows.shape)
        if own:
            found.flags.writeable = False
            self._truths[tuple(names)] = found
        return found


def _combine(operator: str, left: Any, right: Any) -> Any:
    # A Python bool is a constant of the expression: fold it, so that it never meets a word of 64 streams.
    if isinstance(left, bool):
        left, right = right, left
    if isinstance(right, bool):
        if operator == "&":
            return left if right else False
        if operator == "|":
            return True if right else left
        if not right:
            return left
        return (not left) if isinstance(left, bool) else ~left
    if operator == "&":
        return left & right
    return left | right if operator == "|" else left ^ right


@cache
def parse_expression(text: str) -> Expression:
    """Parse an expression.

    ``!`` before and ``'`` after an operand negate and bind tightest, then ``^``, then ``&``, ``*`` and
    juxtaposition, then ``+`` and ``|`` (Liberty User Guide, volume 1, "function").

    Raises
    ------
    ValueError
        If the text is no expression.
    """
    tokens: list[str] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise ValueError(f"cannot read {stripped[position:].strip()[:20]!r} in the expression {text!r}")
        tokens.append(match.group(1))
        position = match.end()
    names: dict[str, int] = {}
    program: list[int | str] = []
    cursor = 0

    def peek() -> str:
        return tokens[cursor] if cursor < len(tokens) else ""

    def operand() -> None:
        nonlocal cursor
        token = peek()
        cursor += 1
        if token == "!":
            operand()
            program.append("!")
            return
        if token == "(":
            alternatives()
            if peek() != ")":
                raise ValueError(f"missing ')' in the expression {text!r}")
            cursor += 1
        elif token in ("0", "1"):
            program.append(token)
        elif token and (token[0].isalpha() or token[0] == "_"):
            program.append(names.setdefault(token, len(names)))
        else:
            raise ValueError(f"expected an operand, not {token!r}, in the expression {text!r}")
        while peek() == "'":
            program.append("!")
            cursor += 1

    def differences() -> None:
        nonlocal cursor
        operand()
        while peek() == "^":
            cursor += 1
            operand()
            program.append("^")

    def products() -> None:
        nonlocal cursor
        differences()
        while peek() not in ("", ")", "+", "|"):
            if peek() in ("&", "*"):
                cursor += 1
            differences()
            program.append("&")

    def alternatives() -> None:
        nonlocal cursor
        products()
        while peek() in ("+", "|"):
            cursor += 1
            products()
            program.append("|")

    try:
        alternatives()
    except RecursionError:
        raise ValueError("the expression is nested too deeply") from None
    if cursor < len(tokens):
        raise ValueError(f"unexpected {tokens[cursor]!r} in the expression {text!r}")
    return Expression(text, tuple(names), tuple(program))
