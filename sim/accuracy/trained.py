"""Accuracy on a trained model: its weights, its activations, and what comes out of it.

The model is the encoder of `encoder`, its input a batch of sentences. What is quantised is the weights and the input of
every linear layer, each tensor as a whole, so with a tensor scale of its own where the format has one. Blocks run along
K, the channels. All tokens of all sentences are one tensor. Embedding tables, biases, layer norms and the products
within attention stay in FP32.

Rounding is deterministic, and yet a matter of luck: with scales that are one percent larger each number rounds another
way, and embeddings move by as much as between two formats. So a model is quantised several times. In a *draw* the
scales of each tensor are larger by a factor of their own, up to `SPREAD`. In the first draw they are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sim import golden
from sim.golden.quantize import found_scale
from sim.golden.rules import checked, reference, tensor_divisor
from sim.golden.window import common_window

from .encoder import Encoder, Matrix, Product, plain
from .noise import Energies, energies
from .rows import GROUP, OUTSIDE, by_part, of_activations, of_weights, scaled

DEPTH = 64
"""Products that a step adds up before it rounds to FP32: K of Blackwell's ``kind::mxf4`` and ``kind::mxf4nvf4``."""

DRAWS = 4
"""Draws of a model's roundings."""

SPREAD = 0.02
"""Share by which scales are larger in a draw, at most: less than half a step of any scale format."""


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
    draws
        Cosine similarity of each embedding to that in FP32, (draws, sentences), with weights and inputs of all linear
        layers quantised.
    """

    weights: Noise
    activations: Noise
    draws: npt.NDArray[np.float64]

    @property
    def similarities(self) -> npt.NDArray[np.float64]:
        """Similarity of each embedding, mean over the draws, (sentences,)."""
        return self.draws.mean(axis=0)

    @property
    def spread(self) -> float:
        """Standard deviation of the mean over the sentences from draw to draw; NaN of one draw."""
        return float(self.draws.mean(axis=1).std(ddof=1)) if len(self.draws) > 1 else float("nan")

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
        """Standard error of `similarity`: what other sentences and other draws would change; NaN of one sentence."""
        return standard_error(self.draws)


def standard_error(draws: npt.NDArray[np.float64]) -> float:
    """Return the standard error of the mean of figures, (draws, sentences); NaN of one sentence.

    Both vary: sentences, since others might have been written, and draws, since scales might be a little larger. Of one
    draw it is that of the sentences alone. Differences of two formats may be given, too: they have the same sentences.
    """
    count, sentences = draws.shape
    if sentences < 2:
        return float("nan")
    found = draws.mean(axis=0).var(ddof=1) / sentences
    if count > 1:
        found += draws.mean(axis=1).var(ddof=1) / count
    return float(found**0.5)


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
        self,
        form: str | golden.BlockFormat,
        rule: str | None = None,
        weights: str | golden.BlockFormat | None = None,
        draws: int = DRAWS,
    ) -> ModelErrors:
        """Return what a format loses.

        Parameters
        ----------
        form, rule : str
            Format of weights and activations, and the rule that both are quantised by.
        weights : str or BlockFormat, optional
            Format of the weights, where it is another one; its rule is as `rows.of_weights` says.
        draws : int
            How often the model is quantised, 1 or more. Where codes are added in the place of products it is once.

        Raises
        ------
        ArgumentError
            Unknown format, or a rule that it has not, or formats that no step takes together.
        """
        once = golden.block_format(form).additive
        similarities = [self.similarities(quantised(form, rule, weights, draw)) for draw in range(1 if once else draws)]
        return ModelErrors(
            _noise(self.weights, *_of_weights(form, rule, weights)),
            _noise(self.activations, form, of_activations(rule, golden.block_format(form))),
            np.array(similarities),
        )

    def similarities(self, product: Product) -> npt.NDArray[np.float64]:
        """Return the cosine similarity of each embedding to that in FP32 if linear layers multiply by `product`."""
        one, other = (x.astype(np.float64) for x in (self.embeddings, self._encoder.embed(self._sentences, product)))
        return np.sum(one * other, axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def quantised(
    form: str | golden.BlockFormat,
    rule: str | None = None,
    weights: str | golden.BlockFormat | None = None,
    draw: int = 0,
) -> Product:
    """Return a product that quantises both operands and computes as the tensor core does, see `golden.gemm`.

    A step adds `DEPTH` products, or one sum of the format's where that has more. Formats are as in `Model.errors`. In
    draws but the first, products that a window cuts are added up in float64: the golden model takes half a minute for
    them, and what is cut is far below the rounding of the operands. So they are in all draws beside FP16 in formats
    whose products with that no core takes.

    Raises
    ------
    ArgumentError
        Unknown format, or formats that no step takes together.
    """
    first, second = (golden.block_format(each) for each in (form, weights or form))
    alone = first.always_cut and not _multiplied(first, second)
    if not alone and (first.block, first.lanes) != (second.block, second.lanes):
        blocks = " and ".join(f"{each.name} {each.block} in sums of {each.lanes}" for each in (first, second))
        raise golden.ArgumentError(f"activations and weights must have blocks that a step takes together; got {blocks}")
    groups = max(1, DEPTH // first.lanes)
    ways = (form, of_activations(rule, first)), _of_weights(form, rule, weights)
    exact = alone or (draw > 0 and common_window(first, second) is not None and not first.additive)

    def multiplied(a: golden.QuantizedTensor, b: golden.QuantizedTensor) -> Matrix:
        if exact:
            k = min(a.shape[1], b.shape[1])  # one may be filled up further
            x, w = (golden.dequantize(each)[:, :k].astype(np.float64) for each in (a, b))
            return (x @ w.T).astype(np.float32)
        return golden.gemm(a, b, blocks_per_step=groups)

    def product(name: str, x: Matrix, w: Matrix) -> Matrix:
        larger = _larger(name, draw)
        (a, rows), (b, columns) = (
            _quantised(operand, golden.block_format(each), by, factor)
            for operand, (each, by), factor in zip((x, w), ways, larger, strict=True)
        )
        if rows is columns is None:
            return multiplied(a, b)
        factors = _factors(rows), _factors(columns)
        parts = max(each.shape[1] for each in factors)
        one, other = (np.broadcast_to(each, (len(each), parts)) for each in factors)
        total = np.zeros((len(x), len(w)))
        for part in range(parts):
            pair = (a, b) if parts == 1 else (_group(a, part), _group(b, part))
            total += multiplied(*pair) * one[:, [part]] * other[:, part]
        return total.astype(np.float32)

    return product


def _multiplied(a: golden.BlockFormat, b: golden.BlockFormat) -> bool:
    """Return whether the golden model multiplies two formats."""
    try:
        golden.max_fraction_bits(1, a, b)
    except golden.ArgumentError:
        return False
    return True


def _group(operand: golden.QuantizedTensor, index: int) -> golden.QuantizedTensor:
    """Return a group of all rows."""
    block = operand.form.block
    first, last = GROUP * index, GROUP * (index + 1)
    codes, scales = operand.codes[:, first:last], operand.scales[:, first // block : last // block]
    return golden.QuantizedTensor(codes, scales, operand.tensor_scale, operand.form)


def _larger(name: str, draw: int) -> tuple[float, float]:
    """Return how many times as large the scales of an input and of a weight are in a draw."""
    if not draw:
        return 1.0, 1.0
    rng = np.random.default_rng([draw, *name.encode()])
    one, other = 1 + SPREAD * rng.random(2)
    return float(one), float(other)


def _quantised(
    x: Matrix, form: golden.BlockFormat, rule: str | None, larger: float
) -> tuple[golden.QuantizedTensor, npt.NDArray[np.float32] | np.float64 | None]:
    """Return a matrix in a format, by scales ``larger`` times as large, and what its rows are to be multiplied by."""
    if rule in OUTSIDE:
        return by_part(x, form, rule, larger)
    if larger == 1:
        return golden.quantize_padded(x, form, rule=rule), None
    divisor = tensor_divisor(form, checked(form, rule))
    if divisor is None:
        # Numbers that are smaller have blocks whose scales are larger beside them.
        return golden.quantize_padded(x / np.float64(larger), form, rule=rule), np.float64(larger)
    scale = np.float32(found_scale(reference(x, checked(form, rule)), divisor) * larger)
    return golden.quantize_padded(x, form, tensor_scale=scale, rule=rule), None


def _factors(rows: npt.NDArray[np.float32] | np.float64 | None) -> npt.NDArray[np.float64]:
    """Return factors of rows, or of their groups, (rows, groups); one number is that of all rows, and None is 1."""
    return np.atleast_2d(np.asarray(1.0 if rows is None else rows, np.float64))


def _of_weights(
    form: str | golden.BlockFormat, rule: str | None, weights: str | golden.BlockFormat | None
) -> tuple[str | golden.BlockFormat, str | None]:
    """Format and rule of the weights."""
    if weights is None:
        return form, rule
    alone = not scaled(golden.block_format(form))
    return weights, rule if alone else of_weights(rule, golden.block_format(weights))


def _noise(tensors: Mapping[str, Matrix], form: str | golden.BlockFormat, rule: str | None) -> Noise:
    return Noise({name: energies(x, form, rule) for name, x in tensors.items()})
