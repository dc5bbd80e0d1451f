"""Tables of formats side by side as a picture: a bar of each row for each library."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.markdown.beside import METRICS, labelled, row_names
from hwgen.report.plots.canvas import plain, png, reach
from hwgen.report.schema import FormatsReport
from hwgen.stats import Estimate

__all__ = ["beside_png", "overheads"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def overheads(reports: Sequence[FormatsReport], metric: str) -> dict[str, dict[str, Estimate]]:
    """Overheads of the cores that meet their clock, by library and clock, and by name of the row."""
    found: dict[str, dict[str, Estimate]] = {}
    for label, report in labelled(reports).items():
        figures = {row.row: row.find("core", metric) for row in report.results if row.met}
        found[label] = {name: each.overhead for name, each in figures.items() if each is not None and each.overhead}
    return found


def beside_png(reports: Sequence[FormatsReport]) -> bytes:
    """Bars of the overhead of each row in area and in energy, with intervals; a colour for each library.

    Returns
    -------
    bytes
        A PNG.
    """
    shown = {metric: overheads(reports, metric) for metric in METRICS}
    compared = {name for found in shown.values() for each in found.values() for name in each}
    names = [name for name in row_names(reports) if name in compared]
    count = len(reports)
    canvas = Canvas(figsize=(12, max(3.0, 1.6 + 0.22 * count * len(names))), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(1, len(METRICS), sharey=True)
    for axis, (metric, found) in zip(axes, shown.items(), strict=True):
        for index, (label, each) in enumerate(found.items()):
            colour = _COLOURS[index % len(_COLOURS)]
            for number, (name, estimate) in enumerate((name, each[name]) for name in names if name in each):
                place = names.index(name) + (index - (count - 1) / 2) * 0.8 / count
                words = plain(label) if number == 0 else None
                value = 100 * estimate.value
                axis.barh(place, value, 0.8 / count, xerr=reach(estimate), color=colour, label=words)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(names)), [plain(name) for name in names], fontsize=8)
        axis.set_xlabel(f"{metric} of the core over the baseline, %")
        axis.spines[["top", "right"]].set_visible(False)
    if names:
        axes[0].invert_yaxis()
        axes[0].legend(frameon=False, fontsize=8)
    return png(canvas)
