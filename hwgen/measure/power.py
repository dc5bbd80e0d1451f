"""Power of two cores: what the data, the share of E1M2 blocks and the traffic do to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hwgen.cells.library import Library
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.formats import BlockFormat
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, recipe
from hwgen.measure.checks import VECTORS, check_core
from hwgen.measure.energy import core_activity, core_energy
from hwgen.measure.figures import Energy
from hwgen.measure.flow import Design, Flow
from hwgen.measure.overhead import check_pair, clock_period, flow_conditions, synthesised
from hwgen.measure.requests import PowerRequest
from hwgen.measure.stimulus import TRAFFIC, Stimulus, e1m2_share
from hwgen.netlist.export import netlist_verilog
from hwgen.netlist.link import link
from hwgen.power.estimate import KINDS, estimate
from hwgen.power.export import saif, vcd
from hwgen.power.glitch import Gates, with_glitches
from hwgen.rtl.tensor_core import TensorCore
from hwgen.stats import Estimate, paired
from hwgen.timing import analysis as timing
from sim import tensors

__all__ = ["RUNS", "SCOPES", "SHARES", "VARIED", "WAVES", "Situation", "Study", "exported", "situations", "study"]

SCOPES = ("element", "core")
"""What a figure is about; lane arrays are in `hwgen.measure.overhead`."""

RUNS = PowerRequest.runs
"""Syntheses of each module by default: glitches have three times the noise of area."""

WAVES = 16
"""Cycles of exported waveforms."""

VARIED = 12
"""Runs of all situations but the first two: what they differ by is seen sooner."""

_ALWAYS = 2
SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares of E1M2 blocks to try; 0 are the baseline's operands."""


_Formats = tuple[BlockFormat, BlockFormat]
_Task = tuple[_Formats, Stimulus]
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
    operands: tuple[_Formats, _Formats]

    def of(self, place: int) -> _Task:
        """What the baseline (0) or the candidate (1) is fed with; a share of E1M2 only where the format has it."""
        operands = self.operands[place]
        e1m2 = self.stimulus.e1m2 if any(form.tagged for form in operands) else None
        return operands, replace(self.stimulus, e1m2=e1m2)


def situations(baseline: TensorCoreConfig, candidate: TensorCoreConfig, stimulus: Stimulus) -> list[Situation]:
    """At work on ``stimulus`` and on the baseline's bits first; then shares of E1M2, other tensors, and at rest."""
    own = (baseline.formats, candidate.formats)
    names = " x ".join(dict.fromkeys(form.name for form in baseline.formats))
    found = [
        Situation("at work", stimulus, own),
        Situation(f"both on {names} operands", stimulus, (baseline.formats, baseline.formats)),
    ]
    assert len(found) == _ALWAYS
    if any(form.tagged for form in candidate.formats):
        found += [Situation(f"{100 * share:.0f} % E1M2 blocks", replace(stimulus, e1m2=share), own) for share in SHARES]
    found += [
        Situation(f"{kind} tensors", replace(stimulus, tensors=kind, layer=None), own)
        for kind in tensors.KINDS
        if kind != stimulus.tensors or stimulus.layer is not None
    ]
    return found + [Situation(traffic, replace(stimulus, traffic=traffic), own) for traffic in TRAFFIC[1:]]


@dataclass(frozen=True)
class Study:
    """What was found of one situation.

    Parameters
    ----------
    name
        Of the situation.
    busy
        Whether the cores compute.
    milliwatts
        Total power of each run, by scope and design, baseline first.
    e1m2
        Share of E1M2 blocks of the candidate's A.
    parts
        Mean power in mW by scope, design, block and kind.
    """

    name: str
    busy: bool
    milliwatts: Mapping[str, Mapping[str, Sequence[float]]]
    e1m2: float
    parts: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]

    def overhead(self, scope: str) -> Estimate:
        """(candidate - baseline) / baseline."""
        return paired(*self.milliwatts[scope].values())


def _milliwatts(energy: Energy, clock_ns: float) -> float:
    return sum(sum(kinds.values()) for kinds in _mean_parts([energy], clock_ns).values())


def _mean_parts(energies: Sequence[Energy], clock_ns: float) -> dict[str, dict[str, float]]:
    """mW by block and kind: the mean over runs."""
    rates = {kind: 1e-6 if kind == "leakage" else 1e-3 / clock_ns for kind in KINDS}
    return {
        block: {kind: rates[kind] * float(np.mean([run[block][kind] for run in energies])) for kind in KINDS}
        for block in energies[0]
    }


