"""Campaigns: batches, seeds, and a core that has been broken on purpose."""

import json
import sys

import numpy as np
import pytest
from amaranth.lib import stream

from hwgen import cli
from hwgen.config import TensorCoreConfig
from hwgen.rtl.tensor_core import TensorCore, step_layout
from sim import verify
from sim.engines import AmaranthEngine, available
from sim.verify import campaign

CORE = TensorCoreConfig("core", "mixfp4", "mixfp4", 2, 1, 1)
TINY = TensorCoreConfig("tiny", "nvfp4", "nvfp4", 1, 2, 1)  # as in tests/sim/engines/test_streams.py


def events(outcome):
    return {name: counts.tolist() for name, counts in outcome.counts.items()}


def test_a_seed_gives_the_same_steps_again(oracle):
    runs = [verify.verify(oracle(CORE), 1500 * 32, seed, workers=1) for seed in (1, 1, 2)]
    assert all(run.steps == 1500 and run.macs == 48_000 for run in runs)
    assert events(runs[0]) == events(runs[1]) != events(runs[2])
    batches = [verify.stimulus_of(CORE, 1, batch, 50).steps.a_codes for batch in (0, 1)]
    assert (batches[0] != batches[1]).any()


def test_processes_side_by_side(compiled):
    """In other processes, with engines of their own, the same as in this one."""
    engine = compiled(TINY)
    macs = (2 * verify.batch_steps(TINY) + 7) * TINY.macs_per_step
    seen = []
    runs = [verify.verify(engine, macs, 4, workers, lambda *done: seen.append(done)) for workers in (1, 2)]
    assert events(runs[0]) == events(runs[1])
    assert runs[0].as_dict() == runs[1].as_dict()
    assert seen[:4] == seen[4:]
    assert seen[3] == (macs // 32, macs // 32)


def test_long_runs_have_faster_engines(compiled, monkeypatch):
    engine, macs, asked = compiled(TINY), (verify.batch_steps(TINY) + 7) * TINY.macs_per_step, []
    made = campaign.engine

    def asking(*arguments):
        asked.append(arguments)
        return made(*arguments)

    monkeypatch.setattr(campaign, "engine", asking)
    short = verify.verify(engine, macs, 4, 2)
    assert asked == []
    monkeypatch.setattr(campaign, "_LONG", macs)
    assert verify.verify(engine, macs, 4, 2).as_dict() == short.as_dict()
    assert asked == [(TINY, "compiled", True)]


def test_macs_are_rounded_up_to_steps(oracle):
    assert verify.verify(oracle(CORE), 33, workers=1).macs == 64


def test_steps_at_half_rate_count_half(oracle):
    """Both modes do as many products, and no more are claimed than are done."""
    config = TensorCoreConfig("core", "nvfp4", "nvfp4", 2, 1, 1, slot="full")
    for macs in (1, 33, 100_000, 131_073, 200_001):
        outcome = verify.verify(oracle(config), macs, workers=1)
        assert outcome.macs == 32 * (outcome.steps - outcome.half) + 16 * outcome.half
        assert macs <= outcome.macs < macs + 32 * len(outcome.sizes)
        assert outcome.as_dict()["macs_at_half_rate"] == 16 * outcome.half
        assert abs(outcome.macs - 2 * outcome.macs_at_half_rate) <= 32 * len(outcome.sizes)
    assert "macs_at_half_rate" not in verify.verify(oracle(CORE), 1, workers=1).as_dict()


def test_it_ends_with_the_first_mismatch(wrong, tmp_path):
    config = TensorCoreConfig("core", "mixfp4", "mixfp4", 2, 1, 1)
    engine = wrong(config)
    calls = []
    outcome = verify.verify(engine, 10**7, 3, 1, lambda done, total: calls.append(done))
    assert outcome.failure is not None
    assert outcome.steps == outcome.failure.batch * verify.batch_steps(config) == calls[-1]
    assert outcome.steps < 10**7 // 32 - 4096
    assert "the golden model says" in outcome.failure.mismatch.reason
    assert outcome.as_dict()["mismatch"]["batch"] == outcome.failure.batch

    path = tmp_path / "vectors.npz"
    small = verify.reproduce(outcome, engine, path)
    assert len(small.steps) == 1
    assert verify.check(engine, verify.load(path)) is not None
    with np.load(path, allow_pickle=False) as arrays:
        assert json.loads(str(arrays["about"]))["origin"]["seed"] == 3


def test_nothing_to_reproduce(oracle, tmp_path):
    engine = oracle(CORE)
    with pytest.raises(ValueError, match="nothing has failed"):
        verify.reproduce(verify.verify(engine, 32, workers=1), engine, tmp_path / "vectors.npz")
    assert list(tmp_path.iterdir()) == []


def test_the_shortest_run_comes_to_an_end():
    """Whatever the seed: something is offered and something taken."""
    for seed in range(600):
        stimulus = verify.stimulus_of(CORE, seed, 0, 1)
        for pattern in stimulus.patterns.values():
            assert pattern.bits.any()


class Broken(TensorCore):
    """Takes -6 for 4 where it meets 3 in lane 9."""

    def elaborate(self, platform):
        outside, self.step = self.step, stream.Signature(step_layout(self.config)).flip().create()
        m = super().elaborate(platform)
        inside, self.step = self.step, outside
        m.d.comb += [inside.payload.eq(outside.payload), inside.valid.eq(outside.valid), outside.ready.eq(inside.ready)]
        a, b = outside.payload.a.codes[0][0][9], outside.payload.b.codes[0][0][9]
        with m.If((a == 15) & (b == 5)):
            m.d.comb += inside.payload.a.codes[0][0][9].eq(6)
        return m


@pytest.mark.skipif(not available(), reason="no C++ compiler: set CXX, or put c++, g++ or clang++ on PATH")
def test_a_broken_core_is_found_shrunk_and_replayed(monkeypatch, capsys, tmp_path):
    """Through the command: RTL with one wrong product, compiled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sim.engines.compiled.TensorCore", Broken)
    (tmp_path / "a core.toml").write_text(
        'name = "tiny"\na = "nvfp4"\nb = "nvfp4"\nrows = 1\ncolumns = 2\ngroups = 1\npipeline = ["operands", "terms"]\n'
    )

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["hwgen", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    status, out, err = run(
        "verify", "--config", "a core.toml", "--macs", "1e7", "--jobs", "1", "--out", "o p", "--json"
    )
    assert status == 1
    found = json.loads(out)
    assert (found["mismatch"]["batch"], found["reproducer"]) == (0, "o p/verify-tiny-1.npz")
    assert err.startswith("hwgen: mismatch: seed 1, batch 0, step ")
    assert err.endswith("hwgen replay 'o p/verify-tiny-1.npz'\n")
    assert err.count("\n") == 1

    path = "o p/verify-tiny-1.npz"
    steps = verify.load(tmp_path / path).steps
    assert len(steps) == 1
    assert np.argwhere(steps.a_codes).tolist() == [[0, 0, 9]]
    assert np.argwhere(steps.b_codes).tolist() == [[0, 0, 9]]
    assert np.count_nonzero(steps.a_scales) == np.count_nonzero(steps.b_scales) == 1

    status, out, err = run("simulate", "--replay", path, "--json")
    assert status == 1
    assert json.loads(out)["mismatch"] in err
    # A sound core, in the other simulator, takes the same vectors.
    status, out, err = run("replay", path, "--engine", "python")
    assert (status, err) == (0, "")
    assert AmaranthEngine.name in out
