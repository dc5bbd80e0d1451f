"""Two configurations built for a clock: placed, sized and buffered until they meet it, each at its best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwgen.cells.library import Library
from hwgen.closure.close import Closure
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.layout import technology_of
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, usable
from hwgen.measure.conditions import check_pair
from hwgen.measure.figures import Figure
from hwgen.measure.kept import KeptFlow
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.checks import VECTORS
from hwgen.measure.netlists.clock import rounded_up, usual
from hwgen.measure.netlists.examined import Examined
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.overhead import Overhead, conditions_of, figures_of
from hwgen.measure.requests import OverheadRequest
from hwgen.measure.runs import BUILT, Run, measured
from hwgen.measure.search.choice import Owner
from hwgen.measure.search.reach import select_for_cores, select_lane_arrays
from hwgen.measure.search.score import FIRST_DRAW, Aim
from hwgen.measure.search.selected import Chosen, Selected
from hwgen.report import schema
from hwgen.report.precision import asked, half_width
from hwgen.stats import FEWEST
from sim.steps import check_hold

__all__ = ["closings", "excess", "measure_at_clock", "met_clock", "next_runs", "physical_record"]

STEP = 2
"""Runs are added by multiples of this, so that processors of a small machine are not idle."""

LATE = 0.05
"""Share of a clock that was asked for by which a core may miss it: the report then says by how much."""


def met_clock(
    records: Mapping[str, Sequence[Closure]],
    clock_ns: float,
    library: str,
    required: bool = False,
    scope: str = "core",
) -> float:
    """The clock period that every core meets, ns: the one they were built for, or the next one that all would meet.

    Parameters
    ----------
    records
        How the cores were closed, by name of the design.
    clock_ns
        Period that they were built for, ns.
    library
        Name of the cells.
    required
        Whether the period was asked for: then it may be missed by `LATE` of it.
    scope
        What was closed, for the message.

    Raises
    ------
    InputError
        A core misses a period that was asked for by more. The message names the slowest core, the clock that all runs
        meet, and the block that holds it.
    """
    slowest = {name: max(found, key=lambda each: each.delay_ns) for name, found in records.items()}
    name, record = max(slowest.items(), key=lambda item: item[1].delay_ns)
    if record.met:
        return clock_ns
    best = rounded_up(record.delay_ns)
    if required and record.delay_ns > (1 + LATE) * clock_ns:
        raise InputError(
            f"clock of {clock_ns:g} ns: the {scope} of {name} takes {record.delay_ns:.4g} ns in its slowest run with"
            f" {library}, held by {area.block_of(record.block)}; at least {best:g} ns would be met"
        )
    return best


def closings(selected: Selected, name: str, runs: Sequence[Run]) -> dict[str, dict[str, schema.Closing]]:
    """How the netlists of one configuration met the clock, by purpose and scope."""
    found: dict[str, dict[str, schema.Closing]] = {}
    for purpose in PURPOSES:
        designs = selected.designs(name, purpose)
        for scope, kind in BUILT.items():
            if kind not in designs:
                continue
            records = [run.records[purpose, scope] for run in runs]
            slowest = max(records, key=lambda record: record.delay_ns)
            found.setdefault(purpose, {})[scope] = schema.Closing(
                lanes=designs[kind].config.dot,
                slot=designs[kind].config.slot if designs[kind].config.slotted else None,
                recipes={module: how.name for module, how in selected.of(designs[kind], purpose).items()},
                clock_ns=slowest.clock_ns,
                slack_ns=slowest.slack_ns,
                block=area.block_of(slowest.block),
                resized=float(np.mean([record.resized for record in records])),
                buffers=float(np.mean([record.buffers for record in records])),
                changed=sum((purpose, scope) in run.changed for run in runs),
                first={module: how.name for module, how in runs[0].recipes[purpose].items()}
                if (purpose, scope) in runs[0].changed
                else None,
                overloaded=max(record.overloaded for record in records),
                missing=tuple(sorted({cell for record in records for cell in record.missing})),
            )
    return found


def physical_record(physical: Physical, library: Library) -> schema.Physical:
    """Where wires come from, as an entry of a report."""
    if not physical.placed:
        return schema.Physical(physical.wires, None, None, None, None, None, None)
    technology = technology_of(library)
    return schema.Physical(
        physical.wires,
        physical.placer,
        physical.utilisation,
        technology.capacitance,
        technology.resistance,
        technology.detour,
        technology.source,
    )


def next_runs(done: int, most: int, short: float = 1.0) -> range:
    """Numbers of the runs to make next: first as many as an interval takes, then as many as it seems to need.

    Parameters
    ----------
    done
        Runs that are made.
    most
        Runs that may be made.
    short
        How many times as wide as asked for the widest interval is, see `excess`. Intervals narrow with the root of the
        runs. What few runs say of that is uncertain, so there are never more at once than there were before.
    """
    if not done:
        return range(min(most, FEWEST))
    needed = (min(short, 2.0) ** 2 - 1) * done
    return range(done, min(most, done + STEP * max(1, min(math.ceil(needed / STEP), done // STEP))))


def excess(
    figures: Iterable[Figure | schema.FormatFigure], within: float, of_larger: bool = False, scope: str = "core"
) -> float:
    """How many times as wide as asked for the intervals of area and power of a scope are; 1 and less is enough.

    Parameters
    ----------
    figures
        Figures of whole scopes, not of their blocks.
    within
        Half-width to reach, a fraction.
    of_larger
        Whether that is a share of the larger of the two that are compared, see `hwgen.report.precision.asked`.
    scope
        Which.
    """
    wanted = {(scope, "area"), (scope, "total power")}
    overheads = [figure.overhead for figure in figures if (figure.scope, figure.metric) in wanted]
    return max(
        (half_width(each) / (asked(each, within) if of_larger else within) for each in overheads),
        default=0.0,
    )


@dataclass(frozen=True)
class _Pair:
    """Two configurations, and what all their searches and runs have in common."""

    request: OverheadRequest
    configs: Mapping[str, TensorCoreConfig]
    among: Sequence[Recipe]
    aim: Aim
    vectors: int
    flow: Flow

    def found_by(self, search: int) -> Selected:
        """Lanes and recipes that a search finds; of cells without flip-flops there are lane arrays alone."""
        aim, flow, request = self.aim.searched(search), self.flow, self.request
        if not flow.library.flip_flops():
            return select_lane_arrays(self.configs, self.among, aim, flow)
        required = request.clock_ns is not None
        return select_for_cores(self.configs, self.among, aim, flow, request.lanes, request.slots, required=required)

    def measured(self, numbers: range, selected: Selected, before: Mapping[str, list[Run]]) -> dict[str, list[Run]]:
        """Runs of both."""
        return measured(
            numbers,
            self.configs,
            self.request.baseline,
            selected,
            self.aim,
            self.among,
            self.vectors,
            self.flow,
            before,
        )

    def figures(self, runs: Mapping[str, Sequence[Run]], clock_ns: float) -> list[Figure]:
        """What their runs come to at a clock."""
        return figures_of(self.configs, _examined(runs), clock_ns)

    def searches(
        self,
        selected: Selected,
        found: Mapping[str, Sequence[Run]],
        figures: Sequence[Figure],
        clock_ns: float,
        scope: str,
    ) -> tuple[schema.Search, ...] | None:
        """What the first search came to, whose runs were ``found``, and others by as many others; None without any."""
        if self.request.searches == 1:
            return None
        first = _search_record(0, selected, found, figures, scope, 0)
        others = []
        for search in range(1, self.request.searches):
            other = self.found_by(search)
            # Runs of its own: what searches differ by has their noise, too, and a mean over them less of it.
            runs_each = len(next(iter(found.values())))
            runs = self.measured(range(search * runs_each, (search + 1) * runs_each), other, {})
            others.append(_search_record(search, other, runs, self.figures(runs, clock_ns), scope, search * runs_each))
        return first, *others


def _examined(runs: Mapping[str, Sequence[Run]]) -> dict[str, list[Examined]]:
    """What the runs of each were found to be."""
    return {name: [run.examined for run in each] for name, each in runs.items()}


def _search_record(
    search: int,
    selected: Selected,
    runs: Mapping[str, Sequence[Run]],
    figures: Iterable[Figure],
    scope: str,
    first_run: int,
) -> schema.Search:
    """What a search came to, as an entry of a report."""
    whole = {each.metric: each for each in figures if (each.scope, each.block) == (scope, schema.TOTAL)}
    found = {metric: whole[metric] for metric in schema.SEARCHED}
    lanes = {
        name: {purpose: selected.designs(name, purpose)[BUILT[scope]].config.dot for purpose in PURPOSES}
        for name in found["area"].runs
    }
    return schema.Search(
        search=search,
        lanes=lanes,
        slack_ns=min(
            run.records[purpose, scope].slack_ns for each in runs.values() for run in each for purpose in PURPOSES
        ),
        values={metric: figure.values for metric, figure in found.items()},
        overheads={metric: overhead for metric, figure in found.items() if (overhead := figure.overhead)},
        first_run=first_run,
    )


def measure_at_clock(
    request: OverheadRequest,
    flow: Flow,
    recipes: Sequence[Recipe] | None = None,
    *,
    vectors: int = VECTORS,
) -> Overhead:
    """Build both configurations for a clock, simulate their netlists, and compare.

    Of cells without flip-flops there are no cores: their lane arrays alone are compared.

    Every run of each is built twice: for least area, from which areas come, and for least energy, from which power
    comes. Runs are added until the intervals are narrow enough.

    Parameters
    ----------
    request
        What to compare, and how. Without a clock, cores are built for that of `hwgen.measure.netlists.clock.usual`.
        Where one misses the clock, power is stated at the next that all meet.
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
        As `hwgen.measure.overhead.measure`; the clock that is asked for is far too fast for a core, see `met_clock`.
    ToolError
        A tool failed, or a netlist does not compute what the golden model says.
    """
    baseline, candidate, stimulus = request.baseline, request.candidate, request.stimulus
    physical = request.physical or Physical()
    check_pair(baseline, candidate)
    flow, library = KeptFlow.of(flow), flow.library
    library.check_for_synthesis(sequential=False)
    configs = {config.name: config for config in (baseline, candidate)}
    for config in configs.values():
        check_hold(config, stimulus.hold)
    among = list(recipes or usable(library))
    if request.searches * request.runs >= FIRST_DRAW:
        raise InputError(
            f"{request.searches} searches of {request.runs} runs each: there are perturbations for"
            f" {FIRST_DRAW - 1} runs; use fewer of either"
        )
    clock_ns = stated_ns = request.clock_ns or usual(library)
    pair = _Pair(request, configs, among, Aim(clock_ns, physical, stimulus), vectors, flow)
    selected = request.selected or pair.found_by(0)

    found: dict[str, list[Run]] = {name: [] for name in configs}
    figures: list[Figure] = []
    short = 1.0
    while True:
        batch = next_runs(len(found[baseline.name]), request.runs, short)
        for name, runs in pair.measured(batch, selected, found).items():
            found[name].extend(runs)
        scope = found[baseline.name][0].examined.whole
        records = {
            name: [run.records[purpose, scope] for run in runs for purpose in PURPOSES] for name, runs in found.items()
        }
        stated_ns = met_clock(records, clock_ns, library.name, request.clock_ns is not None, scope)
        figures = pair.figures(found, stated_ns)
        whole = (figure for figure in figures if figure.block == schema.TOTAL)
        short = excess(whole, request.half_width, scope=scope)
        if batch.stop == request.runs or short <= 1:
            break
    searches = pair.searches(selected, found, figures, stated_ns, scope)
    return Overhead(baseline, candidate, figures, _conditions(pair, selected, found, stated_ns, searches))


def _conditions(
    pair: _Pair,
    selected: Selected,
    found: Mapping[str, Sequence[Run]],
    stated_ns: float,
    searches: tuple[schema.Search, ...] | None,
) -> schema.OverheadConditions:
    """What the figures of some runs hold for."""
    chosen: dict[Owner, Chosen] = {
        (name, kind): selected.of(design, "area")
        for name in pair.configs
        for kind, design in selected.designs(name, "area").items()
    }
    request, flow = pair.request, pair.flow
    return replace(
        conditions_of(pair.configs, pair.among, chosen, _examined(found), request.stimulus, stated_ns, flow),
        physical=physical_record(pair.aim.physical, flow.library),
        lanes=request.lanes if selected.searched else None,
        slots=request.slots or None,
        closing={name: closings(selected, name, found[name]) for name in pair.configs},
        searches=searches,
        selected_from=selected.report,
    )
