"""What the formats of a core lose: of tensors that are drawn, and of a trained model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from hwgen.formats import BlockFormat, Formats
from hwgen.report import schema
from sim import accuracy, golden
from sim.accuracy.rows import OUTSIDE, of_weights, rules, together
from sim.counterpart import counterpart

__all__ = ["MODELS", "Losses", "errors_of", "of_products"]

MODELS: dict[str, Callable[[], accuracy.Model]] = {"minilm": accuracy.minilm_model}
"""Trained models by name."""


def of_products(config: TensorCoreConfig) -> str | None:
    """What a core loses by codes that are added in the place of products, in words; None where none are."""
    if not config.bounds.additive:
        return None
    found = accuracy.additive_error()
    return (
        f"of E4M3, a product of normal numbers is off by {100 * found.mean:.1f} % in the mean and"
        f" {100 * found.largest:.1f} % at most, products of gaussian numbers have {found.decibels:.1f} dB against the"
        " exact ones; errors of tensors do not show that, the embeddings of a model do"
    )


_ByRule = dict[str, accuracy.ModelErrors]


def errors_of(forms: Sequence[BlockFormat]) -> tuple[schema.FormatError, ...]:
    """What all quantisers of some formats lose of tensors that are drawn, see `sim.accuracy`."""
    found = []
    for form in map(counterpart, dict.fromkeys(forms)):
        default, *others = rules(form)
        for rule in (default, *others):
            ratios = {kind: accuracy.signal_to_noise(form, kind, rule=rule) for kind in accuracy.KINDS}
            found.append(schema.FormatError(form.name, rule, rule == default, _finite(ratios)))
    return tuple(found)


class Losses:
    """What the formats of cores lose. A is the input of a linear layer, B its weights.

    Parameters
    ----------
    model
        A trained model to measure on as well.
    """

    def __init__(self, model: accuracy.Model | None = None) -> None:
        self._model = model
        self._known: dict[tuple[BlockFormat, BlockFormat], _ByRule] = {}
        self._drawn: dict[tuple[BlockFormat, ...], tuple[schema.FormatError, ...]] = {}

    def find(
        self,
        configs: Iterable[TensorCoreConfig],
        workers: int,
        progress: Callable[[int, int], None],
    ) -> None:
        """Find what the formats of several cores lose, in threads side by side; `errors` has it then.

        Parameters
        ----------
        configs
            The cores. Those with the same formats count once.
        workers
            Threads at once; -1 is one for each core of the machine.
        progress
            Called with how many are done, and how many there are.

        Raises
        ------
        InputError
            As for `errors`.
        """
        first: dict[Formats, TensorCoreConfig] = {}
        for config in configs:
            first.setdefault(config.formats, config)
        distinct = list(first.values())
        # Those with a window take longest: begun last, one of them would be left alone with one thread.
        distinct.sort(key=lambda config: config.bounds.window is None)
        calls = [delayed(self.errors)(config) for config in distinct]
        progress(0, len(calls))
        # Threads of matrix products within these threads would wait for one another: a third more time.
        with threadpool_limits(None if len(calls) == 1 else 1, "blas"):
            found = Parallel(n_jobs=workers, require="sharedmem", return_as="generator")(calls)
            for done, _ in enumerate(found, start=1):
                progress(done, len(calls))

    def errors(self, config: TensorCoreConfig) -> tuple[schema.FormatError, ...]:
        """What the quantisers of both operands lose; of a model by the rules that `similarities` has.

        Raises
        ------
        InputError
            A format does not reach the numbers of a tensor.
        """
        try:
            if config.formats not in self._drawn:
                self._drawn[config.formats] = errors_of(config.formats)
            drawn = self._drawn[config.formats]
            return drawn if self._model is None else tuple(self._with_model(config, each) for each in drawn)
        except golden.ArgumentError as error:
            raise InputError(f"{config.name}: {error}; take a scale that reaches further, or a full_scale") from None

    def similarities(self, config: TensorCoreConfig) -> dict[str, schema.Similarity] | None:
        """How like the model's embeddings are those that such a core would give, by rule; None without a model.

        Operands of two formats are quantised by the default rule of each, and by every other rule that both have. Where
        blocks of A have no scale, there is one for each row of both besides.
        """
        return None if self._model is None else _similarities(self._of_model(config))

    def _with_model(self, config: TensorCoreConfig, error: schema.FormatError) -> schema.FormatError:
        found = self._of_model(config)
        if config.a == config.b:
            activations = weights = found.get(error.rule)
        else:
            # The first entry is of the default rule of each.
            of_rule = next(iter(found.values())) if error.default else found.get(error.rule)
            activations = of_rule if error.format == config.a.name else None
            weights = of_rule if error.format == config.b.name else None
            if error.rule in OUTSIDE and of_weights(error.rule, counterpart(config.b)) is None:
                weights = None
        trained = {}
        if activations is not None:
            trained[schema.ACTIVATIONS] = activations.activations.mean
        if weights is not None:
            trained[schema.WEIGHTS] = weights.weights.mean
        return replace(error, decibels={**error.decibels, **_finite(trained)})

    def _of_model(self, config: TensorCoreConfig) -> _ByRule:
        pair = config.a, config.b
        if pair not in self._known:
            assert self._model is not None
            a, b = map(counterpart, pair)
            if config.a == config.b:
                self._known[pair] = {rule: self._model.errors(a, rule) for rule in rules(a)}
            else:
                default = " and ".join(dict.fromkeys(rules(form)[0] for form in (a, b)))
                found = {default: self._model.errors(a, None, b)}
                self._known[pair] = found | {rule: self._model.errors(a, rule, b) for rule in together(a, b)}
        return self._known[pair]


def _similarities(found: _ByRule) -> dict[str, schema.Similarity]:
    """How like embeddings are to those in FP32, as an entry of the report."""
    return {
        rule: schema.Similarity(
            each.similarity,
            each.worst_similarity,
            each.standard_error,
            draws=len(each.draws),
            spread=each.spread if len(each.draws) > 1 else None,
        )
        for rule, each in found.items()
    }


def _finite(ratios: Mapping[str, float]) -> dict[str, float]:
    return {kind: ratio for kind, ratio in ratios.items() if math.isfinite(ratio)}
