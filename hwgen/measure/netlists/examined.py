"""What one run of one configuration is found to be: netlists, timed, compared with the golden model, consuming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hwgen.cells.library import Library
from hwgen.closure.close import Closed
from hwgen.config import TensorCoreConfig
from hwgen.formats import Formats
from hwgen.layout import Layout
from hwgen.mapping import area
from hwgen.measure.netlists.checks import check_core, check_lanes
from hwgen.measure.netlists.energy import core_activity, core_energy, lane_energy, of_activity
from hwgen.measure.netlists.flow import KINDS, TOPS, Design
from hwgen.measure.netlists.placement import pictured
from hwgen.measure.netlists.stimulus import HALF_RATE_ELEMENTS, Stimulus
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.power.consumption import Consumption
from hwgen.power.glitch import Gates
from hwgen.report import schema
from hwgen.report.schema import HALF_RATE
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import analysis as timing
from hwgen.timing.inner import longest_inside
from hwgen.timing.paths import PathStep, by_block

__all__ = ["Examined", "Netlists", "as_built", "as_mapped", "examine"]

_CHECKS = {"core": check_core, "lane array": check_lanes}


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
    paths
        Share of each block in the critical paths of element and core, by scope and block.
    checked
        What equals the golden model's.
    energy
        By (operands' formats, scope, delays), see `hwgen.measure.netlists.energy.core_energy`. Of a core with clock
        gates also with ``idle`` in the place of the delays: no step is offered. Of one with a slot also with
        `HALF_RATE` behind them: its steps are at half the rate.
    lengths
        um of wire by scope and block, of netlists that are placed.
    placement
        The placed core, if it is placed.
    contents
        How many of each cell the core holds, by block and name of the cell.
    """

    areas: dict[str, dict[str, float]]
    delays: dict[str, float]
    cells: dict[str, int]
    sequential: dict[str, float]
    clock_gates: dict[str, float]
    paths: dict[str, dict[str, float]]
    checked: schema.Checked
    energy: dict[tuple[Formats, str, str], Consumption]
    lengths: dict[str, dict[str, float]]
    placement: schema.Placement | None
    contents: dict[str, dict[str, int]]

    @property
    def whole(self) -> str:
        """The largest scope that was built: the core, or without flip-flops the lane array."""
        return list(self.areas)[-1]


@dataclass(frozen=True)
class Netlists:
    """Netlists of one run of one configuration, by scope, with their timing.

    Parameters
    ----------
    netlists, timings
        By scope; an element's netlist stands in a closed core, and has no timing of its own.
    modules
        Mapped modules by kind of block, with their buffers.
    layouts
        By scope; of those that are placed.
    """

    netlists: dict[str, Netlist]
    timings: dict[str, timing.Timing]
    modules: dict[type[Block], dict[str, area.Body]]
    layouts: dict[str, Layout] = field(default_factory=dict)


def as_mapped(
    designs: Mapping[type[Block], Design], modules: Mapping[type[Block], dict[str, area.Body]], library: Library
) -> Netlists:
    """Netlists as they were mapped, with buffer trees; wires by fanout."""
    whole = {kind: area.buffered(modules[kind], design.source, library) for kind, design in designs.items()}
    netlists = {scope: link(whole[kind], TOPS[scope], library) for scope, kind in KINDS.items() if kind in whole}
    return Netlists(netlists, {scope: timing.analyse(netlist) for scope, netlist in netlists.items()}, whole)


def as_built(built: Mapping[type[Block], Closed], library: Library) -> Netlists:
    """Netlists that were closed."""
    modules = {kind: found.modules for kind, found in built.items()}
    whole = {scope: built[kind] for scope, kind in KINDS.items() if kind in built and scope != "element"}
    netlists = {scope: found.netlist for scope, found in whole.items()}
    if TensorCore in modules:
        netlists["element"] = link(modules[TensorCore], TOPS["element"], library)
    return Netlists(
        netlists,
        {scope: found.timing for scope, found in whole.items()},
        modules,
        {scope: found.layout for scope, found in whole.items() if found.layout is not None},
    )


