"""HTML elements: text in them is escaped, unless it is markup already."""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["Markup", "rows", "tag", "together"]

_VOID = {"br", "input"}


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def _text(value: Any) -> str:
    return value if isinstance(value, Markup) else escape(str(value), quote=True)


def together(*parts: Any) -> Markup:
    """Parts one behind another; what is None is left out."""
    return Markup("".join(_text(part) for part in parts if part is not None))


def tag(name: str, *parts: Any, **attributes: Any) -> Markup:
    """An element.

    Parameters
    ----------
    name
        Of the element.
    parts
        What stands in it: markup, or text, which is escaped.
    attributes
        By name: an underscore at the end falls away, one inside is a hyphen. True is an attribute without a value;
        False and None leave it out.
    """
    given = []
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            given.append(f" {label}")
        elif value is not None and value is not False:
            given.append(f' {label}="{_text(str(value))}"')
    start = f"<{name}{''.join(given)}>"
    return Markup(start) if name in _VOID else Markup(f"{start}{together(*parts)}</{name}>")


def rows(header: list[Any], lines: list[list[Any]], caption: str, numbers: int = 0) -> Markup:
    """A table that scrolls by itself where it is wider than the screen; the last ``numbers`` columns hold figures."""
    words = len(header) - numbers

    def cell(place: int, value: Any) -> Markup:
        if place == 0:
            return tag("th", value, scope="row")
        return tag("td", value, class_="number" if place >= words else None)

    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", *(tag("th", each, scope="col") for each in header))),
            tag("tbody", *(tag("tr", *(cell(*each) for each in enumerate(line))) for line in lines)),
        ),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
