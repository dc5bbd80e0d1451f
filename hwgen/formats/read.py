"""Formats of a user's own, from the tables of a TOML file.

::

    [elements.T3]                   # or, instead of values: integer = 4, or exponent_bits, mantissa_bits and bias
    values = [0, 1, 2, 4, 0, -1, -2, -4]

    [scales.UE3M4]
    exponent_bits = 3
    mantissa_bits = 4
    bias = 3

    [formats.mine]
    elements = ["T3"]               # tables of the file, or names of the catalogue; several have a selector
    scale = "UE3M4"
    block = 16
    full_scale = 124                # left out where the format has no tensor scale

The golden model reads the same text by code of its own, `sim.golden.described`. What only a quantiser needs is checked
there. docs/how-to/add-a-format.md has all keys.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hwgen.errors import InputError, meant
from hwgen.formats.block import LONGEST_WINDOW, BlockFormat
from hwgen.formats.catalogue import BLOCK_FORMATS
from hwgen.formats.element import WIDTHS, ElementFormat
from hwgen.formats.scale import ScaleFormat

__all__ = ["LARGEST_BLOCK", "TABLES", "formats_of"]

TABLES = ("elements", "scales", "formats")
"""Keys of a file that describe formats."""

LARGEST_BLOCK = 128
"""Most elements of a block: what eight blocks of 16 are, the longest step of the baseline."""

_ELEMENT = ("values", "integer", "exponent_bits", "mantissa_bits", "bias", "unit", "point", "source")
_QUANTISED = ("preference", "silent")
_SCALE = ("exponent_bits", "mantissa_bits", "bias", "nan", "subnormals", "source")
_FORMAT = (
    *("elements", "scale", "block", "full_scale", "sums", "window", "factors", "shifts", "scale_bytes", "selector_bit"),
    *("source", "rule", "trial", "nonzero"),  # the last three are for the quantiser
)
_FLOATS = ("E2M1", "E2M3", "E3M2", "E4M3", "E5M2")
"""Elements of the catalogue that have an exponent each, by which a product can be cut to a window."""
_POWERS = 48
"""Powers of two that elements may span; the accumulator is made for what scales span."""
_FP32 = range(-149, 128)
"""Powers of two that FP32 holds."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_NAME_OF_PART = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,39}")

T = TypeVar("T")


def formats_of(table: Mapping[str, Any], text: str) -> dict[str, BlockFormat]:
    """The formats that a file describes, by name.

    Parameters
    ----------
    table
        Content of the file. Keys other than `TABLES` are not looked at.
    text
        The file itself, from which the golden model reads the formats.

    Raises
    ------
    InputError
        A table describes no format that a core can have. The message names the field.
    """
    tables = {key: _Table(key, _mapping(key, table.get(key, {}))) for key in TABLES}
    if not tables["formats"].content and (parts := [f"[{key}]" for key in TABLES if key in table]):
        raise InputError(f"table [formats.NAME] is missing; the file has {' and '.join(parts)} alone")
    elements = {element.name: element for form in BLOCK_FORMATS.values() for element in form.elements}
    scales = {form.scale.name: form.scale for form in BLOCK_FORMATS.values()}
    for key, taken in (("elements", elements), ("scales", scales)):
        words = "a name starts with a letter and holds letters, digits, '_', '.', '+' and '-'"
        tables[key].refuse(taken, _NAME_OF_PART, words)
    words = "a format's name starts with a small letter and holds small letters, digits and '-'"
    tables["formats"].refuse(BLOCK_FORMATS, _NAME, words)
    elements |= {name: _element(name, each) for name, each in tables["elements"].inner(_ELEMENT + _QUANTISED)}
    scales |= {name: _scale(name, each) for name, each in tables["scales"].inner(_SCALE)}
    floats = {name for name, each in tables["elements"].content.items() if _has_exponents(each)}.union(_FLOATS)
    blocks = tables["formats"].inner(_FORMAT)
    return {name: _block(name, each, elements, scales, floats, text) for name, each in blocks}


