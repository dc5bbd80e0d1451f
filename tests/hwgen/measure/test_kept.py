"""Builds that are kept: what was built once is read, the same in every figure."""

import dataclasses
from pathlib import Path

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import TensorCoreConfig
from hwgen.mapping.area import BLOCKS
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.kept import KeptFlow
from hwgen.measure.netlists.built import PURPOSES
from hwgen.measure.netlists.physical import Physical
from hwgen.measure.netlists.stimulus import Stimulus
from hwgen.measure.runs import Run, measured
from hwgen.measure.search.score import Aim, Score
from hwgen.measure.search.selected import Selected

CELLS = reader.load(libraries.path("generic7"))
# The core of test_at_clock, so that both find its syntheses in one cache.
PIPELINE = ("decoded", "sums", "terms", "aligned", "total", "normal")
CONFIG = TensorCoreConfig(
    "nvfp4-fast", "nvfp4", "nvfp4", rows=1, columns=1, groups=1, pipeline=PIPELINE, clock_gating=True
)
STIMULUS = Stimulus(streams=4, tiles=1, steps_per_tile=8, timed=8)
HOW = [RECIPES["speed"]]


def run_of(cache: Path, aim: Aim, config: TensorCoreConfig = CONFIG) -> Run:
    selected = Selected(
        {(config.name, purpose): config for purpose in PURPOSES},
        {(config.name, purpose): dict.fromkeys(BLOCKS, HOW[0]) for purpose in PURPOSES},
        {(config.name, purpose): (config, HOW[0]) for purpose in PURPOSES},
        0,
    )
    flow = KeptFlow(CELLS, cache, workers=1)
    configs = {config.name: config}
    return measured([0], configs, config, selected, aim, HOW, 200, flow, {config.name: []})[config.name][0]


def test_a_run_is_built_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read as it was: all of it, formats, tuples and all. Another clock is another build."""
    aim = Aim(2.0, Physical("fanout"), STIMULUS)
    built = run_of(cache, aim)
    assert set(built.records) == {(purpose, scope) for purpose in PURPOSES for scope in ("lane array", "core")}

    class NotReadError(Exception):
        pass

    def build(*_: object, **__: object) -> None:
        raise NotReadError

    monkeypatch.setattr("hwgen.measure.netlists.built.build", build)
    assert run_of(cache, aim) == built
    for other in (dataclasses.replace(aim, clock_ns=2.1), dataclasses.replace(aim, stimulus=Stimulus(seed=2))):
        with pytest.raises(NotReadError):
            run_of(cache, other)


def test_what_was_done_before_a_kill_stays_done(tmp_path: Path) -> None:
    done: list[int] = []
    killed = 2

    def score(number: int) -> Score:
        if number == killed:
            raise KeyboardInterrupt
        done.append(number)
        return Score(0.0, float(number), {"element": 0.5})

    flow = KeptFlow(CELLS, tmp_path, workers=1)
    tasks = [(number,) for number in range(4)]
    with pytest.raises(KeyboardInterrupt):
        list(flow.each(score, tasks, "search"))
    assert done == [0, 1]
    killed = -1
    found = list(flow.each(score, tasks, "search"))
    assert done == [0, 1, 2, 3]
    assert found == [Score(0.0, float(number), {"element": 0.5}) for number in range(4)]
    assert list(flow.each(score, tasks[::-1], "search")) == found[::-1]
    assert done == [0, 1, 2, 3]


def test_other_results_are_not_kept(tmp_path: Path) -> None:
    """And nothing is, where there is no cache."""
    flow = KeptFlow(CELLS, tmp_path, workers=1)
    assert list(flow.each(int, [("7",)], "other")) == [7]
    assert not list(tmp_path.rglob("*.gz"))
    done = []

    def score(number: int) -> Score:
        done.append(number)
        return Score(0.0, 1.0)

    nothing = KeptFlow(CELLS, None, workers=1)
    assert len([*nothing.each(score, [(1,)], ""), *nothing.each(score, [(1,)], "")]) == len(done) == 2
