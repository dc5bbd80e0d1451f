"""Cycle counts, gaps, stalls and ``last``: alike on both engines."""

import dataclasses

import numpy as np
import pytest
from amaranth.hdl import Module, Signal

from hwgen.config import PIPELINE_REGISTERS, TensorCoreConfig
from hwgen.errors import ToolError
from hwgen.rtl.tensor_core import TensorCore
from sim import golden, tensors
from sim.engines import AmaranthEngine, CompiledEngine, Pattern, always
from sim.random import random_steps
from sim.steps import gather, schedule

PIPELINES = {
    "none": (),
    "operands": ("operands",),
    "terms": ("terms",),
    "both": ("operands", "terms"),
    "T2": ("sums", "total"),
    "T6": PIPELINE_REGISTERS,
}
pipelines = pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)


def tiny(pipeline=PIPELINES["both"]):
    return TensorCoreConfig("tiny", "nvfp4", "nvfp4", 1, 2, 1, pipeline=pipeline)


def drawn(config, count, seed, first=None, last=None):
    steps = random_steps(config, count, np.random.default_rng(seed))
    flags = {"first": first, "last": last}
    return dataclasses.replace(
        steps, **{name: np.resize(np.array(flag, bool), count) for name, flag in flags.items() if flag is not None}
    )


def pattern(share, seed):
    """True in about ``share`` of all cycles, in runs."""
    rng = np.random.default_rng(seed)
    bits = np.repeat(rng.random(1000) < share, rng.integers(1, 4, 1000))
    return lambda cycle: bool(bits[cycle % len(bits)])


@pytest.fixture(params=["python", "compiled"])
def make(request):
    """Each engine in turn."""
    return request.getfixturevalue(request.param)


@pytest.mark.sampled(2)
@pipelines
def test_engines_agree_on_results_and_cycles(pipeline, compiled, python):
    config = tiny(pipeline)
    steps = drawn(config, 16, 1)
    want = steps.expected()
    shares = [(1, 1, 0.5), (0.5, 1, 1), (1, 0.4, 1), (0.5, 0.5, 0.5), (0.8, 0.8, 0.15), (0.15, 0.15, 0.8)]
    for seed, (offered, supplied, taken) in enumerate(shares):
        streams = {
            "offer": pattern(offered, seed),
            "supply": pattern(supplied, 70 + seed),
            "take": pattern(taken, 50 + seed),
        }
        runs = [make(config).run(steps, **streams) for make in (compiled, python)]
        for run in runs:
            np.testing.assert_array_equal(run.results, want)
        assert runs[0].cycles == runs[1].cycles >= len(steps) + config.latency
        for name in ("handshakes", "accepted", "supplied"):
            np.testing.assert_array_equal(getattr(runs[0], name), getattr(runs[1], name))
        assert (np.diff(runs[0].accepted) > 0).all()
        check_handshakes(runs[0], steps)


def check_handshakes(run, steps):
    """Every cycle is counted once; so is every step accepted and every result taken."""
    assert run.handshakes.sum() == run.cycles
    assert run.handshakes[1, 1].sum() == len(steps) == (run.accepted >= 0).sum()
    assert run.handshakes[:, :, 1, 1].sum() == (run.supplied >= 0).sum()
    assert run.handshakes[..., 1, 1].sum() == steps.last.sum()


def test_a_pattern_goes_round(compiled, python):
    config = tiny()
    steps = drawn(config, 40, 13)
    bits = np.random.default_rng(13).random(37) < 0.5
    streams = {"offer": Pattern(bits), "supply": Pattern(np.roll(bits, 5)), "take": Pattern(~bits)}
    plain = {name: pattern.bits.tolist() for name, pattern in streams.items()}
    functions = {name: lambda cycle, bits=bits: bits[cycle % 37] for name, bits in plain.items()}
    runs = [make(config).run(steps, **how) for make in (compiled, python) for how in (streams, functions)]
    for run in runs:
        np.testing.assert_array_equal(run.results, steps.expected())
        np.testing.assert_array_equal(run.handshakes, runs[0].handshakes)
    check_handshakes(runs[0], steps)


@pipelines
def test_one_step_per_cycle(pipeline, make):
    """A cycle for each step, and the latency; one more where the first C takes a cycle ahead of its step."""
    config = tiny(pipeline)
    steps = drawn(config, 30, 2, last=True)
    run = make(config).run(steps)
    assert run.cycles == (config.entrance == 0) + len(steps) + config.latency
    np.testing.assert_array_equal(run.results, steps.expected())


@pipelines
def test_one_step_per_cycle_for_long(pipeline, compiled):
    config = tiny(pipeline)
    steps = drawn(config, 5000, 3)
    assert compiled(config).run(steps).cycles == (config.entrance == 0) + 5000 + config.latency


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ([True] + [False] * 19, [False] * 19 + [True]),
        ([True, False, False, False], [False, False, False, True]),
        ([True, False, False, False], [True, False, True, False]),
        ([True], [True]),
        ([True], [True, False, False]),
    ],
    ids=["one-chain", "tiles", "results-within-chains", "single-steps", "dropped-results"],
)
def test_first_and_last(first, last, make):
    config = tiny()
    steps = drawn(config, 20, 4, first=first, last=last)
    run = make(config).run(steps)
    np.testing.assert_array_equal(run.results, steps.expected())
    assert len(run.results) == steps.last.sum()
    # A step that gives no result is over when it is accepted.
    assert run.cycles == max(20, np.flatnonzero(steps.last)[-1] + 1 + config.latency)


