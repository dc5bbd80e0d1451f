"""Operands of a GEMM, from what a user has to what a core takes."""

from __future__ import annotations

import numpy as np

from hwgen.errors import InputError
from sim import golden
from sim.tensors import Tensor

__all__ = ["quantized"]


def quantized(tensor: Tensor, form: str, origin: str) -> golden.QuantizedTensor:
    """Quantise an operand, with zeros up to a whole block.

    Parameters
    ----------
    tensor
        Finite numbers, (rows, K).
    form
        Name of the block format.
    origin
        What to call it in an error.

    Raises
    ------
    InputError
        It is empty, or cannot be quantised.
    """
    if tensor.size == 0:
        raise InputError(f"{origin}: is empty, {tensor.shape}; must have rows and columns")
    try:
        return golden.quantize(golden.padded(np.asarray(tensor)), form)
    except golden.InputError as error:
        raise InputError(f"{origin}: {error}") from None
