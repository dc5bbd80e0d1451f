"""Power of two cores: what the data, the share of E1M2 blocks and the traffic do to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwgen.cells.library import Library
from hwgen.config import TensorCoreConfig
from hwgen.formats import Formats
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe
from hwgen.measure.conditions import check_pair, flow_conditions, half_rates_alike, holds
from hwgen.measure.netlists.checks import VECTORS, check_core
from hwgen.measure.netlists.clock import check_met, default_period
from hwgen.measure.netlists.energy import core_energy
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.stimulus import (
    HALF_RATE_ELEMENTS,
    TRAFFIC,
    Stimulus,
    half_rate,
    has_shares,
    macs_at,
    operands_of,
)
from hwgen.measure.requests import PowerRequest
from hwgen.measure.search.choice import Choice, Owner, synthesised
from hwgen.netlist.link import link
from hwgen.power.consumption import KINDS, Consumption
from hwgen.power.glitch import Gates
from hwgen.report import schema
from hwgen.rtl.tensor_core import TensorCore
from hwgen.stats import against_itself, paired
from hwgen.timing import analysis as timing
from sim import tensors
from sim.steps import check_hold
from sim.unscaled import UNSCALED_TYPES

__all__ = ["HELD", "RUNS", "SCOPES", "SHARES", "VARIED", "Situation", "situations", "study"]

SCOPES = ("element", "core")
"""What a figure is about; lane arrays are in `hwgen.measure.overhead`."""

RUNS = PowerRequest.runs
"""Syntheses of each module by default: glitches have three times the noise of area."""

VARIED = 12
"""Runs of all situations but the first, and that on the baseline's bits: what they differ by is seen sooner."""

HELD = 4
"""Steps for which the rows of B stay in the situation that holds them."""

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares of E1M2 blocks to try; 0 are the baseline's operands."""


_Task = tuple[Formats, Stimulus]
"""Format of the operands, and what they are."""


@dataclass(frozen=True)
class Situation:
    """Something for both cores to do.

    Parameters
    ----------
    name
        What it is called in reports.
    stimulus
        Operands and traffic.
    operands
        Formats of the baseline's operands, and of the candidate's.
    """

    name: str
    stimulus: Stimulus
    operands: tuple[Formats, Formats]

    def of(self, place: int) -> _Task:
        """What the baseline (0) or the candidate (1) is fed with; a share of E1M2 only where the format has it."""
        operands = self.operands[place]
        e1m2 = self.stimulus.e1m2 if any(map(has_shares, operands)) else None
        return operands, replace(self.stimulus, e1m2=e1m2)


def situations(baseline: TensorCoreConfig, candidate: TensorCoreConfig, stimulus: Stimulus) -> list[Situation]:
    """At work on ``stimulus`` first, and on the baseline's bits, where the candidate takes them; then others.

    Those are shares of E1M2, other tensors, B held, each type at half the rate of two cores with a slot, and at rest. A
    ``stimulus`` that holds B stands beside one with other rows in every step. Cores that accumulate exactly have no
    situation with B held, see `sim.steps.schedule_held`.
    """
    own = (baseline.formats, candidate.formats)
    names = " x ".join(dict.fromkeys(form.name for form in baseline.formats))
    found = [Situation("at work", stimulus, own)]
    if holds(candidate, baseline):
        found.append(Situation(f"both on {names} operands", stimulus, (baseline.formats, baseline.formats)))
    if any(map(has_shares, candidate.formats)):
        found += [Situation(f"{100 * share:.0f} % E1M2 blocks", replace(stimulus, e1m2=share), own) for share in SHARES]
    found += [
        Situation(f"{kind} tensors", replace(stimulus, tensors=kind, layer=None), own)
        for kind in tensors.KINDS
        if kind != stimulus.tensors or stimulus.layer is not None
    ]
    if stimulus.hold > 1:
        found.append(Situation("B held for 1 step", replace(stimulus, hold=1), own))
    elif not (baseline.exact or candidate.exact):
        found.append(Situation(f"B held for {HELD} steps", replace(stimulus, hold=HELD), own))
    if half_rates_alike(baseline, candidate):
        for kind in UNSCALED_TYPES:
            name = "half rate" if kind == HALF_RATE_ELEMENTS else f"half rate, {kind.upper()}"
            found.append(Situation(name, replace(stimulus, elements=kind), own))
    return found + [Situation(traffic, replace(stimulus, traffic=traffic), own) for traffic in TRAFFIC[1:]]


