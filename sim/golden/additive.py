"""Products of L-Mul: the codes of two floating-point numbers added, in the place of a multiplication.

A number is (1 + m) 2^e. The product of two is (1 + m_x + m_y + m_x m_y) 2^(e_x + e_y). L-Mul (arXiv 2410.00907) puts
2^-l in the place of m_x m_y, with l the bits of a mantissa up to 3. So exponent and mantissa fields are added as one
integer, and 1 besides. A carry out of the mantissas goes into the exponent, as it does in that integer. Subnormal
numbers are added as they are coded, as if they had a hidden bit; the product of zero is zero.
"""

from __future__ import annotations

import numpy as np

from .checks import ArgumentError, Array, check_codes
from .element import ElementFormat

MOST_MANTISSA_BITS = 3
"""Most bits of a mantissa for which 2^-l is one unit of its last place."""


def check_added(element: ElementFormat) -> None:
    """Raise `ArgumentError` where codes of an element are not added."""
    if element.normal is None or element.infinities or element.mantissa_bits > MOST_MANTISSA_BITS:
        raise ArgumentError(
            f"{element.name}: codes are added of finite floating-point elements of at most {MOST_MANTISSA_BITS} bits of"
            " mantissa"
        )


def fields(element: ElementFormat) -> Array:
    """Return exponent and mantissa field of every code as one integer, int16."""
    return (np.arange(1 << element.width) & (1 << element.width - 1) - 1).astype(np.int16)


def signs(element: ElementFormat) -> Array:
    """Return the sign of every code, float64, 1 or -1; 0 of zero and NaN."""
    negative = np.arange(1 << element.width) >> element.width - 1
    return np.where(np.array(element.values) == 0, 0.0, 1.0 - 2.0 * negative)


def lowest_exponent(element: ElementFormat) -> int:
    """Return the exponent of a product whose exponent field is 0."""
    assert element.normal is not None
    return 2 * (element.normal - 1)


def from_fields(sign: Array, x: Array, y: Array, mantissa_bits: int, lowest: int) -> tuple[Array, Array]:
    """Return the products of numbers by their `fields`.

    Parameters
    ----------
    sign : numpy.ndarray of float64
        Of the products; 0 where they are.
    x, y : numpy.ndarray of int16
        Fields of both numbers, of shapes that go together.
    mantissa_bits : int
        Bits of the mantissa field.
    lowest : int
        What `lowest_exponent` gives.

    Returns
    -------
    products : numpy.ndarray of float64
    exponents : numpy.ndarray of int16
        Theirs; of products of zero those of their fields.
    """
    total = x + y + np.int16(1)
    significands, exponents = total & (1 << mantissa_bits) - 1 | 1 << mantissa_bits, total >> mantissa_bits
    exponents = exponents + np.int16(lowest)
    return np.asarray(sign * np.ldexp(significands, exponents - mantissa_bits)), exponents


def from_codes(element: ElementFormat, x: Array, y: Array) -> tuple[Array, Array]:
    """Return products and their exponents as `from_fields`, of codes of one format."""
    sign, fields_of = signs(element), fields(element)
    return from_fields(sign[x] * sign[y], fields_of[x], fields_of[y], element.mantissa_bits, lowest_exponent(element))


def additive_products(element: ElementFormat, x: Array, y: Array) -> Array:
    """Return the products of elements of one format.

    The result has as many exponents as it takes: nothing overflows, and no small product is lost.

    Parameters
    ----------
    element : ElementFormat
        A floating-point format of at most `MOST_MANTISSA_BITS`, without infinity.
    x, y : numpy.ndarray of uint8
        Codes, of shapes that go together.

    Returns
    -------
    numpy.ndarray of float64
        0 where a code is NaN.

    Raises
    ------
    ArgumentError
        The format is another one, or not all codes are of its width.
    """
    check_added(element)
    x, y = (check_codes(codes, name, element.width) for codes, name in ((x, "x"), (y, "y")))
    return from_codes(element, x, y)[0]
