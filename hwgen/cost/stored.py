"""Bytes of a row of an operand: in a step, and as it is stored.

At half the rate an element is a byte. A core with scales at half the rate reads one with each row of a step; stored
there is one for 32 elements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwgen.config import TensorCoreConfig
from hwgen.config.slots import SCALED_ELEMENTS
from hwgen.formats import BlockFormat

__all__ = ["row_bytes", "step_bytes"]


def step_bytes(config: TensorCoreConfig, half: NDArray[np.bool_], form: BlockFormat) -> NDArray[np.int64]:
    """Bytes of a row in one step, codes and scales, (L,); in FP4 of the format ``form``."""
    return np.where(half, config.groups * config.slots + config.half_scaled, config.groups * form.stored_bytes)


def row_bytes(
    config: TensorCoreConfig, half: NDArray[np.bool_], k: NDArray[np.int64], form: BlockFormat
) -> NDArray[np.int64]:
    """Bytes of a row of ``k`` elements as it is stored, whole blocks, (L,)."""
    scales = -(-k // SCALED_ELEMENTS) if config.half_scaled else np.zeros_like(k)
    return np.where(half, k + scales, -(-k // form.size) * form.stored_bytes)
