"""Streams, latency and reset of the tensor core, cycle by cycle in Amaranth's simulator."""

import functools

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from hwgen.config import PIPELINE_REGISTERS, REGISTERS, TensorCoreConfig
from hwgen.rtl.tensor_core import TensorCore
from sim.random import random_steps
from sim.steps import Steps

PIPELINES = [
    (),
    ("operands",),
    ("terms",),
    ("operands", "terms"),
    ("total",),
    ("operands", "sums", "aligned", "normal"),
    ("decoded", "tree", "factors", "terms", "addends"),
    PIPELINE_REGISTERS,
]


def tiny(pipeline, numerics="blackwell"):
    return TensorCoreConfig("tiny", "nvfp4", "nvfp4", 1, 2, 1, pipeline=pipeline, numerics=numerics)


CORES = [
    *(tiny(pipeline) for pipeline in PIPELINES),
    *(tiny(pipeline, "exact") for pipeline in ((), ("operands", "terms"), ("aligned", "normal"), REGISTERS["exact"])),
]
cores = pytest.mark.parametrize("config", CORES, ids=lambda config: "-".join((config.numerics, *config.pipeline)))


def drawn(config, count, seed, first=(True,), last=(True,)):
    """Random steps with ``first`` and ``last`` as given; tiles that take turns have the same."""
    steps = random_steps(config, count, np.random.default_rng(seed))
    flags = (np.resize(np.repeat(np.array(flag, bool), config.interleave), count) for flag in (first, last))
    return Steps(config, steps.a_codes, steps.a_scales, steps.b_codes, steps.b_scales, steps.c, *flags)


class Bench:
    """A core that is driven one clock cycle at a time."""

    def __init__(self, config):
        self.core = TensorCore(config)
        self.reset = Signal()
        self.shape = (config.rows, config.columns)
        self.simulator = Simulator(ResetInserter(self.reset)(self.core))
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self.testbench)
        self.script = None

    def run(self, script):
        if self.script is not None:
            self.simulator.reset()
        self.script = script
        self.addends = []
        self.simulator.run()

    async def testbench(self, ctx):
        self.ctx = ctx
        await self.script(self)

    async def begin(self, steps):
        """Offer the C of these steps from now on, each until it is accepted; the first is in this cycle."""
        self.addends = list(steps.addend_words())
        await self.cycle()
        assert self.supplied

    async def cycle(self, word=None, take=True, reset=False, supply=True):
        """One cycle with a step offered or none, and the next C, if there is one; returns (accepted, valid, result)."""
        ctx, core = self.ctx, self.core
        supply = supply and bool(self.addends)
        ctx.set(core.addend.valid, supply)
        ctx.set(core.addend.payload.as_value(), self.addends[0] if supply else (1 << 64) - 1)
        ctx.set(core.step.valid, word is not None)
        # Without valid the payload means nothing.
        ctx.set(core.step.payload.as_value(), (1 << 64) - 1 if word is None else word)
        ctx.set(core.result.ready, take)
        ctx.set(self.reset, reset)
        _, _, self.ready, room, valid, payload = await ctx.tick().sample(
            core.step.ready, core.addend.ready, core.result.valid, core.result.payload.as_value()
        )
        self.supplied = bool(supply and room and not reset)
        if self.supplied:
            self.addends.pop(0)
        size = 4 * self.shape[0] * self.shape[1]
        result = np.frombuffer(payload.to_bytes(size, "little"), "<u4").reshape(self.shape)
        return bool(self.ready and word is not None), bool(valid), result


@functools.cache
def bench(config):
    """Elaborating a core takes longer than most tests here."""
    return Bench(config)


