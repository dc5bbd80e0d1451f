"""Streams, latency and reset of the tensor core, cycle by cycle in Amaranth's simulator."""

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from hwgen.config import PIPELINE_REGISTERS, TensorCoreConfig
from hwgen.rtl.tensor_core import TensorCore
from sim.steps import Steps, random_steps

PIPELINES = [(), ("operands",), ("terms",), PIPELINE_REGISTERS]
pipelines = pytest.mark.parametrize("pipeline", PIPELINES, ids=["none", "operands", "terms", "both"])


def tiny(pipeline):
    return TensorCoreConfig("tiny", "nvfp4", 1, 2, 1, pipeline=pipeline)


def drawn(config, count, seed, first=True, last=True):
    """Random steps with ``first`` and ``last`` as given."""
    steps = random_steps(config, count, np.random.default_rng(seed))
    flags = (np.resize(np.array(flag, bool), count) for flag in (first, last))
    return Steps(config, steps.a_codes, steps.a_scales, steps.b_codes, steps.b_scales, steps.c, *flags)


class Bench:
    """A core that is driven one clock cycle at a time."""

    def __init__(self, config, script):
        self.core = TensorCore(config)
        self.reset = Signal()
        self.shape = (config.rows, config.columns)
        self.script = script
        simulator = Simulator(ResetInserter(self.reset)(self.core))
        simulator.add_clock(1e-6)
        simulator.add_testbench(self.testbench)
        simulator.run()

    async def testbench(self, ctx):
        self.ctx = ctx
        await self.script(self)

    async def cycle(self, word=None, take=True, reset=False):
        """One cycle with a step offered or none; returns (accepted, valid, result)."""
        ctx, core = self.ctx, self.core
        ctx.set(core.step.valid, word is not None)
        # Without valid the payload means nothing.
        ctx.set(core.step.payload.as_value(), (1 << 64) - 1 if word is None else word)
        ctx.set(core.result.ready, take)
        ctx.set(self.reset, reset)
        _, _, ready, valid, payload = await ctx.tick().sample(
            core.step.ready, core.result.valid, core.result.payload.as_value()
        )
        size = 4 * self.shape[0] * self.shape[1]
        result = np.frombuffer(payload.to_bytes(size, "little"), "<u4").reshape(self.shape)
        return bool(ready and word is not None), bool(valid), result


@pipelines
def test_latency_is_the_documented_one(pipeline):
    config = tiny(pipeline)
    steps = drawn(config, 1, 1)
    seen = []

    async def script(bench):
        assert bench.core.latency == config.latency == len(pipeline) + 1
        seen.append(await bench.cycle(next(steps.words())))
        seen.extend([await bench.cycle() for _ in range(6)])

    Bench(config, script)
    assert [valid for _, valid, _ in seen] == [index == config.latency for index in range(7)]
    np.testing.assert_array_equal(seen[config.latency][2], steps.expected()[0])


@pipelines
def test_result_waits_unchanged_and_stalls_the_core(pipeline):
    config = tiny(pipeline)
    steps = drawn(config, 12, 2)
    want = steps.expected()

    async def script(bench):
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

    Bench(config, script)


@pipelines
def test_ready_does_not_wait_for_the_taker(pipeline):
    """With no result waiting the core fills up to its depth whether or not anyone takes."""
    config = tiny(pipeline)
    steps = drawn(config, 10, 3)

    async def script(bench):
        words = list(steps.words())
        accepted = [await bench.cycle(word, take=False) for word in words]
        assert [taken for taken, _, _ in accepted] == [index < config.latency for index in range(10)]

    Bench(config, script)


@pipelines
def test_no_result_without_last(pipeline):
    config = tiny(pipeline)
    steps = drawn(config, 8, 4, first=[True] + [False] * 7, last=[False] * 7 + [True])
    want = steps.expected()

    async def script(bench):
        seen = [await bench.cycle(word) for word in steps.words()]
        seen += [await bench.cycle() for _ in range(6)]
        assert [index for index, (_, valid, _) in enumerate(seen) if valid] == [7 + config.latency]
        np.testing.assert_array_equal(seen[7 + config.latency][2], want[0])

    Bench(config, script)


@pipelines
def test_chain_over_gaps(pipeline):
    """Idle cycles between the steps of a chain leave the accumulator alone."""
    config = tiny(pipeline)
    steps = drawn(config, 9, 5, first=[True, False, False], last=[False, False, True])

    async def script(bench):
        results = []
        for index, word in enumerate(steps.words()):
            for offered in [None] * (index % 4) + [word]:
                _, valid, result = await bench.cycle(offered)
                results += [result] * valid
        for _ in range(6):
            _, valid, result = await bench.cycle()
            results += [result] * valid
        np.testing.assert_array_equal(results, steps.expected())

    Bench(config, script)


@pipelines
def test_reset_at_any_time(pipeline):
    """Whatever is under way vanishes with reset; what comes after is right."""
    config = tiny(pipeline)

    async def script(bench):
        rng = np.random.default_rng(6)
        for round_ in range(16):
            steps = drawn(config, 8, 100 + round_, first=[True, False], last=[False, True, True])
            words = list(steps.words())
            # Traffic with gaps and stalls, cut off after any number of cycles.
            for index in range(int(rng.integers(0, 9))):
                await bench.cycle(words[index % 8] if rng.random() < 0.8 else None, take=rng.random() < 0.5)
            # A step offered during reset is not taken over, even though ready is up.
            await bench.cycle(words[0] if round_ % 2 else None, take=rng.random() < 0.5, reset=True)
            results, accepted = [], 0
            while len(results) < steps.last.sum():
                taken, valid, result = await bench.cycle(words[accepted] if accepted < 8 else None)
                assert valid or len(results) or accepted <= config.latency + 1
                results += [result] * valid
                accepted += taken
            np.testing.assert_array_equal(results, steps.expected())
            for _ in range(4):
                assert not (await bench.cycle())[1]

    Bench(config, script)
