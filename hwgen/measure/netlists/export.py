"""Netlists of a measurement for other tools: with constraints, wires, activity, and a script of OpenSTA."""

from __future__ import annotations

from collections.abc import Mapping

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.mapping import area
from hwgen.mapping.yosys import recipe
from hwgen.measure.netlists.built import build_both
from hwgen.measure.netlists.energy import core_activities
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.netlist.export import netlist_verilog
from hwgen.netlist.link import link
from hwgen.power.estimate import estimate
from hwgen.power.export import saif, vcd
from hwgen.power.glitch import Gates
from hwgen.power.opensta_script import script
from hwgen.report import schema
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing import analysis as timing
from hwgen.timing.export import sdc, spef

__all__ = ["WAVES", "as_built", "as_mapped", "built", "texts"]

WAVES = 16
"""Cycles of exported waveforms."""


def as_mapped(
    config: TensorCoreConfig,
    recipes: Mapping[str, str],
    flow: Flow,
    clock_ns: float,
    stimulus: Stimulus,
    waves: bool = False,
) -> dict[str, str]:
    """The netlist of the first run as it was mapped, and its activity at work: texts by suffix of a file's name.

    Netlist, activity, constraints, wires, and a script of OpenSTA that finds them by the names of
    `hwgen.power.opensta_script.FILES`.

    Parameters
    ----------
    config
        The core.
    recipes
        Name of the recipe of each module; there may be others.
    flow
        Library and conditions of the syntheses.
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
    mapped = _mapped({config.name: (design, recipes)}, flow)[config.name]
    modules = area.buffered(mapped, design.source, flow.library)
    netlist = link(modules, TensorCore.module_name, flow.library)
    return texts(config, Gates(netlist, timing.analyse(netlist)), clock_ns, stimulus, waves)


def as_built(
    config: TensorCoreConfig,
    closing: Mapping[str, schema.Closing],
    physical: Physical,
    flow: Flow,
    clock_ns: float,
    stimulus: Stimulus,
    waves: bool = False,
) -> dict[str, dict[str, str]]:
    """The netlists of the first run as they were built at a clock, with the wires of their placement, by purpose.

    That for least energy is the one that power is stated of. Where it misses the clock, or what was built for least
    area spends less, it is the same as that.

    Parameters
    ----------
    config
        The core.
    closing
        Lanes and recipes for each of `hwgen.measure.netlists.built.PURPOSES`, and the clock that they were built for.
    physical
        Where wires come from.
    flow, clock_ns, stimulus, waves
        As of `as_mapped`.

    Raises
    ------
    InputError
        As of `as_mapped`.
    """
    return {
        purpose: texts(design.config, gates, clock_ns, stimulus, waves)
        for purpose, (design, gates) in built(config, closing, physical, flow, stimulus).items()
    }


def built(
    config: TensorCoreConfig,
    closing: Mapping[str, schema.Closing],
    physical: Physical,
    flow: Flow,
    stimulus: Stimulus,
) -> dict[str, tuple[Design, Gates]]:
    """A core as it was built for each purpose in the first run; parameters as of `as_built`."""
    designs = {purpose: Design(how.of(config), TensorCore) for purpose, how in closing.items()}
    modules = _mapped({purpose: (designs[purpose], how.first or how.recipes) for purpose, how in closing.items()}, flow)
    (clock_ns,) = {how.clock_ns for how in closing.values()}
    both = build_both(designs, modules, clock_ns, physical, flow.library, stimulus.run(0))
    # The netlist for least area may be taken for least energy, too: it has the lanes of its own.
    of = {id(closed): designs[purpose] for purpose, closed in both.closed.items()}
    return {purpose: (of[id(taken)], Gates(taken.netlist, taken.timing)) for purpose, taken in both.taken.items()}


def _mapped(wanted: Mapping[str, tuple[Design, Mapping[str, str]]], flow: Flow) -> dict[str, dict[str, area.Body]]:
    """The mapped modules of the first run of some designs by the recipes of each; equal ones are the same object."""
    chosen = {
        key: {module: recipe(recipes[module]) for module in area.counts(design.source)}
        for key, (design, recipes) in wanted.items()
    }
    jobs = [job for key, (design, _) in wanted.items() for job in design.plan_chosen(chosen[key], [0])]
    bodies = flow.synthesise(jobs, "synthesis")
    return {key: design.chosen(bodies, chosen[key], 0) for key, (design, _) in wanted.items()}


def texts(
    config: TensorCoreConfig, gates: Gates, clock_ns: float, stimulus: Stimulus, waves: bool = False
) -> dict[str, str]:
    """All files of a netlist, by suffix; parameters as of `as_mapped`.

    Raises
    ------
    InputError
        The netlist is too slow for the clock.
    """
    netlist, times = gates.netlist, gates.timing
    if times.delay > clock_ns:
        raise InputError(
            f"clock of {clock_ns:g} ns: the netlist to export takes {times.delay:.4g} ns; choose a longer period"
        )
    wires = "of its placement" if times.wires.kind == "placed" else f"{times.wire_load:.6g} fF per fanout"
    settled, timed = core_activities(gates, config, config.formats, stimulus)
    found = estimate(netlist, times, timed, 1000 / clock_ns)
    header = [
        f"{config.name}, {netlist.library.name}, first run of a study by hwgen. Power at the activity of the SAIF file"
        f" and {clock_ns:g} ns:",
        ", ".join(f"{kind} {value:.6g} mW" for kind, value in found.mw.items() if kind != "clock_tree")
        + f"; total {found.total_mw:.6g} mW.",
        f"Wires {wires}, {times.output_load:.6g} fF at outputs, input slew"
        f" {times.input_slew:.6g} ns, ideal clock; no clock tree, nets from the input ports in no figure.",
        f"Longest path {times.delay:.6g} ns.",
    ]
    files = {
        "v": netlist_verilog(netlist, header),
        "saif": saif(netlist, timed, clock_ns),
        "sdc": sdc(netlist, times, clock_ns),
        "spef": spef(netlist, times.wires),
        "tcl": script(netlist, netlist.library.paths),
    }
    if waves:
        values = settled.kept[:WAVES, 0]
        files["vcd"] = vcd(netlist, gates.settled(values[0]), gates.events(values), len(values), clock_ns)
    return files
