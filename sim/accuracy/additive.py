"""L-Mul: products of floating-point numbers by adding their codes, and what that loses.

A number is (1 + m) 2^e. The product of two is (1 + m_x + m_y + m_x m_y) 2^(e_x + e_y). L-Mul (arXiv 2410.00907) puts
2^-l in the place of m_x m_y. So exponent and mantissa fields are added as one integer, with a constant. A carry out of
the mantissas goes into the exponent, as it does in that integer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sim.golden.element import E4M3

from .noise import Energies

__all__ = ["AdditiveError", "additive_error", "additive_products"]

_BIAS = 7
_MANTISSA = E4M3.mantissa_bits
_OFFSET = 1
"""2^-l in units of the last place of a mantissa of 3 bits: l is 3 up to there."""


def additive_products(x: npt.NDArray[np.uint8], y: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return what L-Mul makes of E4M3 codes.

    The result has as many exponents as it takes: nothing overflows, and no small product is lost. Subnormal numbers are
    added as they are coded, as if they had a hidden bit; the product of zero is zero.

    Parameters
    ----------
    x, y : numpy.ndarray of uint8
        Codes that are not NaN, of shapes that go together.
    """
    fields = (x & 127).astype(np.int64) + (y & 127) - (_BIAS << _MANTISSA) + _OFFSET
    exponents = (fields >> _MANTISSA) - _BIAS
    magnitudes = np.ldexp(1 + (fields & (1 << _MANTISSA) - 1) / (1 << _MANTISSA), exponents)
    magnitudes[((x & 127) == 0) | ((y & 127) == 0)] = 0
    return np.where((x ^ y) & 128, -magnitudes, magnitudes)


@dataclass(frozen=True)
class AdditiveError:
    """What L-Mul loses of products of E4M3 numbers.

    Parameters
    ----------
    mean, largest
        Error of a product over the product, its magnitude: mean and largest of all pairs of normal numbers.
    bias
        Mean of that error with its sign.
    decibels
        SQNR of all products of two gaussian matrices in E4M3, each with a scale for the whole: the exact products are
        the signal.
    """

    mean: float
    largest: float
    bias: float
    decibels: float


def additive_error(seed: int = 0, count: int = 1 << 20) -> AdditiveError:
    """Measure what L-Mul loses.

    Parameters
    ----------
    seed
        Of the gaussian numbers.
    count
        Products of them.
    """
    normal = np.arange(1 << _MANTISSA, 0x7F, dtype=np.uint8)
    x, y = (each.ravel() for each in np.meshgrid(normal, normal))
    exact = E4M3.table[x] * E4M3.table[y]
    relative = additive_products(x, y) / exact - 1
    drawn = np.random.default_rng(seed).standard_normal((2, count))
    scale = np.abs(drawn).max() / E4M3.largest
    codes = E4M3.encode(drawn / scale)
    wanted = E4M3.table[codes[0]] * E4M3.table[codes[1]]
    noise = np.square(additive_products(codes[0], codes[1]) - wanted).sum()
    errors, energies = np.abs(relative), Energies(float(np.square(wanted).sum()), float(noise))
    return AdditiveError(float(errors.mean()), float(errors.max()), float(relative.mean()), energies.decibels)
