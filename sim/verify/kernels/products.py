"""Operands of steps at half the rate: read from the tables of their types once a step, and multiplied."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwgen.formats import ElementFormat
from hwgen.formats.unscaled import CONTAINER, SCALE, SIGNIFICAND, TYPE_BITS, TYPES
from hwgen.jit import inlined
from sim.verify.half_goals import NANS

__all__ = [
    "INFINITE",
    "NOT_A_NUMBER",
    "PLACES",
    "ZERO",
    "Decoded",
    "Products",
    "UnscaledSide",
    "UnscaledStimulus",
    "decode",
    "multiply",
    "space",
    "unscaled_side",
]

_Array = NDArray[np.int64]
ZERO, INFINITE, NOT_A_NUMBER = 0, 3, 5
"""Kinds of elements, in the order of `sim.verify.bins.OPERANDS`, and NaN behind them."""

PLACES = np.array([[*TYPES].index(code) if code in TYPES else -1 for code in range(1 << TYPE_BITS)])
"""Which type a code is, (codes,); -1 of reserved ones."""


class UnscaledSide(NamedTuple):
    """One operand of steps at half the rate, and the tables of the types.

    ``elements`` (S, rows, K) are its bytes, ``types`` (S,) the codes of their types, ``scales`` (S, rows, blocks) the
    kinds of the scale bytes beside them that are not read. ``byte`` (S, rows) are the scales of rows, those of 1 where
    there are none. The tables are by code of a type and byte: ``significand`` in eighths, ``exponent``,
    ``kind``, ``negative``, and ``nan``, which one of `NANS` it is. ``known`` is `PLACES`.
    """

    elements: NDArray[np.uint8]
    types: NDArray[np.uint8]
    scales: _Array
    byte: _Array
    significand: _Array
    exponent: _Array
    kind: _Array
    negative: _Array
    nan: _Array
    known: _Array


class UnscaledStimulus(NamedTuple):
    """Both operands, C as uint32 (S, M, N), its origin by step, and the products of a block.

    An ``origin`` is 0 for the payload, 1 for a step of FP4, and 2 for one at half the rate.
    """

    a: UnscaledSide
    b: UnscaledSide
    c: NDArray[np.uint32]
    origin: _Array
    slots: int


class Decoded(NamedTuple):
    """One operand of one step, read from its tables once for all outputs; all but ``special`` by row and k.

    ``signed`` are significands with their signs. ``special`` (rows,) is whether an element is infinite or NaN.
    ``seen`` counts the outputs that show an element beside one that is not zero.
    """

    signed: _Array
    exponent: _Array
    kind: _Array
    negative: _Array
    special: NDArray[np.bool_]
    seen: _Array


class Products(NamedTuple):
    """Of one output, by k: products of significands with their signs, exponents, and which signs the elements have."""

    signed: _Array
    exponent: _Array
    signs: _Array


def unscaled_side(
    elements: NDArray[np.uint8], types: NDArray[np.uint8], scales: _Array, byte: _Array | None = None
) -> UnscaledSide:
    """An operand with the tables of the types; arguments as the fields of `UnscaledSide`."""
    own = np.full(elements.shape[:2], SCALE.bias) if byte is None else byte
    return UnscaledSide(elements, types, scales, own, *_tables())


@cache
def _tables() -> tuple[_Array, ...]:
    """Tables of the types, in the order of `UnscaledSide`."""
    tables = np.zeros((5, 1 << TYPE_BITS, 1 << CONTAINER), np.int64)
    for code, element in TYPES.items():
        for byte in range(1 << CONTAINER):
            tables[:, code, byte] = _entry(code, element, byte & (1 << element.width) - 1)
    return (*tables, PLACES)


def _entry(code: int, element: ElementFormat, own: int) -> tuple[int, int, int, int, int]:
    """Significand in eighths, exponent, kind, sign, and which NaN a code of a type is."""
    negative = own >> element.width - 1
    if own in element.nans:
        return 0, 0, NOT_A_NUMBER, negative, NANS.index((code, own))
    if own in element.infinities:
        return 0, 0, INFINITE + negative, negative, 0
    significand = element.significands[own] << SIGNIFICAND - element.significand_bits
    return significand, element.lowest_exponent + element.shifts[own], (1 + negative) * (significand > 0), negative, 0


def space(side: UnscaledSide) -> Decoded:
    """Space for the elements of one step."""
    rows, count = side.elements.shape[1:]
    signed, exponent, kind_, negative, seen = np.zeros((5, rows, count), np.int64)
    return Decoded(signed, exponent, kind_, negative, np.zeros(rows, np.bool_), seen)


@inlined
def decode(side: UnscaledSide, step: int, decoded: Decoded) -> None:  # pragma: no cover
    """Fill in the elements of one step."""
    of_type = side.types[step]
    rows, count = decoded.signed.shape
    for row in range(rows):
        special = False
        for k in range(count):
            x = side.elements[step, row, k]
            significand, negative = side.significand[of_type, x], side.negative[of_type, x]
            decoded.signed[row, k] = -significand if negative else significand
            decoded.exponent[row, k] = side.exponent[of_type, x]
            decoded.kind[row, k] = side.kind[of_type, x]
            decoded.negative[row, k] = negative
            decoded.seen[row, k] = 0
            special = special or side.kind[of_type, x] >= INFINITE
        decoded.special[row] = special


@inlined
def multiply(  # pragma: no cover
    a: Decoded, b: Decoded, m: int, n: int, raised: int, products: Products
) -> bool:
    """Fill in the products of an output, whose scales have the exponent ``raised``; whether one is not zero."""
    some = False
    for k in range(len(products.signed)):
        product = a.signed[m, k] * b.signed[n, k]
        products.signed[k] = product
        products.exponent[k] = a.exponent[m, k] + b.exponent[n, k] + raised
        products.signs[k] = a.negative[m, k] + 2 * b.negative[n, k]
        some = some or product != 0
    return some
