"""Stimulus of steps at half the rate: most of them made for a purpose, see the functions below."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwgen.formats import BlockFormat
from hwgen.formats.unscaled import CONTAINER, HIGHEST_PRODUCT, LOWEST_PRODUCT, SCALE, TYPE_BITS, TYPES
from sim.random import HIGHEST_SCALE, scale_type, scales_of_product, unscaled_values
from sim.steps import ELEMENT_TYPES, Steps, codes_of, elements
from sim.verify.addends import SPECIAL, nearly_opposite
from sim.verify.half_goals import BEYOND, LEAST_RAISED, NANS

__all__ = ["draw_half_rate"]

_Index = NDArray[np.intp]
_Bytes = NDArray[np.uint8]

_KNOWN = np.array([*TYPES], np.uint8)
_E4M3, _E5M2, _E2M3 = (ELEMENT_TYPES[name] for name in ("e4m3", "e5m2", "e2m3"))


def _by_type(values: dict[int, int]) -> _Bytes:
    """A table by the code of a type; reserved ones are as E4M3."""
    return np.array([values.get(code, values[_E4M3]) for code in range(1 << TYPE_BITS)], np.uint8)


_WIDTH = _by_type({code: element.width for code, element in TYPES.items()})
_MANTISSA = _by_type({code: element.mantissa_bits for code, element in TYPES.items()})
_FINITE = _by_type(
    {code: (1 << element.width - 1) - len({*element.nans, *element.infinities}) // 2 for code, element in TYPES.items()}
)
"""Codes of numbers without a sign, the lowest ones."""

_BINADES = 4
"""Binades of numbers that a result shows together: two of them multiplied are 7."""

_BIAS, _HIGHEST, _LOWEST = 15, HIGHEST_PRODUCT // 2, LOWEST_PRODUCT // 2
"""Of E5M2, whose exponents are those of all types."""


def draw_half_rate(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Make steps at half the rate for a purpose each; some are left as they were drawn.

    Parameters
    ----------
    steps
        All steps; those of FP4 right before others in their tile may be changed, too.
    at
        The steps at half the rate.
    rng
        Generator; an equal state gives equal steps.
    """
    scaled = steps.config.half_scaled
    drawn = [scales[at, :, 0] for scales in (steps.a_scales, steps.b_scales)]
    _ignored(steps, at, rng)
    makes, shares = [make for make, _ in _PURPOSES], [*_SHARES]
    if scaled:
        makes += [make for make, _ in _OF_SCALES]
        shares = [share * (1 - _SCALED) for share in shares] + [share for _, share in _OF_SCALES]
    purpose = rng.choice(1 + len(makes), len(at), p=[1 - sum(shares), *shares])
    if scaled:
        # C was drawn for the scales; what is made for a purpose has products of scales that are 1, unless it says more.
        for scales, own in zip((steps.a_scales, steps.b_scales), drawn, strict=True):
            scales[at, :, 0] = own
        made = at[purpose > 0]
        _set_scales(steps, made, np.zeros(len(made), np.int64), rng)
    for number, make in enumerate(makes, start=1):
        make(steps, at[purpose == number], rng)