def _consumed(
    design: Design,
    modules: Mapping[str, area.Body],
    library: Library,
    vectors: int,
    run: int,
    wanted: Collection[_Task],
) -> tuple[float, int, dict[_Task, dict[str, Energy]]]:
    """Critical path, results that are right, and energies by scope, of one run of one core."""
    netlist = link(area.buffered(modules, design.source, library), TensorCore.module_name, library)
    gates = Gates(netlist, timing.analyse(netlist))
    checked = check_core(netlist, design.config, vectors)
    energies = {}
    for operands, stimulus in wanted:
        found = core_energy(gates, design.config, operands, stimulus.run(run), glitches_only=True)
        energies[operands, stimulus] = {scope: found[scope, "timed"] for scope in SCOPES}
    return gates.timing.delay, checked, energies


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
) -> tuple[list[Study], dict[str, Any]]:
    """Synthesise both cores and simulate their netlists in every situation, with gate delays.

    Parameters
    ----------
    baseline, candidate, flow, recipes, clock_ns, runs, vectors
        As for `hwgen.measure.overhead.measure`.
    stimulus
        Operands of the cores at work; other situations are variations of it.

    Returns
    -------
    studies : list of Study
        The first is the cores at work.
    conditions : dict
        What it was measured under, ready for JSON.

    Raises
    ------
    InputError, ToolError
        As `hwgen.measure.overhead.measure`.
    """
    check_pair(baseline, candidate)
    library = flow.library
    stimulus = stimulus or Stimulus()
    configs = {config.name: config for config in (baseline, candidate)}
    designs = {(name, TensorCore): Design(config, TensorCore) for name, config in configs.items()}
    recipes, chosen, bodies = synthesised(designs, recipes, clock_ns, runs, flow)

    wanted = situations(baseline, candidate, stimulus)
    tasks = [
        (
            designs[name, TensorCore],
            designs[name, TensorCore].chosen(bodies, chosen[name, TensorCore], run),
            library,
            vectors,
            run,
            # What the baseline does is the same in many of them: once is enough.
            list(dict.fromkeys(each.of(place) for each in (wanted if run < VARIED else wanted[:_ALWAYS]))),
        )
        for place, name in enumerate(configs)
        for run in range(runs)
    ]
    found = list(flow.each(_consumed, tasks, "checks and power"))
    by_name = {name: found[place * runs : (place + 1) * runs] for place, name in enumerate(configs)}
    longest = max(float(np.mean([delay for delay, _, _ in each])) for each in by_name.values())
    clock_ns = clock_period(clock_ns, longest, library.name)

    def studied(number: int, each: Situation) -> Study:
        energies = {
            scope: {
                name: [
                    energy[each.of(place)][scope]
                    for _, _, energy in by_name[name][: None if number < _ALWAYS else VARIED]
                ]
                for place, name in enumerate(configs)
            }
            for scope in SCOPES
        }
        return Study(
            each.name,
            each.stimulus.traffic == "busy",
            {
                scope: {name: [_milliwatts(run, clock_ns) for run in runs] for name, runs in both.items()}
                for scope, both in energies.items()
            },
            e1m2_share(each.stimulus.fitted(candidate.macs_per_step).steps(candidate, each.operands[1])),
            {
                scope: {name: _mean_parts(runs, clock_ns) for name, runs in both.items()}
                for scope, both in energies.items()
            },
        )

    studies = [studied(number, each) for number, each in enumerate(wanted)]
    fed = stimulus.fitted(baseline.macs_per_step)
    conditions = {
        **flow_conditions(library, recipes),
        "chosen_recipes": {
            name: {module: how.name for module, how in chosen[name, TensorCore].items()} for name in configs
        },
        "clock_ns": clock_ns,
        "runs": runs,
        "macs_per_cycle": {"element": baseline.depth, "core": baseline.macs_per_step},
        "stimulus": {
            "tensors": stimulus.tensors if stimulus.layer is None else f"{stimulus.tensors}, B: {stimulus.layer}",
            "seed": stimulus.seed,
            "cycles_per_run": fed.cycles(baseline),
            "depth": stimulus.steps_per_tile * baseline.depth,
            "delays": "of the timing analysis, inertial; inputs change with the clock edge",
        },
        "results_checked_each_run": min(checked for each in by_name.values() for _, checked, _ in each),
    }
    return studies, conditions


def exported(
    config: TensorCoreConfig,
    recipes: Mapping[str, str],
    flow: Flow,
    clock_ns: float,
    stimulus: Stimulus,
    waves: bool,
) -> dict[str, str]:
    """The netlist of the first run and its activity at work, for other tools: texts by suffix of a file's name.

    Parameters
    ----------
    config
        The core.
    recipes
        Name of the recipe of each module.
    flow
        As for `study`.
    clock_ns
        Clock period.
    stimulus
        The operands.
    waves
        Whether to have waveforms too, of the first stream.

    Raises
    ------
    InputError
        The netlist of that run is too slow for the clock.
    """
    design = Design(config, TensorCore)
    chosen = {module: recipe(name) for module, name in recipes.items()}
    bodies = flow.synthesise(design.plan({module: [how] for module, how in chosen.items()}, [0]), "synthesis")
    netlist = link(design.assembled(bodies, chosen, 0, flow.library), TensorCore.module_name, flow.library)
    gates = Gates(netlist, timing.analyse(netlist))
    if gates.timing.delay > clock_ns:
        raise InputError(
            f"clock of {clock_ns:g} ns: the netlist to export takes {gates.timing.delay:.4g} ns; choose a longer period"
        )
    settled = core_activity(gates, config, config.formats, stimulus)
    timed = with_glitches(settled, gates, stimulus.fitted(config.macs_per_step).timed)
    found = estimate(netlist, gates.timing, timed, 1000 / clock_ns)
    header = [
        f"{config.name}, {flow.library.name}, first run of a study by hwgen. Power at the activity of the SAIF file and"
        f" {clock_ns:g} ns:",
        ", ".join(f"{kind} {value:.6g} mW" for kind, value in found.mw.items() if kind != "clock_tree")
        + f"; total {found.total_mw:.6g} mW.",
        f"Wire {gates.timing.wire_load:.6g} fF per fanout, {gates.timing.output_load:.6g} fF at outputs, input slew"
        f" {gates.timing.input_slew:.6g} ns, ideal clock; no clock tree, nets from the input ports in no figure.",
    ]
    texts = {"v": netlist_verilog(netlist, header), "saif": saif(netlist, timed, clock_ns)}
    if waves:
        values = settled.kept[:WAVES, 0]
        texts["vcd"] = vcd(netlist, gates.settled(values[0]), gates.events(values), len(values), clock_ns)
    return texts
