"""Coverage goals of steps at half the rate, where products of FP8 and FP6 are aligned one by one.

With p, r and q as in `sim.golden.unscaled`, F = ``half_fraction_bits`` and all words in units of 2^q::

    C         = sigC    << (F - 23), shifted right by largest - expC
    product k = sA * sB << (F - 6),  shifted right by largest - r_k

``largest`` is the largest exponent of all products that are not zero, and of C if it is not. An element counts as
*seen* only where one unit more of its product, 2^(r_k - 6), changes the result: the result is finite, and the unit is
not below its last place.

With scales both exponents of a product's elements have those of the scales with them. A scale is seen where a product
of its row is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hwgen.config import TensorCoreConfig
from hwgen.formats.unscaled import (
    CONTAINER,
    HIGHEST_PRODUCT,
    LOWEST_PRODUCT,
    PRODUCT,
    SCALE,
    SIGNIFICAND,
    TYPE_BITS,
    TYPES,
)
from sim.verify.bins import CLASSES, NO_RESULT, OPERANDS, Axis, kinds_of_scales, numbers, results

__all__ = ["BEYOND", "LEAST_RAISED", "MEETS", "NANS", "PREFIX", "add_half_rate"]

PREFIX = "half rate: "
"""How names of these groups begin."""

BEYOND = 16
"""How many distances behind the last place of the window are told apart."""

NANS = tuple((code, byte) for code, element in TYPES.items() for byte in element.nans)
"""All NaNs: code of the type, and byte."""

_TYPES = tuple(element.name for element in TYPES.values())

MEETS = ("products", "products of zero alone", "a NaN element", "an infinite product", "a reserved type")
"""What C meets in a step."""

LEAST_RAISED, _MOST_RAISED = -149, 127
"""Exponents of the scales of a product that are told apart, those of FP32."""

_BELOW = 64
"""How many places of a window below the last one of FP32 are told apart."""

_INFINITE = ("+Inf", "-Inf", "both, in one block", "both, of two blocks", "infinity times zero")
_SIGNS = ("", ("positive", "negative"))
_BITS = ("0", "1")


def add_half_rate(config: TensorCoreConfig, add: Callable[..., None]) -> None:
    """Add all goals of steps at half the rate.

    Parameters
    ----------
    config
        A core with a slot.
    add
        Called with the name of each group, its axes, and, where some bins cannot be hit, ``reachable`` and ``reason``.
    """
    slots = ("slot", numbers(range(config.groups * config.slots)))
    _elements(config, add, slots)
    _specials(config, add, slots)
    _alignment(config, add, slots)
    if config.half_scaled:
        _scales(add)
    _modes(config, add)


def _elements(config: TensorCoreConfig, add: Callable[..., None], slots: Axis) -> None:
    """Types and codes, where they are seen; and what steps of the one mode ignore that those of the other do not."""
    types = tuple(TYPES[code].name if code in TYPES else f"reserved, {code}" for code in range(1 << TYPE_BITS))
    add(PREFIX + "types", ("A", types), ("B", types))
    bytes_ = ("byte", tuple(f"0x{byte:02x}" for byte in range(1 << CONTAINER)))
    known = ("", _TYPES)
    number = np.array(
        [
            [byte & (1 << element.width) - 1 not in element.nans + element.infinities for byte in range(1 << CONTAINER)]
            for element in TYPES.values()
        ]
    )
    for side in "AB":
        add(
            *(f"{PREFIX}codes of {side}", slots, known, bytes_),
            reachable=np.broadcast_to(number, (len(slots[1]), *number.shape)).copy(),
            reason="NaN and infinity are not seen in a number",
        )
    significands = numbers(range(1 << SIGNIFICAND))
    add(PREFIX + "significands", slots, ("A", significands), ("B", significands), ("signs of A and B", _PAIRS))
    if ignored := range(int(config.half_scaled), config.groups):
        kinds = ((side, kinds_of_scales(config.form(side.lower()))) for side in "AB")
        add(PREFIX + "scales ignored", ("block", numbers(ignored)), *kinds)
    add("types of FP4", ("A", numbers(range(1 << TYPE_BITS))), ("B", numbers(range(1 << TYPE_BITS))))


_PAIRS = ("+ +", "- +", "+ -", "- -")


def _specials(config: TensorCoreConfig, add: Callable[..., None], slots: Axis) -> None:
    """What is no number: in elements, products, C and results."""
    nans = ("", tuple(f"{TYPES[code].name} 0x{byte:02x}" for code, byte in NANS))
    for side in "AB":
        add(f"{PREFIX}NaN elements of {side}", slots, nans)
    infinite = np.array([kind.endswith("Inf") for kind in OPERANDS])
    reachable = infinite[:, None] | infinite
    add(
        *(PREFIX + "infinite products", slots, ("A", OPERANDS), ("B", OPERANDS)),
        reachable=np.broadcast_to(reachable, (len(slots[1]), *reachable.shape)).copy(),
        reason="a product of numbers is a number",
    )
    reachable = np.ones((2, len(_INFINITE), 4), np.bool_)
    reachable[:, 3] = config.groups > 1
    add(
        PREFIX + "infinities of a step",
        ("C from", ("the payload", "the accumulator")),
        ("products:", _INFINITE),
        ("C:", ("a number", "+Inf", "-Inf", "NaN")),
        reachable=reachable,
        reason="" if config.groups > 1 else "there is one block",
    )
    meets = (*MEETS, *(["a NaN scale"] if config.half_scaled else []))
    reachable = np.ones((3, len(CLASSES), len(meets)), np.bool_)
    reachable[1:] = results()[:, None]
    origins = ("the payload", "a step of FP4", "a step at half the rate")
    add(
        *(PREFIX + "C", ("from", origins), ("", CLASSES), ("with", meets)),
        reachable=reachable,
        reason=f"an accumulator holds results: {NO_RESULT}",
    )
    add(PREFIX + "results", ("", CLASSES), reachable=results(), reason=NO_RESULT)


def _alignment(config: TensorCoreConfig, add: Callable[..., None], slots: Axis) -> None:
    """The window, the sum, and its normalisation."""
    fraction = config.half_fraction_bits
    # Products are up to 58 apart and C is anywhere, so that every distance is reachable.
    distances = range(fraction + BEYOND)
    exponents = range(LOWEST_PRODUCT, HIGHEST_PRODUCT + 1)
    add(PREFIX + "largest product", slots, ("exponent", numbers(exponents)))
    add(PREFIX + "shift of products", slots, ("by", numbers(distances, "more")), _SIGNS)
    add(PREFIX + "largest exponent", ("of", ("C", "C and a product", "a product")))
    apart = ("less", *numbers(range(1 - len(distances), len(distances))), "more")
    signs = ("signs of C and a largest product", ("equal", "unequal"))
    add(PREFIX + "C against products", ("exponents differ by", apart), signs)

    # A product is below 4 * 2^r, which is place F + 2; one of the largest exponent keeps all its places.
    largest = (1 << SIGNIFICAND) - 1
    terms = config.groups * config.slots * (largest * largest << fraction - (PRODUCT - 2))
    top = (terms + ((1 << 24) - 1 << fraction - 23)).bit_length()
    add(PREFIX + "leading place of the sum", ("", numbers(range(top))), _SIGNS)
    add(PREFIX + "places cancelled", ("", ("grows", *numbers(range(fraction + 2)), "all")))
    zeros = (
        *("C and all products zero", "products zero, C not", "C zero, products not"),
        *("products cancel, C zero", "products cancel, C not", "C and products cancel"),
    )
    add(PREFIX + "zeros", ("", zeros))
    add(PREFIX + "rounding", _SIGNS, ("last place", _BITS), ("next", _BITS), ("rest", ("zero", "not zero")))
    add(PREFIX + "24 ones and a one behind", _SIGNS)


def _scales(add: Callable[..., None]) -> None:
    """Scales of rows, and results beyond either end of FP32, which they bring about."""
    assert SCALE.nan is not None
    for side in "AB":
        add(f"{PREFIX}scales of {side}", ("byte", tuple(f"0x{byte:02x}" for byte in range(SCALE.nan))))
    add(PREFIX + "NaN scales", ("of", ("A", "B", "both")))
    add(PREFIX + "scales of products", ("exponent", numbers(range(LEAST_RAISED, _MOST_RAISED + 1))))
    ends = ("an infinite sum", "a subnormal sum of products", "products below the last place")
    add(PREFIX + "ends", ("", ends), _SIGNS)
    add(PREFIX + "places of products below the last", ("", numbers(range(_BELOW), "more")))


def _modes(config: TensorCoreConfig, add: Callable[..., None]) -> None:
    """Changes from one mode to the other, within tiles and in the pipeline, and of types from step to step."""
    modes = ("FP4", "half rate")
    add("modes of a tile", ("step of", modes), ("behind", ("the beginning", *modes)))
    after = ("", ("at once", "after a gap", "after a stall"))
    add("modes in a row", ("step of", modes), ("behind", modes), after)
    for side in "AB":
        add(f"{PREFIX}types of {side} in a row", ("step of", _TYPES), ("behind", _TYPES), after)
