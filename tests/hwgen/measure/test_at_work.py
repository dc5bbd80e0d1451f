"""What a design does at work while it is closed: carried from netlist to netlist, and equal to a simulation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.config import TensorCoreConfig
from hwgen.measure.netlists import energy
from hwgen.measure.netlists.built import build
from hwgen.measure.netlists.energy import AtWork
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.netlist.graph import Netlist
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing.analysis import Timing

CELLS = reader.load(libraries.path("generic7"))
STIMULUS = Stimulus(streams=16, tiles=2, steps_per_tile=8)
CONFIG = TensorCoreConfig(
    "four", "mixfp4", "mixfp4", rows=1, columns=1, groups=1, pipeline=("decoded", "terms"), clock_gating=True
)


@pytest.mark.parametrize(("kind", "clock_ns"), [(TensorCore, 1.6), (LaneArray, 0.7)])
def test_every_netlist_of_a_closure_does_what_a_simulation_says(
    kind: type[Block],
    clock_ns: float,
    cache: Path,
    mapped: Callable[[Design, Flow, str], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock is one for which buffers and repeaters go in."""
    sizes = []
    simulated = []
    simulate = energy.simulate

    class Compared(AtWork):
        def __call__(self, netlist: Netlist, timing: Timing) -> np.ndarray:
            with monkeypatch.context() as patch:
                patch.setattr(energy, "simulate", lambda *a, **k: simulated.append(1) or simulate(*a, **k))
                found = super().__call__(netlist, timing)
            anew = AtWork(CONFIG, STIMULUS, kind is TensorCore)(netlist, timing)
            assert np.array_equal(found, anew)
            sizes.append(netlist.n_cells)
            return found

    monkeypatch.setattr("hwgen.measure.netlists.built.AtWork", Compared)
    design = Design(CONFIG, kind)
    modules = mapped(design, Flow(CELLS, cache), "speed")
    build(design, modules, clock_ns, "energy", Physical(), CELLS, STIMULUS)
    assert len(set(sizes)) > 1
    assert len(simulated) == 1
