"""A layer of a trained model in each format: how far its results are from those of FP32."""

from __future__ import annotations

from collections.abc import Sequence

from hwgen.report.form import counted
from hwgen.report.markdown.layer import OUTPUT, summary
from hwgen.report.schema import LayerReport
from hwgen.site.charts import Chart, choice, quantity
from hwgen.site.conditions import links
from hwgen.site.markup import Markup, rows, tag
from hwgen.site.sources import Source

__all__ = ["chart", "tables"]

Pair = tuple[Source, LayerReport]

_FIGURES = {"snr": "all results", "median": "median column"}


def _title(report: LayerReport) -> str:
    return f"{report.conditions.model}, layer {report.conditions.layer}"


def chart(pairs: Sequence[Pair]) -> Chart:
    """Signal-to-noise ratio of each matrix product within the layer, and of the layer's output, by format."""
    names = {source.name: f"{_title(report)} ({source.name})" for source, report in pairs}
    found = [
        {"report": source.name, "format": row.name, "gemm": gemm, "snr": each.snr_db, "median": each.median_db}
        for source, report in pairs
        for row in report.results
        for gemm, each in [*((each.gemm, each.within) for each in row.gemms), (OUTPUT, row.output)]
    ]
    form = {"field": "format", "type": "nominal", "title": "format", "sort": None}
    scale, axis = {"padding": 0.3}, {"grid": True}
    y = {"field": "gemm", "type": "nominal", "title": None, "sort": None, "scale": scale, "axis": axis}
    specs = {
        figure: {
            "data": {"name": "layers"},
            "params": [{"name": "report", "value": next(iter(names), "")}],
            "transform": [{"filter": "datum.report === report"}],
            "height": {"step": 34},
            "mark": "point",
            "encoding": {
                "y": y,
                "x": quantity(figure, "signal-to-noise ratio, dB", scale={"zero": False, "padding": 16}),
                "color": form,
                "shape": form,
                "tooltip": [
                    {"field": "gemm", "type": "nominal"},
                    form,
                    quantity(figure, "dB", format=".2f"),
                ],
            },
        }
        for figure in _FIGURES
    }
    controls = (
        choice("layer", "report", names, data_shows="layer"),
        choice("of", "spec", _FIGURES),
    )
    note = (
        "More is better. Every matrix product takes what those before it gave, in the format. One channel of large"
        " numbers may have nearly all of the energy; the median column does not follow it."
    )
    return Chart("layers", "How far results are from those of FP32", specs, {"layers": found}, controls, note)


def tables(pairs: Sequence[Pair]) -> list[Markup]:
    """What each format makes of the layer's output, and which products went through the RTL."""
    found = []
    for place, (source, report) in enumerate(pairs):
        header, lines = summary(report)
        conditions = report.conditions
        shown = [
            [tag("span", first, title=f"results[{row}] of {source.path.name}"), *rest]
            for row, (first, *rest) in enumerate(lines)
        ]
        what = f"{counted(conditions.sentences, 'sentence')}, {counted(conditions.tokens, 'token')}"
        found.append(
            tag(
                "section",
                tag("h3", _title(report), " ", links(source)),
                rows(header, shown, f"The layer's output by format: {what}", len(header) - 1),
                data_layer=source.name,
                hidden=place > 0,
            )
        )
    return found
