"""Time and energy of models: the cost model itself, on a grid of bandwidths and numbers of cores.

The page holds what the model says and not the model: a second one, in another language, could drift from it. A report
says of which workload, machine and cores it is. Where hwgen has that workload, and the model still says what the
report does, the whole grid is computed. Else the page has what the report has: other bandwidths with its number of
cores, and other numbers of cores with its bandwidth.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hwgen.config import NAMED
from hwgen.cost import workloads
from hwgen.cost.grid import Memory
from hwgen.cost.masked import without_masked
from hwgen.cost.model import EnergyCosts
from hwgen.cost.results import ATTENTION
from hwgen.errors import InputError
from hwgen.measure.workloads import cores
from hwgen.measure.workloads.cores import MeasuredCores
from hwgen.measure.workloads.cost import FACTORS, Machine, Whole, whole
from hwgen.report.form import counted, number, percent
from hwgen.report.schema import BANDWIDTH, IDLE_CORES, CostConditions, CostReport
from hwgen.site.charts import Chart, choice, percents, quantity, titled
from hwgen.site.conditions import links
from hwgen.site.markup import Markup, rows, tag, together
from hwgen.site.sources import Source

__all__ = ["Grid", "chart", "grid", "payload", "tables"]

Pair = tuple[Source, CostReport]


@dataclass(frozen=True)
class Grid:
    """Whole passes of a workload.

    Parameters
    ----------
    bandwidths
        Bytes per second.
    cores
        Numbers of them that the buffer can feed.
    passes
        By place in both; places that are not there are not known.
    """

    bandwidths: tuple[float, ...]
    cores: tuple[int, ...]
    passes: dict[tuple[int, int], Whole]

    def base(self, conditions: CostConditions) -> tuple[int, int]:
        """Place of the report's own machine."""
        return (
            self.bandwidths.index(conditions.memory.dram_bytes_per_second),
            self.cores.index(conditions.cores),
        )


def _machine(conditions: CostConditions) -> Machine:
    """The machine that a report is of."""
    memory, assumed, arranged = conditions.memory, conditions.assumptions, conditions.arrangement
    if assumed is None:
        raise InputError("a report from before assumptions were recorded")
    return Machine(
        cores=conditions.cores,
        shape=None if arranged is None else (arranged.batch, arranged.rows, arranged.columns),
        memory=Memory(
            memory.buffer_bytes,
            memory.dram_bytes_per_second,
            math.inf if memory.operands_per_cycle is None else memory.operands_per_cycle,
            memory.double_buffered,
        ),
        costs=EnergyCosts(
            conditions.energy_costs.buffer_pj_per_byte,
            conditions.energy_costs.dram_pj_per_byte,
            memory.buffer_mw_per_mib,
            assumed.quantiser_fj or {},
        ),
        clock_ns=conditions.clock_ns,
        results=assumed.results,
        attention=assumed.attention or ATTENTION[0],
        idle_gated=assumed.idle_cores == IDLE_CORES[0],
        buffer_mm2_per_mib=memory.buffer_mm2_per_mib,
    )


def _workload(conditions: CostConditions) -> workloads.Workload:
    """The packaged workload that a report is of."""
    given, assumed = conditions.workload, conditions.assumptions
    routing = (assumed.experts if assumed is not None else None) or workloads.ROUTING[0]
    for name in workloads.models():
        found = workloads.model(name, given.phase, given.batch, given.sequence, routing)
        if (found.title, found.source) == (given.title, given.source):
            return _chosen(found, conditions)
    raise InputError(f"no packaged workload {given.title!r}")


def _chosen(workload: workloads.Workload, conditions: CostConditions) -> workloads.Workload:
    """A packaged workload with what the report's command chose of its attention."""
    assumed = conditions.assumptions
    if assumed is None:
        return workload
    if assumed.half_rate is not None:
        workload = workloads.at_half_rate(workload, assumed.half_rate)
    if assumed.query_block is not None:
        workload = without_masked(workload, conditions.workload.sequence, assumed.query_block)
    return workload


def _cores(source: Source, report: CostReport) -> MeasuredCores:
    """What the report beside it says of the cores."""
    configs = [NAMED[design.name] for design in report.designs if design.name in NAMED]
    if [config.as_dict() for config in configs] != [dict(design.settings) for design in report.designs]:
        raise InputError("configurations that have no name")
    return cores.read(source.path.parent / report.conditions.measured.report, configs)


