"""GEMMs of a layer through the RTL: activations through that of a quantiser, and what it puts out through a core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hwgen.config.quantiser import BLOCK
from hwgen.errors import MismatchError
from sim import golden
from sim.accuracy.layer import Product, Side
from sim.engines import Engine
from sim.engines.quantisers import QuantiserEngine
from sim.gemm import run_gemm
from sim.verify.quantisers import scale_words

__all__ = ["RtlRun", "run_products"]


@dataclass(frozen=True)
class RtlRun:
    """What went through the RTL, and was equal to the golden model.

    Parameters
    ----------
    blocks
        Blocks that the quantiser made.
    quantiser_cycles
        Clock cycles that it took.
    gemms, macs, outputs
        GEMMs, their multiply-accumulates, and their results.
    steps, cycles
        Steps of the core, and clock cycles.
    """

    blocks: int
    quantiser_cycles: int
    gemms: int
    macs: int
    outputs: int
    steps: int
    cycles: int


def run_products(
    quantiser: QuantiserEngine,
    core: Engine,
    kind: str,
    products: Sequence[Product],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RtlRun:
    """Run GEMMs, and compare codes, scales, flags and results with the golden model, bit for bit.

    Parameters
    ----------
    quantiser
        What quantises activations.
    core
        What multiplies.
    kind
        What the GEMMs are called in an error.
    products
        GEMMs as the golden model computed them, one or more.
    progress
        Called with the steps that were accepted, and those there are in the present GEMM.

    Raises
    ------
    MismatchError
        A bit differs; the message names the first element that does.
    """
    blocks = quantiser_cycles = macs = outputs = steps = cycles = 0
    for number, product in enumerate(products):
        place = kind if len(products) == 1 else f"{kind}, GEMM {number}"
        a, one = _quantised(quantiser, product.x, f"{place}: X")
        b, other = _quantised(quantiser, product.w, f"{place}: W")
        quantiser_cycles += one + other
        blocks += sum(side.tensor.scales.size for side in (product.x, product.w) if side.values is not None)
        run = run_gemm(core, a, b, progress=progress)
        if run.mismatch:
            raise MismatchError(f"{core.config.name}: {place}: {run.mismatch}")
        differ = np.argwhere(run.d.view(np.uint32) != product.d.view(np.uint32))
        if len(differ):
            at = tuple(differ[0].tolist())
            got, want = (int(each.view(np.uint32)[at]) for each in (run.d, product.d))
            raise MismatchError(
                f"{core.config.name}: {place}: D{list(at)} with tensor scales is 0x{got:08x}, the layer has"
                f" 0x{want:08x}"
            )
        macs, outputs = macs + run.macs, outputs + run.results.size
        steps, cycles = steps + run.steps, cycles + run.cycles
    return RtlRun(blocks, quantiser_cycles, len(products), macs, outputs, steps, cycles)


def _quantised(quantiser: QuantiserEngine, side: Side, place: str) -> tuple[golden.QuantizedTensor, int]:
    """An operand as the RTL of the quantiser has it, and its cycles; weights as they are."""
    if side.values is None or side.flags is None:
        return side.tensor, 0
    words = np.ascontiguousarray(side.values, np.float32).view(np.uint32).reshape(-1, BLOCK)
    scale = side.tensor.tensor_scale
    found = quantiser.run(words, scale_words(scale, quantiser.config.tensor_scale_bits))
    codes, scales = found.codes.reshape(side.tensor.codes.shape), found.scales.reshape(side.tensor.scales.shape)
    for what, mine, theirs in (
        ("code", codes, side.tensor.codes),
        ("scale", scales, side.tensor.scales),
        ("invalid", found.invalid.reshape(scales.shape), side.flags.invalid),
        ("saturated", found.saturated.reshape(scales.shape), side.flags.saturated),
    ):
        differ = np.argwhere(mine != theirs)
        if len(differ):
            at = tuple(differ[0].tolist())
            raise MismatchError(
                f"{quantiser.config.name}: {place}: {what} {list(at)} is 0x{int(mine[at]):x}, the golden model says"
                f" 0x{int(theirs[at]):x}"
            )
    return golden.QuantizedTensor(codes, scales, scale, side.tensor.format), found.cycles
