"""Plots of a report."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.synth.area import ENTERING
from hwgen.synth.compare import SCOPES

__all__ = ["overhead_png"]

_COLOURS = {
    "operand decoders": "#0072b2",
    "dot products": "#e69f00",
    "scale products": "#56b4e9",
    "align, add, normalise, round": "#009e73",
    "registers and control": "#999999",
    "lane array": "#cc79a7",
    ENTERING: "#d9d9d9",
}
_METRICS = (("area", "area"), ("dynamic power", "dynamic power"))


def overhead_png(report: dict[str, Any]) -> bytes:
    """Area and dynamic power by block, both designs side by side at every scope, baseline = 100 %.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(11, 5.2), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(1, len(_METRICS), sharey=True)
    names = [config["name"] for config in report["designs"]]
    shown: dict[str, Any] = {}
    for axis, (metric, title) in zip(axes, _METRICS, strict=True):
        ticks = []
        for place, scope in enumerate(SCOPES):
            found = {
                entry["block"]: entry
                for entry in report["results"]
                if (entry["scope"], entry["metric"]) == (scope, metric)
            }
            total = found.pop("total")
            unit = total["values"][names[0]]
            for offset, name in enumerate(names):
                x = 2.6 * place + offset
                ticks.append((x, name))
                bottom = 0.0
                for block, entry in (found or {"lane array": total}).items():
                    height = 100 * entry["values"][name] / unit
                    bar = axis.bar(
                        x, height, 0.86, bottom=bottom, color=_COLOURS[block], edgecolor="white", linewidth=0.6
                    )
                    shown.setdefault(block, bar[0])
                    if height >= 5:
                        axis.text(x, bottom + height / 2, f"{height:.0f}", ha="center", va="center", fontsize=8)
                    bottom += height
            above = max(total["values"].values()) / unit * 100 + 1.5
            change = f"{100 * total['overhead']['median']:+.1f} %"
            axis.text(2.6 * place + 1, above, change, ha="center", fontweight="bold")
            axis.text(2.6 * place + 0.5, -0.17, scope, ha="center", transform=axis.get_xaxis_transform())
        axis.set_xticks([x for x, _ in ticks], [name.replace("-", "\n", 1) for _, name in ticks], fontsize=8)
        axis.set_title(title)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(y=0.12)
    axes[0].set_ylabel(f"% of {names[0]} at the same scope")
    canvas.legend(
        list(reversed(list(shown.values()))),
        list(reversed(list(shown))),
        loc="outside right center",
        frameon=False,
        fontsize=9,
    )
    conditions = report["conditions"]
    canvas.suptitle(
        f"{names[1]} against {names[0]}: {conditions['library']['name']}, {conditions['clock_ns']:g} ns,"
        f" recipe {conditions['recipe']['name']}, {conditions['runs']} runs of each",
        fontsize=11,
    )
    buffer = io.BytesIO()
    # No date or version in the file: the same figures give the same bytes.
    canvas.savefig(buffer, dpi=130, metadata={"Software": None})
    return buffer.getvalue()
