"""The stimulus of a lane array, and the sums that are expected of it, in the lane array itself."""

import numpy as np
import pytest
from amaranth.hdl import Cat, Value
from amaranth.sim import Simulator

from hwgen.config import TensorCoreConfig, resolve
from hwgen.measure.netlists.checks import lane_inputs, lane_outputs
from hwgen.rtl.dot import beside
from hwgen.rtl.lane_array import LaneArray
from sim.random import random_steps

FILE = """
rows = 1
columns = 1
[elements.E3M1]
exponent_bits = 3
mantissa_bits = 1
[formats.folded]
elements = ["E3M1"]
scale = "UE4M3"
block = 16
window = 5
"""
"""A format whose blocks carry a part of the exponents of its elements."""


def word(bits):
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


@pytest.mark.parametrize(
    ("form", "dot", "groups"),
    [
        ("hif4", "nested", 1),
        ("hif4", "multiplier", 2),
        ("mxfp4-2x16", "merged", 2),
        ("mixfp4", "merged", 2),
        ("mxfp8-e4m3", "windowed", 2),
        ("mxfp8-e5m2", "windowed", 1),
        (("mxfp8-e4m3", "mxfp4"), "shifted-carry-save", 1),
        ("l-mul", "additive", 1),
        (("fp16", "int4"), "windowed", 2),
        (FILE, "windowed", 1),
    ],
    ids=lambda value: "file" if value == FILE else None,
)
def test_every_sum_is_that_of_the_golden_model(form, dot, groups, tmp_path):
    """And so is what stands beside it; where a product is infinite, signs alone say something."""
    if form == FILE:
        (tmp_path / "folded.toml").write_text(form)
        form = resolve(str(tmp_path / "folded.toml")).a
        assert form.folds == (-2,)
    a, b = form if isinstance(form, tuple) else (form, form)
    config = TensorCoreConfig("x", a, b, 1, 1, groups, dot)
    steps = [random_steps(config, 40, np.random.default_rng(seed)) for seed in (1, 2)]
    # Results are NaN where an element is, whatever lanes make of it: more of that changes nothing here.
    for side, codes in ((side, getattr(each, f"{side}_codes")) for each in steps for side in "ab"):
        if nans := config.form(side).nans:
            codes[np.random.default_rng(3).random(codes.shape) < 0.02] = min(nans)
    if config.bounds.may_be_infinite:
        for index, each in enumerate(steps):
            rng = np.random.default_rng(index)
            for own, codes in ((config.a, each.a_codes), (config.b, each.b_codes)):
                chosen = rng.random(codes.shape) < 0.01
                if own.may_be_infinite:
                    codes[chosen] = rng.choice(np.array(own.elements[0].infinities, codes.dtype), chosen.sum())
    stimulus, expected = lane_inputs(config, steps), lane_outputs(config, steps)
    assert set(expected) == {"sum", *beside(config)} - {"below"}
    assert expected["sum"].shape == (40 * config.sums, 2)
    assert all(len(np.unique(each)) > (20 if name == "sum" else 1) for name, each in expected.items())
    block = LaneArray(config)
    ports = {name: Value.cast(getattr(block, name)) for name in stimulus}
    assert {name: bits.shape for name, bits in stimulus.items()} == {
        name: (*expected["sum"].shape, len(port)) for name, port in ports.items()
    }
    found = {name: np.zeros_like(each) for name, each in expected.items()}

    async def testbench(ctx):
        for index in np.ndindex(expected["sum"].shape):
            value, shift = 0, 0
            for name, port in ports.items():
                value |= word(stimulus[name][index]) << shift
                shift += len(port)
            ctx.set(Cat(*ports.values()), value)
            for name, each in found.items():
                each[index] = ctx.get(getattr(block, name))

    simulator = Simulator(block)
    simulator.add_testbench(testbench)
    simulator.run()
    infinite = expected.get("positive", False) | expected.get("negative", np.zeros(1, np.bool_))
    assert not config.bounds.may_be_infinite or 0 < infinite.mean() < 1
    for name, each in expected.items():
        known = ~infinite if name in ("sum", "exponent") else np.ones(1, np.bool_)
        np.testing.assert_array_equal(np.where(known, found[name], 0), np.where(known, each, 0))
