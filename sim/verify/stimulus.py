"""Constrained-random stimulus: random steps, among them steps made for what chance seldom finds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.formats import BlockFormat, Bounds, ScaleFormat
from hwgen.formats.floating import FloatFormat
from sim.engines import Pattern, Patterns
from sim.random import (
    any_codes,
    code_type,
    negated,
    numbers,
    random_steps,
    scale_type,
    set_what_runs_need,
    sums,
    zeros,
)
from sim.steps import Steps
from sim.verify.addends import SPECIAL, nearly_opposite, opposite
from sim.verify.goals import LOWEST_BIT, cancelled_sum, deepest
from sim.verify.half_stimulus import draw_half_rate

__all__ = ["Stimulus", "draw"]

_DIRECTED = 0.25
"""Share of the steps that are made for a purpose."""

_AT_HALF_RATE = -2
"""Purpose of steps at half the rate, which have others."""

_SHORT_CODES = 8
"""Bits of two codes, all pairs of which other steps have often enough."""

_OF_PAIRS = 0.7
"""Share of the steps without a purpose that pairs of longer codes take."""

_OF_CUT_PAIRS = 0.9
"""The same where small products are cut beside large ones, so that not every step shows all pairs."""

_FEW = 2
"""Exponents that numbers of such steps have, where elements have more of them than the window has bits."""
_WHOLE = 0.1
"""Share of steps where they have all of them."""

_SIGNIFICAND = 24
"""Bits of an FP32 significand."""


@dataclass(frozen=True)
class Stimulus:
    """What one run of a core is fed with.

    Parameters
    ----------
    steps
        The steps, in order.
    offer, supply, take
        Cycles in which a step is offered, C is offered, and a result taken.
    """

    steps: Steps
    offer: Pattern
    supply: Pattern
    take: Pattern

    @property
    def patterns(self) -> Patterns:
        """When the streams move."""
        return Patterns(offer=self.offer, supply=self.supply, take=self.take)


def draw(config: TensorCoreConfig, count: int, rng: np.random.Generator, deep: bool = False) -> Stimulus:
    """Draw a run.

    Three steps in four are `sim.random.random_steps`; the others are made for a purpose each, see the functions below.
    Gaps of steps and of C, and stalls, come in stretches of their own shares.

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
        first = [_saturated(config)]
        if config.adds_sums and cancelled_sum(config)[0]:
            first.append(_cancelled(config))
        rest = draw(config, count - sum(map(len, first)), rng)
        return dataclasses.replace(rest, steps=_joined(*first, rest.steps))
    steps = random_steps(config, count, rng)
    powers = config.wide and not any(form.scale.mantissa_bits for form in config.formats)
    longer = config.bounds.term_width > _SIGNIFICAND
    lopsided = any(_most_negative(form) is not None for form in config.formats)
    purposes = (
        *_PURPOSES,
        *([_ends] if powers else []),
        *([_longest] if longer else []),
        *([_lopsided] if lopsided else []),
        *([_at_the_edge] if config.bounds.window is not None else []),
        *([_infinities] if config.bounds.may_be_infinite else []),
        *([_nans] if any(isinstance(form.elements[0], FloatFormat) for form in config.formats) else []),
    )
    purpose = rng.choice(len(purposes), count)
    purpose[rng.random(count) >= _DIRECTED] = -1
    if config.slotted:
        draw_half_rate(steps, np.flatnonzero(steps.half), rng)
        purpose[steps.half] = _AT_HALF_RATE
    if sum(form.code_width for form in config.formats) > _SHORT_CODES:
        share = _OF_PAIRS if config.bounds.window is None else _OF_CUT_PAIRS
        _pairs(steps, np.flatnonzero((purpose == -1) & (rng.random(count) < share)), rng)
    for number, make in enumerate(purposes):
        make(steps, np.flatnonzero(purpose == number), rng)
    # What every run needs, whatever was drawn.
    set_what_runs_need(config, steps.first, steps.last)
    # Made anew: where a step selects the elements, its scales have the selector of the step above them.
    steps = dataclasses.replace(steps)
    return Stimulus(steps, _pattern(count, rng), _pattern(count, rng), _pattern(count, rng))


def _joined(*parts: Steps) -> Steps:
    names = [field.name for field in dataclasses.fields(Steps) if field.name != "config"]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Steps(parts[0].config, **arrays)