def _recorded(report: CostReport) -> Grid:
    """What the report itself has."""
    conditions = report.conditions
    bandwidths = sorted({each.value for each in report.sensitivity if each.varied == BANDWIDTH})
    cores = sorted({int(each.value) for each in report.sensitivity if each.varied != BANDWIDTH})
    found = Grid(
        tuple(sorted({*bandwidths, conditions.memory.dram_bytes_per_second})),
        tuple(sorted({*cores, conditions.cores})),
        {},
    )
    first, second = found.base(conditions)
    for each in report.sensitivity:
        place = (
            (found.bandwidths.index(each.value), second)
            if each.varied == BANDWIDTH
            else (first, found.cores.index(int(each.value)))
        )
        found.passes[place] = Whole(dict(each.seconds), dict(each.joules), each.overhead)
    return found


def _tried(measured: MeasuredCores, machine: Machine, workload: workloads.Workload) -> Whole | None:
    """A whole pass; None where it cannot be, as with a buffer too small for so many cores."""
    try:
        return whole(measured, machine, workload)
    except InputError:
        return None


def _same(one: Whole | None, other: Whole | None) -> bool:
    """Whether two passes are alike but for rounding."""
    if one is None or other is None:
        return False
    return all(
        math.isclose(ours[name], theirs[name], rel_tol=1e-9)
        for ours, theirs in ((one.seconds, other.seconds), (one.joules, other.joules))
        for name in theirs
    )


def grid(source: Source, report: CostReport) -> Grid:
    """The whole grid where the model can still say it, else what the report has."""
    recorded = _recorded(report)
    try:
        machine, workload = _machine(report.conditions), _workload(report.conditions)
        measured = _cores(source, report)
    except InputError:
        return recorded
    if not _same(_tried(measured, machine, workload), recorded.passes.get(recorded.base(report.conditions))):
        return recorded
    bandwidths = tuple(machine.memory.dram_bytes_per_second * factor for factor in FACTORS)
    columns: dict[int, list[Whole | None]] = {}
    for many in sorted({max(round(machine.cores * factor), 1) for factor in FACTORS}):
        shape = machine.shape if many == machine.cores else None
        columns[many] = [
            _tried(
                measured,
                replace(machine, cores=many, memory=replace(machine.memory, dram_bytes_per_second=rate), shape=shape),
                workload,
            )
            for rate in bandwidths
        ]
    cores = tuple(many for many, passes in columns.items() if None not in passes)
    passes = {
        (first, second): each
        for second, many in enumerate(cores)
        for first, each in enumerate(columns[many])
        if each is not None
    }
    return Grid(bandwidths, cores, passes)


def _per(report: CostReport) -> tuple[str, int]:
    """What a figure is for, and how many of them a pass has."""
    tokens = report.conditions.workload.tokens
    return ("token", tokens) if tokens else ("pass", 1)


def payload(pairs: Sequence[Pair], grids: Sequence[Grid]) -> dict[str, Any]:
    """What sliders choose from, by report: figures for each token, or each pass."""
    found = {}
    for (source, report), each in zip(pairs, grids, strict=True):
        unit, many = _per(report)
        first, second = each.base(report.conditions)
        found[source.name] = {
            "bandwidth": [value * 1e-9 for value in each.bandwidths],
            "cores": list(each.cores),
            "base": {"bandwidth": first, "cores": second},
            "unit": unit,
            "designs": list(report.names),
            "passes": {
                f"{one},{other}": {
                    "time": [known.seconds[name] / many for name in report.names],
                    "energy": [known.joules[name] / many for name in report.names],
                    "overhead": percent(known.overhead),
                }
                for (one, other), known in each.passes.items()
            },
        }
    return found


def _rows(pairs: Sequence[Pair], grids: Sequence[Grid]) -> dict[str, list[dict[str, Any]]]:
    """All passes by design, in ms and mJ, and overheads in percent."""
    passes: list[dict[str, Any]] = []
    overheads: list[dict[str, Any]] = []
    for (source, report), each in zip(pairs, grids, strict=True):
        _, many = _per(report)
        for (one, other), known in each.passes.items():
            place = {"report": source.name, "bandwidth": each.bandwidths[one] * 1e-9, "cores": each.cores[other]}
            for name in report.names:
                time, energy = (1e3 * values[name] / many for values in (known.seconds, known.joules))
                passes.append({**place, "design": name, "time": time, "energy": energy})
            if known.overhead is not None:
                overheads.append({**place, **percents(known.overhead)})
    return {"passes": passes, "overheads": overheads}


