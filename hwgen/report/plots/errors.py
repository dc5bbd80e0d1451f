"""What formats lose against what they cost, as a picture: which no other beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from hwgen.formats import BLOCK_FORMATS
from hwgen.report.markdown.formats import costing, kinds
from hwgen.report.pareto import front
from hwgen.report.plots import labels
from hwgen.report.plots.canvas import decades, empty, plain, png
from hwgen.report.schema import FormatRow, FormatsReport

__all__ = ["SIMILARITY", "Points", "accuracies", "errors_png", "floor", "points", "shown"]

SIMILARITY = "similarity"

_LOOKS = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"))
"""Colour and mark of rows with as many products, so that neither is needed to tell them apart."""

_COSTS = (
    ("area per MAC", "core area, um2 for each product in a cycle"),
    ("energy per MAC", "energy of the core, fJ per MAC"),
)

_LEAVE_OUT = 4
"""One of so many points may lie below what is shown."""
_MARGIN = 0.12
"""Of what is shown, on either side of the points."""
_BELOW = "v"
"""Mark of a point that lies below what is shown."""

_INEXACT = {name for name, form in BLOCK_FORMATS.items() if form.additive}
"""Formats whose products lose more than the tensors do: signal over noise of these would flatter them."""

Points = Mapping[int, Mapping[str, tuple[float, float]]]


def accuracies(report: FormatsReport) -> list[str]:
    """What `points` has figures of: kinds of tensors, and the similarity where there is a trained model."""
    return kinds(report) + ([SIMILARITY] if report.conditions.model else [])


def points(report: FormatsReport, metric: str, kind: str) -> dict[int, dict[str, tuple[float, float]]]:
    """Cost of the core and accuracy, of rows that meet the clock, by products of an output in a cycle and by name.

    Products are told apart since they decide on the cost of one, whatever the format. Rules have points of their own,
    save those that are rows.

    Parameters
    ----------
    report
        The table.
    metric
        ``area per MAC`` or ``energy per MAC``.
    kind
        Of tensor: accuracy is signal over noise in dB. Or `SIMILARITY`, of a trained model's embeddings.
    """
    found: dict[int, dict[str, tuple[float, float]]] = {}
    rows = {(row.design, rule) for row in report.results if not row.figures for rule in _accuracy(row, kind)}
    for row in report.results:
        of = costing(report, row)
        cost = of.find("core", metric)
        if cost is None or row.products is None or not of.met:
            continue
        for place, (rule, ratio) in enumerate(_accuracy(row, kind).items()):
            if place and (row.design, rule) in rows:
                continue
            # The default rule comes first.
            name = f"{row.row}, {rule}" if place else row.row
            found.setdefault(row.products, {})[name] = (cost.mean, ratio)
    return dict(sorted(found.items()))


def floor(values: Sequence[float]) -> float:
    """The lowest accuracy that is shown at its place.

    A few points far below the others would squash these into a strip. So points are left out, the lowest first and one
    of four at most, as long as that halves what is to be shown.
    """
    ordered, lowest = sorted(values), 0
    for place in range(1, len(ordered) // _LEAVE_OUT + 1):
        if 0 < 2 * (ordered[-1] - ordered[place]) <= ordered[-1] - ordered[lowest]:
            lowest = place
    return ordered[lowest]


def shown(found: Points) -> tuple[float, float]:
    """The lowest accuracy that is shown at its place, see `floor`, and the edge below it, where others have a mark."""
    ratios = _ratios(found)
    lowest = floor(ratios)
    return lowest, lowest - _MARGIN / 2 * (max(ratios) - lowest)


def _accuracy(row: FormatRow, kind: str) -> dict[str, float]:
    """Signal over noise in dB, or similarity, by rule of quantisation."""
    if kind == SIMILARITY:
        return {rule: each.mean for rule, each in (row.similarities or {}).items()}
    if row.a is not None and row.a.name in _INEXACT:
        return {}
    return row.decibels(kind)


def _scatter(axis: Any, found: Points, default: set[str], lowest: float, edge: float) -> list[labels.Name]:
    """Error against cost; what is on a front is filled, and joined by a staircase. Gives names with their places.

    What is below the lowest that is shown has a mark at the edge, and its figure beside its name.
    """
    named = []
    for (colour, mark), each in zip(cycle(_LOOKS), found.values(), strict=False):
        best = front(each)
        for name, (cost, ratio) in each.items():
            large, below = name in default, ratio < lowest
            style = {"color": colour, "fillstyle": "full" if name in best else "none"}
            place = edge if below else ratio
            axis.plot(cost, place, _BELOW if below else mark, markersize=6 if large else 4, **style)
            # Another rule stands above or below its row, whose name serves both.
            if large:
                text = f"{name}: {ratio:.3g}" if below else name
                named.append(labels.Name(plain(text), cost, place, colour))
        ends = ([each[name][place] for name in best] for place in (0, 1))
        axis.step(*ends, where="post", color=colour, linewidth=1)
    return named


def _ratios(found: Points) -> list[float]:
    """The accuracies of all points."""
    return [ratio for each in found.values() for _, ratio in each.values()]


def _panel(axis: Any, report: FormatsReport, metric: str, kind: str) -> tuple[list[labels.Name], Points]:
    """One plot without its names; these, and the points."""
    found = points(report, metric, kind)
    ratios = _ratios(found)
    lowest, edge = shown(found) if found else (0.0, 0.0)
    named = _scatter(axis, found, {row.row for row in report.results}, lowest, edge)
    axis.set_xscale("log")
    decades(axis.xaxis)
    axis.margins(_MARGIN)
    if min(ratios, default=lowest) < lowest:
        margin = _MARGIN * (max(ratios) - lowest)
        axis.set_ylim(lowest - margin, max(ratios) + margin)
    axis.grid(color="#e5e5e5", linewidth=0.5)
    axis.set_axisbelow(True)
    axis.set_ylabel("similarity of embeddings" if kind == SIMILARITY else f"signal over noise, {kind}, dB")
    axis.spines[["top", "right"]].set_visible(False)
    if not found:
        empty(axis, "no row meets the clock")
    return named, found


def errors_png(report: FormatsReport) -> bytes:
    """Error against area and energy of a product, for each kind of tensor, and for a trained model's output.

    A row has a large mark, and a small one without a name above or below it for each further rule by which its scales
    are found. Of a row far below the others the mark is at the edge, with its figure, see
    `floor`.

    Parameters
    ----------
    report
        A table with errors of some row.

    Returns
    -------
    bytes
        A PNG.
    """
    known = accuracies(report)
    canvas = Canvas(figsize=(14, 1.2 + 5 * len(known)), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(len(known), len(_COSTS), squeeze=False, sharey="row", sharex="col")
    panels = [
        (axis, *_panel(axis, report, metric, kind))
        for line, kind in zip(axes, known, strict=True)
        for axis, (metric, _) in zip(line, _COSTS, strict=True)
    ]
    for axis, (_, words) in zip(axes[-1], _COSTS, strict=True):
        axis.set_xlabel(words)
    conditions = report.conditions
    missed = [row.row for row in report.results if row.met is False]
    cut = any(min(each) < floor(each) for _, _, found in panels if (each := _ratios(found)))
    below = f"\n{_BELOW} at the lower edge: below what is shown, by the figure beside its name" if cut else ""
    left_out = f"\nnot shown, since they miss the clock: {', '.join(missed)}" if missed else ""
    canvas.suptitle(
        plain(
            f"block formats: {conditions.flow.library.short}, {conditions.clock_ns:g} ns; filled: no other row with as"
            f" many products is both cheaper and better; small: another rule for the scales of the row above"
            f" or below it{below}{left_out}"
        ),
        fontsize=10,
    )
    counts = {products: None for _, _, found in panels for products in found}
    keys = [
        Line2D([], [], color=colour, marker=mark, label=f"{products} products for an output in a cycle")
        for (colour, mark), products in zip(cycle(_LOOKS), sorted(counts), strict=False)
    ]
    canvas.legend(handles=keys, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    # Names are placed when everything else has its place.
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    for axis, named, _ in panels:
        labels.draw(axis, named, 8)
    return png(canvas)
