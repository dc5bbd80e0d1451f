"""Operands that netlists are fed with to count their switching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.formats import E1M2, NVFP4, BlockFormat, Formats
from hwgen.report import schema
from sim import golden, tensors
from sim.counterpart import counterpart
from sim.steps import Operand, Steps, schedule, schedule_held
from sim.tensors import Tensor
from sim.unscaled import SCALED_FORMATS, Unscaled, rounded

__all__ = ["HALF_RATE_ELEMENTS", "TRAFFIC", "Stimulus", "half_rate", "has_shares", "macs_at", "operands_of"]

TRAFFIC = ("busy", "idle", "idle, inputs toggle", "stalled")
"""What is asked of a core: a step in every cycle; none, the payload held or not; results that are not taken."""

HALF_RATE_ELEMENTS = "e4m3"
"""Type of the elements of A and of B in steps at half the rate whose power is measured."""

_REFERENCE = 256
"""Multiply-accumulates per step of the core that the default lengths are for."""


@dataclass(frozen=True)
class Stimulus:
    """What the netlists are fed with to count their switching.

    Parameters
    ----------
    tensors
        Kind of tensor, see `sim.tensors.generate`.
    seed
        Of the generator.
    number
        Number of the run: others have other data.
    streams
        Independent cores simulated at once.
    tiles
        Output tiles that each stream computes; rounded up to whole rounds where the core interleaves tiles.
    steps_per_tile
        Steps of each tile, K / 16 G.
    size
        Rows of the tensors that the tiles are cut from, at least: the more, the larger the tensor's scale.
    timed
        Cycles of all these that are simulated with gate delays while sizes are chosen; energies are those of all.
    e1m2
        Share of blocks stored as E1M2, drawn at random, in a format that has them, see `has_shares`; by default each
        block takes the format with the smaller error.
    layer
        Weight matrix of all-MiniLM-L6-v2 to take B from, see `sim.tensors.minilm`.
    traffic
        One of `TRAFFIC`.
    hold
        Steps for which the rows of B stay while those of A change, see `sim.steps.schedule_held`. With 1, B's rows
        are others in every step; A's then stay for as many steps as tiles take turns in the accumulation loop.
    elements
        Type of the elements of A and of B where all steps are at half the rate, one of `sim.steps.ELEMENT_TYPES`. They
        come from the same tensors, quantised with one scale for each tensor. By default all steps are of FP4.
    """

    tensors: str = "gaussian"
    seed: int = 1
    number: int = 0
    streams: int = 16
    tiles: int = 1
    steps_per_tile: int = 32
    size: int = 64
    timed: int = 64
    e1m2: float | None = None
    layer: str | None = None
    traffic: str = "busy"
    hold: int = 1
    elements: str | None = None

    def fitted(self, macs: int) -> Stimulus:
        """As many streams and timed cycles as give a netlist of ``macs`` a cycle about the same work, within bounds."""
        ratio = _REFERENCE / macs
        streams = int(np.clip(round(self.streams * ratio), min(self.streams, 4), self.streams))
        timed = int(np.clip(round(self.timed * ratio), min(self.timed, 16), 8 * self.timed))
        return replace(self, streams=streams, timed=timed)

    def run(self, number: int) -> Stimulus:
        """Other data of the same kind, for another run."""
        return replace(self, number=number)

    def length(self, config: TensorCoreConfig) -> int:
        """Steps of a stream: those of whole rounds of tiles."""
        turns = config.interleave if self.hold == 1 else self.hold
        return -(-self.tiles // turns) * turns * self.steps_per_tile

    def cycles(self, config: TensorCoreConfig) -> schema.Cycles:
        """Cycles that a figure is a mean over: those that settle, and those of them with gate delays, which are all."""
        settled = self.streams * (self.length(config) - 1)
        return schema.Cycles(settled=settled, timed=settled)

    def record(self, config: TensorCoreConfig) -> schema.Stimulus:
        """What a report says of the stimulus of a core."""
        return schema.Stimulus(
            tensors=self.tensors,
            layer=self.layer,
            seed=self.seed,
            depth=self.depth(config),
            hold=self.hold,
        )

    def depth(self, config: TensorCoreConfig) -> int:
        """K of the tiles."""
        return self.steps_per_tile * config.depth // (1 if self.elements is None else 2)

    def steps(self, config: TensorCoreConfig, formats: Formats) -> list[Steps]:
        """Steps of each stream: tiles of a GEMM of its own, A and B quantised to ``formats``, each with all of K.

        C is drawn too, and is the same numbers in all formats, in the units of each: its standard deviation is a
        thousand times the product of the tensor scales that NVFP4 has for A and B, a ten-thousandth of what is added
        up to it. Streams have tensors of their own since a tensor's scale shifts all its block scales alike. Steps at
        half the rate have one format, see ``elements``; ``formats`` say nothing then.
        """
        return list(_steps(self, config, formats))

    def stream(self, config: TensorCoreConfig, formats: Formats, stream: int) -> Steps:
        """One of `steps`."""
        depth = self.depth(config)
        rows = self.hold * config.rows
        columns = config.columns * self.length(config) // self.steps_per_tile // self.hold
        seeds = np.random.SeedSequence((self.seed, self.number, stream)).generate_state(5).tolist()
        a: Tensor = tensors.generate(self.tensors, (max(self.size, rows), depth), seeds[0])
        b: Tensor
        height = max(self.size, columns)
        if self.layer is None:
            b = tensors.generate(self.tensors, (height, depth), seeds[1])
        else:
            # Rows of the model one after another, from any of them on: their length is a multiple of a block's.
            weights = tensors.minilm(self.layer)
            start = seeds[1] % len(weights) * weights.shape[1]
            b = weights.ravel()[(start + np.arange(height * depth)) % weights.size].reshape(height, depth)
        c = np.float32(1000) * tensors.generate("gaussian", (rows, columns), seeds[2])
        scaled = config.half_scaled
        whole = self._quantized(a, formats[0], seeds[3], scaled), self._quantized(b, formats[1], seeds[4], scaled)
        c *= np.float32(_unit(a, whole[0]) * _unit(b, whole[1]))
        operands = _top(whole[0], rows), _top(whole[1], columns)
        if self.hold == 1:
            return schedule(config, *operands, c)
        return schedule_held(config, *operands, c, self.hold)

    def _quantized(self, tensor: Tensor, form: BlockFormat, seed: int, scaled: bool) -> Operand:
        """In a block format, or at half the rate, there in blocks that are ``scaled`` or with one scale for all."""
        if self.elements is not None and scaled:
            return golden.quantize(tensor, golden.block_format(SCALED_FORMATS[self.elements]))
        if self.elements is not None:
            return rounded(tensor, self.elements)
        if self.e1m2 is None or not has_shares(form):
            return golden.quantize(tensor, counterpart(form))
        shape = (tensor.shape[0], tensor.shape[1] // form.size)
        return golden.quantize(tensor, counterpart(form), e1m2=np.random.default_rng(seed).random(shape) < self.e1m2)


def has_shares(form: BlockFormat) -> bool:
    """Whether any share of a tensor's blocks can be E1M2."""
    return E1M2 in form.elements and not form.by_step


