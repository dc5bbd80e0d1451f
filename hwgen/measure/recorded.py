"""Lanes and recipes that an earlier report found, so that what it searched need not be searched again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hwgen.cells.library import Library
from hwgen.errors import InputError
from hwgen.mapping.yosys import RECIPES, usable
from hwgen.measure.built import PURPOSES
from hwgen.measure.clock import usual
from hwgen.measure.conditions import flow_conditions
from hwgen.measure.requests import OverheadRequest
from hwgen.measure.selection import Selected
from hwgen.report import schema
from hwgen.rtl.lane_array import LaneArray

__all__ = ["found_before", "selected_by"]


def found_before(directory: Path, request: OverheadRequest, library: Library) -> tuple[Path, Selected] | None:
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
    for path in sorted(directory.glob("*.json")):
        try:
            # Reading a report takes a while, and most are of other cells.
            if library.digest not in path.read_text(encoding="utf-8"):
                continue
            report = schema.load(path)
        except (OSError, UnicodeDecodeError, InputError):
            continue
        if isinstance(report, schema.OverheadReport) and (selected := selected_by(report, request, library)):
            return path, selected
    return None


def selected_by(report: schema.OverheadReport, request: OverheadRequest, library: Library) -> Selected | None:
    """What the search of a report found; None where another one is asked for.

    The search must have had the same designs, cells, recipes, lanes, clock, wires and kind of operands. The seed of the
    operands may be another.
    """
    conditions, pair = report.conditions, (request.baseline, request.candidate)
    if request.recipe is not None or request.physical is None or conditions.closing is None:
        return None
    asked = (
        [config.as_dict() for config in pair],
        _cells(flow_conditions(library, usable(library))),
        (request.lanes, request.slots, request.clock_ns or usual(library)),
        (request.physical.wires, request.physical.placer if request.physical.placed else None),
        replace(request.stimulus.record(pair[0]), seed=conditions.stimulus.seed),
    )
    (clock_ns,) = {found.clock_ns for each in conditions.closing.values() for found in each["area"].values()}
    physical = conditions.physical
    had = (
        [design.settings for design in report.designs],
        _cells(conditions.flow),
        (conditions.lanes, conditions.slots or (), clock_ns),
        (physical and physical.wires, physical and physical.placer),
        conditions.stimulus,
    )
    if asked != had:
        return None
    configs, chosen, arrays = {}, {}, {}
    for config in pair:
        for purpose in PURPOSES:
            found = conditions.closing[config.name][purpose]
            core, array = found["core"], found["lane array"]
            configs[config.name, purpose] = replace(config, dot=core.lanes, slot=core.slot or config.slot)
            chosen[config.name, purpose] = {module: RECIPES[how] for module, how in core.recipes.items()}
            arrays[config.name, purpose] = (
                replace(config, dot=array.lanes),
                RECIPES[array.recipes[LaneArray.module_name]],
            )
    return Selected(configs, chosen, arrays, 0)


def _cells(flow: schema.FlowConditions) -> tuple[Any, ...]:
    """What a search has to choose from."""
    return flow.library, flow.recipes, flow.clock_gate
