"""Cores with a slot: FP4 and FP8 or FP6 at half the rate, step by step, against the golden model."""

import dataclasses
import itertools

import numpy as np
import pytest
from b200 import EDGES, MEASURED

from hwgen.config import NAMED, PIPELINE_REGISTERS, SLOTS, TensorCoreConfig
from hwgen.cost.stream import stream
from sim.engines import Pattern
from sim.random import random_chains, random_steps
from sim.steps import ELEMENT_TYPES, Steps, codes_of, gather, schedule
from sim.unscaled import Unscaled

SMALL = ("decoded", "tree", "factors", "compared", "aligned", "total", "normal")
BLACKWELL = ("decoded", "tree", "factors", "compared", "aligned", "addends", "total", "normal")
CORES = {slot: dots or ("merged", "signed") for slot, dots in SLOTS.items() if slot != "none"}
"""Lanes that a slot is tried with, by its name."""

CHOSEN = {slot: dots[0] for slot, dots in CORES.items()}
slots = pytest.mark.parametrize(("slot", "dot"), CHOSEN.items())


def core(slot, dot, a="mixfp4", b=None, groups=1, pipeline=SMALL, rows=4, columns=4, **further):
    return TensorCoreConfig("slot", a, b or a, rows, columns, groups, dot, pipeline=pipeline, slot=slot, **further)


def check(engine, steps, **streams):
    """All results, in the cycles that the same steps of FP4 alone would take: a change of mode leaves no bubble."""
    run, want = engine.run(steps, **streams), steps.expected()
    offered = {name: pattern.bits for name, pattern in streams.items()}
    assert run.cycles == stream(engine.config, steps.last, first=steps.first, **offered).cycles
    results = run.results
    assert results.shape == want.shape
    wrong = np.argwhere(results != want)
    if len(wrong):
        result, m, n = wrong[0]
        step = np.flatnonzero(steps.last)[result]
        pytest.fail(
            f"{len(wrong)} of {want.size} differ; D[{m}, {n}] of step {step} is {results[tuple(wrong[0])]:08x},"
            f" not {want[tuple(wrong[0])]:08x}: half {steps.half[step]}, types {steps.a_types[step]}"
            f" {steps.b_types[step]}, codes {steps.a_codes[step, m]} {steps.b_codes[step, n]},"
            f" C {steps.c[step, m, n]:08x}, first {steps.first[step]}"
        )
    return want


def patterns(rng, *shares):
    return {name: Pattern.random(share, rng) for name, share in zip(("offer", "supply", "take"), shares, strict=True)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("form", "groups", "slot"),
    [
        *(("mixfp4", 4, slot) for slot in CHOSEN),
        *(("nvfp4", 1, slot) for slot in ("separate", "full")),
        *(("nvint4", 1, slot) for slot in ("split", "quadrants")),
        *(("if4", 1, "full"), ("razer-activations", 1, "split"), ("fp4-ue5m3-b16", 1, "quadrants")),
    ],
)
def test_random(form, groups, slot, compiled):
    """Both modes by turns, in chains that mix them, with gaps and stalls; MixFP4 and others in each slot."""
    pipeline = SMALL if groups == 1 else BLACKWELL
    config = core(slot, CHOSEN[slot], form, groups=groups, pipeline=pipeline, rows=2, columns=2)
    rng = np.random.default_rng(groups)
    for steps in (random_steps(config, 4000, rng), random_chains(config, 1500, rng, first=0.1, last=0.5)):
        assert 0.3 < steps.half.mean() < 0.7
        check(compiled(config), steps)
        check(compiled(config), steps, **patterns(rng, 0.6, 0.7, 0.6))


@pytest.mark.parametrize("name", ["mixfp4-multi-blackwell", "nvfp4-e0m3-multi-blackwell"])
def test_words_that_others_measured(name, compiled):
    """Each is one step of a core with four blocks."""
    config = dataclasses.replace(NAMED[name], rows=1, columns=1)
    engine = compiled(config)
    edges = [(form, bytes([a] + [0] * 31), bytes([b] + [0] * 31), c, d) for form, a, b, c, d in EDGES]
    for form, a, b, c, d in [*MEASURED, *edges]:
        rows = [Unscaled(np.frombuffer(each, np.uint8)[None], form, np.float32(1)) for each in (a, b)]
        steps = schedule(config, *rows, np.array([[c]], np.uint32).view(np.float32))
        assert steps.half.sum() == steps.first.sum()
        assert gather(config, engine.run(steps).results, 1, 1) == d, f"{form} {a.hex()} {b.hex()}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("slot", "dot", "form"),
    [
        (slot, dot, form)
        for slot, other in [("separate", "nvfp4"), ("split", "nvint4"), ("full", "nvfp4")]
        for dot in CORES[slot][1:]
        for form in ("mixfp4", other)
    ],
)
def test_other_lanes(form, slot, dot, compiled):
    config = core(slot, dot, form, rows=1, columns=2)
    check(compiled(config), random_steps(config, 4000, np.random.default_rng(5)))


