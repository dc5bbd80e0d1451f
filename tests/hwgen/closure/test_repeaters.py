"""Repeaters: trees against all that could be built, and a placed core that computes what it did."""

import itertools

import numpy as np
import pytest

from hwgen.cells import libraries, reader
from hwgen.closure.classes import classes
from hwgen.closure.repeaters import insert_repeaters
from hwgen.closure.trees import Load, Repeater, best_tree
from hwgen.config import TensorCoreConfig
from hwgen.layout import Technology, lay_out, technology_of
from hwgen.mapping.yosys import RECIPES
from hwgen.measure.checks import check_core
from hwgen.measure.flow import Design, Flow
from hwgen.netlist.fanout import TREE
from hwgen.netlist.link import link
from hwgen.rtl.tensor_core import TensorCore
from hwgen.timing.compiled import compile_timing
from hwgen.timing.loads import assumptions

# fF and kohm per um, without a detour.
WIRE = Technology("test", 0.27, 0.054, 0.2, 0.03, "test", detour=1.0)
SMALL = Repeater("small", 0.6, 0.012, 0.004)
LARGE = Repeater("large", 2.4, 0.014, 0.001)


def wire(length, behind):
    """Delay of a wire, ns."""
    return 1e-3 * 0.03 * length * (0.5 * 0.2 * length + behind)


def chained(length, places, kinds, load, slope):
    """Required time at a driver with repeaters at given places of a straight wire, from its delays."""
    required, capacitance, at = 0.0, load, length
    for place, kind in sorted(zip(places, kinds, strict=True), key=lambda pair: -pair[0]):
        required -= wire(at - place, capacitance)
        capacitance += 0.2 * (at - place)
        required -= kind.delay + kind.slope * capacitance
        capacitance, at = kind.capacitance, place
    required -= wire(at, capacitance)
    return required - slope * (capacitance + 0.2 * at)


def named(tree):
    return [(each[0].name, named(each[2])) if isinstance(each, tuple) else each for each in tree]


@pytest.mark.parametrize("kinds", [[SMALL], [LARGE], [SMALL, LARGE]], ids=["small", "large", "both"])
@pytest.mark.parametrize("length", [10.0, 70.0, 150.0])
def test_a_wire_gets_the_best_of_all_chains(length, kinds):
    slope, load = 0.006, 1.5
    gain, tree = best_tree([Load(length, 0.0, load, 0.0)], (0.0, 0.0), slope, kinds, WIRE, 0.0)
    apart = min(2 * (it.delay + it.slope * it.capacitance) for it in kinds)
    pieces = max(1, int(np.ceil(length / ((apart / (0.2 * 0.03e-3)) ** 0.5 / 3))))
    points = [length * number / pieces for number in range(1, pieces + 1)]
    best = max(
        chained(length, places, chosen, load, slope)
        for count in range(4)
        for places in itertools.combinations(points, count)
        for chosen in itertools.product(kinds, repeat=count)
    )
    assert gain == pytest.approx(best - chained(length, [], [], load, slope), abs=1e-12)
    # How many of them there are, one after the other.
    depth, before = 0, 0.0
    while isinstance(tree[0], tuple):
        assert tree[0][1] == (pytest.approx(min(points, key=lambda point: abs(point - tree[0][1][0]))), 0.0)
        assert tree[0][1][0] > before
        before = tree[0][1][0]
        tree, depth = tree[0][2], depth + 1
    assert tree == [0]
    assert (depth == 0) == (gain == 0)
    assert depth <= 3


def test_each_repeater_must_gain_something():
    loads = [Load(150.0, 0.0, 1.5, 0.0)]
    gains = [best_tree(loads, (0.0, 0.0), 0.006, [SMALL], WIRE, each)[0] for each in (0.0, 0.005, 1.0)]
    assert gains[0] > gains[1] > gains[2] == 0


def test_what_can_wait_goes_behind_a_repeater():
    near, far = Load(5.0, 0.0, 1.0, 0.0), Load(0.0, 120.0, 20.0, 1.0)
    gain, tree = best_tree([near, far], (0.0, 0.0), 0.004, [SMALL], WIRE, 0.0)
    assert gain > 0.05
    assert 0 in tree
    ((kind, behind),) = named(each for each in tree if each != 0)
    assert kind == "small"
    while isinstance(behind[0], tuple):
        ((_, behind),) = behind
    assert behind == [1]


def test_long_nets_are_in_upper_layers():
    upper = Technology("test", 0.27, 0.054, 0.2, 0.03, "test", detour=1.0, long_from=50.0, long_resistance=0.003)
    load = [Load(150.0, 0.0, 1.5, 0.0)]
    assert (
        best_tree(load, (0.0, 0.0), 0.001, [LARGE], upper, 0.0)[0]
        < best_tree(load, (0.0, 0.0), 0.001, [LARGE], WIRE, 0.0)[0]
    )


def test_a_core_with_repeaters(cache):
    """All nets of the top module are critical: it is faster, its trees by fanout are gone, and it computes the same."""
    library = reader.load(libraries.path("generic7"))
    config = TensorCoreConfig("four", "nvfp4", "nvfp4", rows=2, columns=2, groups=1, pipeline=("decoded", "terms"))
    design = Design(config, TensorCore)
    jobs = design.plan([RECIPES["area"]], [0])
    bodies = Flow(library, cache).synthesise(jobs, "test")
    modules = design.assembled(bodies, {job.module: RECIPES["area"] for job in jobs}, 0, library)
    top = TensorCore.module_name
    netlist = link(modules, top, library)
    layout = lay_out(netlist, technology_of(library))
    folded = _folded(layout, library)
    before = [name for name in modules[top]["cells"] if name.startswith(TREE)]
    assert before

    none, places = insert_repeaters(modules, layout, folded, 1e3)
    assert not places
    assert none[top]["cells"] == modules[top]["cells"]

    more, places = insert_repeaters(modules, layout, folded, 0.01)
    assert modules[top]["cells"].keys() >= set(before)  # what was given is as it was
    names = more[top]["cells"]
    assert not [name for name in names if name.startswith(TREE)]
    assert places
    assert sorted(places) == sorted(name for name in names if name.startswith("$repeater$"))
    assert all(0 <= x <= layout.die[0] and 0 <= y <= layout.die[1] for x, y in places.values())
    linked = link(more, top, library)
    assert check_core(linked, config, 1000) >= 1000
    assert linked.n_cells == netlist.n_cells - len(before) + len(places)
    # Trees are built anew from what they lead to in the end.
    placed = lay_out(linked, technology_of(library))
    again, few = insert_repeaters(more, placed, _folded(placed, library), 0.01)
    assert sorted(few) == sorted(name for name in again[top]["cells"] if name.startswith("$repeater$"))
    assert check_core(link(again, top, library), config, 1000) >= 1000


def _folded(layout, library):
    netlist = layout.netlist
    families = [family for family in library.families() if len(family) > 1]
    return compile_timing(netlist, assumptions(library), layout.wires(), classes(netlist).number, families=families)
