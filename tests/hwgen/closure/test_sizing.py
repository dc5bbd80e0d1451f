"""Sizing on a real netlist, judged by the timing analysis that has no part in it."""

import copy

import numpy as np
import pytest

from hwgen.closure.classes import classes
from hwgen.closure.greedy import _trace, recover, repair
from hwgen.closure.relaxation import bearable, multiply
from hwgen.closure.sizing import area_cost, bounds, multipliers, size
from hwgen.netlist.graph import CellGroup, Netlist
from hwgen.timing import kernels
from hwgen.timing.analysis import analyse
from hwgen.timing.compiled import compile_timing
from hwgen.timing.kernels import StateArrays
from hwgen.timing.loads import assumptions, default_wire_load


def resized(netlist, compiled):
    """The netlist with the cells that sizing chose."""
    by_cell = {}
    for node, cell in zip(compiled.node_of.tolist(), range(netlist.n_cells), strict=True):
        by_cell[cell] = compiled.kinds.cells[compiled.state.kind[node]]
    groups = {}
    for group in netlist.groups:
        for row, number in enumerate(group.cells.tolist()):
            kind = by_cell[number]
            columns = [group.cell.inputs.index(name) for name in kind.inputs]
            outs = [group.cell.outputs.index(name) for name in kind.outputs]
            groups.setdefault(kind.name, (kind, []))[1].append(
                (number, group.inputs[row, columns], group.outputs[row, outs])
            )
    made = [
        CellGroup(kind, np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), np.array([r[2] for r in rows]))
        for kind, rows in groups.values()
    ]
    fields = {name: getattr(netlist, name) for name in netlist.__dataclass_fields__}
    return Netlist(**{**fields, "groups": made})


def families(library):
    return [family for family in library.families() if len(family) > 1]


def sized(mac, real, period):
    compiled = compile_timing(mac, families=families(real), classes=classes(mac).number)
    return compiled, size(compiled, period, area_cost(compiled))


def test_sizes_meet_a_clock(mac, real):
    """The least area at any clock, a clock that is met, and more area for a shorter one; all as `analyse` sees it."""
    start = analyse(mac).delay
    loose, least = sized(mac, real, 10 * start)
    assert least.delay == pytest.approx(analyse(resized(mac, loose)).delay, rel=1e-9)
    assert least.cost == pytest.approx(resized(mac, loose).area, rel=1e-9)
    assert least.cost <= mac.area * (1 + 1e-9)
    fastest, quick = sized(mac, real, 0.1 * start)
    assert quick.delay < least.delay
    assert quick.delay == pytest.approx(analyse(resized(mac, fastest)).delay, rel=1e-9)
    period = 0.5 * (least.delay + quick.delay)
    between, met = sized(mac, real, period)
    assert analyse(resized(mac, between)).delay <= period * (1 + 1e-9)
    assert least.cost <= met.cost <= quick.cost
    assert quick.changed
    assert met.iterations


def test_cells_keep_what_they_compute(mac, real):
    compiled, _ = sized(mac, real, 0.5 * analyse(mac).delay)
    family_of = {cell.name: number for number, family in enumerate(real.families()) for cell in family}
    for group in mac.groups:
        for number in group.cells.tolist():
            now = compiled.kinds.cells[compiled.state.kind[compiled.node_of[number]]].name
            assert now == group.cell.name or family_of[now] == family_of[group.cell.name]


