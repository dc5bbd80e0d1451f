"""Formats that a TOML file describes.

Tables ``[elements.NAME]`` have ``values`` by code; or ``integer``, the bits of symmetric two's complement; or
``exponent_bits``, ``mantissa_bits`` and ``bias`` of a minifloat with subnormals. All are multiplied by ``unit``. A
minifloat alone may have a ``window``, if its unit is a power of two. Tables ``[scales.NAME]`` have the fields of
`ScaleFormat`. Tables ``[formats.NAME]`` name both, and say what `BlockFormat` is to be. Other tables and keys are of no
concern here.
"""

from __future__ import annotations

import importlib
import math
import sys
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar

from . import rules
from .block import BlockFormat
from .catalogue import CATALOGUE
from .checks import ArgumentError
from .element import ElementFormat
from .scale import ScaleFormat

_Row = dict[str, Any]
_Part = TypeVar("_Part")
_BITS = range(1, 9)
"""Bits of an element, and of its exponent."""
_KEYS = {
    "elements": (
        *("values", "integer", "exponent_bits", "mantissa_bits", "bias", "unit", "point", "source"),
        *("preference", "silent"),
    ),
    "scales": ("exponent_bits", "mantissa_bits", "bias", "nan", "subnormals", "source"),
    "formats": (
        *("elements", "scale", "block", "full_scale", "sums", "window", "factors", "shifts", "scale_bytes"),
        *("selector_bit", "source", "rule", "trial", "nonzero"),
    ),
}
_LARGEST = 256
"""Of whole numbers but sizes: no exponent of a format is beyond it."""


