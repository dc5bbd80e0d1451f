"""A table of formats that was measured in parts: on several machines, or on several days."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import chain, combinations
from typing import Any

import numpy as np

from hwgen.config import TensorCoreConfig, from_dict
from hwgen.errors import InputError
from hwgen.formats import BlockFormat
from hwgen.measure.formats.rows import RULES, every, rows_of
from hwgen.measure.recorded import tried
from hwgen.report.alike import Compared, check_alike, rows
from hwgen.report.schema import Closing, FlowConditions, FormatRow, FormatsConditions, FormatsReport, may_lack

__all__ = ["joined"]

# The runs of a row that two reports have are the same netlists but where one was late or dear: what is dear depends on
# how many runs there are. By that the energy of NVFP4 differed by 0.13 % among three tables.
_TOLERANCE = 0.005

# These may differ: how many runs were made at most, and lanes that no row of a part could take.
_MAY_DIFFER = ("runs", "lanes", "parts")


def joined(parts: Mapping[str, FormatsReport]) -> FormatsReport:
    """One table of the rows of several.

    Of a row that several have, that with the most runs is taken, and of equals the first. Each row keeps its overheads:
    they are over the runs of its baseline in its own part.

    Parameters
    ----------
    parts
        The tables by path.

    Raises
    ------
    InputError
        The parts were not made alike: library, tools, clock, wires, or trained model differ, or a row of one was not
        offered lanes that it could take. A row of two parts is not the same in both: its configuration, operands, lanes
        or recipes differ, or what its runs take. Two formats have the same name. A configuration is none of this
        hwgen's.
    """
    cores = {path: [_config(path, design.settings) for design in part.designs] for path, part in parts.items()}
    _check_formats(cores)
    for one, other in combinations(parts, 2):
        first, second = parts[one], parts[other]
        lanes = _lanes(first, second, cores[one], cores[other])
        check_alike(one, other, chain(_conditions(first, second), lanes, rows(first, second), _measured(first, second)))
    taken: dict[str, FormatRow] = {}
    for part in parts.values():
        for row in part.results:
            if row.row not in taken or row.runs > taken[row.row].runs:
                taken[row.row] = row
    results = _in_order(taken.values())
    designs = {design.name: design for part in parts.values() for design in part.designs}
    shown = [designs[name] for name in dict.fromkeys(row.design for row in results) if name is not None]
    conditions = [part.conditions for part in parts.values()]
    most = sorted({runs for each in conditions for runs in each.parts or (each.runs,)})
    return FormatsReport(
        # As in a table without any core.
        designs=tuple(shown) or next(iter(parts.values())).designs,
        conditions=replace(
            conditions[0],
            lanes=tuple(dict.fromkeys(name for each in conditions for name in each.lanes)),
            flow=_flow(conditions),
            runs=most[-1],
            parts=tuple(most),
        ),
        results=tuple(results),
    )


def _flow(conditions: Sequence[FormatsConditions]) -> FlowConditions:
    """What all syntheses have in common; the code only where all parts say which."""
    flow = conditions[0].flow
    known = all(each.flow.tools.code is not None for each in conditions)
    return flow if known else replace(flow, tools=replace(flow.tools, code=None))


def _config(path: str, settings: Mapping[str, Any]) -> TensorCoreConfig:
    try:
        return from_dict(dict(settings))
    except (InputError, TypeError, KeyError) as error:
        name = settings.get("name")
        raise InputError(
            f"report {path!r}: design {name!r} is none of this hwgen's ({error}); measure it anew"
        ) from None


def _check_formats(cores: Mapping[str, list[TensorCoreConfig]]) -> None:
    """Figures go by the names of formats, and users have formats of their own."""
    known: dict[str, tuple[str, BlockFormat]] = {}
    for path, configs in cores.items():
        for form in (form for config in configs for form in config.formats):
            first, same = known.setdefault(form.name, (path, form))
            if same != form:
                raise InputError(
                    f"reports {first!r} and {path!r} do not compare: format {form.name!r} is not the same in both;"
                    " rename one, and measure it anew"
                )


def _in_order(found: Iterable[FormatRow]) -> list[FormatRow]:
    """Baselines first, then rows as the table has them; those of a user's own come last."""
    baselines: list[FormatRow] = []
    others: list[FormatRow] = []
    for row in found:
        (baselines if row.figures and row.baseline is None else others).append(row)
    baselines.sort(key=lambda row: row.products or 0)
    places = {name: place for place, name in enumerate(every())}
    others.sort(key=lambda row: places.get(row.row, len(places)))
    return [*baselines, *(_with_reason(row, baselines) for row in others)]


