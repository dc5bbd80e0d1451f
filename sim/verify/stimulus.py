"""Constrained-random stimulus: random steps, among them steps made for what chance seldom finds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from sim import golden
from sim.engines import Pattern
from sim.steps import Steps, random_steps, set_what_runs_need
from sim.verify.goals import DEEPEST_CHAIN

__all__ = ["Stimulus", "deepest", "draw"]

_DIRECTED = 0.2
"""Share of the steps that are made for a purpose."""

_SPECIAL_C = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x003FFFFF, 0x807FFFFF, 0x7F7FFFFF, 0xFF7FFFFF),
        *(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF),
        *(0x3F800000, 0xBF800000),
    ],
    np.uint32,
)


@dataclass(frozen=True)
class Stimulus:
    """What one run of a core is fed with.

    Parameters
    ----------
    steps
        The steps, in order.
    offer, take
        Cycles in which a step is offered, and a result taken.
    """

    steps: Steps
    offer: Pattern
    take: Pattern


def deepest(config: TensorCoreConfig) -> int:
    """Steps of the deepest tile that is drawn of an exact core."""
    return min(config.largest_steps or 1, DEEPEST_CHAIN)


def draw(config: TensorCoreConfig, count: int, rng: np.random.Generator, deep: bool = False) -> Stimulus:
    """Draw a run.

    Four steps in five are `sim.steps.random_steps`; the others are made for a purpose each, see the functions below.
    Gaps and stalls come in stretches of their own shares.

    Parameters
    ----------
    config
        The core.
    count
        Number of steps, at least 1.
    rng
        Generator; an equal state gives an equal run.
    deep
        Whether the deepest tile of an exact core comes first, if the run is more than twice as long.
    """
    if deep and config.exact and count > 2 * deepest(config):
        rest = draw(config, count - deepest(config), rng)
        return Stimulus(_joined(_saturated(config), rest.steps), rest.offer, rest.take)
    steps = random_steps(config, count, rng)
    purpose = rng.choice(len(_PURPOSES), count)
    purpose[rng.random(count) >= _DIRECTED] = -1
    for number, make in enumerate(_PURPOSES):
        make(steps, np.flatnonzero(purpose == number), rng)
    # What every run needs, whatever was drawn.
    set_what_runs_need(config, steps.first, steps.last)
    return Stimulus(steps, _pattern(count, rng), _pattern(count, rng))


def _joined(*parts: Steps) -> Steps:
    names = [field.name for field in dataclasses.fields(Steps) if field.name != "config"]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Steps(parts[0].config, **arrays)


def _saturated(config: TensorCoreConfig) -> Steps:
    """The deepest tile, of the largest products, so that an exact accumulator comes as far as it can.

    Results come whenever its depth has doubled, and from the whole of it; every other row of A is negative.
    """
    count = deepest(config)
    codes, scales = [], []
    for side, rows in (("a", config.rows), ("b", config.columns)):
        largest = np.full((count, rows, config.depth), 7, np.uint8)
        codes.append(largest)
        scales.append(np.full((count, rows, config.groups), 0xFE if config.tagged(side) else 0x7E, np.uint8))
    codes[0][:, 1::2] |= 8
    if config.rows == 1:
        codes[1][:, 1::2] |= 8
    c = np.zeros((count, config.rows, config.columns), np.uint32)
    depth = np.arange(1, count + 1)
    return Steps(
        config, codes[0], scales[0], codes[1], scales[1], c, depth == 1, (depth & depth - 1 == 0) | (depth == count)
    )


def _pattern(count: int, rng: np.random.Generator) -> Pattern:
    """Stretches of cycles: mostly without a pause, some with few and some with many of them."""
    stretches = max(1, count // 32)
    shares = rng.choice([1.0, 0.8, 0.3, 0.1], stretches, p=[0.7, 0.2, 0.07, 0.03])
    lengths = rng.integers(8, 64, stretches)
    bits = rng.random(int(lengths.sum())) < np.repeat(shares, lengths)
    bits[0] = True  # something has to come through
    return Pattern(bits)


_Index = NDArray[np.intp]


def _tagged(steps: Steps, side: str, scales: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Give scales a tag at random, now and then also where it is not read."""
    share = 0.5 if steps.config.tagged(side) else 0.3
    return scales & np.uint8(0x7F) | (rng.random(scales.shape) < share).astype(np.uint8) << np.uint8(7)


