"""Placed cores as pictures: every cell where it stands, coloured by block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from hwgen.report.plots.canvas import BLOCKS, plain, png
from hwgen.report.raster import unpacked
from hwgen.report.schema import Placement

__all__ = ["placement_png"]

_OTHER = "#cc79a7"
_EMPTY = (1.0, 1.0, 1.0)


def placement_png(placements: Mapping[str, Placement], title: str = "") -> bytes:
    """Draw placed cores side by side, at one scale.

    Parameters
    ----------
    placements
        By the title of each.
    title
        Of all.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(1.5 + 7 * len(placements), 8.2), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(1, len(placements), squeeze=False, sharex=True, sharey=True)[0]
    for axis, (name, placement) in zip(axes, placements.items(), strict=True):
        _draw(axis, placement)
        axis.set_title(plain(name), fontsize=10)
    axes[0].set_xlim(0, max(placement.die_um[0] for placement in placements.values()))
    axes[0].set_ylim(0, max(placement.die_um[1] for placement in placements.values()))
    shown = dict.fromkeys(block for placement in placements.values() for block in placement.blocks)
    keys = [Patch(color=BLOCKS.get(name, _OTHER), label=plain(name)) for name in shown]
    canvas.legend(handles=keys, fontsize=9, loc="outside lower center", ncol=3, frameon=False)
    if title:
        canvas.suptitle(plain(title), fontsize=11)
    return png(canvas)


def _draw(axis: Any, placement: Placement) -> None:
    """One core, its lower left corner at the origin."""
    across, up = placement.die_um
    image = unpacked(placement.pixels, (placement.pixels_across, placement.pixels_up))
    colours = np.array([*(to_rgb(BLOCKS.get(name, _OTHER)) for name in placement.blocks), _EMPTY])
    # Mixed colours would make the file ten times as large, and small blocks hard to tell.
    axis.imshow(colours[image], origin="lower", extent=(0, across, 0, up), interpolation="nearest")
    axis.set_xlabel("um")
    axis.set_ylabel("um")
