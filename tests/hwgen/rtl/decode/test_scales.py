"""Decoders of the scales that are not UE4M3, byte by byte against the golden model."""

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.decode.operand import ScaleDecoder, scale_layout
from sim import golden


@pytest.mark.parametrize("form", ["fp4-ue5m3-b16", "mxfp4", "msfp12"])
def test_every_byte(form, evaluate):
    config = TensorCoreConfig("x", form, form, 1, 1, 1, pipeline=())
    scale = config.a.scale
    layout, table = scale_layout(config.a), golden.block_format(form).scale.table
    stimuli = [{"code": byte} for byte in range(256)]
    for inputs, outputs in zip(stimuli, evaluate(ScaleDecoder(config, "a"), stimuli), strict=True):
        value = table[inputs["code"]]
        assert outputs["nan"] == np.isnan(value)
        if outputs["nan"]:
            continue
        decoded = layout.from_bits(outputs["scale"])
        fields = layout.members
        assert ("zero" in fields) == ("significand" in fields) == (form == "fp4-ue5m3-b16")
        if "zero" in fields:
            assert decoded.zero == (value == 0)
        significand = decoded.significand if "significand" in fields else 1
        assert significand * 2.0 ** (decoded.exponent + scale.exponents[0] - scale.mantissa_bits) == value