@pytest.mark.sampled(3)
@pipelines
def test_c_before_with_and_behind_its_step(pipeline, make):
    """A tile per cycle whenever C begins to come; the steps wait for the first one only."""
    config = tiny(pipeline)
    steps = drawn(config, 10, 14, first=True, last=True)
    for late in range(5):
        run = make(config).run(steps, supply=lambda cycle, late=late: cycle >= late)
        np.testing.assert_array_equal(run.results, steps.expected())
        # Where the first step enters the loop, a cycle after its C or as soon as it is there.
        entered = max(late + 1, config.entrance)
        assert run.cycles == entered - config.entrance + len(steps) + config.latency
        assert run.supplied.tolist() == [late, *range(max(entered, late + 1), entered + len(steps) - 1)]
    for early in range(5):
        run = make(config).run(steps, offer=lambda cycle, early=early: cycle >= early)
        np.testing.assert_array_equal(run.results, steps.expected())
        assert run.cycles == max(early, int(config.entrance == 0)) + len(steps) + config.latency


def test_no_last_no_result(make):
    config = tiny()
    run = make(config).run(drawn(config, 10, 5, last=False))
    assert run.results.shape == (0, 1, 2)
    assert run.cycles == 10


def test_no_steps(make):
    config = tiny()
    run = make(config).run(drawn(config, 1, 6)[:0])
    assert run.results.shape == (0, 1, 2)
    assert run.results.dtype == np.uint32
    assert run.cycles == 0


def test_runs_do_not_depend_on_each_other(make):
    config = tiny()
    engine = make(config)
    steps = drawn(config, 12, 7)
    runs = [engine.run(steps)]
    engine.run(drawn(config, 5, 8, last=False))
    runs.append(engine.run(steps))
    np.testing.assert_array_equal(runs[0].results, runs[1].results)
    assert runs[0].cycles == runs[1].cycles


def test_more_steps_and_cycles_than_are_handed_over_at_once(compiled):
    config = tiny()
    steps = drawn(config, 3000, 9)
    reports = []
    run = compiled(config).run(steps, offer=pattern(0.3, 1), take=pattern(0.7, 2), progress=reports.append)
    np.testing.assert_array_equal(run.results, steps.expected())
    assert run.cycles > 9000
    assert reports[-1] == 3000
    assert reports == sorted(reports)


def test_progress(make):
    config = tiny()
    reports = []
    make(config).run(drawn(config, 6, 10), progress=reports.append)
    assert reports[-1] == 6


def test_tiles_back_to_back(make):
    config = tiny()
    a, b = (golden.quantize(tensors.generate("gaussian", (3, 48), seed), "nvfp4") for seed in (1, 2))
    steps = schedule(config, a, b)
    run = make(config).run(steps)
    want = golden.accumulate(a, b, None, 1).view(np.uint32)
    np.testing.assert_array_equal(gather(config, run.results, 3, 3), want)
    assert run.cycles == 3 * 2 * 3 + config.latency


def test_steps_of_another_shape(make):
    config = tiny()
    other = TensorCoreConfig("other", "nvfp4", "nvfp4", 2, 2, 1)
    with pytest.raises(ValueError, match=r"steps of \d+ bits for tiny, which takes \d+"):
        make(config).run(drawn(other, 2, 11))


# Cores that break the rules


def broken(kind):
    """A tensor core that never gets ready, or that answers all the time."""

    class Broken(TensorCore):
        def elaborate(self, platform):
            m = Module()
            toggle = Signal()
            m.d.sync += toggle.eq(~toggle & self.step.payload.as_value().any() & self.result.ready)
            m.d.comb += [
                self.step.ready.eq(kind == "surplus"),
                self.addend.ready.eq(kind == "surplus"),
                self.result.valid.eq(kind == "surplus"),
                self.result.payload.as_value().eq(toggle & self.step.valid),
            ]
            return m

    return Broken


@pytest.mark.parametrize(
    ("kind", "message"),
    [("stuck", "tiny: stuck after 0 steps, in cycle 4"), ("surplus", "tiny: a result that no step asked for")],
)
@pytest.mark.parametrize("name", ["amaranth", "compiled"])
def test_broken_cores(name, kind, message, monkeypatch, request):
    if name == "compiled":
        request.getfixturevalue("compiled")
    monkeypatch.setattr(f"sim.engines.{name}.TensorCore", broken(kind))
    config = tiny()
    engine = (AmaranthEngine if name == "amaranth" else CompiledEngine)(config)
    with pytest.raises(ToolError, match=message):
        engine.run(drawn(config, 5, 12, last=[False]), take=always)
