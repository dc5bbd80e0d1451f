"""Fields of a floating-point code, for every code."""

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.formats.floating import FloatFormat
from hwgen.rtl.arithmetic.float_fields import FloatFields, float_fields
from hwgen.rtl.hierarchy import Block

CONFIG = TensorCoreConfig("x", "nvfp4", "nvfp4", 1, 1, 1)


class Apart(Block):
    module_name = "apart"
    latency = 0

    def __init__(self, element):
        widths = (element.significand_bits, element.values.exponent_bits, 1, 1, 1)
        members = {name: Out(width) for name, width in zip(FloatFields._fields, widths, strict=True)}
        super().__init__(CONFIG, {"code": In(element.width), **members})
        self.element = element

    def elaborate(self, platform):
        m = Module()
        for name, value in float_fields(self.element, self.code)._asdict().items():
            m.d.comb += getattr(self, name).eq(value)
        return m


@pytest.mark.parametrize("widths", [(5, 2), (5, 10), (3, 4)])
def test_every_code(widths, evaluate):
    element = FloatFormat.of("x", *widths, "")
    nans, infinities, codes = {*element.nans}, {*element.infinities}, range(1 << element.width)
    for code, found in zip(codes, evaluate(Apart(element), [{"code": code} for code in codes]), strict=True):
        assert (found["nan"], found["infinite"]) == (code in nans, code in infinities)
        if code not in nans:
            assert found["live"] == (code in infinities or element.integers[code] != 0)
        if code not in nans | infinities:
            assert (found["significand"], found["shift"]) == (element.significands[code], element.shifts[code])
