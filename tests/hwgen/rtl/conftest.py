"""Blocks without a loop in Amaranth's simulator."""

import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.sim import Simulator


def _evaluate(block, stimuli):
    """Values of every output of ``block``, as a dict, for each dict of inputs; layouts as integers.

    A block with registers takes new inputs in every cycle.
    """
    ports = {name: Value.cast(getattr(block, name)) for name in block.signature.members}
    outputs = [name for name, member in block.signature.members.items() if member.flow.name == "Out"]
    results = []

    async def testbench(ctx):
        for inputs in [*stimuli, *([{}] * block.latency)]:
            for name, value in inputs.items():
                ctx.set(ports[name], value)
            results.append({name: ctx.get(ports[name]) for name in outputs})
            if block.latency:
                await ctx.tick()

    # A block of wires alone is no process to the simulator.
    m = Module()
    m.submodules.block = block
    m.d.comb += Signal(name="keep").eq(0)
    simulator = Simulator(m)
    if block.latency:
        simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return results[block.latency :]


@pytest.fixture(scope="session")
def evaluate():
    return _evaluate
