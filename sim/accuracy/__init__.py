"""Accuracy: what a block format loses of tensors, and of a trained model's output.

::

    from sim import accuracy

    accuracy.signal_to_noise("nvfp4", "gaussian")  # dB
    accuracy.signal_to_noise("mxfp4", "gaussian", rule="ceil")
    model = accuracy.minilm_model()  # needs the extra hwgen[workloads]
    model.errors("mixfp4").similarity  # of embeddings to those in FP32

It is the error that stands beside the cost of a format. All numbers are quantised by `sim.golden`.
"""

from .additive import AdditiveError, additive_error
from .checkpoint import encoder_at, minilm
from .encoder import Encoder
from .noise import CHOICES, KINDS, SEED, SHAPE, Energies, energies, signal_to_noise
from .sentences import SENTENCES
from .table import Row, drawn, table
from .trained import Model, ModelErrors, Noise, quantised, standard_error
from .wordpiece import WordPiece

__all__ = [
    "CHOICES",
    "KINDS",
    "SEED",
    "SENTENCES",
    "SHAPE",
    "AdditiveError",
    "Encoder",
    "Energies",
    "Model",
    "ModelErrors",
    "Noise",
    "Row",
    "WordPiece",
    "additive_error",
    "drawn",
    "encoder_at",
    "energies",
    "minilm",
    "minilm_model",
    "quantised",
    "signal_to_noise",
    "standard_error",
    "table",
]


def minilm_model() -> Model:
    """Return all-MiniLM-L6-v2 with the fixed sentences.

    Raises
    ------
    ArgumentError
        The optional package that carries the model is not installed.
    """
    return Model(minilm(), SENTENCES)
