"""The table of formats: what each costs at one clock over a baseline, and what it loses.

Rows are independent of one another. Each is searched and built as `hwgen.measure.at_clock` does it. The baseline is
built once for every number of products that rows add up in a cycle. Run k of a row is paired with its run k: both have
the same perturbation and the same tensors. Where no row has a core of its own, nothing is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from hwgen.config import NAMED, TensorCoreConfig
from hwgen.errors import InputError
from hwgen.formats import BlockFormat
from hwgen.mapping import area
from hwgen.mapping.cache import Cache
from hwgen.mapping.yosys import Recipe, usable
from hwgen.measure import code
from hwgen.measure.at_clock import closings, excess, next_runs, physical_record
from hwgen.measure.conditions import fingerprint, flow_conditions
from hwgen.measure.formats.losses import MODELS, Losses, of_products
from hwgen.measure.formats.rows import RULES, SIZE, not_comparable, row_name, with_products
from hwgen.measure.kept import KeptFlow
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.checks import VECTORS
from hwgen.measure.netlists.clock import usual
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.overhead import of_scope
from hwgen.measure.requests import FormatsRequest, Row
from hwgen.measure.runs import Run, measured
from hwgen.measure.search.reach import exchanged, select_for_cores
from hwgen.measure.search.score import Aim
from hwgen.measure.search.selected import Selected
from hwgen.report import schema
from hwgen.stats import FEWEST, paired
from sim.counterpart import counterpart
from sim.steps import check_hold

__all__ = ["measure_formats"]

_ALIKE = ("fraction_bits", "rounding", "numerics", "accumulator", "empty_blocks", "clock_gating")
"""Fields besides the shape in which rows should be like the baseline."""

_Values = dict[tuple[str, str], tuple[str, list[float]]]
"""Unit, and values of the runs, by scope and metric."""

_SEARCHING = "hwgen.measure.search.reach"
"""The module behind which all code of the search is."""


@dataclass
class _Built:
    """One configuration: what was found for it, and its runs so far."""

    config: TensorCoreConfig
    selected: Selected
    runs: list[Run] = field(default_factory=list)


@dataclass(frozen=True)
class _Study:
    """What all rows have in common."""

    request: FormatsRequest
    flow: Flow
    recipes: Sequence[Recipe]
    aim: Aim
    vectors: int
    losses: Losses
    baselines: dict[int, _Built] = field(default_factory=dict)
    """By products for an output in a cycle."""
    rows: dict[str, _Built] = field(default_factory=dict)
    """Others, by name of the configuration."""

    def flow_of(self, config: TensorCoreConfig) -> Flow:
        """The flow, whose progress names the row."""
        tell, name = self.flow.progress, row_name(config.name)
        return replace(self.flow, progress=lambda what, done, total: tell(f"{name}: {what}", done, total))

    def begun(self, config: TensorCoreConfig, baseline: Selected | None = None) -> _Built:
        """A configuration with its lanes and recipes; no run yet.

        What its ``baseline`` takes is tried for it, too: else a part of an overhead would be luck in its search.
        """
        check_hold(config, self.request.stimulus.hold)
        if (selected := self.request.selected.get(config.name)) is not None:
            return _Built(config, selected)
        kept = Cache(self.flow.cache)
        operands = [counterpart(form) for form in config.formats]
        aim = self.aim.searched(0)
        given = (config, operands, self.recipes, aim, self.request.lanes)
        tried = _record_of(baseline) if baseline else {}
        key = fingerprint(self.flow.library, "search", *given, tried, code=code.digest(_SEARCHING))
        if (known := kept.get(key)) is not None:
            return _Built(config, _selected(known, config, self.recipes))
        selected = select_for_cores(
            {config.name: config},
            self.recipes,
            aim,
            self.flow_of(config),
            self.request.lanes,
            found_for=baseline,
        )
        kept.put(key, _record_of(selected))
        return _Built(config, selected)

    def extend(self, built: _Built, batch: range) -> None:
        """Build some more runs."""
        config = built.config
        # Each row works on operands of its own formats alone.
        found = measured(
            batch,
            {config.name: config},
            config,
            built.selected,
            self.aim,
            self.recipes,
            self.vectors,
            self.flow_of(config),
            {config.name: built.runs},
        )
        built.runs.extend(found[config.name])

    def baseline(self, products: int) -> _Built:
        """The baseline with so many products for an output in a cycle."""
        if products not in self.baselines:
            config = with_products(self.request.baseline, products)
            assert config is not None  # see `not_comparable`
            self.baselines[products] = self.begun(config)
        return self.baselines[products]

    def row(self, config: TensorCoreConfig) -> _Built:
        """A row, and its baseline, with lanes and recipes."""
        baseline = self.baseline(config.depth)
        if config == baseline.config:
            return baseline
        if config.name not in self.rows:
            self.rows[config.name] = self.begun(config, baseline.selected)
        return self.rows[config.name]

    def exchange(self) -> None:
        """Try each baseline by what its rows take, and where that is better the rows by what it takes then.

        A row has been tried by what its baseline took. Else the baseline would be the one that was tried by less. One
        that is as a report has it stays so: its rows there are of that.
        """
        for products, baseline in self.baselines.items():
            rows = [row for row in self.rows.values() if row.config.depth == products]
            if rows and baseline.config.name not in self.request.selected:
                before = _record_of(baseline.selected)
                baseline.selected = self.exchanged(baseline, rows)
                if _record_of(baseline.selected) != before:
                    for row in rows:
                        row.selected = self.exchanged(row, [baseline])

    def exchanged(self, built: _Built, others: Sequence[_Built]) -> Selected:
        """What is best of what was found for a configuration and for others."""
        config, found = built.config, [other.selected for other in others]
        aim, flow = self.aim.searched(0), self.flow_of(config)
        return exchanged(config, built.selected, found, self.recipes, aim, flow, self.request.lanes)

    def at_least(self, built: _Built, runs: int) -> _Built:
        """The same with at least so many runs."""
        if len(built.runs) < runs:
            self.extend(built, range(len(built.runs), runs))
        return built

    def measure(self, built: _Built) -> None:
        """Make a row's runs: as many as narrow intervals take."""
        baseline = self.at_least(self.baseline(built.config.depth), min(FEWEST, self.request.runs))
        short = 1.0
        while built is not baseline:
            self.extend(built, next_runs(len(built.runs), self.request.runs, short))
            done = len(built.runs)
            self.at_least(baseline, done)
            short = excess(_figures(built, baseline, self.aim.clock_ns), self.request.half_width, of_larger=True)
            if done == self.request.runs or short <= 1:
                break


