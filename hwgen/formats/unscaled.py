"""Elements without block scales: the types of a step at half the rate, in containers of eight bits."""

from __future__ import annotations

from hwgen.formats.catalogue import E2M1, E2M3, E3M2, E4M3, E5M2, E8M0
from hwgen.formats.element import ElementFormat

__all__ = [
    "CONTAINER",
    "HIGHEST_PRODUCT",
    "LOWEST",
    "LOWEST_PRODUCT",
    "PRODUCT",
    "SCALE",
    "SCALED",
    "SELECTOR",
    "SIGNIFICAND",
    "TYPES",
    "TYPE_BITS",
]

TYPES: dict[int, ElementFormat] = {0: E4M3, 1: E5M2, 3: E2M3, 4: E3M2, 5: E2M1}
"""Types by their code, that of the instruction descriptor of ``tcgen05``. Other codes are reserved."""

TYPE_BITS = 3
"""Bits of such a code."""

SELECTOR = 1
"""Bit of such a code that chooses the elements in steps of FP4, where steps do. So 5 is E2M1 there, too, and 7, which
is reserved at half the rate, the other kind."""

CONTAINER = 8
"""Bits of an element; shorter types have the low ones, and the bits above are ignored."""

SCALE = E8M0
"""Scales of rows, where steps at half the rate have any."""

SCALED = 32
"""Elements of a row that share such a scale."""

SIGNIFICAND = max(element.significand_bits for element in TYPES.values())
"""Bits of a significand. Shorter ones are shifted to the left, so that all types count eighths."""

PRODUCT = 2 * SIGNIFICAND
"""Bits of a product of significands."""


def _highest(element: ElementFormat) -> int:
    """Highest exponent of a number."""
    return element.lowest_exponent + element.longest_shift


LOWEST = min(element.lowest_exponent for element in TYPES.values())
"""Lowest exponent of an element: of subnormal numbers and of the smallest normal ones alike."""

LOWEST_PRODUCT = 2 * LOWEST
"""Lowest exponent of a product, the sum of both; products are not normalised."""

HIGHEST_PRODUCT = 2 * max(map(_highest, TYPES.values()))
"""Highest exponent of a product."""
