"""Accuracy: what a block format loses of tensors.

::

    from sim import accuracy

    accuracy.signal_to_noise("nvfp4", "gaussian")  # dB
    accuracy.signal_to_noise("mxfp4", "gaussian", rule="ceil")

It is the error that stands beside the cost of a format. All numbers are quantised by `sim.golden`.
"""

from .noise import CHOICES, KINDS, SEED, SHAPE, Energies, energies, signal_to_noise

__all__ = ["CHOICES", "KINDS", "SEED", "SHAPE", "Energies", "energies", "signal_to_noise"]
