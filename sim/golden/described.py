"""Formats that a TOML file describes.

Tables ``[elements.NAME]`` have ``values`` by code; or ``integer``, the bits of symmetric two's complement; or
``exponent_bits``, ``mantissa_bits`` and ``bias`` of a minifloat with subnormals. All are multiplied by ``unit``. Tables
``[scales.NAME]`` have the fields of `ScaleFormat`. Tables ``[formats.NAME]`` name both, and say what `BlockFormat` is
to be. Other tables and keys are of no concern here.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from itertools import count
from typing import Any

from . import rules
from .block import BlockFormat
from .catalogue import CATALOGUE
from .checks import ArgumentError
from .element import ElementFormat
from .scale import ScaleFormat

_Row = dict[str, Any]


@lru_cache(maxsize=64)
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
        for each in ambiguous & {*map(str, row.get("elements", ()))}:
            raise ArgumentError(
                f"formats.{name}: elements: formats of the catalogue settle ties of {each} in different ways; describe"
                " it in a table with values and preference"
            )
        found[name] = _made(f"formats.{name}", lambda name=name, row=row: _block(name, row, elements, scales))
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
    return list(rows.items())


def _made(place: str, make: Any) -> Any:
    """Return what is made of a table; what it lacks, or has of another kind, is an error of that table."""
    try:
        return make()
    except KeyError as error:
        raise ArgumentError(f"{place}: {error.args[0]!r} is missing, or no name there is") from None
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as error:
        raise ArgumentError(f"{place}: {' '.join(str(error).split())}") from None


def _listed(row: _Row, key: str) -> tuple[int, ...]:
    """Return a list of whole numbers; an empty one if there is none."""
    found = row.get(key, [])
    if not isinstance(found, list) or not all(type(each) is int for each in found):
        raise ArgumentError(f"{key} = {found!r}: must be a list of whole numbers")
    return tuple(found)


def _element(name: str, row: _Row) -> ElementFormat:
    unit = row.get("unit", 1)
    if "integer" in row:
        top = 2 ** (row["integer"] - 1)
        numbers = [code if code < top else code - 2 * top for code in range(2 * top)]
        numbers[top] = 0
    elif "exponent_bits" in row:
        exponent_bits, mantissa_bits = row["exponent_bits"], row["mantissa_bits"]
        # Without its sign an element is coded as a scale is.
        part = ScaleFormat(name, exponent_bits, mantissa_bits, row.get("bias", 2 ** (exponent_bits - 1) - 1))
        numbers = [sign * value for sign in (1.0, -1.0) for value in part.table.tolist()]
    else:
        numbers = row["values"]
    values = tuple(float(number) * unit for number in numbers)
    width = len(values).bit_length() - 1
    point = row.get("point", 1)
    preference, silent = (_listed(row, key) for key in ("preference", "silent"))
    return ElementFormat(name, width, values, _unit(values) + point, point=point, preference=preference, silent=silent)


def _unit(values: tuple[float, ...]) -> int:
    """Return the power of two in units of which the integers of values share no factor of two."""
    whole = next(power for power in count() if all((value * 2.0**power).is_integer() for value in values))
    integers = [int(value * 2.0**whole) for value in values]
    if not any(integers):
        raise ValueError("all values are zero")
    twos = next(power for power in count() if any(integer >> power & 1 for integer in integers))
    return twos - whole


def _scale(name: str, row: _Row) -> ScaleFormat:
    fields = (row["exponent_bits"], row["mantissa_bits"], row["bias"])
    return ScaleFormat(name, *fields, subnormals=row.get("subnormals", True), nan=row.get("nan"))


def _block(name: str, row: _Row, elements: dict[str, ElementFormat], scales: dict[str, ScaleFormat]) -> BlockFormat:
    chosen = tuple(elements[each] for each in row["elements"])
    scale = scales[row["scale"]]
    nonzero = row.get("nonzero", False)
    if not isinstance(nonzero, bool):
        raise ArgumentError(f"nonzero = {nonzero!r}: must be true or false")
    if nonzero and scale.zero is None:
        raise ArgumentError(f"nonzero: the quantiser looks for scales above zero, and scale {scale.name} has no zero")
    form = BlockFormat(
        name,
        chosen,
        scale,
        row.get("full_scale"),
        tag_bit=row.get("selector_bit", scale.width) if len(chosen) > 1 else None,
        block=row["block"],
        sums=row.get("sums", 1),
        factors=_listed(row, "factors"),
        shifts=_listed(row, "shifts"),
        trial=_listed(row, "trial"),
        nonzero=nonzero,
        scale_bytes=row.get("scale_bytes", int(scale.width > 0)),
        rule=row.get("rule", ""),
    )
    rules.checked(form, row.get("rule"))
    return form
