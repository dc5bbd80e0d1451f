"""Measure two configurations under one flow: RTL, synthesis, gate-level simulation, power."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from hwgen.synth.compare import Figure, Measured, compare
from hwgen.synth.fanout import LIMIT
from hwgen.synth.library import Library
from hwgen.synth.netlist import link
from hwgen.synth.power import KINDS, entering_fj, estimate
from hwgen.synth.yosys import Recipe, tool_version
from hwgen.verilog import design, verilog
from sim import golden, tensors
from sim.steps import Steps, schedule

__all__ = ["RUNS", "Overhead", "Stimulus", "clock_period", "measure", "typical_run"]

RUNS = 16
"""Syntheses of each module by default."""


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
        Output tiles that each stream computes, one after the other.
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
        a, b = (
            golden.quantize(tensors.generate(self.tensors, (rows, depth), self.seed + offset), block_format)
            for offset, rows in ((0, config.rows * self.streams), (1, config.columns * self.tiles))
        )
        c = np.float32(1000) * tensors.generate("gaussian", (len(a.codes), len(b.codes)), self.seed + 2)
        cut = []
        for stream in range(self.streams):
            rows = slice(stream * config.rows, (stream + 1) * config.rows)
            part = golden.QuantizedTensor(a.codes[rows], a.scales[rows], a.tensor_scale, a.format)
            cut.append(schedule(config, part, b, c[rows]))
        return cut


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


def _core_activity(netlist: Any, config: TensorCoreConfig, streams: list[Steps]) -> tuple[Activity, int]:
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
    for index, steps in enumerate(streams):
        words = np.packbits(bits[answered[:, index], index], axis=1, bitorder="little").view("<u4")
        expected = steps.expected()
        if not np.array_equal(words.reshape(-1, config.rows, config.columns), expected):
            raise ToolError(f"the netlist of {config.name} differs from the golden model; its figures are void")
        checked += expected.size
    return activity, checked


def _lane_activity(netlist: Any, config: TensorCoreConfig, streams: list[Steps]) -> tuple[Activity, int]:
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


def measure(
    baseline: TensorCoreConfig,
    candidate: TensorCoreConfig,
    library: Library,
    recipe: Recipe,
    *,
    clock_ns: float | None = None,
    stimulus: Stimulus | None = None,
    runs: int = RUNS,
    cache: Path | None = None,
    workers: int = -1,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Overhead:
    """Synthesise both configurations, simulate their netlists, and compare.

    Parameters
    ----------
    baseline, candidate
        Configurations of the same shape.
    library, recipe
        Cells and recipe for both.
    clock_ns
        Clock period at which power is stated; by default the longer critical path of the two cores and
        5 %, rounded up to two digits.
    stimulus
        Operands; gaussian tensors by default.
    runs
        Syntheses of each module, each in another order of its assignments.
    cache
        Directory of synthesis results; None keeps none.
    workers
        Syntheses at once; -1 is one for each core.
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
    jobs = [job for (name, top), source in sources.items() for job in area.plan(f"{name}/{top}", source, runs)]
    bodies = area.run(
        jobs,
        library,
        recipe,
        cache=Cache(cache),
        workers=workers,
        progress=lambda done, total: progress("synthesis", done, total),
    )

    netlists = {}
    areas = {}
    modules = {
        (name, top): [area.buffered(bodies, source, f"{name}/{top}", run, library) for run in range(runs)]
        for (name, top), source in sources.items()
    }
    for scope, top, part in _SCOPE_TOPS:
        for name in configs:
            areas[name, scope] = area.by_run(modules[name, top], sources[name, top], part, library)
    # The element is a part of the core, of the same run.
    typical = {
        top: typical_run(*(areas[name, scope] for name in configs)) for scope, top, part in _SCOPE_TOPS if part == top
    }
    for scope, top, part in _SCOPE_TOPS:
        for name in configs:
            netlists[name, scope] = link(modules[name, top][typical[top]], part, library)
    timings = {key: timing.analyse(netlist) for key, netlist in netlists.items()}
    clock_ns = clock_period(clock_ns, max(timings[name, "core"].delay for name in configs), library.name)
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
        energy: dict[str, dict[str, dict[str, float]]] = {}
        checked = checks.setdefault(name, {"results": 0, "lane sums": 0, "mismatches": 0})
        for scope, kind, simulated in (
            ("core", "results", _core_activity),
            ("lane array", "lane sums", _lane_activity),
        ):
            netlist, its_timing = netlists[name, scope], timings[name, scope]
            activity, count_checked = simulated(netlist, config, streams)
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
                measured[key] = Measured(netlists[key], timings[key], energy[scope], rate)
                tags = np.concatenate([steps.a_scales.ravel() >> 7 for steps in streams])
                e1m2_share[name] = float(tags.mean())
            if operands == baseline.format:
                measured[key] = replace(measured[key], energy_same_operands_fj=energy[scope])
    progress("gate-level simulation", len(feeds), len(feeds))

    figures = compare(baseline.name, candidate.name, measured, areas, frequency_mhz)
    timing_used = timings[baseline.name, "core"]
    conditions = {
        "library": {
            "name": library.name,
            "sha256": library.digest,
            "voltage": library.voltage,
            "cells": len(library.cells),
        },
        "recipe": {"name": recipe.name, "abc": list(recipe.abc), "purpose": recipe.purpose},
        "clock_ns": clock_ns,
        "wire_load_ff_per_fanout": timing_used.wire_load,
        "input_slew_ns": timing_used.input_slew,
        "output_load_ff": timing_used.output_load,
        "largest_fanout": LIMIT,
        "hierarchy": "lane array: one flat module; element and core: composed of blocks synthesised on their own",
        "tools": {
            "hwgen": __version__,
            "synthesis": tool_version(),
            "amaranth": version("amaranth"),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
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
        "runs": runs,
        "spread": "area: median over pairs of runs under the same perturbation (order of the assignments), 95 %"
        " bootstrap interval; timing and power: the pair of netlists whose area overhead is nearest to that"
        " median, no interval yet",
    }
    return Overhead(baseline, candidate, figures, conditions)
