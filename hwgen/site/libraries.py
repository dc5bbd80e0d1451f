"""Tables of formats side by side: what each costs over NVFP4, library by library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hwgen.report.beside import METRICS
from hwgen.report.markdown.beside import name_of, summary
from hwgen.report.schema import LibrariesReport
from hwgen.site.charts import Chart, choice, quantity
from hwgen.site.conditions import links
from hwgen.site.markup import Markup, rows, tag
from hwgen.site.sources import Source
from hwgen.stats import Ratio

__all__ = ["chart", "tables"]

Pair = tuple[Source, LibrariesReport]


def _points(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Cost over that of the baseline with its interval, of every core that is compared."""
    return [
        {
            "report": source.name,
            "metric": metric,
            "library": label,
            "name": name_of(row),
            "clock": "met" if core.met else "missed",
            "value": ratio.value,
            "low": ratio.value if ratio.low is None else ratio.low,
            "high": ratio.value if ratio.high is None else ratio.high,
        }
        for source, report in pairs
        for row in report.results
        for label, core in row.cores.items()
        for metric in METRICS
        if (figure := core.find(metric)) is not None and figure.overhead is not None
        for ratio in [Ratio.of(figure.overhead)]
    ]


def chart(pairs: Sequence[Pair]) -> Chart:
    """A mark of each row for each library, on a scale of ratios."""
    names = {source.name: source.name for source, _ in pairs}
    title = "cost of the core over NVFP4"
    scale = {"scale": {"type": "log", "nice": False, "padding": 16}, "axis": {"tickCount": 6, "format": "~g"}}
    axis = {"labelLimit": 220, "labelOverlap": False, "grid": True}
    legend = {"legend": {"columns": 1}}  # for narrow windows
    library = {"field": "library", "type": "nominal", "title": "library and clock", "sort": None, **legend}
    places = {
        "y": {"field": "name", "type": "nominal", "title": None, "sort": None, "axis": axis},
        "yOffset": {"field": "library", "type": "nominal", "sort": None},
    }
    tooltip = [
        {"field": "name", "type": "nominal"},
        library,
        quantity("value", "over NVFP4", format=".4f"),
        quantity("low", "from", format=".4f"),
        quantity("high", "to", format=".4f"),
        {"field": "clock", "type": "nominal"},
    ]
    marks = {
        "x": quantity("value", title, **scale),
        "color": library,
        "shape": library,
        "opacity": {"condition": {"test": "datum.clock === 'met'", "value": 1}, "value": 0.35},
        "tooltip": tooltip,
    }
    ends = {"x": quantity("low", title, **scale), "x2": {"field": "high"}, "color": {"value": "#888888"}}
    spec = {
        "data": {"name": "libraries"},
        "params": [{"name": "report", "value": next(iter(names), "")}, {"name": "metric", "value": METRICS[0]}],
        "transform": [{"filter": "datum.report === report && datum.metric === metric"}],
        "height": {"step": 11},
        "layer": [
            {"mark": {"type": "rule", "aria": False}, "encoding": {**places, **ends}},
            {"mark": "point", "encoding": {**places, **marks}},
        ],
    }
    controls = (
        choice("report", "report", names, data_shows="libraries"),
        choice("cost", "metric", {metric: metric for metric in METRICS}),
    )
    said = (
        "The scale is one of ratios: at 1, a core costs as much for each product as NVFP4 with as many products. Pale"
        " marks miss the clock."
    )
    return Chart(
        "libraries", "Formats over NVFP4, library by library", {"": spec}, {"libraries": _points(pairs)}, controls, said
    )


def tables(pairs: Sequence[Pair]) -> list[Markup]:
    """The rows of each report, and why some cores were not measured."""
    found = []
    for place, (source, report) in enumerate(pairs):
        header, lines = summary(report)
        reasons = [
            f"{row.row} on {label}: {core.not_measured}."
            for row in report.results
            for label, core in row.cores.items()
            if core.not_measured is not None
        ]
        found.append(
            tag(
                "section",
                tag("h3", source.name, " ", links(source)),
                rows(header, [list(line) for line in lines], f"Formats in {source.name}", len(header) - 1),
                tag("ul", *(tag("li", each) for each in reasons)) if reasons else None,
                data_libraries=source.name,
                hidden=place > 0,
            )
        )
    return found
