"""Tables of formats side by side as CSV and Markdown."""

from __future__ import annotations

import pandas as pd

from hwgen.report.beside import METRICS
from hwgen.report.form import number, percent, table
from hwgen.report.markdown.overhead import bounds
from hwgen.report.schema import CoreBeside, LibrariesReport, RowBeside, TableBeside

__all__ = ["csv", "markdown", "name_of", "summary"]


def name_of(row: RowBeside) -> str:
    """A row's name, and how it adds up products: 2 x 16 are two exact sums of 16."""
    if row.products is None or row.summed is None:
        return row.row
    return f"{row.row} ({row.products // row.summed} x {row.summed})"


def _cell(core: CoreBeside, row: RowBeside, metric: str) -> str:
    """What a core costs: its figure if it is that of a baseline, else its overhead; whether it misses the clock."""
    figure = core.find(metric)
    if figure is None:
        return "not measured"
    missed = "" if core.met else " (clock missed)"
    if figure.overhead is None:
        what = "baseline" if row.baseline is None else f"as {row.baseline}"
        return f"{what}, {number(figure.mean)} {figure.unit}{missed}"
    return f"{percent(figure.overhead)}{missed}"


def summary(report: LibrariesReport) -> tuple[list[str], list[list[str]]]:
    """Header and rows: area and energy of each format, library by library."""
    labels = list(report.conditions.tables)
    rows = [
        [name_of(row), *(_cell(row.cores[label], row, metric) for metric in METRICS for label in labels)]
        for row in report.results
    ]
    short = [metric.removesuffix(" per MAC") for metric in METRICS]
    return ["row", *(f"{what}, {label}" for what in short for label in labels)], rows


def csv(report: LibrariesReport) -> str:
    """All figures, a row each. A core that was not measured has one line, with the reason."""
    lines = []
    for row in report.results:
        for label, core in row.cores.items():
            of = report.conditions.tables[label]
            common = {
                "library": of.conditions.flow.library.name,
                "clock_ns": of.conditions.clock_ns,
                "report": of.report,
                "row": row.row,
                "baseline": row.baseline,
                "products": row.products,
                "summed": row.summed,
                "clock_met": core.met,
                "slowest_ns": core.slowest_ns,
                "note": core.not_measured,
            }
            found = [
                {
                    "metric": each.metric,
                    "unit": each.unit,
                    "runs": len(each.values),
                    "value": each.mean,
                    **bounds("overhead", each.overhead),
                }
                for each in core.figures
            ]
            lines += [{**common, **each} for each in found or [{}]]
    header = [
        "library",
        "clock_ns",
        "report",
        "row",
        "baseline",
        "products",
        "summed",
        "clock_met",
        "slowest_ns",
        "note",
    ]
    header += ["metric", "unit", "runs", "value", *(f"overhead_{end}" for end in ("value", "low", "high"))]
    whole = dict.fromkeys(("products", "summed", "runs"), "Int64")
    found_lines = pd.DataFrame(lines, columns=header).astype(whole)
    return found_lines.to_csv(index=False, float_format="%.9g", lineterminator="\n")


def _clock(core: CoreBeside) -> str:
    if core.slowest_ns is None:
        return "not measured"
    return f"{core.slowest_ns:.4g}" + ("" if core.met else " (missed)")


def _reasons(report: LibrariesReport) -> list[str]:
    """Why cores were not measured, as list items: once where it is the same in all tables."""
    lines = []
    for row in report.results:
        said: dict[str, list[str]] = {}
        for label, core in row.cores.items():
            if core.not_measured is not None:
                said.setdefault(core.not_measured, []).append(label)
        for reason, labels in said.items():
            where = "" if len(labels) == len(row.cores) else f" on {' and '.join(labels)}"
            lines.append(f"- {row.row}{where}: {reason}.")
    return ["", "Not measured:", "", *lines] if lines else []


def _from(label: str, of: TableBeside, report: LibrariesReport) -> str:
    """Where a table is from, as a list item."""
    conditions = of.conditions
    runs = {len(figure.values) for row in report.results for figure in row.cores[label].figures}
    ends = " to ".join(str(each) for each in dict.fromkeys((min(runs), max(runs)))) if runs else "no"
    return (
        f"- {label}: `{of.report}`, library {conditions.flow.library.name}, {conditions.flow.library.cells} cells in"
        f" use, wires {conditions.physical.wires}, {ends} runs of a row,"
        f" hwgen {conditions.flow.tools.hwgen}."
    )


def markdown(report: LibrariesReport, picture: str) -> str:
    """The tables for readers; ``picture`` is the file name of the plot beside it."""
    labels = list(report.conditions.tables)
    lines = [
        "# What block formats cost, library by library",
        "",
        "Each column is a table of `hwgen formats`: one library, one clock. An overhead is over NVFP4 of the same"
        " table, with as many products for an output in a cycle. So columns compare. Absolute figures of two libraries"
        " do not. In brackets behind a row: 2 x 16 are two exact sums of 16 products. In brackets behind a figure: its"
        " 95 % interval. A core that misses the clock says so.",
        "",
        f"![Cost of every format over NVFP4, library by library](<{picture}>)",
    ]
    for metric in METRICS:
        rows = [[name_of(row), *(_cell(row.cores[label], row, metric) for label in labels)] for row in report.results]
        lines += [
            "",
            f"## {metric[:1].upper()}{metric[1:]} of the core",
            "",
            *table(["row", *labels], rows, len(labels)),
        ]
    rows = [[name_of(row), *(_clock(row.cores[label]) for label in labels)] for row in report.results]
    lines += ["", "## Longest path of the slowest run, ns", "", *table(["row", *labels], rows, len(labels))]
    lines += _reasons(report)
    lines += ["", "## Conditions", ""]
    lines += [_from(label, of, report) for label, of in report.conditions.tables.items()]
    return "\n".join([*lines, ""])
