"""A GEMM through the RTL of a core, and what the golden model says of it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from sim import golden
from sim.engines import Engine, Pattern, Patterns
from sim.operands import packed
from sim.steps import gather, schedule
from sim.unscaled import Unscaled, type_at_half_rate

__all__ = ["SAVED", "GemmFigures", "GemmRun", "Traffic", "run_gemm", "run_unscaled", "saved"]


class _HalfRate(TypedDict, total=False):
    mode: str
    a_type: str
    b_type: str


class GemmFigures(_HalfRate):
    """What there is to say of a GEMM through the RTL.

    Parameters
    ----------
    configuration
        Name of the core's configuration.
    engine
        Name of its simulator.
    mode, a_type, b_type
        At half the rate: fp8, or mxfp8 with scales, and the types of the elements of A and of B.
    m, n, k
        D is M x N; K as it was given.
    macs
        Multiply-accumulates asked for.
    steps, cycles
        Steps that the core took, and clock cycles from the first of them to the last result.
    utilisation
        Of the multiply-accumulates that the core could have done in these cycles, the share asked for.
    outputs
        Results that were compared with the golden model.
    mismatches
        How many of them differ in a bit.
    """

    configuration: str
    engine: str
    m: int
    n: int
    k: int
    macs: int
    steps: int
    cycles: int
    utilisation: float
    outputs: int
    mismatches: int


@dataclass(frozen=True)
class Traffic:
    """When steps and C are offered and results taken.

    Parameters
    ----------
    gaps
        Share of cycles in which no step is offered, and of those in which no C is, 0 to below 1.
    stalls
        Share of cycles in which no result is taken, 0 to below 1.
    seed
        Of the generator that draws them.
    """

    gaps: float = 0.0
    stalls: float = 0.0
    seed: int = 1

    def patterns(self) -> Patterns:
        """Of steps, results and C, drawn ahead: every engine sees the same ones."""
        generator = np.random.default_rng(self.seed)
        length = 1 << 16
        offer, take, supply = (
            Pattern(generator.random(length) >= share) for share in (self.gaps, self.stalls, self.gaps)
        )
        return Patterns(offer=offer, supply=supply, take=take)


@dataclass(frozen=True)
class GemmRun:
    """What came of D = A B^T.

    Parameters
    ----------
    config
        The core.
    engine
        Name of its simulator.
    a, b
        Operands, (M, K) and (N, K), K up to the next whole block; without block scales where steps are at half the
        rate.
    depth
        K as it was given.
    steps, cycles
        Steps that the core took, and clock cycles from the first of them to the last result.
    results, expected
        D before tensor scales, of the core and of the golden model: FP32 as uint32 bit patterns, (M, N).
    """

    config: TensorCoreConfig
    engine: str
    a: golden.QuantizedTensor | Unscaled
    b: golden.QuantizedTensor | Unscaled
    depth: int
    steps: int
    cycles: int
    results: NDArray[np.uint32]
    expected: NDArray[np.uint32]

    @property
    def macs(self) -> int:
        """Multiply-accumulates asked for, M N K."""
        return self.results.size * self.depth

    @property
    def utilisation(self) -> float:
        """Of the multiply-accumulates that the core could have done in these cycles, the share asked for."""
        rate = self.config.macs_per_step // (2 if self.types else 1)
        return self.macs / (self.cycles * rate)

    @property
    def types(self) -> tuple[str, str] | None:
        """Types of the elements of A and of B where steps are at half the rate."""
        a, b = (type_at_half_rate(operand, self.config.half_scaled) for operand in (self.a, self.b))
        return (a, b) if a and b else None

    @property
    def mode(self) -> str:
        """The steps: fp4, fp8, or mxfp8."""
        return "fp4" if not self.types else "fp8" if isinstance(self.a, Unscaled) else "mxfp8"

    @cached_property
    def d(self) -> NDArray[np.float32]:
        """D of the core with tensor scales, (M, N), as `sim.golden.gemm` has it."""
        scale = self.a.core_scale * self.b.core_scale
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            d = (self.results.view(np.float32).astype(np.float64) * scale).astype(np.float32)
        d.view(np.uint32)[np.isnan(d)] = 0x7FFFFFFF  # conversions need not keep a NaN's bits
        return d

    @cached_property
    def wrong(self) -> NDArray[np.intp]:
        """Where core and golden model differ, (W, 2)."""
        return np.argwhere(self.results != self.expected)

    @property
    def mismatch(self) -> str | None:
        """The first output that differs, in words; None if none does."""
        if not len(self.wrong):
            return None
        at = tuple(int(i) for i in self.wrong[0])
        got, want = int(self.results[at]), int(self.expected[at])
        return f"D{list(at)} is 0x{got:08x}, the golden model says 0x{want:08x}"

    def as_dict(self) -> GemmFigures:
        """The figures, ready for JSON."""
        m, n = self.results.shape
        modes: _HalfRate = {"mode": self.mode, "a_type": self.types[0], "b_type": self.types[1]} if self.types else {}
        return {
            "configuration": self.config.name,
            "engine": self.engine,
            **modes,
            "m": m,
            "n": n,
            "k": self.depth,
            "macs": self.macs,
            "steps": self.steps,
            "cycles": self.cycles,
            "utilisation": self.utilisation,
            "outputs": self.results.size,
            "mismatches": len(self.wrong),
        }


SAVED = (".npy", ".npz")
"""Suffixes of the files that `saved` makes."""


def _stored(name: str, operand: golden.QuantizedTensor | Unscaled) -> dict[str, NDArray[Any]]:
    return operand.stored(name) if isinstance(operand, Unscaled) else packed(name, operand)


def saved(run: GemmRun, suffix: str) -> bytes:
    """A run as a file.

    Parameters
    ----------
    run
        The run.
    suffix
        ``.npy``: `GemmRun.d` alone. ``.npz``: that as ``d``, `GemmRun.results` as ``results``, and the operands as
        ``a.codes``, ``b.scales`` and so on, so that `sim.operands.from_file` or `sim.unscaled.from_file`
        reads them back.
    """
    content = io.BytesIO()
    if suffix == ".npy":
        np.save(content, run.d)
    else:
        operands = _stored("a", run.a) | _stored("b", run.b)
        np.savez(content, d=run.d, results=run.results, **operands)  # type: ignore[arg-type,unused-ignore]
    return content.getvalue()


def run_gemm(
    core: Engine,
    a: golden.QuantizedTensor,
    b: golden.QuantizedTensor,
    traffic: Traffic = Traffic(),
    *,
    depth: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> GemmRun:
    """Run D = A B^T on a core, and the golden model on the same operands.

    Parameters
    ----------
    core
        The simulated core.
    a, b
        Operands, (M, K) and (N, K).
    traffic
        Gaps and stalls.
    depth
        K without the zeros that fill the last block; that of the operands by default.
    progress
        Called with the steps accepted and those there are.

    Raises
    ------
    InputError
        The core accumulates exactly, but not so deep.
    ToolError
        The core does not come to an end.
    """
    config = core.config
    steps = schedule(config, a, b)
    run = core.run(steps, **traffic.patterns(), progress=lambda done: progress(done, len(steps)))
    options: dict[str, Any] = {
        "fraction_bits": config.fraction_bits,
        "rounding": config.rounding,
        "empty_blocks": config.empty_blocks,
    }
    expected = golden.accumulate(a, b, None, config.groups, config.numerics, **options).view(np.uint32)
    results = gather(config, run.results, *expected.shape)
    return GemmRun(config, core.name, a, b, depth or a.shape[1], len(steps), run.cycles, results, expected)


def run_unscaled(
    core: Engine,
    a: golden.QuantizedTensor | Unscaled,
    b: golden.QuantizedTensor | Unscaled,
    traffic: Traffic = Traffic(),
    *,
    depth: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> GemmRun:
    """Run D = A B^T at half the rate, of elements without block scales or of MX, and the golden model on the same.

    Parameters
    ----------
    core
        The simulated core.
    a, b
        Operands, (M, K) and (N, K).
    traffic
        Gaps and stalls.
    depth
        K without the zeros that fill the last block; that of the operands by default.
    progress
        Called with the steps accepted and those there are.

    Raises
    ------
    InputError
        The core has no slot, or no scales at half the rate.
    ToolError
        The core does not come to an end.
    """
    config = core.config
    if not config.slotted:
        raise InputError(f"{config.name} multiplies FP4 alone; FP8 and FP6 take a core with a slot")
    types, scales = [type_at_half_rate(operand, config.half_scaled) for operand in (a, b)], {}
    if isinstance(a, golden.QuantizedTensor) and isinstance(b, golden.QuantizedTensor):
        if not config.half_scaled:
            raise InputError(f"{config.name} has no scales at half the rate; those of MX take half_scale = 'e8m0'")
        scales = {"a_scales": a.scales, "b_scales": b.scales}
    assert types[0] is not None, "A is in blocks of FP4"
    assert types[1] is not None, "B is in blocks of FP4"
    steps = schedule(config, a, b)
    run = core.run(steps, **traffic.patterns(), progress=lambda done: progress(done, len(steps)))
    options: dict[str, Any] = {"fraction_bits": config.half_fraction_bits, "rounding": config.rounding}
    products = config.groups * config.slots
    options |= {"a": types[0], "b": types[1], **scales}
    expected = golden.unscaled_gemm(a.codes, b.codes, None, products, **options).view(np.uint32)
    results = gather(config, run.results, *expected.shape)
    return GemmRun(config, core.name, a, b, depth or a.shape[1], len(steps), run.cycles, results, expected)
