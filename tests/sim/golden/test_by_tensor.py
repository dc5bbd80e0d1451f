"""Formats with one kind of elements in a tensor."""

import dataclasses

import numpy as np
import pytest

from sim import golden, tensors

NAME = "nvfp4-e0m3"


@pytest.mark.parametrize("kind", tensors.KINDS)
def test_the_kind_with_less_error_is_taken(kind):
    x = tensors.generate(kind, (32, 128), 2)
    both = [golden.quantize(x, NAME, np.full((32, 8), one)) for one in (False, True)]
    errors = [np.square(x.astype(float) - golden.dequantize(q).astype(float)).sum() for q in both]
    chosen = golden.quantize(x, NAME)
    wanted = both[int(np.argmin(errors))]
    np.testing.assert_array_equal(chosen.codes, wanted.codes)
    np.testing.assert_array_equal(chosen.scales, wanted.scales)
    np.testing.assert_array_equal(both[0].codes, golden.quantize(x, "nvfp4").codes)
    np.testing.assert_array_equal(both[0].scales, golden.quantize(x, "nvfp4").scales)


def test_numbers_that_a_core_has_too_large_are_compared_as_they_are():
    """The factors of IF4 are 7/8 and 6/8 in the core."""
    form = dataclasses.replace(golden.CATALOGUE["if4"], name="if4-by-tensor", by_tensor=True)
    for seed in range(40):
        x = tensors.generate("gaussian", (1, 64), seed)
        both = [golden.quantize(x, form, np.full((1, 4), one)) for one in (False, True)]
        errors = [np.square(x.astype(float) - golden.dequantize(q).astype(float)).sum() for q in both]
        assert golden.quantize(x, form).e1m2.all() == (np.argmin(errors) == 1)


def test_errors_beyond_the_range_of_numbers_are_no_warning():
    q = golden.quantize(np.full((1, 16), 1e200), NAME, tensor_scale=1.0)
    assert not q.e1m2.any()  # both are infinite
    assert golden.dequantize(q).max() == 448 * 6


def test_elements_are_0_to_7():
    x = np.arange(-8.0, 8.0)[None].clip(-7, 7)
    q = golden.quantize(x, NAME, np.ones((1, 1), bool), tensor_scale=1)
    assert q.scales.tolist() == [[0x38 | 0x80]]
    np.testing.assert_array_equal(golden.dequantize(q), x)
    assert golden.quantize(x, NAME).e1m2.all()
    assert not golden.quantize(np.array([[6.0, 0.5, *[0.0] * 14]]), NAME).e1m2.any()


def test_blocks_of_zeros_have_the_selector_of_the_others():
    x = np.zeros((2, 32))
    x[0, :15] = np.arange(15) - 7
    assert golden.quantize(x, NAME).scales.tolist()[1] == [0x80, 0x80]
    assert not golden.quantize(np.zeros((1, 16)), NAME).e1m2.any()  # of equal errors E2M1


def test_what_is_refused():
    x, mixed = np.ones((1, 32)), np.array([[False, True]])
    with pytest.raises(golden.ArgumentError, match="e1m2 differs from block to block; nvfp4-e0m3 has one kind"):
        golden.quantize(x, NAME, mixed)
    q = golden.quantize(x, "mixfp4", mixed)
    with pytest.raises(
        golden.ArgumentError, match="scales select both kinds of elements; a tensor of nvfp4-e0m3 has one"
    ):
        dataclasses.replace(q, format=NAME)
    plain = golden.CATALOGUE["nvfp4"]
    with pytest.raises(golden.ArgumentError, match="x: by_tensor takes two kinds of elements; got 1"):
        golden.BlockFormat("x", plain.elements, plain.scale, 1.0, by_tensor=True)
