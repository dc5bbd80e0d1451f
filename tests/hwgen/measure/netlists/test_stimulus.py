"""What netlists are fed with is the same numbers in all formats."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwgen.config import NAMED, resolve
from hwgen.config.core import TensorCoreConfig
from hwgen.measure.netlists.stimulus import Stimulus, half_rate
from sim import golden, tensors
from sim.steps import Steps

MINE = """
name = "mine-small"
a = "mine"
b = "mine"
rows = 4
columns = 4
groups = 1
[formats.mine]
elements = ["E2M1"]
scale = "UE4M3"
block = 16
full_scale = 2688
source = "this test"
"""
"""A core of NVFP4 by another name."""

STIMULUS = Stimulus(streams=1, steps_per_tile=4)


def of_gemm(config: TensorCoreConfig, stimulus: Stimulus = STIMULUS) -> tuple[Steps, np.ndarray, np.ndarray]:
    """Steps; A and B that they are cut from, as drawn."""
    seeds = np.random.SeedSequence((stimulus.seed, 0, 0)).generate_state(5).tolist()
    shape = stimulus.size, stimulus.depth(config)
    a, b = (tensors.generate("gaussian", shape, seed) for seed in seeds[:2])
    return stimulus.stream(config, config.formats, 0), a, b


def addend(steps: Steps) -> np.ndarray:
    return steps.c[steps.first].view(np.float32).astype(float)


def unit(config: TensorCoreConfig, a: np.ndarray, b: np.ndarray) -> float:
    """What one unit of a core stands for."""
    tensors_ = (golden.quantize(x, form.name) for x, form in zip((a, b), config.formats, strict=True))
    return float(np.prod([tensor.core_scale for tensor in tensors_]))


def test_addends_of_nvfp4_have_a_deviation_of_a_thousand_units() -> None:
    steps, _, _ = of_gemm(NAMED["nvfp4-small"])
    found = addend(steps)
    assert (found == found.astype(np.float32)).all()
    assert 800 < found.std() < 1200


@pytest.mark.parametrize("name", ["nvint4", "fp4-ue5m3-b16", "mxfp4", "if4", "int8", "w4a8"])
def test_addends_are_the_same_numbers_in_all_formats(name: str) -> None:
    config = NAMED[f"{name}-small"]
    # As many columns of tensors, so that both are cut from the same.
    stimulus = replace(STIMULUS, steps_per_tile=64 // config.depth)
    steps, a, b = of_gemm(config, stimulus)
    reference = NAMED["nvfp4-small"]
    theirs, *_ = of_gemm(reference)
    wanted = addend(theirs)[:1] * unit(reference, a, b)
    np.testing.assert_allclose(addend(steps)[:1] * unit(config, a, b), wanted, rtol=1e-6)
    # The sums of a tile are far larger, so that what is added up shows in the exponents.
    results = steps.expected().view(np.float32)[:1] * unit(config, a, b)
    assert np.abs(wanted).max() < 0.01 * np.abs(results).max()


def test_halves_of_steps_have_the_type_that_was_asked_for() -> None:
    config = NAMED["nvfp4-multi-small"]
    steps, *_ = of_gemm(config, replace(STIMULUS, elements="e5m2"))
    assert steps.half.all()
    assert {*steps.a_types.tolist(), *steps.b_types.tolist()} == {steps.a_types[0]}
    assert not steps.a_scales.any()


def test_halves_of_steps_have_scales_where_the_core_reads_them() -> None:
    """MXFP8: the scales are those of the tensor, not 1 throughout; both designs get the same bits."""
    stimulus = replace(STIMULUS, elements="e4m3", tensors="heavy-tailed")
    steps, other = (of_gemm(NAMED[f"{name}-mx-multi-small"], stimulus)[0] for name in ("nvfp4", "mixfp4"))
    assert steps.half.all()
    assert len({*steps.a_scales.ravel().tolist()}) > 1
    assert len({*steps.b_scales.ravel().tolist()}) > 1
    np.testing.assert_array_equal(steps.packed(), other.packed())
    report = half_rate(NAMED["nvfp4-mx-multi-small"], STIMULUS)
    assert report.elements == "mxfp8-e4m3"
    assert half_rate(NAMED["nvfp4-multi-small"], STIMULUS).elements == "e4m3"


def test_a_format_of_ones_own(tmp_path: Path) -> None:
    """It is in no catalogue, so its name alone says nothing."""
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    config = resolve(str(path))
    mine, theirs = (STIMULUS.stream(each, each.formats, 0) for each in (config, NAMED["nvfp4-small"]))
    np.testing.assert_array_equal(mine.packed(), theirs.packed())
    np.testing.assert_array_equal(mine.c, theirs.c)
