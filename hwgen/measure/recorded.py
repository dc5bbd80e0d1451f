"""Lanes and recipes that an earlier report found, so that what it searched need not be searched again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from hwgen.cells.library import Library
from hwgen.config import DOTS, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping.yosys import RECIPES, usable
from hwgen.measure.conditions import flow_conditions
from hwgen.measure.formats.rows import with_products
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.clock import usual
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.requests import FormatsRequest, OverheadRequest
from hwgen.measure.search.selected import Selected
from hwgen.report import schema
from hwgen.rtl.lane_array import LaneArray

__all__ = ["named_with_digest", "pair_found_before", "rows_found_before", "rows_selected_by", "selected_by", "tried"]


def pair_found_before(directory: Path, request: OverheadRequest, library: Library) -> tuple[Path, Selected] | None:
    """The first report of a directory whose search was the one that is asked for, and what it found.

    Parameters
    ----------
    directory
        Where reports are. Files that are no reports are passed over.
    request
        What is asked for.
    library
        The cells.
    """
    for path, report in _measured_with(library, directory):
        if isinstance(report, schema.OverheadReport) and (found := selected_by(report, request, library)):
            return path, replace(found, report=named_with_digest(path, path.read_bytes()))
    return None


def rows_found_before(directory: Path, request: FormatsRequest, library: Library) -> dict[str, tuple[Path, Selected]]:
    """What the reports of a directory found for rows, and which report did, by name of the configuration.

    Where several have a row, that counts which meets the clock with the least area times energy. A row counts only if
    its baseline took there what it takes here: that was offered to the row, and else a part of the overhead would be
    luck in a search.

    Parameters
    ----------
    directory, request, library
        As for `pair_found_before`.
    """
    reports = [
        (path, report, found)
        for path, report in _measured_with(library, directory)
        if isinstance(report, schema.FormatsReport) and (found := rows_selected_by(report, request, library))
    ]
    # Of equals that of the report with most rows is taken.
    reports.sort(key=lambda each: -len(each[2]))
    taken: dict[str, tuple[Path, Selected]] = {}
    # Baselines come first.
    for name in (config.name for config in _cores(request)):
        among = []
        for path, report, found in reports:
            if name in found:
                row = _measured_rows(report)[name]
                of = row.baseline
                if of is None or (of in taken and _of_cores(found[of]) == _of_cores(taken[of][1])):
                    among.append((path, row, found[name]))
        if among:
            path, best = _best(among)
            taken[name] = path, replace(best, report=named_with_digest(path, path.read_bytes()))
    return taken


def named_with_digest(path: Path, content: bytes) -> str:
    """Name of a file, and what tells it from another one that takes its place."""
    return f"{path.name} (sha256 {hashlib.sha256(content).hexdigest()[:12]})"


def _measured_rows(report: schema.FormatsReport) -> dict[str | None, schema.FormatRow]:
    """The rows of a report that have figures, by name of the configuration; others may have the core of one."""
    return {row.design: row for row in report.results if row.figures}


def _of_cores(selected: Selected) -> tuple[object, ...]:
    """Lanes and recipes of cores: what the searches of others are offered."""
    return selected.configs, selected.chosen


def _best(among: Sequence[tuple[Path, schema.FormatRow, Selected]]) -> tuple[Path, Selected]:
    """The best of what some searches found, and its report.

    They are compared on runs that all of them have: run k has the same perturbation in each. What was found twice
    counts once, for its runs may differ: one that is late takes other recipes.
    """
    different: list[tuple[Path, schema.FormatRow, Selected]] = []
    for each in among:
        if all(_of_cores(each[2]) != _of_cores(other[2]) for other in different):
            different.append(each)
    runs = min(row.runs for _, row, _ in different)
    path, _, selected = min(different, key=lambda each: (not each[1].met, _cost(each[1], runs)))
    return path, selected


def _cost(row: schema.FormatRow, runs: int) -> float:
    """Area of the core times its energy, each the mean over the first runs."""
    area, energy = row.find("core", "area"), row.find("core", "energy per MAC")
    assert area is not None
    assert energy is not None
    return mean(area.values[:runs]) * mean(energy.values[:runs])


def _measured_with(library: Library, directory: Path) -> Iterator[tuple[Path, schema.Report]]:
    """The reports of a directory that were measured with some cells."""
    for path in sorted(directory.glob("*.json")):
        try:
            # Reading a report takes a while, and most are of other cells.
            if library.digest not in path.read_text(encoding="utf-8"):
                continue
            yield path, schema.load(path)
        except (OSError, UnicodeDecodeError, InputError):
            continue


def selected_by(report: schema.OverheadReport, request: OverheadRequest, library: Library) -> Selected | None:
    """What the search of a report found; None where there was none, or where another one is asked for.

    The search must have had the same designs, cells, recipes, clock, wires and kind of operands, and of the lanes those
    that go with a design. The seed of the operands may be another.
    """
    conditions, pair = report.conditions, (request.baseline, request.candidate)
    if conditions.lanes is None or conditions.closing is None or report.whole != "core":
        return None
    if request.recipe is not None or request.physical is None:
        return None
    asked = (
        [config.as_dict() for config in pair],
        _cells(flow_conditions(library, usable(library))),
        (tried(request.lanes, *pair, slots=request.slots), request.slots, request.clock_ns or usual(library)),
        _wires(request.physical, request.physical.placed),
        replace(request.stimulus.record(pair[0]), seed=conditions.stimulus.seed),
    )
    (clock_ns,) = {found.clock_ns for each in conditions.closing.values() for found in each["area"].values()}
    had = (
        [design.settings for design in report.designs],
        _cells(conditions.flow),
        (tried(conditions.lanes, *pair, slots=request.slots), conditions.slots or (), clock_ns),
        _wires(conditions.physical),
        conditions.stimulus,
    )
    return _selected({config: conditions.closing[config.name] for config in pair}) if asked == had else None


def rows_selected_by(report: schema.FormatsReport, request: FormatsRequest, library: Library) -> dict[str, Selected]:
    """What the searches of a report found, by name of the configuration; nothing where others are asked for.

    Rows count whose design and operands are those that are asked for, if the row that they were compared with counts.
    Cells, recipes, clock and wires must be the same, and of the lanes those that go with the row. The seed of the
    operands may be another.
    """
    conditions = report.conditions
    asked = (
        _cells(flow_conditions(library, usable(library))),
        request.clock_ns or usual(library),
        _wires(request.physical, request.physical.placed),
    )
    had = _cells(conditions.flow), conditions.clock_ns, _wires(conditions.physical)
    if request.recipe is not None or asked != had:
        return {}
    settings = {design.name: design.settings for design in report.designs}
    rows = _measured_rows(report)
    found: dict[str, Selected] = {}
    for config in _cores(request):
        row = rows.get(config.name)
        if row is None or row.stimulus is None or settings[config.name] != config.as_dict():
            continue
        if tried(request.lanes, config) != tried(conditions.lanes, config):
            continue
        if replace(request.stimulus.record(config), seed=row.stimulus.seed) != row.stimulus:
            continue
        # What the baseline took was tried for the row, too.
        if row.baseline is None or row.baseline in found:
            found[config.name] = _selected({config: row.closing})
    return found if request.baseline.name in found else {}


def tried(lanes: Sequence[str], *configs: TensorCoreConfig, slots: Sequence[str] = ()) -> list[str]:
    """Lanes of a search that configurations had to choose from; those that hwgen has no more are among them.

    With other ``slots``, that is lanes that go with one of these.
    """
    return [
        name for name in lanes if name not in DOTS or any(config.takes(name, config.slot, *slots) for config in configs)
    ]


def _cores(request: FormatsRequest) -> list[TensorCoreConfig]:
    """Cores of all rows, those that they are compared with first."""
    rows = [row.config for row in request.rows if row.config is not None]
    baselines = [with_products(request.baseline, products) for products in sorted({config.depth for config in rows})]
    cores = [request.baseline, *(each for each in baselines if each is not None), *rows]
    found: dict[str, TensorCoreConfig] = {}
    for config in cores:
        found.setdefault(config.name, config)
    return list(found.values())


def _selected(closing: Mapping[TensorCoreConfig, Mapping[str, Mapping[str, schema.Closing]]]) -> Selected:
    """Lanes and recipes as a report has them, by configuration, purpose and scope."""
    configs, chosen, arrays = {}, {}, {}
    for config, found in closing.items():
        for purpose in PURPOSES:
            core, array = found[purpose]["core"], found[purpose]["lane array"]
            configs[config.name, purpose] = core.of(config)
            chosen[config.name, purpose] = {module: RECIPES[how] for module, how in core.recipes.items()}
            arrays[config.name, purpose] = (
                replace(config, dot=array.lanes),
                RECIPES[array.recipes[LaneArray.module_name]],
            )
    return Selected(configs, chosen, arrays, 0)


def _wires(physical: Physical | schema.Physical | None, placed: bool = True) -> tuple[str | None, ...] | None:
    """Where wires come from, and what placed the cells, if they are placed."""
    return None if physical is None else (physical.wires, physical.placer if placed else None)


def _cells(flow: schema.FlowConditions) -> tuple[Any, ...]:
    """What a search has to choose from."""
    return flow.library, flow.recipes, flow.clock_gate
