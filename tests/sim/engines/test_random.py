"""Random steps: every bit of every result against the golden model."""

import dataclasses
import itertools

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.config.dots import supported
from hwgen.formats import BLOCK_FORMATS
from sim import golden, tensors
from sim.random import random_steps
from sim.steps import Steps, gather, schedule

FORMATS = ("nvfp4", "mixfp4", "nvint4")
EVEN = (("nvfp4", 2), ("mixfp4", 1), ("mixfp4", 4), ("nvint4", 2))
"""Formats and groups that are rounded to nearest even: rounding is behind all that depends on either."""


def check(engine, steps):
    run = engine.run(steps)
    want = steps.expected()
    assert run.results.shape == want.shape
    wrong = np.argwhere(run.results != want)
    if len(wrong):
        result, m, n = wrong[0]
        step = np.flatnonzero(steps.last)[result]
        pytest.fail(
            f"{len(wrong)} of {want.size} differ; D[{m}, {n}] of step {step} is {run.results[tuple(wrong[0])]:08x},"
            f" not {want[tuple(wrong[0])]:08x}: scales {steps.a_scales[step, m]} {steps.b_scales[step, n]},"
            f" codes {steps.a_codes[step, m]} {steps.b_codes[step, n]}, C {steps.c[step, m, n]:08x},"
            f" first {steps.first[step]}"
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("form", "groups"), [("nvfp4", 1), ("nvfp4", 4), ("mixfp4", 1), ("mixfp4", 2), ("mixfp4", 4), ("nvint4", 2)]
)
def test_compiled(form, groups, compiled):
    config = TensorCoreConfig("random", form, form, 4, 4, groups)
    check(compiled(config), random_steps(config, 20_000, np.random.default_rng(groups)))


@pytest.mark.parametrize(("form", "groups"), [("nvfp4", 2), ("mixfp4", 1), ("mixfp4", 4), ("nvint4", 1)])
def test_python(form, groups, python):
    config = TensorCoreConfig("random", form, form, 1, 1, groups)
    check(python(config), random_steps(config, 80, np.random.default_rng(10 + groups)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("form", "groups", "other"),
    [
        *((form, groups, {"rounding": "nearest_even"}) for form, groups in EVEN),
        *((form, 1, {"dot": dot}) for form, dot in itertools.product(FORMATS, ("signed", "significand", "multiplier"))),
        # With one block the cores whose codes are tried below.
        *(("nvfp4", 1, {"dot": dot, "b": "mixfp4"}) for dot in ("signed", "significand")),
        *(("mixfp4", 1, {"dot": dot, "b": "nvint4"}) for dot in ("signed", "significand")),
        ("nvfp4", 2, {"b": "mixfp4"}),
        ("nvint4", 2, {"b": "mixfp4"}),
        ("nvfp4", 3, {"fraction_bits": 31}),
        ("nvint4", 1, {"fraction_bits": 40}),
        ("mixfp4", 1, {"dot": "e2m2"}),
        ("mixfp4", 2, {"dot": "e2m2", "fraction_bits": 39}),
        ("mixfp4", 3, {"fraction_bits": 33, "rounding": "nearest_even"}),
    ],
)
def test_other_parameters(form, groups, other, compiled):
    config = TensorCoreConfig("random", **{"a": form, "b": form, "rows": 4, "columns": 4, "groups": groups, **other})
    check(compiled(config), random_steps(config, 2000, np.random.default_rng(20 + groups)))


@pytest.mark.parametrize("form", FORMATS)
def test_gemm(form, compiled):
    """Long chains of tiles that do not fit, with C."""
    config = TensorCoreConfig("random", form, form, 4, 4, 2)
    m, n, k = 7, 9, 2000
    a, b = (golden.quantize(tensors.generate("outlier-channels", (rows, k), rows), form) for rows in (m, n))
    c = tensors.generate("gaussian", (m, n), 3) * np.float32(1e4)
    run = compiled(config).run(schedule(config, a, b, c))
    want = golden.accumulate(a, b, c, config.groups)
    np.testing.assert_array_equal(gather(config, run.results, m, n), want.view(np.uint32))
    assert run.cycles == 2 * 3 * 63 + config.latency


@pytest.mark.parametrize("groups", [1, 4])
def test_nvfp4_steps_on_both_cores(groups, compiled):
    """With clear tags the MixFP4 core is an NVFP4 core, and the NVFP4 core does not look at them."""
    nvfp4, mixfp4 = (TensorCoreConfig("random", form, form, 4, 4, groups) for form in FORMATS[:2])
    drawn = random_steps(nvfp4, 2000, np.random.default_rng(30 + groups))
    clear = dataclasses.replace(drawn, a_scales=drawn.a_scales & 0x7F, b_scales=drawn.b_scales & 0x7F)
    assert (drawn.a_scales > 0x7F).any()
    results = compiled(nvfp4).run(drawn).results
    np.testing.assert_array_equal(results, compiled(nvfp4).run(clear).results)
    np.testing.assert_array_equal(results, compiled(mixfp4).run(dataclasses.replace(clear, config=mixfp4)).results)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("a", "b", "dot"),
    [
        (a, b, dot)
        for a, b in itertools.product(FORMATS, repeat=2)
        for dot in supported(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
        if a == b or (a, b) in (("nvfp4", "mixfp4"), ("mixfp4", "nvint4"))
    ],
)
def test_every_pair_of_codes_alone_in_every_lane(a, b, dot, compiled):
    """All other lanes are zero, with either sign; block scales are 1."""
    config = TensorCoreConfig("random", a, b, 4, 4, 1, dot=dot)
    forms = [golden.block_format(name) for name in (a, b)]
    tags_a, tags_b = (range(len(form.elements)) for form in forms)
    steps, want = [], []
    tables = [[np.array(element.values) for element in form.elements] for form in forms]
    for tag_a, tag_b, lane in itertools.product(tags_a, tags_b, range(16)):
        for a_four, b_four in itertools.product(np.arange(16, dtype=np.uint8).reshape(4, 4), repeat=2):
            a, b = np.full((2, 4, 16), (lane & 1) * 8, np.uint8)
            a[:, lane], b[:, lane] = a_four, b_four
            steps.append((a, b, 0x38 | tag_a << 7, 0x38 | tag_b << 7))
            want.append(np.outer(tables[0][tag_a][a_four], tables[1][tag_b][b_four]) + 0.0)
    count = len(steps)
    scales = np.array([step[2:] for step in steps], np.uint8)
    everything = np.ones(count, bool)
    run = compiled(config).run(
        Steps(
            config,
            np.array([step[0] for step in steps]),
            np.broadcast_to(scales[:, :1, None], (count, 4, 1)),
            np.array([step[1] for step in steps]),
            np.broadcast_to(scales[:, 1:, None], (count, 4, 1)),
            np.zeros((count, 4, 4), np.uint32),
            everything,
            everything,
        )
    )
    np.testing.assert_array_equal(run.results, np.array(want, np.float32).view(np.uint32))
