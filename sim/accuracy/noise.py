"""Signal-to-quantisation-noise ratio (SQNR) of a block format.

The signal is the sum of the squares of all numbers of a tensor. The noise is the sum of the squares of what
quantisation changes. SQNR is 10 log10(signal / noise), in dB; arXiv 2510.25602 calls it QSNR.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sim import golden, tensors
from sim.tensors import Tensor

from .rows import OUTSIDE, by_part, rules, spread

ORDINARY = "ordinary-channels"
"""The channels of ``outlier-channels`` that are not scaled up."""

KINDS = (*tensors.KINDS, ORDINARY)
"""Kinds of tensors that can be drawn, see `sim.tensors.generate`, and `ORDINARY`."""

SHAPE = (512, 4096)
"""Rows and K of a drawn tensor: two million numbers, K that of the layers of an 8-billion-parameter model."""

SEED = 0
"""Seed of a drawn tensor."""

CHOICES = tuple((form.name, rule) for form in golden.CATALOGUE.values() for rule in rules(form))
"""All formats of the golden model with all rules, (format, rule); the first rule of each is its default."""


@dataclass(frozen=True)
class Energies:
    """Energies of numbers and of what quantisation changes. Those of several tensors add up.

    Parameters
    ----------
    signal
        Sum of the squares of the numbers.
    noise
        Sum of the squares of the errors.
    """

    signal: float
    noise: float

    def __add__(self, other: Energies) -> Energies:
        return Energies(self.signal + other.signal, self.noise + other.noise)

    @property
    def decibels(self) -> float:
        """SQNR in dB; infinite without noise, and NaN without signal."""
        if not self.signal:
            return math.nan
        return 10 * math.log10(self.signal / self.noise) if self.noise else math.inf


@dataclass(frozen=True)
class Part:
    """Some channels of a tensor that is quantised as a whole.

    Parameters
    ----------
    tensor
        The tensor, (rows, K).
    channels
        Which of its channels count, (K,).
    """

    tensor: Tensor
    channels: npt.NDArray[np.bool_]


def drawn(kind: str, shape: tuple[int, int] = SHAPE, seed: int = SEED) -> Tensor | Part:
    """Return a tensor of one of `KINDS`, (rows, K).

    Raises
    ------
    ArgumentError
        Unknown kind.
    """
    if kind != ORDINARY:
        return tensors.generate(kind, shape, seed)
    return Part(tensors.generate("outlier-channels", shape, seed), tensors.ordinary_channels(shape, seed))


def energies(x: Tensor | Part, form: str | golden.BlockFormat, rule: str | None = None) -> Energies:
    """Return the energies of a matrix and of its error.

    Parameters
    ----------
    x : array, (rows, K), or Part
        Blocks run along K. The last block of a row is filled with zeros, see `golden.padded`.
    form : str or BlockFormat
        Format, such as one of `golden.FORMATS`.
    rule : str, optional
        Rule of quantisation, see `golden.quantize`, or one of `OUTSIDE`; the default is that of the format.

    Raises
    ------
    ArgumentError
        As `golden.quantize`, or a block is beyond the range of the format, so that its scale is NaN.
    """
    part = part_of(x)
    scales = None
    if rule in OUTSIDE:
        quantized, scales = by_part(part.tensor, golden.block_format(form), rule)
    else:
        quantized = golden.quantize_padded(part.tensor, form, rule=rule)
    return lost(part, quantized, scales)


def part_of(x: Tensor | Part) -> Part:
    """All channels of a tensor."""
    return x if isinstance(x, Part) else Part(x, np.ones(np.shape(x)[1:], np.bool_))


def changed(part: Part, values: npt.NDArray[np.float64]) -> Energies:
    """Return the energies of a matrix and of how far other ``values`` of all its numbers, (rows, K), are off."""
    wide = np.asarray(part.tensor, np.float64)
    error = values - wide
    # Of whole tensors without a copy.
    chosen = slice(None) if part.channels.all() else part.channels
    return Energies(float(np.square(wide[:, chosen]).sum()), float(np.square(error[:, chosen]).sum()))


def lost(
    x: Tensor | Part, quantized: golden.QuantizedTensor, scales: npt.NDArray[np.float32] | None = None
) -> Energies:
    """Return the energies of a matrix and of its error, once it is quantised.

    Parameters
    ----------
    x : array, (rows, K), or Part
        The matrix.
    quantized : QuantizedTensor, (rows, K or more)
        What it became; columns beyond K are left out.
    scales : array, (rows, 1) or (rows, groups), optional
        What its rows, or groups of them, are to be multiplied by.

    Raises
    ------
    ArgumentError
        A scale is NaN.
    """
    part = part_of(x)
    # float64, so that the rounding of a result to float32 is no part of the error.
    values = quantized.form.values(quantized.codes, quantized.scales)
    values *= quantized.core_scale
    if scales is not None:
        values *= spread(scales, values.shape[1])
    found = changed(part, values[:, : len(part.channels)])
    if math.isnan(found.noise):
        raise golden.ArgumentError(f"x has a block whose scale is NaN in {quantized.format}: its numbers are too large")
    return found


def signal_to_noise(
    form: str | golden.BlockFormat,
    kind: str,
    *,
    rule: str | None = None,
    shape: tuple[int, int] = SHAPE,
    seed: int = SEED,
) -> float:
    """Return the SQNR of a format in dB, on a tensor that is drawn.

    Equal arguments give equal figures. Six seeds differ by 0.02 dB for gaussian numbers, by 0.2 dB for heavy-tailed
    ones, and by 1.4 dB for outlier channels, of which a tensor has only 32. Differences between formats move less.

    Parameters
    ----------
    form : str or BlockFormat
        Format, such as one of `golden.FORMATS`.
    kind : str
        One of `KINDS`. ``gaussian``: standard normal. ``heavy-tailed``: Student's t with 3 degrees of freedom.
        ``outlier-channels``: standard normal with one in 128 of the K channels scaled up by 8 to 64, as in the
        activations of large language models (arXiv 2208.07339). `sim.tensors.generate` draws them. In the last kind 89
        % of the energy are in the channels that are scaled up; ``ordinary-channels`` is the error of the others.
    rule : str, optional
        Rule of quantisation, such as "four-over-six" for NVFP4, and "floor" or "ceil" for MXFP4. The default is that
        of the format.
    shape : (int, int)
        Rows and K. A larger tensor has a larger maximum, from which a tensor scale follows.
    seed : int
        Seed of the tensor.

    Raises
    ------
    ArgumentError
        Unknown format or kind, or a rule that the format has not.
    """
    return energies(drawn(kind, shape, seed), form, rule).decibels
