"""A BERT-like sentence encoder, forward, in numpy.

Sentences are packed: their tokens stand one after the other, without padding. A linear layer is then one matrix product
over all tokens of all sentences. Attention stays within a sentence::

    tokens -> embeddings of words, places and types, added up -> layer norm
      -> in each layer: query, key, value -> attention -> dense -> added -> layer norm
                        -> intermediate, GELU -> output -> added -> layer norm
      -> mean over the tokens of a sentence -> length 1

Sources: Devlin et al., "BERT" (arXiv 1810.04805); Reimers and Gurevych, "Sentence-BERT" (arXiv 1908.10084) for the
mean over tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import erf

from sim.golden import ArgumentError

from .wordpiece import WordPiece

Matrix = npt.NDArray[np.float32]

Product = Callable[[str, Matrix, Matrix], Matrix]
"""Matrix product X W^T: called with a name, X (tokens, K) and W (outputs, K), or with stacks of such for all heads."""

SCORES, CONTEXT = "attention.scores", "attention.context"
"""Names of the two products of attention: of queries and keys, and of shares and values; before each is the layer's."""


def plain(name: str, x: Matrix, w: Matrix) -> Matrix:
    """Return X W^T in FP32; the order of summation is that of numpy's BLAS."""
    return x @ w.swapaxes(-1, -2)


class Encoder:
    """The encoder.

    Parameters
    ----------
    weights : mapping of str to array of float32
        Tensors by name, as in a checkpoint of BERT. Linear layers are (outputs, inputs).
    wordpiece : WordPiece
        What divides text.
    heads : int
        Heads of attention; they share the channels evenly.
    epsilon : float
        What is added to the variance in a layer norm.

    Attributes
    ----------
    linear : tuple of str
        Names of the weights of all linear layers that an embedding depends on, in the order they are used in.
    """

    def __init__(
        self, weights: Mapping[str, Matrix], wordpiece: WordPiece, heads: int = 12, epsilon: float = 1e-12
    ) -> None:
        self._weights, self._wordpiece, self._heads, self._epsilon = weights, wordpiece, heads, epsilon
        depth = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
        self._layers = [f"encoder.layer.{index}." for index in range(depth)]
        inner = (*(f"attention.self.{part}" for part in ("query", "key", "value")), "attention.output.dense")
        self.linear = tuple(
            f"{layer}{part}.weight" for layer in self._layers for part in (*inner, "intermediate.dense", "output.dense")
        )

    def prefix(self, index: int) -> str:
        """Return what the names of a layer's weights begin with, its dot included."""
        return self._layers[index]

    def weight(self, name: str) -> Matrix:
        """Return the weight matrix of a linear layer, (outputs, inputs)."""
        return self._weights[name]

    def embed(self, sentences: Sequence[str], product: Product = plain) -> Matrix:
        """Return the embeddings of sentences, each of length 1.

        Parameters
        ----------
        sentences : sequence of str
            One or more.
        product : callable, optional
            What multiplies in the linear layers; FP32 by default. Biases are added to what it returns. The two products
            of attention, that of queries and keys and that with values, have no weights, and are in FP32.

        Returns
        -------
        numpy.ndarray of float32, (sentences, channels)

        Raises
        ------
        ArgumentError
            There are no sentences.
        """
        x, parts = self.packed(sentences)
        for index in range(self.depth):
            x = self.layer(index, x, parts, product)
        means = np.array([x[part].mean(axis=0) for part in parts])
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return len(self._layers)

    def packed(self, sentences: Sequence[str]) -> tuple[Matrix, list[slice]]:
        """Return what goes into the first layer, (tokens, channels), and the tokens of each sentence.

        Raises
        ------
        ArgumentError
            There are no sentences.
        """
        if not sentences:
            raise ArgumentError("there must be a sentence or more; got none")
        numbers = [self._wordpiece.numbers(sentence) for sentence in sentences]
        ends = np.cumsum([len(each) for each in numbers])
        parts = [slice(end - len(each), end) for end, each in zip(ends, numbers, strict=True)]
        return self._embedded(numbers), parts

    def _embedded(self, numbers: list[list[int]]) -> Matrix:
        words, places, types = (
            self._weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
        )
        x = words[np.concatenate(numbers)] + np.concatenate([places[: len(each)] for each in numbers]) + types[0]
        return self._norm("embeddings.LayerNorm", x)

    def layer(
        self, index: int, x: Matrix, parts: Sequence[slice], product: Product = plain, within: Product = plain
    ) -> Matrix:
        """Return what a layer makes of its input, (tokens, channels).

        Parameters
        ----------
        index : int
            Of the layer, from 0.
        x : numpy.ndarray of float32, (tokens, channels)
            Its input.
        parts : sequence of slice
            The tokens of each sentence.
        product : callable, optional
            As in `embed`; its names are those of the weights.
        within : callable, optional
            What multiplies in attention, for each sentence: X is (heads, tokens, K), W is (heads, outputs, K). Its
            names are the layer's prefix with `SCORES` and with `CONTEXT`.
        """
        layer = self.prefix(index)

        def linear(name: str, into: Matrix) -> Matrix:
            weight = f"{layer}{name}.weight"
            return product(weight, into, self._weights[weight]) + self._weights[f"{layer}{name}.bias"]

        query, key, value = (linear(f"attention.self.{part}", x) for part in ("query", "key", "value"))
        seen = np.concatenate([self._attention(layer, query[p], key[p], value[p], within) for p in parts])
        x = self._norm(f"{layer}attention.output.LayerNorm", x + linear("attention.output.dense", seen))
        inner = linear("intermediate.dense", x)
        inner *= (1 + erf(inner * np.float32(0.5**0.5))) / 2  # GELU, exact
        return self._norm(f"{layer}output.LayerNorm", x + linear("output.dense", inner))

    def _attention(self, layer: str, query: Matrix, key: Matrix, value: Matrix, within: Product) -> Matrix:
        q, k, v = (each.reshape(len(each), self._heads, -1).swapaxes(0, 1) for each in (query, key, value))
        scores = within(f"{layer}{SCORES}", q, k) / np.float32(q.shape[-1] ** 0.5)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return within(f"{layer}{CONTEXT}", shares, v.swapaxes(1, 2)).swapaxes(0, 1).reshape(query.shape)

    def _norm(self, name: str, x: Matrix) -> Matrix:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(self._epsilon))
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
