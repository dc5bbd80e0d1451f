"""The slots to choose from: how an array of FP4 lanes multiplies FP8 and FP6 at half the rate.

What they are in hardware is in `hwgen.rtl`; this module says what each one demands of a configuration.
"""

from __future__ import annotations

from hwgen.formats import BlockFormat

__all__ = ["HALF_SCALES", "NO_HALF_SCALE", "NO_SLOT", "SCALED_ELEMENTS", "SCALED_GROUPS", "SLOTS", "unfit"]

NO_SLOT = "none"

NO_HALF_SCALE = "none"

HALF_SCALES = (NO_HALF_SCALE, "e8m0")
"""Scales of rows at half the rate: none, or one E8M0 byte for each row and each 32 elements along K."""

SCALED_ELEMENTS = 32
"""Elements along K that have one scale, at half the rate."""

SCALED_GROUPS = (1, 2, 4)
"""Groups with which steps at half the rate have one scale a row: 32 elements are whole steps."""

_MERGED = ("merged", "merged-timed")

SLOTS: dict[str, tuple[str, ...] | None] = {
    NO_SLOT: None,
    "separate": None,
    "split": _MERGED,
    "full": _MERGED,
    "quadrants": ("significand",),
}
"""Micro-architectures of the dot product that a slot goes with, by the name of the slot; None for all.

``separate``: a multiplier of its own for each slot, beside any lanes. ``split``: two lanes as they are, each multiplies
by half of a significand. ``full``: one lane of two has all partial products. ``quadrants``: two textbook lanes, of
2 x 2 bits each, are half of a multiplier of 4 x 4.
"""

_CODE_WIDTH = 4
_BLOCK = 16
_MAGNITUDE = 4
"""Most bits of a magnitude: those of a significand of FP8."""


def unfit(slot: str, dot: str, a: BlockFormat, b: BlockFormat) -> str | None:
    """Say why a slot cannot stand beside the lanes ``dot`` of two formats; None if it can."""
    if slot == NO_SLOT:
        return None
    allowed = SLOTS[slot]
    if allowed is not None and dot not in allowed:
        return f"shares the lanes of dot = {' or '.join(map(repr, allowed))}, not of {dot!r}"
    for side, form in (("a", a), ("b", b)):
        if (form.code_width, form.size) != (_CODE_WIDTH, _BLOCK):
            return (
                f"{side} = {form.name!r} has blocks of {form.size} codes of {form.code_width} bits; a slot takes those"
                f" of {_BLOCK} codes of {_CODE_WIDTH} bits"
            )
        if form.shifts or form.sums > 1 or form.window is not None or form.largest.bit_length() > _MAGNITUDE:
            return f"{side} = {form.name!r} has no lanes of plain integers of {_MAGNITUDE} bits"
        if not form.scale.subnormals or form.scale.nan is None:
            return f"{side} = {form.name!r} has scales without a zero or NaN; a slot takes UE4M3"
    return None
