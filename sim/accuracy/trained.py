"""Accuracy on a trained model: its weights, its activations, and what comes out of it.

The model is the encoder of `encoder`, its input a batch of sentences. What is quantised is the weights and the input of
every linear layer, each tensor as a whole, so with a tensor scale of its own where the format has one. Blocks run along
K, the channels. All tokens of all sentences are one tensor. Embedding tables, biases, layer norms and the products
within attention stay in FP32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sim import golden

from .encoder import Encoder, Matrix, Product, plain
from .noise import Energies, energies

DEPTH = 64
"""Products that a step adds up before it rounds to FP32: K of Blackwell's ``kind::mxf4`` and ``kind::mxf4nvf4``."""


@dataclass(frozen=True)
class Noise:
    """SQNR of several tensors.

    Parameters
    ----------
    by_name
        Energies of each tensor; there is one or more.
    """

    by_name: Mapping[str, Energies]

    @property
    def mean(self) -> float:
        """Mean of the tensors' SQNR, in dB: every tensor counts alike."""
        return float(np.mean([each.decibels for each in self.by_name.values()]))

    @property
    def worst(self) -> float:
        """Lowest SQNR of a tensor, in dB."""
        return min(each.decibels for each in self.by_name.values())


@dataclass(frozen=True)
class ModelErrors:
    """What a format loses of a model.

    Parameters
    ----------
    weights, activations
        SQNR of the weights, and of the inputs, of all linear layers. Inputs are those in FP32.
    similarities
        Cosine similarity of each embedding to that in FP32, (sentences,), with weights and inputs of all linear layers
        quantised.
    """

    weights: Noise
    activations: Noise
    similarities: npt.NDArray[np.float64]

    @property
    def similarity(self) -> float:
        """Mean of the similarities."""
        return float(self.similarities.mean())

    @property
    def worst_similarity(self) -> float:
        """The lowest of them."""
        return float(self.similarities.min())

    @property
    def standard_error(self) -> float:
        """Standard error of `similarity`: what other sentences of the kind would change; NaN of one sentence."""
        count = len(self.similarities)
        return float(self.similarities.std(ddof=1) / count**0.5) if count > 1 else float("nan")


class Model:
    """A trained encoder with a batch of sentences.

    Parameters
    ----------
    encoder : Encoder
        The encoder.
    sentences : sequence of str
        They are one batch: activations of all have one tensor scale.

    Raises
    ------
    ArgumentError
        There are no sentences.
    """

    def __init__(self, encoder: Encoder, sentences: Sequence[str]) -> None:
        self._encoder, self._sentences = encoder, sentences
        self.activations: dict[str, Matrix] = {}
        """Inputs of linear layers in FP32, (tokens, inputs), by the name of the weight that they meet.

        Query, key and value have the same input; it is there once, under the name of the query's weight.
        """

        def product(name: str, x: Matrix, w: Matrix) -> Matrix:
            if not any(known is x for known in self.activations.values()):
                self.activations[name] = x
            return plain(name, x, w)

        self.embeddings = encoder.embed(sentences, product)
        """Embeddings in FP32, (sentences, channels)."""

    @cached_property
    def weights(self) -> dict[str, Matrix]:
        """Weights of all linear layers by name, (outputs, inputs)."""
        return {name: self._encoder.weight(name) for name in self._encoder.linear}

    def errors(
        self, form: str | golden.BlockFormat, rule: str | None = None, weights: str | golden.BlockFormat | None = None
    ) -> ModelErrors:
        """Return what a format loses.

        Parameters
        ----------
        form, rule : str
            Format of weights and activations, and the rule that both are quantised by.
        weights : str or BlockFormat, optional
            Format of the weights, where it is another one; its rule is its default.

        Raises
        ------
        ArgumentError
            Unknown format, or a rule that it has not, or formats that no step takes together.
        """
        product = quantised(form, rule, weights)
        return ModelErrors(
            _noise(self.weights, *_of_weights(form, rule, weights)),
            _noise(self.activations, form, rule),
            self.similarities(product),
        )

    def similarities(self, product: Product) -> npt.NDArray[np.float64]:
        """Return the cosine similarity of each embedding to that in FP32 if linear layers multiply by `product`."""
        one, other = (x.astype(np.float64) for x in (self.embeddings, self._encoder.embed(self._sentences, product)))
        return np.sum(one * other, axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def quantised(
    form: str | golden.BlockFormat, rule: str | None = None, weights: str | golden.BlockFormat | None = None
) -> Product:
    """Return a product that quantises both operands and computes as the tensor core does, see `golden.gemm`.

    A step adds `DEPTH` products, or one sum of the format's where that has more. Formats are as in `Model.errors`.

    Raises
    ------
    ArgumentError
        Unknown format, or formats that no step takes together.
    """
    first, second = (golden.block_format(each) for each in (form, weights or form))
    if (first.block, first.lanes) != (second.block, second.lanes):
        blocks = " and ".join(f"{each.name} {each.block} in sums of {each.lanes}" for each in (first, second))
        raise golden.ArgumentError(f"activations and weights must have blocks that a step takes together; got {blocks}")
    groups = max(1, DEPTH // first.lanes)
    ways = (form, rule), _of_weights(form, rule, weights)

    def product(name: str, x: Matrix, w: Matrix) -> Matrix:
        a, b = (
            golden.quantize_padded(operand, each, rule=by) for operand, (each, by) in zip((x, w), ways, strict=True)
        )
        return golden.gemm(a, b, blocks_per_step=groups)

    return product


def _of_weights(
    form: str | golden.BlockFormat, rule: str | None, weights: str | golden.BlockFormat | None
) -> tuple[str | golden.BlockFormat, str | None]:
    """Format and rule of the weights."""
    return (form, rule) if weights is None else (weights, None)


def _noise(tensors: Mapping[str, Matrix], form: str | golden.BlockFormat, rule: str | None) -> Noise:
    return Noise({name: energies(x, form, rule) for name, x in tensors.items()})
