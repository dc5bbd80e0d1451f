"""The stimulus of a lane array, and the sums that are expected of it, in the lane array itself."""

import numpy as np
import pytest
from amaranth.hdl import Cat, Value
from amaranth.sim import Simulator

from hwgen.config import TensorCoreConfig
from hwgen.measure.checks import lane_inputs
from hwgen.rtl.lane_array import LaneArray
from sim.random import random_steps


def word(bits):
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


@pytest.mark.parametrize(
    ("form", "dot", "groups"),
    [("hif4", "nested", 1), ("hif4", "multiplier", 2), ("mxfp4-2x16", "merged", 2), ("mixfp4", "merged", 2)],
)
def test_every_sum_is_that_of_the_golden_model(form, dot, groups):
    config = TensorCoreConfig("x", form, form, 1, 1, groups, dot)
    steps = [random_steps(config, 12, np.random.default_rng(seed)) for seed in (1, 2)]
    stimulus, expected = lane_inputs(config, steps)
    assert expected.shape == (12 * config.sums, 2)
    assert len(np.unique(expected)) > 20
    block = LaneArray(config)
    ports = {name: Value.cast(getattr(block, name)) for name in stimulus}
    assert {name: bits.shape for name, bits in stimulus.items()} == {
        name: (*expected.shape, len(port)) for name, port in ports.items()
    }
    found = np.zeros_like(expected)

    async def testbench(ctx):
        for index in np.ndindex(expected.shape):
            value, shift = 0, 0
            for name, port in ports.items():
                value |= word(stimulus[name][index]) << shift
                shift += len(port)
            ctx.set(Cat(*ports.values()), value)
            found[index] = ctx.get(block.sum)

    simulator = Simulator(block)
    simulator.add_testbench(testbench)
    simulator.run()
    np.testing.assert_array_equal(found, expected)