# A slot is in decoders and lanes alone: what takes in another format beside it is tried with every one, the
# registers and numerics behind lanes with one each. Each has registers before, in and behind its lanes here,
# in test_specials or in test_python.
OTHERS = [
    ({"pipeline": ()}, ("separate", "quadrants")),
    ({"pipeline": ("decoded", "sums"), "groups": 2}, ("split",)),
    ({"pipeline": PIPELINE_REGISTERS, "groups": 3, "rounding": "nearest_even"}, ("full",)),
    ({"pipeline": ("sums", "factors", "compared"), "groups": 2}, ("separate",)),
    ({"pipeline": ("factors", "compared", "total"), "groups": 2, "empty_blocks": "excluded"}, ("quadrants",)),
    ({"pipeline": ("decoded", "tree", "factors", "terms", "aligned", "total", "normal")}, ("split",)),
    ({"pipeline": ("operands", "tree", "terms", "aligned"), "b": "nvfp4"}, ("separate", "full", "quadrants")),
    ({"pipeline": ("factors", "terms", "total"), "leading_zeros": "anticipated"}, ("quadrants",)),
    ({"pipeline": ("tree", "sums", "addends"), "half_fraction_bits": 23, "fraction_bits": 33}, ("split",)),
    (
        {"half_fraction_bits": 39, "fraction_bits": 39, "groups": 5, "rows": 1, "columns": 1, "a": "nvfp4"},
        ("full",),
    ),
    ({"empty_blocks": "excluded", "groups": 2, "a": "nvfp4", "b": "nvint4"}, ("separate", "split")),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("further", "slot"),
    [(further, slot) for further, chosen in OTHERS for slot in chosen],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None,
)
def test_other_parameters(further, slot, compiled):
    config = core(slot, CHOSEN[slot], **{"rows": 2, "columns": 1, **further})
    rng = np.random.default_rng(7)
    steps = random_steps(config, 2000, rng)
    check(compiled(config), steps, **patterns(rng, 0.8, 0.8, 0.8))


@slots
def test_python(slot, dot, python):
    config = core(slot, dot, rows=1, columns=1, pipeline=("decoded", "tree", "total"))
    rng = np.random.default_rng(3)
    steps = random_chains(config, 100, rng)
    check(python(config), steps, **patterns(rng, 0.7, 0.8, 0.7))


def at_half_rate(config, a, b, types, c=0, half=True):
    """Steps with bytes ``a``, (S, M, 8 G), and ``b``, each a tile of its own, and NaN for scales."""
    count = len(a)
    everything = np.ones(count, bool)
    a_types, b_types = (np.broadcast_to(np.asarray(each, np.uint8), count).copy() for each in types)
    scales = [np.full((count, rows, config.groups), 0xFF, np.uint8) for rows in (config.rows, config.columns)]
    words = np.broadcast_to(np.asarray(c, np.uint32), (count, config.rows, config.columns)).copy()
    return Steps(
        config,
        *(codes_of(a), scales[0], codes_of(b), scales[1], words, everything, everything),
        *(np.broadcast_to(half, count).copy(), a_types, b_types),
    )


@pytest.mark.sampled(2)
@slots
@pytest.mark.parametrize("a", ELEMENT_TYPES)
def test_every_pair_of_codes(a, slot, dot, compiled):
    """All 65,536 of every pair of types, each alone in a slot; which one depends on the pair."""
    config = core(slot, dot)
    own, other = (np.arange(256, dtype=np.uint8).reshape(64, 4) for _ in range(2))
    steps = np.arange(64 * 64)
    place = steps % config.slots
    rows = np.zeros((2, 64 * 64, 4, config.slots), np.uint8)
    rows[0][steps, :, place] = own[steps // 64]
    rows[1][steps, :, place] = other[steps % 64]
    for b in ELEMENT_TYPES.values():
        want = check(compiled(config), at_half_rate(config, *rows, (ELEMENT_TYPES[a], b)))
        assert len(np.unique(want)) > 20


@slots
def test_shifts(slot, dot, compiled):
    """A product at every distance below another one and below or above C, of every sign."""
    config = core(slot, dot)
    # Exponents 15 to -14 in E5M2, with significands of all ones, so that what is cut shows.
    powers = np.arange(1, 31, dtype=np.uint8)
    pairs = np.array(list(itertools.product(powers, powers)), np.uint8)
    rng = np.random.default_rng(0)
    a, b = np.zeros((2, len(pairs), 4, config.slots), np.uint8)
    signs = rng.integers(0, 2, (2, len(pairs), 4), np.uint8) << 7
    a[:, :, 1], b[:, :, 1] = (pairs[:, :1] << 2 | 3 | signs[0]), pairs[:, :1] << 2 | 3
    a[:, :, 6], b[:, :, 6] = (pairs[:, 1:] << 2 | 3 | signs[1]), pairs[:, 1:] << 2 | 3
    for below in range(-70, 71):
        exponents = 2 * (np.maximum(*pairs.T.astype(int)) - 15) - below + 127
        c = np.clip(exponents, 0, 254).astype(np.uint32) << 23 | rng.integers(0, 1 << 23, len(pairs), np.uint32)
        c |= rng.integers(0, 2, len(pairs), np.uint32) << 31
        some = slice(below % 5, None, 5)
        check(compiled(config), at_half_rate(config, a[some], b[some], (1, 1), c[some, None, None]))


SPECIAL = np.array([0x00, 0x80, 0x7C, 0xFC, 0x7D, 0xFF, 0x3C, 0xBC, 0x01, 0x81, 0x7B, 0xFB], np.uint8)
"""In E5M2: zeros, infinities, NaN, one, the smallest and the largest number. In E4M3 0xFF is NaN."""

SPECIAL_C = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000),
        *(0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001),
    ],
    np.uint32,
)


