"""Plots of a report."""

from __future__ import annotations

import io
import warnings
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.mapping.area import ENTERING
from hwgen.measure.figures import SCOPES
from hwgen.report.markdown.overhead import find, find_blocks

__all__ = ["explore_png", "overhead_png", "plain", "png", "power_png", "reach"]

_COLOURS = {
    "operand decoders": "#0072b2",
    "dot products": "#e69f00",
    "scale products": "#56b4e9",
    "align, add, normalise, round": "#009e73",
    "registers and control": "#999999",
    "lane array": "#cc79a7",
    ENTERING: "#d9d9d9",
}
_KINDS = {
    "internal": "#56b4e9",
    "switching": "#e69f00",
    "clock": "#0072b2",
    "clock_tree": "#cc79a7",
    "leakage": "#999999",
}
_METRICS = (("area", "area"), ("dynamic power", "dynamic power"))


def reach(estimate: dict[str, Any]) -> list[list[float]] | None:
    """How far an interval reaches below and above its value, in percent; None where a bound is missing."""
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    if low is None or high is None:
        return None
    return [[max(100 * (value - low), 0)], [max(100 * (high - value), 0)]]


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
        if bars := reach(overhead):
            axis.errorbar(len(places) + 0.36, value, yerr=bars, fmt=".", color="black", capsize=3, linewidth=1)
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
        f"{names[1]} against {names[0]}: {plain(conditions['library']['name'])}, {conditions['clock_ns']:g} ns,"
        f" {conditions['runs']} runs of each",
        fontsize=11,
    )
    return png(canvas)


def plain(text: str) -> str:
    """Text as it is: a dollar sign would begin a formula."""
    return text.replace("$", r"\$")


def png(canvas: Canvas) -> bytes:
    """A canvas as a PNG."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # What the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        # No date or version in the file: the same figures give the same bytes.
        canvas.savefig(buffer, dpi=130, metadata={"Software": None})
    return buffer.getvalue()


def _staircase(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points (delay, area) that no other beats, the fastest first."""
    front: list[tuple[float, float]] = []
    for delay, area in sorted(points):
        if not front or area < front[-1][1]:
            front.append((delay, area))
    return front


_MARKERS = {"merged": "o", "signed": "s", "significand": "^", "multiplier": "x", "e2m2": "D"}


