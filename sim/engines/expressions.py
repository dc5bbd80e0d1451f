"""C++ of values and of Yosys' cells on them, as `sim.engines.translate` puts them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "WORD",
    "Bit",
    "Expression",
    "computed",
    "constant",
    "joined",
    "kind_of",
    "masked",
    "of_words",
    "part_of",
    "strided",
]

WORD = 64
"""Bits of a word."""

Bit = int | str
"""The number of a net, or a constant "0", "1", "x"."""


@dataclass(frozen=True)
class Expression:
    """C++ of a value: text of type uint64_t where it fits in one word, else of ``value<width>``."""

    text: str
    width: int

    @property
    def narrow(self) -> bool:
        """Whether it fits in one word."""
        return self.width <= WORD

    @property
    def value(self) -> str:
        """As a ``value<width>``, whatever the width."""
        return f"value<{self.width}>{{{{{self.text}}}}}" if self.narrow else self.text

    @property
    def extended(self) -> str:
        """A narrow one, with its sign in all bits above it."""
        unused = WORD - self.width
        return f"uint64_t(int64_t({self.text} << {unused}) >> {unused})" if unused else self.text


def kind_of(width: int) -> str:
    """C++ type of a value."""
    return "uint64_t" if width <= WORD else f"value<{width}>"


def _mask(width: int) -> str:
    return f"{(1 << width) - 1:#x}ull"


def masked(text: str, width: int) -> str:
    """The low bits of a word."""
    return text if width == WORD else f"({text} & {_mask(width)})"


def of_words(words: Sequence[str], width: int) -> Expression:
    """A value of its words, the lowest first."""
    return Expression(words[0] if width <= WORD else f"value<{width}>{{{{{', '.join(words)}}}}}", width)


def constant(bits: Sequence[Bit]) -> Expression:
    """A constant, its lowest bit first."""
    # What is undefined is zero, as in every simulator with two states.
    number = int("".join("1" if bit == "1" else "0" for bit in reversed(bits)), 2)
    return of_words([f"{number >> low & (1 << WORD) - 1:#x}ull" for low in range(0, len(bits), WORD)], len(bits))


def part_of(variable: str, width: int, low: int, length: int) -> Expression:
    """Bits [low, low + length) of a variable, at most one word of them."""
    base, shift = divmod(low, WORD)
    word = variable if width <= WORD else f"{variable}.data[{base}]"
    text = f"({word} >> {shift})" if shift else word
    if shift + length > WORD:
        text = f"({text} | {variable}.data[{base + 1}] << {WORD - shift})"
    # Above the highest bit of a variable there are zeros.
    return Expression(text if low + length == width else masked(text, length), length)


def strided(variable: str, width: int, low: int, stride: int, length: int) -> Expression:
    """Bits low, low + stride, ... of one word of a variable, side by side; ``length`` must be less than ``stride``.

    A multiplication adds up copies of them, one shifted for each bit so that it comes to its place at the top. All
    others are at places of their own: none of them carries into those.
    """
    base, shift = divmod(low, WORD)
    word = variable if width <= WORD else f"{variable}.data[{base}]"
    chosen = sum(1 << stride * index for index in range(length))
    copies = sum(1 << WORD - length - (stride - 1) * index for index in range(length))
    shifted = f"{word} >> {shift}" if shift else word
    return Expression(f"((({shifted}) & {chosen:#x}ull) * {copies:#x}ull >> {WORD - length})", length)


def joined(parts: Sequence[Expression]) -> Expression:
    """Side by side, the lowest first, at most one word of them."""
    if len(parts) == 1:
        return parts[0]
    shifted, low = [], 0
    for part in parts:
        if part.text != "0x0ull":
            shifted.append(f"{part.text} << {low}" if low else part.text)
        low += part.width
    return Expression(f"({' | '.join(reversed(shifted)) or '0x0ull'})", low)


_SIGNS = {"and": "&", "or": "|", "xor": "^", "add": "+", "sub": "-", "mul": "*"}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def computed(kind: str, operands: Sequence[Expression], width: int, signed: bool) -> str:
    """C++ of a cell, of the type that its output's width says.

    On operands and results of one word it is written out: a call for each cell, however short, takes the compiler
    several times as long.
    """
    if width > WORD or not all(operand.narrow for operand in operands):
        call = f"cell_{kind}<{width}, {str(signed).lower()}>({', '.join(operand.value for operand in operands)})"
        return call if width > WORD else f"{call}.data[0]"
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
        return masked(f"({resized[0]} {_SIGNS[kind]} {resized[1]})", width)
    if kind == "xnor":
        return masked(f"~({resized[0]} ^ {resized[1]})", width)
    return masked({"pos": resized[0], "not": f"~{resized[0]}", "neg": f"(0 - {resized[0]})"}[kind], width)