def _ignored(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Bytes of scales: often zero or NaN, which mean nothing here."""
    for form, scales in ((steps.config.a, steps.a_scales), (steps.config.b, steps.b_scales)):
        scales[at] = _any_scales(form, scales[at].shape, rng)


def _any_scales(form: BlockFormat, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
    scale, kind = form.scale, scale_type(form)
    special = np.array([0, 0 if scale.nan is None else scale.nan], kind)
    own = rng.integers(0, 1 << scale.width, shape, kind)
    own = np.where(rng.random(shape) < 0.4, rng.choice(special, shape), own)
    above = rng.integers(0, 1 << form.stored_scale_width - scale.width, shape, kind)
    return own | above << kind.type(scale.width)


def _set_scales(steps: Steps, at: _Index, exponent: _Index, rng: np.random.Generator, apart: int = 0) -> None:
    """Scales of rows whose products have an exponent, (steps,); those of a step are equal, or ``apart`` at most."""
    for scales, own in zip((steps.a_scales, steps.b_scales), scales_of_product(exponent, rng), strict=True):
        shape = (len(at), scales.shape[1])
        scales[at, :, 0] = np.clip(own[:, None] + rng.integers(-apart, apart + 1, shape), 0, HIGHEST_SCALE)


def _sides(steps: Steps) -> tuple[tuple[_Bytes, _Bytes], tuple[_Bytes, _Bytes]]:
    """Codes and types of both operands."""
    return (steps.a_codes, steps.a_types), (steps.b_codes, steps.b_types)


def _shape(steps: Steps, codes: _Bytes, at: _Index) -> tuple[int, int, int]:
    """Of the elements of an operand, (steps, rows, K)."""
    return len(at), codes.shape[1], codes.shape[2] // 2


def _set_types(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Types that are not reserved, all pairs alike."""
    for types in (steps.a_types, steps.b_types):
        types[at] = rng.choice(_KNOWN, len(at))


def _numbers(types: _Bytes, shape: tuple[int, ...], rng: np.random.Generator) -> _Bytes:
    """Bytes of numbers of a few binades together, which ones from step to step; bits above shorter types are any."""
    by_step = (slice(None), *(None,) * (len(shape) - 1))
    width, mantissa, finite = (table[types].astype(np.int64)[by_step] for table in (_WIDTH, _MANTISSA, _FINITE))
    first = rng.integers(1 - _BINADES, (finite - 1 >> mantissa) + 1)
    low = np.maximum(first, 0) << mantissa
    high = np.minimum(first + _BINADES << mantissa, finite)
    drawn = rng.integers(0, 1 << 2 * CONTAINER, shape)
    magnitude = low + (drawn >> CONTAINER) % (high - low)
    above = drawn & ~((1 << width - 1) - 1)  # the sign, too
    return (magnitude | above).astype(np.uint8)


def _seen(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Any types and codes, all of which the result shows."""
    _set_types(steps, at, rng)
    for codes, types in _sides(steps):
        codes[at] = codes_of(_numbers(types[at], _shape(steps, codes, at), rng))
    steps.c[at] = 0
    steps.first[at] = True


def _of_one_exponent(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """All significands alike, of the lowest exponent: subnormal numbers and the binade above."""
    for codes, types in _sides(steps):
        types[at] = rng.choice(np.array([_E4M3, _E2M3], np.uint8), len(at))
        drawn = rng.integers(0, 256, _shape(steps, codes, at), np.uint8)
        sign = np.uint8(1) << (_WIDTH[types[at]] - np.uint8(1))[:, None, None]
        codes[at] = codes_of(drawn & (np.uint8(15) | sign))
    steps.c[at] = 0
    steps.first[at] = True


def _reserved(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Any types, reserved ones among them, beside a C that is a number mostly."""
    for codes, types in _sides(steps):
        types[at] = rng.integers(0, 1 << TYPE_BITS, len(at), np.uint8)
        codes[at] = codes_of(_numbers(types[at], _shape(steps, codes, at), rng))
    steps.first[at] = True


def _nans(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """NaN in few rows, and one in each."""
    _seen(steps, at, rng)
    for codes, types in _sides(steps):
        for code in {code for code, _ in NANS}:
            bytes_ = np.array([byte for other, byte in NANS if other == code], np.uint8)
            own = at[types[at] == code]
            found = elements(codes[own])
            place = rng.integers(0, found.shape[-1], (*found.shape[:-1], 1))
            hit = (np.arange(found.shape[-1]) == place) & (rng.random((*found.shape[:-1], 1)) < 0.4)
            codes[own] = codes_of(np.where(hit, rng.choice(bytes_, found.shape), found))
    steps.c[at] = rng.choice(SPECIAL, steps.c[at].shape)


def _infinities(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Numbers and zeros with a few infinities, or with one slot that is often infinite; C of every kind by half.

    And what follows behind them.
    """
    _seen(steps, at, rng)
    types = rng.choice(_KNOWN, len(at))
    either = rng.choice(3, len(at), p=[0.3, 0.3, 0.4])
    steps.a_types[at] = np.where(either != 1, _E5M2, types)
    steps.b_types[at] = np.where(either != 0, _E5M2, types)
    infinity = np.array(TYPES[_E5M2].infinities, np.uint8)
    count = steps.a_codes.shape[2] // 2
    slot = np.arange(count) == rng.integers(0, count, (len(at), 1, 1))
    alone = rng.random((len(at), 1, 1)) < 0.5
    for codes, own in _sides(steps):
        found = _numbers(own[at], _shape(steps, codes, at), rng)
        zero = found & (np.uint8(1) << (_WIDTH[own[at]] - np.uint8(1))[:, None, None])
        found = np.where(rng.random(found.shape) < 0.2, zero, found)
        share = np.where(alone, 0.5 * slot, 0.5 / count) * (own[at] == _E5M2)[:, None, None]
        codes[at] = codes_of(np.where(rng.random(found.shape) < share, rng.choice(infinity, found.shape), found))
    special = at[rng.random(len(at)) < 0.5]
    steps.c[special] = rng.choice(SPECIAL, steps.c[special].shape)
    behind = at + steps.config.interleave
    steps.first[behind[behind < len(steps)]] = False


def _zeros(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Every product is zero by one of its factors; C is of every kind."""
    _seen(steps, at, rng)
    gone = rng.random((len(at), 1, steps.a_codes.shape[2] // 2)) < 0.5
    for (codes, types), zero in zip(_sides(steps), (gone, ~gone), strict=True):
        found = elements(codes[at])
        sign = np.uint8(1) << (_WIDTH[types[at]] - np.uint8(1))[:, None, None]
        codes[at] = codes_of(np.where(zero, found & sign, found))
    steps.c[at] = rng.choice(SPECIAL, steps.c[at].shape)


def _passed(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """C of every kind passes through a step without products, of either mode, into one with something of any kind."""
    before = at - steps.config.interleave
    at, before = at[before >= 0], before[before >= 0]
    makes = [_seen, _zeros, _nans, _infinities, _reserved, *([_nan_scales] if steps.config.half_scaled else [])]
    made = rng.choice(len(makes), len(at))
    for kind, make in enumerate(makes):
        make(steps, at[made == kind], rng)
    half = before[steps.half[before]]
    _set_types(steps, half, rng)
    steps.a_codes[before] = steps.a_scales[before] = 0
    fp4 = before[~steps.half[before]]
    steps.b_scales[fp4] = 0
    steps.b_codes[half] = codes_of(_numbers(steps.b_types[half], _shape(steps, steps.b_codes, half), rng))
    steps.c[before] = rng.choice(SPECIAL, steps.c[before].shape)
    steps.first[before] = True
    steps.first[at] = False


def _cancelling(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Little is left of the sum and C."""
    _seen(steps, at, rng)
    a, b = (unscaled_values(types[at], elements(codes[at])) for codes, types in _sides(steps))
    steps.c[at] = nearly_opposite(a @ b.swapaxes(1, 2), rng)


def _set_exponents(steps: Steps, at: _Index, exponents: tuple[_Index, _Index], rng: np.random.Generator) -> None:
    """E5M2, of these exponents, (steps, rows or 1, K), and any significands and signs; zero where they are below."""
    for (codes, types), exponent in zip(_sides(steps), exponents, strict=True):
        types[at] = _E5M2
        shape = _shape(steps, codes, at)
        drawn = rng.integers(0, 256, shape, np.uint8) & np.uint8(0x83)
        found = drawn | (np.maximum(exponent + _BIAS, 0) << 2).astype(np.uint8)
        codes[at] = codes_of(np.where(exponent < _LOWEST, drawn & np.uint8(0x80), found))


_NONE = _LOWEST - 1
"""In place of an exponent: the element is zero."""


def _split(total: _Index, rng: np.random.Generator) -> tuple[_Index, _Index]:
    """Exponents of two numbers whose product has the exponent ``total``."""
    first = rng.integers(np.maximum(_LOWEST, total - _HIGHEST), np.minimum(_HIGHEST, total - _LOWEST) + 1)
    return first, total - first


def _addends(steps: Steps, at: _Index, exponent: _Index, rng: np.random.Generator) -> None:
    """C of a given exponent, (steps, 1, 1) or more; of few bits now and then."""
    drawn = rng.integers(0, 1 << 32, steps.c[at].shape, np.uint32)
    kept = rng.choice(np.array([0x80000000, 0x807FFFFF, 0x80400000], np.uint32), drawn.shape)
    steps.c[at] = drawn & kept | np.clip(exponent + 127, 0, 254).astype(np.uint32) << np.uint32(23)
    steps.first[at] = True


def _apart(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Few products, of any exponents; C anywhere about the largest."""
    count = steps.a_codes.shape[2] // 2
    shape = (len(at), 1, count)
    exponents = rng.integers(_LOWEST, _HIGHEST + 1, (2, *shape))
    exponents[:, rng.random(shape) < 0.6] = _NONE
    _set_exponents(steps, at, (exponents[0], exponents[1]), rng)
    largest = np.where(exponents[0] < _LOWEST, LOWEST_PRODUCT, exponents.sum(axis=0)).max(axis=-1, keepdims=True)
    reach = steps.config.half_fraction_bits + BEYOND + 4
    _addends(steps, at, largest + rng.integers(-reach, reach + 1, steps.c[at].shape), rng)


def _alone(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """One product, of any exponent; C is below, or zero."""
    count = steps.a_codes.shape[2] // 2
    a, b = (rng.integers(_LOWEST, _HIGHEST + 1, (len(at), rows, 1)) for rows in (steps.config.rows, 1))
    for each in (a, b):
        each[:] = np.where(rng.random(each.shape) < 0.4, np.where(each < 0, _LOWEST, _HIGHEST), each)
    slot = np.arange(count) == rng.integers(0, count, (len(at), 1, 1))
    _set_exponents(steps, at, (np.where(slot, a, _NONE), np.where(slot, b, _NONE)), rng)
    _addends(steps, at, a + b - rng.integers(0, 30, steps.c[at].shape), rng)
    steps.c[at[rng.random(len(at)) < 0.5]] = 0


def _rest(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Two products cancel each other, and a third one, any distance below, is what is left; C is zero."""
    fraction, count = steps.config.half_fraction_bits, steps.a_codes.shape[2] // 2
    below = rng.integers(0, fraction + 3, (len(at), 1, 1))
    total = rng.integers(LOWEST_PRODUCT + below, HIGHEST_PRODUCT + 1)
    order = rng.permuted(np.broadcast_to(np.arange(count), (len(at), 1, count)), axis=-1)
    large, small = _split(total, rng), _split(total - below, rng)
    parts = [np.select([order < 2, order == 2], [high, low], _NONE) for high, low in zip(large, small, strict=True)]
    _set_exponents(steps, at, (parts[0], parts[1]), rng)
    for (codes, _), sign in zip(_sides(steps), (0x80, 0), strict=True):
        found = elements(codes[at])
        one = np.take_along_axis(found, (order == 0).argmax(axis=-1)[..., None], axis=-1)
        codes[at] = codes_of(np.where(order == 1, one ^ np.uint8(sign), found))
    steps.c[at] = 0
    steps.first[at] = True


def _largest(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """The largest significands, all of one exponent, so that sums are as large as they get; of either sign."""
    for (codes, types), signed in zip(_sides(steps), (True, False), strict=True):
        types[at] = rng.choice(np.array([_E4M3, _E2M3], np.uint8), len(at))
        exponent = rng.integers(1, np.where(types[at] == _E4M3, 15, 4))[:, None, None].astype(np.uint8)
        sign = rng.integers(0, 2, (len(at), codes.shape[1], 1), np.uint8) if signed else np.zeros(1, np.uint8)
        own = exponent << np.uint8(3) | np.uint8(7) | sign << (_WIDTH[types[at]] - np.uint8(1))[:, None, None]
        codes[at] = codes_of(np.broadcast_to(own, _shape(steps, codes, at)))
    steps.c[at] = rng.choice(np.array([0, 0x3F800000, 0xBF800000], np.uint32), steps.c[at].shape)
    steps.first[at] = True


def _ones(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """One product and a C that makes it 25 ones."""
    _alone(steps, at, rng)
    for codes, _ in _sides(steps):
        found = elements(codes[at])
        codes[at] = codes_of(np.where(found & 0x7C, found | np.uint8(3), found))  # above 2 after the product's point
    a, b = (unscaled_values(types[at], elements(codes[at])) for codes, types in _sides(steps))
    products = a @ b.swapaxes(1, 2)
    power = np.ldexp(1.0, np.frexp(products)[1])
    steps.c[at] = (np.copysign(power - power * 2.0**-25, products) - products).astype(np.float32).view(np.uint32)


def _scaled(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Scales of all kinds, with which results stay within FP32."""
    _seen(steps, at, rng)
    _set_scales(steps, at, rng.integers(LEAST_RAISED, -LEAST_RAISED, len(at)), rng, apart=3)


def _largest_exponents(steps: Steps, at: _Index) -> _Index:
    """Of the products of a step, about, without scales."""
    a, b = (np.abs(unscaled_values(types[at], elements(codes[at]))) for codes, types in _sides(steps))
    found: _Index = np.frexp((a @ b.swapaxes(1, 2)).max(axis=(1, 2)))[1]
    return found


def _low(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Sums about the last place of FP32 and far below it; C is zero mostly, or next to it."""
    _seen(steps, at, rng)
    wanted = rng.integers(-200, -110, len(at))
    _set_scales(steps, at, wanted - _largest_exponents(steps, at), rng)
    few = np.array([0, 0, 0, 0x80000000, 1, 0x80000001, 0x00800000], np.uint32)
    steps.c[at] = rng.choice(few, steps.c[at].shape)


def _high(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """Sums about the largest FP32 number and beyond it; C is zero, or as large."""
    _seen(steps, at, rng)
    wanted = rng.integers(118, 140, len(at))
    _set_scales(steps, at, wanted - _largest_exponents(steps, at), rng)
    large = rng.integers(0, 1 << 32, steps.c[at].shape, np.uint32) & np.uint32(0x83FFFFFF) | np.uint32(0x7C000000)
    numbers = np.where(large & np.uint32(0x7F800000) == 0x7F800000, np.uint32(0xFF7FFFFF), large)
    steps.c[at] = np.where(rng.random(large.shape) < 0.5, numbers, 0)


def _nan_scales(steps: Steps, at: _Index, rng: np.random.Generator) -> None:
    """NaN scales of few rows, beside C of every kind."""
    _seen(steps, at, rng)
    for scales in (steps.a_scales, steps.b_scales):
        rows = scales[at, :, 0]
        scales[at, :, 0] = np.where(rng.random(rows.shape) < 0.3, np.uint8(SCALE.nan or 0), rows)
    steps.c[at] = rng.choice(SPECIAL, steps.c[at].shape)


_OF_SCALES = ((_scaled, 0.12), (_low, 0.1), (_high, 0.03), (_nan_scales, 0.03))
"""What more there is of rows with scales, and the shares of it."""

_SCALED = sum(share for _, share in _OF_SCALES)

_PURPOSES = (
    *((_seen, 0.25), (_of_one_exponent, 0.08), (_reserved, 0.04), (_nans, 0.05), (_infinities, 0.08)),
    *((_zeros, 0.04), (_passed, 0.12), (_cancelling, 0.06), (_apart, 0.05), (_alone, 0.07), (_rest, 0.04)),
    *((_largest, 0.02), (_ones, 0.01)),
)
"""What steps are made for, and their shares."""

_SHARES = tuple(share for _, share in _PURPOSES)