def macs_at(config: TensorCoreConfig, elements: str | None) -> dict[str, int]:
    """Multiply-accumulates in a cycle of FP4, or of elements at half the rate, by scope."""
    share = 1 if elements is None else 2
    return {"element": config.depth // share, "core": config.macs_per_step // share}


def half_rate(config: TensorCoreConfig, stimulus: Stimulus) -> schema.HalfRate:
    """What a report says of the steps at half the rate of a core with a slot, beside a stimulus of FP4."""
    fed = replace(stimulus, elements=HALF_RATE_ELEMENTS)
    return schema.HalfRate(
        elements=SCALED_FORMATS[HALF_RATE_ELEMENTS] if config.half_scaled else HALF_RATE_ELEMENTS,
        depth=fed.depth(config),
        macs_per_cycle=macs_at(config, HALF_RATE_ELEMENTS),
        cycles=fed.fitted(config.macs_per_step).cycles(config),
    )


@lru_cache(maxsize=8)
def _steps(stimulus: Stimulus, config: TensorCoreConfig, formats: Formats) -> tuple[Steps, ...]:
    """A run needs the same steps several times: for each of the netlists that it builds, and while it builds them."""
    return tuple(stimulus.stream(config, formats, stream) for stream in range(stimulus.streams))


def _top(operand: Operand, rows: int) -> Operand:
    """The first rows of an operand, with the scale of all."""
    if isinstance(operand, Unscaled):
        return replace(operand, codes=operand.codes[:rows])
    return replace(operand, codes=operand.codes[:rows], scales=operand.scales[:rows], format=operand.form)


def _unit(tensor: Tensor, operand: Operand) -> float:
    """How many of an operand's units NVFP4's tensor scale is, for the same tensor."""
    assert NVFP4.full_scale is not None
    return float(np.float32(float(np.abs(tensor).max()) / NVFP4.full_scale) / operand.core_scale)


def operands_of(formats: Formats, streams: Sequence[Steps]) -> schema.Operands:
    """Formats of both operands, and the share of their blocks that are stored as E1M2.

    Parameters
    ----------
    formats
        What they were quantised to.
    streams
        The steps that hold them.
    """

    def operand(form: BlockFormat, scales: Sequence[NDArray[np.uint8]]) -> schema.Operand:
        if E1M2 not in form.elements:
            return schema.Operand(form.name, 0.0)
        selected = np.concatenate([some.ravel() for some in scales]) >> form.scale.width
        return schema.Operand(form.name, float(np.mean(selected == form.elements.index(E1M2))))

    return schema.Operands(
        operand(formats[0], [steps.a_scales for steps in streams]),
        operand(formats[1], [steps.b_scales for steps in streams]),
    )
