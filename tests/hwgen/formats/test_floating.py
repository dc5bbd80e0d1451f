"""Floating-point formats by their widths, against tables."""

import numpy as np
import pytest

from hwgen.formats import E5M2, FP16
from hwgen.formats.floating import FloatFormat, FloatValues

PROPERTIES = (
    *("fold", "significand_bits", "longest_shift", "largest_significand", "coded_as_float", "largest_code", "largest"),
    *("signed_by_top_bit", "lowest_exponent", "mantissa_bits", "width", "point", "integers", "shifts", "significands"),
    *("magnitudes", "nans", "infinities"),
)


def test_all_follows_from_two_widths_as_from_a_table() -> None:
    found = FloatFormat.of("E5M2", 5, 2, "")
    assert tuple(found.values) == tuple(E5M2.values)
    assert {name: getattr(found, name) for name in PROPERTIES} == {name: getattr(E5M2, name) for name in PROPERTIES}


def test_fp16_is_that_of_numpy() -> None:
    codes = np.arange(1 << 16).astype(np.uint16)
    values = codes.view(np.float16).astype(np.float64)
    assert [*FP16.infinities] == np.flatnonzero(np.isinf(values)).tolist()
    assert [*FP16.nans] == np.flatnonzero(np.isnan(values)).tolist()
    numbers = np.where(np.isfinite(values), values, 0)
    np.testing.assert_array_equal(np.array(FP16.values), numbers)
    np.testing.assert_array_equal(np.array(FP16.integers) * 2.0 ** (FP16.fold - FP16.point), numbers)
    assert FP16.largest == max(FP16.integers)
    assert (FP16.width, FP16.significand_bits, FP16.longest_shift) == (16, 11, 29)


def test_values_are_a_sequence() -> None:
    values = FloatValues(2, 1)
    assert [*values] == [0, 0.5, 1, 1.5, 2, 3, 0, 0, 0, -0.5, -1, -1.5, -2, -3, 0, 0]
    assert values[1:4] == (0.5, 1, 1.5)
    assert (len(values), values.bias) == (16, 1)
    assert values == FloatValues(2, 1) != FloatValues(1, 2)
    for code in (-1, 16):
        with pytest.raises(IndexError, match=f"{code} is no code of 16"):
            values[code]
