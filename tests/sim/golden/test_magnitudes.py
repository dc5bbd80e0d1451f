"""Rules by magnitudes, at their bounds and on both sides of them."""

import numpy as np
import pytest

from sim import golden


@pytest.mark.parametrize(
    ("rule", "block", "spread"),
    [
        (golden.CrestFactor, [2, -2, 2, 1], True),  # 4 (4 + 4 + 4 + 1) = 13 * 4
        (golden.CrestFactor, [2, -2, 2, 0.98], False),
        (golden.CrestFactor, [1] * 16, True),
        (golden.CrestFactor, [1, *[0.1] * 15], False),
        (golden.SecondLargest, [-4, 3], True),
        (golden.SecondLargest, [4, 2.96], False),
        (golden.SecondLargest, [4, 4], True),
        (golden.SecondLargest, [4, *[2.9] * 15], False),
        (golden.Gap, [16, -12], True),
        (golden.Gap, [16, 11.8], False),
        (golden.Gap, [16, 14.8], True),
        (golden.Gap, [16, 15], False),
        (golden.Gap, [16] * 16, False),
    ],
)
def test_bounds(rule, block, spread):
    x = np.zeros((2, 16), np.float32)
    x[0, : len(block)], x[1, -len(block) :] = block, block[::-1]
    found = golden.Quantiser("mixfp4", selection=rule(8)).quantize(x, 0.75).tensor
    assert found.e1m2.ravel().tolist() == [spread] * 2
    if ("nvfp4", "four-over-six") in rule.pairs:
        found = golden.Quantiser("nvfp4", "four-over-six", rule(8)).quantize(x, 0.75).tensor
        scale = golden.encode_ue4m3([16 / 0.75 / (4 if spread else 6)])
        assert found.scales.ravel().tolist() == scale.tolist() * 2
