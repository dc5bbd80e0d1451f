"""Scales for rows of a tensor, or for groups of them, of formats whose blocks have none.

Integers are used so: a row of A is a token, one of B an output channel. A scale of a row is a factor of a whole result.
A scale of a group is for `GROUP` consecutive elements of a row. So it is a factor of a part of the sum: the core gives
that part as a result, and what is outside scales it and adds the parts up. Both kinds are applied outside the core, as
the tensor scale is, and cost nothing in it. The golden model stores one scale for a tensor. So numbers are divided by
theirs first, and results are multiplied by those of both operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sim import golden
from sim.golden.rules import rules as golden_rules
from sim.tensors import Tensor

__all__ = [
    "BY_GROUP",
    "BY_ROW",
    "GROUP",
    "OUTSIDE",
    "by_part",
    "of_activations",
    "of_weights",
    "rules",
    "scaled",
    "spread",
    "together",
]

BY_ROW = "by-row"
"""Name of the rule: each row has the scale that makes its largest number the largest element."""
BY_GROUP = "by-group"
"""The same of each group of a row."""
OUTSIDE = (BY_ROW, BY_GROUP)
"""Rules whose scales are outside the core."""
GROUP = 128
"""Elements of a group along K; the last one of a row may have fewer. Integers of four bits mostly have so many: GPTQ
(arXiv 2210.17323), AWQ (arXiv 2306.00978), Atom (arXiv 2310.19102)."""


def rules(form: golden.BlockFormat) -> tuple[str, ...]:
    """Return the rules of the golden model, the default first, and those of `OUTSIDE` where blocks have no scale."""
    own = golden_rules(form)
    return (*own, *OUTSIDE) if scaled(form) and not form.scale.width else own


def of_activations(rule: str | None, form: golden.BlockFormat) -> str | None:
    """Return the rule of activations; None, their default, where they have no scale, so that it is for the weights."""
    return rule if scaled(form) or rule in rules(form) else None


def scaled(form: golden.BlockFormat) -> bool:
    """Return whether there is any scale, of blocks or of a tensor."""
    return form.scale.width > 0 or form.tensor_divisor is not None


def of_weights(rule: str | None, form: golden.BlockFormat) -> str | None:
    """Return the rule of weights in another format than the activations, which have ``rule``.

    It is the same where they have it, else their default. They have one of `OUTSIDE` where theirs is one scale for a
    tensor by its largest number, too.
    """
    if rule in OUTSIDE:
        return rule if BY_ROW in rules(form) and rules(form)[0] == "unscaled" else None
    return rule if rule in rules(form) else None


def together(form: golden.BlockFormat, weights: golden.BlockFormat) -> tuple[str, ...]:
    """Return the rules, besides the default of each, of activations and weights in two formats: those of both.

    Those of `OUTSIDE` are of activations, whatever the weights have; or of weights beside activations without scales.
    """
    if not scaled(form):
        return rules(weights)[1:]
    return tuple(rule for rule in rules(form)[1:] if rule in OUTSIDE or rule in rules(weights)[1:])


def by_part(
    x: Tensor, form: golden.BlockFormat, rule: str, larger: float = 1.0
) -> tuple[golden.QuantizedTensor, npt.NDArray[np.float32]]:
    """Quantise a matrix by a scale for each row, or for each group of a row.

    Parameters
    ----------
    x : array, (rows, K)
        All finite.
    form : BlockFormat
        One whose blocks have no scale.
    rule : str
        One of `OUTSIDE`.
    larger : float
        All scales are so many times as large, 1 or a little more.

    Returns
    -------
    quantized : QuantizedTensor, (rows, K or more)
        Its tensor scale is 1.
    scales : numpy.ndarray of float32, (rows, 1) or (rows, groups)
        What its rows, or groups of them, are to be multiplied by.
    """
    if rule not in rules(form):
        raise golden.ArgumentError(f"rule {rule!r} is for a tensor scale without block scales; {form.name} has another")
    assert form.tensor_divisor is not None
    magnitudes = np.abs(np.asarray(x, np.float64))
    first = np.arange(0, magnitudes.shape[1], GROUP if rule == BY_GROUP else max(1, magnitudes.shape[1]))
    peaks = np.maximum.reduceat(magnitudes, first, axis=1)
    with np.errstate(over="ignore", under="ignore"):
        scales = (np.where(peaks > 0, peaks, form.tensor_divisor) / form.tensor_divisor * larger).astype(np.float32)
    if np.isinf(scales).any():
        raise golden.ArgumentError(f"x has magnitude {peaks.max():g}: scales of rows must be within the float32 range")
    scales = np.maximum(scales, np.finfo(np.float32).smallest_subnormal)
    quantized = golden.quantize_padded(
        x / spread(scales, magnitudes.shape[1]), form, tensor_scale=np.float32(1), rule="unscaled"
    )
    return quantized, scales


def spread(scales: npt.NDArray[np.floating[Any]], k: int) -> npt.NDArray[np.float64]:
    """Return the scale of every element of rows of ``k``, (rows, 1) or (rows, k)."""
    wide = scales.astype(np.float64)
    return wide if wide.shape[1] == 1 else wide.repeat(GROUP, axis=1)[:, :k]
