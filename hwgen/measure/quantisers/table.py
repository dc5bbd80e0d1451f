"""What hardware quantisers cost over another: area, path, energy, beside cores; and what each loses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hwgen.cells.library import Library
from hwgen.closure.close import close
from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.errors import InputError
from hwgen.mapping import area
from hwgen.mapping.yosys import distinct, usable
from hwgen.measure.conditions import flow_conditions
from hwgen.measure.figures import Figure
from hwgen.measure.netlists.built import per_cycle
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.quantisers.choice import choose
from hwgen.measure.quantisers.netlist import AT_WORK, check, energy
from hwgen.measure.requests import QuantiserRequest
from hwgen.measure.workloads import cores
from hwgen.netlist.link import link
from hwgen.power.consumption import Consumption
from hwgen.report import schema
from hwgen.rtl.quantiser.quantiser import Quantiser
from hwgen.timing import analysis as timing
from hwgen.verilog import design, verilog
from sim.accuracy import SEED, SHAPE
from sim.accuracy.hardware import Case, distances
from sim.tensors import KINDS, generate
from sim.verify.quantisers import counterpart

__all__ = ["errors", "measure"]

_TOP = "quantiser"
_SUMS = (1024, 4096)
"""Lengths of sums that quantisers are stated for, besides that of a single step."""


@dataclass(frozen=True)
class _Run:
    """One run of one quantiser: um2 by block, ns, um2 of flip-flops, cells, fJ of a cycle."""

    areas: Mapping[str, float]
    delay: float
    sequential: float
    cells: int
    energy: Consumption
    checked: int


def measure(request: QuantiserRequest, flow: Flow) -> schema.QuantiserReport:
    """Synthesise all quantisers, compare each netlist with the golden model, and state what they take and lose.

    Parameters
    ----------
    request
        Which ones.
    flow
        Library and conditions.

    Raises
    ------
    InputError
        Two have one name, or no report has the area of a core in this library at this clock.
    ToolError
        A netlist does not compute what the golden model says.
    """
    configs = (request.baseline, *request.candidates)
    for name in (each.name for each in request.candidates):
        if name == request.baseline.name:
            raise InputError(f"baseline and candidate are both {name!r}: name two quantisers")
        if sum(each.name == name for each in request.candidates) > 1:
            raise InputError(f"candidate {name!r} is there twice: name each once")
    cores = _cores(request, flow.library)
    recipes = distinct(usable(flow.library))
    sources = {config.name: _source(config) for config in configs}
    chosen = choose(sources, recipes, request.clock_ns, request.closed, flow)
    jobs = [
        job
        for name, source in sources.items()
        for job in area.plan(name, source, {module: [how] for module, how in chosen[name].items()}, range(request.runs))
    ]
    bodies = flow.synthesise(jobs, "synthesis")
    tasks = [
        (
            config,
            sources[config.name],
            {module: bodies[config.name, module, how.name, run] for module, how in chosen[config.name].items()},
            request.clock_ns if request.closed else None,
            flow.library,
            run,
        )
        for config in configs
        for run in range(request.runs)
    ]
    found = list(flow.each(_examined, tasks, "netlists"))
    runs = {config.name: found[index * request.runs :][: request.runs] for index, config in enumerate(configs)}
    figures = [
        figure.record()
        for candidate in request.candidates
        for figure in _figures({each.name: runs[each.name] for each in (request.baseline, candidate)}, request.clock_ns)
    ]
    conditions = schema.QuantiserConditions(
        flow=flow_conditions(flow.library, recipes),
        clock_ns=request.clock_ns,
        closed=request.closed,
        runs=request.runs,
        quantisers={config.name: config.as_dict() for config in configs},
        chosen_recipes={
            name: {module: how.name for module, how in modules.items()} for name, modules in chosen.items()
        },
        slowest_ns={name: max(run.delay for run in each) for name, each in runs.items()},
        checked=min(run.checked for each in runs.values() for run in each),
        blocks_at_work=AT_WORK,
    )
    return schema.QuantiserReport(
        designs=tuple(schema.Design(core.as_dict()) for core in request.cores),
        conditions=conditions,
        results=tuple(figures),
        shares=tuple(_shares(request, _areas(figures), cores)),
        errors=errors(configs),
    )


def _cores(request: QuantiserRequest, library: Library) -> list[cores.MeasuredCores]:
    """What was measured of the cores in this library at this clock."""
    alike = cores.Conditions(library.name, library.digest, library.avoided, request.clock_ns)
    return [cores.find([core], request.reports, alike) for core in request.cores]


def errors(configs: Sequence[QuantiserConfig]) -> tuple[schema.QuantiserError, ...]:
    """What each quantiser loses of drawn tensors to the float64 quantiser of the second one's format and rule."""
    goal = counterpart(configs[1])
    cases = [Case(config.name, counterpart(config), goal) for config in configs]
    found = {kind: distances({kind: generate(kind, SHAPE, SEED)}, cases) for kind in KINDS}
    return tuple(
        schema.QuantiserError(
            quantiser=config.name,
            decibels={kind: each[index].decibels for kind, each in found.items()},
            # Bytes of one format do not compare with those of another.
            equal={kind: each[index].equal for kind, each in found.items()} if config.format == goal.format else None,
        )
        for index, config in enumerate(configs)
    )


