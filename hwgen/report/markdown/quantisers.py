"""What one hardware quantiser costs over another, as CSV and Markdown."""

from __future__ import annotations

import pandas as pd

from hwgen.report.form import counted, flow_lines, number, percent, recipe_lines, table
from hwgen.report.markdown.overhead import bounds
from hwgen.report.schema import TOTAL, QuantiserReport

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
            "metric": f"{entry.quantisers} x {entry.quantiser} over {entry.core}, K = {entry.k}",
            "block": TOTAL,
            "unit": "1",
            entry.quantiser: entry.share,
            "runs": conditions.runs,
        }
        for entry in report.shares
    ]
    return pd.DataFrame([*figures, *shares]).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def summary(report: QuantiserReport) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the figures of the whole."""
    names = list(report.conditions.quantisers)
    rows = [
        [f"{entry.metric}, {entry.unit}", *(number(entry.values[name]) for name in names), percent(entry.overhead)]
        for entry in report.results
        if entry.block == TOTAL
    ]
    return ["quantiser", *names, "overhead"], rows


def markdown(report: QuantiserReport, picture: str) -> str:
    """The report for readers."""
    conditions = report.conditions
    baseline, candidate = conditions.quantisers
    built = "closed at the clock" if conditions.closed else "as mapped"
    header, rows = summary(report)
    lines = [
        f"# {candidate} against {baseline}",
        "",
        f"Hardware quantisers, one block of 16 numbers per cycle; docs/quantiser.md has what they compute."
        f" {conditions.flow.library.name}, {conditions.clock_ns:g} ns, netlists {built},"
        f" {counted(conditions.runs, 'run')}.",
        "",
        *table(header, rows, len(header) - 1),
        "",
        f"![Area by block](<{picture}>)",
        "",
        "## Area by block",
        "",
    ]
    parts = [entry for entry in report.results if entry.metric == "area" and entry.block != TOTAL]
    rows = [
        [
            entry.block,
            *(number(entry.values[name]) for name in (baseline, candidate)),
            percent(entry.overhead),
            percent(entry.contribution),
        ]
        for entry in parts
    ]
    lines += table(["block", f"{baseline}, um2", f"{candidate}, um2", "overhead", "contribution"], rows, 4)
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


def _said(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _beside_cores(report: QuantiserReport) -> list[str]:
    rows = [
        [
            entry.core,
            f"{entry.k:,}",
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
    header = ["core", "K", "results in a cycle", "quantiser", "how many", "share of the core", "over the baseline"]
    return [
        "",
        "## Beside a core",
        "",
        "A core gives a tile of results for each sum over K. As many quantisers take them as they come.",
        "",
        *table(header, rows, 4),
        "",
        f"Areas of the cores: {sources}.",
    ]
