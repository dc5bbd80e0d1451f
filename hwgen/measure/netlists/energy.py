"""What the netlists of one run consume, by block and kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hwgen.config import TensorCoreConfig
from hwgen.formats import Formats
from hwgen.mapping.area import block_of, in_element
from hwgen.measure.netlists.checks import core_inputs, lane_inputs, lead
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.netlist.graph import Netlist
from hwgen.power.activity import Activity, simulate
from hwgen.power.carried import carried
from hwgen.power.clock_tree import clock_tree
from hwgen.power.consumption import DYNAMIC, Consumption
from hwgen.power.estimate import consumption, entering_fj
from hwgen.power.glitch import Gates, with_glitches
from hwgen.report.schema import ENTERING
from hwgen.timing.analysis import Timing

__all__ = [
    "AtWork",
    "core_activities",
    "core_activity",
    "core_energy",
    "lane_activity",
    "lane_energy",
    "of_activity",
    "sampled_energy",
    "single_block",
]


def _entering(energy_fj: Mapping[str, float]) -> Consumption:
    """Of the drivers outside of a scope, by kind."""
    return Consumption({ENTERING: {**dict.fromkeys(DYNAMIC, 0.0), **energy_fj}}, {ENTERING: 0.0})


def of_activity(netlist: Netlist, timing: Timing, activity: Activity, elements: int = 0) -> dict[str, Consumption]:
    """Consumption at one activity: of the whole netlist (``whole``), and of a mean element (``element``).

    Parameters
    ----------
    netlist, timing, activity
        The netlist, its slews and loads, its toggles.
    elements
        How many elements it has; 0 leaves them out.
    """
    spent = consumption(netlist, timing, activity, clock_tree(netlist, timing))
    everything = np.ones(netlist.n_cells, bool)
    entering = _entering(entering_fj(netlist, timing, activity, everything))
    found = {"whole": spent.renamed(block_of) + entering}
    if elements:
        paths = [path for path in netlist.blocks if in_element(path)]
        inside = np.array([path in paths for path in netlist.blocks])[netlist.cell_block]
        entering = _entering(entering_fj(netlist, timing, activity, inside))
        own = spent.within(paths.__contains__).renamed(block_of)
        found["element"] = (own + entering).scaled(1 / elements)
    return found


def core_activity(
    gates: Gates, config: TensorCoreConfig, operands: Formats, stimulus: Stimulus, states: bool = True
) -> Activity:
    """Activity of a core without delays, with the values of ``gates.sources``; parameters as of `core_energy`.

    Those of its cells are counted if ``states`` asks for it.
    """
    stimulus = stimulus.fitted(config.macs_per_step)
    given = core_inputs(config, stimulus.steps(config, operands))
    warmup = lead(config) + config.latency
    if stimulus.traffic != "busy":
        # The second half of the cycles, when what was under way has come to rest.
        half = len(given["rst"]) // 2
        warmup += half + 1
        if stimulus.traffic != "idle, inputs toggle":
            given["step__payload"][half:] = given["step__payload"][half]
            given["addend__payload"][half + config.entrance :] = given["addend__payload"][half + config.entrance]
        if stimulus.traffic == "stalled":
            given["result__ready"][half:] = 0
            given["step__payload"][half:, :, -2] = 0  # `first`: it needs no C
            given["step__payload"][half:, :, -1] = 1  # `last`: only a step with a result can wait for its taker
        else:
            given["step__valid"][half:] = 0
        # The last steps may still need their C.
        given["addend__valid"][half + config.entrance :] = 0
    return simulate(gates.netlist, given, warmup=warmup, keep=gates.sources, states=states)


def core_activities(
    gates: Gates, config: TensorCoreConfig, operands: Formats, stimulus: Stimulus
) -> tuple[Activity, Activity]:
    """Activity of a core without delays and with glitches; parameters as of `core_energy`."""
    settled = core_activity(gates, config, operands, stimulus)
    return settled, with_glitches(settled, gates)


def lane_activity(
    gates: Gates, config: TensorCoreConfig, operands: Formats, stimulus: Stimulus, states: bool = True
) -> Activity:
    """As `core_activity`, of a lane array: a new block per cycle."""
    single = single_block(config)
    given = lane_inputs(single, stimulus.fitted(config.bounds.lanes).steps(single, operands))
    return simulate(gates.netlist, given, keep=gates.sources, states=states)


class AtWork:
    """Toggles of a design at work, glitches included, while it gets other sizes and buffers.

    Its logic is simulated once; only the glitches follow from each timing anew, those of a sample of the cycles.

    Parameters
    ----------
    config
        The configuration.
    stimulus
        The operands, of the formats of the configuration.
    core
        Whether the design is a core; else a lane array.
    """

    def __init__(self, config: TensorCoreConfig, stimulus: Stimulus, core: bool) -> None:
        self._config, self._stimulus, self._core = config, stimulus, core
        self._first: tuple[Netlist, Activity] | None = None

    def __call__(self, netlist: Netlist, timing: Timing) -> np.ndarray:
        """Transitions of each net in a cycle, shape (n_nets,)."""
        config, gates = self._config, Gates(netlist, timing)
        settled = None
        if self._first is not None:
            first, activity = self._first
            settled = carried(activity, first, netlist)
        if settled is None:
            simulated = core_activity if self._core else lane_activity
            settled = simulated(gates, config, config.formats, self._stimulus, states=False)
            self._first = netlist, settled
        return with_glitches(settled, gates, _sample(config, self._stimulus, self._core)).toggles


def sampled_energy(gates: Gates, config: TensorCoreConfig, stimulus: Stimulus, core: bool) -> Consumption:
    """Energy of a core or else of a lane array, whole, the glitches of a sample of the cycles alone.

    Parameters
    ----------
    gates, config, stimulus, core
        As for `core_energy` and `AtWork`.
    """
    settled = (core_activity if core else lane_activity)(gates, config, config.formats, stimulus)
    timed = with_glitches(settled, gates, _sample(config, stimulus, core))
    return of_activity(gates.netlist, gates.timing, timed)["whole"]


def _sample(config: TensorCoreConfig, stimulus: Stimulus, core: bool) -> int:
    """How many cycles are simulated with delays where a sample of them will do."""
    return stimulus.fitted(config.macs_per_step if core else config.bounds.lanes).timed


def core_energy(
    gates: Gates, config: TensorCoreConfig, operands: Formats, stimulus: Stimulus, glitches_only: bool = False
) -> dict[tuple[str, str], Consumption]:
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
    settled, timed = core_activities(gates, config, operands, stimulus)
    found = {}
    for delays, seen in (("timed", timed), ("settled", settled))[: 1 if glitches_only else 2]:
        energies = of_activity(gates.netlist, gates.timing, seen, config.rows * config.columns)
        found["core", delays], found["element", delays] = energies["whole"], energies["element"]
    return found


def single_block(config: TensorCoreConfig) -> TensorCoreConfig:
    """The core whose steps are a lane array's blocks."""
    return replace(config, rows=1, columns=1, groups=1)


def lane_energy(
    gates: Gates, config: TensorCoreConfig, operands: Formats, stimulus: Stimulus
) -> dict[tuple[str, str], Consumption]:
    """Energy of a lane array, a new block per cycle; as `core_energy`, the scope being ``lane array``."""
    settled = lane_activity(gates, config, operands, stimulus)
    timed = with_glitches(settled, gates)
    return {
        ("lane array", delays): of_activity(gates.netlist, gates.timing, seen)["whole"]
        for delays, seen in (("settled", settled), ("timed", timed))
    }
