"""Measure two configurations under one flow: RTL, synthesis, gate-level simulation, power."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwgen.cells.library import Library
from hwgen.config import TensorCoreConfig
from hwgen.formats import Formats
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe
from hwgen.measure.conditions import check_pair, flow_conditions, half_rates_alike, holds
from hwgen.measure.figures import Figure, Measured, compare
from hwgen.measure.netlists.checks import VECTORS
from hwgen.measure.netlists.clock import check_met, default_period
from hwgen.measure.netlists.energy import single_block
from hwgen.measure.netlists.examined import Examined, as_mapped, examine
from hwgen.measure.netlists.flow import DESIGNS, Design, Flow, buildable
from hwgen.measure.netlists.stimulus import Stimulus, half_rate, operands_of
from hwgen.measure.requests import OverheadRequest
from hwgen.measure.search.choice import Owner, synthesised
from hwgen.power.consumption import Consumption
from hwgen.report import schema
from hwgen.report.schema import HALF_RATE
from hwgen.rtl.hierarchy import Block
from sim.steps import check_hold

__all__ = ["RUNS", "Overhead", "conditions_of", "figures_of", "formats_fed", "measure", "of_scope"]

RUNS = OverheadRequest.runs
"""Syntheses of each module by default."""


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


def _examined(
    designs: Mapping[type[Block], Design],
    modules: Mapping[type[Block], dict[str, area.Body]],
    library: Library,
    vectors: int,
    operands: Sequence[Formats],
    stimulus: Stimulus,
) -> Examined:
    found = as_mapped(designs, modules, library)
    return examine(designs, found, found, library, vectors, operands, stimulus)


def formats_fed(config: TensorCoreConfig, baseline: TensorCoreConfig) -> list[Formats]:
    """Formats of the operands that a configuration works on: its own, and those of the baseline that are valid on it.

    NVFP4 tensors are, on a core of MixFP4: the same bits tell the cost of the hardware from that of the data.
    """
    both = list(dict.fromkeys((config.formats, baseline.formats)))
    return both if holds(config, baseline) else both[:1]


def figures_of(
    configs: Mapping[str, TensorCoreConfig], examined: Mapping[str, Sequence[Examined]], clock_ns: float
) -> list[Figure]:
    """What the runs of two configurations, the baseline first, say at a clock period in ns."""
    baseline, candidate = configs.values()
    rates = {"lane array": baseline.bounds.lanes, "element": baseline.depth, "core": baseline.macs_per_step}
    # A lane array has the products of one sum. Two with unlike numbers of them cannot be compared.
    alike = baseline.bounds.lanes == candidate.bounds.lanes
    scopes = [scope for scope in examined[baseline.name][0].areas if alike or scope != "lane array"]
    measured = {
        (name, scope): of_scope(config, baseline.formats, examined[name], scope, rate)
        for name, config in configs.items()
        for scope, rate in rates.items()
        if scope in scopes
    }
    if not half_rates_alike(baseline, candidate):
        measured = {key: replace(found, half_rate=(), half_rate_settled=()) for key, found in measured.items()}
    return compare(baseline.name, candidate.name, measured, clock_ns)


def of_scope(config: TensorCoreConfig, same: Formats, runs: Sequence[Examined], scope: str, macs: int) -> Measured:
    """What the runs of a configuration say of one scope; ``same`` are the formats of the baseline's operands."""

    def at_half_rate(delays: str) -> list[Consumption]:
        """Nothing of a lane array, which has no slots, nor of a core without."""
        key = config.formats, scope, f"{delays}{HALF_RATE}"
        return [run.energy[key] for run in runs if key in run.energy]

    return Measured(
        areas={block: [run.areas[scope][block] for run in runs] for block in runs[0].areas[scope]},
        delays=[run.delays[scope] for run in runs if scope in run.delays],
        cells=[run.cells[scope] for run in runs],
        sequential=[run.sequential[scope] for run in runs],
        clock_gates=[run.clock_gates[scope] for run in runs],
        energy=[run.energy[config.formats, scope, "timed"] for run in runs],
        same_operands=[run.energy[same, scope, "timed"] for run in runs if (same, scope, "timed") in run.energy],
        settled=[run.energy[config.formats, scope, "settled"] for run in runs],
        # Without clock gates the clock costs the same in every cycle.
        idle=[
            run.energy.get((config.formats, scope, "idle"), run.energy[config.formats, scope, "settled"])
            for run in runs
        ],
        macs=macs,
        lengths={block: [run.lengths[scope][block] for run in runs] for block in runs[0].lengths.get(scope, ())},
        half_rate=at_half_rate("timed"),
        half_rate_settled=at_half_rate("settled"),
    )


