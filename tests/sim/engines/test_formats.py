"""Formats with scales or blocks other than those of NVFP4: every bit of every result against the golden model."""

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from sim.random import random_chains


@pytest.mark.parametrize(
    ("form", "groups", "more"),
    [
        ("fp4-ue5m3-b16", 3, {"pipeline": ("decoded", "sums", "terms", "total")}),
        ("fp4-ue5m3-b32", 1, {"fraction_bits": 23, "empty_blocks": "excluded", "rounding": "nearest_even"}),
    ],
)
def test_random_steps(form, groups, more, compiled):
    config = TensorCoreConfig("formats", form, form, 2, 2, groups, **more)
    steps = random_chains(config, 6000, np.random.default_rng(groups), first=0.6)
    wanted = steps.expected()
    np.testing.assert_array_equal(compiled(config).run(steps).results, wanted)
