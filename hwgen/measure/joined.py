"""A table of formats that was measured in parts: on several machines, or on several days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from itertools import combinations

import numpy as np

from hwgen.config import from_dict
from hwgen.measure.recorded import tried
from hwgen.measure.rows import every
from hwgen.report.alike import Compared, check_alike, rows
from hwgen.report.schema import Closing, FormatFigure, FormatRow, FormatsConditions, FormatsReport
from hwgen.stats import paired

__all__ = ["joined"]

# The runs of a row that two reports have are the same netlists but where one was late or dear: what is dear depends on
# how many runs there are. By that the energy of NVFP4 differed by 0.13 % among three tables.
_SAME = 0.005

# These may differ: how many runs were asked for, and what no row of a part could take.
_OWN = ("runs", "half_width", "lanes")


def joined(parts: Mapping[str, FormatsReport]) -> FormatsReport:
    """One table of the rows of several.

    Of what several have, that with the most runs is taken, and of equals the first. Overheads are computed anew, over
    the baseline of the joined table: run k of a row has the perturbation of run k of its baseline in every report.

    Parameters
    ----------
    parts
        The tables by path.

    Raises
    ------
    InputError
        Something differs by which figures are made: library, tools, clock, wires, trained model, lanes that a row may
        take; what a row is and is compared with; lanes and recipes of its core, or what this takes.
    """
    for one, other in combinations(parts, 2):
        first, second = parts[one], parts[other]
        check_alike(one, other, (*_conditions(first, second), *rows(first, second), *_measured(first, second)))
    taken: dict[str, FormatRow] = {}
    for part in parts.values():
        for row in part.results:
            if row.row not in taken or _worth(row) > _worth(taken[row.row]):
                taken[row.row] = row
    baselines = {row.design: row for row in taken.values() if row.figures and row.baseline is None}
    places = {name: place for place, name in enumerate(every())}
    results = [
        *sorted(baselines.values(), key=lambda row: row.products or 0),
        *sorted(
            (row for row in taken.values() if row.design not in baselines or not row.figures),
            key=lambda row: places.get(row.row, len(places)),
        ),
    ]
    designs = {design.name: design for part in parts.values() for design in part.designs}
    conditions = [part.conditions for part in parts.values()]
    return FormatsReport(
        designs=tuple(designs[name] for name in dict.fromkeys(row.design for row in results) if name is not None),
        conditions=replace(
            conditions[0],
            lanes=tuple(dict.fromkeys(name for each in conditions for name in each.lanes)),
            runs=max(each.runs for each in conditions),
            half_width=max(each.half_width for each in conditions),
        ),
        results=tuple(_over(row, baselines.get(row.baseline)) for row in results),
    )


def _worth(row: FormatRow) -> tuple[bool, int]:
    """A row that costs what another one does has no figures of its own, but says more than one without a core."""
    return row.not_measured is None, row.runs


def _over(row: FormatRow, baseline: FormatRow | None) -> FormatRow:
    """A row with its overheads over a baseline."""
    if baseline is None:
        return row

    def figure(own: FormatFigure) -> FormatFigure:
        theirs = baseline.find(own.scope, own.metric)
        if own.overhead is None or theirs is None:
            return own
        return replace(own, overhead=paired(theirs.values[: len(own.values)], own.values))

    return replace(row, figures=tuple(map(figure, row.figures)))


def _conditions(one: FormatsReport, other: FormatsReport) -> Iterator[Compared]:
    """What must be alike of the conditions."""
    ours, theirs = one.conditions, other.conditions
    for field in fields(ours.flow):
        yield f"{field.name} of the flow", getattr(ours.flow, field.name), getattr(theirs.flow, field.name)
    for field in fields(FormatsConditions):
        if field.name not in ("flow", *_OWN):
            yield field.name, getattr(ours, field.name), getattr(theirs, field.name)
    every_lane = list(dict.fromkeys((*ours.lanes, *theirs.lanes)))
    for designs, lanes in ((one.designs, ours.lanes), (other.designs, theirs.lanes)):
        for config in (from_dict(dict(design.settings)) for design in designs):
            yield f"lanes to choose from for {config.name}", tried(lanes, config), tried(every_lane, config)


def _measured(one: FormatsReport, other: FormatsReport) -> Iterator[Compared]:
    """What must be alike of rows that both have measured: lanes and recipes of their cores, and so what these take."""
    for row in one.results:
        twin = other.find(row.row)
        if not row.figures or twin is None or not twin.figures:
            continue
        for purpose, scopes in row.closing.items():
            yield f"row {row.row!r}: core for least {purpose}", _core(scopes), _core(twin.closing[purpose])
        runs = min(row.runs, twin.runs)
        for metric in ("area", "energy per MAC"):
            mine, its = (_mean(each, metric, runs) for each in (row, twin))
            if abs(mine - its) > _SAME * its:
                yield f"row {row.row!r}: {metric} of the core, mean of {runs} runs,", mine, its


def _mean(row: FormatRow, metric: str, runs: int) -> float:
    """What a core takes, mean over the first runs."""
    figure = row.find("core", metric)
    assert figure is not None
    return float(np.mean(figure.values[:runs]))


def _core(scopes: Mapping[str, Closing]) -> str:
    """Lanes and recipes of a core, in words."""
    core = scopes["core"]
    return f"{core.lanes} by {', '.join(f'{module} {how}' for module, how in core.recipes.items())}"
