"""The simulated core, driven cycle by cycle, and its times."""

import functools

import numpy as np
import pytest
from amaranth.hdl import Fragment
from amaranth.sim import Simulator

from hwgen.rtl.tensor_core import TensorCore


class Bench:
    """A tensor core in Amaranth's simulator that says when it accepts each step and gives each result.

    Its operands stay the same, zeros: what they are has no say in when. The first T steps take C, or those given.
    """

    def __init__(self, config):
        self.core = TensorCore(config)
        self.fragment = Fragment.get(self.core, None)
        self.simulator = None

    def run(self, last, offer, take, period, first=None, supply=(True,)):
        first = np.arange(len(last)) < self.core.config.interleave if first is None else first
        self.request = (first, last, offer, supply, take, period)
        if self.simulator is None:
            self.simulator = Simulator(self.fragment)
            self.simulator.add_clock(1e-6)
            self.simulator.add_testbench(self.testbench)
        else:
            self.simulator.reset()
        self.simulator.run()
        return self.accepted, self.taken, self.cycles

    async def testbench(self, ctx):
        first, last, offer, supply, take, period = self.request
        core = self.core
        addends, supplied = int(np.sum(first)), False
        self.accepted, self.taken = [], []
        results = int(np.sum(last))
        pending, earliest, cycle = False, period - 1, 0
        while len(self.accepted) < len(last) or len(self.taken) < results:
            sent = len(self.accepted)
            if not pending and sent < len(last) and cycle >= earliest and offer[cycle % len(offer)]:
                pending = True
                ctx.set(core.step.payload.last, int(last[sent]))
                ctx.set(core.step.payload.first, int(first[sent]))
            ctx.set(core.step.valid, pending)
            ctx.set(core.result.ready, taking := take[cycle % len(take)])
            supplied = supplied or bool(addends and supply[cycle % len(supply)])
            ctx.set(core.addend.valid, supplied)
            _, _, ready, room, valid = await ctx.tick().sample(core.step.ready, core.addend.ready, core.result.valid)
            if supplied and room:
                addends, supplied = addends - 1, False
            if pending and ready:
                self.accepted.append(cycle)
                pending, earliest = False, cycle + period
            if valid and taking:
                self.taken.append(cycle)
            cycle += 1
            assert cycle < 100_000, "the core is stuck"
        self.cycles = cycle


@pytest.fixture(scope="session")
def bench():
    """The bench of a configuration; to elaborate one takes longer than to run it."""
    return functools.cache(Bench)
