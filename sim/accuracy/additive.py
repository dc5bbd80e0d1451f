"""What is lost by adding codes in the place of products, see `sim.golden.additive`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.golden import additive_products
from sim.golden.element import E4M3

from .noise import Energies

__all__ = ["AdditiveError", "additive_error"]


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
    normal = np.arange(1 << E4M3.mantissa_bits, 0x7F, dtype=np.uint8)
    x, y = (each.ravel() for each in np.meshgrid(normal, normal))
    exact = E4M3.table[x] * E4M3.table[y]
    relative = additive_products(E4M3, x, y) / exact - 1
    drawn = np.random.default_rng(seed).standard_normal((2, count))
    scale = np.abs(drawn).max() / E4M3.largest
    codes = E4M3.encode(drawn / scale)
    wanted = E4M3.table[codes[0]] * E4M3.table[codes[1]]
    noise = np.square(additive_products(E4M3, codes[0], codes[1]) - wanted).sum()
    errors, energies = np.abs(relative), Energies(float(np.square(wanted).sum()), float(noise))
    return AdditiveError(float(errors.mean()), float(errors.max()), float(relative.mean()), energies.decibels)
