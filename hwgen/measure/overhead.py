"""Measure two configurations under one flow: RTL, synthesis, gate-level simulation, power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwgen.cells.library import Library
from hwgen.config import TensorCoreConfig
from hwgen.formats import Formats
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe
from hwgen.measure.checks import VECTORS, check_core, check_lanes
from hwgen.measure.choice import KINDS, TOPS, Choice, Owner, synthesised
from hwgen.measure.clock import check_met, default_period
from hwgen.measure.conditions import check_pair, flow_conditions
from hwgen.measure.energy import core_activity, core_energy, lane_energy, of_activity, single_block
from hwgen.measure.figures import Figure, Measured, compare
from hwgen.measure.flow import Design, Flow
from hwgen.measure.requests import OverheadRequest
from hwgen.measure.stimulus import Stimulus, operands_of
from hwgen.netlist.link import link
from hwgen.power.consumption import Consumption
from hwgen.power.glitch import Gates
from hwgen.report import schema
from hwgen.report.schema import SCOPES
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import analysis as timing
from sim.steps import check_hold

__all__ = ["RUNS", "Examined", "Overhead", "examine", "measure"]

RUNS = OverheadRequest.runs
"""Syntheses of each module by default."""

_DESIGNS: tuple[type[Block], ...] = (TensorCore, LaneArray)


@dataclass(frozen=True)
class Overhead:
    """The outcome of a measurement.

    Parameters
    ----------
    baseline, candidate
        The configurations.
    figures
        Everything measured.
    conditions
        What it holds for.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    figures: list[Figure]
    conditions: schema.OverheadConditions

    def report(self) -> schema.OverheadReport:
        """The measurement as a report."""
        return schema.OverheadReport(
            designs=(schema.Design(self.baseline.as_dict()), schema.Design(self.candidate.as_dict())),
            conditions=self.conditions,
            results=tuple(figure.record() for figure in self.figures),
        )


@dataclass(frozen=True)
class Examined:
    """What one run of one configuration was found to be.

    Parameters
    ----------
    areas
        um2 by scope and block.
    delays
        Critical path in ns by scope.
    cells, sequential, clock_gates
        Number of cells, um2 of flip-flops, and um2 of clock gates, by scope.
    path
        Share of each block in the core's critical path.
    checked
        What equals the golden model's.
    energy
        By (operands' formats, scope, delays), see `hwgen.measure.energy.core_energy`. Of a core with clock gates also
        with ``idle`` in the place of the delays: no step is offered.
    """

    areas: dict[str, dict[str, float]]
    delays: dict[str, float]
    cells: dict[str, int]
    sequential: dict[str, float]
    clock_gates: dict[str, float]
    path: dict[str, float]
    checked: schema.Checked
    energy: dict[tuple[Formats, str, str], Consumption]


