"""Power of two designs by block, kind and situation, as a picture."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.form import signed
from hwgen.report.plots.canvas import BLOCKS, png, reach
from hwgen.report.schema import PowerReport

__all__ = ["power_png"]

_KINDS = {
    "internal": "#56b4e9",
    "switching": "#e69f00",
    "wires": "#009e73",
    "clock": "#0072b2",
    "clock_tree": "#cc79a7",
    "leakage": "#999999",
}


def power_png(report: PowerReport) -> bytes:
    """Power of both cores at work, by block and by kind, and the overhead in every situation with its interval.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(14, 5.2), layout="constrained")
    FigureCanvasAgg(canvas)
    by_block, by_kind, situations = canvas.subplots(1, 3, width_ratios=(1, 1, 1.5))
    entries = [entry for entry in report.results if entry.scope == "core"]
    parts = entries[0].milliwatts_by_block_and_kind
    kinds = {
        name: {kind: sum(found[kind] for found in blocks.values()) for kind in next(iter(blocks.values()))}
        for name, blocks in parts.items()
    }
    blocks = {
        name: {block: sum(found[block].values()) for block in BLOCKS if block in found} for name, found in parts.items()
    }
    for axis, title, shares, colours in (
        (by_block, "core at work, by block", blocks, BLOCKS),
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
        value = 100 * entry.overhead.value
        situations.errorbar(value, place, xerr=reach(entry.overhead), fmt="o", color="#0072b2", capsize=3, linewidth=1)
        situations.annotate(
            f"{signed(value, 2)} %", (value, place), (0, 5), textcoords="offset points", ha="center", fontsize=8
        )
    situations.axvline(0, color="black", linewidth=0.8)
    situations.set_yticks(range(len(entries)), [entry.situation for entry in entries], fontsize=8)
    situations.set_ylim(len(entries) - 0.5, -0.7)
    situations.set_xlabel("overhead of the core's power, %")
    situations.set_title("overhead by situation")
    situations.spines[["top", "right"]].set_visible(False)
    return png(canvas)