@dataclass(frozen=True)
class _Table:
    """A table of the file, and where it stands."""

    place: str
    content: Mapping[str, Any]

    def refuse(self, taken: Collection[str], allowed: re.Pattern[str], words: str) -> None:
        """Refuse names that the catalogue has, and what no name may be; Verilog, reports and errors show names."""
        for name in self.content:
            if not allowed.fullmatch(name):
                raise InputError(f"{self.place}.{name!r}: {words} (at most 40)")
            if name in taken:
                raise InputError(f"{self.place}.{name}: hwgen has one of that name; choose another")

    def inner(self, known: tuple[str, ...]) -> list[tuple[str, _Table]]:
        """Tables in it, which may have the known keys."""
        found = []
        for name, content in self.content.items():
            table = _Table(f"{self.place}.{name}", _mapping(f"{self.place}.{name}", content))
            for key in table.content:
                if key not in known:
                    raise InputError(f"{table.place}: unknown key {key!r}; {meant(key, known)}")
            found.append((name, table))
        return found

    def refused(self, key: str, what: str) -> InputError:
        """That a value is not what it must be."""
        return InputError(f"{self.place}.{key} = {self.content.get(key)!r}: {what}")

    def whole(self, key: str, allowed: range, default: int | None = None) -> int:
        """A whole number; one that has no default must be there."""
        value = self.content.get(key, default)
        if value is None:
            raise InputError(f"{self.place}: key {key!r} is missing")
        if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
            raise self.refused(key, f"must be a whole number from {allowed[0]} to {allowed[-1]}")
        return value

    def several(self, key: str, allowed: range) -> tuple[int, ...]:
        """Whole numbers, none by default."""
        found = self.content.get(key, [])
        if not isinstance(found, list) or not all(type(each) is int and each in allowed for each in found):
            raise self.refused(key, f"must be a list of whole numbers from {allowed[0]} to {allowed[-1]}")
        return tuple(found)

    def positive(self, key: str) -> float | None:
        """A finite number above 0, if there is one."""
        value = self.content.get(key)
        if value is None:
            return None
        if not _is_number(value) or not 0 < value <= sys.float_info.max:
            raise self.refused(key, "must be a finite number above 0")
        return float(value)

    def text(self, key: str) -> str:
        """A text; empty if there is none."""
        value = self.content.get(key, "")
        if not isinstance(value, str):
            raise self.refused(key, "must be a text")
        return value

    def named(self, key: str, value: object, known: Mapping[str, T]) -> T:
        """What a name stands for."""
        if not isinstance(value, str) or value not in known:
            raise InputError(f"{self.place}.{key}: {value!r} is no name of {key}; {meant(value, known)}")
        return known[value]


