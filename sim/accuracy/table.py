"""The table of errors: a row for each format and rule, as `hwgen error` prints it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from sim import golden, tensors

from . import noise
from .noise import KINDS, SEED, SHAPE, Part, energies
from .trained import Model, ModelErrors


class Sqnr(TypedDict):
    """Signal-to-quantisation-noise ratios of several tensors.

    Parameters
    ----------
    mean, worst
        In dB.
    """

    mean: float
    worst: float


class Similarity(TypedDict):
    """Cosines between embeddings with a format and those in FP32.

    Parameters
    ----------
    mean, worst
        Of the sentences.
    standard_error
        Of the mean; null where there is none.
    draws
        How often the model was quantised.
    spread
        Standard deviation of the mean from draw to draw; null of one draw.
    """

    mean: float
    worst: float
    standard_error: float | None
    draws: int
    spread: float | None


class ModelRow(TypedDict):
    """Errors on a trained model.

    Parameters
    ----------
    weights_format
        Format of the weights.
    weights_sqnr_db, activations_sqnr_db
        Of the weights, and of the activations.
    embedding_similarity
        Of what the model gives.
    """

    weights_format: str
    weights_sqnr_db: Sqnr
    activations_sqnr_db: Sqnr
    embedding_similarity: Similarity


class _EveryRow(TypedDict):
    format: str
    rule: str
    bits_per_element: float
    sqnr_db: dict[str, float | None]


class ErrorRow(_EveryRow, total=False):
    """Errors of a format under a rule.

    Parameters
    ----------
    format
        Name of the format.
    rule
        Name of the rule.
    bits_per_element
        Bits that an element takes as it is stored, its share of the scale byte included, of the tensor scale left out.
    sqnr_db
        Signal-to-quantisation-noise ratio in dB by the name of a tensor; null where a tensor has no error or no energy.
    model
        Errors on a trained model, where they were asked for.
    """

    model: ModelRow


@dataclass(frozen=True)
class Row:
    """Errors of a format under a rule.

    Parameters
    ----------
    format
        Name of the format.
    rule
        Name of the rule.
    bits
        Bits that an element takes as it is stored, its share of the scale byte included, of the tensor scale left out.
    decibels
        SQNR in dB by the name of a tensor.
    model
        Errors on a trained model, if they were asked for.
    weights
        Name of the format that the model's weights have, where it is another one.
    """

    format: str
    rule: str
    bits: float
    decibels: Mapping[str, float]
    model: ModelErrors | None
    weights: str | None = None

    def as_dict(self) -> ErrorRow:
        """The figures, ready for JSON: SQNR in dB, null where a tensor has no error or no energy."""
        found: ErrorRow = {
            "format": self.format,
            "rule": self.rule,
            "bits_per_element": self.bits,
            "sqnr_db": {name: _number(each) for name, each in self.decibels.items()},
        }
        if self.model is not None:
            weights, activations = self.model.weights, self.model.activations
            found["model"] = {
                "weights_format": self.weights or self.format,
                "weights_sqnr_db": {"mean": weights.mean, "worst": weights.worst},
                "activations_sqnr_db": {"mean": activations.mean, "worst": activations.worst},
                "embedding_similarity": {
                    "mean": self.model.similarity,
                    "worst": self.model.worst_similarity,
                    "standard_error": _number(self.model.standard_error),
                    "draws": len(self.model.draws),
                    "spread": _number(self.model.spread),
                },
            }
        return found


def drawn(shape: tuple[int, int] = SHAPE, seed: int = SEED) -> dict[str, tensors.Tensor | Part]:
    """Return a tensor of each of `KINDS`, (rows, K), by the name of its kind."""
    return {kind: noise.drawn(kind, shape, seed) for kind in KINDS}


def table(
    choices: Sequence[tuple[str | golden.BlockFormat, str]],
    inputs: Mapping[str, tensors.Tensor | Part],
    model: Model | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    weights: str | None = None,
) -> list[Row]:
    """Return a row for each format and rule.

    Parameters
    ----------
    choices
        Formats, or their names, with names of rules, such as `CHOICES`.
    inputs
        Tensors by name, (rows, K), such as `drawn` gives.
    model
        A trained model to measure on as well.
    progress
        Called with the rows done and those there are.
    weights
        Name of another format that the model's weights have in all rows, see `Model.errors`.

    Raises
    ------
    ArgumentError
        As `energies`, or as `Model.errors`.
    """
    rows = []
    progress(0, len(choices))
    for form, rule in choices:
        record = golden.block_format(form)
        decibels = {name: energies(x, record, rule).decibels for name, x in inputs.items()}
        errors = None if model is None else model.errors(record, rule, weights)
        rows.append(Row(record.name, rule, _bits(record), decibels, errors, weights))
        progress(len(rows), len(choices))
    return rows


def _bits(form: golden.BlockFormat) -> float:
    return form.width + 8 * form.scale_bytes / form.block


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
