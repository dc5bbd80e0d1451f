"""A placed core as pixels: which block stands where, small enough for a report's JSON."""

from __future__ import annotations

import base64
import binascii
import zlib

import numpy as np

__all__ = ["packed", "painted", "unpacked"]


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
    row = np.rint(bottom / row_height).astype(int)
    order = np.lexsort((left, row))
    row = row[order]
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


def packed(image: np.ndarray) -> str:
    """Pixels as text: base64 of zlib-compressed bytes, one for each pixel; 255 where no cell stands."""
    return base64.b64encode(zlib.compress(image.astype(np.uint8).tobytes(), 9)).decode()


def unpacked(text: str, size: tuple[int, int]) -> np.ndarray:
    """Pixels from such a text, as of `painted`.

    Raises
    ------
    ValueError
        It is something else, or of another size.
    """
    across, up = size
    try:
        found = np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype=np.uint8)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"pixels: {error}") from None
    image = found.astype(np.int64).reshape(up, across)
    return np.where(image == 255, -1, image)
