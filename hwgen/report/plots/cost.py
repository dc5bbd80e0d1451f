"""The cost of a workload as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from hwgen.cost.model import CORE_PARTS, PARTS
from hwgen.measure.cost import BANDWIDTH, CORES
from hwgen.report.markdown.cost import quantity, unit_of, workload_of
from hwgen.report.plots.overhead import plain, png, reach

__all__ = ["cost_png"]

_COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#bcbd22"),
    *("#8c564b", "#17becf", "#9467bd"),
)
_REST = "#d9d9d9"
_GROUPS = {"cores": CORE_PARTS, "buffer": ("buffer",), "DRAM": ("DRAM",)}
_GROUP_COLOURS = {"cores": "#332288", "buffer": "#88ccee", "DRAM": "#d9d9d9"}
_LABEL = 30
_ROWS = 5
_WIDE = 1000


class _Shown:
    """The GEMMs that a picture has room for: those that take longest, the others together."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.names = [config["name"] for config in report["designs"]]
        first = self.names[0]
        entries = report["results"]
        slowest = sorted(entries, key=lambda entry: -entry["count"] * entry["values"][first]["seconds"])
        kept = [id(entry) for entry in slowest[: len(_COLOURS)]]
        self.entries = [entry for entry in entries if id(entry) in kept]
        self.rest = [entry for entry in entries if id(entry) not in kept]
        self.colours = list(_COLOURS[: len(self.entries)])

    def groups(self) -> list[tuple[str, str, list[dict[str, Any]]]]:
        """Label, colour and GEMMs of each bar."""
        rows = [
            (_short(entry["gemm"]), colour, [entry]) for entry, colour in zip(self.entries, self.colours, strict=True)
        ]
        return [*rows, (f"{len(self.rest)} others", _REST, self.rest)] if self.rest else rows


def _short(name: str) -> str:
    return plain(name if len(name) <= _LABEL else name[: _LABEL - 3] + "...")


def _bare(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)


def _decades(axis: Any, low: float, high: float) -> None:
    """Plain numbers on a logarithmic axis of a decade at least, at 1, 2 and 5 of each unless they are many."""
    low = min(low, high / 10)
    axis.set_view_interval(low / 1.3, 1.3 * high, ignore=True)
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < _WIDE else (1,)))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: quantity(value, "").strip() if value >= 1 else f"{value:g}")
    )
    axis.set_minor_formatter(NullFormatter())


def _roofline(axis: Any, report: dict[str, Any], shown: _Shown) -> None:
    """What each GEMM reaches, under what cores and DRAM allow."""
    conditions = report["conditions"]
    bandwidth = conditions["memory"]["dram_bytes_per_second"]
    config = report["designs"][0]
    macs = config["rows"] * config["columns"] * config["groups"] * 16
    peak = conditions["cores"] * macs / conditions["clock_ns"] * 1e9
    points = []
    for entry, colour in zip(shown.entries, shown.colours, strict=True):
        found = entry["values"][shown.names[0]]
        intensity = entry["macs"] / (found["dram_read_bytes"] + found["dram_write_bytes"])
        points.append((intensity, entry["macs"] / found["seconds"], colour, _short(entry["gemm"])))
    ridge = peak / bandwidth
    xs = [point[0] for point in points]
    span = np.geomspace(min(*xs, ridge) / 2, max(*xs, ridge) * 3, 100)
    axis.plot(span, np.minimum(span * bandwidth, peak), color="black", linewidth=1.2)
    for x, y, colour, label in points:
        axis.plot(x, y, "o", color=colour, markersize=8, markeredgecolor="white", label=label, zorder=3)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("MAC per byte of DRAM traffic")
    axis.set_ylabel("MAC/s")
    _decades(axis.xaxis, span[0], span[-1])
    _decades(axis.yaxis, min(point[1] for point in points), peak)
    axis.set_title(f"roofline: {quantity(peak, 'MAC/s')}, {quantity(bandwidth, 'B/s')}")
    axis.legend(fontsize=7, frameon=False, loc="lower right")
    axis.grid(alpha=0.25, which="major")
    _bare(axis)


