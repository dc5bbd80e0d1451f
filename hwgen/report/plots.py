"""Plots of a report."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.tables import find, find_blocks
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


def _attribution(axis: Any, report: dict[str, Any], shown: dict[str, Any]) -> None:
    """What each block adds to the overhead of area, scope by scope, stacked to the total with its interval."""
    places: list[str] = []
    for scope in SCOPES:
        total = find(report, scope, "area")
        found = {block: entry["contribution"]["value"] for block, entry in find_blocks(report, scope, "area").items()}
        ends = [0.0, 0.0]
        for block, value in (found or {"lane array": total["overhead"]["value"]}).items():
            side = int(value < 0)
            height = 100 * value
            bar = axis.bar(
                len(places), height, 0.6, bottom=ends[side], color=_COLOURS[block], edgecolor="white", linewidth=0.6
            )
            shown.setdefault(block, bar[0])
            if abs(height) >= 0.3:
                axis.text(len(places), ends[side] + height / 2, f"{height:+.1f}", ha="center", va="center", fontsize=8)
            ends[side] += height
        overhead = total["overhead"]
        value = 100 * overhead["value"]
        if overhead["low"] is not None:
            reach = [[value - 100 * overhead["low"]], [100 * overhead["high"] - value]]
            axis.errorbar(len(places) + 0.36, value, yerr=reach, fmt=".", color="black", capsize=3, linewidth=1)
        axis.text(len(places), ends[0] + 0.2, f"{value:+.2f} %", ha="center", va="bottom", fontweight="bold")
        places.append(scope)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(range(len(places)), places, fontsize=8)
    axis.set_ylabel("% of the baseline's area")
    axis.set_title("where the extra area sits")
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(y=0.12)


def overhead_png(report: dict[str, Any]) -> bytes:
    """Area and dynamic power by block, both designs side by side at every scope, and where the extra area sits.

    The baseline of each scope is 100 %.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(14, 5.2), layout="constrained")
    FigureCanvasAgg(canvas)
    *axes, extra = canvas.subplots(1, len(_METRICS) + 1)
    axes[1].sharey(axes[0])
    names = [config["name"] for config in report["designs"]]
    shown: dict[str, Any] = {}
    for axis, (metric, title) in zip(axes, _METRICS, strict=True):
        ticks = []
        for place, scope in enumerate(SCOPES):
            found, total = find_blocks(report, scope, metric), find(report, scope, metric)
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
            change = f"{100 * total['overhead']['value']:+.1f} %"
            axis.text(2.6 * place + 1, above, change, ha="center", fontweight="bold")
            axis.text(2.6 * place + 0.5, -0.17, scope, ha="center", transform=axis.get_xaxis_transform())
        axis.set_xticks([x for x, _ in ticks], [name.replace("-", "\n", 1) for _, name in ticks], fontsize=8)
        axis.set_title(title)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(y=0.12)
    _attribution(extra, report, shown)
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
        f" {conditions['runs']} runs of each",
        fontsize=11,
    )
    buffer = io.BytesIO()
    # No date or version in the file: the same figures give the same bytes.
    canvas.savefig(buffer, dpi=130, metadata={"Software": None})
    return buffer.getvalue()