@pytest.mark.sampled(3)
@cores
def test_latency_is_the_documented_one(config):
    steps = drawn(config, 1, 1)
    seen = []

    async def script(bench):
        assert bench.core.latency == config.latency == len(config.pipeline) + 1 + (config.numerics == "exact")
        await bench.begin(steps)
        seen.append(await bench.cycle(next(steps.words())))
        seen.extend([await bench.cycle() for _ in range(12)])

    bench(config).run(script)
    assert [valid for _, valid, _ in seen] == [index == config.latency for index in range(13)]
    np.testing.assert_array_equal(seen[config.latency][2], steps.expected()[0])


@cores
def test_result_waits_unchanged_and_stalls_the_core(config):
    steps = drawn(config, 12, 2)
    want = steps.expected()

    async def script(bench):
        await bench.begin(steps)
        words = list(steps.words())
        accepted = answered = cycle = 0
        while answered < len(want):
            word = words[accepted] if accepted < len(words) else None
            taken, valid, result = await bench.cycle(word, take=cycle % 5 == 4)
            if valid:
                np.testing.assert_array_equal(result, want[answered])
                # A result that waits holds up everything behind it.
                assert taken == (cycle % 5 == 4 and word is not None)
                answered += cycle % 5 == 4
            else:
                assert taken == (word is not None)
            accepted += taken
            cycle += 1

    bench(config).run(script)


@cores
def test_ready_does_not_wait_for_the_taker(config):
    """With no result waiting the core fills up to its depth whether or not anyone takes."""
    steps = drawn(config, 10, 3)

    async def script(bench):
        await bench.begin(steps)
        words = list(steps.words())
        accepted = [await bench.cycle(word, take=False) for word in words]
        assert [taken for taken, _, _ in accepted] == [index < config.latency for index in range(10)]

    bench(config).run(script)


@cores
def test_no_result_without_last(config):
    turns = config.interleave
    steps = drawn(config, 8 * turns, 4, first=[True] + [False] * 7, last=[False] * 7 + [True])
    want = steps.expected()

    async def script(bench):
        await bench.begin(steps)
        seen = [await bench.cycle(word) for word in steps.words()]
        seen += [await bench.cycle() for _ in range(12)]
        ends = range(7 * turns + config.latency, 8 * turns + config.latency)
        assert [index for index, (_, valid, _) in enumerate(seen) if valid] == list(ends)
        np.testing.assert_array_equal([seen[index][2] for index in ends], want)

    bench(config).run(script)


@cores
def test_chain_over_gaps(config):
    """Idle cycles between the steps of a chain leave the accumulators alone."""
    steps = drawn(config, 9 * config.interleave, 5, first=[True, False, False], last=[False, False, True])

    async def script(bench):
        await bench.begin(steps)
        results = []
        for index, word in enumerate(steps.words()):
            for _ in range(index % 4):
                _, valid, result = await bench.cycle()
                results += [result] * valid
            taken = False
            while not taken:
                taken, valid, result = await bench.cycle(word)
                results += [result] * valid
        for _ in range(2 * config.latency):
            _, valid, result = await bench.cycle()
            results += [result] * valid
        np.testing.assert_array_equal(results, steps.expected())

    bench(config).run(script)


@pytest.mark.sampled(3)
@cores
def test_reset_at_any_time(config):
    """Whatever is under way vanishes with reset; what comes after is right."""

    async def script(bench):
        rng = np.random.default_rng(6)
        for round_ in range(9):
            steps = drawn(config, 8, 100 + round_, first=[True, False], last=[False, True, True])
            words = list(steps.words())
            # Traffic with gaps and stalls, cut off after each number of cycles.
            bench.addends = list(steps.addend_words())
            for index in range(round_):
                offered, supplied = (rng.random(2) < 0.8).tolist()
                await bench.cycle(words[index % 8] if offered else None, take=rng.random() < 0.5, supply=supplied)
            # What is offered during reset is not taken over, even though ready is up.
            bench.addends = [(1 << 64) - 2]
            await bench.cycle(words[0] if round_ % 2 else None, take=rng.random() < 0.5, reset=True, supply=round_ % 3)
            bench.addends = list(steps.addend_words())
            results, accepted = [], 0
            while len(results) < steps.last.sum():
                taken, valid, result = await bench.cycle(words[accepted] if accepted < 8 else None)
                assert valid or len(results) or accepted <= config.latency + config.interleave
                results += [result] * valid
                accepted += taken
            np.testing.assert_array_equal(results, steps.expected())
            for _ in range(10):
                assert not (await bench.cycle())[1]

    bench(config).run(script)


