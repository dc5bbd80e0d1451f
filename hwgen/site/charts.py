"""Plots: Vega-Lite specifications, compiled here, and the one library that draws them.

vl-convert has Vega, Vega-Lite and Vega Embed in itself and needs no network. A specification is compiled to Vega when
the page is made, so that one that is wrong fails here, and not in front of a reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hwgen.errors import InputError
from hwgen.site.markup import Markup, tag
from hwgen.stats import Estimate

__all__ = [
    "COLOURS",
    "NAMES",
    "Chart",
    "choice",
    "compiled",
    "converter",
    "figure",
    "interval",
    "library",
    "percents",
    "quantity",
    "titled",
]

COLOURS = ("#2f86d1", "#d9730d", "#22976a", "#c2559f", "#8168d8", "#d0493f", "#6f8590", "#9a8412")
"""Colours of series: each can be told from a white and from a dark ground."""

_BUNDLE = "window.vegaEmbed = vegaEmbed;"


@dataclass(frozen=True)
class Chart:
    """A plot with its controls.

    Parameters
    ----------
    name
        What the page knows it by.
    title
        What it shows.
    specs
        Vega-Lite specifications, by what the reader chooses them by; one alone has the name ``""``.
    data
        Rows, by the name that specifications give them.
    controls
        Elements that set parameters: markup of `choice` and the like.
    note
        What is to be said below it.
    empty
        What is said in its place where nothing is drawn.
    """

    name: str
    title: str
    specs: Mapping[str, Mapping[str, Any]]
    data: Mapping[str, Sequence[Mapping[str, Any]]]
    controls: tuple[Markup, ...] = ()
    note: str = ""
    empty: str = "Nothing was measured for this choice."


def converter() -> Any:
    """The package vl_convert.

    Raises
    ------
    InputError
        It is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise InputError(
            "the page needs the package vl-convert-python, the extra 'site': pip install '.[site]' in the checkout"
        ) from None
    return vl_convert


@cache
def library() -> str:
    """Vega Embed, with Vega in it, as JavaScript that sets ``window.vegaEmbed``.

    Raises
    ------
    InputError
        As `converter`.
    """
    found: str = converter().javascript_bundle(_BUNDLE)
    return found


_CONFIG = {
    "background": None,
    "view": {"stroke": None},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelOverlap": True},
    "legend": {
        "orient": "bottom",
        "columns": {"expr": "windowSize()[0] < 600 ? 2 : 3"},  # a phone has no room for three
        "labelLimit": 220,
        "titleLimit": 320,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "range": {"category": list(COLOURS)},
    "mark": {"color": COLOURS[0]},
    "point": {"size": 70, "filled": True, "opacity": 1},
    "rule": {"strokeWidth": 2, "color": COLOURS[0]},
    "text": {"fontSize": 12},
    "font": "system-ui, sans-serif",
}


_COMPUTED = "= "
"""What the title of an axis begins with that is an expression."""

NAMES = "names"
"""The layer whose texts are put beside their places, over nothing else; those without a free place are not shown."""

_BESIDE = {
    "type": "label",
    "size": {"signal": "[max(width, 1), max(height, 1)]"},  # the width is not known at first
    "anchor": ["top-right", "bottom-right", "right", "left", "top", "bottom"],
    "offset": [6, 6, 9, 9, 7, 7],
}


def compiled(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Vega from Vega-Lite, with what Vega-Lite cannot say: names beside their points, titles that are computed.

    Raises
    ------
    InputError
        As `converter`.
    ValueError
        The specification is wrong.
    """
    whole = {"autosize": {"type": "fit-x", "contains": "padding"}, "width": "container", "config": _CONFIG, **spec}
    found: dict[str, Any] = converter().vegalite_to_vega(whole)
    for axis in found.get("axes", ()):
        if str(axis.get("title")).startswith(_COMPUTED):
            axis["title"] = {"signal": axis["title"].removeprefix(_COMPUTED)}
    names = [mark["name"] for mark in found["marks"]]
    for mark in found["marks"]:
        if mark["name"] == f"{NAMES}_marks":
            others = [name for name in names if name != mark["name"]]
            mark["transform"] = [{**_BESIDE, "avoidMarks": others}]
    return found


def titled(expression: str) -> dict[str, Any]:
    """Part of an axis: a title that follows the parameters, an expression of Vega; Vega-Lite has words alone."""
    return {"title": f"{_COMPUTED}{expression}"}


def quantity(field: str, title: str, **more: Any) -> dict[str, Any]:
    """An encoding of a number."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def percents(estimate: Estimate) -> dict[str, float]:
    """Value and bounds in percent, as fields of a row; a bound that is not known is the value."""
    low, high = (estimate.value if each is None else each for each in (estimate.low, estimate.high))
    return {"value": 100 * estimate.value, "low": 100 * low, "high": 100 * high}


def interval(along: str, shared: Mapping[str, Any], title: str) -> list[dict[str, Any]]:
    """Layers of an overhead with its interval, percent, along one axis: a rule and a point.

    Parameters
    ----------
    along
        ``x`` or ``y``.
    shared
        The other encodings.
    title
        Of the axis.
    """
    at_zero = {"condition": {"test": "datum.value === 0", "value": 2}, "value": 1}
    scale = {"scale": {"zero": True}, "axis": {"gridWidth": at_zero}}
    ends = {along: quantity("low", title, **scale), f"{along}2": {"field": "high"}}
    return [
        {"mark": {"type": "rule", "aria": False}, "encoding": {**shared, **ends}},
        {"mark": "point", "encoding": {**shared, along: quantity("value", title, **scale)}},
    ]


def choice(label: str, parameter: str, options: Mapping[str, str], **more: Any) -> Markup:
    """A list to choose from that sets a parameter of a plot.

    Parameters
    ----------
    label
        What it is for.
    parameter
        Which one; ``spec`` chooses among the specifications.
    options
        What is shown, by value.
    """
    shown = (tag("option", words, value=value) for value, words in options.items())
    return tag("label", tag("span", label), tag("select", *shown, data_param=parameter, **more), class_="control")


def figure(chart: Chart) -> Markup:
    """The place of a plot, with its controls."""
    return tag(
        "figure",
        tag("figcaption", chart.title),
        tag("div", *chart.controls, class_="controls") if chart.controls else None,
        tag("div", class_="plot", role="group", aria_label=chart.title),
        tag("p", chart.empty, class_="empty", role="status", hidden=True),
        tag("p", chart.note, class_="note") if chart.note else None,
        data_chart=chart.name,
        class_="chart",
    )
