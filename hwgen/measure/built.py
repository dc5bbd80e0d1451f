"""A design as it is built: its modules closed at a clock, with the wires of their placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from hwgen.cells.library import Library
from hwgen.closure.close import ROUNDS, Closed, close
from hwgen.closure.energy import energy_cost
from hwgen.config import TensorCoreConfig
from hwgen.layout import Layout, adapted, lay_out, technology_of
from hwgen.mapping import area
from hwgen.measure.checks import core_inputs, lane_inputs
from hwgen.measure.flow import Design
from hwgen.measure.requests import Physical
from hwgen.measure.stimulus import Stimulus
from hwgen.netlist.graph import Netlist
from hwgen.power.activity import Activity, simulate
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["PURPOSES", "Built", "build"]

PURPOSES = ("area", "energy")
"""What a design is built for: the least area at a clock, or the least energy."""


@dataclass(frozen=True)
class Built:
    """One run of one design, closed.

    Parameters
    ----------
    closed
        Its modules, netlist, wires and timing, and what was done to them.
    layout
        Places of its cells; None with wires by fanout.
    """

    closed: Closed
    layout: Layout | None = field(repr=False)


@dataclass
class _Placement:
    """Layout of a netlist that changes from round to round: placed once, then adapted."""

    physical: Physical
    library: Library
    arrangement: str
    layout: Layout | None = None

    def of(self, netlist: Netlist) -> Layout:
        if self.layout is None:
            self.layout = lay_out(
                netlist,
                technology_of(self.library),
                utilisation=self.physical.utilisation,
                placer=self.physical.placer,
                arrangement=self.arrangement,
            )
        elif self.layout.netlist is not netlist:
            self.layout = adapted(self.layout, netlist)
        return self.layout


def build(
    design: Design,
    modules: Mapping[str, area.Body],
    clock_ns: float,
    purpose: str,
    physical: Physical,
    library: Library,
    stimulus: Stimulus,
    rounds: int = ROUNDS,
) -> Built:
    """Close the mapped modules of one run at a clock.

    Parameters
    ----------
    design
        What they are the modules of.
    modules
        As mapped.
    clock_ns
        Clock period in ns; 0 asks for the fastest.
    purpose
        One of `PURPOSES`.
    physical
        Where the wires come from.
    library
        The cells.
    stimulus
        Operands at work, for least energy.
    rounds
        The most, see `hwgen.closure.close.close`.
    """
    core = design.kind is TensorCore
    placement = _Placement(physical, library, "array" if core else "flat")
    activity = partial(_activity, config=design.config, core=core, stimulus=stimulus)
    closed = close(
        area.buffered(modules, design.source, library),
        design.kind.module_name,
        library,
        clock_ns,
        layout=placement.of if physical.placed else None,
        cost=energy_cost(activity, clock_ns) if purpose == "energy" else None,
        rounds=rounds,
    )
    layout = placement.layout
    if layout is not None and layout.netlist is not closed.netlist:
        layout = adapted(layout, closed.netlist)
    return Built(closed, layout)


def _activity(netlist: Netlist, config: TensorCoreConfig, core: bool, stimulus: Stimulus) -> Activity:
    """Activity of a core or a lane array at work, without delays."""
    if core:
        fitted = stimulus.fitted(config.macs_per_step)
        return simulate(netlist, core_inputs(config, fitted.steps(config, config.formats)), warmup=config.latency)
    fitted = stimulus.fitted(config.bounds.lanes)
    given, _ = lane_inputs(config, fitted.steps(config, config.formats))
    return simulate(netlist, given)
