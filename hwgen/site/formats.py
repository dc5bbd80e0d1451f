"""The table of formats: what each costs, what it loses, and which no other beats."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from hwgen.report.markdown.formats import notes, summary
from hwgen.report.pareto import front
from hwgen.report.plots.errors import accuracies, points, shown
from hwgen.report.schema import FormatsReport
from hwgen.site.charts import COLOURS, NAMES, Chart, choice, quantity
from hwgen.site.conditions import links
from hwgen.site.markup import Markup, rows, tag
from hwgen.site.sources import Source

__all__ = ["chart", "tables"]

Pair = tuple[Source, FormatsReport]

_COSTS = {"area per MAC": "core area, um2 a product", "energy per MAC": "core energy, fJ a product"}


def _points(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Cost and accuracy of every row that meets the clock, and whether it is on the front.

    What is far below the others has its place at the edge, and its figure beside its name.
    """
    return [
        {
            "report": source.name,
            "kind": kind,
            "metric": metric,
            "products": f"{products} products",
            "name": name if accuracy >= lowest else f"{name}: {accuracy:.3g}",
            "cost": cost,
            "accuracy": accuracy,
            "place": accuracy if accuracy >= lowest else edge,
            "front": name in best,
        }
        for source, report in pairs
        for kind in accuracies(report)
        for metric in _COSTS
        if (found := points(report, metric, kind))
        for lowest, edge in [shown(found)]
        for products, each in found.items()
        for best in [front(each)]
        for name, (cost, accuracy) in each.items()
    ]


def _layers(title: str, counts: Sequence[str]) -> list[dict[str, Any]]:
    """The front as a staircase with its names, and all points; a colour and a shape for each count of products."""
    x = quantity(
        "cost", title, scale={"type": "log", "nice": False, "padding": 40}, axis={"tickCount": 8, "format": "~g"}
    )
    y = quantity("place", "signal over noise in dB, or similarity", scale={"zero": False, "padding": 16})
    colour = {
        "field": "products",
        "type": "nominal",
        "title": "added up by an output in a cycle",
        "scale": {"domain": list(counts)},
        "legend": {"columns": 2},
    }
    places = {"x": x, "y": y, "color": colour}
    # By value: as a scale of its own it would take the shapes out of the legend.
    tests = ({"test": f"datum.products === '{each}'"} for each in counts)
    line = {"condition": [{**test, "value": shade} for test, shade in zip(tests, cycle(COLOURS), strict=False)]}
    tooltip = [
        {"field": "name", "type": "nominal"},
        quantity("cost", title, format=".4~g"),
        quantity("accuracy", "dB, or similarity", format=".4~g"),
    ]
    pale = {"condition": {"test": "datum.front", "value": 1}, "value": 0.4}
    return [
        {
            "transform": [{"filter": "datum.front"}],
            "mark": {"type": "line", "interpolate": "step-after"},
            "encoding": {"x": x, "y": y, "detail": {"field": "products"}, "color": line},
        },
        {"mark": "point", "encoding": {**places, "shape": colour, "opacity": pale, "tooltip": tooltip}},
        {
            "name": NAMES,
            "transform": [{"filter": "datum.front"}],
            "mark": {"type": "text", "fontSize": 11},
            "encoding": {"x": x, "y": y, "text": {"field": "name"}},
        },
    ]


def chart(pairs: Sequence[Pair]) -> Chart:
    """Error against cost, with the Pareto front of rows that add up as many products."""
    names = {
        source.name: f"{report.conditions.flow.library.short}, {report.conditions.clock_ns:g} ns ({source.name})"
        for source, report in pairs
    }
    tensors = list(dict.fromkeys(kind for _, report in pairs for kind in accuracies(report)))
    data = {"formats": _points(pairs)}
    counts = sorted({each["products"] for each in data["formats"]}, key=lambda words: int(words.split()[0]))
    chosen = "datum.report === report && datum.kind === kind && (products === '' || datum.products === products)"
    specs = {
        metric: {
            "data": {"name": "formats"},
            "params": [
                {"name": "report", "value": next(iter(names), "")},
                {"name": "kind", "value": next(iter(tensors), "")},
                {"name": "products", "value": ""},
            ],
            "transform": [{"filter": f"{chosen} && datum.metric === '{metric}'"}],
            "height": 380,
            "layer": _layers(title, counts),
        }
        for metric, title in _COSTS.items()
    }
    controls = (
        choice("library", "report", names, data_shows="formats"),
        choice("cost", "spec", {metric: metric for metric in _COSTS}),
        choice("accuracy of", "kind", {kind: kind for kind in tensors}),
        choice("products", "products", {"": "all", **{words: words for words in counts}}),
    )
    said = (
        "A line joins the Pareto front: no other row that adds up as many products is both cheaper and better. The"
        " others are pale. Their names are below the pointer, as is a name that has no room. Rows far below the others"
        " stand at the lower edge, with their figure. Rows that miss the clock are left out."
    )
    title, none = "What a format costs, and what it loses", "No row of this choice meets the clock. The table has them."
    return Chart("formats", title, specs, data, controls, said, none)


def tables(pairs: Sequence[Pair]) -> list[Markup]:
    """The rows of each table, and what is to be said of some."""
    found = []
    for place, (source, report) in enumerate(pairs):
        header, lines = summary(report)
        conditions = report.conditions
        what = f"{conditions.flow.library.name}, {conditions.clock_ns:g} ns"
        shown = [
            [
                tag("span", first, title=f"results[{row}] of {source.path.name}"),
                *rest,
            ]
            for row, (first, *rest) in enumerate(lines)
        ]
        said = notes(report)
        found.append(
            tag(
                "section",
                tag("h3", what, " ", links(source)),
                rows(list(header), shown, f"Formats on {what}", len(header) - 1),
                tag("ul", *(tag("li", f"{name}: {words}.") for name, words in said.items())) if said else None,
                data_formats=source.name,
                hidden=place > 0,
            )
        )
    return found