def examine(
    designs: Mapping[type[Block], Design],
    small: Netlists,
    frugal: Netlists,
    library: Library,
    vectors: int,
    operands: Sequence[Formats],
    stimulus: Stimulus,
    known: Mapping[tuple[Formats, str, str], Consumption] | None = None,
) -> Examined:
    """Compare the netlists of one run with the golden model, and find what they take and consume.

    Parameters
    ----------
    designs
        The tensor core and the lane array of one configuration; without flip-flops the lane array alone.
    small
        The netlists whose area and delay count.
    frugal
        Those whose energy counts; they may be the same.
    library
        Their cells.
    vectors
        Results of each to compare, at least.
    operands
        Formats of the operands to feed them with.
    stimulus
        The operands.
    known
        Energies of the frugal netlists with their own formats, if they were found before.

    Raises
    ------
    ToolError
        A netlist does not compute what the golden model says.
    """
    config = designs[LaneArray].config
    energy = dict(known or {})
    gates = {
        scope: Gates(frugal.netlists[scope], frugal.timings[scope]) for scope in _CHECKS if scope in frugal.netlists
    }
    for formats in operands:
        if (formats, "lane array", "timed") not in energy:
            found = lane_energy(gates["lane array"], config, formats, stimulus)
            if "core" in gates:
                found |= core_energy(gates["core"], config, formats, stimulus, formats != config.formats)
            energy |= {(formats, *key): value for key, value in found.items()}
    paths, contents = {}, {}
    if "core" in gates:
        energy |= _otherwise(gates["core"], config, stimulus)
        paths = {"core": small.timings["core"].path, "element": _element_path(small)}
        contents = area.cells_by_block(small.modules[TensorCore], designs[TensorCore].source, TOPS["core"], library)
    return Examined(
        areas={
            scope: {
                block: values[0]
                for block, values in area.by_run(
                    [small.modules[kind]], designs[kind].source, TOPS[scope], library
                ).items()
            }
            for scope, kind in KINDS.items()
            if kind in designs
        },
        delays={scope: found.delay for scope, found in small.timings.items()}
        | {scope: path[-1].arrival for scope, path in paths.items() if path},
        cells={scope: netlist.n_cells for scope, netlist in small.netlists.items()},
        sequential={scope: area.sequential_area(netlist) for scope, netlist in small.netlists.items()},
        clock_gates={scope: area.clock_gate_area(netlist) for scope, netlist in small.netlists.items()},
        paths={scope: _shares(path) for scope, path in paths.items()},
        checked=_checked(small, frugal, config, vectors),
        energy=energy,
        lengths={
            scope: area.by_block(layout.by_block(layout.length * layout.technology.detour))
            for scope, layout in small.layouts.items()
        },
        placement=pictured(small.layouts["core"]) if "core" in small.layouts else None,
        contents=contents,
    )


def _checked(small: Netlists, frugal: Netlists, config: TensorCoreConfig, vectors: int) -> schema.Checked:
    """Compare all netlists with the golden model; returns how many results of the small ones were compared."""
    found = {}
    for scope, check in _CHECKS.items():
        if scope in small.netlists:
            found[scope] = check(small.netlists[scope], config, vectors)
            if frugal.netlists[scope] is not small.netlists[scope]:
                check(frugal.netlists[scope], config, vectors)
    return schema.Checked(results=found.get("core", 0), lane_sums=found["lane array"])


def _otherwise(
    gates: Gates, config: TensorCoreConfig, stimulus: Stimulus
) -> dict[tuple[Formats, str, str], Consumption]:
    """Energies of a core with clock gates that has nothing to do, and of one with a slot at half the rate."""
    found = {}
    if len(gates.netlist.gated_nets):
        # Long enough for everything to come to rest.
        none = replace(stimulus, traffic="idle", steps_per_tile=4 * config.latency + 4)
        resting = core_activity(gates, config, config.formats, none)
        found[config.formats, "core", "idle"] = of_activity(gates.netlist, gates.timing, resting)["whole"]
    if config.slotted:
        half = replace(stimulus, elements=HALF_RATE_ELEMENTS)
        found |= {
            (config.formats, scope, f"{delays}{HALF_RATE}"): value
            for (scope, delays), value in core_energy(gates, config, config.formats, half).items()
        }
    return found


def _element_path(small: Netlists) -> list[PathStep]:
    """The critical path of an element: of its own timing, or in a closed core the longest between its registers."""
    if "element" in small.timings:
        return small.timings["element"].path
    core = small.netlists["core"]
    elements = [
        np.arange(each.first, each.first + each.whole) for each in core.instances if each.module == TOPS["element"]
    ]
    return longest_inside(core, small.timings["core"], elements)


def _shares(path: Sequence[PathStep]) -> dict[str, float]:
    """Share of each block in a path."""
    return {block: value / path[-1].arrival for block, value in area.by_block(by_block(path)).items()}
