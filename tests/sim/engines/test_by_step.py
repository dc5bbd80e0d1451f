"""NVFP4 beside E0M3, chosen by the step for an operand: RTL against the golden model, bit for bit."""

import dataclasses
import itertools

import numpy as np
import pytest

from hwgen.config import NAMED
from sim import golden, tensors
from sim.engines import Pattern
from sim.random import random_steps
from sim.steps import Steps, gather, schedule, schedule_held
from sim.unscaled import Unscaled

SMALL = NAMED["nvfp4-e0m3-multi-small"]
MIXED = dataclasses.replace(SMALL, a="mixfp4", b="mixfp4")
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)


@pytest.mark.parametrize(
    ("groups", "more"),
    [
        (1, {}),
        (2, {"slot": "split", "dot": "merged-timed"}),
        (4, {"rows": 2, "columns": 2, "pipeline": NAMED["nvfp4-e0m3-multi-blackwell"].pipeline}),
        (1, {"slot": "quadrants", "dot": "significand"}),
    ],
)
def test_random(groups, more, compiled):
    config = dataclasses.replace(SMALL, groups=groups, **more)
    rng = np.random.default_rng(groups)
    steps = random_steps(config, 4000, rng)
    fp4 = ~steps.half
    for types, scales in ((steps.a_types, steps.a_scales), (steps.b_types, steps.b_scales)):
        assert set(types[fp4]) == set(range(8))
        np.testing.assert_array_equal(
            scales[fp4] >> 7, np.broadcast_to((types[fp4] >> 1 & 1)[:, None, None], scales[fp4].shape)
        )
    np.testing.assert_array_equal(compiled(config).run(steps).results, steps.expected())
    halting = {name: Pattern.random(0.6, rng) for name in ("offer", "supply", "take")}
    np.testing.assert_array_equal(compiled(config).run(steps, **halting).results, steps.expected())


def test_steps_are_those_of_mixfp4_with_all_selectors_alike():
    steps = random_steps(SMALL, 400, np.random.default_rng(5))
    np.testing.assert_array_equal(steps.expected(), dataclasses.replace(steps, config=MIXED).expected())


def test_every_pair_of_codes_in_every_kind(compiled):
    """Block scales are 1, one lane of sixteen is not zero, and bits 0 and 2 of types are whatever they are."""
    values = np.array([[*E2M1, *(-x for x in E2M1)], [*range(8), *(-x for x in range(8))]])
    codes = np.arange(16, dtype=np.uint8).reshape(4, 4)
    steps, want = [], []
    for (kind_a, kind_b), rest, (a_four, b_four) in itertools.product(
        itertools.product(range(2), repeat=2), (0, 1, 4, 5), itertools.product(codes, repeat=2)
    ):
        a, b = np.zeros((2, 4, 16), np.uint8)
        a[:, len(steps) % 16], b[:, len(steps) % 16] = a_four, b_four
        steps.append((a, b, kind_a << 1 | rest, kind_b << 1 | 5 - rest))
        want.append(np.outer(values[kind_a][a_four], values[kind_b][b_four]) + 0.0)
    count = len(steps)
    everything, scales = np.ones(count, bool), np.full((count, 4, 1), 0x38, np.uint8)
    a, b, a_types, b_types = (np.array(each) for each in zip(*steps, strict=True))
    c = np.zeros((count, 4, 4), np.uint32)
    types = {"a_types": a_types.astype(np.uint8), "b_types": b_types.astype(np.uint8)}
    drawn = Steps(SMALL, a, scales, b, scales, c, everything, everything, **types)
    np.testing.assert_array_equal(drawn.expected(), np.array(want, np.float32).view(np.uint32))
    np.testing.assert_array_equal(compiled(SMALL).run(drawn).results, drawn.expected())


@pytest.mark.parametrize("kinds", list(itertools.product((False, True), repeat=2)))
def test_gemm(kinds, compiled):
    m, n, k = 7, 9, 200
    a, b = (
        golden.quantize(
            golden.padded(tensors.generate("gaussian", (rows, k), rows)), "nvfp4-e0m3", np.full((rows, 13), kind)
        )
        for rows, kind in zip((m, n), kinds, strict=True)
    )
    c = tensors.generate("gaussian", (m, n), 3) * np.float32(1e4)
    steps = schedule(SMALL, a, b, c)
    assert set(steps.a_types) == {7 if kinds[0] else 5}
    assert set(steps.b_types) == {7 if kinds[1] else 5}
    want = golden.accumulate(a, b, c, SMALL.groups)
    np.testing.assert_array_equal(gather(SMALL, compiled(SMALL).run(steps).results, m, n), want.view(np.uint32))
    mixed = (dataclasses.replace(each, format="mixfp4") for each in (a, b))
    np.testing.assert_array_equal(golden.accumulate(*mixed, c, SMALL.groups), want)


def test_the_bus_has_no_selector():
    steps = random_steps(SMALL, 50, np.random.default_rng(3))
    assert (steps.a_scales[~steps.half] > 0x7F).any()
    bare = dataclasses.replace(steps, a_scales=steps.a_scales & 0x7F, b_scales=steps.b_scales & 0x7F)
    np.testing.assert_array_equal(bare.packed(), steps.packed())
    np.testing.assert_array_equal(bare.a_scales[~steps.half], steps.a_scales[~steps.half])


def test_tiles_that_hold_b_and_half_the_rate():
    q = golden.quantize(tensors.generate("gaussian", (8, 64), 1), "nvfp4-e0m3", np.ones((8, 4), bool))
    few = dataclasses.replace(q, codes=q.codes[:4], scales=q.scales[:4])
    c = np.zeros((8, 8), np.float32)
    held = schedule_held(dataclasses.replace(SMALL, pipeline=("decoded",)), q, few, c[:, :4], 2)
    assert set(held.a_types) == {7}
    assert not held.half.any()
    np.testing.assert_array_equal(held.c[2:], held.expected()[:-2])
    codes, _ = golden.quantize_unscaled(tensors.generate("gaussian", (8, 32), 1))
    halves = Unscaled(codes, "e4m3", np.float32(1))
    steps = schedule(SMALL, halves, halves, c)
    assert steps.half.all()
    assert not steps.a_types.any()
    want = golden.unscaled_gemm(codes, codes, c, k_per_step=8)
    np.testing.assert_array_equal(gather(SMALL, steps.expected(), 8, 8), want.view(np.uint32))
