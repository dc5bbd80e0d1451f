"""One layer of an encoder, GEMM by GEMM: in FP32, and with a hardware quantiser and a tensor core.

A layer has eight kinds of GEMMs, D = X W^T. Six are linear: X are activations, W weights. Two are of attention: queries
by keys, and shares (what softmax makes of the scores) by values. There both operands are activations, and there is a
GEMM for each head of each sentence. All else is left to a vector unit in FP32: biases, softmax, GELU, the additions
around attention and feed-forward network, layer norms.

Weights are quantised once, by the float64 quantiser. Activations go through the hardware quantiser. Their tensor scales
are calibrated: those of the tensor's largest number in FP32, over all heads and sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sim import golden

from .encoder import CONTEXT, SCORES, Encoder, Matrix, plain
from .noise import Energies

GEMMS: Mapping[str, str] = {
    **{part: f"attention.self.{part}.weight" for part in ("query", "key", "value")},
    "scores": SCORES,
    "context": CONTEXT,
    "projection": "attention.output.dense.weight",
    "intermediate": "intermediate.dense.weight",
    "output": "output.dense.weight",
}
"""Kinds of GEMMs of a layer in the order they are computed in, and their names in the encoder."""

WITHOUT_WEIGHTS = ("scores", "context")
"""Those of two activations."""

_SHORT = {name: short for short, name in GEMMS.items()}

Multiply = Callable[[str, Matrix, Matrix], Matrix]
"""X W^T of two matrices, called with the kind of GEMM, a key of `GEMMS`."""

Core = Callable[[golden.QuantizedTensor, golden.QuantizedTensor], Matrix]
"""X W^T of quantised matrices, as a tensor core computes it."""


class Gemm(NamedTuple):
    """A GEMM in FP32."""

    x: Matrix
    """(M, K)."""
    w: Matrix
    """(N, K)."""
    d: Matrix
    """(M, N)."""


@dataclass(frozen=True, eq=False)
class LayerRun:
    """What a layer computed.

    Parameters
    ----------
    gemms
        GEMMs by kind: one of a linear kind; of attention one for each head of each sentence.
    output
        What the layer puts out, (tokens, channels).
    """

    gemms: Mapping[str, Sequence[Gemm]]
    output: Matrix


class Layer:
    """A layer with its input.

    Parameters
    ----------
    encoder : Encoder
        The encoder; layers before this one are computed in FP32.
    sentences : sequence of str
        They are one batch.
    index : int
        Of the layer, from 0.

    Attributes
    ----------
    x : numpy.ndarray of float32, (tokens, channels)
        Its input.
    reference : LayerRun
        The layer in FP32.

    Raises
    ------
    ArgumentError
        There are no sentences, or no such layer.
    """

    def __init__(self, encoder: Encoder, sentences: Sequence[str], index: int) -> None:
        if not 0 <= index < encoder.depth:
            raise golden.ArgumentError(f"layer must be 0 to {encoder.depth - 1}; got {index}")
        x, self._parts = encoder.packed(sentences)
        for before in range(index):
            x = encoder.layer(before, x, self._parts)
        self._encoder, self._index, self.x = encoder, index, x
        self.reference = self.run(plain)

    def run(self, multiply: Multiply) -> LayerRun:
        """Run the layer with GEMMs of one's own; all else is in FP32."""
        found: dict[str, list[Gemm]] = {kind: [] for kind in GEMMS}
        prefix = self._encoder.prefix(self._index)

        def one(kind: str, x: Matrix, w: Matrix) -> Matrix:
            gemm = Gemm(x, w, multiply(kind, x, w))
            found[kind].append(gemm)
            return gemm.d

        def linear(name: str, x: Matrix, w: Matrix) -> Matrix:
            return one(_SHORT[name.removeprefix(prefix)], x, w)

        def within(name: str, x: Matrix, w: Matrix) -> Matrix:
            kind = _SHORT[name.removeprefix(prefix)]
            return np.stack([one(kind, *pair) for pair in zip(x, w, strict=True)])

        output = self._encoder.layer(self._index, self.x, self._parts, linear, within)
        return LayerRun(found, output)


class Side(NamedTuple):
    """A quantised operand of a GEMM."""

    tensor: golden.QuantizedTensor
    values: Matrix | None
    """What the hardware quantiser was given, (rows, K) with K up to the next block; None where it had no part."""
    flags: golden.HardwareResult | None
    """All that it put out."""


class Product(NamedTuple):
    """A GEMM of quantised operands."""

    x: Side
    w: Side
    d: Matrix