def _with_reason(row: FormatRow, baselines: Sequence[FormatRow]) -> FormatRow:
    """A row that is a rule has the core of another one, which its own part may have lacked."""
    if row.row in RULES and any(each.row == RULES[row.row] for each in baselines):
        return replace(row, not_measured=rows_of([row.row])[0].reason)
    return row


def _conditions(one: FormatsReport, other: FormatsReport) -> Iterator[Compared]:
    """What must be alike of the conditions."""
    for field in fields(FormatsConditions):
        if field.name not in _MAY_DIFFER:
            ours, theirs = (getattr(each.conditions, field.name) for each in (one, other))
            # Reports from before it was recorded do not say.
            if field.name != "usual_clock" or None not in (ours, theirs):
                yield from _within(field.name.replace("_", " "), ours, theirs)


def _within(what: str, ours: Any, theirs: Any) -> Iterator[Compared]:
    """The fields of two records, or of two lists of records with names."""
    if is_dataclass(ours) and is_dataclass(theirs):
        for field in fields(ours):
            own, its = getattr(ours, field.name), getattr(theirs, field.name)
            # Reports from before it was recorded do not say.
            if field.name not in may_lack(type(ours)) or None not in (own, its):
                yield from _within(f"{field.name.replace('_', ' ')} of {what}", own, its)
    elif isinstance(ours, tuple) and all(hasattr(each, "name") for each in (*ours, *theirs)):
        yield f"names of {what}", [each.name for each in ours], [each.name for each in theirs]
        for one, other in zip(ours, theirs, strict=True):
            yield from _within(f"{one.name} of {what}", one, other)
    else:
        yield what, ours, theirs


def _lanes(
    one: FormatsReport, other: FormatsReport, ours: list[TensorCoreConfig], theirs: list[TensorCoreConfig]
) -> Iterator[Compared]:
    """Every row was offered all lanes of both that it can take."""
    own, its = one.conditions.lanes, other.conditions.lanes
    both = [*own, *its]

    def of(lanes: Sequence[str], config: TensorCoreConfig) -> list[str]:
        return sorted(set(tried(lanes, config)))

    for config in ours:
        yield f"what {config.name} could choose from of lanes", of(own, config), of(both, config)
    for config in theirs:
        yield f"what {config.name} could choose from of lanes", of(both, config), of(its, config)


def _measured(one: FormatsReport, other: FormatsReport) -> Iterator[Compared]:
    """What must be alike of rows that both have measured: operands, lanes, recipes, and so what their cores take."""
    for row in one.results:
        twin = other.find(row.row)
        if not row.figures or twin is None or not twin.figures:
            continue
        if row.stimulus and twin.stimulus:
            yield f"row {row.row!r}: seed of the operands", row.stimulus.seed, twin.stimulus.seed
        for purpose, scopes in row.closing.items():
            for scope, closing in scopes.items():
                what = f"row {row.row!r}: {scope} for least {purpose}"
                yield what, _lanes_and_recipes(closing), _lanes_and_recipes(twin.closing[purpose][scope])
        runs = min(row.runs, twin.runs)
        for metric in ("area", "energy per MAC"):
            ours, theirs = (_mean(each, metric, runs) for each in (row, twin))
            if abs(ours - theirs) > _TOLERANCE * theirs:
                yield f"row {row.row!r}: {metric} of the core, mean of {runs} runs,", ours, theirs


def _mean(row: FormatRow, metric: str, runs: int) -> float:
    """What a core takes, mean over the first runs."""
    figure = row.find("core", metric)
    assert figure is not None
    return float(np.mean(figure.values[:runs]))


def _lanes_and_recipes(closing: Closing) -> str:
    return f"{closing.lanes} by {', '.join(f'{module} {how}' for module, how in closing.recipes.items())}"
