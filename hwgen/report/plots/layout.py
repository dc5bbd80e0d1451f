"""A placed core as a picture: every cell where it stands, coloured by block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from hwgen.report.plots.canvas import BLOCKS, plain, png

__all__ = ["layout_png", "painted"]

_PIXELS = 1600
_OTHER = "#cc79a7"


def painted(
    size: tuple[int, int],
    die: tuple[float, float],
    row_height: float,
    left: np.ndarray,
    bottom: np.ndarray,
    width: np.ndarray,
    block: np.ndarray,
) -> np.ndarray:
    """Block at the middle of each pixel, shape (height, width), the lowest row first; -1 where no cell stands.

    Parameters
    ----------
    size
        Pixels across and up.
    die
        Width and height, um.
    row_height
        um.
    left, bottom, width
        Shape (n_cells,): lower left corners and widths, um.
    block
        Shape (n_cells,): number of each cell's block.
    """
    across, up = size
    middle_x = (np.arange(across) + 0.5) * die[0] / across
    row_of = np.floor((np.arange(up) + 0.5) * die[1] / up / row_height).astype(int)
    order = np.lexsort((left, bottom))
    row = np.rint(bottom[order] / row_height).astype(int)
    image = np.full((up, across), -1, dtype=np.int64)
    for number in np.unique(row_of).tolist():
        first, last = np.searchsorted(row, [number, number + 1])
        cells = order[first:last]
        if not len(cells):
            continue
        under = np.searchsorted(left[cells], middle_x, side="right") - 1
        cell = cells[np.maximum(under, 0)]
        covered = (under >= 0) & (middle_x < left[cell] + width[cell])
        image[row_of == number] = np.where(covered, block[cell], -1)
    return image


def layout_png(
    *,
    title: str,
    die: tuple[float, float],
    row_height: float,
    left: np.ndarray,
    bottom: np.ndarray,
    width: np.ndarray,
    block: np.ndarray,
    blocks: Sequence[str],
) -> bytes:
    """Draw a placed core.

    Parameters
    ----------
    title
        What it is.
    die, row_height, left, bottom, width, block
        As for `painted`.
    blocks
        Names by number.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(8.5, 9.2), layout="constrained")
    FigureCanvasAgg(canvas)
    axis = canvas.subplots()
    size = _PIXELS, max(round(_PIXELS * die[1] / die[0]), 1)
    colours = np.array([*(to_rgb(BLOCKS.get(name, _OTHER)) for name in blocks), (1.0, 1.0, 1.0)])
    image = colours[painted(size, die, row_height, left, bottom, width, block)]
    axis.imshow(image, origin="lower", extent=(0, die[0], 0, die[1]), interpolation="antialiased")
    axis.set_xlabel("um")
    axis.set_ylabel("um")
    axis.set_title(plain(title), fontsize=10)
    keys = [Patch(color=BLOCKS.get(name, _OTHER), label=name) for name in blocks]
    axis.legend(handles=keys, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.07), ncol=3, frameon=False)
    return png(canvas)
