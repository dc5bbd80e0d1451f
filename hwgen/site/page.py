"""The page, from the reports of a folder."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from hwgen import __version__
from hwgen.errors import InputError
from hwgen.report.damaged import of_reports
from hwgen.report.plots.canvas import BLOCKS
from hwgen.report.schema import (
    CostReport,
    ExplorationReport,
    FormatsReport,
    LayerReport,
    LibrariesReport,
    OverheadReport,
    PowerReport,
)
from hwgen.site import charts, explorations, formats, layer, libraries, overheads, power, workloads
from hwgen.site.charts import Chart
from hwgen.site.conditions import dialog, links
from hwgen.site.markup import Markup, tag, together
from hwgen.site.sources import Source, of_kind, read

__all__ = ["Content", "contents", "page"]

Section = tuple[str, str, Markup]


class Content:
    """What a page shows, apart from the library that draws its plots.

    Attributes
    ----------
    sections : list
        Identity, heading and content of each.
    charts : list
        The plots in them.
    data : dict
        What controls need besides.
    """

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self.charts: list[Chart] = []
        self.data: dict[str, Any] = {}

    def add(self, identity: str, heading: str, *parts: Any) -> None:
        """Add a section; charts among its parts get their place."""
        found = []
        for part in parts:
            if isinstance(part, Chart):
                self.charts.append(part)
                part = charts.figure(part)
            found.append(part)
        self.sections.append((identity, heading, together(*found)))


def contents(sources: Sequence[Source]) -> Content:
    """All sections that these reports give; a kind of which there is no report has none."""
    found = Content()
    if compared := overheads.ordered(of_kind(sources, OverheadReport)):
        found.add("headline", "What MixFP4 costs over NVFP4", overheads.headline(compared), overheads.table(compared))
        found.add("overhead", "Overhead against its conditions", overheads.chart(compared))
        found.add(
            "inside",
            "Inside a core",
            tag("p", "A core holds elements, an element holds blocks. Open one to see its area, power and path."),
            overheads.blocks_chart(compared),
            *_first_open(compared),
        )
    if tabled := list(of_kind(sources, FormatsReport)):
        found.add("formats", "Formats beside one another", formats.chart(tabled), *formats.tables(tabled))
    if beside := list(of_kind(sources, LibrariesReport)):
        found.add("libraries", "Formats, library by library", libraries.chart(beside), *libraries.tables(beside))
    if layers := list(of_kind(sources, LayerReport)):
        found.add("layer", "A layer of a trained model", layer.chart(layers), *layer.tables(layers))
    if costs := list(of_kind(sources, CostReport)):
        grids = [workloads.grid(*each) for each in costs]
        found.data["workloads"] = workloads.payload(costs, grids)
        readout = tag("div", class_="readout", id="readout", aria_live="polite")
        found.add("workloads", "Workloads", workloads.chart(costs, grids), readout, *workloads.tables(costs))
    if explored := list(of_kind(sources, ExplorationReport)):
        named = tag("ul", *(tag("li", source.path.name, " ", links(source)) for source, _ in explored))
        found.add(
            "explorations", "Other ways to build it", explorations.limits(explored), explorations.ways(explored), named
        )
    if powered := list(of_kind(sources, PowerReport)):
        found.add("power", "Power by situation", power.chart(powered), *power.tables(powered))
    shown = (compared, tabled, beside, layers, costs, explored, powered)
    in_sections = {source.name for pairs in shown for source, _ in pairs}
    if others := [source for source in sources if source.name not in in_sections]:
        found.add("others", "Other reports", tag("ul", *map(_other, others)))
    return found


def _other(source: Source) -> Markup:
    """A report of which no section has figures: what it is of."""
    what = f"{source.path.name}: of {source.report.command}, on {', '.join(source.report.names)}"
    return tag("li", what, " ", links(source))


def _first_open(compared: Sequence[tuple[Source, OverheadReport]]) -> Iterator[Markup]:
    """What is inside the cores of the first report, and of each other one compressed until it is chosen."""
    first, *others = zip(compared, overheads.inside(compared), strict=True)
    yield first[1]
    for (source, _), section in others:
        yield _embedded(overheads.place_of(source), section.encode())


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def _embedded(identity: str, content: bytes, **attributes: str) -> Markup:
    """Bytes in the page, compressed."""
    text = base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
    return tag("script", Markup(text), type="application/gzip", id=identity, **attributes)


def _template(name: str) -> str:
    return (files("hwgen.site") / "templates" / name).read_text(encoding="utf-8")


def _shown(sources: Sequence[Source]) -> Content:
    """`contents`, and whose fault it is where they do not come about."""
    try:
        with of_reports(*(source.path for source in sources)):
            return contents(sources)
    except InputError:
        if len(sources) > 1:
            for source in sources:
                _shown([source])
        raise


def _conditions(source: Source) -> str:
    """`dialog`, likewise."""
    with of_reports(source.path):
        return dialog(source)


def page(folder: Path) -> bytes:
    """The page as HTML.

    Parameters
    ----------
    folder
        Of the reports.

    Raises
    ------
    InputError
        As from `hwgen.site.sources.read` and `hwgen.site.charts.converter`, or a report that is damaged.
    """
    charts.converter()  # before all work
    sources = read(folder)
    found = _shown(sources)
    plots = {
        chart.name: {
            "specs": {name: charts.compiled(spec) for name, spec in chart.specs.items()},
            "data": chart.data,
        }
        for chart in found.charts
    }
    parts = {
        "style": _template("style.css"),
        "navigation": together(*(tag("a", heading, href=f"#{identity}") for identity, heading, _ in found.sections)),
        "sections": together(
            *(
                tag(
                    "section",
                    tag("h2", heading, id=f"{identity}-heading"),
                    content,
                    id=identity,
                    aria_labelledby=f"{identity}-heading",
                )
                for identity, heading, content in found.sections
            )
        ),
        "version": f"hwgen {__version__}, {len(sources)} reports",
        "data": together(
            _embedded("page-data", _json({"charts": plots, "blocks": BLOCKS, **found.data})),
            *(_embedded(f"json-{each.name}", each.content, data_file=each.path.name) for each in sources),
            # Compressed they take a tenth, and the page opens without them.
            *(_embedded(f"conditions-{each.name}", _conditions(each).encode()) for each in sources),
            _embedded("library", charts.library().encode()),
        ),
        "script": _template("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _template("page.html")).encode()
