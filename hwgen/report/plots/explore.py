"""Area, delay and energy of many ways to build two designs, as a picture."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.form import counted
from hwgen.report.markdown.explore import MEANS
from hwgen.report.plots.canvas import empty, plain, png, reach
from hwgen.report.schema import ExplorationReport

__all__ = ["explore_png"]

_OTHER = "v"


def _staircase(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points (delay, area) that no other beats, the fastest first."""
    front: list[tuple[float, float]] = []
    for delay, area in sorted(points):
        if not front or area < front[-1][1]:
            front.append((delay, area))
    return front


_MARKERS = {
    **{"merged": "o", "merged-binary": "P", "signed": "s", "significand": "^"},
    **{"merged-timed": "d", "binary": "v", "multiplier": "x", "e2m2": "D"},
}


def explore_png(report: ExplorationReport) -> bytes:
    """Area and energy of every point against the path of its slowest run, and the overhead at equal clock.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(16, 5.2), layout="constrained")
    FigureCanvasAgg(canvas)
    size, energy, right = canvas.subplots(1, 3, width_ratios=[3, 3, 2])
    names = report.names
    longest = max(entry.limit.value for entry in report.results if entry.metric == "area")
    colours = dict(zip(names, ("#0072b2", "#d55e00"), strict=True))
    for axis, metric, words in ((size, "area", "area of the core, um2"), (energy, "energy", "energy, fJ/MAC")):
        for name, colour in colours.items():
            ours = [point for point in report.points if point.design == name]
            for point in ours:
                axis.plot(
                    max(point.delays_ns),
                    MEANS[metric](point),
                    _MARKERS.get(point.dot, _OTHER),
                    color=colour,
                    alpha=0.9 if point.front else 0.35,
                    fillstyle="full" if point.front else "none",
                    markersize=5,
                )
            # As in the table: a point meets a clock if its slowest run does.
            best = _staircase([(max(point.delays_ns), MEANS[metric](point)) for point in ours if point.checked])
            # The best point serves every longer clock.
            ends = [*best, (max(longest, best[-1][0]) * 1.03, best[-1][1])]
            axis.step(*zip(*ends, strict=True), where="post", color=colour, label=name, linewidth=1.4)
        axis.set_xlabel("critical path of the slowest run, ns")
        axis.set_ylabel(words)
        axis.set_title(f"least {metric} of each design at a clock")
    dots = list(dict.fromkeys(point.dot for point in report.points))
    for dot in dots:
        size.plot([], [], _MARKERS.get(dot, _OTHER), color="grey", fillstyle="none", markersize=5, label=dot)
    size.legend(frameon=False, fontsize=8)
    for metric, colour, marker, shift in (("area", "black", "o", 0.985), ("energy", "#009e73", "s", 1.015)):
        for entry in report.results:
            if entry.metric == metric and entry.overhead is not None:
                clock, value = shift * entry.limit.value, 100 * entry.overhead.value
                bars = reach(entry.overhead)
                right.errorbar(clock, value, yerr=bars, fmt=marker, color=colour, capsize=3, linewidth=1)
        right.plot([], [], marker, color=colour, label=metric)
    right.axhline(0, color="black", linewidth=0.8)
    right.set_xlabel("clock period, ns")
    right.set_ylabel(f"{names[1]} over {names[0]}, %")
    right.set_title("overhead at equal clock")
    right.legend(frameon=False, fontsize=8)
    if all(entry.overhead is None for entry in report.results if entry.metric in ("area", "energy")):
        empty(right, "no clock that both designs meet")
    for axis in (size, energy, right):
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("{x:g}")
        axis.tick_params(axis="x", which="minor", labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    conditions = report.conditions
    canvas.suptitle(
        f"{names[1]} and {names[0]}: whole core, {plain(conditions.flow.library.name)},"
        f" {counted(conditions.runs, 'run')} of each module; filled: on the front of area, delay and energy",
        fontsize=11,
    )
    return png(canvas)