def measure_formats(
    request: FormatsRequest, flow: Flow, recipes: Sequence[Recipe] | None = None, *, vectors: int = VECTORS
) -> schema.FormatsReport:
    """Build a core for every row at one clock, simulate the netlists, and compare each with the baseline.

    Parameters
    ----------
    request
        The rows, and how to measure them.
    flow
        Library and conditions of all syntheses. Its cache keeps every core that is built: a measurement that was
        killed goes on where it was.
    recipes
        Recipes to choose from; all that suit the library by default.
    vectors
        Results of every netlist that are compared with the golden model, at least.

    Raises
    ------
    InputError
        The library lacks cells that synthesis needs, the baseline itself cannot be measured, or a format of a row
        does not reach the numbers of the tensors that errors are measured on.
    ToolError
        A tool failed, or a netlist does not compute what the golden model says.
    """
    library = flow.library
    library.check_for_synthesis(sequential=True)
    among = list(recipes or usable(library))
    aim = Aim(request.clock_ns or usual(library), request.physical, request.stimulus)
    losses = Losses(None if request.model is None else MODELS[request.model]())
    study = _Study(request, KeptFlow.of(flow), among, aim, vectors, losses)
    cores = [row.config for row in request.rows if row.config is not None]
    # Before hours of searching: a format of a user's own may not reach the numbers of a tensor.
    losses.find(cores, flow.workers, partial(flow.progress, "errors"))
    if cores:
        # The baseline comes first. If it cannot be measured, nothing can.
        study.baseline(request.baseline.depth)
    found = {row.name: _begun(study, row) for row in request.rows}
    study.exchange()
    if cores:
        study.at_least(study.baseline(request.baseline.depth), min(FEWEST, request.runs))
    found = {name: each if isinstance(each, str) else _measured(study, each) for name, each in found.items()}
    baselines = [built for built in study.baselines.values() if built.runs]
    configs = {config.name: config for config in _configs(request, baselines)}
    named = {row_name(built.config.name) for built in baselines}
    # Baselines are rows, be they asked for or not.
    pairs: list[tuple[Row, _Built | str]] = [
        *((Row(row_name(each.config.name), each.config), each) for each in baselines),
        *((row, found[row.name]) for row in request.rows if row.name not in named),
    ]
    return schema.FormatsReport(
        designs=tuple(schema.Design(config.as_dict()) for config in configs.values()),
        conditions=schema.FormatsConditions(
            flow=flow_conditions(library, among),
            clock_ns=aim.clock_ns,
            physical=physical_record(request.physical, library),
            lanes=request.lanes,
            runs=request.runs,
            half_width=request.half_width,
            usual_clock=aim.clock_ns == usual(library),
            model=request.model,
            parts=None,
        ),
        results=tuple(_record(study, row, each) for row, each in pairs),
    )