# From one cycle in the loop to six

TURNS = [
    ("operands", "terms"),
    ("total",),
    ("operands", "sums", "aligned", "normal"),
    ("tree", "factors", "aligned", "addends", "total"),
    ("decoded", "sums", "compared", "aligned", "total", "normal"),
    PIPELINE_REGISTERS,
]
turns = pytest.mark.parametrize(
    "config",
    [*map(tiny, TURNS), tiny(("terms",), "exact"), tiny(REGISTERS["exact"], "exact")],
    ids=["T1", "T2", "T3", "T4", "T5", "T6", "exact", "exact-deep"],
)


@pytest.mark.sampled(2)
@turns
def test_one_step_per_cycle(config):
    """Chains with and without results in their midst; every result comes at the documented time."""
    assert config.interleave == (1 if config.numerics == "exact" else TURNS.index(config.pipeline) + 1)
    steps = drawn(config, 60, 7, first=[True, True, False, True, False, False], last=[True, False, True, False, True])
    want = steps.expected()

    async def script(bench):
        await bench.begin(steps)
        seen = [await bench.cycle(word) for word in [*steps.words(), *[None] * config.latency]]
        assert all(taken for taken, _, _ in seen[:60])
        valid = [index for index, (_, valid, _) in enumerate(seen) if valid]
        assert valid == (np.flatnonzero(steps.last) + config.latency).tolist()
        np.testing.assert_array_equal([seen[index][2] for index in valid], want)

    bench(config).run(script)


@turns
def test_lone_last_step_is_flushed_out(config):
    """It comes out on time; a step after it waits until the loop has turned once, no longer."""
    steps = drawn(config, 2, 8)

    async def script(bench):
        words = list(steps.words())
        for gap in range(6):
            await bench.cycle(reset=True)
            await bench.begin(steps)
            accepted, seen = 0, []
            for cycle in range(20):
                offered = accepted < 2 and (accepted == 0 or cycle > gap)
                taken, valid, result = await bench.cycle(words[accepted] if offered else None)
                accepted += taken
                seen += [(cycle, result)] * valid
            late = max(gap, config.interleave) if gap else 0
            assert [cycle for cycle, _ in seen] == [config.latency, config.latency + 1 + late], gap
            np.testing.assert_array_equal([result for _, result in seen], steps.expected())

    bench(config).run(script)


@turns
def test_gaps_within_chains_cost_their_own_cycles(config):
    """The loop stands still: every step is accepted at once, and the results come as after no gap."""
    count = config.interleave
    steps = drawn(config, 6 * count, 9, first=[True] + [False] * 5, last=[False] * 5 + [True])

    async def script(bench):
        await bench.begin(steps)
        cycle, seen, accepted = 0, [], []
        gaps = [index % 4 if index <= 5 * count else 0 for index in range(6 * count)]
        for word, gap in zip(steps.words(), gaps, strict=True):
            for offered in [None] * gap + [word]:
                taken, valid, result = await bench.cycle(offered)
                assert taken == (offered is not None)
                accepted += [cycle] * taken
                seen += [(cycle, result)] * valid
                cycle += 1
        for extra in range(12):
            _, valid, result = await bench.cycle()
            seen += [(cycle + extra, result)] * valid
        assert [cycle for cycle, _ in seen] == [start + config.latency for start in accepted[-count:]]
        np.testing.assert_array_equal([result for _, result in seen], steps.expected())

    bench(config).run(script)


