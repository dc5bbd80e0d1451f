"""Shapes of cells from LEF files: what placement needs of them.

Of a macro its ``SIZE`` and, for each ``PIN``, the centre of the box around its ``RECT`` and ``POLYGON`` shapes; of a
``SITE`` of class CORE its size. Everything else is passed over, by its keyword: blocks with an end of their own as a
whole. The reader is strict in what it uses. Real LEF readers in Python want a database or carry a compiled one; this
needs some hundred lines.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hwgen.errors import InputError
from hwgen.layout.technology import Technology

__all__ = ["Macro", "Shapes", "read_lef"]

_TOLERANCE = 1e-3


@dataclass(slots=True)
class Macro:
    """A cell's shape in um.

    Attributes
    ----------
    width, height : float
    pins : dict of str to tuple of float
        Centre of the box around each pin, from the lower left corner.
    """

    width: float = 0.0
    height: float = 0.0
    pins: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes of the cells of a library.

    Attributes
    ----------
    macros : dict of str to Macro
    site : tuple of float or None
        Width and height of the first site of class CORE, um.
    paths : tuple of Path
        Files they come from.
    """

    macros: dict[str, Macro]
    site: tuple[float, float] | None
    paths: tuple[Path, ...]

    def _macro(self, cell: str) -> Macro:
        macro = self.macros.get(cell)
        if macro is None:
            some = ", ".join(list(self.macros)[:3])
            raise InputError(f"{self.paths[0]}: no MACRO {cell}; it has {some}, ... (in several files? give them all)")
        return macro

    def rows_of(self, technology: Technology) -> Technology:
        """A technology with the row height and the site of these files, where they have one."""
        if self.site is None:
            return technology
        return replace(technology, site=self.site[0], row_height=self.site[1])

    def width(self, cell: str, technology: Technology) -> float:
        """Width of a cell in um; it must be one row high."""
        macro = self._macro(cell)
        if abs(macro.height - technology.row_height) > _TOLERANCE * technology.row_height:
            row = technology.row_height
            raise InputError(f"{self.paths[0]}: MACRO {cell} is {macro.height:g} um high; expected one row, {row:g}")
        return macro.width

    def pin(self, cell: str, name: str) -> tuple[float, float]:
        """Where a pin is, from the centre of its cell, um."""
        macro = self._macro(cell)
        if name not in macro.pins:
            raise InputError(f"{self.paths[0]}: MACRO {cell} has no PIN {name} with a shape; expected one")
        x, y = macro.pins[name]
        return x - macro.width / 2, y - macro.height / 2


