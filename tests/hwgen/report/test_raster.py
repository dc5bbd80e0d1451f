"""Placements as pixels, by hand."""

import numpy as np
import pytest

from hwgen.report.raster import packed, painted, unpacked

CELLS = {
    "die": (10.0, 4.0),
    "row_height": 2.0,
    "left": np.array([6.0, 0.0, 2.0]),
    "bottom": np.array([2.0, 0.0, 0.0]),
    "width": np.array([4.0, 2.0, 3.0]),
    "block": np.array([1, 0, 2]),
}


def test_pixels():
    image = painted((10, 4), **CELLS)
    assert image.tolist() == [[0, 0, 2, 2, 2, -1, -1, -1, -1, -1]] * 2 + [[-1] * 6 + [1] * 4] * 2


def test_bottoms_that_are_sums_in_another_order():
    """Copies of an element stand in a row with others but for the last bit."""
    bottom = CELLS["bottom"] + np.array([0.0, 1e-15, 0.0])
    np.testing.assert_array_equal(painted((10, 4), **{**CELLS, "bottom": bottom}), painted((10, 4), **CELLS))


def test_pixels_as_text():
    image = painted((10, 4), **CELLS)
    text = packed(image)
    assert text.isascii()
    np.testing.assert_array_equal(unpacked(text, (10, 4)), image)


@pytest.mark.parametrize("text", ["", "no", "???", packed(np.zeros((4, 10)))[:-4], "ä"])
def test_texts_that_are_none(text):
    with pytest.raises(ValueError, match=r"pixels|ASCII"):
        unpacked(text, (10, 4))


def test_another_size():
    with pytest.raises(ValueError, match="reshape"):
        unpacked(packed(np.zeros((4, 10))), (10, 5))
