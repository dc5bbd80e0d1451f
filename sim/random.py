"""Random steps that seek out the corners of the arithmetic, for every pair of formats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.formats import BlockFormat, ElementFormat, ScaleFormat
from hwgen.formats.unscaled import SCALE, SELECTOR, TYPE_BITS, TYPES
from sim import golden
from sim.counterpart import counterpart
from sim.steps import ELEMENT_TYPES, Steps, codes_of

__all__ = [
    "HIGHEST_SCALE",
    "any_codes",
    "code_type",
    "count_at_half_rate",
    "decoded",
    "extreme_scales",
    "negated",
    "numbers",
    "random_chains",
    "random_steps",
    "scale_type",
    "scales_of_product",
    "set_what_runs_need",
    "sums",
    "unscaled_values",
    "zeros",
]


HIGHEST_SCALE = 2 * SCALE.bias
"""Byte of the highest scale at half the rate; its exponent is that of 1 and as much again."""

_LARGE = 0.05
"""Share of the steps in which all codes of A and of B are large: else a block sum near the largest one is rare."""


def decoded(form: BlockFormat, codes: NDArray[np.uint8], scales: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Values of stored numbers, element times block scale, by the golden model; 0 where it is NaN or infinite.

    Parameters
    ----------
    form
        Their format.
    codes, scales
        uint8, (..., K) and (..., K / size).
    """
    return np.nan_to_num(counterpart(form).values(codes, scales), copy=False, posinf=0, neginf=0)


_Stored = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""Codes and scales of an operand."""


def sums(config: TensorCoreConfig, a: _Stored, b: _Stored) -> NDArray[np.float64]:
    """Sums of all products of steps, without what is cut; exact unless they are longer than float64.

    Parameters
    ----------
    config
        The core.
    a, b
        Codes and scales, (steps, rows, K) and (steps, rows, K / size).

    Returns
    -------
    NDArray
        (steps, rows of A, rows of B).
    """
    if not config.bounds.additive:
        return decoded(config.a, *a) @ decoded(config.b, *b).swapaxes(1, 2)
    form = counterpart(config.a)  # that of B, too
    x, y = (np.nan_to_num(form.scale.table[scales]) for _, scales in (a, b))
    (element,) = form.elements
    products = golden.additive_products(element, a[0][:, :, None], b[0][:, None])
    by_block = products.reshape(*products.shape[:-1], products.shape[-1] // config.a.size, config.a.size).sum(axis=-1)
    return np.asarray((by_block * x[:, :, None] * y[:, None]).sum(axis=-1))


def zeros(form: BlockFormat, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes of zero in the place of others: those of -0 for negative ones, where it is a zero."""
    negative = 1 << form.code_width - 1
    return codes & codes.dtype.type(0 if any(element.values[negative] for element in form.elements) else negative)


