"""A scale for each row of a tensor, of formats whose blocks have none.

Integers are used so: a row of A is a token, one of B an output channel. Both scales are factors of a whole result. They
are applied outside the core, as the tensor scale is, and cost nothing in it. The golden model stores one scale for a
tensor. So rows are divided by theirs first, and results are multiplied by those of both operands.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sim import golden
from sim.golden.rules import rules as golden_rules
from sim.tensors import Tensor

__all__ = ["BY_ROW", "by_row", "of_weights", "rules", "together"]

BY_ROW = "by-row"
"""Name of the rule: each row has the scale that makes its largest number the largest element."""


def rules(form: golden.BlockFormat) -> tuple[str, ...]:
    """Return the rules of the golden model, the default first, and `BY_ROW` where blocks have no scale."""
    own = golden_rules(form)
    return own if form.scale.width or form.tensor_divisor is None else (*own, BY_ROW)


def of_weights(rule: str | None, form: golden.BlockFormat) -> str | None:
    """Return the rule of weights in another format than the activations, which have ``rule``.

    It is the same where they have it, else their default. They have `BY_ROW` where theirs is one scale for a tensor by
    its largest number, too.
    """
    if rule == BY_ROW:
        return BY_ROW if rules(form)[:1] == ("unscaled",) else None
    return rule if rule in rules(form) else None


def together(form: golden.BlockFormat, weights: golden.BlockFormat) -> tuple[str, ...]:
    """Return the rules, besides the default of each, of activations and weights in two formats: those of both.

    `BY_ROW` is one of activations, whatever the weights have.
    """
    return tuple(rule for rule in rules(form)[1:] if rule == BY_ROW or rule in rules(weights)[1:])


def by_row(
    x: Tensor, form: golden.BlockFormat, larger: float = 1.0
) -> tuple[golden.QuantizedTensor, npt.NDArray[np.float32]]:
    """Quantise a matrix by a scale for each row.

    Parameters
    ----------
    x : array, (rows, K)
        All finite.
    form : BlockFormat
        One whose blocks have no scale.
    larger : float
        All scales are so many times as large, 1 or a little more.

    Returns
    -------
    quantized : QuantizedTensor, (rows, K or more)
        Its tensor scale is 1.
    scales : numpy.ndarray of float32, (rows,)
        What its rows are to be multiplied by.
    """
    if BY_ROW not in rules(form):
        raise golden.ArgumentError(f"rule {BY_ROW!r} is for formats without block scales; {form.name} has them")
    assert form.tensor_divisor is not None
    peaks = np.abs(np.asarray(x, np.float64)).max(axis=1, initial=0.0)
    with np.errstate(over="ignore", under="ignore"):
        scales = (np.where(peaks > 0, peaks, form.tensor_divisor) / form.tensor_divisor * larger).astype(np.float32)
    if np.isinf(scales).any():
        raise golden.ArgumentError(f"x has magnitude {peaks.max():g}: scales of rows must be within the float32 range")
    scales = np.maximum(scales, np.finfo(np.float32).smallest_subnormal)
    quantized = golden.quantize_padded(
        x / scales.astype(np.float64)[:, None], form, tensor_scale=np.float32(1), rule="unscaled"
    )
    return quantized, scales