def test_what_enters_a_net_leaves_it(mac, real):
    """Multipliers of the arcs that end at a net add up to those of the arcs and ends behind it."""
    compiled = compile_timing(mac, families=families(real))
    graph, kinds, state = compiled.graph, compiled.kinds.arrays, compiled.state
    worth = multipliers(compiled, 1.0, 1000.0)
    assert worth.end.sum() == pytest.approx(1000.0)
    period = 0.9 * compiled.delay
    kernels.backward(graph, kinds, state, period)
    total = multiply(graph, kinds, state, worth, period, 4.0)
    assert total == pytest.approx(worth.end.sum())
    leaving = np.zeros_like(worth.net)
    np.add.at(leaving, (graph.end_net, graph.end_edge), worth.end)
    for node, kind in enumerate(state.kind.tolist()):
        shares = np.zeros((len(compiled.kinds.outputs[compiled.kinds.family[kind]]), 2))
        seen = set()
        for arc in range(kinds.first[kind], kinds.first[kind + 1]):
            target, source, slot = kinds.target[arc], kinds.source[arc], kinds.slot[arc]
            if slot in seen:
                continue
            seen.add(slot)
            share = worth.arc[worth.first[node] + slot]
            shares[target // 2, target % 2] += share
            out = graph.out_net[graph.out_first[node] + target // 2]
            before = graph.pin_net[graph.pin_first[node] + source // 2]
            leaving[before, source % 2] += share * worth.net[out, target % 2]
        assert np.all((np.abs(shares - 1) < 1e-9) | (shares == 0))
    assert leaving == pytest.approx(worth.net, rel=1e-9, abs=1e-9)
    # The latest end has gained on all others.
    latest = int(np.argmax(state.end))
    before = multipliers(compiled, 1.0, 1000.0).end
    assert worth.end[latest] / before[latest] == pytest.approx((1 / 0.9) ** 4)


def test_repair_leaves_the_times_of_what_it_chose(mac, real):
    """What it tries and does not take leaves nothing behind; what it takes makes the ends less late together."""
    compiled = compile_timing(mac, families=families(real), classes=classes(mac).number)
    state, cost = compiled.state, area_cost(compiled)
    period = 0.9 * compiled.delay
    late = np.maximum(state.end - period, 0).sum()
    kept = StateArrays(*(values.copy() for values in state))
    made = repair(compiled.graph, compiled.kinds.arrays, state, bounds(compiled), cost, period, 5, kept)
    assert 0 < made <= 5
    assert np.maximum(state.end - period, 0).sum() < late
    found = [values.copy() for values in (state.load, state.arrival, state.slew, state.end)]
    compiled.reload()
    for values, anew in zip(found, (state.load, state.arrival, state.slew, state.end), strict=True):
        np.testing.assert_allclose(values, anew, rtol=1e-9, atol=1e-12)


def late(state, period):
    """What all ends are late by, together."""
    return float(np.maximum(state.end - period, 0.0).sum())


def test_repair_goes_on_where_nothing_helps_the_latest(mac, real):
    """The cells before the latest end have no other size: the other late ends are helped all the same."""
    compiled, _ = sized(mac, real, 10 * analyse(mac).delay)
    graph, kinds, state, period = compiled.graph, compiled.kinds.arrays, compiled.state, 0.3 * compiled.delay
    latest = int(np.argmax(state.end))
    ranges, cost = bounds(compiled), area_cost(compiled)
    path, slots = np.empty((2, len(state.kind)), np.int64)
    behind = path[: _trace(graph, kinds, state, latest, path, slots)].tolist()
    # A cost by place in what is left of the family: of the one size.
    for node in behind:
        place = state.kind[node] - ranges[node, 0]
        cost[node, 0] = cost[node, place]
        ranges[node] = state.kind[node], state.kind[node] + 1
    before, worst = late(state, period), float(state.end[latest])
    kept = StateArrays(*(values.copy() for values in state))
    assert repair(graph, kinds, state, ranges, cost, period, 40, kept) > 0
    assert late(state, period) < before
    assert state.end.max() <= worst + 1e-12


def test_nothing_is_taken_from_what_is_late(mac, real):
    """At a clock out of reach cells become cheaper, and what is late is not later, together or at its worst."""
    compiled, _ = sized(mac, real, 0.5 * analyse(mac).delay)
    graph, kinds, state = compiled.graph, compiled.kinds.arrays, compiled.state
    period, ranges, cost = 0.9 * compiled.delay, bounds(compiled), area_cost(compiled)
    # Something to take: every cell that may be larger is.
    state.kind[:] = np.minimum(state.kind + 1, ranges[:, 1] - 1)
    compiled.reload()
    before, worst = late(state, period), compiled.delay
    area = sum(cost[node, kind - ranges[node, 0]] for node, kind in enumerate(state.kind))
    kernels.backward(graph, kinds, state, period)
    assert before > 0
    assert recover(graph, kinds, state, ranges, cost, period) > 0
    assert late(state, period) <= before + 1e-12
    compiled.reload()
    assert late(state, period) <= before + 1e-9
    assert compiled.delay <= worst + 1e-9
    assert sum(cost[node, kind - ranges[node, 0]] for node, kind in enumerate(state.kind)) < area


def test_sizes_bear_their_loads(mac, real):
    """With long wires, at a slow clock: the smallest gates would drive too much, and none does that has a larger."""
    assumed = assumptions(real, wire_load=6 * default_wire_load(real))
    compiled = compile_timing(mac, assumed, families=families(real))
    size(compiled, 100.0, area_cost(compiled))
    kinds, limits = compiled.kinds, compiled.kinds.arrays.limit
    unlimited = compile_timing(mac, assumed, families=families(real))
    unlimited.kinds = copy.copy(kinds)
    unlimited.kinds.arrays = kinds.arrays._replace(limit=np.full_like(limits, np.inf))
    size(unlimited, 100.0, area_cost(unlimited))

    def over(found):
        """Nodes above their limit though their family has a kind that is not."""
        ranges, bad = bounds(found), []
        for node in range(len(found.copies)):
            outs = found.graph.out_net[found.graph.out_first[node] : found.graph.out_first[node + 1]]
            load = found.state.load[outs].max(axis=1)
            if np.any(load > limits[found.state.kind[node], : len(outs)] * (1 + 1e-9)) and np.any(
                np.all(load <= limits[slice(*ranges[node]), : len(outs)], axis=1)
            ):
                bad.append(kinds.cells[found.state.kind[node]].name)
        return bad

    assert over(compiled) == []
    assert over(unlimited)


def test_bearable_loads(mac, real):
    """At the load that a kind bears its slowest output has the slew asked for; a smaller kind bears less."""
    compiled = compile_timing(mac, families=families(real))
    kinds = compiled.kinds.arrays
    found = bearable(kinds, 0.05, 0.4)
    for kind, out in np.argwhere(found < np.inf).tolist():
        arcs = [arc for arc in range(kinds.first[kind], kinds.first[kind + 1]) if kinds.target[arc] // 2 == out]
        if load := found[kind, out]:
            slews = [kernels.lookup.py_func(kinds, kinds.slew[arc], 0.05, load) for arc in arcs]
            assert max(slews) == pytest.approx(0.4, rel=1e-6) or (load < 1e-3 and max(slews) > 0.4)
    largest = max(families(real), key=len)
    loads = [found[compiled.kinds.number[cell.name], 0] for cell in largest]
    assert max(loads) > 2 * min(loads) > 0


def test_update_says_when_the_latest_end_is(mac, real):
    """Ends that a change does not reach stay as they are: the latest of all is then or among what was reached."""
    compiled = compile_timing(mac, families=families(real))
    graph, kinds, state = compiled.graph, compiled.kinds.arrays, compiled.state
    ranges, queued = bounds(compiled), np.zeros(len(compiled.copies), bool)
    room = np.empty((2, len(compiled.copies)), np.int64)
    for node in np.flatnonzero(np.diff(ranges, axis=1).ravel() > 1)[::50]:
        before = state.end.copy()
        kernels.swap(graph, kinds, state, node, ranges[node, 1] - 1)
        _, latest = kernels.update(graph, kinds, state, node, queued, 0.0, room)
        changed = state.end[state.end != before]
        assert latest >= changed.max(initial=-np.inf)
        assert latest == -np.inf or latest in state.end