@pytest.mark.sampled(3)
@slots
@pytest.mark.parametrize("pipeline", [SMALL, ("decoded", "sums")], ids=["interleaved", "at once"])
@pytest.mark.parametrize("types", [(1, 1), (0, 1)])
def test_specials(types, pipeline, slot, dot, compiled):
    """NaN, infinity and zero in one slot or two, beside every kind of C."""
    config = core(slot, dot, pipeline=pipeline)
    one = 0x3C if types[0] else 0x38
    seen = set()
    for c in SPECIAL_C:
        cases = np.array(list(itertools.product(SPECIAL, SPECIAL, SPECIAL)), np.uint8)
        a, b = np.zeros((2, len(cases), 4, config.slots), np.uint8)
        a[:, :, 2], b[:, :, 2] = cases[:, :1], cases[:, 1:2]
        a[:, 1, 5], b[:, 1, 5] = cases[:, 2], one
        seen |= set(np.unique(check(compiled(config), at_half_rate(config, a, b, types, c))).tolist())
    assert seen >= {0, 0x7F800000, 0xFF800000, 0x7FFFFFFF}


@slots
def test_products_of_zero_leave_c(slot, dot, compiled):
    """Whatever exponents the other factors have; subnormal numbers included, and -0 becomes +0."""
    config = core(slot, dot)
    rng = np.random.default_rng(0)
    count = 500
    a, b = rng.integers(0, 0x7C, (2, count, 4, config.slots), np.uint8)
    gone = rng.random((count, 1, config.slots)) < 0.5
    a[np.broadcast_to(gone, a.shape)], b[np.broadcast_to(~gone, b.shape)] = 0x80, 0
    c = np.where(rng.random(count) < 0.6, rng.choice(SPECIAL_C, count), rng.integers(0, 1 << 24, count, np.uint32))
    steps = at_half_rate(config, a, b, (1, 0), c[:, None, None])
    want = check(compiled(config), steps)
    numbers = (steps.c & 0x7F800000) != 0x7F800000
    np.testing.assert_array_equal(want[numbers], np.where(steps.c == 1 << 31, 0, steps.c)[numbers])


@slots
def test_reserved_types_are_nan_at_half_rate_only(slot, dot, compiled):
    config = core(slot, dot)
    rng = np.random.default_rng(0)
    steps = random_steps(config, 800, rng)
    codes = np.array(list(itertools.product(range(8), repeat=2)), np.uint8)[rng.integers(64, size=800)]
    steps = dataclasses.replace(steps, a_types=codes[:, 0], b_types=codes[:, 1], last=np.ones(800, bool))
    want = check(compiled(config), steps)
    reserved = (~np.isin(codes, list(ELEMENT_TYPES.values()))).any(axis=1)
    assert (want[steps.half & reserved] == 0x7FFFFFFF).all()
    plain = dataclasses.replace(steps, a_types=codes[:, 0] * 0, half=steps.half & False)
    np.testing.assert_array_equal(
        dataclasses.replace(plain, a_types=codes[:, 0]).expected(), check(compiled(config), plain)
    )


@slots
def test_scales_are_ignored_at_half_rate(slot, dot, compiled):
    """Neither their values nor the tags beside them, which select E1M2 in steps of FP4."""
    config = core(slot, dot, "mixfp4", groups=4, pipeline=BLACKWELL, rows=2, columns=2)
    rng = np.random.default_rng(0)
    steps = random_steps(config, 1000, rng)
    steps = dataclasses.replace(steps, half=np.ones(1000, bool), first=np.ones(1000, bool))
    runs = []
    for _ in range(2):
        scales = (rng.integers(0, 256, each.shape, np.uint8) for each in (steps.a_scales, steps.b_scales))
        steps = dataclasses.replace(steps, **dict(zip(("a_scales", "b_scales"), scales, strict=True)))
        runs.append(check(compiled(config), steps))
    np.testing.assert_array_equal(*runs)