def _set_scales(
    steps: Steps, at: _Index, rng: np.random.Generator, choose: Callable[[tuple[int, ...]], NDArray[np.uint8]]
) -> None:
    for side, scales in (("a", steps.a_scales), ("b", steps.b_scales)):
        scales[at] = _tagged(steps, side, choose(scales[at].shape), rng)


def _sums(steps: Steps, at: _Index) -> NDArray[np.float64]:
    """Sum of all terms of steps; exact unless it is longer than float64."""

    def values(side: str, codes: NDArray[np.uint8], scales: NDArray[np.uint8]) -> NDArray[np.float64]:
        e1m2 = np.repeat(scales >> 7 & steps.config.tagged(side), golden.BLOCK, axis=-1)
        elements = np.where(e1m2, golden.decode_e1m2(codes), golden.decode_e2m1(codes))
        return elements * np.repeat(np.nan_to_num(golden.decode_ue4m3(scales)), golden.BLOCK, axis=-1)

    a = values("a", steps.a_codes[at], steps.a_scales[at])
    return a @ values("b", steps.b_codes[at], steps.b_scales[at]).swapaxes(1, 2)


def _special_scales(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """NaN and zero scales against each other, and against C of every kind."""
    _set_scales(steps, at, rng, lambda shape: rng.choice(np.array([0x00, 0x7F, 0x38, 0x4D], np.uint8), shape))
    steps.c[at] = rng.choice(_SPECIAL_C, steps.c[at].shape)


def _special_chains(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """C of every kind goes through a step of zero scales, and from there into the next one of its slot."""
    turns = steps.config.interleave
    at = at[at + turns < len(steps)]
    steps.a_scales[at] = 0
    steps.b_scales[at] = 0x38
    steps.first[at] = True
    steps.c[at] = rng.choice(_SPECIAL_C, steps.c[at].shape)
    behind = at + turns
    steps.first[behind] = False
    chosen = rng.choice(np.array([0x00, 0x7F, 0x38], np.uint8), steps.a_scales[behind].shape)
    chosen[rng.random(len(at)) < 0.5] = 0x40
    steps.a_scales[behind] = _tagged(steps, "a", chosen, rng)
    steps.b_scales[behind] = _tagged(steps, "b", np.full_like(steps.b_scales[behind], 0x38), rng)


def _oppose(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Make C the negative sum, now and then but for one bit, mostly but for any bits from a random one downwards."""
    shape = steps.c[at].shape
    top = np.uint32(1) << rng.integers(0, 24, shape, np.uint32)
    below = rng.integers(0, 1 << 24, shape, np.uint32) & (top - np.uint32(1))
    flip = np.choose(rng.choice(3, shape, p=[0.1, 0.3, 0.6]), [np.zeros_like(top), top, top | below])
    steps.c[at] = (-_sums(steps, at)).astype(np.float32).view(np.uint32) ^ flip
    steps.first[at] = True


def _cancelling(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Little is left of the sum and C."""
    _set_scales(steps, at, rng, lambda shape: rng.integers(1, 0x7F, shape, np.uint8))
    _oppose(steps, at, rng)


def _cancelling_blocks(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Blocks of opposite sums, equal scales, and a C that is often zero."""
    groups = steps.config.groups
    for codes in (steps.a_codes, steps.b_codes):
        codes[at] = np.tile(codes[at][..., : golden.BLOCK], groups)
    signs = np.where(np.arange(groups) % 2, 8, 0).astype(np.uint8)
    if groups % 2:
        steps.a_codes[at, :, -golden.BLOCK :] = 0
    steps.a_codes[at] ^= np.repeat(signs, golden.BLOCK)
    _set_scales(steps, at, rng, lambda shape: np.broadcast_to(rng.integers(1, 0x7F, (*shape[:2], 1), np.uint8), shape))
    for scales in (steps.a_scales, steps.b_scales):
        scales[at] = scales[at][:, :, :1]
    steps.c[at[rng.random(len(at)) < 0.5]] = 0
    steps.first[at] = True


def _far_apart(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Scales of the smallest and of the largest exponent, block by block; C anywhere near."""
    low, high = np.arange(0x01, 0x10, dtype=np.uint8), np.arange(0x78, 0x7F, dtype=np.uint8)
    _set_scales(
        steps, at, rng, lambda shape: np.where(rng.random(shape) < 0.5, rng.choice(low, shape), rng.choice(high, shape))
    )


def _small(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Subnormal scales, often one small product in a step of zeros; C is by half near the negative sum.

    The terms are then far below their exponent, and so is C, which is shifted to the right and still decides.
    """
    _set_scales(steps, at, rng, lambda shape: rng.choice(np.array([1, 1, 1, *range(1, 8)], np.uint8), shape))
    single = at[rng.random(len(at)) < 0.5]
    for codes in (steps.a_codes, steps.b_codes):
        lane = np.arange(steps.config.depth) == rng.integers(0, steps.config.depth, (len(single), 1, 1))
        codes[single] = np.where(
            lane, rng.choice(np.array([1, 9, 2], np.uint8), codes[single].shape), codes[single] & 8
        )
    # The same lane, so that the products are not zero.
    lane = rng.integers(0, steps.config.depth, len(single))
    steps.a_codes[single, :, lane] = rng.choice(np.array([1, 9], np.uint8), (len(single), steps.config.rows))
    steps.b_codes[single, :, lane] = 1
    steps.first[at] = True
    _oppose(steps, at[rng.random(len(at)) < 0.5], rng)


def _largest(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Block sums as large as they get, of either sign, with the largest significands."""
    for codes in (steps.a_codes, steps.b_codes):
        codes[at] = 7
    steps.a_codes[at] |= np.where(rng.random((len(at), steps.config.rows, 1)) < 0.5, 8, 0).astype(np.uint8)
    tops = np.array([0x77, 0x7E, 0x6F], np.uint8)
    _set_scales(steps, at, rng, lambda shape: np.broadcast_to(rng.choice(tops, (shape[0], 1, 1)), shape))
    plain = at[rng.random(len(at)) < 0.7]
    for scales in (steps.a_scales, steps.b_scales):
        scales[plain] &= 0x7F  # the largest products are E2M1
    steps.c[at] = rng.choice(
        np.array([0, 0x3F800000, 0xBF800000, 0x4E7FFFFF, 0xCE7FFFFF], np.uint32), steps.c[at].shape
    )


def _long(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Tiles of many steps: no step begins one for a while."""
    turns = steps.config.interleave
    for start in at[: 1 + len(at) // 64]:
        length = int(rng.integers(3, 33))
        steps.first[start + turns : start + turns * length] = False


def _alone(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Every distance between C and its step: C of few bits, all exponents alike likely."""
    _set_scales(steps, at, rng, lambda shape: rng.integers(1, 0x7F, shape, np.uint8))
    exponents = np.frexp(_sums(steps, at))[1] + rng.integers(-60, 60, steps.c[at].shape)
    bits = rng.integers(0, 1 << 32, steps.c[at].shape, np.uint32)
    kept = rng.choice(np.array([0x80000000, 0x807FFFFF, 0x80400000], np.uint32), bits.shape)
    steps.c[at] = bits & kept | np.clip(exponents + 126, 1, 254).astype(np.uint32) << np.uint32(23)
    steps.first[at] = True


_PURPOSES = (
    *(_special_scales, _special_chains, _cancelling, _cancelling_blocks, _far_apart),
    *(_small, _largest, _alone, _long),
)
