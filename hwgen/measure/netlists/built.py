"""A design as it is built: its modules closed at a clock, with the wires of their placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hwgen.cells.library import Library
from hwgen.closure.close import ROUNDS, Closed, close
from hwgen.closure.energy import energy_cost
from hwgen.layout import lay_out, technology_of
from hwgen.mapping import area
from hwgen.measure.netlists.energy import AtWork, core_energy, lane_energy, sampled_energy
from hwgen.measure.netlists.flow import Design
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.netlist.link import link
from hwgen.power.consumption import Consumption
from hwgen.power.glitch import Gates
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing.analysis import Timing

__all__ = ["PURPOSES", "Both", "build", "build_both", "by_module", "energies", "per_cycle", "spent"]

PURPOSES = ("area", "energy")
"""What a design is built for: the least area at a clock, or the least energy."""

_NEAR = 0.01
"""Netlists whose energies differ by no more in a sample of cycles are compared in all cycles.

The ratio of both is within 0.2 % of that of all cycles, measured on cores and lane arrays of generic7.
"""


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
    at_work = AtWork(design.config, stimulus, core)
    return close(
        buffered,
        top,
        library,
        clock_ns,
        layout=layout,
        cost=energy_cost(at_work, clock_ns) if purpose == "energy" else None,
        rounds=rounds,
        begun=begun,
    )


@dataclass(frozen=True)
class Both:
    """A design built for both purposes.

    Parameters
    ----------
    closed
        What was built for each of `PURPOSES`.
    frugal
        What spends least and meets the clock, if one does: sizes change glitches, so it may be what was built for
        least area.
    spent
        What it consumes at work, as `energies` has it.
    """

    closed: Mapping[str, Closed]
    frugal: Closed
    spent: Mapping[tuple[str, str], Consumption]

    @property
    def taken(self) -> dict[str, Closed]:
        """What counts for each purpose."""
        return {PURPOSES[0]: self.closed[PURPOSES[0]], PURPOSES[1]: self.frugal}


def build_both(
    designs: Mapping[str, Design],
    modules: Mapping[str, Mapping[str, area.Body]],
    clock_ns: float,
    physical: Physical,
    library: Library,
    stimulus: Stimulus,
) -> Both:
    """Close one run of a design for both purposes.

    Parameters
    ----------
    designs, modules
        The design with its lanes, and its modules as mapped, by purpose.
    clock_ns, physical, library, stimulus
        As for `build`.
    """
    closed: dict[str, Closed] = {}
    begun, first = None, modules[PURPOSES[0]]
    for purpose in PURPOSES:
        own = modules[purpose]
        # The same modules: what was done for one purpose is a good beginning for the other.
        if any(own.get(name) is not body for name, body in first.items()):
            begun = None
        begun = build(designs[purpose], own, clock_ns, purpose, physical, library, stimulus, begun=begun)
        closed[purpose] = begun
    frugal, energy = _frugal(designs, closed, clock_ns, stimulus)
    return Both(closed, frugal, energy)


def _frugal(
    designs: Mapping[str, Design], closed: Mapping[str, Closed], clock_ns: float, stimulus: Stimulus
) -> tuple[Closed, dict[tuple[str, str], Consumption]]:
    """What spends least of what meets the clock, of all if nothing does; and what it consumes."""

    def sampled(purpose: str) -> float:
        design, built = designs[purpose], closed[purpose]
        gates = Gates(built.netlist, built.timing)
        return per_cycle(sampled_energy(gates, design.config, stimulus, design.kind is TensorCore), clock_ns)

    among = [purpose for purpose in PURPOSES if closed[purpose].record.met] or list(PURPOSES)
    if len(among) > 1:
        samples = {purpose: sampled(purpose) for purpose in among}
        among = [purpose for purpose in among if samples[purpose] <= (1 + _NEAR) * min(samples.values())]
    found = {purpose: energies(designs[purpose], closed[purpose], stimulus) for purpose in among}
    frugal = min(among, key=lambda purpose: spent(designs[purpose], found[purpose], clock_ns))
    return closed[frugal], found[frugal]


def energies(design: Design, closed: Closed, stimulus: Stimulus) -> dict[tuple[str, str], Consumption]:
    """What a closed design consumes at work, by scope and delays, see `hwgen.measure.netlists.energy.core_energy`."""
    found = core_energy if design.kind is TensorCore else lane_energy
    return found(Gates(closed.netlist, closed.timing), design.config, design.config.formats, stimulus)


def spent(design: Design, found: Mapping[tuple[str, str], Consumption], clock_ns: float) -> float:
    """FJ per cycle of the energies of a design, glitches and leakage included."""
    return per_cycle(found["core" if design.kind is TensorCore else "lane array", "timed"], clock_ns)


def by_module(timing: Timing) -> dict[str, float]:
    """Part of the longest path in ns that lies in each module."""
    found: dict[str, float] = {}
    for path, part in timing.path_by_block.items():
        module = path.rsplit("/", 1)[-1]
        found[module] = found.get(module, 0.0) + part
    return found


def per_cycle(consumption: Consumption, clock_ns: float) -> float:
    """FJ per cycle of ``clock_ns``, leakage included."""
    return consumption.total_fj + 1e-3 * clock_ns * sum(consumption.leakage_nw.values())
