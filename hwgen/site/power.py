"""Power of two designs in many situations."""

from __future__ import annotations

from collections.abc import Sequence

from hwgen.report.form import number, percent
from hwgen.report.schema import PowerReport
from hwgen.site.charts import Chart, choice, interval, percents, quantity
from hwgen.site.conditions import links
from hwgen.site.markup import Markup, rows, tag
from hwgen.site.sources import Source

__all__ = ["chart", "tables"]

Pair = tuple[Source, PowerReport]


def chart(pairs: Sequence[Pair]) -> Chart:
    """Overhead of the power, by situation."""
    names = {source.name: source.name for source, _ in pairs}
    found = [
        {
            "report": source.name,
            "situation": entry.situation,
            "scope": entry.scope,
            **percents(entry.overhead),
        }
        for source, report in pairs
        for entry in report.results
    ]
    y = {"field": "situation", "type": "nominal", "sort": None, "axis": None}
    tooltip = [
        {"field": "situation", "type": "nominal"},
        *(quantity(field, field, format="+.2f") for field in ("value", "low", "high")),
    ]
    spec = {
        "data": {"name": "situations"},
        "params": [{"name": "report", "value": next(iter(names), "")}, {"name": "scope", "value": "core"}],
        "transform": [{"filter": "datum.report === report && datum.scope === scope"}],
        "height": {"step": 40},
        "layer": [
            {
                "mark": {"type": "text", "align": "left", "baseline": "bottom", "dy": -6},
                "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "situation"}},
            },
            *interval("x", {"y": y, "tooltip": tooltip}, "overhead of the total power, %"),
        ],
    }
    controls = (
        choice("report", "report", names, data_shows="power"),
        choice("scope", "scope", {"core": "core", "element": "element"}),
    )
    return Chart("power", "Overhead of the power, by situation", {"": spec}, {"situations": found}, controls)


def tables(pairs: Sequence[Pair]) -> list[Markup]:
    """All situations of each report."""
    found = []
    for place, (source, report) in enumerate(pairs):
        header = ["situation", "scope", *(f"{name}, mW" for name in report.names), "overhead"]
        lines = [
            [
                tag("span", entry.situation, title=f"results[{row}] of {source.path.name}"),
                entry.scope,
                *(number(entry.milliwatts[name]) for name in report.names),
                percent(entry.overhead),
            ]
            for row, entry in enumerate(report.results)
        ]
        conditions = report.conditions
        what = f"{source.name}: {conditions.flow.library.name}, {conditions.clock_ns:g} ns"
        parts = tag("summary", what), links(source), rows(header, lines, what, 3)
        found.append(tag("details", *parts, data_power=source.name, hidden=place > 0))
    return found