_X = quantity("bandwidth", "DRAM bandwidth, GB/s", scale={"type": "log", "nice": False, "padding": 10})
_HERE = {"filter": "abs(datum.bandwidth / bandwidth - 1) < 1e-6"}
_POINT = {"type": "point", "size": 130}


def _layers(metric: str, unit: str, units: Mapping[str, str]) -> list[dict[str, Any]]:
    """Time or energy of each design against the bandwidth, by report for a token or a pass; a point at the slider."""
    named = titled(f"'{metric}, {unit} a ' + {json.dumps(units)}[report]")
    y = quantity(metric, f"{metric}, {unit}", scale={"type": "log", "nice": False}, axis=named)
    encoding = {"x": _X, "y": y, "color": {"field": "design", "type": "nominal", "title": "design"}}
    dashes = {"strokeDash": {"field": "design", "type": "nominal", "legend": None}}
    return [
        {"mark": "line", "encoding": {**encoding, **dashes}},
        {"transform": [_HERE], "mark": _POINT, "encoding": encoding},
    ]


def _overhead_layers() -> list[dict[str, Any]]:
    title = "overhead in energy, %"
    places = {"x": _X, "y": quantity("value", title, scale={"zero": True})}
    return [
        {
            "mark": {"type": "area", "opacity": 0.25},
            "encoding": {"x": _X, "y": quantity("low", title), "y2": {"field": "high"}},
        },
        {"mark": "line", "encoding": places},
        {"transform": [_HERE], "mark": _POINT, "encoding": places},
    ]


def chart(pairs: Sequence[Pair], grids: Sequence[Grid]) -> Chart:
    """Time, energy and overhead against the bandwidth, for as many cores as the slider says."""
    names = {source.name: _label(report) for source, report in pairs}
    units = {source.name: _per(report)[0] for source, report in pairs}
    first, second = grids[0].base(pairs[0][1].conditions)
    common = {
        "params": [
            {"name": "report", "value": pairs[0][0].name},
            {"name": "cores", "value": grids[0].cores[second]},
            {"name": "bandwidth", "value": 1e-9 * grids[0].bandwidths[first]},
        ],
        "transform": [{"filter": "datum.report === report && datum.cores === cores"}],
        "height": 260,
    }
    specs = {
        "energy": {**common, "data": {"name": "passes"}, "layer": _layers("energy", "mJ", units)},
        "time": {**common, "data": {"name": "passes"}, "layer": _layers("time", "ms", units)},
        "overhead": {**common, "data": {"name": "overheads"}, "layer": _overhead_layers()},
    }
    controls = (
        choice("workload", "report", names, data_shows="cost"),
        choice("figure", "spec", {"energy": "energy", "time": "time", "overhead": "overhead in energy"}),
        _slider("DRAM bandwidth", "bandwidth", "GB/s"),
        _slider("cores", "cores", ""),
    )
    note = (
        "Every point is a run of the cost model in Python. Nothing on this page computes a cost. The slider ends at the"
        " most cores that the buffer of the machine can feed."
    )
    return Chart("workloads", "Bandwidth and number of cores", specs, _rows(pairs, grids), controls, note)


def _slider(label: str, parameter: str, unit: str) -> Markup:
    return tag(
        "label",
        tag("span", label, " ", tag("output"), f" {unit}"),
        tag("input", type="range", min=0, max=0, step=1, value=0, data_slider=parameter),
        class_="control slider",
    )


def _label(report: CostReport) -> str:
    given = report.conditions.workload
    return f"{given.title}, {given.phase}, {counted(given.batch, 'sequence')} of {counted(given.sequence, 'token')}"


def tables(pairs: Sequence[Pair]) -> Iterator[Markup]:
    """What a pass costs on the report's own machine."""
    for place, (source, report) in enumerate(pairs):
        lines = [
            [
                tag("span", figure.metric, title=f"totals[{row}] of {source.path.name}"),
                "" if figure.unit == "1" else figure.unit,
                *(number(figure.values[name]) for name in report.names),
                percent(figure.overhead),
            ]
            for row, figure in enumerate(report.totals)
        ]
        memory = report.conditions.memory
        what = (
            f"{_label(report)}: {counted(report.conditions.cores, 'core')},"
            f" {memory.dram_bytes_per_second * 1e-9:,.4g} GB/s, {memory.buffer_bytes / (1 << 20):,.4g} MiB of buffer"
        )
        yield tag(
            "section",
            tag("h3", "The machine of the report ", links(source)),
            together(rows(["figure", "unit", *report.names, "overhead"], lines, what, len(report.names) + 1)),
            data_cost=source.name,
            hidden=place > 0,
        )
