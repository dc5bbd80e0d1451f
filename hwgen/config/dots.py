"""The micro-architectures of the dot product to choose from, and which pairs of formats each can multiply.

What they are in hardware is in `hwgen.rtl.lanes`; this module knows tables of values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from hwgen.formats import E1M2, E2M1, BlockFormat, Bounds

__all__ = ["CARRY_SAVE", "DOTS", "FIVES", "PLACES", "TENS", "Dot", "can_collide", "joined_places"]

SHORTEST_JOINED = 4
"""Bits of a magnitude from which on partial products share places."""

LONGEST_MERGED = 5
"""Widest magnitude that `merged` multiplies."""

LONGEST_DIGITS = 4
"""Widest magnitude of A in `signed`, whose bits choose rows of B; B may have any."""

LONGEST_NESTED = 4
"""Widest magnitude, before shifts, that `nested` multiplies."""

LONGEST_SIGNIFICAND = 8
"""Most bits of a significand that `shifted` multiplies."""

CARRY_SAVE = ("booth",)
"""Lanes that can hand over the last two words of their tree, for an accumulator that holds two words."""

SIGNIFICAND_TABLES = ((E2M1,), (E2M1, E1M2))
"""Elements for which `significand` has a split into significand and shift; three bits need no shift."""

PLACES: tuple[tuple[tuple[tuple[int, int], ...], ...], ...] = (
    (((0, 0),),),
    (((1, 0),), ((0, 1),)),
    (((2, 0), (0, 2)), ((1, 1),)),
    (((3, 0), (1, 2)), ((2, 1), (0, 3))),
    (((2, 2), (4, 0), (0, 4)), ((3, 1), (1, 3))),
    (((3, 2), (4, 1), (1, 4)), ((2, 3),)),
    (((3, 3), (4, 2), (2, 4)),),
    (((4, 3), (3, 4)),),
    (((4, 4),),),
)
"""Partial products (bit of A, bit of B) of `merged` by place; those in one pair of brackets share a place by OR."""

JOINED = tuple(group for place in PLACES for group in place if len(group) > 1)
"""The groups of `PLACES` that share one."""

FIVES = ((2, 0), (0, 2))
"""The group that can be made up for where both are one: of two numbers with bits 0 and 2, such as 5 and 7."""
TENS = ((3, 1), (1, 3))
"""Another one: of two numbers with bits 1 and 3, such as 10, if no such number has bit 2."""


def can_collide(a: BlockFormat, b: BlockFormat, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether two partial products can both be one, for some magnitude of A and some of B."""

    def both(form: BlockFormat, one: int, other: int) -> bool:
        return any(magnitude >> one & magnitude >> other & 1 for magnitude in form.magnitudes)

    return both(a, first[0], second[0]) and both(b, first[1], second[1])


def tens_have_room(a: BlockFormat, b: BlockFormat) -> bool:
    """Whether bits 2 of both are never set beside all of `TENS`: what makes up for those takes their place."""
    return not all(any(magnitude & 0b1110 == 0b1110 for magnitude in form.magnitudes) for form in (a, b))


def joined_places(form: BlockFormat) -> tuple[tuple[int, ...], ...]:
    """Bits of a magnitude by rows: bits 0 and 2, and 1 and 3, share one where they exclude one another."""
    rows: list[tuple[int, ...]] = []
    bits = range(form.largest.bit_length())
    for low in (0, 1):
        pair = tuple(bit for bit in (low, low + 2) if bit in bits)
        if not pair:
            continue
        meet = any(all(magnitude >> bit & 1 for bit in pair) for magnitude in form.magnitudes)
        rows += [pair] if len(pair) < 2 or not meet else [(bit,) for bit in pair]
    return tuple(rows)


def _too_wide(side: str, form: BlockFormat, most: int) -> str | None:
    bits = form.largest.bit_length()
    return None if bits <= most else f"{side} = {form.name!r} has magnitudes of {bits} bits, its lanes take {most}"


def _signed(a: BlockFormat, b: BlockFormat) -> str | None:
    return _too_wide("a", a, LONGEST_DIGITS)


def _merged(a: BlockFormat, b: BlockFormat) -> str | None:
    if reason := _too_wide("a", a, LONGEST_MERGED) or _too_wide("b", b, LONGEST_MERGED):
        return reason
    for group in JOINED:
        if group == FIVES or (group == TENS and tens_have_room(a, b)):
            continue
        if any(can_collide(a, b, first, second) for first, second in combinations(group, 2)):
            return f"partial products of {a.name} x {b.name} that it joins can both be one"
    return None


def _merged_binary(a: BlockFormat, b: BlockFormat) -> str | None:
    if max(form.largest.bit_length() for form in (a, b)) < SHORTEST_JOINED:
        return f"no partial products of {a.name} x {b.name} share a place; use 'binary'"
    return _merged(a, b)


def _any(a: BlockFormat, b: BlockFormat) -> str | None:
    return None


def _significand(a: BlockFormat, b: BlockFormat) -> str | None:
    for side, form in (("a", a), ("b", b)):
        if form.elements not in SIGNIFICAND_TABLES and form.largest.bit_length() > 3:
            return f"{side} = {form.name!r} has no split into a short significand and a shift"
    return None


