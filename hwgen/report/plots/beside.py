"""Tables of formats side by side as a picture: a mark of each row for each library."""

from __future__ import annotations

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from hwgen.report.beside import METRICS
from hwgen.report.markdown.beside import name_of
from hwgen.report.plots.canvas import decades, empty, plain, png
from hwgen.report.schema import LibrariesReport
from hwgen.stats import Ratio

__all__ = ["beside_png", "ratios"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKS = ("o", "s", "^", "D", "v", "P")
"""A library has its own mark and colour, so that neither is needed to tell them apart."""


def ratios(report: LibrariesReport, metric: str) -> dict[str, dict[str, tuple[Ratio, bool]]]:
    """Cost over that of the baseline, and whether the clock is met, by library and clock, and by name of the row."""
    return {
        label: {
            row.row: (Ratio.of(figure.overhead), bool(row.cores[label].met))
            for row in report.results
            if (figure := row.cores[label].find(metric)) is not None and figure.overhead is not None
        }
        for label in report.conditions.tables
    }


def _marks(axis: Any, found: dict[str, dict[str, tuple[Ratio, bool]]], names: list[str]) -> None:
    """A line of marks for each row, one for each library, with its interval; hollow where the clock is missed."""
    for index, each in enumerate(found.values()):
        style = {"color": _COLOURS[index % len(_COLOURS)], "marker": _MARKS[index % len(_MARKS)]}
        for name, (ratio, met) in each.items():
            place = names.index(name) + (index - (len(found) - 1) / 2) * 0.6 / len(found)
            if ratio.low is not None and ratio.high is not None:
                axis.plot([ratio.low, ratio.high], [place, place], color=style["color"], linewidth=1.2)
            axis.plot(
                ratio.value, place, linestyle="none", markersize=5.5, fillstyle="full" if met else "none", **style
            )


def _ground(axis: Any, metric: str, rows: int) -> None:
    """Scale, stripes to follow a row by, and the baseline."""
    for place in range(0, rows, 2):
        axis.axhspan(place - 0.5, place + 0.5, color="#f2f2f2", linewidth=0, zorder=0)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xscale("log")
    decades(axis.xaxis)
    axis.grid(axis="x", color="#cccccc", linewidth=0.5)
    axis.set_axisbelow(True)
    axis.set_xlabel(f"{metric} of the core, over NVFP4 with as many products")
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)


def beside_png(report: LibrariesReport) -> bytes:
    """Area and energy of each row over the baseline, with intervals; a mark and a colour for each library.

    Returns
    -------
    bytes
        A PNG.
    """
    shown = {metric: ratios(report, metric) for metric in METRICS}
    compared = {name for found in shown.values() for each in found.values() for name in each}
    rows = [row for row in report.results if row.row in compared]
    names = [row.row for row in rows]
    labels = list(report.conditions.tables)
    canvas = Canvas(figsize=(12, max(3.0, 1.6 + (0.2 + 0.08 * len(labels)) * len(rows))), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(1, len(METRICS), sharey=True)
    for axis, (metric, found) in zip(axes, shown.items(), strict=True):
        _ground(axis, metric, len(rows))
        _marks(axis, found, names)
        axis.set_yticks(range(len(rows)), [plain(name_of(row)) for row in rows], fontsize=9)
        axis.set_ylim(max(len(rows), 1) - 0.5, -0.5)
        if not rows:
            empty(axis, "no row has a baseline to compare with")
    keys = [
        Line2D([], [], color=_COLOURS[index % len(_COLOURS)], marker=_MARKS[index % len(_MARKS)], label=plain(label))
        for index, label in enumerate(labels)
    ]
    if any(not met for found in shown.values() for each in found.values() for _, met in each.values()):
        words = "hollow: misses the clock"
        keys.append(Line2D([], [], color="black", linestyle="none", marker="o", fillstyle="none", label=words))
    canvas.legend(handles=keys, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return png(canvas)
