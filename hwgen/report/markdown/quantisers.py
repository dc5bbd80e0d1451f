"""What hardware quantisers cost over another, as CSV and Markdown."""

from __future__ import annotations

import pandas as pd

from hwgen.report.form import counted, flow_lines, number, percent, recipe_lines, table
from hwgen.report.markdown.overhead import bounds
from hwgen.report.pareto import front
from hwgen.report.schema import TOTAL, Figure, QuantiserReport

__all__ = ["csv", "markdown", "summary"]


def csv(report: QuantiserReport) -> str:
    """A row for each figure, then one for each share of a core."""
    conditions = report.conditions
    figures = [
        {
            "library": conditions.flow.library.name,
            "metric": entry.metric,
            "block": entry.block,
            "unit": entry.unit,
            **entry.values,
            "runs": entry.runs,
            **bounds("overhead", entry.overhead),
            **bounds("contribution", entry.contribution),
        }
        for entry in report.results
    ]
    shares = [
        {
            "library": conditions.flow.library.name,
            "metric": f"{entry.quantisers} x {entry.quantiser} over {entry.core}, "
            + ("operand A" if entry.k is None else f"K = {entry.k}"),
            "block": TOTAL,
            "unit": "1",
            entry.quantiser: entry.share,
            "runs": conditions.runs,
        }
        for entry in report.shares
    ]
    errors = [
        {
            "library": conditions.flow.library.name,
            "metric": f"noise over the float64 quantiser's, {kind}",
            "block": TOTAL,
            "unit": "dB",
            entry.quantiser: decibels,
            "runs": 1,
        }
        for entry in report.errors or ()
        for kind, decibels in entry.decibels.items()
    ]
    return pd.DataFrame([*figures, *shares, *errors]).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def summary(report: QuantiserReport) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the figures of the whole: a row for each, or with several candidates for each quantiser."""
    names = list(report.conditions.quantisers)
    if len(names) > 2:
        return _several(report)
    rows = [
        [f"{entry.metric}, {entry.unit}", *(number(entry.values[name]) for name in names), percent(entry.overhead)]
        for entry in report.results
        if entry.block == TOTAL
    ]
    return ["quantiser", *names, "overhead"], rows


_SHOWN = ("area", "critical path", "energy per number")
"""What the table of several candidates has."""


def _whole(figures: list[Figure]) -> list[Figure]:
    return [figure for figure in figures if figure.block == TOTAL and figure.metric in _SHOWN]


def _several(report: QuantiserReport) -> tuple[list[str], list[list[str]]]:
    """A row for each quantiser, with what it takes more than the baseline."""
    baseline, *_ = report.conditions.quantisers
    whole = _whole(report.figures(report.candidates[0]))
    header = ["quantiser"]
    rows = [[baseline, *(cell for figure in whole for cell in (number(figure.values[baseline]), ""))]]
    for figure in whole:
        header += [f"{figure.metric}, {figure.unit}", "overhead"]
    for name in report.candidates:
        found = _whole(report.figures(name))
        rows.append([name, *(cell for each in found for cell in (number(each.values[name]), percent(each.overhead)))])
    return header, rows


def markdown(report: QuantiserReport, picture: str) -> str:
    """The report for readers."""
    conditions = report.conditions
    baseline, *candidates = conditions.quantisers
    built = "closed at the clock" if conditions.closed else "as mapped"
    header, rows = summary(report)
    lines = [
        f"# {', '.join(candidates)} against {baseline}",
        "",
        f"Hardware quantisers, one block of 16 numbers per cycle; docs/quantiser.md has what they compute."
        f" {conditions.flow.library.name}, {conditions.clock_ns:g} ns, netlists {built},"
        f" {counted(conditions.runs, 'run')}.",
        "",
        *table(header, rows, len(header) - 1),
        "",
        f"![Area by block](<{picture}>)",
        "",
        *(_lost(report) if report.errors else ()),
        "## Area by block",
    ]
    for candidate in candidates:
        lines += ["", *_blocks(report.figures(candidate), baseline, candidate)]
    if report.shares:
        lines += _beside_cores(report)
    slowest = ", ".join(f"{name} {delay:.4g} ns" for name, delay in conditions.slowest_ns.items())
    lines += [
        "",
        "## Conditions",
        "",
        f"- Netlists {built}; wires by fanout. Longest path of all runs: {slowest}.",
        f"- Each netlist equals the golden model on {conditions.checked:,} blocks or more, with gaps and stalls.",
        f"- Energy: a gaussian block in each cycle, {conditions.blocks_at_work:,} blocks, over 16 numbers; glitches and"
        " leakage included.",
        *(
            f"- Configuration of {name}: " + ", ".join(f"{key} {_said(value)}" for key, value in fields.items()) + "."
            for name, fields in conditions.quantisers.items()
        ),
        *recipe_lines(conditions.chosen_recipes),
        *flow_lines(conditions.flow, report.designs),
    ]
    return "\n".join(lines) + "\n"


def _blocks(figures: list[Figure], baseline: str, candidate: str) -> list[str]:
    rows = [
        [
            entry.block,
            *(number(entry.values[name]) for name in (baseline, candidate)),
            percent(entry.overhead),
            percent(entry.contribution),
        ]
        for entry in figures
        if entry.metric == "area" and entry.block != TOTAL
    ]
    return table(["block", f"{baseline}, um2", f"{candidate}, um2", "overhead", "contribution"], rows, 4)


def _lost(report: QuantiserReport) -> list[str]:
    """Error against area."""
    errors, found = report.errors or (), report.points()
    best = front({name: (area, -decibels) for name, (area, decibels) in found.items()})
    rows = []
    for each in errors:
        shares = each.equal or {}
        cells = [
            f"{decibels:.3f}" + (f", {100 * shares[kind]:.2f}" if kind in shares else "")
            for kind, decibels in each.decibels.items()
        ]
        area, decibels = found[each.quantiser]
        on = "yes" if each.quantiser in best else "no"
        rows.append([each.quantiser, number(area), *cells, f"{decibels:.3f}", on])
    header = ["quantiser", "area, um2", *errors[0].decibels, "mean, dB", "on the front"]
    return [
        "## Error against area",
        "",
        f"Noise over that of the float64 quantiser of {report.candidates[0]}'s format with the same tensor scale, in"
        " dB; and the share of blocks with the same scale byte, in percent. The Pareto front is that of the mean in dB"
        " and the area.",
        "",
        *table(header, rows, len(header) - 1),
        "",
    ]


def _said(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _beside_cores(report: QuantiserReport) -> list[str]:
    rows = [
        [
            entry.core,
            "operand A" if entry.k is None else f"{entry.k:,}",
            f"{entry.results:.4g}",
            entry.quantiser,
            str(entry.quantisers),
            f"{100 * entry.share:.2f} %",
            f"{100 * entry.more:+.2f} %",
        ]
        for entry in report.shares
    ]
    sources = ", ".join(
        dict.fromkeys(f"{entry.core} {number(entry.core_um2)} um2 ({entry.measured_in})" for entry in report.shares)
    )
    operands = any(entry.k is None for entry in report.shares)  # reports of before have results alone
    flow = f"{'numbers' if operands else 'results'} in a cycle"
    header = ["core", "K", flow, "quantiser", "how many", "share of the core", "over the baseline"]
    return [
        "",
        "## Beside a core",
        "",
        "A core gives a tile of results for each sum over K. As many quantisers take them as they come."
        + (" Or else they quantise operand A whenever a step reads it." if operands else ""),
        "",
        *table(header, rows, 4),
        "",
        f"Areas of the cores: {sources}.",
    ]
