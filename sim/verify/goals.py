"""Coverage goals: what a verification run must have seen, bin by bin, and what nobody can see.

Every group of goals is an array of bins; an event counts in one bin of it. Goals follow from the contract
(`sim.golden.mma`) and from the configuration, never from how the hardware is built. With half-units h, S, T and E as
there, F = ``fraction_bits`` and all words in units of 2^(emax - F)::

    C      = sigC << (F - 23), shifted right by emax - expC
    term g = T_g  << (F - 8),  shifted right by emax - E_g

The ranges of T_g and E_g are those of `hwgen.formats.Bounds`: for NVFP4 |T_g| < 2^19, E_g from -12 to 16. An
operand counts as *seen* only where a change of its block sum by one changes the result: its scales are neither zero
nor NaN, the result is finite, and a unit of T_g is not below the last place of the result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.formats import Bounds
from sim.verify.bins import CLASSES, NO_RESULT, OPERANDS, Axis, Goals, kinds_of_scales, numbers, results
from sim.verify.codes import codes_of, members
from sim.verify.half_goals import add_half_rate

__all__ = [
    "DEEPEST_CHAIN",
    "LARGEST_CANCELLATION",
    "LOWEST_BIT",
    "cancelled_sum",
    "deepest",
    "exponent_span",
    "goals",
    "largest_sum",
]

LARGEST_CANCELLATION = 24
"""Most leading places that one block sum of up to 24 bits and C can lose by cancelling, see `goals`."""

DEEPEST_CHAIN = 4096
"""Most steps of one tile that a run draws: the depth of 65536 at G = 1."""

LOWEST_BIT = -149
"""Exponent of the last place of FP32's subnormal numbers."""
HIGHEST_EXPONENT = 127
"""Exponent of the largest FP32 numbers."""

_FIRST_LAST = ("neither", "first", "last", "first and last")


def exponent_span(config: TensorCoreConfig) -> int:
    """Largest E_g minus smallest E_g of scales that are not zero."""
    return config.bounds.exponent_span


def deepest(config: TensorCoreConfig) -> int:
    """Steps of the deepest tile that is drawn of an exact core."""
    return min(config.largest_steps or 1, DEEPEST_CHAIN)


def largest_sum(config: TensorCoreConfig) -> int:
    """Largest sum of the chains that a run draws, in the unit of exact sums; exact numerics only."""
    return deepest(config) * config.sums * config.bounds.largest_exact_block


def cancelled_sum(config: TensorCoreConfig) -> tuple[int, int]:
    """Steps of large products that C can cancel as a whole, and how many places that is at most.

    The most steps whose sum FP32 holds, one less than the deepest at most. Behind them another step leaves the smallest
    product. No steps where some format has no zero, which all other products of that step are.
    """
    (of_a,), (of_b,) = ([element.integers for element in form.elements] for form in config.formats)
    if 0 not in of_a or 0 not in of_b:
        return 0, 0
    step = config.depth * max(of_a) * max(of_b)
    count = deepest(config) - 1
    while count > 1 and int(np.float32(count * step)) != count * step:
        count -= 1
    left = min(h for h in of_a if h > 0) * min(h for h in of_b if h > 0)
    return count, (count * step + left).bit_length() - left.bit_length()


def _largest_by_sign(config: TensorCoreConfig) -> tuple[int, int]:
    """Magnitudes of the largest positive and of the largest negative of these sums."""
    if not config.adds_sums:
        return (largest_sum(config),) * 2
    # Integers in two's complement reach further down than up.
    (a_low, a_high), (b_low, b_high) = (
        (min(element.integers), max(element.integers)) for form in config.formats for element in form.elements
    )
    by_sign = max(a_low * b_low, a_high * b_high), -min(a_low * b_high, a_high * b_low)
    products = config.depth * deepest(config)
    return products * by_sign[0], products * by_sign[1]


