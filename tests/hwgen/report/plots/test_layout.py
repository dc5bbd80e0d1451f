"""Pictures of placements: pixels by hand."""

import io

import numpy as np
from matplotlib.image import imread

from hwgen.report.plots.layout import layout_png, painted

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


def test_png():
    names = ["dot products", "element", "registers and control"]
    content = layout_png(title="$a", blocks=names, **CELLS)
    assert content == layout_png(title="$a", blocks=names, **CELLS)
    assert imread(io.BytesIO(content)).std() > 0.05
