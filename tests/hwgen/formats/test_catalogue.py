"""The records of the catalogue, against those of the golden model, which are written independently."""

import math

import numpy as np
import pytest

from hwgen.formats import BLOCK_FORMATS
from sim import golden

forms = pytest.mark.parametrize("form", BLOCK_FORMATS.values(), ids=BLOCK_FORMATS)


def test_both_know_the_same_formats():
    assert set(BLOCK_FORMATS) == set(golden.FORMATS)
    assert all(form.name == name for name, form in BLOCK_FORMATS.items())


@forms
def test_elements(form):
    other = golden.block_format(form.name)
    assert [element.name for element in form.elements] == [element.name for element in other.elements]
    for mine, wanted in zip(form.elements, other.elements, strict=True):
        assert tuple(mine.values) == wanted.values
        assert (mine.width, mine.integers, mine.fold) == (wanted.width, wanted.integers, wanted.fold)
        assert (mine.point, mine.nans, mine.infinities) == (wanted.point, wanted.nans, wanted.infinities)


@forms
def test_scales(form):
    other = golden.block_format(form.name).scale
    scale = form.scale
    assert (scale.width, scale.nan, scale.largest) == (other.width, other.nan, other.largest)
    for code in range(1 << scale.width):
        value = scale.value(code)
        assert (math.isnan(value) and math.isnan(other.table[code])) or value == other.table[code]
        if not math.isnan(value):
            assert (scale.significand(code), scale.exponent(code)) == (other.significand(code), other.exponent(code))


@forms
def test_blocks(form):
    other = golden.block_format(form.name)
    assert (form.size, form.full_scale, form.factors) == (other.block, other.tensor_divisor, other.factors)
    assert form.by_step == other.by_tensor
    assert (form.sums, form.window, form.additive) == (other.sums, other.window, other.additive)
    # What a step says, a tensor has in its scale bytes.
    read = form.scale_width + (form.selector_bits if form.by_step else 0)
    assert (1 << read) - 1 == other.meaningful
    assert form.stored_scale_width == 8 * other.scale_bytes
    assert (form.shifts, form.shift_bits) == (other.shifts, other.shift_bits)
    scales = other.all_scales
    selected = scales >> form.scale.width & (1 << form.selector_bits) - 1
    np.testing.assert_array_equal(selected, other.selected(scales))


def test_tensors_that_are_valid_in_another_format():
    """Its elements come first there: a selector of 0 means the same."""
    held = {
        form.name: {other.name for other in BLOCK_FORMATS.values() if form.holds(other)} - {form.name}
        for form in BLOCK_FORMATS.values()
    }
    assert held["mixfp4"] == {"nvfp4", "nvfp4-e0m3"}
    assert held["if4"] == {"nvfp4"}
    # A step has one kind of elements for all blocks.
    assert held["nvfp4-e0m3"] == {"nvfp4"}
    assert held["mxfp4"] == {"mxfp4-2x16"}
    assert not held["nvfp4"] | held["nvint4"] | held["int8"]


@forms
def test_stored_bytes(form):
    q = golden.quantize(np.ones((1, form.size)), form.name)
    stored = q.scales.nbytes if form.scale_bytes else 0
    assert form.stored_bytes == q.packed.nbytes + stored
