"""Tables and plot of each kind of report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwgen.errors import InputError
from hwgen.report import schema
from hwgen.report.damaged import of_reports
from hwgen.report.markdown import beside, cost, explore, formats, layer, overhead, power, quantisers
from hwgen.report.plots import beside as beside_plots
from hwgen.report.plots import cost as cost_plots
from hwgen.report.plots import errors as error_plots
from hwgen.report.plots import explore as explore_plots
from hwgen.report.plots import formats as formats_plots
from hwgen.report.plots import layer as layer_plots
from hwgen.report.plots import overhead as overhead_plots
from hwgen.report.plots import power as power_plots
from hwgen.report.plots import quantisers as quantiser_plots
from hwgen.report.plots.layout import placement_png

__all__ = ["FORMS", "Form", "rendered", "rendered_anew", "summary"]


@dataclass(frozen=True)
class Form:
    """How a kind of report is rendered.

    Parameters
    ----------
    markdown
        The report for readers, from the report and the file name of its plot.
    csv
        Its figures as a table.
    summary
        Header and rows of what most readers come for.
    png
        Its plot.
    more
        Further pictures that it refers to, by what follows the report's name.
    """

    markdown: Callable[[Any, str], str]
    csv: Callable[[Any], str]
    summary: Callable[[Any], tuple[list[str], list[list[str]]]]
    png: Callable[[Any], bytes]
    more: Callable[[Any], Mapping[str, bytes]] = lambda report: {}


def _placement(report: schema.OverheadReport) -> dict[str, bytes]:
    """The picture of the placed cores, where there are any."""
    conditions = report.conditions
    if conditions.placement is None:
        return {}
    named = {f"{name}: {each.cells:,} cells": each for name, each in conditions.placement.items()}
    title = f"{conditions.flow.library.name}, least area at {conditions.clock_ns:g} ns"
    return {overhead.PLACEMENT: placement_png(named, title)}


def _errors(report: schema.FormatsReport) -> dict[str, bytes]:
    """The picture of error against cost, where errors are known."""
    return {formats.ERRORS: error_plots.errors_png(report)} if formats.kinds(report) else {}


FORMS: dict[str, Form] = {
    schema.OverheadReport.kind: Form(
        overhead.markdown, overhead.csv, overhead.summary, overhead_plots.overhead_png, _placement
    ),
    schema.ExplorationReport.kind: Form(explore.markdown, explore.csv, explore.summary, explore_plots.explore_png),
    schema.PowerReport.kind: Form(power.markdown, power.csv, power.summary, power_plots.power_png),
    schema.CostReport.kind: Form(cost.markdown, cost.csv, cost.summary, cost_plots.cost_png),
    schema.FormatsReport.kind: Form(formats.markdown, formats.csv, formats.summary, formats_plots.formats_png, _errors),
    schema.LibrariesReport.kind: Form(beside.markdown, beside.csv, beside.summary, beside_plots.beside_png),
    schema.QuantiserReport.kind: Form(
        quantisers.markdown, quantisers.csv, quantisers.summary, quantiser_plots.quantisers_png
    ),
    schema.LayerReport.kind: Form(layer.markdown, layer.csv, layer.summary, layer_plots.layer_png),
}
"""By kind of report."""


def summary(report: schema.Report) -> tuple[list[str], list[list[str]]]:
    """Header and rows of what most readers come for."""
    return FORMS[report.kind].summary(report)


def rendered(report: schema.Report, out: Path, stem: str) -> dict[Path, bytes]:
    """Everything about a report that follows from its JSON, by file."""
    picture = out / f"{stem}.png"
    form = FORMS[report.kind]
    return {
        out / f"{stem}.md": form.markdown(report, picture.name).encode(),
        out / f"{stem}.csv": form.csv(report).encode(),
        picture: form.png(report),
        **{out / f"{stem}{suffix}": content for suffix, content in form.more(report).items()},
    }


def rendered_anew(path: Path) -> dict[Path, bytes]:
    """Everything that follows from the JSON of a report, beside it.

    Raises
    ------
    InputError
        It is not a report, of no known kind, or damaged; or its name has another ending.
    """
    if path.suffix != ".json":
        raise InputError(f"report {str(path)!r}: its name must end in .json; what follows from it has other endings")
    report = schema.load(path)
    with of_reports(path):
        return rendered(report, path.parent, path.stem)