def _mapping(place: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{place} = {value!r}: must be a table")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _element(name: str, table: _Table) -> ElementFormat:
    kinds = [key for key in ("values", "integer", "exponent_bits") if key in table.content]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise InputError(f"{table.place}: must have values, or integer, or exponent_bits; has {found}")
    unit = table.positive("unit") or 1.0
    if kinds == ["values"]:
        values = table.content["values"]
        if not isinstance(values, list) or not all(map(_is_number, values)):
            raise table.refused("values", "must be a list of numbers, one for each code")
        if any(abs(value) > sys.float_info.max for value in values if isinstance(value, int)):
            raise InputError(f"{table.place}.values: has a number beyond float64")
    elif kinds == ["integer"]:
        half = 1 << table.whole("integer", WIDTHS) - 1
        # Symmetric: the code of the number without a counterpart reads as 0.
        values = [*range(half), 0, *range(1 - half, 0)]
    else:
        values = _minifloat(table)
    if (only := {"mantissa_bits", "bias"} & table.content.keys()) and kinds != ["exponent_bits"]:
        raise InputError(f"{table.place}.{min(only)}: has no meaning with {kinds[0]}; leave it out")
    rest = table.text("source"), table.whole("point", range(1, 25), 1)
    try:
        element = ElementFormat(name, tuple(float(value) * unit for value in values), *rest)
    except InputError as error:
        raise InputError(f"{table.place}: {error}") from None
    if abs(element.fold) > _POWERS or max(map(abs, element.values)) >= 2.0**_POWERS:
        raise InputError(f"{table.place}: values must be from 2^-{_POWERS} to 2^{_POWERS}; leave the rest to the scale")
    first: dict[float, int] = {}
    for code, value in enumerate(element.values):
        if value and first.setdefault(value, code) != code:
            raise InputError(
                f"{table.place}: codes {first[value]} and {code} are both {value:g}; a number other than 0 has one code"
            )
    return element


def _has_exponents(table: Mapping[str, Any]) -> bool:
    """Whether numbers of such a table have an exponent each."""
    return "exponent_bits" in table and math.frexp(table.get("unit", 1))[0] == 0.5


def _minifloat(table: _Table) -> list[float]:
    """Values of sign, exponent and mantissa, with subnormals; every code is a number."""
    exponent_bits = table.whole("exponent_bits", range(1, 7))
    mantissa_bits = table.whole("mantissa_bits", range(0, 7))
    if (width := 1 + exponent_bits + mantissa_bits) not in WIDTHS:
        raise InputError(f"{table.place}: has codes of {width} bits; they have {WIDTHS[0]} to {WIDTHS[-1]}")
    bias = table.whole("bias", range(-64, 65), (1 << exponent_bits - 1) - 1)
    magnitudes = []
    for code in range(1 << width - 1):
        field, mantissa = divmod(code, 1 << mantissa_bits)
        significand = mantissa + (1 << mantissa_bits if field else 0)
        magnitudes.append(significand * 2.0 ** (max(field, 1) - bias - mantissa_bits))
    return [*magnitudes, *(-magnitude for magnitude in magnitudes)]


def _scale(name: str, table: _Table) -> ScaleFormat:
    subnormals = table.content.get("subnormals", True)
    if not isinstance(subnormals, bool):
        raise table.refused("subnormals", "must be true or false")
    bits = range(0, 9)
    nan = table.whole("nan", range(256)) if "nan" in table.content else None
    fields = (table.whole("exponent_bits", bits), table.whole("mantissa_bits", bits))
    bias, source = table.whole("bias", range(-256, 257)), table.text("source")
    try:
        scale = ScaleFormat(name, *fields, bias, nan, source, subnormals)
    except InputError as error:
        raise InputError(f"{table.place}: {error}") from None
    lowest, highest = scale.exponents[0] - scale.mantissa_bits, scale.exponents[-1]
    if lowest not in _FP32 or highest not in _FP32:
        raise table.refused("bias", f"scales from 2^{lowest} to 2^{highest} are beyond FP32")
    return scale


def _check_kinds(table: _Table, chosen: tuple[ElementFormat, ...], factors: tuple[int, ...]) -> None:
    """Refuse two kinds of elements that are the same numbers, by whatever codes."""
    if len(chosen) == 1:
        return
    known: dict[frozenset[float], str] = {}
    for element, factor in zip(chosen, factors or (1,) * len(chosen), strict=False):
        numbers = frozenset(value * factor for value in element.values)
        if numbers in known:
            kinds = f"{known[numbers]} and {element.name}" + (" times their factors" if factors else "")
            raise table.refused("elements", f"{kinds} are the same, so that the selector is ambiguous")
        known[numbers] = element.name


def _block(
    name: str,
    table: _Table,
    elements: Mapping[str, ElementFormat],
    scales: Mapping[str, ScaleFormat],
    floats: Collection[str],
    text: str,
) -> BlockFormat:
    names = table.content.get("elements")
    if not isinstance(names, list) or not names:
        raise table.refused("elements", "must be a list of names")
    chosen = tuple(table.named("elements", each, elements) for each in names)
    scale = table.named("scale", table.content.get("scale"), scales)
    if (bit := table.content.get("selector_bit", scale.width)) != scale.width or not isinstance(bit, int):
        raise table.refused(
            "selector_bit", f"must be {scale.width}: hardware reads the selector directly above scale {scale.name}"
        )
    if "selector_bit" in table.content and len(chosen) == 1:
        raise table.refused("selector_bit", "there is one kind of elements, and nothing to select; leave it out")
    fields: dict[str, Any] = {
        "size": table.whole("block", range(1, LARGEST_BLOCK + 1)),
        "full_scale": table.positive("full_scale"),
        "source": table.text("source"),
        "sums": table.whole("sums", range(1, LARGEST_BLOCK + 1), 1),
        "window": table.whole("window", range(LONGEST_WINDOW + 1)) if "window" in table.content else None,
        "factors": table.several("factors", range(1, 256)),
        "shifts": table.several("shifts", range(1, LARGEST_BLOCK + 1)),
        "scale_bytes": table.whole("scale_bytes", range(0, 5), int(scale.width > 0)),
        "definition": text,
    }
    _check_kinds(table, chosen, fields["factors"])
    if fields["window"] is not None and (other := [each for each in names if each not in floats]):
        what = "elements with an exponent each, which have exponent_bits and a power of two as unit"
        raise table.refused("window", f"takes {what}, or are {', '.join(_FLOATS)}; {other[0]} is none of them")
    if not scale.width and (len(chosen) > 1 or fields["shifts"]):
        what = "a selector" if len(chosen) > 1 else "shifts"
        raise table.refused("scale", f"{what} must have a block scale below; {scale.name} has no bits")
    if fields["scale_bytes"] and not scale.width:
        raise table.refused("scale_bytes", f"scale {scale.name} has nothing to store; leave it out")
    try:
        form = BlockFormat(name, chosen, scale, **fields)
    except InputError as error:
        raise InputError(f"{table.place}: {error}") from None
    if form.full_scale is not None:
        weighed = zip(chosen, form.factors or [1] * len(chosen), strict=True)
        count = form.factors[0] if form.factors else 1
        magnitudes = [abs(value) * factor / count for each, factor in weighed for value in each.values if value]
        least = min(magnitudes) * (scale.value(0) or scale.value(1))
        most = max(magnitudes) * 2 ** len(form.shifts) * scale.largest
        if not least <= form.full_scale <= most:
            what = f"must be from {least:g} to {most:g}, the smallest and the largest number of the format"
            raise table.refused("full_scale", what)
    return form
