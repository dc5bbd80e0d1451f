"""Many ways to build two designs: the overhead at equal clock or area, and every way that was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hwgen.report.markdown.explore import MEANS
from hwgen.report.schema import ExplorationReport
from hwgen.site.charts import Chart, choice, interval, percents, quantity, titled
from hwgen.site.sources import Source

__all__ = ["limits", "ways"]

Pair = tuple[Source, ExplorationReport]

_AT = {
    "area": "area, at equal clock (ns)",
    "energy": "energy, at equal clock (ns)",
    "critical path": "critical path, at equal area (um2)",
}


def _reports(pairs: Sequence[Pair]) -> tuple[dict[str, Any], Any]:
    """The parameter of the report, and its control."""
    names = {source.name: source.name for source, _ in pairs}
    return {"name": "report", "value": next(iter(names), "")}, choice("report", "report", names)


def limits(pairs: Sequence[Pair]) -> Chart:
    """The overhead of the best against the best, at each limit."""
    parameter, control = _reports(pairs)
    found = [
        {
            "report": source.name,
            "metric": each.metric,
            "limit": each.limit.value,
            **percents(each.overhead),
        }
        for source, report in pairs
        for each in report.results
        if each.overhead is not None
    ]
    x = quantity(
        "limit",
        "limit",
        scale={"zero": False, "padding": 12},
        axis=titled("metric === 'critical path' ? 'largest area, um2' : 'clock period, ns'"),
    )
    spec = {
        "data": {"name": "limits"},
        "params": [parameter, {"name": "metric", "value": "area"}],
        "transform": [{"filter": "datum.report === report && datum.metric === metric"}],
        "height": 280,
        "layer": [
            *interval("y", {"x": x}, "overhead, %"),
            {"mark": "line", "encoding": {"x": x, "y": quantity("value", "overhead, %")}},
        ],
    }
    note = "Each design takes the best of all ways that were tried. Both keep to the same limit."
    return Chart(
        "limits",
        "Best against best, at an equal limit",
        {"": spec},
        {"limits": found},
        (control, choice("figure", "metric", _AT)),
        note,
        "Both designs keep to none of the limits.",
    )


def ways(pairs: Sequence[Pair]) -> Chart:
    """Area and energy against the critical path, of every way to build either design."""
    parameter, control = _reports(pairs)
    found = [
        {
            "report": source.name,
            "design": point.design,
            "lanes": point.dot,
            "registers": ", ".join(point.pipeline),
            "delay": MEANS["critical path"](point),
            "area": MEANS["area"](point),
            "energy": MEANS["energy"](point),
            "front": point.front,
        }
        for source, report in pairs
        for point in report.points
    ]
    wide = {"type": "log", "nice": False, "padding": 12}
    titles = {"area": "area, um2", "energy": "energy, fJ a multiply-accumulate"}
    specs = {
        cost: {
            "data": {"name": "ways"},
            "params": [parameter],
            "transform": [{"filter": "datum.report === report"}],
            "height": 320,
            "mark": "point",
            "encoding": {
                "x": quantity("delay", "critical path, ns", scale=wide),
                "y": quantity(cost, title, scale=wide),
                "color": {"field": "design", "type": "nominal", "title": "design"},
                "shape": {"field": "design", "type": "nominal", "title": "design"},
                "opacity": {"condition": {"test": "datum.front", "value": 1}, "value": 0.3},
                "tooltip": [
                    *({"field": each, "type": "nominal"} for each in ("design", "lanes", "registers")),
                    *(quantity(each, each, format=".4~g") for each in ("delay", "area", "energy")),
                ],
            },
        }
        for cost, title in titles.items()
    }
    note = "Pale points are beaten: another way of the same design is as good in area, delay and energy at once."
    return Chart(
        "ways", "Every way that was tried", specs, {"ways": found}, (control, choice("against", "spec", titles)), note
    )
