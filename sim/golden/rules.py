"""Rules of quantisation: how the scale of a block follows from its numbers.

================  ================================================  =========================================
rule              scale of a block, with b its largest magnitude    for
================  ================================================  =========================================
``nearest``       cast(b / top), top the largest element            scales with a mantissa
``four-over-six`` cast(b / 6) or cast(b / 4): the smaller squared   E2M1 alone and scales with a mantissa; with UE4M3
                  error, of equal ones the former                   the tensor scale is max|x| / (256 * 6) in place of
                                                                    max|x| / (448 * 6)
``floor``         2^(floor(log2 b) - floor(log2 top)); below the    scales that are powers of two
                  smallest scale that, above the largest NaN
``ceil``          2^ceil(log2(b / top)), within the scales there    such scales and elements of one kind
                  are
``least-error``   of some scales beside cast(b / top), or beside    all scales of blocks but those with shifts
                  that of ``ceil``, the one with the smallest
                  squared error, of equal ones the nearest
``reciprocal``    cast(bf16(b * bf16(1 / top))), see `levels`       scales with a mantissa and sub-groups' shifts
``unscaled``      none                                              formats without block scales
``absmean``       none, and the tensor scale is the mean of |x|     such formats with elements -1, 0 and 1, and a
                                                                    tensor scale
================  ================================================  =========================================

All of it in units of the tensor scale. A cast is to nearest, ties to the even code, saturating. Elements are rounded to
nearest, ties to the even code; they saturate.

``four-over-six`` is arXiv 2512.02010. E2M1 has nothing between 4 and 6: a block whose numbers lie there is better off
if its largest becomes 4. The scale is then 1.5 times as large, and E4M3 must have room for it: so the tensor scale puts
the largest scale of a tensor at 256, not at 448. What is stored is NVFP4; hardware does not know the rule.

``least-error`` is what a patient encoder can do, and no paper's. It tries all scales of a block from 2^-1/2 to 2^3/4
times the one that is there by ``nearest``; of powers of two that of ``ceil`` and both neighbours. So formats whose own
rule rounds may be compared with those whose rule chooses. Hardware does not know the rule.

``floor`` is that of the OCP Microscaling Formats (MX) Specification v1.0, which leaves open how elements are
rounded. The largest of a block comes to lie from 4 to 8 on the grid of E2M1, so it may saturate. ``ceil`` is NVIDIA's,
arXiv 2510.25602: it comes to lie above 3 and up to 6, and nothing saturates. With the elements of MSFP12 ``floor`` is
the exponent of the largest number of a block, as in block floating point. BlockDialect has ``floor``, too: the tops of
all its kinds of elements are from 4 to 7.5.

``reciprocal`` is HiF4's, arXiv 2602.11287. No number is divided: all are multiplied by the reciprocal of the scale in
BF16, and ties of elements go away from zero. Sub-groups with shifts under a power of two have ``floor``, as in MX6.

``absmean`` is that of BitNet b1.58, arXiv 2402.17764, for weights: numbers beyond the mean magnitude saturate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .block import BlockFormat
from .checks import ArgumentError, Array
from .element import E2M1, TERNARY
from .scale import UE4M3, ScaleFormat

RULES = ("nearest", "four-over-six", "floor", "ceil", "least-error", "reciprocal", "unscaled", "absmean")
"""Names of the rules."""

_LARGEST_SCALE = 256.0
"""Largest scale of a tensor that ``four-over-six`` aims at; 1.5 times as much is a value of E4M3, too."""


def rules(form: BlockFormat) -> tuple[str, ...]:
    """Return the rules by which a format can be quantised; the first is the default."""
    return tuple(sorted(_possible(form), key=lambda rule: rule != form.rule))  # the others keep their order


def _possible(form: BlockFormat) -> tuple[str, ...]:
    if form.shifts:
        return ("reciprocal",) if form.scale.mantissa_bits else ("floor",)
    if not form.scale.width:
        by_mean = form.elements == (TERNARY,) and form.tensor_divisor is not None
        return ("absmean", "unscaled") if by_mean else ("unscaled",)
    if not form.scale.mantissa_bits:
        return ("floor", "least-error") if len(form.elements) > 1 else ("floor", "ceil", "least-error")
    # Of a tensor scale of its own nobody has said what it should be with this rule.
    known = form.tensor_divisor in (None, UE4M3.largest * E2M1.largest)
    if form.elements == (E2M1,) and known:
        return ("nearest", "four-over-six", "least-error")
    return ("nearest", "least-error")


def checked(form: BlockFormat, rule: Any) -> str:
    """Return the rule, or the default in place of None.

    Raises
    ------
    ArgumentError
        It is not one for the format.
    """
    known = rules(form)
    if rule is None:
        return known[0]
    if rule not in known:
        raise ArgumentError(f"rule must be one of {', '.join(map(repr, known))} for {form.name}; got {rule!r}")
    return str(rule)


def reference(tensor: Array, rule: str) -> float:
    """Return what the tensor scale of a tensor is proportional to: its largest magnitude, or the mean of all."""
    if rule == "absmean":
        return float(np.abs(tensor.astype(np.float64)).mean())
    return max(float(tensor.max()), -float(tensor.min()))


def tensor_divisor(form: BlockFormat, rule: str) -> float | None:
    """Return what the `reference` is divided by for the tensor scale; None if there is none."""
    if rule == "four-over-six" and form.tensor_divisor is not None:
        return _LARGEST_SCALE * E2M1.largest
    return form.tensor_divisor


def tops(form: BlockFormat, index: int, rule: str) -> tuple[float, ...]:
    """Return what the largest number of a block may become if it has the elements of this index.

    Each gives a candidate; of equal errors the first wins.
    """
    # By a power of two, which hits no number of choice, a number of either sign is to be within the elements.
    element = form.elements[index]
    largest = element.largest if form.scale.mantissa_bits else element.reach
    if form.factors:
        largest = largest * form.factors[index] / form.factors[0]
    return (largest, 4.0) if rule == "four-over-six" else (largest,)


def steps(form: BlockFormat, rule: str) -> tuple[int, ...]:
    """Return the distances of scale codes to try from that of `scale_codes`, the nearest first."""
    if rule != "least-error":
        return (0,)
    octave = 1 << form.scale.mantissa_bits
    below, above = max(octave // 2, 1), max(3 * octave // 4, 1)
    return tuple(sorted(range(-below, above + 1), key=lambda step: (abs(step), step)))


def scale_codes(scale: ScaleFormat, top: float, peaks: Array, tensor_scale: float, rule: str) -> Array:
    """Return the codes (uint8) of scales.

    Parameters
    ----------
    scale : ScaleFormat
        The format of the scales.
    top : float
        What the largest number of a block is to become.
    peaks : numpy.ndarray of float64
        Largest magnitude of each block.
    tensor_scale : float
        What all numbers are divided by.
    rule : str
        One of `rules`.
    """
    if rule == "least-error":
        rule = "nearest" if scale.mantissa_bits else "ceil"
    if rule not in ("floor", "ceil"):
        return scale.encode(peaks / (top * tensor_scale))
    # frexp has the significand from 1/2 to 1, so that log2 is from exponent - 1 to exponent.
    with np.errstate(over="ignore"):
        ratio = peaks / tensor_scale if rule == "floor" else peaks / (top * tensor_scale)
    fraction, exponent = np.frexp(np.minimum(ratio, np.finfo(np.float64).max))  # infinity has no exponent
    power = exponent - (np.frexp(top)[1] if rule == "floor" else fraction == 0.5)
    codes = np.where(peaks > 0, power + scale.bias, 0)
    if rule == "floor" and scale.nan is not None:
        return np.where(codes > scale.last, scale.nan, np.maximum(codes, 0)).astype(np.uint8)
    return np.clip(codes, 0, scale.last).astype(np.uint8)
