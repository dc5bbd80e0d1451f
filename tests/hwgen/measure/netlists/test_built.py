"""Which of the netlists built for both purposes counts for energy."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import TensorCoreConfig
from hwgen.measure.netlists import built
from hwgen.measure.netlists.built import PURPOSES, build_both, energies, spent
from hwgen.measure.netlists.energy import sampled_energy
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.power.consumption import DYNAMIC, Consumption
from hwgen.power.glitch import Gates
from hwgen.rtl.lane_array import LaneArray

CELLS = reader.load(libraries.path("generic7"))
STIMULUS = Stimulus(streams=16, tiles=2, steps_per_tile=8)
CONFIG = TensorCoreConfig("four", "mixfp4", "mixfp4", rows=1, columns=1, groups=1)
DESIGN = Design(CONFIG, LaneArray)
CLOCK_NS = 1.0


def test_what_spends_least_counts_for_energy(
    cache: Path, mapped: Callable[[Design, Flow, str], dict[str, Any]]
) -> None:
    modules = mapped(DESIGN, Flow(CELLS, cache), "speed")
    both = build_both(
        dict.fromkeys(PURPOSES, DESIGN), dict.fromkeys(PURPOSES, modules), CLOCK_NS, Physical(), CELLS, STIMULUS
    )
    found = {purpose: energies(DESIGN, each, STIMULUS) for purpose, each in both.closed.items()}
    least = min((p for p in PURPOSES if both.closed[p].record.met), key=lambda p: spent(DESIGN, found[p], CLOCK_NS))
    assert both.frugal is both.closed[least]
    assert both.spent == found[least]
    for purpose, each in both.closed.items():
        sample = sampled_energy(Gates(each.netlist, each.timing), CONFIG, STIMULUS, core=False)
        assert built.per_cycle(sample, CLOCK_NS) == pytest.approx(spent(DESIGN, found[purpose], CLOCK_NS), rel=0.02)


@pytest.mark.parametrize(
    ("met", "sampled", "whole", "frugal", "simulated"),
    [
        ("area energy", (1.02, 1.0), (0.5, 1.0), "energy", 1),
        ("area energy", (1.0, 1.02), (1.0, 0.5), "area", 1),
        ("area energy", (1.005, 1.0), (0.999, 1.0), "area", 2),
        ("area energy", (1.0, 1.005), (1.0, 0.999), "energy", 2),
        ("area", (2.0, 1.0), (2.0, 1.0), "area", 1),
        ("energy", (1.0, 2.0), (1.0, 2.0), "energy", 1),
        ("", (1.0, 2.0), (1.0, 2.0), "area", 1),
    ],
)
def test_all_cycles_decide_between_netlists_that_a_sample_finds_near(
    met: str,
    sampled: tuple[float, float],
    whole: tuple[float, float],
    frugal: str,
    simulated: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sample decides where they are not; what misses the clock counts where nothing else meets it."""
    closed = {
        purpose: SimpleNamespace(record=SimpleNamespace(met=purpose in met.split()), netlist=place, timing=None)
        for place, purpose in enumerate(PURPOSES)
    }

    def consumption(energy_fj: float) -> Consumption:
        return Consumption({"logic": {**dict.fromkeys(DYNAMIC, 0.0), DYNAMIC[0]: energy_fj}}, {"logic": 0.0})

    seen = []

    def all_cycles(_: Design, each: Any, __: Stimulus) -> dict[tuple[str, str], Consumption]:
        seen.append(each)
        return {("lane array", "timed"): consumption(whole[each.netlist])}

    monkeypatch.setattr(built, "Gates", lambda netlist, _: netlist)
    monkeypatch.setattr(built, "sampled_energy", lambda place, *_: consumption(sampled[place]))
    monkeypatch.setattr(built, "energies", all_cycles)
    monkeypatch.setattr(built, "build", lambda _, __, ___, purpose, *____, **_____: closed[purpose])
    both = build_both(dict.fromkeys(PURPOSES, DESIGN), {key: {} for key in PURPOSES}, 1.0, Physical(), CELLS, STIMULUS)
    assert both.frugal is closed[frugal]
    assert both.spent["lane array", "timed"].total_fj == whole[PURPOSES.index(frugal)]
    assert len(seen) == simulated