def _begun(study: _Study, row: Row) -> _Built | str:
    """A row with lanes and recipes, or why there is none."""
    config, baseline = row.config, study.request.baseline
    if row.name in RULES and not study.baselines:
        return f"{row.reason}, which is not in this table"
    if config is None:
        return row.reason
    if (reason := not_comparable(config, baseline)) is not None:
        return reason
    try:
        return study.row(config)
    except InputError as error:
        return str(error)


def _measured(study: _Study, built: _Built) -> _Built | str:
    """A row with its runs, or why there are none."""
    try:
        study.measure(built)
    except InputError as error:
        return str(error)
    return built


def _configs(request: FormatsRequest, baselines: Sequence[_Built]) -> list[TensorCoreConfig]:
    """Configurations of all rows that have one, baselines first; that of the request, if nothing is built."""
    asked = [config for row in request.rows if (config := _core_of(row)) is not None]
    return [*(built.config for built in baselines), *asked] or [request.baseline]


def _core_of(row: Row) -> TensorCoreConfig | None:
    """The core of a row, which may be that of another row; None where there is none."""
    return NAMED[f"{RULES[row.name]}-{SIZE}"] if row.name in RULES else row.config


def _record_of(selected: Selected) -> dict[str, dict[str, Any]]:
    """What a search found for its only configuration, by purpose."""
    return {
        purpose: {
            "lanes": config.dot,
            "recipes": {module: how.name for module, how in selected.chosen[name, purpose].items()},
            "lane array": selected.lane_arrays[name, purpose][1].name,
        }
        for (name, purpose), config in selected.configs.items()
    }


def _selected(known: Mapping[str, Mapping[str, Any]], config: TensorCoreConfig, recipes: Sequence[Recipe]) -> Selected:
    """What a search found, as it was kept."""
    by_name = {how.name: how for how in recipes}
    return Selected(
        {(config.name, purpose): replace(config, dot=each["lanes"]) for purpose, each in known.items()},
        {
            (config.name, purpose): {module: by_name[how] for module, how in each["recipes"].items()}
            for purpose, each in known.items()
        },
        {(config.name, purpose): (config, by_name[each["lane array"]]) for purpose, each in known.items()},
        0,
    )


def _values(built: _Built, clock_ns: float) -> _Values:
    """What the runs of a configuration say, by scope and metric."""
    config, runs = built.config, [run.examined for run in built.runs]
    rates = {"lane array": config.bounds.lanes, "element": config.depth, "core": config.macs_per_step}
    found: _Values = {}
    for scope, macs in rates.items():
        seen = of_scope(config, config.formats, runs, scope, macs)
        areas = seen.total_area
        found[scope, "area"] = "um2", areas
        found[scope, "area per MAC"] = "um2", [each / macs for each in areas]
        if seen.delays:
            found[scope, "critical path"] = "ns", list(seen.delays)
            found[scope, "maximum clock"] = "MHz", [1e3 / delay for delay in seen.delays]
        powers = seen.power(clock_ns)
        found[scope, "total power"] = "mW", powers[schema.TOTAL, "total power", "mW"]
        found[scope, "energy per MAC"] = "fJ", powers[schema.TOTAL, "energy per MAC", "fJ"]
        quiet = powers[schema.TOTAL, "total power, no glitches", "mW"]
        found[scope, "energy per MAC, no glitches"] = "fJ", [each * 1e3 * clock_ns / macs for each in quiet]
    return found