def _milliwatts(spent: Consumption, clock_ns: float) -> float:
    """Power in mW, of all blocks and kinds."""
    return sum(sum(kinds.values()) for kinds in spent.milliwatts(clock_ns).values())


def _mean_parts(runs: Sequence[Consumption], clock_ns: float) -> dict[str, dict[str, float]]:
    """Power in mW by block and kind: the mean over runs."""
    powers = [run.milliwatts(clock_ns) for run in runs]
    return {
        block: {kind: float(np.mean([power[block][kind] for power in powers])) for kind in KINDS} for block in powers[0]
    }


@dataclass(frozen=True)
class Consumed:
    """What one run of one core was found to consume.

    Parameters
    ----------
    delay
        Critical path, ns.
    checked
        Results that equal the golden model's.
    spent
        By what it was fed with, and scope.
    """

    delay: float
    checked: int
    spent: Mapping[_Task, Mapping[str, Consumption]]


def _consumed(
    design: Design,
    modules: Mapping[str, area.Body],
    library: Library,
    vectors: int,
    run: int,
    wanted: Collection[_Task],
) -> Consumed:
    """Time the netlist of one run of one core, compare it with the golden model, and find what it consumes."""
    netlist = link(area.buffered(modules, design.source, library), TensorCore.module_name, library)
    gates = Gates(netlist, timing.analyse(netlist))
    checked = check_core(netlist, design.config, vectors)
    spent = {}
    for operands, stimulus in wanted:
        found = core_energy(gates, design.config, operands, stimulus.run(run), glitches_only=True)
        spent[operands, stimulus] = {scope: found[scope, "timed"] for scope in SCOPES}
    return Consumed(gates.timing.delay, checked, spent)


def _situation(
    each: Situation,
    scope: str,
    configs: Sequence[TensorCoreConfig],
    runs: Mapping[str, Sequence[Consumed]],
    clock_ns: float,
) -> schema.Situation:
    """What was found of one situation at one scope; ``runs`` by name of the design, baseline first."""
    spent = {
        config.name: [run.spent[each.of(place)][scope] for run in runs[config.name]]
        for place, config in enumerate(configs)
    }
    milliwatts = {name: [_milliwatts(run, clock_ns) for run in own] for name, own in spent.items()}
    means = {name: float(np.mean(values)) for name, values in milliwatts.items()}
    baseline, candidate = milliwatts.values()
    elements = each.stimulus.elements
    femtojoules = 1e3 * clock_ns / macs_at(configs[0], elements)[scope]
    busy = each.stimulus.traffic == "busy"
    return schema.Situation(
        situation=each.name,
        scope=scope,
        runs=len(baseline),
        operands={
            config.name: schema.Operands(*(schema.Operand(elements, 0.0),) * 2)
            if elements is not None
            else operands_of(operands, stimulus.fitted(config.macs_per_step).steps(config, operands))
            for place, config in enumerate(configs)
            for operands, stimulus in [each.of(place)]
        },
        milliwatts=means,
        femtojoules_per_mac={name: value * femtojoules if busy else None for name, value in means.items()},
        overhead=paired(baseline, candidate),
        baseline_against_itself=against_itself(baseline),
        milliwatts_by_block_and_kind={name: _mean_parts(own, clock_ns) for name, own in spent.items()},
    )