def _areas(figures: Sequence[schema.Figure]) -> dict[str, float]:
    """Mean area of each quantiser, um2."""
    return {
        name: area
        for figure in figures
        if (figure.metric, figure.block) == ("area", schema.TOTAL)
        for name, area in figure.values.items()
    }


def _source(config: QuantiserConfig) -> area.Source:
    modules = design(Quantiser, config, _TOP)
    return area.Source(verilog(modules), _TOP, modules.instances, clock_gating=config.clock_gating)


def _examined(
    config: QuantiserConfig,
    source: area.Source,
    modules: Mapping[str, area.Body],
    clock_ns: float | None,
    library: Library,
    run: int,
) -> _Run:
    """One run: closed at a clock, or as mapped."""
    built = area.buffered(modules, source, library)
    if clock_ns is None:
        netlist = link(built, _TOP, library)
        found = timing.analyse(netlist)
    else:
        closed = close(built, _TOP, library, clock_ns)
        built, netlist, found = closed.modules, closed.netlist, closed.timing
    checked = check(netlist, config)
    return _Run(
        {block: values[0] for block, values in area.by_run([built], source, _TOP, library).items()},
        found.delay,
        area.sequential_area(netlist),
        netlist.n_cells,
        energy(netlist, found, config, run),
        checked,
    )


def _figures(runs: Mapping[str, Sequence[_Run]], clock_ns: float) -> list[Figure]:
    """All figures, the baseline first; the first of them is the area."""
    totals = {name: [sum(run.areas.values()) for run in each] for name, each in runs.items()}
    baseline = next(iter(runs))
    blocks = dict.fromkeys(block for each in runs.values() for block in each[0].areas)

    def figure(
        metric: str, unit: str, values: Mapping[str, Sequence[float]], block: str = schema.TOTAL, part: bool = False
    ) -> Figure:
        return Figure("quantiser", block, metric, unit, values, totals[baseline] if part else None)

    def each(value: str) -> dict[str, list[float]]:
        return {name: [getattr(run, value) for run in found] for name, found in runs.items()}

    def spent(run: _Run) -> float:
        return per_cycle(run.energy, clock_ns) / BLOCK

    return [
        figure("area", "um2", totals),
        *(
            figure(
                "area",
                "um2",
                {name: [run.areas.get(block, 0.0) for run in found] for name, found in runs.items()},
                block,
                True,
            )
            for block in blocks
        ),
        figure("sequential area", "um2", each("sequential")),
        figure("cells", "cells", each("cells")),
        figure("critical path", "ns", each("delay")),
        figure("energy per number", "fJ", {name: [spent(run) for run in found] for name, found in runs.items()}),
    ]


def _shares(
    request: QuantiserRequest, areas: Mapping[str, float], cores: Sequence[cores.MeasuredCores]
) -> list[schema.QuantiserShare]:
    """Each quantiser beside each core: for its results by the length of sums, then for its operand A."""
    found = []
    for config, measured in zip(request.cores, cores, strict=True):
        core_um2 = measured.cores[config.name].area_um2
        sums = sorted({config.depth, *_SUMS})
        flows: list[tuple[int | None, float]] = [(k, config.rows * config.columns * config.depth / k) for k in sums]
        for k, numbers in (*flows, (None, config.rows * config.depth)):
            quantisers = math.ceil(numbers / BLOCK)
            for name in areas:
                more = areas[name] - areas[request.baseline.name]
                found.append(
                    schema.QuantiserShare(
                        quantiser=name,
                        core=config.name,
                        core_um2=core_um2,
                        measured_in=measured.path.name,
                        k=k,
                        results=float(numbers),
                        quantisers=quantisers,
                        share=quantisers * areas[name] / core_um2,
                        more=quantisers * more / core_um2,
                    )
                )
    return found
