"""Stimulus of formats that chance seldom brings together: every purpose finds numbers for them."""

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from sim.verify.stimulus import draw

BESIDE = ["int4", "int8", "ternary", "nvfp4", "nvint4", "fp4-ue5m3-b16", "msfp12", "fp16"]


@pytest.mark.parametrize("other", BESIDE)
@pytest.mark.parametrize("first", [True, False])
def test_fp16_beside_others(other, first):
    """In the place of A or of B; scales may be powers of two, and elements may have one exponent."""
    a, b = ("fp16", other) if first else (other, "fp16")
    config = TensorCoreConfig("beside", a, b, 2, 2, 1, "windowed", pipeline=("tree", "terms"))
    stimulus = draw(config, 1500, np.random.default_rng(5))
    results = stimulus.steps.expected()
    kinds = results & 0x7FFFFFFF
    for seen in (kinds == 0, kinds == 0x7F800000, kinds == 0x7FFFFFFF, (kinds > 0) & (kinds < 0x7F800000)):
        assert seen.mean() > 0.001
    codes = stimulus.steps.a_codes if first else stimulus.steps.b_codes
    assert codes.dtype == np.uint16
    # NaN without the upper five bits of its fraction is one of 33.
    fractions = codes[(codes & 0x7FFF) > 0x7C00] & 0x3FF
    assert (fractions < 32).mean() > 0.1