def examine(
    designs: Mapping[type[Block], Design],
    modules: Mapping[type[Block], dict[str, area.Body]],
    library: Library,
    vectors: int,
    operands: Sequence[Formats],
    stimulus: Stimulus,
) -> Examined:
    """Time the netlists of one run, compare them with the golden model, and find what they consume.

    Parameters
    ----------
    designs
        The tensor core and the lane array of one configuration.
    modules
        Their mapped modules.
    library
        Their cells.
    vectors
        Results of each to compare, at least.
    operands
        Formats of the operands to feed them with.
    stimulus
        The operands.

    Raises
    ------
    ToolError
        A netlist does not compute what the golden model says.
    """
    config = designs[TensorCore].config
    whole = {kind: area.buffered(modules[kind], design.source, library) for kind, design in designs.items()}
    netlists = {scope: link(whole[kind], TOPS[scope], library) for scope, kind in KINDS.items()}
    timings = {scope: timing.analyse(netlist) for scope, netlist in netlists.items()}
    core, lanes = netlists["core"], netlists["lane array"]
    energy: dict[tuple[Formats, str, str], Consumption] = {}
    gates = Gates(core, timings["core"])
    for formats in operands:
        found = core_energy(gates, config, formats, stimulus, formats != config.formats)
        found |= lane_energy(lanes, timings["lane array"], config, formats, stimulus)
        energy |= {(formats, *key): value for key, value in found.items()}
    if len(core.gated_nets):
        # Long enough for everything to come to rest.
        none = replace(stimulus, traffic="idle", steps_per_tile=4 * config.latency + 4)
        resting = core_activity(gates, config, config.formats, none)
        energy[config.formats, "core", "idle"] = of_activity(core, timings["core"], resting)["whole"]
    delay = timings["core"].delay
    return Examined(
        areas={
            scope: {
                block: values[0]
                for block, values in area.by_run([whole[kind]], designs[kind].source, TOPS[scope], library).items()
            }
            for scope, kind in KINDS.items()
        },
        delays={scope: found.delay for scope, found in timings.items()},
        cells={scope: netlist.n_cells for scope, netlist in netlists.items()},
        sequential={scope: area.sequential_area(netlist) for scope, netlist in netlists.items()},
        clock_gates={scope: area.clock_gate_area(netlist) for scope, netlist in netlists.items()},
        path={block: value / delay for block, value in area.by_block(timings["core"].path_by_block).items()},
        checked=schema.Checked(
            results=check_core(core, config, vectors), lane_sums=check_lanes(lanes, config, vectors)
        ),
        energy=energy,
    )


def _measured(config: TensorCoreConfig, same: Formats, runs: Sequence[Examined], scope: str, macs: int) -> Measured:
    """What the runs of a configuration say of one scope; ``same`` are the formats of the baseline's operands."""
    return Measured(
        areas={block: [run.areas[scope][block] for run in runs] for block in runs[0].areas[scope]},
        delays=[run.delays[scope] for run in runs],
        cells=[run.cells[scope] for run in runs],
        sequential=[run.sequential[scope] for run in runs],
        clock_gates=[run.clock_gates[scope] for run in runs],
        energy=[run.energy[config.formats, scope, "timed"] for run in runs],
        same_operands=[run.energy[same, scope, "timed"] for run in runs],
        settled=[run.energy[config.formats, scope, "settled"] for run in runs],
        # Without clock gates the clock costs the same in every cycle.
        idle=[
            run.energy.get((config.formats, scope, "idle"), run.energy[config.formats, scope, "settled"])
            for run in runs
        ],
        macs=macs,
    )


def _clock(given: float | None, examined: Mapping[str, Sequence[Examined]], library: Library) -> float:
    """Clock period in ns that every netlist meets."""
    slowest = {(name, scope): delay for name, runs in examined.items() for scope, delay in _slowest(runs).items()}
    if given is None:
        means = [float(np.mean([run.delays["core"] for run in runs])) for runs in examined.values()]
        return default_period(max(means), max(slowest.values()))
    check_met(given, slowest, library.name)
    return given


def _slowest(runs: Sequence[Examined]) -> dict[str, float]:
    """The longest critical path of all runs in ns, by scope."""
    return {scope: max(run.delays[scope] for run in runs) for scope in SCOPES}


def _path(runs: Sequence[Examined]) -> dict[str, float]:
    """Share of each block in the core's critical path, mean over the runs."""
    blocks = dict.fromkeys(block for block in area.BLOCKS.values() if any(block in run.path for run in runs))
    return {block: float(np.mean([run.path.get(block, 0.0) for run in runs])) for block in blocks}


