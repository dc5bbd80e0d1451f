"""The table of formats as a picture: area by block."""

from __future__ import annotations

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.markdown.formats import added
from hwgen.report.plots.canvas import BLOCKS, empty, plain, png
from hwgen.report.schema import FormatRow, FormatsReport

__all__ = ["formats_png"]

_OTHER = "#cccccc"
_EDGE: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.6}


def _bars(axis: Any, rows: list[FormatRow]) -> dict[str, Any]:
    """Area of the core for each product in a cycle, stacked by block; a bar of each block."""
    shown: dict[str, Any] = {}
    for place, row in enumerate(rows):
        total = row.find("core", "area")
        each = row.find("core", "area per MAC")
        assert total is not None  # every row that was measured has both
        assert each is not None
        share, start = each.mean / total.mean, 0.0
        for block, value in row.blocks_um2.items():
            bar = axis.barh(place, share * value, 0.8, left=start, color=BLOCKS.get(block, _OTHER), **_EDGE)
            shown.setdefault(block, bar[0])
            start += share * value
        axis.text(start, place, f" {start:.3g}" + ("" if row.met else " (clock missed)"), va="center", fontsize=9)
    axis.set_yticks(range(len(rows)), [plain(f"{row.row} ({added(row)})") for row in rows], fontsize=9)
    axis.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axis.set_xlabel("core area, um2 for each product in a cycle")
    axis.margins(x=0.14)
    axis.spines[["top", "right"]].set_visible(False)
    return shown


def formats_png(report: FormatsReport) -> bytes:
    """Bars of core area by block for each row.

    Returns
    -------
    bytes
        A PNG.
    """
    rows = [row for row in report.results if row.figures]
    canvas = Canvas(figsize=(10, max(3.0, 1.8 + 0.3 * len(rows))), layout="constrained")
    FigureCanvasAgg(canvas)
    axis = canvas.subplots()
    shown = _bars(axis, rows)
    if not rows:
        empty(axis, "no row was measured")
    conditions = report.conditions
    canvas.suptitle(
        f"block formats: {plain(conditions.flow.library.short)}, {conditions.clock_ns:g} ns, core area by block",
        fontsize=11,
    )
    canvas.legend(list(shown.values()), list(shown), frameon=False, fontsize=9, loc="outside lower center", ncols=3)
    return png(canvas)
