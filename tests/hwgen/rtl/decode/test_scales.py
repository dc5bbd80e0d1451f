"""Decoders of the scales of formats other than NVFP4 and MixFP4, byte by byte against the golden model."""

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.rtl.decode.operand import ScaleDecoder, scale_layout
from sim.golden import block_format, parts


@pytest.mark.parametrize(
    "form", ["fp4-ue5m3-b16", "mxfp4", "msfp12", "if4", "razer-activations", "razer-weights", "blockdialect", "hif4"]
)
def test_every_byte(form, evaluate):
    """Significands have their factors, exponents their folds."""
    config = TensorCoreConfig("x", form, form, 1, 1, 1, "multiplier", pipeline=())
    layout, golden = scale_layout(config.a), block_format(form)
    assert ("zero" in layout.members) == golden.scale.subnormals
    assert ("significand" in layout.members) == (golden.scale.mantissa_bits > 0)
    stimuli = [{"code": byte} for byte in range(golden.meaningful + 1 >> golden.shift_bits)]
    for inputs, outputs in zip(stimuli, evaluate(ScaleDecoder(config, "a"), stimuli), strict=True):
        wanted = parts.scale(inputs["code"], form)
        assert ("nan" in outputs) == (golden.scale.nan is not None)
        assert outputs.get("nan", False) == wanted.nan
        if wanted.nan:
            continue
        decoded = layout.from_bits(outputs["scale"])
        if golden.scale.subnormals:
            assert decoded.zero == (wanted.significand == 0)
        if golden.scale.mantissa_bits:
            assert decoded.significand == wanted.significand
        assert decoded.exponent == wanted.exponent + wanted.fold - config.a.lowest_exponent
