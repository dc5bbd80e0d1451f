"""What the netlists of one run consume, by block and kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hwgen.config import TensorCoreConfig
from hwgen.formats import BlockFormat
from hwgen.mapping.area import ENTERING, block_of
from hwgen.measure.checks import core_inputs, lane_inputs
from hwgen.measure.figures import Energy
from hwgen.measure.stimulus import Stimulus
from hwgen.netlist.graph import Netlist
from hwgen.power.activity import Activity, simulate
from hwgen.power.clock_tree import energy_per_sink
from hwgen.power.estimate import KINDS, entering_fj, estimate
from hwgen.power.glitch import Gates, with_glitches
from hwgen.timing.analysis import Timing

__all__ = ["core_activity", "core_energy", "lane_energy", "of_activity", "single_block"]

_NANOWATT_MHZ = 1.0
"""MHz at which fJ per cycle are nW: there leakage is what it is."""


def _merged(parts: Mapping[str, Mapping[str, float]], share: float = 1.0) -> Energy:
    """Module paths to blocks."""
    found: dict[str, dict[str, float]] = {}
    for path, kinds in parts.items():
        block = found.setdefault(block_of(path), dict.fromkeys(KINDS, 0.0))
        for kind, value in kinds.items():
            block[kind] += share * value
    return found


def _entering(energy_fj: float) -> dict[str, dict[str, float]]:
    return {ENTERING: {**dict.fromkeys(KINDS, 0.0), "switching": energy_fj}}


def of_activity(netlist: Netlist, timing: Timing, activity: Activity, elements: int = 0) -> dict[str, Energy]:
    """Energy at one activity: of the whole netlist (``whole``), and of one of its elements (``element``), the mean.

    Parameters
    ----------
    netlist, timing, activity
        The netlist, its slews and loads, its toggles.
    elements
        How many elements it has; 0 leaves them out.
    """
    power = estimate(netlist, timing, activity, _NANOWATT_MHZ, energy_per_sink(netlist, timing))
    everything = np.ones(netlist.n_cells, bool)
    entering = _entering(entering_fj(netlist, timing, activity, everything))
    found = {"whole": _merged({**power.by_block, **entering})}
    if elements:
        paths = [path for path in netlist.blocks if path.split("/")[1:2] == ["element"]]
        inside = np.array([path in paths for path in netlist.blocks])[netlist.cell_block]
        entering = _entering(entering_fj(netlist, timing, activity, inside))
        found["element"] = _merged({**{path: power.by_block[path] for path in paths}, **entering}, 1 / elements)
    return found


def core_activity(
    gates: Gates, config: TensorCoreConfig, operands: tuple[BlockFormat, BlockFormat], stimulus: Stimulus
) -> Activity:
    """Activity of a core without delays, with the values of ``gates.sources``; parameters as of `core_energy`."""
    stimulus = stimulus.fitted(config.macs_per_step)
    given = core_inputs(config, stimulus.steps(config, operands))
    warmup = config.latency
    if stimulus.traffic != "busy":
        # The second half of the cycles, when what was under way has come to rest.
        half = len(given["rst"]) // 2
        warmup += half + 1
        if stimulus.traffic != "idle, inputs toggle":
            given["step__payload"][half:] = given["step__payload"][half]
        if stimulus.traffic == "stalled":
            given["result__ready"][half:] = 0
            given["step__payload"][half:, :, -1] = 1  # `last`: only a step with a result can wait for its taker
        else:
            given["step__valid"][half:] = 0
    return simulate(gates.netlist, given, warmup=warmup, keep=gates.sources)


def core_energy(
    gates: Gates,
    config: TensorCoreConfig,
    operands: tuple[BlockFormat, BlockFormat],
    stimulus: Stimulus,
    glitches_only: bool = False,
) -> dict[tuple[str, str], Energy]:
    """Energy of a core.

    Parameters
    ----------
    gates
        The core.
    config
        Its configuration.
    operands
        Formats of A and B.
    stimulus
        The operands, and whether there are any.
    glitches_only
        Leave out what the cores would consume without glitches.

    Returns
    -------
    dict
        By scope, ``core`` or ``element``, and by delays: ``timed``, or ``settled`` without glitches.
    """
    settled = core_activity(gates, config, operands, stimulus)
    timed = with_glitches(settled, gates, stimulus.fitted(config.macs_per_step).timed)
    found = {}
    for delays, seen in (("timed", timed), ("settled", settled))[: 1 if glitches_only else 2]:
        energies = of_activity(gates.netlist, gates.timing, seen, config.rows * config.columns)
        found["core", delays], found["element", delays] = energies["whole"], energies["element"]
    return found


def single_block(config: TensorCoreConfig) -> TensorCoreConfig:
    """The core whose steps are a lane array's blocks."""
    return replace(config, rows=1, columns=1, groups=1)


def lane_energy(
    netlist: Netlist,
    timing: Timing,
    config: TensorCoreConfig,
    operands: tuple[BlockFormat, BlockFormat],
    stimulus: Stimulus,
) -> dict[tuple[str, str], Energy]:
    """Energy of a lane array, a new block per cycle; as `core_energy`, the scope being ``lane array``."""
    gates = Gates(netlist, timing)
    single = single_block(config)
    stimulus = stimulus.fitted(config.bounds.lanes)
    given, _ = lane_inputs(single, stimulus.steps(single, operands))
    settled = simulate(netlist, given, keep=gates.sources)
    timed = with_glitches(settled, gates, stimulus.timed)
    return {
        ("lane array", delays): of_activity(netlist, timing, seen)["whole"]
        for delays, seen in (("settled", settled), ("timed", timed))
    }
