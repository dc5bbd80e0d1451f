"""What must be alike of two tables of formats that are put together: rows of one name are the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from hwgen.errors import InputError
from hwgen.report.schema import FormatsReport, OperandFormat, Stimulus

__all__ = ["Compared", "check_alike", "rows"]

Compared = tuple[str, Any, Any]
"""What must be alike, in words, and its two values."""


def check_alike(one: str, other: str, compared: Iterable[Compared]) -> None:
    """Refuse two reports, by their paths, of which something that is compared is not alike."""
    for what, ours, theirs in compared:
        if ours != theirs:
            raise InputError(
                f"reports {one!r} and {other!r} do not compare: {what} is {_said(ours)} in the one and"
                f" {_said(theirs)} in the other; measure both alike"
            )


def rows(report: FormatsReport, other: FormatsReport) -> Iterator[Compared]:
    """What must be alike of the rows that two reports have."""
    for row in report.results:
        twin = other.find(row.row)
        if twin is None or row.design is None or twin.design is None:
            continue
        ours, theirs = _settings(report, row.design), _settings(other, twin.design)
        for name in dict.fromkeys((*ours, *theirs)):
            yield f"row {row.row!r}: {name}", ours.get(name), theirs.get(name)
        for side in ("a", "b"):
            # A format in a file of the user's own may have changed under its name.
            for name in (field.name for field in fields(OperandFormat)):
                what = f"row {row.row!r}: {name} of format {side.upper()}"
                yield what, getattr(getattr(row, side), name), getattr(getattr(twin, side), name)
        if row.figures and twin.figures:
            yield f"row {row.row!r}: baseline", row.baseline, twin.baseline
            yield f"row {row.row!r}: operands", _operands(row.stimulus), _operands(twin.stimulus)


def _settings(report: FormatsReport, name: str) -> Mapping[str, Any]:
    (design,) = (each for each in report.designs if each.name == name)
    return design.settings


def _operands(stimulus: Stimulus | None) -> str | None:
    """What they are, in words; the seed only makes them others of the same kind."""
    if stimulus is None:
        return None
    layer = "" if stimulus.layer is None else f" and {stimulus.layer}"
    return f"{stimulus.tensors}{layer}, K = {stimulus.depth}, held for {stimulus.hold} steps"


def _said(value: Any) -> str:
    if value is None:
        return "not said"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