def explore_png(report: dict[str, Any]) -> bytes:
    """Area and energy against critical path of every point, the best of each design, and the overhead at equal clock.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(16, 5.2), layout="constrained")
    FigureCanvasAgg(canvas)
    size, energy, right = canvas.subplots(1, 3, width_ratios=[3, 3, 2])
    names = [config["name"] for config in report["designs"]]
    longest = max(entry["limit"]["value"] for entry in report["results"] if entry["metric"] == "area")
    colours = dict(zip(names, ("#0072b2", "#d55e00"), strict=True))
    for axis, metric, words in ((size, "area", "area of the core, um2"), (energy, "energy", "energy, fJ/MAC")):
        for name, colour in colours.items():
            ours = [point for point in report["points"] if point["configuration"] == name]
            for point in ours:
                axis.plot(
                    point["critical path"]["value"],
                    point[metric]["value"],
                    _MARKERS[point["dot"]],
                    color=colour,
                    alpha=0.9 if point["front"] else 0.35,
                    fillstyle="full" if point["front"] else "none",
                    markersize=5,
                )
            best = _staircase(
                [(point["critical path"]["value"], point[metric]["value"]) for point in ours if point["checked"]]
            )
            # The best point serves every longer clock.
            ends = [*best, (max(longest, best[-1][0]) * 1.03, best[-1][1])]
            axis.step(*zip(*ends, strict=True), where="post", color=colour, label=name, linewidth=1.4)
        axis.set_xlabel("critical path, ns")
        axis.set_ylabel(words)
        axis.set_title(f"least {metric} of each design at a clock")
    dots = list(dict.fromkeys(point["dot"] for point in report["points"]))
    for dot in dots:
        size.plot([], [], _MARKERS[dot], color="grey", fillstyle="none", markersize=5, label=dot)
    size.legend(frameon=False, fontsize=8)
    for metric, colour, marker, shift in (("area", "black", "o", 0.985), ("energy", "#009e73", "s", 1.015)):
        for entry in report["results"]:
            if entry["metric"] == metric and entry["overhead"]["value"] is not None:
                clock, value = shift * entry["limit"]["value"], 100 * entry["overhead"]["value"]
                right.errorbar(
                    clock, value, yerr=reach(entry["overhead"]), fmt=marker, color=colour, capsize=3, linewidth=1
                )
        right.plot([], [], marker, color=colour, label=metric)
    right.axhline(0, color="black", linewidth=0.8)
    right.set_xlabel("clock period, ns")
    right.set_ylabel(f"{names[1]} over {names[0]}, %")
    right.set_title("overhead at equal clock")
    right.legend(frameon=False, fontsize=8)
    for axis in (size, energy, right):
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("{x:g}")
        axis.tick_params(axis="x", which="minor", labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    conditions = report["conditions"]
    canvas.suptitle(
        f"{names[1]} and {names[0]}: whole core, {plain(conditions['library']['name'])}, {conditions['runs']} runs of"
        " each module; filled: on the front of area, delay and energy",
        fontsize=11,
    )
    return png(canvas)


def power_png(report: dict[str, Any]) -> bytes:
    """Power of both cores at work, by block and by kind, and the overhead in every situation with its interval.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(14, 5.2), layout="constrained")
    FigureCanvasAgg(canvas)
    by_block, by_kind, situations = canvas.subplots(1, 3, width_ratios=(1, 1, 1.5))
    entries = [entry for entry in report["results"] if entry["scope"] == "core"]
    parts = entries[0]["milliwatts_by_block_and_kind"]
    kinds = {
        name: {kind: sum(found[kind] for found in blocks.values()) for kind in next(iter(blocks.values()))}
        for name, blocks in parts.items()
    }
    blocks = {
        name: {block: sum(found[block].values()) for block in _COLOURS if block in found}
        for name, found in parts.items()
    }
    for axis, title, shares, colours in (
        (by_block, "core at work, by block", blocks, _COLOURS),
        (by_kind, "core at work, by kind", kinds, _KINDS),
    ):
        for place, found in enumerate(shares.values()):
            bottom = 0.0
            for part, value in found.items():
                label = part.replace("_", " ") if place == 0 else None
                axis.bar(
                    place, value, 0.7, bottom=bottom, color=colours[part], edgecolor="white", linewidth=0.6, label=label
                )
                if value > 0.03 * sum(found.values()):
                    axis.text(place, bottom + value / 2, f"{value:.3g}", ha="center", va="center", fontsize=8)
                bottom += value
        axis.set_xticks(range(len(shares)), list(shares), fontsize=8)
        axis.set_ylabel("mW")
        axis.set_title(title)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncol=2, frameon=False)
    for place, entry in enumerate(entries):
        value = 100 * entry["overhead"]["value"]
        situations.errorbar(
            value, place, xerr=reach(entry["overhead"]), fmt="o", color="#0072b2", capsize=3, linewidth=1
        )
        situations.annotate(
            f"{value:+.2f} %", (value, place), (0, 5), textcoords="offset points", ha="center", fontsize=8
        )
    situations.axvline(0, color="black", linewidth=0.8)
    situations.set_yticks(range(len(entries)), [entry["situation"] for entry in entries], fontsize=8)
    situations.set_ylim(len(entries) - 0.5, -0.7)
    situations.set_xlabel("overhead of the core's power, %")
    situations.set_title("overhead by situation")
    situations.spines[["top", "right"]].set_visible(False)
    return png(canvas)
