"""Choices of pipeline registers against the golden model, with gaps and stalls."""

import itertools

import numpy as np
import pytest

from hwgen.config import LOOP_REGISTERS, PIPELINE_REGISTERS, TensorCoreConfig
from hwgen.errors import ToolError
from hwgen.rtl import control
from sim import golden, tensors
from sim.engines import AmaranthEngine, Pattern
from sim.random import random_chains, random_steps
from sim.steps import gather, schedule

DEEP = [
    TensorCoreConfig(
        "deep", form, form, 2, 3, groups, dot=dot, fraction_bits=bits, rounding=rounding, pipeline=pipeline
    )
    for form, groups, dot, bits, rounding, pipeline in [
        ("nvfp4", 1, "merged", 35, "toward_zero", PIPELINE_REGISTERS),
        ("mixfp4", 4, "merged", 35, "nearest_even", PIPELINE_REGISTERS),
        ("mixfp4", 1, "e2m2", 39, "toward_zero", ("operands", "sums", "total")),
        ("nvfp4", 4, "merged", 35, "toward_zero", ("terms", "aligned", "normal")),
        ("mixfp4", 1, "merged-binary", 35, "toward_zero", ("decoded", "tree", "factors", "terms", *LOOP_REGISTERS)),
        ("nvfp4", 4, "binary", 35, "toward_zero", ("tree", "factors", "terms", "aligned", "addends", "total")),
        ("mixfp4", 2, "merged", 33, "nearest_even", ("operands", "terms", "aligned", "total")),
    ]
]
deep = pytest.mark.parametrize(
    "config", DEEP, ids=lambda c: "-".join((c.a.name, str(c.groups), c.dot, c.rounding, *c.pipeline))
)


def patterns(rng, *shares):
    """When steps and C are offered and results taken, at random."""
    return {name: Pattern.random(share, rng) for name, share in zip(("offer", "supply", "take"), shares, strict=True)}


def check(engine, steps, want, **streams):
    results = engine.run(steps, **streams).results
    assert results.shape == want.shape
    wrong = np.argwhere(results != want)
    if len(wrong):
        result, m, n = wrong[0]
        step = np.flatnonzero(steps.last)[result]
        pytest.fail(
            f"{len(wrong)} of {want.size} differ; D[{m}, {n}] of step {step} is {results[tuple(wrong[0])]:08x},"
            f" not {want[tuple(wrong[0])]:08x}: first {steps.first[step]}, C {steps.c[step, m, n]:08x}"
        )


@pytest.mark.parametrize("index", range(24))
def test_every_three_registers_in_every_combination(index, covering):
    pipeline = tuple(itertools.compress(PIPELINE_REGISTERS, covering[index]))
    form, rounding = ("nvfp4", "mixfp4")[index % 2], ("toward_zero", "nearest_even")[index // 2 % 2]
    config = TensorCoreConfig("narrow", form, form, 1, 1, 1, rounding=rounding, pipeline=pipeline)
    rng = np.random.default_rng(index)
    steps = random_chains(config, 24, rng)
    check(AmaranthEngine(config), steps, steps.expected(), **patterns(rng, 0.7, 0.7, 0.7))


@pytest.mark.sampled(2)
@deep
def test_random(config, compiled):
    rng = np.random.default_rng(config.groups)
    long = random_chains(config, 1000, rng, first=0.02, last=0.05)
    for steps in (random_steps(config, 1500, rng), random_chains(config, 1000, rng), long):
        want = steps.expected()
        for shares in [(1, 1, 1), (0.5, 1, 1), (1, 0.5, 1), (1, 1, 0.5), (0.6, 0.7, 0.6), (0.9, 0.9, 0.3)]:
            check(compiled(config), steps, want, **patterns(rng, *shares))


@deep
@pytest.mark.parametrize(("m", "n", "k"), [(4, 4, 640), (7, 9, 400), (9, 12, 64)])
def test_gemm(config, m, n, k, compiled):
    """Tiles that take turns, the last of them missing or not; a step in every cycle."""
    a, b = (golden.quantize(tensors.generate("outlier-channels", (rows, k), rows), config.a.name) for rows in (m, n))
    c = tensors.generate("gaussian", (m, n), 3) * np.float32(1e4)
    steps = schedule(config, a, b, c)
    want = golden.accumulate(a, b, c, config.groups, fraction_bits=config.fraction_bits, rounding=config.rounding).view(
        np.uint32
    )
    run = compiled(config).run(steps)
    np.testing.assert_array_equal(gather(config, run.results, m, n), want)
    # Without registers before the loop the first step comes a cycle after its C.
    late = config.entrance == 0
    assert run.cycles == late + max(len(steps), np.flatnonzero(steps.last)[-1] + 1 + config.latency)
    run = compiled(config).run(steps, **patterns(np.random.default_rng(1), 0.6, 0.6, 0.6))
    np.testing.assert_array_equal(gather(config, run.results, m, n), want)


# Faults in the control of the loop must show in what the tests above compare


class Planted(control.Ring):
    """A loop that does not do what it is told."""

    fault = staticmethod(lambda m, moving, valid, enter, rotate: (enter, rotate))

    def advance(self, m, step, addend):
        super().advance(m, step, addend)
        name, enter = next((name, enable) for name, enable in self.enables.items() if name in ("enter", "entering"))
        valid = step.valid if name == "enter" else step.coming(self.accept)[0]
        enter, self.rotate = self.fault(m, self.moving, valid, enter, self.rotate)
        self.enables[name] = enter


FAULTS = {
    "none": lambda m, advance, valid, enter, rotate: (enter, rotate),
    "a step enters out of turn": lambda m, advance, valid, enter, rotate: (valid, rotate),
    "bubbles add terms": lambda m, advance, valid, enter, rotate: (1, rotate),
    "results stay inside": lambda m, advance, valid, enter, rotate: (enter, rotate & valid),
    "the loop turns in gaps": lambda m, advance, valid, enter, rotate: (enter, advance),
    "the loop turns in stalls": lambda m, advance, valid, enter, rotate: (enter, rotate | ~advance),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entrance", [(), ("terms",)], ids=["at once", "a cycle ahead"])
@pytest.mark.parametrize("name", FAULTS)
def test_faults_would_be_seen(name, entrance, monkeypatch):
    config = TensorCoreConfig("narrow", "nvfp4", "nvfp4", 1, 1, 1, pipeline=(*entrance, *LOOP_REGISTERS[1:]))
    monkeypatch.setattr(control, "Ring", Planted)
    monkeypatch.setattr(Planted, "fault", staticmethod(FAULTS[name]))
    rng = np.random.default_rng(5)
    steps = random_chains(config, 120, rng, first=0.1)
    try:
        run = AmaranthEngine(config).run(steps, **patterns(rng, 0.7, 0.7, 0.7))
    except ToolError:
        same = False
    else:
        same = np.array_equal(run.results, steps.expected())
    assert same == (name == "none")
