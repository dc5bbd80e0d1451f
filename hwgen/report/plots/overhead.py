"""Area and power of two designs by block, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.form import counted, signed
from hwgen.report.plots.canvas import BLOCKS, ink, plain, png, reach
from hwgen.report.schema import OverheadReport

__all__ = ["overhead_png"]

_METRICS = (("area", "area"), ("dynamic power", "dynamic power"))
_OTHER = "#cccccc"
_LABELLED = 0.04
"""Share of an axis from which on a bar is thick enough for its number."""

_EDGE: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.6}


def _attribution(axis: Any, report: OverheadReport, shown: dict[str, Any]) -> None:
    """What each block adds to the overhead of area, stacked to the total with its interval, of scopes with blocks."""
    places: list[str] = []
    labels: list[tuple[float, float, float, str]] = []
    for scope in report.scopes:
        overhead = report.find(scope, "area").overhead
        assert overhead is not None  # every area has one
        found = {
            block: entry.contribution.value
            for block, entry in report.blocks(scope, "area").items()
            if entry.contribution
        }
        if not found:
            continue
        ends = [0.0, 0.0]
        for block, value in found.items():
            side = int(value < 0)
            height = 100 * value
            bar = axis.bar(len(places), height, 0.6, bottom=ends[side], color=BLOCKS.get(block, _OTHER), **_EDGE)
            shown.setdefault(block, bar[0])
            labels.append((len(places), ends[side] + height / 2, height, BLOCKS.get(block, _OTHER)))
            ends[side] += height
        value = 100 * overhead.value
        if bars := reach(overhead):
            axis.errorbar(len(places) + 0.36, value, yerr=bars, fmt=".", color="black", capsize=3, linewidth=1)
        # Beyond the bars, on the side where their sum is.
        end, offset = (ends[0], 3) if value >= 0 else (ends[1], -3)
        axis.annotate(
            f"{signed(value, 2)} %",
            (len(places), end),
            (0, offset),
            textcoords="offset points",
            ha="center",
            va="bottom" if value >= 0 else "top",
            fontweight="bold",
        )
        places.append(scope)
    axis.margins(y=0.12)
    low, high = axis.get_ylim()
    for x, y, height, colour in labels:
        if abs(height) >= _LABELLED * (high - low):
            axis.text(x, y, signed(height, 1), ha="center", va="center", fontsize=8, color=ink(colour))
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(range(len(places)), places, fontsize=8)
    axis.set_ylabel("% of the baseline's area")
    axis.set_title("where the extra area sits")
    axis.spines[["top", "right"]].set_visible(False)


def _short(names: Sequence[str]) -> list[str]:
    """Names for below the bars, in lines: without the ending that all have, such as a size."""
    shared = all("-" in name for name in names) and len({name.rpartition("-")[2] for name in names}) == 1
    return [(name.rpartition("-")[0] if shared else name).replace("-", "\n") for name in names]


def overhead_png(report: OverheadReport) -> bytes:
    """Area and dynamic power by block, both designs side by side at every scope, and where the extra area sits.

    The baseline of each scope is 100 %.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(14, 5.2), layout="constrained")
    FigureCanvasAgg(canvas)
    attributed = any(report.blocks(scope, "area") for scope in report.scopes)
    axes = list(canvas.subplots(1, len(_METRICS) + attributed))
    extra = axes.pop() if attributed else None
    axes[1].sharey(axes[0])
    names = report.names
    shown: dict[str, Any] = {}
    for axis, (metric, title) in zip(axes, _METRICS, strict=True):
        ticks = []
        for place, scope in enumerate(report.scopes):
            found, total = report.blocks(scope, metric), report.find(scope, metric)
            unit = total.values[names[0]]
            for offset, (name, label) in enumerate(zip(names, _short(names), strict=True)):
                x = 2.6 * place + offset
                ticks.append((x, label))
                bottom = 0.0
                for block, entry in (found or {"lane array": total}).items():
                    height = 100 * entry.values[name] / unit
                    colour = BLOCKS.get(block, _OTHER)
                    bar = axis.bar(x, height, 0.86, bottom=bottom, color=colour, **_EDGE)
                    shown.setdefault(block, bar[0])
                    if height >= 5:
                        text = {"ha": "center", "va": "center", "fontsize": 8, "color": ink(colour)}
                        axis.text(x, bottom + height / 2, f"{height:.0f}", **text)
                    bottom += height
            above = max(total.values.values()) / unit * 100 + 1.5
            if total.overhead is not None:
                change = f"{signed(100 * total.overhead.value, 1)} %"
                axis.text(2.6 * place + 1, above, change, ha="center", fontweight="bold")
            axis.text(2.6 * place + 0.5, -0.17, scope, ha="center", transform=axis.get_xaxis_transform())
        axis.set_xticks([x for x, _ in ticks], [label for _, label in ticks], fontsize=8)
        axis.set_title(title)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(y=0.12)
    if extra is not None:
        _attribution(extra, report, shown)
    axes[0].set_ylabel(f"% of {names[0]} at the same scope")
    canvas.legend(
        list(reversed(list(shown.values()))),
        list(reversed(list(shown))),
        loc="outside right center",
        frameon=False,
        fontsize=9,
    )
    conditions = report.conditions
    clock_ns = report.asked_ns
    missed = f" (missed: power at {conditions.clock_ns:g} ns)" if clock_ns != conditions.clock_ns else ""
    canvas.suptitle(
        f"{names[1]} against {names[0]}: {plain(conditions.flow.library.name)}, {clock_ns:g} ns{missed},"
        f" {counted(conditions.runs, 'run')} of each",
        fontsize=11,
    )
    return png(canvas)