def _place_of_largest(tables: Sequence[Sequence[float]]) -> tuple[int, int]:
    """Selector and code of the largest entry of a format's tables, one for each element format."""
    return max(
        ((tag, code) for tag, table in enumerate(tables) for code in range(len(table))),
        key=lambda place: tables[place[0]][place[1]],
    )


def _smallest(form: BlockFormat) -> NDArray[Any]:
    """Codes of the smallest number above zero, and of its negative."""
    return np.array([1, negated(form)[1]], code_type(form))


@cache
def _largest_integer(form: BlockFormat) -> tuple[int, int]:
    """Selector and code of the largest integer of a format, its fold left out."""
    return _place_of_largest([element.integers for element in form.elements])


@cache
def _of_exponent(form: BlockFormat, above: int) -> NDArray[Any]:
    """Codes of numbers whose exponent is so far above the lowest; of codes that are added, the field."""
    (element,) = form.elements
    codes = np.arange(1 << form.code_width)
    own = codes % (len(codes) // 2) >> element.mantissa_bits if form.additive else np.array(element.shifts)
    number = np.isin(codes, element.nans + element.infinities, invert=True)
    return codes[number & (own == above)].astype(code_type(form))


def _above(form: BlockFormat, tag: int) -> int:
    """Bits above a scale that select an element format; where sub-groups are shifted, those that shift all of them."""
    return (1 << form.shift_bits) - 1 if form.shifts else tag


def _saturated(config: TensorCoreConfig) -> Steps:
    """The deepest tile, of the largest products, so that an exact accumulator comes as far as it can.

    Results come whenever its depth has doubled, and from the whole of it; every other row of A is negative.
    """
    count = deepest(config)
    codes, scales = [], []
    for form, rows in ((config.a, config.rows), (config.b, config.columns)):
        # The element format with the largest value, its folds included.
        tag, code = _place_of_largest([element.values for element in form.elements])
        if config.adds_sums:
            # A product of two of the most negative integers is larger than one of the most positive ones.
            code = code if (lowest := _most_negative(form)) is None else lowest
        codes.append(np.full((count, rows, config.depth), code, code_type(form)))
        byte = _above(form, tag) << form.scale.width | form.scale.highest
        scales.append(np.full((count, rows, config.groups), byte, scale_type(form)))
    if config.rows > 1 or config.columns > 1:
        side, form = (0, config.a) if config.rows > 1 else (1, config.b)
        codes[side][:, 1::2] = _opposite_of(form)[codes[side][:, 1::2]]
        if config.adds_sums and config.rows > 1:
            codes[1][:, 1::2] = _opposite_of(config.b)[codes[1][:, 1::2]]
    c = np.zeros((count, config.rows, config.columns), np.uint32)
    depth = np.arange(1, count + 1)
    return Steps(
        config, codes[0], scales[0], codes[1], scales[1], c, depth == 1, (depth & depth - 1 == 0) | (depth == count)
    )


def _opposite_of(form: BlockFormat) -> NDArray[np.uint8]:
    """For each code that of the negative value; for one that has none that of the largest positive value."""
    table = negated(form)
    if (lowest := _most_negative(form)) is None:
        return table
    table = table.copy()
    table[lowest] = _place_of_largest([form.elements[0].values])[1]
    return table


def _cancelled(config: TensorCoreConfig) -> Steps:
    """A deep tile of large products, all of which C cancels, and a step that leaves the smallest product."""
    count, _ = cancelled_sum(config)
    steps = _saturated(config)[: count + 1]
    total = float(count * config.depth)
    for form, codes in ((config.a, steps.a_codes), (config.b, steps.b_codes)):
        (element,) = form.elements
        largest = element.integers.index(max(element.integers))
        codes[...] = largest
        total *= element.values[largest]
        # In the last step all is zero but for one product.
        codes[count:] = element.integers.index(0)
        codes[count:, :, 0] = element.integers.index(min(h for h in element.integers if h > 0))
    steps.c[0] = np.float32(-total).view(np.uint32)
    steps.last[-1] = True
    return steps


def _pattern(count: int, rng: np.random.Generator) -> Pattern:
    """Stretches of cycles: half of them without a pause, some with few and some with many of them."""
    stretches = max(1, count // 32)
    shares = rng.choice([1.0, 0.8, 0.3, 0.1], stretches, p=[0.5, 0.2, 0.18, 0.12])
    lengths = rng.integers(8, 64, stretches)
    bits = rng.random(int(lengths.sum())) < np.repeat(shares, lengths)
    bits[0] = True  # something has to come through
    return Pattern(bits)


_Index = NDArray[np.intp]


def _tagged(form: BlockFormat, scales: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Put a selector or shifts above scales at random; where neither is read, now and then any bits."""
    if not form.scale_bytes:
        return np.zeros_like(scales)
    above = form.stored_scale_width - form.scale.width
    share = 0.5 if form.tagged or form.shifts else 0.3
    kind = scale_type(form)
    chosen = (rng.random(scales.shape) < share).astype(kind)
    if above > 1:
        chosen *= rng.integers(1, 1 << above, scales.shape, kind)
    return scales & kind.type((1 << form.scale.width) - 1) | chosen << kind.type(form.scale.width)


def _set_scales(
    steps: Steps,
    at: _Index,
    rng: np.random.Generator,
    choose: Callable[[ScaleFormat, tuple[int, ...]], NDArray[np.uint8]],
) -> None:
    for form, scales in ((steps.config.a, steps.a_scales), (steps.config.b, steps.b_scales)):
        if form.scale_bytes:
            scales[at] = _tagged(form, choose(form.scale, scales[at].shape), rng)


def _usable(scale: ScaleFormat, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Scales that are neither zero nor NaN."""
    return rng.integers(int(scale.subnormals), scale.highest + 1, shape, np.uint8)


def _low(scale: ScaleFormat) -> list[int]:
    """The lowest scales: subnormal ones. Of powers of two, some around the middle of all. Of no scales, their zeros."""
    if not scale.width:
        return [0, 0]
    if scale.subnormals:
        return [1, 1, 1, *range(1, 1 << scale.mantissa_bits)]
    return list(range(_one(scale) - 12, _one(scale) - 6))


def _high(scale: ScaleFormat) -> tuple[int, int]:
    """First and last of the highest scales, two binades. Of powers of two, some above those of `_low`."""
    if not scale.width:
        return 0, 0
    if scale.subnormals:
        return scale.highest + 1 - (2 << scale.mantissa_bits), scale.highest
    return _one(scale) + 2, _one(scale) + 7


def _one(scale: ScaleFormat) -> int:
    """The scale of 1."""
    return scale.bias << scale.mantissa_bits


def _nan(scale: ScaleFormat) -> int:
    """The scale that is NaN; the highest one where there is none."""
    return scale.highest if scale.nan is None else scale.nan


def _sums(steps: Steps, at: _Index) -> NDArray[np.float64]:
    """Sum of all terms of steps; exact unless it is longer than float64."""
    return sums(steps.config, (steps.a_codes[at], steps.a_scales[at]), (steps.b_codes[at], steps.b_scales[at]))


def _special_scales(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """NaN and zero scales against each other, and against C of every kind."""

    def choose(scale: ScaleFormat, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        return rng.choice(np.array([0, _nan(scale), _one(scale), _one(scale) + 21 & scale.highest], np.uint8), shape)

    _set_scales(steps, at, rng, choose)
    steps.c[at] = rng.choice(SPECIAL, steps.c[at].shape)


def _special_chains(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """C of every kind goes through a step of zero scales, and from there into the next one of its slot."""
    config, turns = steps.config, steps.config.interleave
    at = at[at + turns < len(steps)]
    steps.a_scales[at] = 0
    if not config.a.scale.subnormals:
        steps.a_codes[at] = 0  # no scale is zero, so the codes are
    # Where no scale is zero, a block of zeros may still cut a small C.
    cuts = not config.a.scale.subnormals and config.a.lowest_exponent - config.fraction_bits > LOWEST_BIT
    steps.b_scales[at] = 0 if cuts else _one(config.b.scale)
    steps.first[at] = True
    steps.c[at] = rng.choice(SPECIAL, steps.c[at].shape)
    behind = at + turns
    steps.first[behind] = False
    one = _one(config.a.scale)
    chosen = rng.choice(np.array([0, _nan(config.a.scale), one], np.uint8), steps.a_scales[behind].shape)
    chosen[rng.random(len(at)) < 0.5] = one + (1 << config.a.scale.mantissa_bits)
    steps.a_scales[behind] = _tagged(config.a, chosen, rng)
    steps.b_scales[behind] = _tagged(config.b, np.full_like(steps.b_scales[behind], _one(config.b.scale)), rng)


def _oppose(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Make C cancel most of the sum, see `nearly_opposite`."""
    steps.c[at] = nearly_opposite(_sums(steps, at), rng)
    steps.first[at] = True


def _cancelling(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Little is left of the sum and C."""
    _set_scales(steps, at, rng, lambda scale, shape: _usable(scale, shape, rng))
    _oppose(steps, at, rng)


def _cancelling_blocks(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Blocks of opposite sums, equal scales, and a C that is often zero."""
    config, groups, size = steps.config, steps.config.groups, steps.config.a.size
    for codes in (steps.a_codes, steps.b_codes):
        codes[at] = np.tile(codes[at][..., :size], groups)
    if groups % 2:
        steps.a_codes[at, :, -size:] = 0
    negative = np.repeat(np.arange(groups) % 2 == 1, size)
    steps.a_codes[at] = np.where(negative, negated(config.a)[steps.a_codes[at]], steps.a_codes[at])
    _set_scales(steps, at, rng, lambda scale, shape: np.broadcast_to(_usable(scale, (*shape[:2], 1), rng), shape))
    for scales in (steps.a_scales, steps.b_scales):
        scales[at] = scales[at][:, :, :1]
    steps.c[at[rng.random(len(at)) < 0.5]] = 0
    steps.first[at] = True


def _rest(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """The first block is as large as the last one is small, and C cancels it: the last one is what is left."""
    config = steps.config
    for form, codes, scales in ((config.a, steps.a_codes, steps.a_scales), (config.b, steps.b_codes, steps.b_scales)):
        first, last = codes[at, :, : form.size], np.zeros_like(codes[at, :, : form.size])
        last[..., 0] = rng.choice(_smallest(form), last.shape[:2])
        codes[at] = 0
        codes[at, :, -form.size :] = last
        scales[at] = _tagged(form, rng.choice(np.array(_low(form.scale)[1:], np.uint8), scales[at].shape), rng)
        if config.groups > 1:
            codes[at, :, : form.size] = first
            lowest, highest = _high(form.scale)
            large = rng.integers(lowest, highest + 1, scales[at, :, 0].shape)
            scales[at, :, 0] = _tagged(form, large.astype(np.uint8), rng)
    _oppose(steps, at, rng)
    if config.groups > 1:
        # C is the negative of the sum without its last block.
        kept = steps.a_codes[at, :, -config.a.size :]
        steps.a_codes[at, :, -config.a.size :] = 0
        steps.c[at] = opposite(_sums(steps, at))
        steps.a_codes[at, :, -config.a.size :] = kept


def _empty_blocks(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Blocks whose products are all zero, or cancel, under large scales; they may cut a C beside small blocks."""
    config = steps.config
    form, half = config.a, config.a.size // 2
    shape = (len(at), config.rows, config.groups)
    codes = steps.a_codes[at].reshape(*shape, form.size)
    zero = zeros(form, codes)
    cancelling = np.concatenate([codes[..., :half], negated(form)[codes[..., :half]]], axis=-1)
    kind = rng.choice(3, (*shape, 1), p=[0.5, 0.25, 0.25])
    steps.a_codes[at] = np.choose(kind, [codes, zero, cancelling]).reshape(*shape[:2], config.depth)
    # Equal halves of B, for the products to cancel.
    of_b = steps.b_codes[at].reshape(len(at), config.columns, config.groups, config.b.size)
    steps.b_codes[at] = np.concatenate([of_b[..., :half]] * 2, axis=-1).reshape(len(at), config.columns, config.depth)

    def choose(scale: ScaleFormat, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        return rng.integers(1, 1 + scale.highest // 4, shape, np.uint8)

    _set_scales(steps, at, rng, choose)
    highest = form.scale.highest
    large = rng.integers(min(1 + highest // 2, highest), 1 + highest, shape, np.uint8)
    steps.a_scales[at] = np.where(kind[..., 0] > 0, _tagged(form, large, rng), steps.a_scales[at])
    exponents = np.frexp(_sums(steps, at))[1] + rng.integers(-30, 20, steps.c[at].shape)
    signs_and_fractions = rng.integers(0, 1 << 32, steps.c[at].shape, np.uint32) & np.uint32(0x807FFFFF)
    steps.c[at] = signs_and_fractions | np.clip(exponents + 126, 1, 254).astype(np.uint32) << np.uint32(23)
    steps.first[at] = True


def _far_apart(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Scales of the smallest and of the largest exponent, block by block; C anywhere near."""

    def choose(scale: ScaleFormat, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        binade = 1 << scale.mantissa_bits
        low = np.arange(1, 2 * binade, dtype=np.uint8)
        high = np.arange(scale.highest_binade, scale.highest + 1, dtype=np.uint8)
        return np.where(rng.random(shape) < 0.5, rng.choice(low, shape), rng.choice(high, shape))

    _set_scales(steps, at, rng, choose)


def _small(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Subnormal scales, often one small product in a step of zeros; C is by half near the negative sum.

    The terms are then far below their exponent, and so is C, which is shifted to the right and still decides.
    """

    def choose(scale: ScaleFormat, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        return rng.choice(np.array(_low(scale), np.uint8), shape)

    _set_scales(steps, at, rng, choose)
    single = at[rng.random(len(at)) < 0.5]
    depth = steps.config.depth
    for form, codes in ((steps.config.a, steps.a_codes), (steps.config.b, steps.b_codes)):
        lane = np.arange(depth) == rng.integers(0, depth, (len(single), 1, 1))
        few = np.append(_smallest(form), code_type(form).type(2))
        codes[single] = np.where(lane, rng.choice(few, codes[single].shape), zeros(form, codes[single]))
    # The same lane, so that the products are not zero.
    lane = rng.integers(0, depth, len(single))
    steps.a_codes[single, :, lane] = rng.choice(_smallest(steps.config.a), (len(single), steps.config.rows))
    steps.b_codes[single, :, lane] = 1
    steps.first[at] = True
    _oppose(steps, at[rng.random(len(at)) < 0.5], rng)


def _largest(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Block sums as large as they get, of either sign, with the largest significands or any."""
    config = steps.config
    tags = []
    for form, codes in ((config.a, steps.a_codes), (config.b, steps.b_codes)):
        # The integer counts here, without its fold.
        tag, code = _largest_integer(form)
        codes[at] = code
        tags.append(tag)
    negative = rng.random((len(at), config.rows, 1)) < 0.5
    steps.a_codes[at] = np.where(negative, negated(config.a)[steps.a_codes[at]], steps.a_codes[at])

    def choose(scale: ScaleFormat, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        binade = 1 << scale.mantissa_bits
        top = scale.highest_binade
        # The largest significand, twice, and the largest scale.
        tops = rng.choice(np.array([top - 1, scale.highest, top - binade - 1], np.uint8), (shape[0], 1, 1))
        # Bits of the largest product of significands hide others, which a large sum meets with other scales.
        return np.where(rng.random((shape[0], 1, 1)) < 0.5, tops, _usable(scale, shape, rng))

    _set_scales(steps, at, rng, choose)
    plain = at[rng.random(len(at)) < 0.7]
    for form, tag, scales in ((config.a, tags[0], steps.a_scales), (config.b, tags[1], steps.b_scales)):
        scales[plain] = scales[plain] & (1 << form.scale.width) - 1 | _above(form, tag) << form.scale.width
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
    _set_scales(steps, at, rng, lambda scale, shape: _usable(scale, shape, rng))
    exponents = np.frexp(_sums(steps, at))[1] + rng.integers(-60, 60, steps.c[at].shape)
    bits = rng.integers(0, 1 << 32, steps.c[at].shape, np.uint32)
    kept = rng.choice(np.array([0x80000000, 0x807FFFFF, 0x80400000], np.uint32), bits.shape)
    steps.c[at] = bits & kept | np.clip(exponents + 126, 1, 254).astype(np.uint32) << np.uint32(23)
    steps.first[at] = True


@cache
def _most_negative(form: BlockFormat) -> int | None:
    """The code of the largest magnitude, if it is negative and has no positive counterpart."""
    _, code = _place_of_largest([[abs(h) for h in element.integers] for element in form.elements])
    return None if any(element.integers[code] >= 0 for element in form.elements) else code


def _pairs(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Any codes under scales near 1, all of which the result shows."""
    for form, codes, scales in (
        (steps.config.a, steps.a_codes, steps.a_scales),
        (steps.config.b, steps.b_codes, steps.b_scales),
    ):
        codes[at] = numbers(form, any_codes(form, codes[at].shape, rng), rng, share=0.0)
        if steps.config.bounds.window is not None:
            codes[at] = _of_some_binades(form, codes[at], steps.config.bounds, rng)
        near = _one(form.scale) + (rng.integers(-3, 4, scales[at].shape) << form.scale.mantissa_bits)
        scales[at] = _tagged(form, near.astype(scale_type(form)), rng)
    steps.c[at] = 0
    steps.first[at] = True


def _of_some_binades(
    form: BlockFormat, codes: NDArray[np.uint8], bounds: Bounds, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Codes of numbers whose exponents lie together in a step, now and then: small ones are cut beside large ones."""
    (element,), half, count = form.elements, 1 << form.code_width - 1, len(codes)
    bits, binades = element.mantissa_bits, element.longest_shift + 2
    finite = half - len({code % half for code in (*element.nans, *element.infinities)})
    assert bounds.window is not None
    if binades <= bounds.window:
        most = np.maximum(rng.integers(1, binades + 1, count), (rng.random(count) < 0.6) * binades)
        small = codes % np.minimum(most << bits, finite)[:, None, None]
        return codes & half | small.astype(codes.dtype)
    # Results show every product then, and each exponent is as likely as another.
    first = rng.integers(1 - _FEW, binades, count)
    low = np.maximum(first, 0) << bits
    among = np.minimum(first + _FEW << bits, finite) - low
    some = low[:, None, None] + (codes % half) % among[:, None, None]
    return np.where(rng.random((count, 1, 1)) < _WHOLE, codes, codes & half | some.astype(codes.dtype))


def _lopsided(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Of elements with one negative number more than positive ones: the largest sums, and a large C of their sign."""
    negative = rng.random((len(at), steps.config.rows, 1)) < 0.5
    for form, codes, scales in (
        (steps.config.a, steps.a_codes, steps.a_scales),
        (steps.config.b, steps.b_codes, steps.b_scales),
    ):
        positive = _largest_integer(form)[1]
        lowest = _most_negative(form)
        codes[at] = positive if lowest is None else lowest
        if codes is steps.a_codes:
            codes[at] = np.where(negative, codes[at], positive)
        scales[at] = _tagged(form, np.full(scales[at].shape, _one(form.scale), scale_type(form)), rng)
    sums = _sums(steps, at)
    steps.c[at] = np.copysign(np.float32(2 - 2**-23), sums).astype(np.float32).view(np.uint32)
    steps.first[at] = True


def _at_the_edge(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Large products and some that just keep all their bits in the window; C is the nearest to the negative sum."""
    config, bounds = steps.config, steps.config.bounds
    few = bounds.lanes // 4
    limit = bounds.product_span - bounds.window_shift  # of the exponents of a product, above the lowest
    # About a half each, as far as both have so many.
    most_a, most_b = (limit if form.additive else form.elements[0].longest_shift for form in config.formats)
    of_b = max(limit - most_a, min(limit - limit // 2, most_b))
    for form, codes, scales, share in (
        (config.a, steps.a_codes, steps.a_scales, limit - of_b),
        (config.b, steps.b_codes, steps.b_scales, of_b),
    ):
        codes[at] = _largest_integer(form)[1]
        codes[at, :, :few] = rng.choice(_of_exponent(form, share), codes[at, :, :few].shape)
        scales[at] = _tagged(form, np.full(scales[at].shape, _one(form.scale), scale_type(form)), rng)
    steps.c[at] = opposite(_sums(steps, at))
    steps.first[at] = True


def _infinities(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Numbers and zeros with a few infinities, or with one lane that is often infinite; and what follows behind it.

    C is of every kind by half.
    """
    behind = at[at + steps.config.interleave < len(steps)] + steps.config.interleave
    both = np.concatenate([at, behind])
    lane = np.arange(steps.config.depth) == rng.integers(0, steps.config.depth, (len(both), 1, 1))
    alone = rng.random((len(both), 1, 1)) < 0.5
    for form, codes, scales in (
        (steps.config.a, steps.a_codes, steps.a_scales),
        (steps.config.b, steps.b_codes, steps.b_scales),
    ):
        drawn = numbers(form, any_codes(form, codes[both].shape, rng), rng, share=0.0)
        drawn = np.where(rng.random(drawn.shape) < 0.2, zeros(form, drawn), drawn)
        if form.may_be_infinite:
            share = np.where(alone, 0.5 * lane, 0.5 / steps.config.depth)
            infinite = np.array(form.elements[0].infinities, codes.dtype)
            drawn = np.where(rng.random(drawn.shape) < share, rng.choice(infinite, drawn.shape), drawn)
        codes[both] = drawn
        near = _one(form.scale) + (rng.integers(-3, 4, scales[both].shape) << form.scale.mantissa_bits)
        scales[both] = _tagged(form, near.astype(scale_type(form)), rng)
    special = at[rng.random(len(at)) < 0.5]
    steps.c[special] = rng.choice(SPECIAL, steps.c[special].shape)
    steps.first[at] = True
    steps.first[behind] = False


def _nans(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Rows with one NaN, whose fraction is as likely short as long; long codes have too many of them for chance."""
    for form, codes in ((steps.config.a, steps.a_codes), (steps.config.b, steps.b_codes)):
        element = form.elements[0]
        if not isinstance(element, FloatFormat):
            continue
        rows = codes[at]
        shape = (*rows.shape[:2], 1)
        top = 1 << rng.integers(0, element.values.fraction_bits, shape)
        drawn = rng.choice(np.array(element.infinities), shape) | top | rng.integers(0, 1 << 30, shape) & top - 1
        lane = np.arange(rows.shape[-1]) == rng.integers(0, rows.shape[-1], shape)
        codes[at] = np.where(lane & (rng.random(shape) < 0.3), drawn.astype(codes.dtype), numbers(form, rows, rng, 0.0))


def _ends(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Sums about the smallest or the largest FP32 numbers, and C near them; where scales are powers of two."""
    middle = sum(form.scale.bias for form in steps.config.formats)
    low = rng.random(len(at)) < 0.5
    total = np.where(low, rng.integers(-152, -120, len(at)), rng.integers(112, 130, len(at))) + middle
    form, other = steps.config.formats
    total = np.clip(total, 0, form.scale.highest + other.scale.highest)
    first = rng.integers(np.maximum(0, total - other.scale.highest), np.minimum(form.scale.highest, total) + 1)
    steps.a_scales[at] = first[:, None, None]
    steps.b_scales[at] = (total - first)[:, None, None]
    exponents = np.where(low, 0, 228)[:, None, None] + rng.integers(0, 27, steps.c[at].shape)
    signs_and_fractions = rng.integers(0, 1 << 32, steps.c[at].shape, np.uint32) & np.uint32(0x807FFFFF)
    steps.c[at] = signs_and_fractions | exponents.astype(np.uint32) << np.uint32(23)
    steps.first[at] = True


def _longest(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Odd terms that are longer than C, which is the nearest to their negative: the last place alone is left."""
    config = steps.config
    negative = rng.random((len(at), config.rows, 1)) < 0.5
    for form, codes, scales in ((config.a, steps.a_codes, steps.a_scales), (config.b, steps.b_codes, steps.b_scales)):
        tag, code = _place_of_largest(
            [
                [h * factor for h in element.integers]
                for element, factor in zip(form.elements, form.weights, strict=True)
            ]
        )
        odd = [other for other, h in enumerate(form.elements[tag].integers) if h > 0 and h & 1]
        codes[at] = code
        codes[at, :, 0] = rng.choice(np.array(odd, codes.dtype), codes[at, :, 0].shape)
        if not form.scale_bytes:
            continue
        # The largest significand but one in two, so odd, in any binade about 1.
        binade = 1 << form.scale.mantissa_bits
        chosen = _one(form.scale) + binade * rng.integers(-4, 4, scales[at].shape) + binade - 1
        scales[at] = (chosen - 2 * rng.integers(0, 2, chosen.shape)).astype(np.uint8) | tag << form.scale.width
    steps.a_codes[at] = np.where(negative, negated(config.a)[steps.a_codes[at]], steps.a_codes[at])
    steps.c[at] = opposite(_sums(steps, at))
    steps.first[at] = True


_PURPOSES = (
    *(_special_scales, _special_chains, _cancelling, _cancelling_blocks, _empty_blocks, _rest, _far_apart),
    *(_small, _largest, _alone, _long),
)
