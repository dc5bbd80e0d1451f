"""A core synthesised and placed, and the command that does it."""

import json

import pytest

from hwgen.cells import libraries, reader
from hwgen.config import TensorCoreConfig
from hwgen.measure.netlists.flow import Flow
from hwgen.measure.netlists.placement import drawn, figures, placed


@pytest.fixture(scope="module")
def layout(cache):
    """A core of two by two elements, whose element other tests synthesise too."""
    config = TensorCoreConfig("nvfp4-four", "nvfp4", "nvfp4", rows=2, columns=2, groups=1)
    flow = Flow(reader.load(libraries.path("generic7")), cache, workers=1)
    return placed(config, flow, 0.7, "embedded", "array", 1)


def test_figures(layout):
    assert layout.faults() == []
    found = figures(layout)
    json.dumps(found)
    blocks = found["blocks"]
    assert sum(block["area_um2"] for block in blocks.values()) == pytest.approx(layout.netlist.area)
    assert sum(block["wires_ff"] for block in blocks.values()) == pytest.approx(found["wires_ff"])
    assert sum(block["steiner_trees_um"] for block in blocks.values()) == pytest.approx(found["steiner_trees_um"])
    assert found["half_perimeters_um"] < found["steiner_trees_um"] < 1.2 * found["half_perimeters_um"]
    per_um = layout.technology.capacitance * layout.technology.detour
    assert found["wires_ff"] == pytest.approx(found["steiner_trees_um"] * per_um)
    # 0.375 fF by fanout are charged where nothing is placed.
    assert 0.15 < found["wire_per_fanout_ff"] < 0.45
    assert found["utilisation"] == pytest.approx(0.7, abs=0.02)
    assert found["clock_buffers"] > 0


def test_picture(layout):
    assert drawn(layout, "nvfp4-four").startswith(b"\x89PNG")
