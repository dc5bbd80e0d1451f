"""Tables of formats side by side, one for each library: rows matched by name."""

from __future__ import annotations

from collections.abc import Sequence

from hwgen.errors import InputError
from hwgen.report.form import number, percent, table
from hwgen.report.schema import FormatRow, FormatsReport

__all__ = ["METRICS", "labelled", "markdown", "row_names"]

METRICS = ("area per MAC", "energy per MAC")
"""What is shown of each core."""


def labelled(reports: Sequence[FormatsReport]) -> dict[str, FormatsReport]:
    """The reports by what tells them apart: library and clock.

    Raises
    ------
    InputError
        Two have both alike.
    """
    found: dict[str, FormatsReport] = {}
    for report in reports:
        conditions = report.conditions
        label = f"{conditions.flow.library.name}, {conditions.clock_ns:g} ns"
        if label in found:
            raise InputError(f"two reports are of {label}: give one report for each library and clock")
        found[label] = report
    return found


def row_names(reports: Sequence[FormatsReport]) -> list[str]:
    """Names of the rows of all reports, in the order of the first that has each."""
    return list(dict.fromkeys(row.row for report in reports for row in report.results))


def _row(report: FormatsReport, name: str) -> FormatRow | None:
    return next((row for row in report.results if row.row == name), None)


def _cell(row: FormatRow | None, metric: str) -> str:
    """What a row costs: its figure if it is a baseline, else its overhead."""
    if row is None:
        return "not in this report"
    figure = row.find("core", metric)
    if figure is None:
        return "not measured"
    missed = "" if row.met else " (clock missed)"
    if row.baseline is None:
        return f"baseline, {number(figure.mean)} {figure.unit}{missed}"
    return f"{percent(figure.overhead)}{missed}"


def _unlike(found: dict[str, FormatsReport]) -> list[str]:
    """Rows that have other cores, or other baselines, in some reports, as list items."""
    lines = []
    for name in row_names(list(found.values())):
        known = set()
        for report in found.values():
            row = _row(report, name)
            if row is not None and row.design is not None and row.figures:
                (settings,) = [repr(dict(each.settings)) for each in report.designs if each.name == row.design]
                known.add((row.baseline, settings))
        if len(known) > 1:
            lines.append(f"- {name}: its core or its baseline is not the same in all reports.")
    return lines


def markdown(reports: Sequence[FormatsReport], picture: str) -> str:
    """The reports for readers; ``picture`` is the file name of the plot beside it."""
    found = labelled(reports)
    names = row_names(reports)
    unlike = _unlike(found)
    lines = [
        "# What block formats cost, library by library",
        "",
        "Each column is a report of `hwgen formats`. An overhead is over the baseline of the same report, with as many"
        " products for an output in a cycle. So columns compare, and absolute figures of two libraries do not.",
        *(["", *unlike] if unlike else []),
        "",
        f"![Overhead of every format, library by library](<{picture}>)",
    ]
    for metric in METRICS:
        rows = [[name, *(_cell(_row(report, name), metric) for report in found.values())] for name in names]
        lines += ["", f"## {metric[:1].upper()}{metric[1:]} of the core", "", *table(["row", *found], rows, len(found))]
    lines += ["", "## Conditions", ""]
    for label, report in found.items():
        conditions = report.conditions
        least = min((row.runs for row in report.results if row.runs), default=0)
        lines.append(
            f"- {label}: {conditions.flow.library.cells} cells in use, wires {conditions.physical.wires}, {least} runs"
            f" of each row at least, hwgen {conditions.flow.tools.hwgen}."
        )
    return "\n".join([*lines, ""])