class Datapath:
    """Hardware quantiser and tensor core, as the golden model has them, calibrated on a layer.

    Parameters
    ----------
    layer : Layer
        Its FP32 numbers give the tensor scales of activations.
    quantiser : golden.Quantiser
        Of activations; weights are quantised to the same format by the same rule, in float64.
    core : callable, optional
        What multiplies; by default the golden model in steps of one block.
    kept : iterable of str
        Kinds of GEMMs that `products` is to have.
    in_float64 : bool
        Activations are quantised by the float64 quantiser instead, with the same tensor scales.

    Attributes
    ----------
    products : dict of str to list of Product
        GEMMs that were multiplied, by kind, of those that are kept.
    blocks, saturated : int
        Blocks that the hardware quantiser made, and those among them whose scale should have been larger.
    """

    def __init__(
        self,
        layer: Layer,
        quantiser: golden.Quantiser,
        core: Core | None = None,
        kept: Iterable[str] = (),
        in_float64: bool = False,
    ) -> None:
        self._quantiser, self._in_float64 = quantiser, in_float64
        self._core: Core = core or (lambda a, b: golden.gemm(a, b, blocks_per_step=1))
        self.products: dict[str, list[Product]] = {kind: [] for kind in kept}
        self.blocks = self.saturated = 0
        self._scales: dict[tuple[str, str], np.float32] = {}
        self._weights: dict[str, Side] = {}
        for kind, gemms in layer.reference.gemms.items():
            self._scales[kind, "x"] = self._calibrated([gemm.x for gemm in gemms])
            if kind in WITHOUT_WEIGHTS:
                self._scales[kind, "w"] = self._calibrated([gemm.w for gemm in gemms])
            else:
                self._weights[kind] = self._offline(gemms[0].w)

    def _calibrated(self, captured: list[Matrix]) -> np.float32:
        peak = max(float(np.abs(each).max()) for each in captured)
        return self._quantiser.tensor_scale(np.full((1, 1), peak, np.float32))

    def _offline(self, x: Matrix, scale: np.float32 | None = None) -> Side:
        form, rule = self._quantiser.format, self._quantiser.rule
        return Side(golden.quantize_padded(x, form, rule=rule, tensor_scale=scale), None, None)

    def _online(self, kind: str, side: str, x: Matrix) -> Side:
        scale = self._scales[kind, side]
        if self._in_float64:
            return self._offline(x, scale)
        values = golden.padded(np.ascontiguousarray(x, np.float32), self._quantiser.format)
        found = self._quantiser.quantize(values, scale)
        self.blocks += found.saturated.size
        self.saturated += int(found.saturated.sum())
        return Side(found.tensor, values, found)

    def operands(self, kind: str, x: Matrix, w: Matrix) -> tuple[Side, Side]:
        """Return both operands of a GEMM, quantised."""
        second = self._weights[kind] if kind in self._weights else self._online(kind, "w", w)
        return self._online(kind, "x", x), second

    def multiply(self, kind: str, x: Matrix, w: Matrix) -> Matrix:
        """Return X W^T as the hardware computes it, (M, N); it is what `Layer.run` takes."""
        first, second = self.operands(kind, x, w)
        d = self._core(first.tensor, second.tensor)
        if kind in self.products:
            self.products[kind].append(Product(first, second, d))
        return d


@dataclass(frozen=True)
class Deviation:
    """How far matrices are from those in FP32.

    Parameters
    ----------
    energies
        Of the numbers in FP32, and of the differences.
    median
        Signal-to-noise ratio of a column in dB, median over the columns: one channel of large numbers may have nearly
        all of the energy.
    similarity, worst
        Cosine similarity of a row to that in FP32: mean over the rows, and the lowest.
    """

    energies: Energies
    median: float
    similarity: float
    worst: float


def deviation(expected: Sequence[Matrix], found: Sequence[Matrix]) -> Deviation:
    """Return how far matrices are from others, which are in FP32.

    Parameters
    ----------
    expected, found
        Matrices in pairs of one shape, one pair or more. The similarity of a row of zeros is 0 to all but another.
        Columns of zeros in both have no part in the median.
    """
    total, columns, rows = Energies(0.0, 0.0), [], []
    for right, answer in zip(expected, found, strict=True):
        one, other = right.astype(np.float64), answer.astype(np.float64)
        signal, noise = np.square(one).sum(axis=0), np.square(other - one).sum(axis=0)
        total += Energies(float(signal.sum()), float(noise.sum()))
        with np.errstate(divide="ignore", invalid="ignore"):
            columns.append(10 * np.log10(signal / noise))
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        both_zero = ~(one.any(axis=1) | other.any(axis=1))
        alike = (one * other).sum(axis=1) / np.where(lengths, lengths, 1)
        rows.append(np.where(both_zero, 1, alike))
    similarities = np.concatenate(rows)
    median = float(np.nanmedian(np.concatenate(columns)))
    return Deviation(total, median, float(similarities.mean()), float(similarities.min()))