class _Words:
    """Words of a LEF file with their lines, without comments."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = path, 0
        try:
            content = path.read_bytes()
            if content[:2] == b"\x1f\x8b":
                content = gzip.decompress(content)
            text = content.decode("utf-8")
        except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path}: is not a LEF file ({error})") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        self._words = self._split(text)

    def _split(self, text: str) -> Iterator[str]:
        for self.line, line in enumerate(text.splitlines(), start=1):
            yield from line.partition("#")[0].replace(";", " ; ").split()

    def next(self, expected: str = "more") -> str:
        """The next word."""
        word = next(self._words, None)
        if word is None:
            raise InputError(f"{self.path}: ends in the midst of it; expected {expected}")
        return word

    def maybe(self) -> str | None:
        """The next word, None at the end."""
        return next(self._words, None)

    def statement(self) -> list[str]:
        """Words up to the next semicolon."""
        found = []
        while (word := self.next("';'")) != ";":
            found.append(word)
        return found

    def numbers(self, words: Sequence[str], what: str, least: int) -> list[float]:
        """Words as finite numbers."""
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) < least or any(not abs(value) < 1e9 for value in values):
            raise InputError(
                f"{self.path}, line {self.line}: {what} {' '.join(words)[:80]}; expected at least {least} numbers"
            )
        return values

    def size(self) -> tuple[float, float]:
        """What follows SIZE: two lengths above 0."""
        words = self.statement()
        values = self.numbers([word for word in words if word.upper() != "BY"], "SIZE", 2)
        if len(values) != 2 or min(values) <= 0:
            raise InputError(f"{self.path}, line {self.line}: SIZE {' '.join(words)[:80]}; expected 'WIDTH BY HEIGHT'")
        return values[0], values[1]


def read_lef(paths: Sequence[Path]) -> Shapes:
    """Read the shapes of cells.

    Parameters
    ----------
    paths
        LEF files, plain or gzip; of cells, and of the technology for its site.

    Raises
    ------
    InputError
        A file that cannot be read, or no macro in any.
    """
    macros: dict[str, Macro] = {}
    sites: list[tuple[float, float]] = []
    for path in paths:
        words = _Words(path)
        while (word := words.maybe()) is not None:
            if word == "MACRO":
                name = words.next("a name")
                if name in macros:
                    raise InputError(f"{path}, line {words.line}: MACRO {name} is there twice; expected each once")
                macros[name] = _macro(words, name)
            elif word == "SITE":
                sites += _site(words)
            elif word in ("PROPERTYDEFINITIONS", "UNITS", "SPACING"):
                while words.next(f"END {word}") != "END":
                    pass
                words.next()
            elif word in ("LAYER", "VIA", "VIARULE", "NONDEFAULTRULE"):
                _skip(words, words.next("a name"))
            elif word == "END":
                words.next("LIBRARY")
            else:
                words.statement()
    if not macros:
        raise InputError(f"{', '.join(map(str, paths))}: no MACRO; expected a LEF file of cells")
    return Shapes(macros, sites[0] if sites else None, tuple(paths))


def _skip(words: _Words, name: str) -> None:
    """Pass over a block to its ``END name``."""
    while True:
        if words.next(f"END {name}") == "END" and words.next(name) == name:
            return


def _site(words: _Words) -> list[tuple[float, float]]:
    """Size of a site, if it is of class CORE."""
    name, core, size = words.next("a name"), False, None
    while (word := words.next(f"END {name}")) != "END":
        if word == "SIZE":
            size = words.size()
        else:
            core |= word == "CLASS" and words.statement() == ["CORE"]
    words.next(name)
    return [size] if core and size is not None else []


def _macro(words: _Words, name: str) -> Macro:
    """A macro, from behind its name to its end."""
    macro = Macro()
    while True:
        word = words.next(f"END {name}")
        if word == "END":
            if (end := words.next(name)) != name:
                raise InputError(f"{words.path}, line {words.line}: END {end} in MACRO {name}; expected END {name}")
            break
        if word == "SIZE":
            macro.width, macro.height = words.size()
        elif word == "PIN":
            _pin(words, macro)
        elif word in ("OBS", "DENSITY"):
            while words.next("END") != "END":
                pass
        else:
            words.statement()
    if macro.width <= 0:
        raise InputError(f"{words.path}, line {words.line}: MACRO {name} has no SIZE; expected one")
    return macro


def _pin(words: _Words, macro: Macro) -> None:
    """A pin, from behind its keyword to its end; one without shapes is left out."""
    name = words.next("a name")
    box: list[float] = []
    in_port = False
    while True:
        word = words.next(f"END {name}")
        if word == "PORT":
            in_port = True
        elif word == "END" and in_port:
            in_port = False
        elif word == "END":
            if (end := words.next(name)) != name:
                raise InputError(f"{words.path}, line {words.line}: END {end} in PIN {name}; expected END {name}")
            break
        elif word in ("RECT", "POLYGON"):
            stated = [part for part in words.statement() if part not in ("(", ")")]
            values = words.numbers(stated[2:] if stated[:1] == ["MASK"] else stated, word, 4)
            across, up = [*values[0::2], *box[0::2]], [*values[1::2], *box[1::2]]
            box = [min(across), min(up), max(across), max(up)]
        else:
            words.statement()
    if box:
        macro.pins[name] = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
