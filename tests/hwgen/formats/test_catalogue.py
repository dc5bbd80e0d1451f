"""The records of the catalogue, against those of the golden model, which are written independently."""

import dataclasses
import math

import numpy as np
import pytest

from hwgen.config.dots import DOTS
from hwgen.formats import BLOCK_FORMATS, ElementFormat
from sim import golden

forms = pytest.mark.parametrize("form", BLOCK_FORMATS.values(), ids=BLOCK_FORMATS)


def test_both_know_the_same_formats():
    assert set(BLOCK_FORMATS) == set(golden.FORMATS)
    assert all(form.name == name for name, form in BLOCK_FORMATS.items())


@forms
def test_elements(form):
    other = golden.block_format(form.name)
    assert [element.name for element in form.elements] == [element.name for element in other.elements]
    assert form.always_cut == other.always_cut
    for mine, wanted in zip(form.elements, other.elements, strict=True):
        assert tuple(mine.values) == wanted.values
        assert (mine.width, mine.integers, mine.fold) == (wanted.width, wanted.integers, wanted.fold)
        assert (mine.point, mine.nans, mine.infinities) == (wanted.point, wanted.nans, wanted.infinities)


@pytest.mark.parametrize("other", [name for name, form in BLOCK_FORMATS.items() if form.size == 16])
def test_both_take_the_same_formats_beside_fp16(other):
    """One kind of elements, in one sum; L-Mul apart, whose blocks are longer."""
    for a, b in (("fp16", other), (other, "fp16")):
        reason = DOTS["windowed"].supports(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
        assert (reason is not None) == (len(BLOCK_FORMATS[other].elements) > 1)
        if reason is None:
            assert golden.max_fraction_bits(1, a, b) > 35
            continue
        with pytest.raises(golden.ArgumentError, match="products are cut to a window"):
            golden.max_fraction_bits(1, a, b)


def test_a_window_holds_the_bits_of_a_product():
    """Significands of 11 and of 12 bits have 21 behind the point."""
    values, said = (0, 4095, 0, -4095), "have 21 bits behind the point"
    mine = [dataclasses.replace(BLOCK_FORMATS["fp16"], name="short", window=bits) for bits in (21, 20)]
    long = dataclasses.replace(BLOCK_FORMATS["int8"], name="long", elements=(ElementFormat("long", values, ""),))
    assert DOTS["windowed"].supports(mine[0], long) is None
    assert said in str(DOTS["windowed"].supports(mine[1], long))
    theirs = [dataclasses.replace(golden.CATALOGUE["fp16"], name=f"{bits}", window=bits) for bits in (21, 20)]
    elements = (golden.ElementFormat("long", 2, tuple(map(float, values)), fold=1),)
    other = dataclasses.replace(golden.CATALOGUE["int8"], name="long", elements=elements)
    assert golden.max_fraction_bits(1, theirs[0], other) > 30
    with pytest.raises(golden.ArgumentError, match=said):
        golden.max_fraction_bits(1, theirs[1], other)


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
