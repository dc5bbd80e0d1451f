"""Trees of repeaters against all that could be built."""

import itertools

import numpy as np
import pytest

from hwgen.closure.trees import Load, Repeater, best_tree
from hwgen.layout import Technology

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


@pytest.mark.sampled(2)
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


def test_a_far_load_makes_its_wire_late_for_a_near_one():
    """Timing takes a net's delay to be that to its farthest load: a repeater keeps the rest of the way apart."""
    near, far = Load(10.0, 0.0, 1.0, 0.0), Load(40.0, 0.0, 1.0, 0.2)

    def required(parts, at, slope):
        """When the driver of a straight net has to switch, by the delay of its wire to the farthest end."""
        ends = sorted(
            (each[1][0], SMALL.capacitance, required(each[2], each[1][0], SMALL.slope) - SMALL.delay)
            if isinstance(each, tuple)
            else ([near, far][each].x, 1.0, [near, far][each].required)
            for each in parts
        )
        last, late, load = at, 0.0, sum(capacitance for _, capacitance, _ in ends) + 0.2 * (ends[-1][0] - at)
        whole = load
        for place, capacitance, _ in ends:
            load -= 0.2 * (place - last)
            late += wire(place - last, load)
            load, last = load - capacitance, place
        return min(latest for _, _, latest in ends) - late - slope * whole

    gain, tree = best_tree([near, far], (0.0, 0.0), 0.0, [SMALL], WIRE, 0.0)
    assert gain == pytest.approx(required(tree, 0.0, 0.0) - required([0, 1], 0.0, 0.0), abs=1e-12)
    assert gain > 0
    assert 0 in tree
    assert len(tree) == 2


def test_long_nets_are_in_upper_layers():
    upper = Technology("test", 0.27, 0.054, 0.2, 0.03, "test", detour=1.0, long_from=50.0, long_resistance=0.003)
    load = [Load(150.0, 0.0, 1.5, 0.0)]
    assert (
        best_tree(load, (0.0, 0.0), 0.001, [LARGE], upper, 0.0)[0]
        < best_tree(load, (0.0, 0.0), 0.001, [LARGE], WIRE, 0.0)[0]
    )


def test_every_load_is_in_the_tree_once():
    """Forty loads all over the place; what the tree gains is what its delays say."""
    random = np.random.default_rng(1)
    loads = [Load(*place, 1.0 + 2.0 * random.random(), 0.1 * random.random()) for place in 200 * random.random((40, 2))]
    gain, tree = best_tree(loads, (100.0, 100.0), 0.004, [SMALL, LARGE], WIRE, 0.0)
    assert gain > 0.1

    def ends(parts):
        return [end for part in parts for end in (ends(part[2]) if isinstance(part, tuple) else [part])]

    assert sorted(ends(tree)) == list(range(40))


def test_more_wire_where_the_shortest_is_late():
    """A ring of loads: the shortest tree goes around it, both ways."""
    angles = 2 * np.pi * np.arange(24) / 24
    x, y = 100 * np.cos(angles), 100 * np.sin(angles)
    loads = [Load(*place, 1.0, 1.0) for place in zip(x[1:], y[1:], strict=True)]

    def gain(begins):
        return best_tree(loads, (x[0], y[0]), 0.004, [SMALL, LARGE], WIRE, 0.0, begins)[0]

    around, across = gain(-np.inf), gain(np.inf)
    assert across > around + 0.1
    plain = next(begins for begins in np.arange(2.0, -2.0, -0.001) if gain(begins) == around)
    # It is enough as long as the driver is early enough for it; then a tree of a little more wire is.
    assert 0 < plain < 1
    assert around < gain(plain + 0.002) < across