def _clock(given: float | None, examined: Mapping[str, Sequence[Examined]], library: Library) -> float:
    """Clock period in ns that every netlist meets."""
    slowest = {(name, scope): delay for name, runs in examined.items() for scope, delay in _slowest(runs).items()}
    if given is None:
        means = [float(np.mean([run.delays[run.whole] for run in runs])) for runs in examined.values()]
        return default_period(max(means), max(slowest.values()))
    check_met(given, slowest, library.name)
    return given


def _slowest(runs: Sequence[Examined]) -> dict[str, float]:
    """The longest critical path of all runs in ns, by scope."""
    return {scope: max(run.delays[scope] for run in runs) for scope in runs[0].delays}


def _path(runs: Sequence[Examined], scope: str) -> dict[str, float]:
    """Share of each block in the critical path of element or core, mean over the runs."""
    paths = [run.paths.get(scope, {}) for run in runs]
    blocks = dict.fromkeys(block for block in area.BLOCKS.values() if any(block in path for path in paths))
    return {block: float(np.mean([path.get(block, 0.0) for path in paths])) for block in blocks}


def _placements(examined: Mapping[str, Sequence[Examined]]) -> dict[str, schema.Placement] | None:
    """The placed cores of the first runs; None where none is placed."""
    found = {name: runs[0].placement for name, runs in examined.items()}
    return {name: each for name, each in found.items() if each is not None} or None


def _contents(runs: Sequence[Examined], library: Library) -> dict[str, dict[str, schema.CellsOfBlock]]:
    """What the core holds of each cell, mean over the runs, by block and cell; what takes most area first."""
    found: dict[str, dict[str, schema.CellsOfBlock]] = {}
    for block in dict.fromkeys(block for run in runs for block in run.contents):
        held: Counter[str] = Counter()
        for run in runs:
            held.update(run.contents.get(block, {}))
        cells = {
            name: schema.CellsOfBlock(total / len(runs), total * library.cells[name].area / len(runs))
            for name, total in held.items()
        }
        found[block] = dict(sorted(cells.items(), key=lambda item: (-item[1].area_um2, item[0])))
    return found


def conditions_of(
    configs: Mapping[str, TensorCoreConfig],
    recipes: Sequence[Recipe],
    chosen: Mapping[Owner, Mapping[str, Recipe]],
    examined: Mapping[str, Sequence[Examined]],
    stimulus: Stimulus,
    clock_ns: float,
    flow: Flow,
) -> schema.OverheadConditions:
    """What the figures of two designs hold for; by name of the design, the baseline first."""
    baseline = next(iter(configs.values()))
    runs = len(examined[baseline.name])
    fed = stimulus.fitted(baseline.macs_per_step)
    cores = examined[baseline.name][0].whole == "core"
    return schema.OverheadConditions(
        flow=flow_conditions(flow.library, recipes),
        runs=runs,
        clock_ns=clock_ns,
        physical=None,
        lanes=None,
        closing=None,
        slowest_ns={name: _slowest(examined[name]) for name in configs},
        chosen_recipes={
            name: {module: how.name for kind in DESIGNS for module, how in chosen.get((name, kind), {}).items()}
            for name in configs
        },
        critical_path={name: _path(examined[name], "core") for name in configs},
        element_path={name: _path(examined[name], "element") for name in configs},
        placement=_placements(examined),
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
            **({"core": fed.cycles(baseline)} if cores else {}),
        },
        checked={
            name: schema.Checked(
                results=min(run.checked.results for run in examined[name]),
                lane_sums=min(run.checked.lane_sums for run in examined[name]),
            )
            for name in configs
        },
        cells={name: _contents(examined[name], flow.library) for name in configs},
        half_rate=half_rate(baseline, stimulus) if cores and half_rates_alike(*configs.values()) else None,
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
        `hwgen.measure.netlists.clock.default_period` has it.
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
    kinds = buildable(library)
    designs: dict[Owner, Design] = {
        (name, kind): Design(config, kind) for name, config in configs.items() for kind in kinds
    }

    choice = synthesised(designs, recipes, clock_ns, runs, flow)
    tasks = []
    for name, config in configs.items():
        own = {kind: designs[name, kind] for kind in kinds}
        operands = formats_fed(config, baseline)
        for run in range(runs):
            modules = {
                kind: design.chosen(choice.bodies, choice.chosen[name, kind], run) for kind, design in own.items()
            }
            tasks.append((own, modules, library, vectors, operands, stimulus.run(run)))
    found = list(flow.each(_examined, tasks, "checks, timing, power"))
    examined = {name: found[place * runs : (place + 1) * runs] for place, name in enumerate(configs)}

    clock_ns = _clock(clock_ns, examined, library)
    conditions = conditions_of(configs, choice.recipes, choice.chosen, examined, stimulus, clock_ns, flow)
    return Overhead(baseline, candidate, figures_of(configs, examined, clock_ns), conditions)
