"""What is made of a run; the runs themselves are tested with the engines and through the command."""

from collections.abc import Callable

import numpy as np
import pytest

from hwgen.config import named
from hwgen.errors import InputError
from sim import golden
from sim.engines import Run
from sim.gemm import Traffic, run_gemm, run_unscaled
from sim.steps import Steps
from sim.unscaled import rounded

CORE = named("mixfp4-small")
RNG = np.random.default_rng(5)


class Ideal:
    """A core that is right but in the bits of ``flipped``, and takes a step in every cycle."""

    name = "ideal"
    config = CORE

    def __init__(self, flipped: int = 0) -> None:
        self.flipped = flipped

    def run(self, steps: Steps, *, progress: Callable[[int], None], **streams: Callable[[int], bool]) -> Run:
        progress(len(steps))
        cycles = np.arange(len(steps))
        results = steps.expected() ^ np.uint32(self.flipped)
        return Run(results, len(steps), np.zeros((2,) * 6, np.int64), cycles, cycles[steps.first])


def operands(m: int, n: int, k: int) -> tuple[golden.QuantizedTensor, golden.QuantizedTensor]:
    a, b = (golden.quantize(RNG.standard_normal((rows, k)) * 1e3, "mixfp4") for rows in (m, n))
    return a, b


def test_d_is_that_of_the_golden_model() -> None:
    a, b = operands(5, 7, 64)
    seen = []
    run = run_gemm(Ideal(), a, b, depth=50, progress=lambda done, total: seen.append((done, total)))
    assert run.mismatch is None
    assert run.d.tobytes() == golden.gemm(a, b, blocks_per_step=1).tobytes()
    assert (run.macs, run.steps) == (5 * 7 * 50, 2 * 2 * 4)
    assert run.utilisation == pytest.approx(5 * 7 * 50 / (16 * 256))
    assert seen == [(16, 16)]
    assert run.as_dict()["k"] == 50


def test_a_nan_stays_the_cores() -> None:
    a, b = operands(1, 1, 16)
    a.scales[0, 0] = 0x7F
    run = run_gemm(Ideal(), a, b)
    assert run.results.tolist() == run.d.view(np.uint32).tolist() == [[0x7FFFFFFF]]


def test_a_wrong_bit_is_told() -> None:
    a, b = operands(5, 7, 64)
    run = run_gemm(Ideal(flipped=4), a, b)
    got, want = run.results[0, 0], run.expected[0, 0]
    assert got == want ^ 4
    assert run.mismatch == f"D[0, 0] is 0x{got:08x}, the golden model says 0x{want:08x}"
    assert run.as_dict()["mismatches"] == 35


def test_traffic_is_the_same_for_every_engine() -> None:
    first, second = (Traffic(gaps=0.25, stalls=0.5, seed=4).patterns() for _ in range(2))
    for name, share in (("offer", 0.75), ("supply", 0.75), ("take", 0.5)):
        assert np.array_equal(first[name].bits, second[name].bits)
        assert first[name].bits.mean() == pytest.approx(share, abs=0.02)
    assert (first["offer"].bits != first["supply"].bits).any()
    assert all(pattern.bits.all() for pattern in Traffic().patterns().values())


def test_fp8_takes_a_slot() -> None:
    operand = rounded(np.ones((2, 8)), "e4m3")
    with pytest.raises(InputError, match="mixfp4-small multiplies FP4 alone; FP8 and FP6 take a core with a slot"):
        run_unscaled(Ideal(), operand, operand)


@pytest.mark.parametrize("core", ["mixfp4-multi-small", "nvfp4-multi-blackwell"])
@pytest.mark.parametrize(("m", "n", "k"), [(5, 7, 64), (1, 1, 1), (9, 3, 100)])
def test_fp8_of_any_shape(core: str, m: int, n: int, k: int) -> None:
    """Tiles are put together again, and no more than half of the rate is to be had."""
    engine = Ideal()
    engine.config = named(core)
    a, b = (rounded(RNG.standard_normal((rows, k)), kind) for rows, kind in ((m, "e5m2"), (n, "e2m1")))
    run = run_unscaled(engine, a, b)
    assert run.mismatch is None
    assert run.types == ("e5m2", "e2m1")
    assert run.macs == m * n * k
    assert run.utilisation == m * n * k / (run.steps * engine.config.macs_per_step / 2) <= 1
    elements = [golden.UNSCALED_ELEMENTS[operand.type] for operand in (a, b)]
    values = [each.table[x.codes & (1 << each.width) - 1] for each, x in zip(elements, (a, b), strict=True)]
    wanted = values[0] @ values[1].T
    np.testing.assert_allclose(run.results.view(np.float32), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(("m", "n", "k"), [(5, 7, 64), (1, 1, 1), (9, 3, 100)])
def test_mxfp8_of_any_shape(m: int, n: int, k: int) -> None:
    """Each step has the scales of its 32 elements, four steps of eight products the same."""
    engine = Ideal()
    engine.config = named("mixfp4-mx-multi-small")
    forms = ("mxfp8-e5m2", "mxfp6-e2m3")
    numbers = (RNG.standard_normal((rows, k)) * np.exp2(RNG.integers(-9, 9, (rows, 1))) for rows in (m, n))
    a, b = (golden.quantize(golden.padded(x, form), form) for x, form in zip(numbers, forms, strict=True))
    run = run_unscaled(engine, a, b, depth=k)
    assert run.mismatch is None
    assert (run.mode, run.types, run.macs) == ("mxfp8", ("e5m2", "e2m3"), m * n * k)
    wanted = golden.dequantize(a) @ golden.dequantize(b).T
    np.testing.assert_allclose(run.results.view(np.float32), wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_mxfp8_takes_scales_at_half_the_rate() -> None:
    engine = Ideal()
    engine.config = named("mixfp4-multi-small")
    operand = golden.quantize(np.ones((2, 32)), "mxfp8-e4m3")
    with pytest.raises(InputError, match="mixfp4-multi-small has no scales at half the rate"):
        run_unscaled(engine, operand, operand)


def test_fp8_on_a_core_with_scales_has_those_of_one() -> None:
    engine = Ideal()
    engine.config = named("nvfp4-mx-multi-small")
    a, b = (rounded(RNG.standard_normal((5, 40)), "e4m3") for _ in "ab")
    run = run_unscaled(engine, a, b)
    assert (run.mode, run.mismatch) == ("fp8", None)


def test_a_core_of_mx_multiplies_it_at_its_own_rate() -> None:
    engine = Ideal()
    engine.config = named("mxfp4-small")
    a, b = (golden.quantize(RNG.standard_normal((4, 64)), "mxfp4") for _ in "ab")
    run = run_gemm(engine, a, b)
    assert (run.mode, run.types, run.mismatch) == ("fp4", None, None)
