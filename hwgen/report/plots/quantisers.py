"""Area of hardware quantisers by block, and what they lose, as a picture."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.pareto import front
from hwgen.report.plots import labels
from hwgen.report.plots.canvas import BLOCKS, ink, plain, png
from hwgen.report.schema import TOTAL, QuantiserReport

__all__ = ["quantisers_png"]


_ALIGN = {False: "center", True: "right"}
_SUFFIX = "-quantiser"
_TYPE = 7
# Of the highest bar: what a line of type takes.
_WRITTEN = 0.035


def quantisers_png(report: QuantiserReport) -> bytes:
    """Area of all quantisers by block; of several also the noise of each against its area.

    Returns
    -------
    bytes
        A PNG.
    """
    names = list(report.conditions.quantisers)
    called = {name: plain(name.removesuffix(_SUFFIX)) for name in names}
    several = len(names) > 2 and bool(report.errors)
    canvas = Canvas(figsize=(13, 5.2) if several else (7, 4.6), layout="constrained")
    FigureCanvasAgg(canvas)
    if several:
        axis, beside = canvas.subplots(1, 2)
        named = _error_against_area(report, called, beside)
    else:
        axis = canvas.subplots()
    parts: dict[str, dict[str, float]] = {}
    for entry in report.results:
        if entry.metric == "area" and entry.block != TOTAL:
            parts.setdefault(entry.block, dict.fromkeys(names, 0.0)).update(entry.values)
    bottoms = dict.fromkeys(names, 0.0)
    top = max(sum(each[name] for each in parts.values()) for name in names)
    for block in (block for block in BLOCKS if block in parts):
        for place, name in enumerate(names):
            value = parts[block][name]
            label = block if place == 0 else None
            axis.bar(place, value, 0.6, bottom=bottoms[name], color=BLOCKS[block], edgecolor="white", label=label)
            if value > _WRITTEN * top:
                text = {"ha": "center", "va": "center", "fontsize": _TYPE, "color": ink(BLOCKS[block])}
                axis.text(place, bottoms[name] + value / 2, f"{value:,.0f}", **text)
            bottoms[name] += value
    axis.set_xticks(range(len(names)), list(called.values()), rotation=30 if several else 0, ha=_ALIGN[several])
    axis.set_ylabel("area of a quantiser, um2")
    axis.set_title(plain(f"area by block, {report.conditions.flow.library.name}"))
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    if several:
        # Labels need the final layout, to know what they would cover.
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")
        labels.draw(beside, named, 8)
    return png(canvas)


def _error_against_area(report: QuantiserReport, called: Mapping[str, str], axis: Axes) -> list[labels.Name]:
    """A point for each quantiser, and the Pareto front through the best; gives the names of the points."""
    found = report.points()
    best = front({name: (area, -decibels) for name, (area, decibels) in found.items()})
    axis.step(*zip(*(found[name] for name in best), strict=True), where="post", color="#999999", zorder=1)
    named = []
    for name, (area, decibels) in found.items():
        colour = "#0072b2" if name in best else "#d55e00"
        axis.plot([area], [decibels], "o", color=colour, zorder=2)
        named.append(labels.Name(called[name], area, decibels, colour))
    axis.set_xlabel("area of a quantiser, um2")
    axis.set_ylabel("noise over the float64 quantiser's, dB")
    axis.set_title("error against area")
    axis.margins(x=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    return named
