"""What a workload costs on a grid of cores: time, energy, overhead, and how they hang on bandwidth and cores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hwgen import __version__
from hwgen.cost import grid
from hwgen.cost.gemms import TooLargeError
from hwgen.cost.grid import ORDERS, Arrangement, GridRun, Memory
from hwgen.cost.machines import MACHINES
from hwgen.cost.model import (
    QUANTISER_AREA,
    CoreCost,
    EnergyCosts,
    Ratio,
    core_parts,
    energy,
    overhead,
    throughput_per_area,
)
from hwgen.cost.quantisers import needed
from hwgen.cost.results import ATTENTION, RESULTS, Results, element_bytes, results_of
from hwgen.cost.workloads import HALF_RATE, Workload, at_half_rate, which_at_half_rate
from hwgen.errors import InputError
from hwgen.measure.workloads.cores import MeasuredCores
from hwgen.report import schema
from hwgen.report.schema import BANDWIDTH, CORES, CostReport
from hwgen.stats import Estimate

__all__ = ["FACTORS", "Machine", "Whole", "document", "whole"]

FACTORS = tuple(2.0**power for power in range(-4, 5))
"""What bandwidth and number of cores are multiplied by, to see what hangs on them."""


@dataclass(frozen=True)
class Machine:
    """What a workload runs on, apart from the design of its cores.

    Parameters
    ----------
    cores
        How many.
    shape
        Cores along the batch, along M and along N, for all GEMMs; None chooses for each.
    memory
        What feeds them.
    costs
        What memory and quantiser cost.
    clock_ns
        Clock period.
    results, attention
        What becomes of results, see `hwgen.cost.results`.
    idle_gated
        Whether the clock of cores without an output is off.
    buffer_mm2_per_mib
        Area of the buffer, in mm2 per MiB; None leaves it out.
    preset
        Name of the machine in `hwgen.cost.machines` that it began with; None where it is of no such machine.
    quantiser_report
        File of the report that the energies of quantisers are from; None where they were given, or left out.
    quantiser_um2
        Area of a quantiser, by design; empty where it is left out.
    """

    cores: int
    shape: tuple[int, int, int] | None
    memory: Memory
    costs: EnergyCosts
    clock_ns: float
    results: str = RESULTS[0]
    attention: str = ATTENTION[0]
    idle_gated: bool = True
    buffer_mm2_per_mib: float | None = None
    preset: str | None = None
    quantiser_report: str | None = None
    quantiser_um2: Mapping[str, float] = field(default_factory=dict)

    @property
    def buffer_mm2(self) -> float | None:
        """Area of the buffer; None where it is left out."""
        if self.buffer_mm2_per_mib is None:
            return None
        return self.buffer_mm2_per_mib * self.memory.buffer_bytes / (1 << 20)

    def arranged(self, core: CoreCost, workload: Workload, results: Results) -> Arrangement:
        """How the cores share each GEMM."""
        if self.shape is not None:
            return grid.fixed(workload.gemms, *self.shape)
        return grid.arrange(core.config, workload.gemms, self.cores, self.memory, results)


@dataclass(frozen=True)
class _Pass:
    """One pass of a workload on one design."""

    run: GridRun
    joules: Mapping[str, Any]
    seconds: Any
    count: Any

    @property
    def quantisers(self) -> int:
        """How many keep up, for all cores."""
        return needed(self.run)

    @property
    def total_seconds(self) -> float:
        return float(self.seconds @ self.count)

    @property
    def total_joules(self) -> dict[str, float]:
        return {part: float(values @ self.count) for part, values in self.joules.items()}


def _pass(machine: Machine, core: CoreCost, workload: Workload) -> _Pass:
    try:
        return _passed(machine, core, workload)
    except TooLargeError as error:
        raise TooLargeError(error.place, f"{workload.title}: GEMM {workload.names[error.place]}") from None


def _passed(machine: Machine, core: CoreCost, workload: Workload) -> _Pass:
    memory, clock_ns = machine.memory, machine.clock_ns
    results = results_of(
        core.config,
        workload.gemms,
        workload.roles,
        workload.operands,
        workload.readers,
        machine.results,
        machine.attention,
        workload.combined,
    )
    arrangement = machine.arranged(core, workload, results)
    run = grid.run(core.config, workload.gemms, arrangement, memory, clock_ns, results)
    joules = energy(run, core, clock_ns, machine.costs, memory.buffer_bytes, machine.idle_gated)
    return _Pass(run, joules, run.cycles * machine.clock_ns * 1e-9, workload.count)


def _energy_overhead(by_design: Sequence[Mapping[str, float]], ratios: Mapping[str, Ratio]) -> Estimate | None:
    if len(by_design) < 2:
        return None
    baseline, candidate = by_design
    return overhead(baseline, candidate, ratios)


@dataclass(frozen=True)
class Whole:
    """A whole pass of a workload on every design.

    Parameters
    ----------
    seconds, joules
        By design.
    overhead
        (second - first) / first of the energy; None for a single design.
    """

    seconds: dict[str, float]
    joules: dict[str, float]
    overhead: Estimate | None


def whole(measured: MeasuredCores, machine: Machine, workload: Workload) -> Whole:
    """Time and energy of a whole pass.

    Raises
    ------
    InputError
        The buffer is too small for a step of so many cores, or there is more than can be counted.
    """
    passes = {name: _pass(machine, core, workload) for name, core in measured.cores.items()}
    joules = {name: each.total_joules for name, each in passes.items()}
    return Whole(
        {name: each.total_seconds for name, each in passes.items()},
        {name: sum(each.values()) for name, each in joules.items()},
        _energy_overhead(list(joules.values()), measured.ratios),
    )


def _figures(
    passes: Mapping[str, _Pass], measured: MeasuredCores, machine: Machine, workload: Workload
) -> list[schema.CostFigure]:
    """What a pass costs in all."""
    seconds = {name: each.total_seconds for name, each in passes.items()}
    joules = {name: each.total_joules for name, each in passes.items()}
    unit, per = ("token", workload.tokens) if workload.tokens else ("pass", 1)
    pair = tuple(seconds.values())
    same = Estimate(pair[1] / pair[0] - 1) if len(pair) == 2 else None
    faster = Estimate(pair[0] / pair[1] - 1) if len(pair) == 2 else None
    of_cores = {name: {part: parts[part] for part in core_parts(parts)} for name, parts in joules.items()}
    # At half the rate each takes as long as two.
    macs = float((workload.gemms.macs * np.where(workload.gemms.half, 2.0, 1.0)) @ workload.count)
    peak = machine.cores / machine.clock_ns * 1e9

    found = [
        schema.CostFigure(f"time per {unit}", "s", {name: value / per for name, value in seconds.items()}, same),
        schema.CostFigure("throughput", f"{unit}/s", {name: per / value for name, value in seconds.items()}, faster),
        schema.CostFigure(
            "utilisation",
            "1",
            {
                name: macs / (value * peak * measured.cores[name].config.macs_per_step)
                for name, value in seconds.items()
            },
            None,
        ),
        schema.CostFigure(
            f"energy per {unit}",
            "J",
            {name: sum(parts.values()) / per for name, parts in joules.items()},
            _energy_overhead(list(joules.values()), measured.ratios),
        ),
        schema.CostFigure(
            f"energy of the cores per {unit}",
            "J",
            {name: sum(parts.values()) / per for name, parts in of_cores.items()},
            _energy_overhead(list(of_cores.values()), measured.ratios),
        ),
        schema.CostFigure(
            "mean power", "W", {name: sum(parts.values()) / seconds[name] for name, parts in joules.items()}, None
        ),
    ]
    throughput = {name: per / value for name, value in seconds.items()}
    return found + _areas(passes, measured, machine, throughput, f"{unit}/s/mm2")


def _areas(
    passes: Mapping[str, _Pass],
    measured: MeasuredCores,
    machine: Machine,
    throughput: Mapping[str, float],
    unit: str,
) -> list[schema.CostFigure]:
    """Area, and throughput for each of it: of the cores, with their quantisers, with the buffer, where these are known.

    ``throughput`` is by design, ``unit`` that of throughput per area.
    """
    seconds = tuple(each.total_seconds for each in passes.values())
    ratios = measured.ratios
    area = {name: machine.cores * core.area_um2 * 1e-6 for name, core in measured.cores.items()}
    parts = [("cores", area, ratios.get("area"))]
    if machine.quantiser_um2 and any(each.quantisers for each in passes.values()):
        area = {name: each.quantisers * machine.quantiser_um2[name] * 1e-6 for name, each in passes.items()}
        parts.append(("quantisers", area, ratios.get(QUANTISER_AREA)))
    if machine.buffer_mm2 is not None:
        parts.append(("buffer", dict.fromkeys(passes, machine.buffer_mm2), Ratio(1, 1, 1)))
    found = []
    for count in range(1, len(parts) + 1):
        *before, last = (name for name, *_ in parts[:count])
        scope = f"{', '.join(before)} and {last}" if before else f"the {last}"
        area = {name: sum(each[name] for _, each, _ in parts[:count]) for name in passes}
        change = per_area = None
        if len(passes) == 2:
            ratio = Ratio.of_sums(*(_compared(each, known) for _, each, known in parts[:count]))
            change, per_area = ratio.overhead, throughput_per_area((seconds[0], seconds[1]), ratio)
        found += [
            schema.CostFigure(f"area of {scope}", "mm2", area, change),
            schema.CostFigure(
                f"throughput per area of {scope}",
                unit,
                {name: throughput[name] / area[name] for name in area},
                per_area,
            ),
        ]
    return found


def _compared(area: Mapping[str, float], known: Ratio | None) -> tuple[float, Ratio]:
    """The baseline's area of a part, and the candidate's over it, with the spread of one such part if it is known."""
    baseline, candidate = area.values()
    ratio = candidate / baseline
    return baseline, Ratio(ratio) if known is None else known.times(ratio / known.value)


def _gemms(passes: Mapping[str, _Pass], measured: MeasuredCores, workload: Workload) -> list[schema.Gemm]:
    """What each GEMM costs."""
    shapes = workload.gemms
    bound = {design: each.run.bound for design, each in passes.items()}
    found = []
    for place, name in enumerate(workload.names):
        values: dict[str, schema.GemmCost] = {}
        for design, each in passes.items():
            run = each.run
            shape = run.arrangement
            values[design] = schema.GemmCost(
                arrangement=schema.Arrangement(
                    batch=int(shape.batch[place]), rows=int(shape.rows[place]), columns=int(shape.columns[place])
                ),
                order=ORDERS[run.order[place]],
                bound=bound[design][place],
                period=int(run.period[place]),
                steps=int(run.steps[place]),
                core_cycles=int(run.core_cycles[place]),
                cycles=float(run.cycles[place]),
                seconds=float(each.seconds[place]),
                utilisation=float(run.utilisation[place]),
                operand_bytes=int(run.operand_bytes[place]),
                dram_read_bytes=int(run.dram_read_bytes[place]),
                dram_write_bytes=int(run.dram_write_bytes[place]),
                pass_bytes=int(run.pass_bytes[place]),
                buffer_bytes=int(run.buffer_bytes[place]),
                quantised=int(run.quantised[place]),
                busy=float(run.busy[place]),
                joules={part: float(parts[place]) for part, parts in each.joules.items()},
            )
        found.append(
            schema.Gemm(
                gemm=name,
                m=int(shapes.m[place]),
                n=int(shapes.n[place]),
                k=int(shapes.k[place]),
                batch=int(shapes.batch[place]),
                count=int(workload.count[place]),
                why=workload.notes[place],
                macs=int(shapes.macs[place]),
                values=values,
                half_rate=True if shapes.half[place] else None,
                overhead=_energy_overhead([each.joules for each in values.values()], measured.ratios),
            )
        )
    return found


_Record = TypeVar("_Record")


def _tried(
    measured: MeasuredCores,
    machine: Machine,
    workload: Workload,
    record: Callable[..., _Record],
    varied: str,
    choice: str,
) -> _Record | schema.LeftOut:
    """A whole pass as a ``record`` of it, or why there is none."""
    try:
        found = whole(measured, machine, workload)
    except InputError as error:
        return schema.LeftOut(varied, choice, str(error))
    return record(varied=varied, seconds=found.seconds, joules=found.joules, overhead=found.overhead)


def _sensitivity(
    measured: MeasuredCores, machine: Machine, workload: Workload
) -> list[schema.Sensitivity | schema.LeftOut]:
    """Whole passes with other bandwidths and other numbers of cores."""
    found = []
    bandwidth = machine.memory.dram_bytes_per_second
    numbers = sorted({max(round(machine.cores * factor), 1) for factor in FACTORS})
    varied = [
        *((BANDWIDTH, "B/s", bandwidth * factor, machine.cores, bandwidth * factor) for factor in FACTORS),
        *((CORES, "1", number, number, bandwidth) for number in numbers),
    ]
    for what, unit, value, cores, rate in varied:
        memory = replace(machine.memory, dram_bytes_per_second=rate)
        shape = machine.shape if cores == machine.cores else None
        other = replace(machine, cores=cores, memory=memory, shape=shape)
        record = partial(schema.Sensitivity, unit=unit, value=float(value))
        found.append(_tried(measured, other, workload, record, what, f"{value:g}"))
    return found


def _alternatives(
    measured: MeasuredCores, machine: Machine, workload: Workload, rerouted: Workload | None
) -> list[schema.Alternative | schema.LeftOut]:
    """Whole passes with one assumption changed, the one that is made first."""
    varied: list[tuple[str, str, Machine, Workload]] = []

    def others(names: Sequence[str], chosen: str) -> list[str]:
        return [chosen, *(name for name in names if name != chosen)]

    for name in others(RESULTS, machine.results):
        varied.append((schema.RESULTS_OUT, name, replace(machine, results=name), workload))
    if "scores" in workload.roles:
        for name in others(ATTENTION, machine.attention):
            varied.append((schema.ATTENTION, name, replace(machine, attention=name), workload))
    if rerouted is not None:
        for each in (workload, rerouted):
            varied.append((schema.EXPERTS, each.routing, machine, each))
    if "scores" in workload.roles and all(core.half_rate_fj is not None for core in measured.cores.values()):
        in_fp8 = which_at_half_rate(workload) == HALF_RATE[1]
        for name in others(HALF_RATE, HALF_RATE[in_fp8]):
            varied.append((schema.IN_FP8, name, machine, at_half_rate(workload, name)))
    for name in others(schema.IDLE_CORES, schema.IDLE_CORES[0 if machine.idle_gated else 1]):
        gated = name == schema.IDLE_CORES[0]
        varied.append(("idle cores", name, replace(machine, idle_gated=gated), workload))
    return [
        _tried(measured, other, work, partial(schema.Alternative, choice=choice), what, choice)
        for what, choice, other, work in varied
    ]


def document(
    measured: MeasuredCores,
    machine: Machine,
    workload: Workload,
    given: Mapping[str, Any],
    rerouted: Workload | None = None,
) -> CostReport:
    """Everything about one workload.

    Parameters
    ----------
    measured
        One core, or two: the second is compared with the first.
    machine
        What they are built into.
    workload
        What they compute.
    given
        What the workload was made from: ``phase``, ``batch``, ``sequence``.
    rerouted
        The same workload with the other routing; None where it has no experts.

    Raises
    ------
    InputError
        The buffer is too small for one step, or a GEMM has more bytes or cycles than can be counted.
    """
    passes = {name: _pass(machine, core, workload) for name, core in measured.cores.items()}
    memory = machine.memory
    (macs_per_step,) = {core.config.macs_per_step for core in measured.cores.values()}
    first = next(iter(measured.cores.values())).config
    sensitivity = _sensitivity(measured, machine, workload)
    alternatives = _alternatives(measured, machine, workload, rerouted)
    return CostReport(
        designs=tuple(schema.Design(core.config.as_dict()) for core in measured.cores.values()),
        conditions=schema.CostConditions(
            workload=schema.Workload(
                title=workload.title, source=workload.source or None, tokens=workload.tokens, **given
            ),
            measured=schema.MeasuredBy(
                report=measured.path.name,
                library=measured.library,
                runs=measured.runs,
                clock_ns=measured.clock_ns,
            ),
            clock_ns=machine.clock_ns,
            cores=machine.cores,
            macs_per_step=macs_per_step,
            arrangement=None if machine.shape is None else schema.Arrangement(*machine.shape),
            memory=schema.Memory(
                buffer_bytes=float(memory.buffer_bytes),
                dram_bytes_per_second=memory.dram_bytes_per_second,
                operands_per_cycle=memory.operands_per_cycle if math.isfinite(memory.operands_per_cycle) else None,
                double_buffered=memory.double_buffered,
                result_bytes=float(element_bytes(first, machine.results)),
                buffer_mm2_per_mib=machine.buffer_mm2_per_mib,
                buffer_mw_per_mib=machine.costs.buffer_mw_per_mib,
            ),
            energy_costs=schema.MemoryEnergy(machine.costs.buffer_pj_per_byte, machine.costs.dram_pj_per_byte),
            assumptions=schema.Assumptions(
                machine=machine.preset,
                machine_source=None if machine.preset is None else MACHINES[machine.preset].source,
                results=machine.results,
                attention=machine.attention if "scores" in workload.roles else None,
                experts=workload.routing if workload.routed else None,
                idle_cores=schema.IDLE_CORES[0 if machine.idle_gated else 1],
                quantiser_fj=dict(machine.costs.quantiser_fj) or None,
                half_rate=which_at_half_rate(workload),
                query_block=workload.query_block,
                quantiser_report=machine.quantiser_report,
                quantisers={name: each.quantisers for name, each in passes.items()} if machine.quantiser_um2 else None,
            ),
            tools=schema.CostTools(hwgen=__version__, numpy=np.__version__),
        ),
        totals=tuple(_figures(passes, measured, machine, workload)),
        results=tuple(_gemms(passes, measured, workload)),
        sensitivity=tuple(each for each in sensitivity if isinstance(each, schema.Sensitivity)),
        alternatives=tuple(each for each in alternatives if isinstance(each, schema.Alternative)),
        left_out=tuple(each for each in (*sensitivity, *alternatives) if isinstance(each, schema.LeftOut)) or None,
    )
