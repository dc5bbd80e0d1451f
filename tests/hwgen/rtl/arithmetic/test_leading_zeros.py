"""Leading-zero anticipation, exhaustively."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.rtl.arithmetic.leading_zeros import anticipate, leading_zeros
from hwgen.rtl.hierarchy import Block

WIDTH = 8
CONFIG = TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 1)


class Anticipated(Block):
    module_name = "anticipated"
    latency = 0

    def __init__(self):
        super().__init__(CONFIG, {"x": In(WIDTH), "y": In(WIDTH), "marked": Out(WIDTH - 1)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.marked.eq(anticipate(m, self.x, self.y, name="it"))
        return m


class Counted(Block):
    module_name = "counted"
    latency = 0

    def __init__(self, width):
        super().__init__(CONFIG, {"value": In(width), "zeros": Out((width - 1).bit_length())})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.zeros.eq(leading_zeros(m, self.value, name="it"))
        return m


def test_the_mark_is_at_the_leading_digit_or_one_above_it(evaluate):
    """All pairs of addends whose sum leaves its two highest bits alike."""
    x, y = (part.ravel() for part in np.indices((1 << WIDTH, 1 << WIDTH)))
    total = (x + y) % (1 << WIDTH)
    allowed = (total >> WIDTH - 1) == (total >> WIDTH - 2 & 1)
    stimuli = [{"x": int(a), "y": int(b)} for a, b in zip(x[allowed], y[allowed], strict=True)]
    above = 0
    for inputs, outputs in zip(stimuli, evaluate(Anticipated(), stimuli), strict=True):
        value = (inputs["x"] + inputs["y"]) % (1 << WIDTH)
        magnitude = ~value % (1 << WIDTH) if value >> WIDTH - 1 else value
        place, marked = magnitude.bit_length(), outputs["marked"].bit_length()
        if place:
            assert marked - place in (0, 1), inputs
            above += marked - place
    assert 0 < above < len(stimuli)


@pytest.mark.parametrize("width", [2, 5, 8, 11])
def test_zeros_of_every_value(width, evaluate):
    stimuli = [{"value": value} for value in range(1, 1 << width)]
    for inputs, outputs in zip(stimuli, evaluate(Counted(width), stimuli), strict=True):
        assert outputs["zeros"] == width - inputs["value"].bit_length()
