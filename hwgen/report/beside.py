"""Tables of formats side by side as one record: rows matched by name, of reports whose rows and flow are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from hwgen.errors import InputError
from hwgen.report.alike import Compared, check_alike, rows
from hwgen.report.markdown.formats import costing
from hwgen.report.schema import (
    CoreBeside,
    FormatRow,
    FormatsConditions,
    FormatsReport,
    LibrariesConditions,
    LibrariesReport,
    RowBeside,
    TableBeside,
)

__all__ = ["METRICS", "beside"]

METRICS = ("area per MAC", "energy per MAC")
"""What is shown of each core."""

_ABSENT = "not in this report"


def beside(reports: Mapping[str, FormatsReport]) -> LibrariesReport:
    """One record of several tables.

    Parameters
    ----------
    reports
        The tables by path, in the order in which they are shown.

    Raises
    ------
    InputError
        Two are of one library and clock; or what must be alike is not: wires, placer and lanes of the flow, or
        configuration, formats, baseline and operands of a row that both have.
    """
    labels = _labels(reports)
    for one, other in combinations(reports, 2):
        check_alike(one, other, (*_flows(reports[one], reports[other]), *rows(reports[one], reports[other])))
    first = _first_of_each(reports)
    return LibrariesReport(
        designs=tuple({each.name: each for report in reports.values() for each in report.designs}.values()),
        conditions=LibrariesConditions(
            {labels[name]: TableBeside(Path(name).name, report.conditions) for name, report in reports.items()}
        ),
        results=tuple(
            RowBeside(
                row=row.row,
                baseline=_baseline(reports.values(), row),
                products=row.products,
                summed=row.summed,
                cores={labels[name]: _core(report, row.row) for name, report in reports.items()},
            )
            for row in first.values()
        ),
    )


def _labels(reports: Mapping[str, FormatsReport]) -> dict[str, str]:
    """Library and clock of each; the whole name of the library where two are alike in its first part."""
    whole = {
        name: (report.conditions.flow.library, f"{report.conditions.clock_ns:g} ns") for name, report in reports.items()
    }
    short = Counter((library.short, clock) for library, clock in whole.values())
    found: dict[str, str] = {}
    for name, (library, clock) in whole.items():
        label = f"{library.short if short[library.short, clock] == 1 else library.name}, {clock}"
        other = next((each for each, known in found.items() if known == label), None)
        if other is not None:
            raise InputError(
                f"reports {other!r} and {name!r} are both of {label}: give one report for each library and clock"
            )
        found[name] = label
    return found


def _first_of_each(reports: Mapping[str, FormatsReport]) -> dict[str, FormatRow]:
    """Rows by name, in the order in which reports have them; of several the first that was measured."""
    found: dict[str, FormatRow] = {}
    for report in reports.values():
        for row in report.results:
            if row.row not in found or (row.figures and not found[row.row].figures):
                found[row.row] = row
    return found


def _baseline(reports: Iterable[FormatsReport], row: FormatRow) -> str | None:
    """What a row is compared with; the configuration itself, if it has the core of another row."""
    of = [costing(report, each) for report in reports for each in report.results if each.row == row.row]
    return row.design if any(each.row != row.row for each in of) else row.baseline


def _core(report: FormatsReport, name: str) -> CoreBeside:
    if (row := report.find(name)) is None:
        return CoreBeside(_ABSENT, None, None, ())
    of = costing(report, row)
    figures = tuple(each for metric in METRICS if (each := of.find("core", metric)) is not None)
    if of is not row:
        # What one core takes over another is not what it takes over itself.
        figures = tuple(replace(each, overhead=None) for each in figures)
    return CoreBeside(of.not_measured, of.slowest_ns, of.met, figures)


def _flows(report: FormatsReport, other: FormatsReport) -> Iterator[Compared]:
    """What must be alike of two flows: what it is, and its two values."""
    ours, theirs = report.conditions, other.conditions
    for name in ("wires", "placer"):
        yield f"{name} of the netlists", getattr(ours.physical, name), getattr(theirs.physical, name)
    # One library at several clocks shows what a clock does. Several libraries at clocks of two kinds mix both effects.
    if ours.flow.library.name != theirs.flow.library.name and None not in (ours.usual_clock, theirs.usual_clock):
        yield "the clock", _clock(ours), _clock(theirs)
    yield "lanes that were tried", sorted(ours.lanes), sorted(theirs.lanes)


def _clock(conditions: FormatsConditions) -> str:
    """What the clock is to its library: a slow one and a fast one make other cores."""
    return "the usual one of its library" if conditions.usual_clock else "one that was asked for"