def _booth(a: BlockFormat, b: BlockFormat) -> str | None:
    for side, form in (("a", a), ("b", b)):
        if form.tagged:
            return f"{side} = {form.name!r} has several kinds of elements; its lanes take one"
        if form.shifts:
            return f"{side} = {form.name!r} has sub-groups that are shifted; use 'nested' or 'multiplier'"
    if max(form.largest.bit_length() for form in (a, b)) <= LONGEST_MERGED:
        return f"{a.name} x {b.name} have no long magnitudes; use 'binary' or 'merged'"
    return None


def _shifted(a: BlockFormat, b: BlockFormat) -> str | None:
    if reason := _booth(a, b):
        return reason
    for side, form in (("a", a), ("b", b)):
        if (bits := form.elements[0].significand_bits) > LONGEST_SIGNIFICAND:
            return f"{side} = {form.name!r} has significands of {bits} bits, its lanes take {LONGEST_SIGNIFICAND}"
    return None


def _windowed(a: BlockFormat, b: BlockFormat) -> str | None:
    for side, form in (("a", a), ("b", b)):
        if form.window is None and Bounds(a, b).window is None:
            return f"{side} = {form.name!r} has no window that products are cut to"
        if form.window is None and (form.tagged or form.sums > 1 or form.shifts):
            return f"{side} = {form.name!r}: products that are cut to a window take one kind of elements, in one sum"
        if form.additive:
            return _adds(side, form)
    bounds = Bounds(a, b)
    if bounds.window is not None and bounds.product_fraction > bounds.window:
        return (
            f"products of {a.name} x {b.name} have {bounds.product_fraction} bits behind the point; their window has"
            f" {bounds.window}"
        )
    return None


def _adds(side: str, form: BlockFormat) -> str:
    return f"codes of {side} = {form.name!r} are added, not multiplied; use 'additive', and such a format for both"


def _additive(a: BlockFormat, b: BlockFormat) -> str | None:
    for side, form in (("a", a), ("b", b)):
        if not form.additive:
            return f"{side} = {form.name!r} has no codes that are added in the place of products"
    if a.elements != b.elements:
        return f"codes of {a.name} and of {b.name} have different fields, which do not add up"
    return None


def _whole(supports: Callable[[BlockFormat, BlockFormat], str | None]) -> Callable[..., str | None]:
    """A check that also refuses pairs whose products are cut to a window, sums of codes, and infinite elements."""

    def checked(a: BlockFormat, b: BlockFormat) -> str | None:
        if _windowed(a, b) is None:
            return f"products of {a.name} x {b.name} are cut to a window; use 'windowed'"
        for side, form in (("a", a), ("b", b)):
            if form.additive:
                return _adds(side, form)
            if form.may_be_infinite:
                return f"{side} = {form.name!r} has infinite elements; only 'windowed' has wires for them"
        return supports(a, b)

    return checked


def _nested(a: BlockFormat, b: BlockFormat) -> str | None:
    if not a.shifts or a.shifts != b.shifts:
        return f"{a.name} x {b.name} have no common sub-groups that are shifted"
    for side, form in (("a", a), ("b", b)):
        if (bits := form.elements[0].largest.bit_length()) > LONGEST_NESTED:
            return f"{side} = {form.name!r} has magnitudes of {bits} bits, its lanes take {LONGEST_NESTED}"
    return None


def _e2m2(a: BlockFormat, b: BlockFormat) -> str | None:
    for side, form in (("a", a), ("b", b)):
        if form.elements != (E2M1, E1M2):
            return f"{side} = {form.name!r} has no E2M1 and E1M2 blocks to unify; use 'merged'"
    return None


@dataclass(frozen=True)
class Dot:
    """One micro-architecture of the dot product.

    Parameters
    ----------
    name
        Value of ``dot`` in a configuration.
    purpose
        What it is, in a few words.
    supports
        ``supports(a, b)`` says why it cannot multiply blocks of these formats; None if it can.
    """

    name: str
    purpose: str
    supports: Callable[[BlockFormat, BlockFormat], str | None]


DOTS: dict[str, Dot] = {
    dot.name: dot
    for dot in (
        Dot("merged", "magnitudes whose partial products share places", _whole(_merged)),
        Dot("merged-timed", "merged for a fast clock: a tree that adds what is there", _whole(_merged)),
        Dot("merged-binary", "the products of merged, added in a binary tree", _whole(_merged_binary)),
        Dot("signed", "rows of a two's-complement operand, chosen by the other's bits", _whole(_signed)),
        Dot("significand", "significands multiplied, the product shifted", _whole(_significand)),
        Dot("binary", "significands multiplied, the product shifted, added in a binary tree", _whole(_significand)),
        Dot("booth", "rows of long integers, chosen by Booth's digits of the other ones", _whole(_booth)),
        Dot("shifted", "significands of long numbers multiplied, the product shifted", _whole(_shifted)),
        Dot("shifted-carry-save", "the products of shifted, added in a carry-save tree", _whole(_shifted)),
        Dot("windowed", "products aligned to the largest of their exponents, and cut", _windowed),
        Dot("additive", "codes of two numbers added for their product (L-Mul), aligned as in windowed", _additive),
        Dot("nested", "products of sub-groups added, and shifted together", _whole(_nested)),
        Dot("multiplier", "plain multiplication of integers", _whole(_any)),
        Dot("e2m2", "the literal internal format of the MixFP4 paper", _whole(_e2m2)),
    )
}
"""Micro-architectures by name."""


def supported(a: BlockFormat, b: BlockFormat) -> list[str]:
    """Names of the micro-architectures that can multiply blocks of these formats."""
    return [name for name, dot in DOTS.items() if dot.supports(a, b) is None]