def _conditions(
    configs: Mapping[str, TensorCoreConfig],
    choice: Choice,
    runs: Mapping[str, Sequence[Consumed]],
    stimulus: Stimulus,
    clock_ns: float | None,
    flow: Flow,
) -> schema.PowerConditions:
    """What the figures of two cores hold for, with the clock that all runs meet; the baseline first."""
    baseline = next(iter(configs.values()))
    slowest = {name: max(run.delay for run in own) for name, own in runs.items()}
    if clock_ns is None:
        longest = max(float(np.mean([run.delay for run in own])) for own in runs.values())
        clock_ns = default_period(longest, max(slowest.values()))
    check_met(clock_ns, {(name, "core"): delay for name, delay in slowest.items()}, flow.library.name)
    return schema.PowerConditions(
        flow=flow_conditions(flow.library, choice.recipes),
        runs=len(runs[baseline.name]),
        clock_ns=clock_ns,
        slowest_ns=slowest,
        chosen_recipes={
            name: {module: how.name for module, how in choice.chosen[name, TensorCore].items()} for name in configs
        },
        macs_per_cycle=macs_at(baseline, None),
        stimulus=stimulus.record(baseline),
        cycles=stimulus.fitted(baseline.macs_per_step).cycles(baseline),
        results_checked_each_run=min(run.checked for own in runs.values() for run in own),
        half_rate=half_rate(baseline, stimulus) if half_rates_alike(*configs.values()) else None,
    )


def study(
    baseline: TensorCoreConfig,
    candidate: TensorCoreConfig,
    flow: Flow,
    recipes: Sequence[Recipe] | None = None,
    *,
    clock_ns: float | None = None,
    stimulus: Stimulus | None = None,
    runs: int = RUNS,
    vectors: int = VECTORS,
) -> schema.PowerReport:
    """Synthesise both cores and simulate their netlists in every situation, with gate delays.

    Parameters
    ----------
    baseline, candidate, flow, recipes, clock_ns, runs, vectors
        As for `hwgen.measure.overhead.measure`.
    stimulus
        Operands of the cores at work, which is the first situation; others are variations of it.

    Raises
    ------
    InputError, ToolError
        As `hwgen.measure.overhead.measure`.
    """
    check_pair(baseline, candidate)
    library = flow.library
    stimulus = stimulus or Stimulus()
    configs = {config.name: config for config in (baseline, candidate)}
    for config in configs.values():
        check_hold(config, stimulus.hold)
    designs: dict[Owner, Design] = {(name, TensorCore): Design(config, TensorCore) for name, config in configs.items()}
    choice = synthesised(designs, recipes, clock_ns, runs, flow)

    wanted = situations(baseline, candidate, stimulus)
    always = 1 + holds(candidate, baseline)
    tasks = [
        (
            designs[name, TensorCore],
            designs[name, TensorCore].chosen(choice.bodies, choice.chosen[name, TensorCore], run),
            library,
            vectors,
            run,
            # What the baseline does is the same in many of them: once is enough.
            list(dict.fromkeys(each.of(place) for each in (wanted if run < VARIED else wanted[:always]))),
        )
        for place, name in enumerate(configs)
        for run in range(runs)
    ]
    found: list[Consumed] = list(flow.each(_consumed, tasks, "checks and power"))
    by_name = {name: found[place * runs : (place + 1) * runs] for place, name in enumerate(configs)}
    conditions = _conditions(configs, choice, by_name, stimulus, clock_ns, flow)
    return schema.PowerReport(
        designs=(schema.Design(baseline.as_dict()), schema.Design(candidate.as_dict())),
        conditions=conditions,
        results=tuple(
            _situation(
                each,
                scope,
                (baseline, candidate),
                {name: own[: None if number < always else VARIED] for name, own in by_name.items()},
                conditions.clock_ns,
            )
            for number, each in enumerate(wanted)
            for scope in SCOPES
        ),
    )