def formats_from(text: str) -> dict[str, BlockFormat]:
    """Return the formats that the text of a TOML file describes, by name.

    Parameters
    ----------
    text : str
        The file. Names that it has no table for are those of the catalogue.

    Raises
    ------
    ArgumentError
        It is no TOML, or a table describes no format. The message names the table.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"text must be that of a TOML file; got {type(text).__name__}")
    return dict(_described(text))


@lru_cache(maxsize=64)
def _described(text: str) -> dict[str, BlockFormat]:
    try:
        # Python has had a reader of its own since 3.11.
        try:
            toml = importlib.import_module("tomllib")
        except ModuleNotFoundError:
            toml = importlib.import_module("tomli")
        content = toml.loads(text)
    except ModuleNotFoundError:
        raise ArgumentError("formats of a TOML file take Python 3.11, or the package tomli") from None
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"not valid TOML: {' '.join(str(error).split())}") from None
    elements, ambiguous = _catalogued()
    scales = {form.scale.name: form.scale for form in CATALOGUE.values()}
    found = {}
    for kind, known, make in (("elements", elements, _element), ("scales", scales, _scale)):
        for name, row in _rows(content, kind):
            known[name] = _made(f"{kind}.{name}", lambda name=name, row=row, make=make: make(name, row))
    for name, row in _rows(content, "formats"):
        found[name] = _made(
            f"formats.{name}", lambda name=name, row=row: _block(name, row, elements, scales, ambiguous)
        )
    return found


def _catalogued() -> tuple[dict[str, ElementFormat], set[str]]:
    """Return the elements of the catalogue by name, and those names that formats do not agree on."""
    found: dict[str, ElementFormat] = {}
    every = [element for form in CATALOGUE.values() for element in form.elements]
    return found, {each.name for each in every if found.setdefault(each.name, each) != each}


def _rows(content: _Row, kind: str) -> list[tuple[str, _Row]]:
    rows = content.get(kind, {})
    if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
        raise ArgumentError(f"{kind}: must be tables")
    for name, row in rows.items():
        for key in row:
            if key not in _KEYS[kind]:
                raise ArgumentError(f"{kind}.{name}: unknown key {key!r}; known are {', '.join(_KEYS[kind])}")
    return list(rows.items())


def _made(place: str, make: Any) -> Any:
    """Return what is made of a table; what it lacks, or has of another kind, is an error of that table."""
    try:
        return make()
    except KeyError as error:
        raise ArgumentError(f"{place}: {error.args[0]!r} is missing, or no name there is") from None
    except (ArithmeticError, ValueError) as error:  # arithmetic: numbers beyond float64 when they are scaled
        raise ArgumentError(f"{place}: {' '.join(str(error).split())}") from None


def _whole(row: _Row, key: str, default: int | None = None) -> int:
    """Return a whole number; one that has no default must be there."""
    found = row[key] if default is None else row.get(key, default)
    if type(found) is not int or not -_LARGEST <= found <= _LARGEST:
        raise ArgumentError(f"{key} = {found!r}: must be a whole number from {-_LARGEST} to {_LARGEST}")
    return found


def _positive(row: _Row, key: str) -> float | None:
    """Return a finite number above 0, if there is one."""
    found = row.get(key)
    if found is not None and not (_is_number(found) and 0 < found <= sys.float_info.max):
        raise ArgumentError(f"{key} = {found!r}: must be a finite number above 0")
    return None if found is None else float(found)


def _choice(row: _Row, key: str, default: bool) -> bool:
    found = row.get(key, default)
    if not isinstance(found, bool):
        raise ArgumentError(f"{key} = {found!r}: must be true or false")
    return found


def _is_number(found: Any) -> bool:
    """Return whether it is a number that float64 holds."""
    return type(found) in (int, float) and abs(found) <= sys.float_info.max


def _named(key: str, found: Any, known: dict[str, _Part]) -> _Part:
    """Return what a name stands for."""
    if not isinstance(found, str) or found not in known:
        raise ArgumentError(f"{key}: {found!r} is no name of one; known are {', '.join(known)}")
    return known[found]


def _listed(row: _Row, key: str) -> tuple[int, ...]:
    """Return a list of whole numbers; an empty one if there is none."""
    found = row.get(key, [])
    if not isinstance(found, list) or not all(type(each) is int for each in found):
        raise ArgumentError(f"{key} = {found!r}: must be a list of whole numbers")
    return tuple(found)


def _element(name: str, row: _Row) -> ElementFormat:
    unit, normal = _positive(row, "unit") or 1.0, None
    kinds = [key for key in ("values", "integer", "exponent_bits") if key in row]
    if len(kinds) != 1:
        raise ArgumentError(f"must have values, or integer, or exponent_bits; has {' and '.join(kinds) or 'none'}")
    if "integer" in row:
        bits = _whole(row, "integer")
        if bits not in _BITS:
            raise ArgumentError(f"integer = {bits}: must be from {_BITS[0]} to {_BITS[-1]} bits")
        top = 2 ** (bits - 1)
        numbers = [code if code < top else code - 2 * top for code in range(2 * top)]
        numbers[top] = 0
    elif "exponent_bits" in row:
        exponent_bits, mantissa_bits = _whole(row, "exponent_bits"), _whole(row, "mantissa_bits")
        if exponent_bits not in _BITS or mantissa_bits not in range(_BITS[-1]):
            raise ArgumentError(
                f"exponent_bits = {exponent_bits}, mantissa_bits = {mantissa_bits}: no element of 8 bits"
            )
        # Without its sign an element is coded as a scale is.
        bias = _whole(row, "bias", 2 ** (exponent_bits - 1) - 1)
        part = ScaleFormat(name, exponent_bits, mantissa_bits, bias)
        numbers = [sign * value for sign in (1.0, -1.0) for value in part.table.tolist()]
        fraction, power = math.frexp(unit)
        if fraction == 0.5:
            normal = power - bias
    else:
        numbers = row["values"]
        if not isinstance(numbers, list) or not all(map(_is_number, numbers)):
            raise ArgumentError(f"values = {numbers!r}: must be a list of numbers, one for each code")
    values = tuple(float(number) * unit for number in numbers)
    width = len(values).bit_length() - 1
    point = _whole(row, "point", 1)
    preference, silent = (_listed(row, key) for key in ("preference", "silent"))
    return ElementFormat(
        name,
        width,
        values,
        _unit(values) + point,
        point=point,
        preference=preference,
        silent=silent,
        normal=normal,
    )


def _unit(values: tuple[float, ...]) -> int:
    """Return the power of two in units of which the integers of values share no factor of two."""
    whole = next(power for power in count() if all((value * 2.0**power).is_integer() for value in values))
    integers = [int(value * 2.0**whole) for value in values]
    if not any(integers):
        raise ValueError("all values are zero")
    twos = next(power for power in count() if any(integer >> power & 1 for integer in integers))
    return twos - whole


def _scale(name: str, row: _Row) -> ScaleFormat:
    fields = (_whole(row, "exponent_bits"), _whole(row, "mantissa_bits"), _whole(row, "bias"))
    nan = _whole(row, "nan") if "nan" in row else None
    return ScaleFormat(name, *fields, subnormals=_choice(row, "subnormals", True), nan=nan)


def _block(
    name: str,
    row: _Row,
    elements: dict[str, ElementFormat],
    scales: dict[str, ScaleFormat],
    ambiguous: set[str],
) -> BlockFormat:
    names = row["elements"]
    if not isinstance(names, list):
        raise ArgumentError(f"elements = {names!r}: must be a list of names")
    chosen = tuple(_named("elements", each, elements) for each in names)
    for each in names:
        if each in ambiguous:
            raise ArgumentError(
                f"elements: formats of the catalogue settle ties of {each} in different ways; describe it in a table"
                " with values and preference"
            )
    scale = _named("scale", row["scale"], scales)
    nonzero = _choice(row, "nonzero", False)
    if nonzero and scale.zero is None:
        raise ArgumentError(f"nonzero: the quantiser looks for scales above zero, and scale {scale.name} has no zero")
    form = BlockFormat(
        name,
        chosen,
        scale,
        _positive(row, "full_scale"),
        tag_bit=_whole(row, "selector_bit", scale.width) if len(chosen) > 1 else None,
        block=_whole(row, "block"),
        sums=_whole(row, "sums", 1),
        window=_whole(row, "window") if "window" in row else None,
        factors=_listed(row, "factors"),
        shifts=_listed(row, "shifts"),
        trial=_listed(row, "trial"),
        nonzero=nonzero,
        scale_bytes=_whole(row, "scale_bytes", int(scale.width > 0)),
        rule=row.get("rule", ""),
    )
    rules.checked(form, row.get("rule"))
    return form