def _random_codes(
    config: TensorCoreConfig,
    form: BlockFormat,
    shape: tuple[int, ...],
    large: NDArray[np.bool_],
    rng: np.random.Generator,
) -> NDArray[np.uint8]:
    """Block by block: any codes, mostly zeros, equal codes, or two halves that cancel.

    In the steps of ``large`` they are large, and in each block of one sign.
    """
    codes = any_codes(form, (*shape, config.groups, form.size), rng)
    sparse = np.where(rng.random(codes.shape) < 0.15, codes, zeros(form, codes))
    equal = np.broadcast_to(codes[..., :1], codes.shape)
    half = codes[..., : form.size // 2]
    cancelling = np.concatenate([half, negated(form)[half]], axis=-1)
    kind = rng.choice(4, (*shape, config.groups, 1), p=[0.55, 0.15, 0.15, 0.15])
    chosen = np.choose(kind, [codes, sparse, equal, cancelling])
    of_large = rng.choice(_large(form), (int(large.sum()), *codes.shape[1:]))
    negative = rng.random((*of_large.shape[:-1], 1)) < 0.5
    chosen[large] = np.where(negative, negated(form)[of_large], of_large)
    chosen = chosen.reshape(*shape, config.depth)
    return numbers(form, chosen, rng, share=0.02)


@cache
def _large(form: BlockFormat) -> NDArray[np.uint8]:
    """Codes of the quarter of the positive numbers that are largest, at least two, in the first of the elements."""
    codes = np.arange(1 << form.code_width - 1, dtype=code_type(form))
    values = np.nan_to_num(form.elements[0].values[: len(codes)], posinf=0)
    largest = codes[np.argsort(values, kind="stable")[-max(len(codes) // 4, 2) :]]
    largest.flags.writeable = False
    return largest


def numbers(form: BlockFormat, codes: NDArray[np.uint8], rng: np.random.Generator, share: float) -> NDArray[np.uint8]:
    """Codes with those of the largest number of their sign in the place of NaN and infinity.

    But in a share of the rows all are left.
    """
    others = {code for element in form.elements for code in element.nans + element.infinities}
    if not others:
        return codes
    table = np.arange(1 << form.code_width).astype(code_type(form))
    for code in sorted(others):
        table[code] = table[code - 1]
    kept = rng.random((*codes.shape[:-1], 1)) < share
    return np.where(kept, codes, table[codes])


def _random_scales(
    config: TensorCoreConfig, form: BlockFormat, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Step by step: any byte, all near one another, extremes, or many zeros; bits above at random, NaN rarely."""
    size = (*shape, config.groups)
    if not form.scale_bytes:
        return np.zeros(size, np.uint8)
    scale, codes = form.scale, 1 << form.scale.width
    scales = rng.integers(0, codes, size, np.uint8)
    near = rng.integers(0, scale.highest + 1, (shape[0], 1, 1)) + rng.integers(-12, 13, size)
    near = np.clip(near, 0, scale.highest).astype(np.uint8)
    extreme = rng.choice(np.array(extreme_scales(scale), np.uint8), size)
    zeros = np.where(rng.random(size) < 0.6, 0, scales).astype(np.uint8)
    scales = np.choose(rng.choice(4, (shape[0], 1, 1), p=[0.35, 0.35, 0.15, 0.15]), [scales, near, extreme, zeros])
    scales[(scales > scale.highest) & (rng.random(size) < 0.7)] = scale.highest
    above = rng.integers(0, 1 << form.stored_scale_width - scale.width, size).astype(scale_type(form))
    if form.shifts:
        above[rng.random(size) < 0.3] = 0  # equal shifts, for products to cancel
    if form.by_step:
        above[:] = above[:, :1, :1]
    return scales | above << scale_type(form).type(scale.width)


def extreme_scales(scale: ScaleFormat) -> list[int]:
    """Codes of a scale at the ends of its binades: subnormal, normal, and the highest ones."""
    binade = 1 << scale.mantissa_bits
    top = scale.highest_binade
    return [1, binade - 1, binade, top - binade, top - 1, scale.highest]


def code_type(form: BlockFormat) -> np.dtype[Any]:
    """Type of an array of a format's codes."""
    return np.dtype(np.uint8 if form.code_width <= 8 else np.uint16)


def any_codes(form: BlockFormat, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Codes at random, all alike likely."""
    return rng.integers(0, 1 << form.code_width, shape, code_type(form).type)


def scale_type(form: BlockFormat) -> np.dtype[Any]:
    """Type of an array of a format's stored scales; where blocks have none, of the zeros in their place."""
    return np.dtype(f"u{form.scale_bytes or 1}")


@cache
def negated(form: BlockFormat) -> NDArray[np.uint8]:
    """For each code the one of the negative value, in all elements of the format, or else in the first of them.

    if4 has no such code for all: a sign in E2M1, and two's complement in its integers. A code that has none stays.
    """
    found, ways = [], [_opposites(elements) for elements in (form.elements, form.elements[:1])]
    for code in range(1 << form.code_width):
        others = next((codes for codes in (way[code] for way in ways) if codes), [code])
        found.append(others[0] if code else others[-1])  # of two zeros the other one
    table = np.array(found, code_type(form))
    table.flags.writeable = False  # every caller has the same one
    return table


def _opposites(elements: Sequence[ElementFormat]) -> list[list[int]]:
    """For each code the codes of the negative value in all of some elements; of NaN all that are NaN."""
    meant = list(zip(*(_meant(element) for element in elements), strict=True))
    known: dict[tuple[float | None, ...], list[int]] = {}
    for code, values in enumerate(meant):
        known.setdefault(values, []).append(code)
    return [known.get(tuple(None if value is None else -value for value in values), []) for values in meant]


def _meant(element: ElementFormat) -> list[float | None]:
    """What each code is: a number, infinity, or None for NaN."""
    found: list[float | None] = list(element.values)
    for code in element.nans:
        found[code] = None
    for code in element.infinities:
        found[code] = -math.inf if code >> element.width - 1 else math.inf
    return found


_SPECIAL_C = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000),
        *(0x7F800000, 0xFF800000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800001, 0xFF800001, 0xFFC12345),
        *(0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x28000000, 0x27FFFFFF, 0x4EFFFFFF, 0xCEFFFFFF),
    ],
    np.uint32,
)


def set_what_runs_need(config: TensorCoreConfig, first: NDArray[np.bool_], last: NDArray[np.bool_]) -> None:
    """Set the flags that every run has, in place: tiles begin in all slots, end, and are as deep as exact cores allow.

    Parameters
    ----------
    config
        The core.
    first, last
        bool, (S,): flags of the steps.
    """
    first[: config.interleave] = last[-1:] = True
    if config.largest_steps is not None:
        first[:: config.largest_steps] = True


def _random_addends(sums: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint32]:
    """C of every kind, often at a given distance from the exponents of the sums, or near their negative."""
    shape = sums.shape
    bits = rng.integers(0, 1 << 32, shape, np.uint32)
    special = rng.choice(_SPECIAL_C, shape)
    exponents = np.frexp(sums)[1] + rng.integers(-64, 56, shape)
    # Few significant bits now and then, for ties.
    short = rng.choice(np.array([0, 0x7FFFFF, 0x7FF000, 0x400000], np.uint32), shape)
    aligned = (bits & (0x80000000 | short)) | np.clip(exponents + 126, 1, 254).astype(np.uint32) << 23
    with np.errstate(over="ignore"):
        negative = (-sums).astype(np.float32).view(np.uint32)
    opposite = negative + rng.choice(np.array([0, 0, 1, 0xFFFFFFFF], np.uint32), shape)
    kind = rng.choice(4, shape, p=[0.15, 0.2, 0.45, 0.2])
    return np.choose(kind, [bits, special, aligned, opposite]).astype(np.uint32)


def _random_elements(
    types: NDArray[np.uint8], rows: int, config: TensorCoreConfig, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Bytes of rows at half the rate, step by step: any, near one another, mostly zeros, or two halves that cancel.

    NaN and infinity are left in few rows only.
    """
    shape = (len(types), rows, config.groups * config.slots)
    found = rng.integers(0, 256, shape, np.uint8)
    near = (rng.integers(0, 256, (*shape[:2], 1)) + rng.integers(-6, 7, shape)).astype(np.uint8)
    sparse = np.where(rng.random(shape) < 0.1, found, 0).astype(np.uint8)
    half = found[..., : shape[-1] // 2]
    top = np.zeros(1 << TYPE_BITS, np.uint8)
    for code, element in TYPES.items():
        top[code] = 1 << element.width - 1
    negative = half ^ top[types][:, None, None]
    cancelling = np.concatenate([half, negative], axis=-1)
    found = np.choose(rng.choice(4, (*shape[:2], 1), p=[0.4, 0.25, 0.15, 0.2]), [found, near, sparse, cancelling])
    kept = rng.random((*shape[:2], 1)) < 0.03
    special = np.zeros((1 << TYPE_BITS, 256), np.bool_)
    for code, element in TYPES.items():
        special[code, [*element.nans, *element.infinities]] = True
    found[special[types[:, None, None], found] & ~kept] ^= 0x08
    return found


def count_at_half_rate(count: int) -> int:
    """How many of so many random steps are at half the rate: with them both modes make as many products."""
    return 2 * count // 3


def _modes(count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which steps are at half the rate: by turns and in runs, `count_at_half_rate` of them all."""
    likely = np.repeat(rng.choice([0.6, 0.95, 0.15], count // 16 + 1, p=[0.4, 0.4, 0.2]), 16)[:count]
    half: NDArray[np.bool_] = rng.random(count) < likely
    excess = int(half.sum()) - count_at_half_rate(count)
    half[rng.choice(np.flatnonzero(half == (excess > 0)), abs(excess), replace=False)] ^= True
    return half


def _with_half_rate(steps: Steps, rng: np.random.Generator) -> Steps:
    """Steps of which some are at half the rate, with types that change with every step."""
    config, count = steps.config, len(steps)
    half = _modes(count, rng)
    codes = np.array([*TYPES] * 8 + sorted({*range(1 << TYPE_BITS)} - {*TYPES}), np.uint8)
    types, at = rng.choice(codes, (2, count)), np.flatnonzero(half)
    types[:, ~half] = rng.integers(0, 1 << TYPE_BITS, (2, count - len(at)), np.uint8)  # ignored, whatever they are
    for side, own, drawn in zip("ab", types, (steps.a_types, steps.b_types), strict=True):
        if config.form(side).by_step:
            # But for the bit that says what FP4 elements are; C was drawn for these.
            own[~half] = (own & ~np.uint8(1 << SELECTOR) | drawn)[~half]
    values = []
    for own, rows, found in zip(
        types[:, at], (config.rows, config.columns), (steps.a_codes, steps.b_codes), strict=True
    ):
        bytes_ = _random_elements(own, rows, config, rng)
        values.append(unscaled_values(own, bytes_))
        found[at] = codes_of(bytes_)
    if config.half_scaled:
        scales = _random_half_scales(len(at), (config.rows, config.columns), rng)
        for found, bytes_ in zip((steps.a_scales, steps.b_scales), scales, strict=True):
            found[at, :, 0] = bytes_
        values = [
            np.ldexp(x, bytes_[:, :, None].astype(np.int64) - SCALE.bias)
            for x, bytes_ in zip(values, scales, strict=True)
        ]
    steps.c[at] = _random_addends(values[0] @ values[1].swapaxes(1, 2), rng)
    return replace(steps, half=half, a_types=types[0], b_types=types[1])


def scales_of_product(
    exponent: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bytes of two scales at half the rate whose product has an exponent, or is as near to it as there are scales."""
    total = np.clip(exponent + 2 * SCALE.bias, 0, 2 * HIGHEST_SCALE)
    first = rng.integers(np.maximum(0, total - HIGHEST_SCALE), np.minimum(HIGHEST_SCALE, total) + 1)
    return first, total - first


def _random_half_scales(
    count: int, rows: tuple[int, int], rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Scales of the rows of A and of B at half the rate, step by step: their products near 1, near either end of FP32,
    or any; NaN rarely.
    """
    assert SCALE.nan is not None
    first, second = scales_of_product(rng.choice([0, 0, -140, 115], count) + rng.integers(-30, 31, count), rng)
    apart, any_ = rng.choice([0, 1, 12], count), rng.random(count) < 0.15
    found = []
    for about, number in zip((first, second), rows, strict=True):
        near = about[:, None] + rng.integers(-1, 2, (count, number)) * apart[:, None]
        drawn = np.where(any_[:, None], rng.integers(0, SCALE.nan, near.shape), np.clip(near, 0, HIGHEST_SCALE))
        found.append(np.where(rng.random(near.shape) < 0.005, SCALE.nan, drawn).astype(np.uint8))
    return found[0], found[1]


def unscaled_values(types: NDArray[np.uint8], elements: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Values of elements at half the rate, by the golden model; 0 where it is NaN or infinite, or the type reserved.

    Parameters
    ----------
    types
        uint8, (S,): codes of their types.
    elements
        uint8, (S, rows, K): one in a byte.
    """
    values = np.zeros(elements.shape)
    for name, code in ELEMENT_TYPES.items():
        element = golden.UNSCALED_ELEMENTS[name]
        own = types == code
        values[own] = np.nan_to_num(element.table[elements[own] & (1 << element.width) - 1], posinf=0, neginf=0)
    return values


def random_steps(config: TensorCoreConfig, count: int, rng: np.random.Generator) -> Steps:
    """Draw steps that seek out the corners of the arithmetic.

    Scales of all kinds, NaN, zero and subnormal ones included; sums that cancel; C of every kind,
    often at a given distance from the exponents of the products, or near their negative sum; chains without
    ``first``, interleaved where the core does so; results in the midst of chains. In steps without
    ``first``, which do not read it, C is drawn all the same. With a slot `count_at_half_rate` of the
    steps are at half the rate.

    Parameters
    ----------
    config
        The core.
    count
        Number of steps, at least 1. The last one has ``last`` set.
    rng
        Generator; an equal state gives equal steps.
    """
    large = rng.random(count) < _LARGE
    a_codes = _random_codes(config, config.a, (count, config.rows), large, rng)
    b_codes = _random_codes(config, config.b, (count, config.columns), large, rng)
    a_scales = _random_scales(config, config.a, (count, config.rows), rng)
    b_scales = _random_scales(config, config.b, (count, config.columns), rng)
    c = _random_addends(sums(config, (a_codes, a_scales), (b_codes, b_scales)), rng)

    # Single steps and chains, by turns.
    first = rng.random(count) < np.repeat(rng.choice([0.95, 0.3], count // 32 + 1), 32)[:count]
    last = rng.random(count) < 0.8
    set_what_runs_need(config, first, last)
    types = {
        f"{side}_types": scales[:, 0, 0] >> np.uint8(form.scale.width) << np.uint8(SELECTOR)
        for side, form, scales in (("a", config.a, a_scales), ("b", config.b, b_scales))
        if form.by_step
    }
    steps = Steps(config, a_codes, a_scales, b_codes, b_scales, c, first, last, **types)
    return _with_half_rate(steps, rng) if config.slotted else steps


def random_chains(
    config: TensorCoreConfig, count: int, rng: np.random.Generator, *, first: float = 0.3, last: float = 0.4
) -> Steps:
    """Draw `random_steps`, most of them in chains, with results in their midst.

    Parameters
    ----------
    config
        The core.
    count
        Number of steps, at least 1. The last one has ``last`` set.
    rng
        Generator; an equal state gives equal steps.
    first, last
        Share of the steps with either.
    """
    steps = random_steps(config, count, rng)
    starts, ends = rng.random(count) < first, rng.random(count) < last
    set_what_runs_need(config, starts, ends)
    return replace(steps, first=starts, last=ends)