@pytest.mark.sampled(2)
@turns
def test_time_of_every_result(config):
    """After the latency, and at most a cycle later for every cycle in between that was not ready."""
    rng = np.random.default_rng(10)
    steps = drawn(config, 60, 11, first=[True, False], last=[False, True, True])
    accepted, ready, valid = [], [], []

    async def script(bench):
        bench.addends = list(steps.addend_words())
        words = list(steps.words())
        word, fresh = None, True
        while len(valid) < steps.last.sum():
            if word is None and len(accepted) < len(words) and rng.random() < 0.6:
                word = words[len(accepted)]
            take, supply = (bool(rng.random() < 0.7) for _ in range(2))
            taken, shown, _ = await bench.cycle(word, take, supply=supply)
            if taken:
                accepted.append(len(ready))
                word = None
            if shown and fresh:
                valid.append(len(ready))
            fresh = take or not shown
            ready.append(bench.ready)

    bench(config).run(script)
    for start, end in zip(np.array(accepted)[steps.last[: len(accepted)]], valid, strict=True):
        refused = ready[start:end].count(0)
        assert start + config.latency <= end <= start + config.latency + refused


# C, which has a stream of its own


@pytest.mark.sampled(3)
@cores
def test_a_step_waits_for_its_c(config):
    """As long as it takes, where the loop begins: what is behind it waits, what is before it goes on."""

    async def script(bench):
        for delay in range(config.entrance + 8):
            await bench.cycle(reset=True)
            steps = drawn(config, 2 * config.interleave, 200 + delay)
            words, results, accepted, cycle, at = list(steps.words()), [], 0, 0, []
            bench.addends = list(steps.addend_words())
            while len(results) < len(words):
                # The C of the first tile in time, then a pause.
                supply = cycle == 0 or cycle > delay
                word = words[accepted] if cycle and accepted < len(words) else None
                taken, valid, result = await bench.cycle(word, supply=supply)
                accepted += taken
                results += [result] * valid
                at += [cycle] * valid
                cycle += 1
            np.testing.assert_array_equal(results, steps.expected())
            # The second C is accepted in cycle delay + 1, no later than the step enters the loop: nothing has waited.
            waited = max(delay + 1 - (1 + config.entrance), 0)
            assert at[0] == 1 + config.latency
            turn = config.interleave - 1 if waited and config.interleave > 1 else 0
            assert at[1] - at[0] - 1 in range(waited, waited + turn + 1)
            assert at[-1] - at[1] == len(words) - 2

    bench(config).run(script)


@cores
def test_one_c_is_held_ahead(config):
    """The first is taken at once, the next when the step of the first enters the loop."""
    steps = drawn(config, 3, 12)

    async def script(bench):
        bench.addends = list(steps.addend_words())
        supplied, results = [], []
        words = [None, None, None, *steps.words(), *[None] * 12]
        for word in words:
            taken, valid, result = await bench.cycle(word)
            assert taken == (word is not None)
            supplied.append(bench.supplied)
            results += [result] * valid
        entered = 3 + config.entrance
        assert np.flatnonzero(supplied).tolist() == [0, entered, entered + 1]
        np.testing.assert_array_equal(results, steps.expected())

    bench(config).run(script)


@cores
def test_a_result_that_waits_does_not_keep_c_out(config):
    """The register of C is filled, too, while all else stands still."""
    steps = drawn(config, config.latency + 2, 13)
    entering = config.latency - config.entrance

    async def script(bench):
        await bench.begin(steps)
        later = bench.addends[entering - 1 :]
        del bench.addends[entering - 1 :]
        for word in steps.words():
            await bench.cycle(word, take=False)
        assert bench.addends == []
        bench.addends = list(later)
        supplied = []
        for _ in range(4):
            _, valid, _ = await bench.cycle(take=False)
            assert valid
            supplied.append(bench.supplied)
        assert supplied == [True, False, False, False]

    bench(config).run(script)