def goals(config: TensorCoreConfig) -> dict[str, Goals]:
    """All goals of a configuration, by name."""
    found: dict[str, Goals] = {}

    def add(
        name: str,
        *axes: Axis,
        reachable: NDArray[np.bool_] | None = None,
        reason: str = "",
    ) -> None:
        shape = tuple(len(labels) for _, labels in axes)
        found[name] = Goals(name, axes, np.ones(shape, np.bool_) if reachable is None else reachable, reason)

    groups = ("block", numbers(range(config.groups)))
    sums = groups if config.a.sums == 1 else ("part of a block", numbers(range(config.sums)))
    forms = {"A": config.a, "B": config.b}
    tags = [(f"tag {side}", tuple(element.name for element in form.elements)) for side, form in forms.items()]
    signs = ("", ("positive", "negative"))
    operation = ("", ("effective addition", "effective subtraction"))

    # Operands, where they are seen. Every byte and every code is free, so every bin is reachable.
    lanes = ("lane", numbers(range(config.depth)))
    _codes(config, add, lanes, tags)
    if config.bounds.may_be_infinite:
        _infinite(config, add, lanes)
    add("tag pairs", groups, *tags)
    for (side, form), tag in zip(forms.items(), tags, strict=True):
        usable = tuple(f"0x{byte:02x}" for byte in range(int(form.scale.subnormals), form.scale.highest + 1))
        add(f"scales of {side}", groups, tag, ("byte", usable))
    scales = {side: form.scale for side, form in forms.items()}
    if config.wide:
        # Below, a block is below the last place of any number; above, it is seen only where its sum is zero.
        powers = range(LOWEST_BIT + config.bounds.term_fraction, HIGHEST_EXPONENT)
        exponents = range(config.bounds.lowest_exponent, config.bounds.highest_exponent + 1)
        there = np.array([power in exponents for power in (*powers, max(HIGHEST_EXPONENT, exponents[-1]))])
        add(
            *("exponents of blocks", groups, ("", numbers(powers, "more"))),
            reachable=np.broadcast_to(there, (config.groups, len(there))).copy(),
            reason="" if there.all() else "no two scales have that exponent",
        )
    else:
        add("scale exponents", groups, *((side, numbers(scale.exponents)) for side, scale in scales.items()))
    lowest, highest = ([scale.exponents[end] for scale in scales.values()] for end in (0, -1))
    differences = range(lowest[0] - highest[1], highest[0] - lowest[1] + 1)
    add("scale exponent differences", groups, ("A - B", numbers(differences)))
    add("scale significands", groups, *((side, tuple(map(str, form.significands))) for side, form in forms.items()))
    kinds = {side: kinds_of_scales(form) for side, form in forms.items()}
    reachable = np.ones((config.groups, *map(len, kinds.values())), np.bool_)
    for axis, form in enumerate(forms.values(), start=1):
        if form.scale.nan is None:
            np.moveaxis(reachable, axis, 0)[2::3] = False
        if not form.scale.subnormals:
            np.moveaxis(reachable, axis, 0)[1::3] = False
    lacks = "NaN" if all(form.scale.subnormals for form in forms.values()) else "zero"
    reason = "" if reachable.all() else f"a scale format has no {lacks}"
    add("kinds of scales", groups, *kinds.items(), reachable=reachable, reason=reason)

    # C by where it comes from, and by the scales that it meets.
    kept = results() & ~_lost(config)
    reachable = np.ones((2, len(CLASSES), 3), np.bool_)
    reachable[1] = kept[:, None]
    if not any(form.may_be_nan for form in forms.values()):
        reachable[:, :, 2] = False
    if not any(form.scale.subnormals for form in forms.values()):
        reachable[:, :, 1] = False
    add(
        "C",
        ("from", ("the payload", "the accumulator")),
        ("", CLASSES),
        ("with", ("usable scales", "a zero scale", "a NaN scale")),
        reachable=reachable,
        reason="an accumulator holds results: an exact zero is +0, and every NaN is 0x7fffffff",
    )
    if config.exact:
        # A chain adds up before it meets C, so there is no C from an accumulator.
        reachable = reachable.copy()
        reachable[1] = False
        found["C"] = Goals("C", found["C"].axes, reachable, "an exact accumulator holds no C: it meets the sum once")
    add("results", ("", CLASSES), reachable=kept, reason=found["C"].reason if not config.exact else NO_RESULT)

    if config.exact:
        _exact(config, add, sums, signs, operation)
    else:
        _rounded(config, add, sums, signs, operation)

    # A rounding decision needs a place behind the last one; 24 ones with a one behind carry out if rounded up.
    bits = ("0", "1")
    add("rounding", signs, ("last place", bits), ("next", bits), ("rest", ("zero", "not zero")))
    add("24 ones and a one behind", signs)
    _streams(config, add)
    if config.slotted:
        add_half_rate(config, add)
    return found


