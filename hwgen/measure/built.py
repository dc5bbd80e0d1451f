"""A design as it is built: its modules closed at a clock, with the wires of their placement."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hwgen.cells.library import Library
from hwgen.closure.close import ROUNDS, Closed, close
from hwgen.closure.energy import energy_cost
from hwgen.config import TensorCoreConfig
from hwgen.layout import lay_out, technology_of
from hwgen.mapping import area
from hwgen.measure.checks import core_inputs, lane_inputs
from hwgen.measure.energy import core_energy, lane_energy
from hwgen.measure.flow import Design
from hwgen.measure.requests import Physical
from hwgen.measure.stimulus import Stimulus
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.power.activity import Activity, simulate
from hwgen.power.glitch import Gates
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["PURPOSES", "build", "spent"]

PURPOSES = ("area", "energy")
"""What a design is built for: the least area at a clock, or the least energy."""


def build(
    design: Design,
    modules: Mapping[str, area.Body],
    clock_ns: float,
    purpose: str,
    physical: Physical,
    library: Library,
    stimulus: Stimulus,
    rounds: int = ROUNDS,
    begun: Closed | None = None,
) -> Closed:
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
    begun
        The same modules built for another purpose, to go on from.
    """
    core, top = design.kind is TensorCore, design.kind.module_name
    buffered = area.buffered(modules, design.source, library)
    layout = None
    if physical.placed and begun is None:
        layout = lay_out(
            link(buffered, top, library),
            technology_of(library),
            utilisation=physical.utilisation,
            placer=physical.placer,
            arrangement="array" if core else "flat",
        )
    activity = partial(_activity, config=design.config, core=core, stimulus=stimulus)
    return close(
        buffered,
        top,
        library,
        clock_ns,
        layout=layout,
        cost=energy_cost(activity, clock_ns) if purpose == "energy" else None,
        rounds=rounds,
        begun=begun,
    )


def spent(design: Design, closed: Closed, clock_ns: float, stimulus: Stimulus) -> float:
    """FJ per cycle of a closed design at work, glitches and leakage included; parameters as of `build`."""
    config = design.config
    if design.kind is TensorCore:
        gates = Gates(closed.netlist, closed.timing)
        found = core_energy(gates, config, config.formats, stimulus, glitches_only=True)["core", "timed"]
    else:
        found = lane_energy(closed.netlist, closed.timing, config, config.formats, stimulus)["lane array", "timed"]
    return found.total_fj + 1e-3 * clock_ns * sum(found.leakage_nw.values())


def _activity(netlist: Netlist, config: TensorCoreConfig, core: bool, stimulus: Stimulus) -> Activity:
    """Activity of a core or a lane array at work, without delays."""
    if core:
        fitted = stimulus.fitted(config.macs_per_step)
        return simulate(netlist, core_inputs(config, fitted.steps(config, config.formats)), warmup=config.latency)
    fitted = stimulus.fitted(config.bounds.lanes)
    given, _ = lane_inputs(config, fitted.steps(config, config.formats))
    return simulate(netlist, given)