def _times(axis: Any, report: dict[str, Any], shown: _Shown) -> None:
    """Time of a pass by GEMM, and what it is bound by."""
    first = shown.names[0]
    groups = shown.groups()

    def seconds(entries: Sequence[dict[str, Any]]) -> float:
        return float(sum(entry["count"] * entry["values"][first]["seconds"] for entry in entries))

    total = seconds(report["results"])
    for place, (_, colour, entries) in enumerate(groups):
        value = seconds(entries)
        axis.barh(place, 100 * value / total, 0.7, color=colour)
        bound = ", ".join(dict.fromkeys(entry["values"][first]["bound"] for entry in entries))
        axis.annotate(
            f"{quantity(value, 's')}, {bound}",
            (100 * value / total, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axis.set_yticks(range(len(groups)), [label for label, _, _ in groups], fontsize=8)
    axis.set_ylim(max(len(groups), _ROWS) - 0.5, -0.5)
    axis.set_xlabel("% of the time")
    axis.set_title(f"time by GEMM, {quantity(total, 's')} in all, and its bound")
    axis.margins(x=0.3)
    _bare(axis)


def _energies(axis: Any, report: dict[str, Any], shown: _Shown) -> None:
    """Energy by GEMM and by who spends it, both designs one above the other."""
    unit, per = unit_of(report)
    groups = shown.groups()
    height = 0.8 / len(shown.names)
    for place, (_, _, entries) in enumerate(groups):
        for number, name in enumerate(shown.names):
            y = place - 0.4 + height * (number + 0.5)
            left = 0.0
            for group, parts in _GROUPS.items():
                value = sum(
                    entry["count"] * entry["values"][name]["joules"][part] for entry in entries for part in parts
                )
                axis.barh(
                    y,
                    value / per,
                    0.92 * height,
                    left=left,
                    color=_GROUP_COLOURS[group],
                    label=group if place == number == 0 else None,
                )
                left += value / per
            if len(shown.names) > 1 and place == 0:
                axis.annotate(name, (left, y), (4, 0), textcoords="offset points", va="center", fontsize=7)
    axis.set_yticks(range(len(groups)), [label for label, _, _ in groups], fontsize=8)
    axis.set_ylim(max(len(groups), _ROWS) - 0.5, -0.5)
    axis.set_xlabel(f"J per {unit}")
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: quantity(value, "J") if value else "0"))
    axis.set_title(f"energy per {unit} by GEMM")
    axis.legend(fontsize=8, frameon=False)
    axis.margins(x=0.12)
    _bare(axis)


def _swept(axis: Any, report: dict[str, Any], shown: _Shown, varied: str) -> None:
    """Throughput, and the overhead in energy, against one condition."""
    unit, per = unit_of(report)
    first = shown.names[0]
    entries = [entry for entry in report["sensitivity"] if entry["varied"] == varied]
    xs = [entry["value"] for entry in entries]
    rates = [per / entry["seconds"][first] for entry in entries]
    axis.plot(xs, rates, "o-", color="#0072b2", markersize=4)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    label = "B/s" if varied == BANDWIDTH else ""
    axis.set_xticks(xs, [quantity(value, label) if label else f"{value:g}" for value in xs], rotation=45, fontsize=8)
    axis.xaxis.minorticks_off()
    _decades(axis.yaxis, min(rates), max(rates))
    axis.set_ylabel(f"{unit}s/s" if unit == "token" else "passes/s", color="#0072b2")
    here = report["conditions"]["memory"]["dram_bytes_per_second"] if label else report["conditions"]["cores"]
    axis.axvline(here, color="black", linewidth=0.8, linestyle=":")
    axis.set_title(f"against {varied if varied == BANDWIDTH else 'the number of cores'}")
    axis.grid(alpha=0.25)
    axis.spines[["top"]].set_visible(False)
    if len(shown.names) > 1:
        other = axis.twinx()
        values = [entry["overhead"] for entry in entries]
        other.plot(xs, [100 * each["value"] for each in values], "s-", color="#d55e00", markersize=3)
        if all(each["low"] is not None and each["high"] is not None for each in values):
            lows, highs = ([100 * each[bound] for each in values] for bound in ("low", "high"))
            other.fill_between(xs, lows, highs, color="#d55e00", alpha=0.2, linewidth=0)
        other.set_ylabel(f"overhead in energy per {unit}, %", color="#d55e00")
        other.margins(y=0.3)
        other.spines[["top"]].set_visible(False)


