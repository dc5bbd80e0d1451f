"""Arcs of one edge alone, of either sense, and of clocks."""

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.netlist.link import link
from hwgen.power.glitch import Gates
from hwgen.timing.analysis import analyse
from hwgen.timing.arcs import collect

CELL = """
library (one) {{
  nom_voltage : 1;
  cell (G) {{ pin (A) {{ direction : input; }} pin (Y) {{ direction : output; function : "{}"; {} }} }}
}}
"""


def arc(kind, rise, fall, sense=""):
    return (
        f'timing () {{ related_pin : "A"; timing_type : {kind}; {sense}'
        f' cell_rise (scalar) {{ values ("{rise}"); }} cell_fall (scalar) {{ values ("{fall}"); }} }}'
    )


def netlist(make, tmp_path, function, arcs):
    path = tmp_path / "one.lib"
    path.write_text(CELL.format(function, arcs))
    body = make({"a": ("input", [2]), "y": ("output", [3])}, {"g": ("G", {"A": 2, "Y": 3})})
    return link({"t": body}, "t", reader.load(path))


@pytest.mark.parametrize(
    ("function", "arcs", "delays"),
    [
        # What a group says of the edge that it is not about does not count.
        ("A", arc("combinational_rise", 1, 9) + arc("combinational_fall", 9, 2), {"rise": 1, "fall": 2}),
        ("!A", arc("combinational_rise", 3, 9) + arc("combinational_fall", 9, 2), {"rise": 3, "fall": 2}),
        ("A", arc("combinational", 4, 2), {"rise": 4, "fall": 2}),
        ("A", arc("combinational", 1, 2, "timing_sense : non_unate;"), {"rise": 1, "fall": 2}),
    ],
)
def test_edges(make, tmp_path, function, arcs, delays):
    found = netlist(make, tmp_path, function, arcs)
    assert analyse(found).delays == {"in_to_out": max(delays.values())}
    slow = max(delays, key=delays.get)
    assert analyse(found).path[-1].arc.endswith(f"-> Y {slow}")
    ends = {label.rpartition(" ")[2] for label in collect(found).labels}
    assert ends == {"rise", "fall"}
    # The simulation with delays follows the same arcs.
    gates = Gates(found, analyse(found))
    (y,) = found.ports["y"].nets.tolist()
    times = [time for _, time, net in gates.events([[0], [1], [0]]) if net == y]
    order = ("rise", "fall") if function == "A" else ("fall", "rise")
    assert times == [delays[edge] for edge in order]


@pytest.mark.parametrize(
    ("sense", "labels"),
    [
        ("positive_unate", ["A rise -> Y rise", "A fall -> Y fall"]),
        ("negative_unate", ["A fall -> Y rise", "A rise -> Y fall"]),
        ("non_unate", ["A rise -> Y rise", "A fall -> Y rise", "A fall -> Y fall", "A rise -> Y fall"]),
    ],
)
def test_senses(make, tmp_path, sense, labels):
    found = netlist(make, tmp_path, "A", arc("combinational", 1, 2, f"timing_sense : {sense};"))
    arcs = collect(found)
    assert arcs.labels == labels
    (a,), (y,) = found.ports["a"].nets.tolist(), found.ports["y"].nets.tolist()
    places = {"A rise": 2 * a, "A fall": 2 * a + 1, "Y rise": 2 * y, "Y fall": 2 * y + 1}
    for start, end, label in zip(arcs.start, arcs.end, arcs.label, strict=True):
        cause, _, effect = arcs.labels[label].partition(" -> ")
        assert (start, end) == (places[cause], places[effect])
    assert arcs.bounds.tolist() == [0, len(labels)]


def test_arcs_by_level_and_end(mac):
    """Arcs to the same end stand together, as the netlist has them: that decides which of two equal paths is shown."""
    arcs = collect(mac)
    level = mac.level[arcs.cell]
    assert np.array_equal(np.lexsort((arcs.end, level)), np.arange(len(arcs.end)))
    same = (np.diff(arcs.end) == 0) & (np.diff(level) == 0)
    assert same.any()
    assert np.all(np.diff(arcs.label)[same] > 0)
