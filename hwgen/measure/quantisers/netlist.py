"""A quantiser's netlist against the golden model, and at work."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hwgen.config.quantiser import BLOCK, QuantiserConfig
from hwgen.errors import ToolError
from hwgen.measure.netlists.energy import of_activity
from hwgen.netlist.graph import Netlist
from hwgen.power.activity import respond, simulate
from hwgen.power.consumption import Consumption
from hwgen.power.glitch import Gates, with_glitches
from hwgen.timing.analysis import Timing
from sim.tensors import generate
from sim.verify.quantisers import Batch, batches, counterpart, scale_words

__all__ = ["AT_WORK", "CHECKED", "check", "energy"]

_CYCLES, _STREAMS = 100, 64
CHECKED = _CYCLES * _STREAMS // 2
"""Blocks of a check, at least."""
_WORKING = 48, 16
AT_WORK = _WORKING[0] * _WORKING[1]
"""Blocks of the simulation behind an energy."""


@lru_cache(maxsize=4)
def _vectors(config: QuantiserConfig) -> list[Batch]:
    """Blocks for each stream, drawn from batches of every kind."""
    rng = np.random.default_rng(6)
    found = list(islice(batches(config, 7), _STREAMS))
    return [batch._replace(words=batch.words[rng.choice(len(batch.words), _CYCLES, replace=False)]) for batch in found]


def _inputs(config: QuantiserConfig, chosen: list[Batch]) -> dict[str, NDArray[np.uint8]]:
    """Stimulus of a netlist: a block in every cycle, each stream with the tensor scale of its batch."""
    width = config.numbers.width
    words = np.stack([batch.words >> (32 - width) for batch in chosen], axis=1)
    cycles, streams = words.shape[:2]
    ones = np.ones((cycles, streams, 1), np.uint8)
    scales = [scale_words(batch.scale, config.tensor_scale_bits) for batch in chosen]

    def port(values: list[int], bits: int) -> NDArray[np.uint8]:
        spread = np.array(values)[:, None] >> np.arange(bits) & 1
        return np.broadcast_to(spread.astype(np.uint8), (cycles, streams, bits)).copy()

    return {
        "block__payload": (words[..., None] >> np.arange(width, dtype=np.uint32) & 1)
        .astype(np.uint8)
        .reshape(cycles, streams, BLOCK * width),
        "block__valid": ones,
        "result__ready": ones.copy(),
        "rst": 1 - ones,
        "tensor_fraction": port([scale.fraction for scale in scales], config.tensor_scale_bits - 1),
        "tensor_exponent": port([scale.exponent for scale in scales], 8),
    }


def _expected(config: QuantiserConfig, batch: Batch) -> NDArray[np.uint8]:
    """What comes out for a batch, 10 bytes a block."""
    words = batch.words & np.uint32(0xFFFF0000 if config.numbers.width == 16 else 0xFFFFFFFF)
    found = counterpart(config).quantize(words.view(np.float32), batch.scale)
    codes = found.tensor.codes
    flags = found.invalid | found.saturated.astype(np.uint8) << 1
    return np.hstack([codes[:, ::2] | codes[:, 1::2] << 4, found.tensor.scales, flags.astype(np.uint8)])


def check(netlist: Netlist, config: QuantiserConfig) -> int:
    """Compare a quantiser's netlist with the golden model, under gaps and stalls; gives the number of blocks.

    Raises
    ------
    ToolError
        A bit differs, or a result is missing.
    """
    chosen = _vectors(config)
    given = _inputs(config, chosen)
    rng = np.random.default_rng(8)
    for port, pace in (("block__valid", 0.9), ("result__ready", 0.85)):
        given[port] = (rng.random(given[port].shape) < pace).astype(np.uint8)
    outputs = respond(netlist, given)
    taken = (given["block__valid"] & outputs["block__ready"])[..., 0].astype(bool)
    answered = (given["result__ready"] & outputs["result__valid"])[..., 0].astype(bool)
    results = np.packbits(outputs["result__payload"], axis=2, bitorder="little")
    blocks = 0
    for stream, batch in enumerate(chosen):
        wanted = _expected(config, batch._replace(words=batch.words[taken[:, stream]]))
        found = results[answered[:, stream], stream]
        inside = len(wanted) - len(found)
        if not 0 <= inside <= config.latency or not np.array_equal(found, wanted[: len(found)]):
            raise ToolError(f"the netlist of {config.name} differs from the golden model; its figures are void")
        blocks += len(found)
    if blocks < CHECKED:
        raise ToolError(f"the netlist of {config.name} takes too few blocks; its figures are void")
    return blocks


def energy(netlist: Netlist, timing: Timing, config: QuantiserConfig, run: int) -> Consumption:
    """FJ of a cycle with a block of gaussian numbers, glitches included; ``run`` is the seed of these."""
    cycles, streams = _WORKING
    cycles += config.latency
    x = generate("gaussian", (streams, cycles * BLOCK), run)
    scale = counterpart(config).tensor_scale(x)
    chosen = [Batch("drawn", row.view(np.uint32).reshape(cycles, BLOCK), scale) for row in x]
    gates = Gates(netlist, timing)
    settled = simulate(netlist, _inputs(config, chosen), warmup=config.latency, keep=gates.sources)
    return of_activity(netlist, timing, with_glitches(settled, gates))["whole"]
