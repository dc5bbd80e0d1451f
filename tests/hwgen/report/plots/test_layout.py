"""Pictures of placed cores, from what a report holds of them."""

import dataclasses
import io

import numpy as np
import pytest
from matplotlib.image import imread

from hwgen.report.plots.layout import placement_png
from hwgen.report.raster import packed
from hwgen.report.schema import Placement


def placement(blocks=("dot products", "scale products"), die=(40.0, 20.0)):
    """The first block at the left, nothing at the right, the second in between."""
    image = np.full((10, 20), -1)
    image[:, :12] = 1
    image[:, :8] = 0
    return Placement(1234, die, blocks, 20, 10, packed(image))


def shares(content):
    """Share of the picture that each colour of an 8-bit RGB has."""
    pixels = np.rint(255 * imread(io.BytesIO(content))[..., :3]).astype(int).reshape(-1, 3)
    colours, count = np.unique(pixels, axis=0, return_counts=True)
    return {tuple(colour): many / len(pixels) for colour, many in zip(colours.tolist(), count.tolist(), strict=True)}


def test_areas_have_their_blocks_colours():
    found = shares(placement_png({"$a": placement()}))
    orange, blue = found[0xE6, 0x9F, 0x00], found[0x56, 0xB4, 0xE9]
    assert 0.05 < blue < orange
    assert orange / blue == pytest.approx(2, rel=0.05)


def test_cores_side_by_side_have_one_scale():
    """A core of half the width and height covers a quarter of the area."""
    both = placement_png({"large": placement(), "small": placement(("operand decoders",) * 2, (20.0, 10.0))}, "both")
    found = shares(both)
    large = found[0xE6, 0x9F, 0x00] + found[0x56, 0xB4, 0xE9]
    assert large / found[0x00, 0x72, 0xB2] == pytest.approx(4, rel=0.1)


def test_a_block_of_a_few_cells_keeps_its_colour():
    few = placement(("align, add, normalise, round", "operand decoders"))
    image = np.zeros((10, 20), int)
    image[4, 7] = 1
    found = shares(placement_png({"a": dataclasses.replace(few, pixels=packed(image))}))
    assert found[0x00, 0x9E, 0x73] > 0.2
    assert found[0x00, 0x72, 0xB2] > 0.001


def test_the_same_bytes_again():
    assert placement_png({"a": placement()}) == placement_png({"a": placement()})


def test_pixels_that_are_none():
    damaged = Placement(1, (1.0, 1.0), ("dot products",), 20, 10, "no")
    with pytest.raises(ValueError, match="pixels"):
        placement_png({"a": damaged})
