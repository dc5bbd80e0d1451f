"""A core synthesised and placed: its layout, and the figures and the picture of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hwgen.config import TensorCoreConfig
from hwgen.layout.layout import Layout, lay_out
from hwgen.layout.lef import Shapes
from hwgen.layout.technology import technology_of
from hwgen.mapping.area import block_of, by_block
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.netlists.flow import Design, Flow
from hwgen.netlist.link import link
from hwgen.report.raster import packed, painted
from hwgen.report.schema import Placement
from hwgen.rtl.tensor_core import TensorCore

__all__ = ["drawn", "figures", "pictured", "placed"]

_RECIPE = "area"
_PIXELS = 480


def placed(
    config: TensorCoreConfig,
    flow: Flow,
    utilisation: float,
    placer: str,
    arrangement: str,
    seed: int,
    shapes: Shapes | None = None,
) -> Layout:
    """Synthesise a core once, for least area, and place it.

    Parameters
    ----------
    config
        The core.
    flow
        Library and cache.
    utilisation, placer, arrangement, seed, shapes
        As for `hwgen.layout.layout.lay_out`; the rows' height is that of ``shapes``, where they have a site.
    """
    design = Design(config, TensorCore)
    planned = design.plan([RECIPES[_RECIPE]], [0])
    bodies = flow.synthesise(planned, "synthesis")
    modules = design.assembled(bodies, {job.module: job.recipe for job in planned}, 0, flow.library)
    netlist = link(modules, TensorCore.module_name, flow.library)
    technology = technology_of(flow.library)
    if shapes is not None:
        technology = shapes.rows_of(technology)
    return lay_out(
        netlist,
        technology,
        utilisation=utilisation,
        placer=placer,
        arrangement=arrangement,
        seed=seed,
        shapes=shapes,
    )


def figures(layout: Layout) -> dict[str, Any]:
    """What there is to say of a layout, ready for JSON; units in the names."""
    netlist, technology, wires, tree = layout.netlist, layout.technology, layout.wires(), layout.clock_tree
    signal = wires.capacitance.copy()
    signal[list(tree.capacitance)] = 0.0
    area = by_block(netlist.area_by_block())
    length, capacitance = by_block(layout.by_block(layout.length)), by_block(layout.by_block(signal))
    return {
        "library": netlist.library.name,
        "technology": technology.source,
        "arrangement": layout.arrangement,
        "placer": layout.placer,
        "cells": netlist.n_cells,
        "nets": int((np.diff(layout.pins.start) > 1).sum()),
        "die_um": f"{layout.die[0]:.4g} x {layout.die[1]:.4g}",
        "utilisation": layout.filled,
        "half_perimeters_um": float(layout.half_perimeter.sum()),
        "steiner_trees_um": float(layout.length.sum()),
        "detour": technology.detour,
        "wires_ff": float(signal.sum()),
        "wire_per_fanout_ff": float(signal.sum() / max(int(netlist.fanout[signal > 0].sum()), 1)),
        "clock_buffers": sum(tree.buffers.values()),
        "clock_wires_ff": float(sum(tree.capacitance.values())),
        "blocks": {
            block: {
                "area_um2": area[block],
                "steiner_trees_um": length.get(block, 0.0),
                "wires_ff": capacitance.get(block, 0.0),
            }
            for block in area
        },
    }


def pictured(layout: Layout) -> Placement:
    """A layout as pixels, by block."""
    names = [block_of(path) for path in layout.netlist.blocks]
    blocks = list(dict.fromkeys(names))
    number = np.array([blocks.index(name) for name in names])
    image = painted(
        (_PIXELS, _PIXELS),
        layout.die,
        layout.rows.height,
        layout.x,
        layout.y,
        layout.width,
        number[layout.netlist.cell_block],
    )
    return Placement(layout.netlist.n_cells, layout.die, tuple(blocks), _PIXELS, _PIXELS, packed(image))


def drawn(layout: Layout, title: str) -> bytes:
    """A picture of a layout, coloured by block, as a PNG."""
    from hwgen.report.plots.layout import placement_png

    cells = f"{layout.netlist.n_cells:,} cells, {layout.arrangement}"
    return placement_png({f"{title}, {layout.netlist.library.name}: {cells}": pictured(layout)})
