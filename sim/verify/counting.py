"""Counts events: integer arithmetic of the contract once more, from the stimulus alone.

The counters compute every result on their way, on integers of 64 bits and from nothing but the codes, the scales and
C: where that is not what the golden model says, the counts mean nothing, and `count` says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwgen.errors import ToolError
from hwgen.jit import compiled
from sim.engines import Run
from sim.steps import Steps, Trace
from sim.verify.goals import LARGEST_CANCELLATION, Goals

__all__ = ["Counts", "count", "empty"]

Counts = dict[str, NDArray[np.int64]]
"""Events by group of goals and bin."""

_MAGNITUDES = np.array([[0, 1, 2, 3, 4, 6, 8, 12], [0, 1, 2, 3, 4, 5, 6, 7]])
_HALVES = np.concatenate([_MAGNITUDES, -_MAGNITUDES], axis=1)
"""Elements in half-units by tag and code, int64 (2, 16)."""

_NAN_SCALE = 0x7F
_NAN = 0x7FFFFFFF
_PLACES = LARGEST_CANCELLATION


@compiled
def _bit_length(number: int) -> int:  # pragma: no cover - compiled
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if number >> step:
            number >>= step
            length += step
    return length + (number > 0)


@compiled
def _class(bits: int) -> int:  # pragma: no cover - compiled
    """Index into `sim.verify.goals.CLASSES` of a bit pattern."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        kind = 4 if fraction == 0 else 5 if fraction >> 22 else 6
    elif exponent == 0:
        kind = 1 if fraction else 0
    else:
        kind = 3 if bits & 0x7FFFFFFF == 0x7F7FFFFF else 2
    return 2 * kind + sign


@compiled
def _scale_exponent(scale: int) -> int:  # pragma: no cover - compiled
    """exp of a block scale; -126 if it is zero."""
    return max(scale >> 3 & 15, 1) - 7 if scale & 0x7F else -126


@compiled
def _significand(scale: int) -> int:  # pragma: no cover - compiled
    """sig of a block scale, in eighths."""
    return scale & 7 | (8 if scale >> 3 & 15 else 0)


@compiled
def _kind_of_scale(scale: int) -> int:  # pragma: no cover - compiled
    low = scale & 0x7F
    return (1 if low == 0 else 2 if low == 0x7F else 0) + 3 * (scale >> 7)


@compiled
def _round(  # pragma: no cover - compiled
    number: int, rest: bool, unit: int, nearest: bool, rounding: Any, ones: Any
) -> int:
    """FP32 bits of (number + rest) * 2^unit, 0 <= rest < 1; counts how it is rounded."""
    negative = number < 0
    if negative:
        number = -number - rest  # and rest' = 1 - rest
    if number == 0 and not rest:
        return 0
    place = _bit_length(number) - 1
    drop = max(place - 23, -149 - unit)
    if drop <= 0:
        significand = number << -drop
    else:
        significand = number >> drop
        last, behind = significand & 1, number >> (drop - 1) & 1
        sticky = rest or (number & (1 << (drop - 1)) - 1) != 0
        rounding[int(negative), last, behind, int(sticky)] += 1
        if significand == 0xFFFFFF and behind:
            ones[int(negative)] += 1
        if nearest and behind and (sticky or last):
            significand += 1
    # A significand without the hidden bit is subnormal; a carry out of one with it raises the exponent.
    bits = significand + ((unit + drop + 149) << 23 if significand >> 23 else 0)
    return bits | int(negative) << 31


@compiled
def _count_operands(  # pragma: no cover - compiled
    a_codes: Any,
    b_codes: Any,
    a: int,
    b: int,
    tag_a: int,
    tag_b: int,
    g: int,
    pairs: Any,
    tags: Any,
    bytes_a: Any,
    bytes_b: Any,
    exponents: Any,
    differences: Any,
    significands: Any,
) -> None:
    """Count a block that is seen."""
    for i in range(16):
        lane = 16 * g + i
        pairs[lane, tag_a, tag_b, a_codes[lane], b_codes[lane]] += 1
    tags[g, tag_a, tag_b] += 1
    bytes_a[g, tag_a, (a & 0x7F) - 1] += 1
    bytes_b[g, tag_b, (b & 0x7F) - 1] += 1
    low, high = _scale_exponent(a) + 6, _scale_exponent(b) + 6
    exponents[g, low, high] += 1
    differences[g, low - high + 14] += 1
    significands[g, _significand(a) - 1, _significand(b) - 1] += 1