def _codes(config: TensorCoreConfig, add: Callable[..., None], lanes: Axis, tags: list[Axis]) -> None:
    """Goals of codes: all pairs, each in every lane; fractions of long codes beside what the other operand has."""
    codes = {side: codes_of(config.form(side.lower())) for side in "AB"}
    nans = {side: members(config.form(side.lower()), "nans") for side in "AB"}
    finite = []
    for side, each in codes.items():
        number = ~(nans[side] | members(config.form(side.lower()), "infinities"))
        some = np.zeros((len(number), len(each.kinds)), np.int64)
        for selector, which in enumerate(number):
            np.add.at(some[selector], each.kind, which)
        finite.append(some > 0)
    reachable = finite[0][:, None, :, None] & finite[1][None, :, None, :]
    reason = "" if reachable.all() else "a NaN is not seen in a number"
    reason += " and neither is infinity" if config.bounds.may_be_infinite else ""
    kinds = {side: (side, each.kinds) for side, each in codes.items()}

    def in_lanes(bins: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.broadcast_to(bins, (config.depth, *bins.shape)).copy()

    add("code pairs", lanes, *tags, *kinds.values(), reachable=in_lanes(reachable), reason=reason)
    for place, (side, each) in enumerate(codes.items()):
        if each.fractions:
            axes = {**kinds, side: (f"fraction of {side}", each.fractions)}
            others = finite[1 - place][0]
            bins = np.broadcast_to(np.expand_dims(others, place), [len(labels) for _, labels in axes.values()])
            add(f"fractions of {side}", lanes, *axes.values(), reachable=in_lanes(bins), reason=reason)
    for side, each in codes.items():
        if nans[side].any():
            found = np.zeros(len(each.nans), np.bool_)
            found[each.nan[nans[side].any(axis=0)]] = True
            whose = "" if found.all() else "all other codes are numbers"
            add(f"NaN elements of {side}", lanes, (side, each.nans), reachable=in_lanes(found), reason=whose)


def _infinite(config: TensorCoreConfig, add: Callable[..., None], lanes: Axis) -> None:
    """Goals of infinite products: each alone, in every lane; and what several of them and C make together."""
    infinite = np.array([kind.endswith("Inf") for kind in OPERANDS])
    of_a, of_b = (infinite & form.may_be_infinite for form in config.formats)
    number = ~infinite
    reachable = (of_a[:, None] & (number | of_b)) | ((number | of_a)[:, None] & of_b)
    shape = (config.depth, *reachable.shape)
    reason = "a product of numbers is a number"
    if not all(form.may_be_infinite for form in config.formats):
        reason += ", and only one operand may be infinite"
    add(
        "infinite products",
        lanes,
        *((side, OPERANDS) for side in "AB"),
        reachable=np.broadcast_to(reachable, shape).copy(),
        reason=reason,
    )
    made = ("+Inf", "-Inf", "both, in one block", "both, of two blocks", "infinity times zero")
    reachable = np.ones((2, len(made), 4), np.bool_)
    reachable[:, 3] = config.groups > 1
    add(
        "infinities of a step",
        ("C from", ("the payload", "the accumulator")),
        ("products:", made),
        ("C:", ("a number", "+Inf", "-Inf", "NaN")),
        reachable=reachable,
        reason="" if config.groups > 1 else "there is one block",
    )


def _lost(config: TensorCoreConfig) -> NDArray[np.bool_]:
    """Kinds of FP32 numbers that no step keeps: subnormal ones, where a block always is far above them."""
    kept = config.exact or config.wide or config.excludes_empty
    kept = kept or any(form.scale.subnormals for form in config.formats)
    return np.array([kind.endswith("subnormal") and not kept for kind in CLASSES])


def _rounded(config: TensorCoreConfig, add: Callable[..., None], groups: Axis, signs: Axis, operation: Axis) -> None:
    """Goals of the alignment, the sum and its normalisation where every step is rounded."""
    fraction, bounds = config.fraction_bits, config.bounds
    ahead = bounds.term_width - bounds.term_fraction  # bits of a term above its exponent
    # expC is at most 127 and at least -126, E_g for MixFP4 at most 18 and at least -12: every distance is reachable,
    # and what lies further behind than a word is long is lost whole, however far.
    add("shift of C", ("by", numbers(range(fraction + 1), "more")), operation)
    add("shift of terms", groups, ("by", numbers(range(fraction + ahead), "more")), operation)
    if config.sums > 1:
        _distances(config, add)
    reachable = np.array([True, True, True, not config.excludes_empty])
    reason = "blocks whose sum is zero take no part" if config.excludes_empty else ""
    largest = ("C", "C and a term", "a term", "a block whose sum is zero, C cut")
    add("largest exponent", ("of", largest), reachable=reachable, reason=reason)
    kinds = ("all products zero", "products cancel")
    add("empty blocks", groups, ("", kinds), ("exponent", ("above C's and all terms'", "not above")))

    top = (
        config.sums * (bounds.largest_term << fraction - bounds.term_fraction) + ((1 << 24) - 1 << fraction - 23)
    ).bit_length()
    reachable, reason = np.ones((top, 2), np.bool_), ""
    if config.excludes_empty and config.sums == 1 and not config.wide:
        # The only term has the largest exponent or C has, see below: a term's last place is F - 8, C has 24 places.
        lowest = fraction - bounds.term_fraction - LARGEST_CANCELLATION
        reachable[:lowest] = False
        reason = "the larger one of a term and C keeps all its places, and they share at most 24"
    add("leading place of the sum", ("", numbers(range(top))), signs, reachable=reachable, reason=reason)

    # Let x be the term's word and y C's, F = 35, p the place that leads their difference, P that of the larger one.
    # If C has the largest exponent, 2^35 <= y < 2^36 is a multiple of 2^12, and x, to come near it, is at least 2^34
    # and so a multiple of 2^15: p >= 12, and P <= 36 or nothing cancels. Otherwise x is a multiple of 2^27, and y,
    # whose first place is 35 - d, one of 2^(12 - d): p >= 12 - d, P <= 36 - d. Either way P - p <= 24; more
    # fraction bits move all places alike. With more terms a sum can be longer than C and cancel further.
    most = _largest_cancellation(bounds)
    lost = ("grows", *numbers(range(most + 1)), "more", "all")
    reachable = np.ones(len(lost), np.bool_)
    reachable[-2] = config.sums > 1
    reason = "" if config.sums > 1 else f"one term and C share at most {most} leading places"
    add("places cancelled", ("", lost), reachable=reachable, reason=reason)

    zeros = (
        *("C and all terms zero", "terms zero, C not", "C zero, terms not", "a block sum zero, its products not"),
        *("C and terms cancel", "nothing left after alignment", "terms cancel, C zero"),
    )
    reachable = np.ones(len(zeros), np.bool_)
    reachable[-1] = config.sums > 1
    # Only an empty block is all that can push everything else out of the window; or C = 0, beside terms below FP32.
    reachable[-2] = not config.excludes_empty or config.wide
    reasons = [] if config.sums > 1 else ["a single term has no other"]
    reasons += [] if reachable[-2] else ["what has the largest exponent keeps all its places"]
    add("zeros", ("", zeros), reachable=reachable, reason="; ".join(reasons))


def _largest_cancellation(bounds: Bounds) -> int:
    """Most leading places that one block sum and C can lose, see above.

    A T of n > 24 bits is longer than C. Its last place stays where its first one is C's, and n - 1 places go. All n go
    where T is 2^n - 1, beside a C of 2^n: a number that the significands must divide.
    """
    bits = bounds.term_width
    if bits <= LARGEST_CANCELLATION:
        return LARGEST_CANCELLATION
    ones = (1 << bits) - 1
    factors = (x * y for x in bounds.a.significands for y in bounds.b.significands)
    return bits if any(ones % factor == 0 and ones // factor <= bounds.largest_sum for factor in factors) else bits - 1


def _distances(config: TensorCoreConfig, add: Callable[..., None]) -> None:
    """Goals of how far terms are apart."""
    bounds = config.bounds
    # For MixFP4 no two terms are more than 30 apart, and one is lost only F + 11, at least 44, behind the largest
    # exponent: terms do not push each other out of the window, only C does that. Where they do, those that keep
    # all their places are told apart.
    span = exponent_span(config)
    if span >= config.fraction_bits + bounds.term_width - bounds.term_fraction:
        span = config.fraction_bits - bounds.term_fraction
    first, second = np.triu_indices(config.sums, 1)
    pairs = tuple(f"{g} and {h}" for g, h in zip(first, second, strict=True))
    apart = np.ones((len(pairs), 2 * span + 1), np.bool_)
    # Parts of a block have one exponent.
    alike = first // config.a.sums == second // config.a.sums
    apart[alike] = False
    apart[alike, span] = True
    reason = "parts of a block have one exponent" if alike.any() else ""
    labels = numbers(range(-span, span + 1))
    add("distance of terms", ("blocks", pairs), ("", labels), reachable=apart, reason=reason)


def _exact(config: TensorCoreConfig, add: Callable[..., None], groups: Axis, signs: Axis, operation: Axis) -> None:
    """Goals where all of a tile is summed up in fixed point; places count from the unit of all terms."""
    add("place of terms", groups, ("", numbers(range(exponent_span(config) + 1))), signs)
    places = largest_sum(config).bit_length()
    reachable = np.ones((places, 2), np.bool_)
    for sign, largest in enumerate(_largest_by_sign(config)):
        reachable[largest.bit_length() :, sign] = False
    reason = "" if reachable.all() else "the largest products are of one sign"
    add("leading place of the sum", ("", numbers(range(places))), signs, reachable=reachable, reason=reason)
    add("C against the sum", ("exponents differ by", ("less", *numbers(range(-26, 27)), "more")), operation)
    lost = ("grows", *numbers(range(LARGEST_CANCELLATION + 1)), "more", "all")
    kinds = np.ones(len(lost), np.bool_)
    # What is left is a multiple of the unit, or of the last place of C.
    if config.adds_sums:
        kinds[-2] = cancelled_sum(config)[1] > LARGEST_CANCELLATION
    reason = "" if kinds.all() else f"no sum of {places} places is cancelled further"
    add("places cancelled", ("", lost), reachable=kinds, reason=reason)
    add(
        "zeros",
        ("", ("C and sum zero", "sum zero, C not", "C zero, sum not", "a block sum zero, its products not")),
    )


def _streams(config: TensorCoreConfig, add: Callable[..., None]) -> None:
    """Goals of the streams: of what is fed, and of the handshakes at the ports."""
    add("steps of a slot", ("step with", _FIRST_LAST), ("behind one with", _FIRST_LAST))
    lengths = ("1", "2", "3", "4", "5 to 8", "9 to 16", "17 and more")
    add("steps of a tile", ("", lengths))
    add("cycles in a row", ("without", ("a step", "C", "a taker")), ("", ("1", "2", "3", "4 to 7", "8 and more")))

    # C waits for its step, or the step for C: at the entrance of the loop if registers stand before it.
    entrance = config.entrance
    when = [*map(str, range(entrance)), f"{entrance} and more"]
    labels = ("2 and more before", "1 before", *(f"{cycles} behind" for cycles in when))
    reachable = np.ones((len(labels), 2), np.bool_)
    reachable[2:] = entrance > 0
    # With a single register a step comes into it when the one before it has its C and leaves.
    reachable[-1, 0] = entrance > 1
    add(
        "C and its step",
        ("cycles from the step to C:", labels),
        ("", ("right behind another C", "after a pause")),
        reachable=reachable,
        reason=""
        if entrance > 1
        else "too few registers before the loop: a step comes to them when the one before goes",
    )

    bits, turns = ("0", "1"), config.interleave
    reachable = np.ones((2,) * 6, np.bool_)
    for index in np.ndindex(reachable.shape):
        step_valid, step_ready, _, addend_ready, result_valid, result_ready = index
        if result_valid and not result_ready:
            reachable[index] = not step_ready
        elif not step_ready:
            # A step waits. Without registers before the loop it is the one on offer. If the register of C is full and
            # stays so it waits for its turn; the ring is out of place while there is no result only if a bubble brings
            # nothing to its end, that is with T > 2.
            turn = turns > 2 or (turns == 2 and result_valid)
            reachable[index] = (step_valid or entrance) and (addend_ready or turn)
    reason = "step.ready is low while a result is not taken, while a step waits for its turn or for C, and then only"
    ports = ("step.valid", "step.ready", "addend.valid", "addend.ready", "result.valid", "result.ready")
    add("handshakes", *((port, bits) for port in ports), reachable=reachable, reason=reason)