def _overheads(axis: Any, report: dict[str, Any]) -> None:
    """What the second design costs over the first, with intervals."""
    entries = [entry for entry in report["totals"] if entry["overhead"]["value"] is not None]
    entries = [entry for entry in entries if entry["metric"] != "throughput"]
    for place, entry in enumerate(entries):
        value = 100 * entry["overhead"]["value"]
        axis.errorbar(value, place, xerr=reach(entry["overhead"]), fmt="o", color="#0072b2", capsize=4, linewidth=1.2)
        axis.annotate(f"{value:+.2f} %", (value, place), (0, 8), textcoords="offset points", ha="center", fontsize=9)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(
        range(len(entries)), [entry["metric"].replace(" of the cores", "\nof the cores") for entry in entries]
    )
    axis.tick_params(axis="y", labelsize=8)
    axis.set_ylim(len(entries) - 0.5, -0.7)
    axis.set_xlabel("overhead, %")
    axis.set_title("overheads, 95 % intervals from synthesis")
    axis.margins(x=0.2)
    _bare(axis)


def _parts(axis: Any, report: dict[str, Any], shown: _Shown) -> None:
    """Energy by part, of a single design."""
    unit, per = unit_of(report)
    (name,) = shown.names
    joules = {
        part: sum(entry["count"] * entry["values"][name]["joules"][part] for entry in report["results"]) / per
        for part in PARTS
    }
    whole = sum(joules.values())
    for place, (part, value) in enumerate(joules.items()):
        colour = next(_GROUP_COLOURS[group] for group, parts in _GROUPS.items() if part in parts)
        axis.barh(place, value, 0.7, color=colour)
        label = f"{quantity(value, 'J')}, {100 * value / whole:.1f} %"
        axis.annotate(label, (value, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set_yticks(range(len(joules)), list(joules), fontsize=8)
    axis.set_ylim(len(joules) - 0.5, -0.5)
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: quantity(value, "J") if value else "0"))
    axis.set_xlabel(f"J per {unit}")
    axis.set_title(f"energy per {unit} by part")
    axis.margins(x=0.3)
    _bare(axis)


def cost_png(report: dict[str, Any]) -> bytes:
    """Roofline, time and energy by GEMM, sensitivity to bandwidth and cores, and overheads.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(16, 9), layout="constrained")
    FigureCanvasAgg(canvas)
    upper, lower = canvas.subplots(2, 3)
    shown = _Shown(report)
    _roofline(upper[0], report, shown)
    _times(upper[1], report, shown)
    _energies(upper[2], report, shown)
    _swept(lower[0], report, shown, BANDWIDTH)
    _swept(lower[1], report, shown, CORES)
    if len(shown.names) > 1:
        _overheads(lower[2], report)
    else:
        _parts(lower[2], report, shown)
    conditions = report["conditions"]
    canvas.suptitle(
        f"{plain(workload_of(report))}: {conditions['cores']} cores of {' and '.join(shown.names)},"
        f" {plain(conditions['measured']['library'])}, {conditions['clock_ns']:g} ns",
        fontsize=12,
    )
    return png(canvas)