@compiled
def _block_sum(  # pragma: no cover - compiled
    a_codes: Any, b_codes: Any, tag_a: int, tag_b: int, g: int, halves: Any
) -> tuple[int, bool]:
    """S_g, and whether a product in it is not zero."""
    total, some = 0, False
    for i in range(16 * g, 16 * g + 16):
        product = halves[tag_a, a_codes[i]] * halves[tag_b, b_codes[i]]
        total += product
        some = some or product != 0
    return total, some


@compiled
def _shift_right(number: int, by: int) -> int:  # pragma: no cover - compiled
    """Truncate toward zero; any shift, to the left where it is negative."""
    if by <= 0:
        return number << -by
    by = min(by, 63)
    return number >> by if number >= 0 else -(-number >> by)


@compiled
def _count_cancelled(largest: int, place: int, empty: bool, cancelled: Any) -> None:  # pragma: no cover - compiled
    """Count how far behind the largest word the sum's leading place lies."""
    if empty:
        cancelled[_PLACES + 3] += 1
    else:
        cancelled[min(max(largest - place, -1), _PLACES + 1) + 1] += 1


@compiled
def _count_rounded(  # pragma: no cover - compiled
    a_codes: Any,
    a_scales: Any,
    b_codes: Any,
    b_scales: Any,
    c: Any,
    first: Any,
    tagged: tuple[int, int],
    fraction: int,
    nearest: bool,
    halves: Any,
    operands: Any,
    kinds: Any,
    addends: Any,
    classes: Any,
    rounding: Any,
    ones: Any,
    shifts: Any,
    term_shifts: Any,
    distances: Any,
    largest: Any,
    leading: Any,
    cancelled: Any,
    zeros: Any,
    d: Any,
) -> None:
    """Count all outputs of steps that are rounded one by one; ``c`` is what each of them adds to."""
    count, rows, columns = c.shape
    groups = a_scales.shape[2]
    terms, exponents, words = np.zeros(groups, np.int64), np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for step in range(count):
        for m in range(rows):
            for n in range(columns):
                bits = int(c[step, m, n])
                c_class = _class(bits)
                nan_scale = zero_scale = products = False
                top_zero = -1 << 20
                top_term = -1 << 20
                for g in range(groups):
                    a, b = int(a_scales[step, m, g]), int(b_scales[step, n, g])
                    kinds[g, _kind_of_scale(a), _kind_of_scale(b)] += 1
                    nan_scale = nan_scale or a & 0x7F == _NAN_SCALE or b & 0x7F == _NAN_SCALE
                    zero_scale = zero_scale or a & 0x7F == 0 or b & 0x7F == 0
                    tag_a, tag_b = a >> 7 & tagged[0], b >> 7 & tagged[1]
                    total, some = _block_sum(a_codes[step, m], b_codes[step, n], tag_a, tag_b, g, halves)
                    products = products or (some and total == 0)
                    terms[g] = total * _significand(a) * _significand(b)
                    exponents[g] = _scale_exponent(a) + _scale_exponent(b) + tag_a + tag_b
                    if terms[g] != 0:
                        top_term = max(top_term, exponents[g])
                    else:
                        top_zero = max(top_zero, exponents[g])
                met = 2 if nan_scale else 1 if zero_scale else 0
                addends[0 if first[step] else 1, c_class, met] += 1
                if nan_scale or c_class >= 10:
                    d[step, m, n] = _NAN
                elif c_class >= 8:
                    d[step, m, n] = bits
                if nan_scale or c_class >= 8:
                    classes[_class(int(d[step, m, n]))] += 1
                    continue
                exponent_c = max(bits >> 23 & 0xFF, 1) - 127
                magnitude = bits & 0x7FFFFF | (0x800000 if bits & 0x7F800000 else 0)
                top = max(exponent_c, top_term, top_zero)
                shift = top - exponent_c
                word = _shift_right(magnitude << (fraction - 23), shift)
                cut = word << min(shift, 60) != magnitude << (fraction - 23) if shift < 60 else magnitude != 0
                negative = bits >> 31 == 1
                total = -word if negative else word
                biggest, some = word, False
                # Exact: all terms together are less than 62 bits long.
                unaligned = 0
                for g in range(groups):
                    words[g] = _shift_right(terms[g], top - exponents[g] - (fraction - 8))
                    total += words[g]
                    biggest = max(biggest, abs(words[g]))
                    if terms[g] != 0:
                        some = True
                        unaligned += terms[g] << (exponents[g] + 12)
                d[step, m, n] = _round(total, False, top - fraction, nearest, rounding, ones)
                classes[_class(int(d[step, m, n]))] += 1
                place = _bit_length(abs(total)) - 1
                if magnitude != 0 and unaligned != 0:
                    subtracts = int((unaligned < 0) != negative)
                    shifts[min(shift, fraction + 1), subtracts] += 1
                if total != 0:
                    leading[place, int(total < 0)] += 1
                _count_largest(top, exponent_c, top_term, magnitude, cut, largest)
                if biggest != 0 and (magnitude != 0) + some > 0:
                    _count_cancelled(_bit_length(biggest) - 1, place, total == 0, cancelled)
                if not some:
                    zeros[0 if magnitude == 0 else 1] += 1
                elif magnitude == 0:
                    zeros[2] += 1
                zeros[3] += products
                if total == 0:
                    if magnitude != 0 and some and biggest != 0:
                        zeros[4] += 1
                    elif biggest == 0 and (magnitude != 0 or some):
                        zeros[5] += 1
                    elif magnitude == 0 and some:
                        zeros[6] += 1
                pair = 0
                for g in range(groups):
                    for h in range(g + 1, groups):
                        if words[g] != 0 and words[h] != 0:
                            distances[pair, exponents[g] - exponents[h] + distances.shape[1] // 2] += 1
                        pair += 1
                    behind = top - exponents[g]
                    if terms[g] != 0 and magnitude != 0:
                        subtracts = int((terms[g] < 0) != negative)
                        term_shifts[g, min(behind, fraction + 11), subtracts] += 1
                    a, b = int(a_scales[step, m, g]), int(b_scales[step, n, g])
                    seen = fraction - 8 - behind >= max(place - 23, 0)
                    if a & 0x7F and b & 0x7F and seen:
                        tag_a, tag_b = a >> 7 & tagged[0], b >> 7 & tagged[1]
                        _count_operands(a_codes[step, m], b_codes[step, n], a, b, tag_a, tag_b, g, *operands)


@compiled
def _count_largest(  # pragma: no cover - compiled
    top: int, exponent_c: int, top_term: int, magnitude: int, cut: bool, largest: Any
) -> None:
    """Count whose exponent is the largest."""
    if magnitude != 0 and exponent_c == top:
        largest[1 if top_term == top else 0] += 1
    elif top_term == top:
        largest[2] += 1
    elif magnitude != 0 and cut:
        largest[3] += 1


@compiled
def _count_exact(  # pragma: no cover - compiled
    a_codes: Any,
    a_scales: Any,
    b_codes: Any,
    b_scales: Any,
    c: Any,
    first: Any,
    last: Any,
    tagged: tuple[int, int],
    halves: Any,
    operands: Any,
    kinds: Any,
    addends: Any,
    classes: Any,
    rounding: Any,
    ones: Any,
    places: Any,
    leading: Any,
    against: Any,
    cancelled: Any,
    zeros: Any,
    d: Any,
) -> None:
    """Count all outputs of tiles that are summed up in fixed point and rounded with ``last``."""
    count, rows, columns = c.shape
    groups = a_scales.shape[2]
    for m in range(rows):
        for n in range(columns):
            total = begin = fresh = 0
            nan_scale = zero_scale = products = False
            for step in range(count):
                if first[step]:
                    total, begin, fresh = 0, step, step
                    nan_scale = zero_scale = products = False
                for g in range(groups):
                    a, b = int(a_scales[step, m, g]), int(b_scales[step, n, g])
                    kinds[g, _kind_of_scale(a), _kind_of_scale(b)] += 1
                    nan_scale = nan_scale or a & 0x7F == _NAN_SCALE or b & 0x7F == _NAN_SCALE
                    zero_scale = zero_scale or a & 0x7F == 0 or b & 0x7F == 0
                    if (a & 0x7F) % _NAN_SCALE == 0 or (b & 0x7F) % _NAN_SCALE == 0:
                        continue
                    tag_a, tag_b = a >> 7 & tagged[0], b >> 7 & tagged[1]
                    block, some = _block_sum(a_codes[step, m], b_codes[step, n], tag_a, tag_b, g, halves)
                    products = products or (some and block == 0)
                    exponent = _scale_exponent(a) + _scale_exponent(b) + tag_a + tag_b
                    total += (block * _significand(a) * _significand(b)) << (exponent + 12)
                if not last[step]:
                    continue
                bits = int(c[begin, m, n])
                c_class = _class(bits)
                addends[0, c_class, 2 if nan_scale else 1 if zero_scale else 0] += 1
                if nan_scale or c_class >= 8:
                    d[step, m, n] = _NAN if nan_scale or c_class >= 10 else bits
                    classes[_class(int(d[step, m, n]))] += 1
                    fresh = step + 1
                    continue
                magnitude = bits & 0x7FFFFF | (0x800000 if bits & 0x7F800000 else 0)
                negative = bits >> 31 == 1
                exponent_c = max(bits >> 23 & 0xFF, 1) - 127
                d[step, m, n] = _add_exact(total, magnitude, negative, exponent_c, rounding, ones, cancelled)
                classes[_class(int(d[step, m, n]))] += 1
                sum_place = _bit_length(abs(total)) - 1
                if total != 0:
                    leading[sum_place, int(total < 0)] += 1
                    if magnitude != 0:
                        distance = exponent_c - (sum_place - 20)
                        against[min(max(distance, -27), 27) + 27, int((total < 0) != negative)] += 1
                    zeros[2] += magnitude == 0
                else:
                    zeros[0 if magnitude == 0 else 1] += 1
                zeros[3] += products
                # Bits of the result below the unit are C's alone.
                exponent_d = max(int(d[step, m, n]) >> 23 & 0xFF, 1) - 127
                lowest = exponent_d - 23 + 20
                for index in range(fresh, step + 1):
                    for g in range(groups):
                        a, b = int(a_scales[index, m, g]), int(b_scales[index, n, g])
                        if a & 0x7F == 0 or b & 0x7F == 0:
                            continue
                        tag_a, tag_b = a >> 7 & tagged[0], b >> 7 & tagged[1]
                        exponent = _scale_exponent(a) + _scale_exponent(b) + tag_a + tag_b
                        if exponent + 12 < lowest:
                            continue
                        _count_operands(a_codes[index, m], b_codes[index, n], a, b, tag_a, tag_b, g, *operands)
                        block, _ = _block_sum(a_codes[index, m], b_codes[index, n], tag_a, tag_b, g, halves)
                        if block != 0:
                            places[g, exponent + 12, int(block < 0)] += 1
                fresh = step + 1


@compiled
def _add_exact(  # pragma: no cover - compiled
    total: int, magnitude: int, negative: bool, exponent_c: int, rounding: Any, ones: Any, cancelled: Any
) -> int:
    """FP32 bits of total * 2^-20 + C, rounded to nearest even; C is magnitude * 2^(exponent_c - 23)."""
    addend = -magnitude if negative else magnitude
    # 24 bits of C and up to 62 of the sum, in 64: what does not fit is kept as a rest from 0 to 1.
    shift = exponent_c - 3
    rest = False
    unit = -20
    if magnitude == 0:
        pass
    elif total == 0:
        unit = exponent_c - 23
    elif shift >= 0:
        up = min(shift, 38)
        addend <<= up
        down = min(shift - up, 62)
        rest = total & (1 << down) - 1 != 0
        total >>= down
        unit += shift - up
    else:
        up = min(-shift, 62 - _bit_length(abs(total)))
        total <<= up
        down = min(-shift - up, 62)
        rest = addend & (1 << down) - 1 != 0
        addend >>= down
        unit -= up
    result = total + addend
    largest = max(_bit_length(abs(total)), _bit_length(abs(addend)))
    if largest:
        _count_cancelled(largest - 1, _bit_length(abs(result)) - 1, result == 0 and not rest, cancelled)
    return _round(result, rest, unit, True, rounding, ones)


def empty(wanted: dict[str, Goals]) -> Counts:
    """No events at all."""
    return {name: np.zeros(goal.reachable.shape, np.int64) for name, goal in wanted.items()}


def count(wanted: dict[str, Goals], steps: Steps, trace: Trace, run: Run, offer: Any, take: Any) -> Counts:
    """Count the events of one run.

    Parameters
    ----------
    wanted
        Goals of the steps' configuration.
    steps
        The stimulus.
    trace
        What the golden model says about it.
    run
        What the core did.
    offer, take
        bool, (cycles,): whether a step was offered, and a result taken, in every cycle.

    Returns
    -------
    Counts
        One array for each group of goals.

    Raises
    ------
    ToolError
        The golden model computes something else than the integers of the counters.
    """
    config, counts = steps.config, empty(wanted)
    operands = tuple(
        counts[name]
        for name in (
            *("code pairs", "tag pairs", "scales of A", "scales of B"),
            *("scale exponents", "scale exponent differences", "scale significands"),
        )
    )
    tagged = int(config.a.tagged), int(config.b.tagged)
    stimulus = (steps.a_codes, steps.a_scales, steps.b_codes, steps.b_scales)
    every = [counts[name] for name in ("kinds of scales", "C", "results", "rounding", "24 ones and a one behind")]
    own = np.zeros(steps.c.shape, np.uint32)
    if config.exact:
        last = [counts[name] for name in ("place of terms", "leading place of the sum", "C against the sum")]
        last += [counts[name] for name in ("places cancelled", "zeros")]
        _count_exact(*stimulus, steps.c, steps.first, steps.last, tagged, _HALVES, operands, *every, *last, own)
    else:
        names = ("shift of C", "shift of terms", "distance of terms", "largest exponent", "leading place of the sum")
        last = [counts.get(name, np.zeros((0, 1), np.int64)) for name in (*names, "places cancelled", "zeros")]
        options = (config.fraction_bits, config.rounding == "nearest_even")
        _count_rounded(*stimulus, trace.c, steps.first, tagged, *options, _HALVES, operands, *every, *last, own)
    if not np.array_equal(own[steps.last], trace.results):
        index = np.argwhere(own[steps.last] != trace.results)[0]
        step, (m, n) = np.flatnonzero(steps.last)[index[0]], index[1:]
        raise ToolError(
            f"golden model: step {step}, D[{m}, {n}] is 0x{trace.results[tuple(index)]:08x}, integers say"
            f" 0x{own[step, m, n]:08x}"
        )
    _count_streams(counts, steps, run, offer, take)
    return counts


def _count_streams(counts: Counts, steps: Steps, run: Run, offer: Any, take: Any) -> None:
    turns = steps.config.interleave
    flags = steps.first + 2 * steps.last.astype(np.int64)
    np.add.at(counts["steps of a slot"], (flags[turns:], flags[:-turns]), 1)
    for slot in range(turns):
        starts = np.flatnonzero(steps.first[slot::turns])
        lengths = np.diff([*starts, len(steps.first[slot::turns])])
        np.add.at(counts["steps of a tile"], np.searchsorted([1, 2, 3, 4, 8, 16], lengths), 1)
    for index, given in enumerate((offer, take)):
        edges = np.flatnonzero(np.diff(np.concatenate([[True], given[: run.cycles], [True]]).astype(np.int8)))
        np.add.at(counts["cycles in a row"][index], np.searchsorted([1, 2, 3, 7], np.diff(edges)[::2]), 1)
    counts["handshakes"] += run.handshakes
