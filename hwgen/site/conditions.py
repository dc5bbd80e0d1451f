"""What the figures of a report hold for, whole: every record with the meaning of its fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hwgen.report.check import another_library, findings
from hwgen.report.schema import Design, Placement
from hwgen.report.schema_page import described
from hwgen.site.markup import Markup, tag, together
from hwgen.site.sources import Source

__all__ = ["dialog", "links", "shown"]

_PIXELS = "pixels"


def links(source: Source) -> Markup:
    """What leads from a figure to its conditions and to its JSON."""
    return tag(
        "span",
        tag("button", "conditions", type="button", data_dialog=f"conditions-{source.name}", class_="link"),
        " ",
        _saved(source),
        tag("small", "measured with an earlier library") if another_library(source.report) else None,
        class_="links",
    )


def _saved(source: Source) -> Markup:
    """What saves its JSON."""
    title = f"Save {source.path.name}"
    return tag("button", "JSON", type="button", data_json=source.name, class_="link", title=title)


def _simple(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float)


def _plain(value: Any) -> str:
    if value is None:
        return "not stated"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _entry(name: str, value: Any, meaning: str = "") -> Markup:
    """A term with its value, and below it what it means."""
    words = tag("small", meaning) if meaning else None
    return together(tag("dt", name.replace("_", " ")), tag("dd", shown(value), words))


def shown(value: Any) -> Markup:
    """A value of a report: text, a list, or the fields of a record with their meanings."""
    if _simple(value):
        return tag("span", _plain(value))
    if isinstance(value, Design):
        return shown(value.settings)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        meanings = described(type(value))
        skipped = {_PIXELS} if isinstance(value, Placement) else set()
        fields = [field.name for field in dataclasses.fields(value) if field.name not in skipped]
        return tag("dl", *(_entry(name, getattr(value, name), meanings[name]) for name in fields))
    if isinstance(value, Mapping):
        return tag("dl", *(_entry(str(name), each) for name, each in value.items())) if value else tag("span", "none")
    entries = list(value)
    if all(_simple(each) for each in entries):
        return tag("span", ", ".join(map(_plain, entries)) or "none")
    return tag("ol", *(tag("li", shown(each)) for each in entries))


def dialog(source: Source) -> Markup:
    """The conditions of a report, to be opened from any of its figures."""
    report = source.report
    conditions: Any = vars(report)["conditions"]
    meanings = described(type(conditions))
    heading = f"heading-{source.name}"
    said = [*another_library(report), *findings(report)]
    parts = [
        tag(
            "details",
            tag("summary", field.name.replace("_", " ")),
            tag("p", meanings[field.name], class_="note"),
            shown(getattr(conditions, field.name)),
        )
        for field in dataclasses.fields(conditions)
    ]
    return tag(
        "dialog",
        tag("h2", f"Conditions of {source.path.name}", id=heading),
        tag("p", f"Written by {report.command}. ", _saved(source)),
        together(tag("h3", "Know this first"), tag("ul", *(tag("li", f"{each}.") for each in said))) if said else None,
        tag("details", tag("summary", "designs"), *(shown(design) for design in report.designs)),
        *parts,
        tag("form", tag("button", "Close"), method="dialog"),
        id=f"conditions-{source.name}",
        aria_labelledby=heading,
    )