def _conditions(
    configs: Mapping[str, TensorCoreConfig],
    choice: Choice,
    examined: Mapping[str, Sequence[Examined]],
    stimulus: Stimulus,
    clock_ns: float,
    flow: Flow,
) -> schema.OverheadConditions:
    """What the figures of two designs hold for; by name of the design, the baseline first."""
    baseline = next(iter(configs.values()))
    runs = len(examined[baseline.name])
    fed = stimulus.fitted(baseline.macs_per_step)
    return schema.OverheadConditions(
        flow=flow_conditions(flow.library, choice.recipes),
        runs=runs,
        clock_ns=clock_ns,
        slowest_ns={name: _slowest(examined[name]) for name in configs},
        chosen_recipes={
            name: {module: how.name for kind in _DESIGNS for module, how in choice.chosen[name, kind].items()}
            for name in configs
        },
        critical_path={name: _path(examined[name]) for name in configs},
        stimulus=stimulus.record(baseline),
        operands={
            name: operands_of(
                config.formats,
                [step for run in range(runs) for step in fed.run(run).steps(config, config.formats)],
            )
            for name, config in configs.items()
        },
        cycles={
            "lane array": stimulus.fitted(baseline.bounds.lanes).cycles(single_block(baseline)),
            "core": fed.cycles(baseline),
        },
        checked={
            name: schema.Checked(
                results=min(run.checked.results for run in examined[name]),
                lane_sums=min(run.checked.lane_sums for run in examined[name]),
            )
            for name in configs
        },
    )


def measure(
    baseline: TensorCoreConfig,
    candidate: TensorCoreConfig,
    flow: Flow,
    recipes: Sequence[Recipe] | None = None,
    *,
    clock_ns: float | None = None,
    stimulus: Stimulus | None = None,
    runs: int = RUNS,
    vectors: int = VECTORS,
) -> Overhead:
    """Synthesise both configurations, simulate their netlists, and compare.

    Parameters
    ----------
    baseline, candidate
        Configurations of the same shape.
    flow
        Library and conditions of all syntheses.
    recipes
        Recipes to choose from; all that suit the library by default.
    clock_ns
        Clock period at which power is stated, and which every netlist meets; by default as
        `hwgen.measure.clock.default_period` has it.
    stimulus
        Operands; gaussian tensors by default.
    runs
        Syntheses of each module, each under another perturbation.
    vectors
        Results of every netlist that are compared with the golden model, at least.

    Raises
    ------
    InputError
        The configurations have different shapes or the same name, the library lacks cells that synthesis needs, or
        the clock is too fast for a netlist.
    ToolError
        A tool failed, or a netlist does not compute what the golden model says.
    """
    check_pair(baseline, candidate)
    library = flow.library
    stimulus = stimulus or Stimulus()
    configs = {config.name: config for config in (baseline, candidate)}
    for config in configs.values():
        check_hold(config, stimulus.hold)
    designs: dict[Owner, Design] = {
        (name, kind): Design(config, kind) for name, config in configs.items() for kind in _DESIGNS
    }

    choice = synthesised(designs, recipes, clock_ns, runs, flow)
    tasks = []
    for name, config in configs.items():
        own = {kind: designs[name, kind] for kind in _DESIGNS}
        # NVFP4 tensors are valid on both: the same bits tell the cost of the hardware from that of the data.
        operands = list(dict.fromkeys((config.formats, baseline.formats)))
        for run in range(runs):
            modules = {
                kind: design.chosen(choice.bodies, choice.chosen[name, kind], run) for kind, design in own.items()
            }
            tasks.append((own, modules, library, vectors, operands, stimulus.run(run)))
    found = list(flow.each(examine, tasks, "checks, timing, power"))
    examined = {name: found[place * runs : (place + 1) * runs] for place, name in enumerate(configs)}

    clock_ns = _clock(clock_ns, examined, library)
    rates = {"lane array": baseline.bounds.lanes, "element": baseline.depth, "core": baseline.macs_per_step}
    measured = {
        (name, scope): _measured(config, baseline.formats, examined[name], scope, rate)
        for name, config in configs.items()
        for scope, rate in rates.items()
    }
    conditions = _conditions(configs, choice, examined, stimulus, clock_ns, flow)
    return Overhead(baseline, candidate, compare(baseline.name, candidate.name, measured, clock_ns), conditions)