def _figures(built: _Built, of: _Built | None, clock_ns: float) -> list[schema.FormatFigure]:
    """Figures of a row, paired with the runs of its baseline, if it has one."""
    own = _values(built, clock_ns)
    theirs = _values(of, clock_ns) if of is not None else {}
    # A lane array has the products of a block, which may be more than those of the baseline's.
    alike = of is None or of.config.bounds.lanes == built.config.bounds.lanes
    figures = []
    for (scope, metric), (unit, values) in own.items():
        overhead = None
        if (scope, metric) in theirs and (alike or scope != "lane array" or "per MAC" in metric):
            baseline = theirs[scope, metric][1][: len(values)]
            overhead = paired(baseline, values)
        figures.append(schema.FormatFigure(scope, metric, unit, tuple(map(float, values)), overhead))
    return figures


def _stored(form: BlockFormat) -> schema.OperandFormat:
    """What a format takes to store."""
    return schema.OperandFormat(
        name=form.name,
        elements=tuple(element.name for element in form.elements),
        element_bits=form.code_width,
        scale=form.scale.name,
        scale_bits=form.stored_scale_width,
        read_bits=form.scale_width,
        selector_bits=form.selector_bits,
        shift_bits=form.shift_bits,
        block=form.size,
        bits_per_element=form.code_width + form.stored_scale_width / form.size,
        packed_bits_per_element=form.code_width + form.scale_width / form.size,
        tensor_scale=form.full_scale is not None,
        source=form.source,
    )


def _unlike(config: TensorCoreConfig, baseline: TensorCoreConfig) -> tuple[str, ...]:
    """In what a row differs from the baseline, in words."""
    settings = [
        f"{name} = {getattr(config, name)}, not {getattr(baseline, name)}"
        for name in _ALIKE
        if getattr(config, name) != getattr(baseline, name)
    ]
    products = of_products(config)
    return (*settings, f"codes are added in the place of products: {products}") if products else tuple(settings)


def _record(study: _Study, row: Row, found: _Built | str) -> schema.FormatRow:
    """A row as an entry of the report."""
    config = _core_of(row)
    record = schema.FormatRow(
        row=row.name,
        design=None if config is None else config.name,
        baseline=None,
        not_measured=found if isinstance(found, str) else None,
        unlike=() if config is None else _unlike(config, study.request.baseline),
        a=None if config is None else _stored(config.a),
        b=None if config is None else _stored(config.b),
        products=None if config is None else config.depth,
        summed=None if config is None else config.bounds.lanes,
        slowest_ns=None,
        held_by=None,
        met=None,
        figures=(),
        blocks_um2={},
        closing={},
        stimulus=None,
        checked=None,
        errors=() if config is None else study.losses.errors(config),
        similarities=None if config is None else study.losses.similarities(config),
    )
    if row.name in RULES:
        return _by_rule(record)
    return record if isinstance(found, str) else _with_figures(study, record, found)


def _by_rule(record: schema.FormatRow) -> schema.FormatRow:
    """The entry of a row that is a rule for the scales of another one: of its errors those by that rule."""
    similar = record.similarities
    return replace(
        record,
        errors=tuple(each for each in record.errors if each.rule == record.row),
        similarities=None if similar is None else {record.row: similar[record.row]},
    )


def _with_figures(study: _Study, record: schema.FormatRow, found: _Built) -> schema.FormatRow:
    """The entry of a row that was measured."""
    baseline = study.baselines[found.config.depth]
    of = None if found is baseline else baseline
    closures = [run.records[purpose, "core"] for run in found.runs for purpose in PURPOSES]
    slowest = max(closures, key=lambda closure: closure.delay_ns)
    areas = [run.examined.areas["core"] for run in found.runs]
    checked = [run.examined.checked for run in found.runs]
    return replace(
        record,
        baseline=None if of is None else of.config.name,
        slowest_ns=float(slowest.delay_ns),
        held_by=area.block_of(slowest.block),
        met=all(closure.met for closure in closures),
        figures=tuple(_figures(found, of, study.aim.clock_ns)),
        blocks_um2={block: float(np.mean([each[block] for each in areas])) for block in areas[0]},
        closing=closings(found.selected, found.config.name, found.runs),
        selected_from=found.selected.report,
        stimulus=study.request.stimulus.record(found.config),
        checked=schema.Checked(
            results=min(each.results for each in checked), lane_sums=min(each.lane_sums for each in checked)
        ),
    )
