"""Area of two hardware quantisers by block, as a picture."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.plots.canvas import BLOCKS, plain, png
from hwgen.report.schema import TOTAL, QuantiserReport

__all__ = ["quantisers_png"]


def quantisers_png(report: QuantiserReport) -> bytes:
    """Area of both quantisers by block.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(7, 4.6), layout="constrained")
    FigureCanvasAgg(canvas)
    axis = canvas.subplots()
    names = list(report.conditions.quantisers)
    parts = {entry.block: entry.values for entry in report.results if entry.metric == "area" and entry.block != TOTAL}
    bottoms = dict.fromkeys(names, 0.0)
    for block in (block for block in BLOCKS if block in parts):
        for place, name in enumerate(names):
            value = parts[block][name]
            label = block if place == 0 else None
            axis.bar(place, value, 0.6, bottom=bottoms[name], color=BLOCKS[block], edgecolor="white", label=label)
            if value > 0.03 * sum(each[name] for each in parts.values()):
                axis.text(place, bottoms[name] + value / 2, f"{value:,.0f}", ha="center", va="center", fontsize=8)
            bottoms[name] += value
    axis.set_xticks(range(len(names)), [plain(name) for name in names])
    axis.set_ylabel("um2")
    axis.set_title(plain(f"area by block, {report.conditions.flow.library.name}"))
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return png(canvas)
