"""The table of formats as a picture: area by block, and error against cost."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.markdown.formats import kinds
from hwgen.report.pareto import front
from hwgen.report.plots.canvas import BLOCKS, plain, png
from hwgen.report.schema import FormatRow, FormatsReport

__all__ = ["formats_png", "points"]

_OTHER = "#cccccc"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_EDGE: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.6}


def points(report: FormatsReport, metric: str, kind: str) -> dict[int, dict[str, tuple[float, float]]]:
    """Cost of the core and dB, of all rows that meet the clock, by products of an output in a cycle and by name.

    Products are told apart since they decide on the cost of one, whatever the format. Rules have points of their own.

    Parameters
    ----------
    report
        The table.
    metric
        ``area per MAC`` or ``energy per MAC``.
    kind
        Of tensor.
    """
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for row in report.results:
        cost = row.find("core", metric)
        if cost is None or row.products is None or not row.met:
            continue
        for place, (rule, ratio) in enumerate(row.decibels(kind).items()):
            # The default rule comes first.
            name = f"{row.row}, {rule}" if place else row.row
            found.setdefault(row.products, {})[name] = (cost.mean, ratio)
    return dict(sorted(found.items()))


def _bars(axis: Any, rows: list[FormatRow]) -> None:
    """Area of the core for each product in a cycle, stacked by block."""
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
        axis.text(start, place, f" {start:.3g}" + ("" if row.met else " (clock missed)"), va="center", fontsize=8)
    axis.set_yticks(range(len(rows)), [plain(row.row) for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("core area, um2 for each product in a cycle")
    axis.margins(x=0.14)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(
        list(shown.values()), list(shown), frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.1)
    )


def _scatter(axis: Any, found: dict[int, dict[str, tuple[float, float]]], words: str, kind: str) -> None:
    """Error against cost; what is on a front is filled, and joined by a staircase."""
    for colour, (products, each) in zip(cycle(_COLOURS), found.items(), strict=False):
        best = front(each)
        for name, (cost, ratio) in each.items():
            axis.plot(cost, ratio, "o", color=colour, fillstyle="full" if name in best else "none", markersize=5)
            axis.annotate(plain(name), (cost, ratio), xytext=(4, 3), textcoords="offset points", fontsize=7)
        ends = ([each[name][place] for name in best] for place in (0, 1))
        axis.step(*ends, where="post", color=colour, linewidth=1.2, label=f"{products} products")
    axis.set_xlabel(words)
    axis.set_ylabel(f"signal over noise, {kind} tensors, dB")
    axis.margins(0.16)
    axis.spines[["top", "right"]].set_visible(False)
    if found:
        axis.legend(frameon=False, fontsize=8, loc="lower right")


def formats_png(report: FormatsReport) -> bytes:
    """Bars of core area by block for each row; where errors are known, error against area and energy of a product.

    Returns
    -------
    bytes
        A PNG.
    """
    rows = [row for row in report.results if row.figures]
    known = kinds(report)
    height = max(5.2, 1.5 + 0.34 * len(rows))
    canvas = Canvas(figsize=(7 + 5 * len(known), max(height, 9.0) if known else height), layout="constrained")
    FigureCanvasAgg(canvas)
    left, *right = canvas.subfigures(
        1, 1 + bool(known), width_ratios=[7, 5 * len(known)][: 1 + bool(known)], squeeze=False
    )[0]
    _bars(left.subplots(), rows)
    if known:
        axes = right[0].subplots(2, len(known), squeeze=False)
        for line, metric, words in (
            (axes[0], "area per MAC", "core area, um2 for each product in a cycle"),
            (axes[1], "energy per MAC", "energy of the core, fJ per MAC"),
        ):
            for axis, kind in zip(line, known, strict=True):
                _scatter(axis, points(report, metric, kind), words, kind)
    conditions = report.conditions
    canvas.suptitle(
        f"block formats: {plain(conditions.flow.library.name)}, {conditions.clock_ns:g} ns; filled: no other row with"
        " as many products is both cheaper and better",
        fontsize=11,
    )
    return png(canvas)
