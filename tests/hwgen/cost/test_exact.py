"""The cycles of the model are those of the simulated RTL: no difference on any shape, pipeline or stream."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwgen.config import LOOP_REGISTERS, TensorCoreConfig
from hwgen.cost.gemms import Gemms
from hwgen.cost.schedule import core_cycles, last_steps, schedule
from hwgen.cost.stream import stream
from sim import engines, golden, tensors
from sim.steps import schedule as schedule_of_operands

BEFORE = (
    *((), ("terms",), ("operands", "terms"), ("operands", "sums", "terms"), ("decoded", "tree", "factors", "terms")),
    *(("decoded", "tree", "sums", "factors", "terms"), ("operands", "decoded", "tree", "sums", "factors", "terms")),
)
LOOP = (
    *((), ("total",), ("aligned", "normal"), ("aligned", "total", "normal")),
    *(("compared", "aligned", "total", "normal"), LOOP_REGISTERS),
)
CORES = [
    TensorCoreConfig("tiny", *[("nvfp4", "mixfp4")[(len(one) + len(other)) % 2]] * 2, 1, 1, 1, pipeline=(*one, *other))
    for one, other in itertools.product(BEFORE, LOOP)
]
"""Every number of registers before the loop with every number in it: all that the control knows of a pipeline."""

EXACT = [
    TensorCoreConfig("exact", "nvfp4", "nvfp4", 1, 1, 1, pipeline=pipeline, numerics="exact")
    for pipeline in ((), ("terms", "aligned"), ("operands", "total", "normal"))
]
cores = st.sampled_from(CORES)
sizes = st.integers(1, 3)
patterns = st.one_of(
    st.just([True]),
    st.lists(st.booleans(), min_size=1, max_size=12).filter(any),
    # Long gaps let the loop run dry.
    st.tuples(st.integers(1, 6), st.integers(1, 6)).map(lambda runs: [True] * runs[0] + [False] * runs[1]),
)


@settings(max_examples=200, deadline=None)
@given(
    config=cores,
    shape=st.tuples(sizes, sizes, st.integers(1, 50), st.integers(1, 2)),
    offer=patterns,
    take=patterns,
)
def test_any_shape_with_gaps_and_stalls(bench, config, shape, offer, take):
    gemms = Gemms.of([shape])
    found = schedule(config, gemms)
    last = last_steps(config, int(found.tiles[0]), -(-shape[2] // config.depth))
    assert len(last) == found.steps[0]
    accepted, taken, cycles = bench(config).run(last, offer, take, 1)
    model = stream(config, last, offer=offer, take=take)
    assert model.accepted.tolist() == accepted
    assert model.taken.tolist() == taken
    assert model.cycles == cycles
    if all(offer) and all(take):
        assert found.cycles[0] == cycles


@settings(max_examples=100, deadline=None)
@given(config=cores, tiles=st.integers(1, 9), steps=st.integers(1, 4), period=st.integers(1, 6))
def test_a_step_now_and_then(bench, config, tiles, steps, period):
    """In closed form; with every period, steps wait for their turns or do not."""
    _, _, cycles = bench(config).run(last_steps(config, tiles, steps), [True], [True], period)
    assert core_cycles(config, np.array([tiles]), np.array([steps]), period).tolist() == [cycles]


@settings(max_examples=100, deadline=None)
@given(
    config=st.sampled_from(CORES + EXACT),
    tiles=st.integers(1, 12),
    steps=st.integers(1, 4),
    period=st.integers(1, 5),
    first=st.lists(st.booleans(), min_size=1, max_size=9),
    offer=patterns,
    supply=patterns,
    take=patterns,
)
def test_everything_at_once(bench, config, tiles, steps, period, first, offer, supply, take):
    last = last_steps(config, tiles, steps)
    first = np.resize(first, len(last)) | (np.arange(len(last)) < config.interleave)
    accepted, taken, cycles = bench(config).run(last, offer, take, period, first, supply)
    model = stream(config, last, first=first, offer=offer, supply=supply, take=take, period=period)
    assert (model.accepted.tolist(), model.taken.tolist(), model.cycles) == (accepted, taken, cycles)
    assert len(last) + model.gaps + model.waits + model.drain == cycles


@settings(max_examples=200, deadline=None)
@given(
    config=cores,
    rounds=st.integers(1, 70),
    missing=st.integers(0, 3),
    steps=st.integers(1, 25),
    period=st.integers(1, 6),
)
def test_the_closed_form_is_that_of_the_stream(config, rounds, missing, steps, period):
    tiles = max(rounds * config.interleave - missing % config.interleave, 1)
    want = stream(config, last_steps(config, tiles, steps), period=period).cycles
    assert core_cycles(config, np.array([tiles]), np.array([steps]), period).tolist() == [want]


def test_the_closed_form_of_every_stream_that_is_held_up():
    """All cores and periods in which steps wait, from a single step to tiles and rounds that only repeat."""
    different = [
        (config.pipeline, period, tiles, steps)
        for config in CORES
        for period in range(2, config.interleave + 1)
        for steps in (1, 2, 3, 5, 8, 9, 12)
        for rounds in (1, 2, 7, 8, 19, 20, 21, 31, 32, 33, 45)
        for tiles in range((rounds - 1) * config.interleave + 1, rounds * config.interleave + 1)
        if stream(config, last_steps(config, tiles, steps), period=period).cycles
        != core_cycles(config, np.array([tiles]), np.array([steps]), period)[0]
    ]
    assert different == []


OPERANDS = [
    TensorCoreConfig("pair", form, form, 1, 2, groups, pipeline=pipeline)
    for form, groups, pipeline in [
        ("nvfp4", 1, ("operands", "terms")),
        ("mixfp4", 2, ("operands", "total")),
        ("nvfp4", 1, ("sums", "factors", "aligned", "total", "normal")),
    ]
]


@pytest.fixture(scope="session")
def engine():
    """The compiled engine of a configuration, or the other where there is no compiler."""
    return functools.cache(engines.engine)


@pytest.mark.parametrize("config", OPERANDS, ids=lambda config: f"T{config.interleave}")
@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 7), st.integers(1, 7).map(lambda blocks: 16 * blocks)),
    offer=patterns,
    take=patterns,
    seed=st.integers(0, 9),
)
def test_operands_scheduled_for_the_simulator(engine, config, shape, offer, take, seed):
    """The order of steps is that of `sim.steps.schedule`, whose results the golden model confirms."""
    m, n, k = shape
    a, b = (golden.quantize(tensors.generate("gaussian", (rows, k), seed + 1), config.a.name) for rows in (m, n))
    steps = schedule_of_operands(config, a, b)
    found = schedule(config, Gemms(m, n, k))
    last = last_steps(config, int(found.tiles[0]), -(-k // config.depth))
    np.testing.assert_array_equal(steps.last, last)
    run = engine(config).run(
        steps, offer=lambda cycle: offer[cycle % len(offer)], take=lambda cycle: take[cycle % len(take)]
    )
    np.testing.assert_array_equal(run.results, steps.expected())
    assert stream(config, last, offer=offer, take=take).cycles == run.cycles
    assert engine(config).run(steps).cycles == found.cycles[0]
