"""FP16, IEEE 754 binary16: what rounding to it loses. No block and no scale has a part in it.

It is the activations' format where weights alone are quantised.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sim import golden
from sim.tensors import Tensor

from .noise import Energies, Part, changed, drawn, part_of

__all__ = ["FP16", "half", "half_energies", "half_signal_to_noise"]

FP16 = "fp16"
"""Its name beside those of `golden.FORMATS`."""


def half(x: Tensor) -> npt.NDArray[np.float64]:
    """Return numbers rounded to FP16, ties to even, subnormal numbers kept.

    Raises
    ------
    ArgumentError
        A number rounds to infinity: its magnitude is 65520 or more.
    """
    wide = np.asarray(x, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rounded = wide.astype(np.float16).astype(np.float64)
    if not np.isfinite(rounded).all():
        raise golden.ArgumentError(f"x has magnitude {np.abs(wide).max():g}: FP16 has numbers below 65520")
    return rounded


def half_energies(x: Tensor | Part) -> Energies:
    """Return the energies of a matrix and of what rounding to FP16 changes; errors as of `half`."""
    part = part_of(x)
    return changed(part, half(part.tensor))


def half_signal_to_noise(kind: str) -> float:
    """Return the SQNR of FP16 in dB, on a tensor of one of `noise.KINDS`."""
    return half_energies(drawn(kind)).decibels
