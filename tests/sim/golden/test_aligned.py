"""Widths that docs/quantiser.md states of what a hardware quantiser computes with."""

import numpy as np
import pytest

from sim.golden import aligned
from sim.golden.element import E1M2, E2M1
from sim.golden.quotient import ue4m3
from sim.golden.scale import UE4M3


@pytest.mark.parametrize("bits", [1, 8, 13, 14, 24])
@pytest.mark.parametrize(("element", "top"), [(E2M1, 4), (E2M1, 6), (E1M2, 7)])
def test_steps_are_whole_and_as_short_as_the_page_says(bits, element, top):
    """Blocks whose largest numbers lie on both sides of every bound of a scale."""
    for significand in {1 << bits - 1, (1 << bits) - 1}:
        scale = aligned.TensorScale(significand, 3, bits)
        value = significand * 2.0 ** (3 - bits + 1)
        bounds = (UE4M3.table[:-2] + UE4M3.table[1:-1]) / 2 * top * value
        peaks = np.concatenate([bounds, np.nextafter(bounds.astype(np.float32), np.float32(np.inf)), bounds * 1.02])
        magnitudes = peaks.astype(np.float32).view(np.int32)
        significands, exponents = (each.astype(np.int64) for each in aligned.fields(magnitudes))
        codes, _ = ue4m3(significands, top * significand, exponents - 150 - 3 + bits - 1)
        blocks = aligned.Aligned(np.repeat(magnitudes[None], 16, axis=0), scale)
        candidate = aligned.Candidate(blocks, element, codes)
        assert set(codes.tolist()) == set(range(127))
        held = codes > 0
        # An element of 1/4, in units of 2^(a - B).
        unit = 2.0 ** (blocks.exponents + 3 - blocks.bits)
        np.testing.assert_array_equal(candidate.steps[held] * unit[held], UE4M3.table[codes[held]] * value / 4)
        assert candidate.steps.max() < 1 << bits + 7
        assert (blocks.cut[0].max(axis=0)[held] >= 1 << blocks.bits - 1).all()


def test_fields_of_subnormal_numbers():
    magnitudes = np.array([0, 1, (1 << 23) - 1, 1 << 23, 0x3F800000], np.int32)
    significands, exponents = aligned.fields(magnitudes)
    assert significands.tolist() == [0, 1, (1 << 23) - 1, 1 << 23, 1 << 23]
    assert exponents.tolist() == [1, 1, 1, 1, 127]


@pytest.mark.parametrize("bits", [1, 8, 13, 14, 24])
def test_numbers_beyond_the_range_saturate(bits):
    """Those of 2^(es + 13) and more, whatever their significand."""
    scale = aligned.TensorScale(1 << bits - 1, -20, bits)
    numbers = np.zeros((16, 4), np.float32)
    numbers[0] = np.float32([1.0, 1.0, 1.99, 2.0]) * np.float32(2.0 ** (13 - 20))
    numbers[0, 0] = np.nextafter(numbers[0, 0], np.float32(0))
    numbers[1] = numbers[0] * np.float32(2.0**40)
    whole, _ = aligned.Aligned(numbers.view(np.int32), scale).cut
    most = (1 << bits + 10) - 1
    assert whole[1].tolist() == [most] * 4
    assert whole[0].tolist() == [most - (most >> 24), most, most, most]
    assert not whole[2:].any()
