"""The cost of a workload as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from hwgen.report.form import signed
from hwgen.report.markdown.cost import quantity, unit_of, workload_of
from hwgen.report.plots.canvas import plain, png, reach
from hwgen.report.schema import BANDWIDTH, CORE_PARTS, CORES, HALF_RATE_PART, CostReport, Gemm

__all__ = ["cost_figure", "cost_png"]

_COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#bcbd22"),
    *("#8c564b", "#17becf", "#9467bd"),
)
_REST = "#d9d9d9"
_GROUPS = {
    "cores": (*CORE_PARTS, HALF_RATE_PART),
    "quantiser": ("quantiser",),
    "buffer": ("buffer", "buffer leakage"),
    "DRAM": ("DRAM",),
}
_PARTS = [part for parts in _GROUPS.values() for part in parts]
_GROUP_COLOURS = {"cores": "#332288", "quantiser": "#cc6677", "buffer": "#88ccee", "DRAM": "#d9d9d9"}
_LABEL, _TITLE = 30, 80
"""The most characters of a name, and of the workload in the title."""
_CUT = 1.25
"""The longest that the bar of the others is drawn, in lengths of the longest bar beside it."""
_ROWS = 5
_WIDE = 1000


@dataclass(frozen=True)
class _Bar:
    """GEMMs that are drawn as one."""

    label: str
    colour: str
    entries: list[Gemm]


class _Shown:
    """The bars that a picture has room for.

    As many GEMMs as there are colours have a bar each, in the order of the report. Of more, those of equal shape share
    a bar; the bars of most energy are drawn, largest first, and all other GEMMs are one bar at the end.
    """

    def __init__(self, report: CostReport) -> None:
        self.names = report.names
        entries = report.results
        groups = [[entry] for entry in entries]
        rest: list[Gemm] = []
        if len(entries) > len(_COLOURS):
            by_shape: dict[tuple[int, ...], list[Gemm]] = {}
            for entry in entries:
                shape = (entry.m, entry.n, entry.k, entry.batch, bool(entry.half_rate))
                by_shape.setdefault(shape, []).append(entry)
            groups = sorted(by_shape.values(), key=lambda group: -_joules(group, self.names[0], _PARTS))
            rest = [entry for group in groups[len(_COLOURS) :] for entry in group]
        self.bars = [
            _Bar(_short(group[0].gemm, _suffix(group)), colour, group)
            for group, colour in zip(groups, _COLOURS, strict=False)
        ]
        self.rest = _Bar(f"{len(rest):,} others", _REST, rest) if rest else None

    @property
    def all_bars(self) -> list[_Bar]:
        """Those of single shapes, and that of the others."""
        return [*self.bars, *([self.rest] if self.rest else [])]

    @property
    def selection(self) -> str:
        """What the title says of it; nothing where every GEMM has its bar."""
        if self.rest is None:
            return ""
        return (
            f"\nThe {len(self.bars)} shapes of most energy have a bar each, {len(self.rest.entries):,} other GEMMs have"
            " one together; // marks a bar that is longer than drawn."
        )

    def limit(self, lengths: Sequence[float]) -> float | None:
        """Where the bar of the others is cut off, so that the rest can be told apart; None where it need not be."""
        if self.rest is None or lengths[-1] <= _CUT * max(lengths[:-1]):
            return None
        return _CUT * max(lengths[:-1])


def _suffix(group: Sequence[Gemm]) -> str:
    """What is said behind the name of the first of a bar."""
    alike = f" and {len(group) - 1:,} alike" if len(group) > 1 else ""
    return alike + (" (FP8)" if group[0].half_rate else "")


def _joules(entries: Sequence[Gemm], name: str, parts: Sequence[str]) -> float:
    """What GEMMs take of parts of the energy on one design."""
    return float(sum(entry.count * entry.values[name].joules.get(part, 0.0) for entry in entries for part in parts))


def _short(name: str, suffix: str = "", most: int = _LABEL) -> str:
    most -= len(suffix)
    return plain((name if len(name) <= most else name[: most - 3] + "...") + suffix)


def _torn(axis: Any, x: float, place: float) -> None:
    """Mark a bar that is longer than it is drawn."""
    axis.annotate("//", (x, place), ha="center", va="center", fontsize=13, fontweight="bold", color="white", zorder=4)


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


def _roofline(axis: Any, report: CostReport, shown: _Shown) -> None:
    """What each GEMM reaches, under what cores and DRAM allow."""
    conditions = report.conditions
    bandwidth = conditions.memory.dram_bytes_per_second
    peak = conditions.cores * conditions.macs_per_step / conditions.clock_ns * 1e9

    def point(entry: Gemm) -> tuple[float, float]:
        found = entry.values[shown.names[0]]
        intensity = entry.macs / (found.dram_read_bytes + found.dram_write_bytes)
        return intensity, entry.macs / found.seconds

    points = [point(bar.entries[0]) for bar in shown.bars]  # equal shapes are one point
    others = [point(entry) for entry in shown.rest.entries] if shown.rest is not None else []
    ridge = peak / bandwidth
    xs = [ridge, *(x for x, _ in points + others)]
    span = np.geomspace(min(xs) / 2, max(xs) * 3, 100)
    axis.plot(span, np.minimum(span * bandwidth, peak), color="black", linewidth=1.2)
    if any(entry.half_rate for entry in report.results):
        # Of GEMMs in FP8: what cores can do at half the rate.
        beyond = span[span * bandwidth >= peak / 2]
        axis.plot(beyond, np.full(len(beyond), peak / 2), color="black", linewidth=1.2, linestyle="--")
        axis.annotate(
            "FP8", (beyond[-1], peak / 2), (0, -3), textcoords="offset points", va="top", ha="right", fontsize=7
        )
    if shown.rest is not None:
        axis.plot(*zip(*others, strict=True), "o", color=_REST, markersize=3, label=shown.rest.label, zorder=2)
    for (x, y), bar in zip(points, shown.bars, strict=True):
        axis.plot(x, y, "o", color=bar.colour, markersize=8, markeredgecolor="white", label=bar.label, zorder=3)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("MAC per byte of DRAM traffic")
    axis.set_ylabel("MAC/s")
    _decades(axis.xaxis, span[0], span[-1])
    _decades(axis.yaxis, min(y for _, y in points + others), peak)
    axis.set_title(f"roofline: {quantity(peak, 'MAC/s')}, {quantity(bandwidth, 'B/s')}")
    axis.legend(fontsize=7, frameon=False, loc="lower right")
    axis.grid(alpha=0.25, which="major")
    _bare(axis)


def _times(axis: Any, report: CostReport, shown: _Shown) -> None:
    """Time of a pass by GEMM, and what it is bound by."""
    first = shown.names[0]
    bars = shown.all_bars
    seconds = [sum(entry.count * entry.values[first].seconds for entry in bar.entries) for bar in bars]
    total = sum(seconds)
    limit = shown.limit(seconds)
    for place, (bar, value) in enumerate(zip(bars, seconds, strict=True)):
        length = 100 * (value if limit is None else min(value, limit)) / total
        axis.barh(place, length, 0.7, color=bar.colour)
        if limit is not None and bar is shown.rest:
            _torn(axis, 0.9 * length, place)
        bound = ", ".join(dict.fromkeys(entry.values[first].bound for entry in bar.entries))
        axis.annotate(
            f"{quantity(value, 's')}, {bound}",
            (length, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axis.set_yticks(range(len(bars)), [bar.label for bar in bars], fontsize=8)
    axis.set_ylim(max(len(bars), _ROWS) - 0.5, -0.5)
    axis.set_xlabel("% of the time")
    axis.set_title(f"time by GEMM, {quantity(total, 's')} in all, and its bound")
    axis.margins(x=0.3)
    _bare(axis)


def _energies(axis: Any, report: CostReport, shown: _Shown) -> None:
    """Energy by GEMM and by who spends it, both designs one above the other."""
    unit, per = unit_of(report)
    bars = shown.all_bars
    height = 0.8 / len(shown.names)
    totals = [max(_joules(bar.entries, name, _PARTS) / per for name in shown.names) for bar in bars]
    limit = shown.limit(totals)
    first = shown.names[0]
    spent = {group for group, parts in _GROUPS.items() if any(_joules(bar.entries, first, parts) for bar in bars)}
    for place, (bar, total) in enumerate(zip(bars, totals, strict=True)):
        torn = limit is not None and bar is shown.rest
        scale = limit / total if torn and limit else 1.0
        for number, name in enumerate(shown.names):
            y = place - 0.4 + height * (number + 0.5)
            left = 0.0
            for group, parts in _GROUPS.items():
                value = _joules(bar.entries, name, parts) / per
                axis.barh(
                    y,
                    scale * value,
                    0.92 * height,
                    left=scale * left,
                    color=_GROUP_COLOURS[group],
                    label=group if place == number == 0 and group in spent else None,
                )
                left += value
            said = [name] if len(shown.names) > 1 and place == 0 else []
            said += [quantity(left, "J")] if torn else []
            axis.annotate(
                ", ".join(said), (scale * left, y), (4, 0), textcoords="offset points", va="center", fontsize=7
            )
        if torn:
            _torn(axis, 0.5 * scale * total, place)
    axis.set_yticks(range(len(bars)), [bar.label for bar in bars], fontsize=8)
    axis.set_ylim(max(len(bars), _ROWS) - 0.5, -0.5)
    axis.set_xlabel(f"J per {unit}")
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: quantity(value, "J") if value else "0"))
    axis.set_title(f"energy per {unit} by GEMM")
    axis.legend(fontsize=8, frameon=False)
    axis.margins(x=0.12)
    _bare(axis)


def _swept(axis: Any, report: CostReport, shown: _Shown, varied: str) -> None:
    """Throughput, and the overhead in energy, against one condition."""
    unit, per = unit_of(report)
    first = shown.names[0]
    entries = [entry for entry in report.sensitivity if entry.varied == varied]
    xs = [entry.value for entry in entries]
    rates = [per / entry.seconds[first] for entry in entries]
    axis.plot(xs, rates, "o-", color="#0072b2", markersize=4)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    label = "B/s" if varied == BANDWIDTH else ""
    axis.set_xticks(xs, [quantity(value, label) if label else f"{value:g}" for value in xs], rotation=45, fontsize=8)
    axis.xaxis.minorticks_off()
    _decades(axis.yaxis, min(rates), max(rates))
    axis.set_ylabel(f"{unit}s/s" if unit == "token" else "passes/s", color="#0072b2")
    here = report.conditions.memory.dram_bytes_per_second if label else report.conditions.cores
    axis.axvline(here, color="black", linewidth=0.8, linestyle=":")
    axis.set_title(f"against {varied if varied == BANDWIDTH else 'the number of cores'}")
    axis.grid(alpha=0.25)
    axis.spines[["top"]].set_visible(False)
    if len(shown.names) > 1:
        other = axis.twinx()
        values = [entry.overhead for entry in entries if entry.overhead is not None]
        other.plot(xs, [100 * each.value for each in values], "s-", color="#d55e00", markersize=3)
        bounds = [(each.low, each.high) for each in values if each.low is not None and each.high is not None]
        if len(bounds) == len(values):
            lows, highs = ([100 * each[end] for each in bounds] for end in (0, 1))
            other.fill_between(xs, lows, highs, color="#d55e00", alpha=0.2, linewidth=0)
        other.set_ylabel(f"overhead in energy per {unit}, %", color="#d55e00")
        other.margins(y=0.3)
        other.spines[["top"]].set_visible(False)


def _overheads(axis: Any, report: CostReport) -> None:
    """What the second design costs over the first, with intervals."""
    changes = [(entry.metric, entry.overhead) for entry in report.totals if entry.overhead is not None]
    changes = [(metric, change) for metric, change in changes if metric != "throughput"]
    for place, (_, change) in enumerate(changes):
        value = 100 * change.value
        axis.errorbar(value, place, xerr=reach(change), fmt="o", color="#0072b2", capsize=4, linewidth=1.2)
        axis.annotate(
            f"{signed(value, 2)} %", (value, place), (0, 8), textcoords="offset points", ha="center", fontsize=9
        )
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(range(len(changes)), [metric.replace(" of ", "\nof ", 1) for metric, _ in changes])
    axis.tick_params(axis="y", labelsize=8)
    axis.set_ylim(len(changes) - 0.5, -0.7)
    axis.set_xlabel("overhead, %")
    axis.set_title("overheads, 95 % intervals from synthesis")
    axis.margins(x=0.2)
    _bare(axis)


def _parts(axis: Any, report: CostReport, shown: _Shown) -> None:
    """Energy by part, of a single design."""
    unit, per = unit_of(report)
    (name,) = shown.names
    there = {part for entry in report.results for part in entry.values[name].joules} | {*_PARTS} - {HALF_RATE_PART}
    found = {part: _joules(report.results, name, [part]) / per for part in _PARTS if part in there}
    whole = sum(found.values())
    for place, (part, value) in enumerate(found.items()):
        colour = next(_GROUP_COLOURS[group] for group, parts in _GROUPS.items() if part in parts)
        axis.barh(place, value, 0.7, color=colour)
        label = f"{quantity(value, 'J')}, {100 * value / whole:.1f} %"
        axis.annotate(label, (value, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set_yticks(range(len(found)), list(found), fontsize=8)
    axis.set_ylim(len(found) - 0.5, -0.5)
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: quantity(value, "J") if value else "0"))
    axis.set_xlabel(f"J per {unit}")
    axis.set_title(f"energy per {unit} by part")
    axis.margins(x=0.3)
    _bare(axis)


def cost_figure(report: CostReport) -> Canvas:
    """Roofline, time and energy by GEMM, sensitivity to bandwidth and cores, and overheads."""
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
    conditions = report.conditions
    canvas.suptitle(
        f"{_short(workload_of(report), most=_TITLE)}: {conditions.cores} cores of {' and '.join(shown.names)},"
        f" {plain(conditions.measured.library)}, {conditions.clock_ns:g} ns{shown.selection}",
        fontsize=12,
    )
    return canvas


def cost_png(report: CostReport) -> bytes:
    """`cost_figure` as a PNG."""
    return png(cost_figure(report))
