"""Exact cores against the golden model and known answers: corners, depth, order of the steps, streams."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwgen.config import REGISTERS, TensorCoreConfig
from hwgen.errors import InputError
from sim import golden, tensors
from sim.engines import AmaranthEngine, Pattern
from sim.random import random_chains, random_steps
from sim.steps import Steps, gather, schedule

NAN, INF, MINUS = 0x7FFFFFFF, 0x7F800000, 0x80000000
LARGEST = 0x7F7FFFFF
ONE, TOP, TINY = 0x38, 0x7E, 0x01  # block scales: 1, 448 and 2^-9

CORES = [
    TensorCoreConfig("exact", form, form, 4, 4, groups, dot=dot, pipeline=pipeline, numerics="exact")
    for form, groups, dot, pipeline in [
        ("nvfp4", 1, "merged", ("operands", "terms")),
        ("mixfp4", 1, "merged", ("operands", "terms")),
        ("nvfp4", 4, "merged", REGISTERS["exact"]),
        ("mixfp4", 4, "merged", ("operands", "sums", "aligned")),
        ("mixfp4", 3, "e2m2", ("total",)),
        ("mixfp4", 8, "merged", ("terms", "normal")),
        ("int8", 1, "booth", ("decoded", "tree", "sums", "terms", "aligned", "total", "normal")),
        ("int8", 2, "shifted", ("tree",)),
        ("int4", 3, "merged", ()),
    ]
]
CORES += [
    TensorCoreConfig(
        "exact", a, b, 4, 4, groups, "booth", pipeline=pipeline, numerics="exact", accumulator="carry_save"
    )
    for a, b, groups, pipeline in [
        ("int8", "int8", 1, ("decoded", "tree", "total", "normal")),
        ("int8", "int4", 2, ("operands", "terms", "total")),
        ("ternary", "int8", 3, ()),
    ]
]
cores = pytest.mark.parametrize(
    "config", CORES, ids=lambda c: "-".join((c.a.name, str(c.groups), c.dot, c.accumulator, *c.pipeline))
)


@pytest.mark.sampled(2)
@cores
def test_random(config, compiled):
    rng = np.random.default_rng(1)
    for steps in (random_steps(config, 4000, rng), random_chains(config, 1500, rng, first=0.2, last=0.3)):
        want = steps.expected()
        for shares in [(1, 1, 1), (0.6, 0.6, 0.6), (0.9, 0.9, 0.3), (0.9, 0.3, 0.9)]:
            offer, supply, take = (Pattern.random(share, rng) for share in shares)
            run = compiled(config).run(steps, offer=offer, supply=supply, take=take)
            np.testing.assert_array_equal(run.results, want)


@pytest.mark.parametrize("index", range(12))
def test_every_two_registers_in_every_combination(index, covering):
    """In the Python simulator, with gaps and stalls."""
    pipeline = tuple(itertools.compress(REGISTERS["exact"], covering[index]))
    form = ("nvfp4", "mixfp4", "nvint4")[index % 3]
    config = TensorCoreConfig("exact", form, form, 1, 1, 1 + index // 3 % 3, pipeline=pipeline, numerics="exact")
    rng = np.random.default_rng(index)
    steps = random_chains(config, 30, rng, first=0.2, last=0.3)
    offer, supply, take = (Pattern.random(0.7, rng) for _ in range(3))
    run = AmaranthEngine(config).run(steps, offer=offer, supply=supply, take=take)
    np.testing.assert_array_equal(run.results, steps.expected())


@cores
@pytest.mark.parametrize(("m", "n", "k"), [(4, 4, 1600), (7, 9, 400)])
def test_gemm(config, m, n, k, compiled):
    a, b = (
        golden.quantize(tensors.generate("outlier-channels", (rows, k), rows), form.name)
        for rows, form in zip((m, n), config.formats, strict=True)
    )
    c = tensors.generate("gaussian", (m, n), 3) * np.float32(1e4)
    steps = schedule(config, a, b, c)
    run = compiled(config).run(steps)
    want = golden.accumulate(a, b, c, numerics="exact")
    np.testing.assert_array_equal(gather(config, run.results, m, n), want.view(np.uint32))
    # Without registers before the loop the first step comes a cycle after its C.
    assert run.cycles == len(steps) + config.latency + (config.entrance == 0)
    # FP32 holds all integers up to 2^24.
    if not config.adds_sums or config.a.largest * config.b.largest * k > 1 << 24:
        rounded = golden.accumulate(a, b, c, config.groups)
        assert (rounded != want).any()


@functools.cache
def tile(config):
    """One tile of 24 steps whose sums depend on the order wherever they are rounded on the way."""
    steps = random_steps(config, 24, np.random.default_rng(7))
    finite = {
        name: np.where(getattr(steps, name) & 127 == 127, 0x7E, getattr(steps, name))
        for name in ("a_scales", "b_scales")
    }
    c = np.where(steps.c & INF == INF, 0x41234567, steps.c).astype(np.uint32)
    return dataclasses.replace(steps, c=c, **{name: scales.astype(np.uint8) for name, scales in finite.items()})


def in_order(config, order):
    """The steps of `tile` in another order, with the same C."""
    steps = tile(config)[np.array(order)]
    count = len(order)
    c = np.broadcast_to(tile(config).c[:1], steps.c.shape)
    return dataclasses.replace(steps, c=c, first=np.arange(count) == 0, last=np.arange(count) == count - 1)


@settings(max_examples=60, deadline=None)
@given(order=st.permutations(range(24)), core=st.sampled_from(CORES[:4]))
def test_order_does_not_matter(order, core, compiled):
    run = compiled(core).run(in_order(core, order))
    np.testing.assert_array_equal(run.results, in_order(core, range(24)).expected())


def test_order_would_matter_if_it_were_rounded():
    """Or the test above would show nothing."""
    rounded = dataclasses.replace(CORES[1], numerics="blackwell")
    results = {
        dataclasses.replace(in_order(CORES[1], order), config=rounded).expected().tobytes()
        for order in (range(24), range(23, -1, -1))
    }
    assert len(results) == 2


def single(config, blocks, c):
    """A tile of one element, one block per step: (code of A, of B, scale of A, of B), in all sixteen lanes."""
    count = len(blocks)
    a_codes, b_codes, a_scales, b_scales = (
        np.array(column, np.uint8).reshape(-1, 1, 1) for column in zip(*blocks, strict=True)
    )
    ends = np.arange(count)
    return Steps(
        config,
        np.repeat(a_codes, 16, axis=2),
        a_scales,
        np.repeat(b_codes, 16, axis=2),
        b_scales,
        np.full((count, 1, 1), c, np.uint32),
        ends == 0,
        ends == count - 1,
    )


@pytest.mark.parametrize(("form", "tag", "code", "largest"), [("nvfp4", 0, 7, 6), ("mixfp4", 0x80, 7, 7)])
@pytest.mark.parametrize("negative", [0, 8])
def test_longest_gemm_at_full_magnitude(form, tag, code, largest, negative, compiled):
    config = TensorCoreConfig("deep", form, form, 1, 1, 1, numerics="exact")
    block = (code | negative, code, TOP | tag, TOP | tag)
    steps = single(config, [block] * 4096, 1)
    assert len(steps) == config.largest_steps == 65536 // 16
    (found,) = compiled(config).run(steps).results.ravel()
    value = (-1) ** (negative > 0) * 65536 * (largest * 448) ** 2
    assert found == np.float32(value).view(np.uint32) == steps.expected().item()
    # Half of it, and back, with one unit over.
    there, back = [block] * 2047, [(code | 8 - negative, code, TOP | tag, TOP | tag)] * 2047
    steps = single(config, [*there, (1, 1, TINY, TINY), *back], 0)
    assert compiled(config).run(steps).results.item() == np.float32(4 * 2.0**-18).view(np.uint32)


def test_a_longer_gemm_is_refused():
    config = TensorCoreConfig("deep", "nvfp4", "nvfp4", 1, 1, 1, numerics="exact", largest_depth=4096)
    q = golden.quantize(np.ones((1, 4112), np.float32), "nvfp4")
    with pytest.raises(InputError, match=r"^K = 4112: deep accumulates exactly up to K = 4096; [^\n]*$"):
        schedule(config, q, q)
    with pytest.raises(InputError, match="K = 4112"):
        single(config, [(2, 2, ONE, ONE)] * 257, 0).expected()
    assert schedule(config, *[golden.quantize(np.ones((1, 4096), np.float32), "nvfp4")] * 2).expected().size == 1


SIXTEEN, MINUS_SIXTEEN = (2, 2, ONE, ONE), (10, 2, ONE, ONE)
UNIT = (1, 1, TINY, TINY)  # 16 * 0.25 * 2^-18 = 2^-16
CORNERS = {
    "nothing": ([(0, 0, 0, 0)], 0, 0),
    "minus zero": ([(0, 0, 0, 0)], MINUS, 0),
    "minus zero, zero scales": ([(7, 15, 0, TOP), (7, 15, TOP, 0x80)], MINUS, 0),
    "subnormal alone": ([(7, 15, 0, TOP)], 1, 1),
    "subnormal behind sums that cancel": ([SIXTEEN, MINUS_SIXTEEN], 0x807FFFFF, 0x807FFFFF),
    "subnormal beneath everything": ([SIXTEEN], MINUS | 1, 0x41800000),
    "cancels to +0": ([SIXTEEN, SIXTEEN], 0xC2000000, 0),
    "cancels to the last unit": ([SIXTEEN, UNIT], 0xC1800000, 0x37800000),
    "cancels in the middle": ([SIXTEEN, UNIT, MINUS_SIXTEEN], 0, 0x37800000),
    "tie to even, down": ([UNIT], 0x43800000, 0x43800000),
    "tie to even, up": ([UNIT], 0x43800001, 0x43800002),
    "tie by C": ([SIXTEEN] * 16, 0x37800000, 0x43800000),
    "tie by C and a bit": ([SIXTEEN] * 16, 0x37800001, 0x43800001),
    "tie and a bit far below": ([*[SIXTEEN] * 16, UNIT], 1, 0x43800001),
    "tie less a bit far below": ([*[SIXTEEN] * 16, UNIT], MINUS | 1, 0x43800000),
    "C dominates": ([SIXTEEN], 0x7F000001, 0x7F000001),
    "C dominates by all bits": ([MINUS_SIXTEEN], LARGEST, LARGEST),
    "C a power of two, a tie below it": ([MINUS_SIXTEEN], 0x4E000000, 0x4E000000),
    "C a power of two, more than a tie below it": ([MINUS_SIXTEEN, (9, 1, TINY, TINY)], 0x4E000000, 0x4DFFFFFF),
    "infinite C": ([SIXTEEN, MINUS_SIXTEEN], INF, INF),
    "minus infinite C": ([(7, 7, TOP, TOP)] * 3, INF | MINUS, INF | MINUS),
    "NaN C": ([SIXTEEN], 0xFFC12345, NAN),
    "NaN scale in the middle": ([SIXTEEN, (0, 0, 0x7F, 0), SIXTEEN], 0x3F800000, NAN),
    "NaN scale with infinite C": ([(0, 0, 0, 0xFF)], INF, NAN),
}


@pytest.mark.parametrize("form", ["nvfp4", "mixfp4"])
@pytest.mark.parametrize("name", CORNERS)
def test_corner(name, form, compiled):
    blocks, c, want = CORNERS[name]
    config = TensorCoreConfig("corner", form, form, 1, 1, 1, numerics="exact")
    steps = single(config, blocks, c)
    assert f"{compiled(config).run(steps).results.item():08x}" == f"{want:08x}"
    assert steps.expected().item() == want
